//! What ends an executor's helpers when we are killed ourselves (field report H4).
//!
//! The kernel's parent-death signal reaches the executor alone; what it forked would live on. The warden is a shell in the
//! executor's process group that reads from a pipe which only we hold open. Our death, whatever the cause, ends the pipe, and the
//! shell then ends its whole group, itself included.
//!
//! Being a member of the group it can hit nobody else: a group's id is not given away while it has members. It ignores the signals
//! of an orderly end and is killed and reaped with the rest of the group.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::unistd::Pid;

/// POSIX has it.
const SHELL: &str = "/bin/sh";

/// `read` ends with a failure at the end of the pipe; nothing is ever written to it.
const SCRIPT: &str = "trap '' TERM INT HUP; read -r _; kill -KILL 0";

/// A running warden. It holds our end of the pipe.
#[derive(Debug)]
pub(super) struct Warden(Child);

impl Warden {
    /// Sets a warden over the group of `leader`.
    ///
    /// # Errors
    /// When the system gives no process, or the leader has ended and its group with it.
    pub(super) fn over(leader: Pid) -> io::Result<Self> {
        let mut command = Command::new(SHELL);
        command
            .args(["-c", SCRIPT])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(leader.as_raw());
        super::setup::in_warden(&mut command);
        command.spawn().map(Self)
    }

    /// Reaps it, after its group was killed. It is killed as well, should it have left the group's end out.
    pub(super) fn reap(mut self) {
        // Ended already is as good, and a warden that cannot be waited for is not ours to mend.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
