//! One child process: made on the right thread, held by its group, reaped by someone who never lets go too early.
//!
//! Knows pipes, signals and exit statuses, and nothing of the protocol.
//!
//! INVARIANT: no signal is sent to a process id that the kernel may already have given to somebody else. [`Group`] holds the id
//! only while the child is unreaped, and signalling and reaping take the same lock.

mod forker;
mod group;
#[cfg(test)]
pub(crate) mod imaginary;
mod setup;
mod warden;

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tokio::sync::oneshot;

pub(crate) use forker::{Forker, SpawnOrder};
pub(crate) use group::Leash;

/// A child that is running, or at least was when it was made. Dropping the leash kills its group.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: u32,
    pub(crate) leash: Leash,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// Resolves once the child is reaped and what was left of its group is killed.
    pub(crate) exit: oneshot::Receiver<ExitCause>,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// It returned this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
    /// The operating system did not say.
    Unknown,
}

impl From<ExitStatus> for ExitCause {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an unknown cause"),
        }
    }
}
