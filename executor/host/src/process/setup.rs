//! What a child does between fork and exec.
//!
//! INVARIANT: only async-signal-safe calls, no allocation, no lock: other threads of the parent may hold any lock at the fork.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};

/// First descriptor that is not a standard stream.
const FIRST_EXTRA: libc::c_uint = 3;

/// Arranges for the child to die with us, to leave no core dump, to write private files and to inherit three descriptors only.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
pub(super) fn in_child(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let prepare = move || {
        die_with(parent)?;
        umask(Mode::S_IRWXG | Mode::S_IRWXO);
        setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
        close_inherited_on_exec()
    };
    // SAFETY: the closure makes system calls only (prctl, getppid, umask, setrlimit, close_range, fcntl); it neither allocates nor
    // takes a lock, and the errors it returns are plain numbers.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Arranges for a warden to inherit three descriptors only. It outlives us by design, if only by a moment.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
pub(super) fn in_warden(command: &mut Command) {
    // SAFETY: the function makes system calls only (close_range, fcntl); it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(close_inherited_on_exec);
    }
}

/// The signal is bound to the forking thread. A parent that died before the call is noticed by the changed parent id.
#[cfg(target_os = "linux")]
fn die_with(parent: nix::unistd::Pid) -> io::Result<()> {
    use nix::errno::Errno;
    use nix::sys::signal::Signal;

    // SIGKILL rather than SIGTERM: an executor that hangs must not survive its host. A healthy one sees the end of stdin.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if nix::unistd::getppid() == parent {
        Ok(())
    } else {
        Err(Errno::EOWNERDEAD.into())
    }
}

/// Elsewhere the executor's own watch over the host's process id and the end of stdin have to do.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: nix::unistd::Pid) -> io::Result<()> {
    Ok(())
}

/// Marks every descriptor but the three streams close-on-exec. Rust opens them so; other code in the process may not, and the
/// channel by which exec failures are reported has to stay open until exec.
#[expect(
    unsafe_code,
    reason = "neither call has a safe form for descriptors of unknown owners"
)]
fn close_inherited_on_exec() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: plain numbers; with CLOSE_RANGE_CLOEXEC nothing is closed before exec.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                FIRST_EXTRA,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        if answer == 0 {
            return Ok(());
        }
    }
    // Kernels before 5.11, and other systems: one by one, up to the limit of open files.
    const MOST: libc::rlim_t = 65_536;
    let (soft, _) = nix::sys::resource::getrlimit(Resource::RLIMIT_NOFILE)?;
    let end = libc::c_int::try_from(soft.min(MOST)).unwrap_or(libc::c_int::MAX);
    for descriptor in FIRST_EXTRA as libc::c_int..end {
        // SAFETY: plain numbers; a descriptor that is not open is answered by EBADF, which is the wanted state.
        unsafe {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}
