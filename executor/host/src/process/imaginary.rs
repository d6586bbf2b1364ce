//! Test: a child without a process, for orders of events that a real one would seldom produce.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;

use tokio::sync::oneshot;

use super::group::{Group, Leash};
use super::{Child, ExitCause};

/// The child's side of its pipes, and its end.
#[derive(Debug)]
pub(crate) struct FarEnd {
    pub(crate) stdin: PipeReader,
    _stdout: PipeWriter,
    _stderr: PipeWriter,
    _exit: oneshot::Sender<ExitCause>,
}

/// A child that nobody can signal, and what it would hold.
pub(crate) fn child() -> io::Result<(Child, FarEnd)> {
    let (stdin, to_child) = io::pipe()?;
    let (from_child, stdout) = io::pipe()?;
    let (complaints, stderr) = io::pipe()?;
    let (ended, exit) = oneshot::channel();
    let child = Child {
        pid: 0,
        leash: Leash(Group::reaped()),
        stdin: OwnedFd::from(to_child),
        stdout: OwnedFd::from(from_child),
        stderr: OwnedFd::from(complaints),
        exit,
    };
    let far_end = FarEnd {
        stdin,
        _stdout: stdout,
        _stderr: stderr,
        _exit: ended,
    };
    Ok((child, far_end))
}
