//! Signals to a child's process group, without ever hitting a stranger.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::ExitCause;

/// The process group of one child; the child leads it, so the group's id is the child's.
#[derive(Debug)]
pub(super) struct Group {
    /// Present exactly while the child is unreaped.
    leader: Mutex<Option<Pid>>,
}

impl Group {
    pub(super) fn new(leader: Pid) -> Arc<Self> {
        Arc::new(Self {
            leader: Mutex::new(Some(leader)),
        })
    }

    /// The group of nobody: signals to it go nowhere.
    #[cfg(test)]
    pub(super) fn reaped() -> Arc<Self> {
        Arc::new(Self {
            leader: Mutex::new(None),
        })
    }

    /// Sends `signal` to every member, if the child is unreaped.
    fn signal(&self, signal: Signal) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leader) = *leader {
            deliver(leader, signal);
        }
    }

    /// Waits until the child has ended, kills what it leaves behind, and only then frees its id.
    pub(super) fn reap(&self, child: &mut process::Child, pid: Pid) -> ExitCause {
        wait_without_reaping(pid);
        let mut leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        // The dead leader still holds the id, so the group cannot be anyone else's.
        deliver(pid, Signal::SIGKILL);
        *leader = None;
        child.wait().map_or(ExitCause::Unknown, ExitCause::from)
    }
}

fn deliver(leader: Pid, signal: Signal) {
    match killpg(leader, signal) {
        // ESRCH: the group is gone already. EPERM (macOS): only zombies are left in it.
        Ok(()) | Err(Errno::ESRCH | Errno::EPERM) => {}
        Err(errno) => {
            tracing::warn!(%errno, %signal, "could not signal the executor's process group")
        }
    }
}

/// Blocks until `pid` is a zombie. A failure is harmless: the caller's `wait` then blocks instead.
#[expect(
    unsafe_code,
    reason = "waitid with WNOWAIT has no safe wrapper on every platform"
)]
fn wait_without_reaping(pid: Pid) {
    loop {
        // SAFETY: all-zero bytes are a valid siginfo_t, which is plain data.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is a live, exclusive siginfo_t for the length of the call; the other arguments are plain numbers.
        let answer = unsafe {
            libc::waitid(
                libc::P_PID,
                pid.as_raw().unsigned_abs(),
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        if answer == 0 || Errno::last() != Errno::EINTR {
            return;
        }
    }
}

/// The right to end a child. Dropping it kills the whole group at once.
#[derive(Debug)]
pub(crate) struct Leash(pub(super) Arc<Group>);

impl Leash {
    /// Asks the group to end (SIGTERM).
    pub(crate) fn terminate(&self) {
        self.0.signal(Signal::SIGTERM);
    }

    /// Ends the group (SIGKILL).
    pub(crate) fn kill(&self) {
        self.0.signal(Signal::SIGKILL);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}
