//! What happens in a child between fork and exec: the only unsafe code of this crate.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::unistd::{Pid, getppid};

/// Has the kernel ask the child to end when the thread that made it ends, even by SIGKILL.
///
/// SIGTERM and not SIGKILL: asked to end, the X server removes its lock, and the launcher of the accessibility bus ends
/// that bus, which is its own child and would otherwise be left behind.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = Pid::this();
    before_exec(command, move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
        // The parent may have died between fork and the line above, in which case no signal will come.
        if getppid() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    });
}

/// Gives the child an empty signal mask. The standard library lets it inherit the caller's, and a program whose
/// SIGTERM is blocked cannot be asked to end.
pub(crate) fn with_empty_signal_mask(command: &mut Command) {
    before_exec(command, || {
        Ok(pthread_sigmask(
            SigmaskHow::SIG_SETMASK,
            Some(&SigSet::empty()),
            None,
        )?)
    });
}

fn before_exec(command: &mut Command, act: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    #[expect(
        unsafe_code,
        reason = "the standard library offers no other hook between fork and exec"
    )]
    // SAFETY: the two closures above run in the forked child. They make system calls that are async-signal-safe
    // (prctl, getppid, sigprocmask), and they neither allocate nor take a lock.
    unsafe {
        command.pre_exec(act);
    }
}
