//! The three pipes of one child, each with a task of its own.
//!
//! - stdin: one line at a time, so that the supervisor knows which request is being written and can put a cancel before the rest.
//!   The supervisor writes what the pipe takes at once; only a full pipe needs the task.
//! - stdout: split into bounded lines and parsed here, off the supervisor. The channel to it is bounded; when it is full the reader
//!   waits, the pipe fills, and a flooding child blocks itself.
//! - stderr: always drained, only a tail is kept (field report H9).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use maka_cu_protocol::codec::{LINE_LIMIT_BEFORE_HANDSHAKE, LineCodec};
use maka_cu_protocol::rpc::{HostIncoming, ResponseBody};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::stderr_tail::StderrTail;

/// Messages from the child that may wait for the supervisor; when full, the reader waits.
const INBOUND: usize = 32;
const READ_CHUNK: usize = 64 * 1024;

/// What the tasks report.
#[derive(Debug)]
pub(crate) enum FromChild {
    /// An answer.
    Response { id: u64, body: ResponseBody },
    /// A line that is no message.
    BadLine,
    /// A line over the limit. Nothing more is read.
    Overflow,
    /// Standard output is at its end. Nothing more is read.
    OutputClosed,
    /// The line handed over last is written; the next may come.
    Written,
    /// Standard input does not take any more.
    InputClosed,
}

/// The supervisor's end of the pipes. Dropping it ends the tasks and closes the pipes.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) inbound: mpsc::Receiver<FromChild>,
    pub(crate) stderr: StderrTail,
    lines: mpsc::Sender<Vec<u8>>,
    outlet: Arc<Outlet>,
    line_limit: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Streams {
    /// Starts the tasks. Must be called inside a runtime.
    pub(crate) fn start(stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        let outlet = Arc::new(Outlet {
            pipe: pipe::Sender::from_owned_fd(stdin)?,
            written: Mutex::new(0),
        });
        let stdout = pipe::Receiver::from_owned_fd(stdout)?;
        let stderr_pipe = pipe::Receiver::from_owned_fd(stderr)?;
        let line_limit = Arc::new(AtomicUsize::new(LINE_LIMIT_BEFORE_HANDSHAKE));
        let stderr = StderrTail::default();
        let (reports, inbound) = mpsc::channel(INBOUND);
        // One line at a time: the supervisor hands the next one over only after `Written`.
        let (lines, queue) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(read_lines(stdout, line_limit.clone(), reports.clone()));
        tasks.spawn(write_lines(outlet.clone(), queue, reports));
        tasks.spawn(drain(stderr_pipe, stderr.clone()));
        Ok(Self {
            inbound,
            stderr,
            lines,
            outlet,
            line_limit,
            _tasks: tasks,
        })
    }

    /// Writes a line, as far as the pipe takes it at once, and leaves the rest to the writer, which must be idle. Says whether
    /// nothing is left; otherwise `Written` follows.
    pub(crate) fn hand_over(&self, mut line: Vec<u8>) -> bool {
        // Most lines fit: one system call here saves two task switches on the way of every request.
        let mut start = 0;
        while start < line.len() {
            match self.outlet.try_write(&line[start..]) {
                Ok(count) => start += count,
                // Full, or closed: the writer waits for the one and reports the other.
                Err(_) => break,
            }
        }
        if start == line.len() {
            return true;
        }
        line.drain(..start);
        // The writer ends only after it reported `InputClosed`; what is handed over afterwards is never written, and the end of the
        // generation that follows settles the request.
        drop(self.lines.try_send(line));
        false
    }

    /// Waits until the pipe is known to take something, so that what is handed over then is written at once.
    #[cfg(test)]
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.outlet.pipe.writable().await
    }

    /// Bound for the lines read from now on.
    pub(crate) fn set_line_limit(&self, limit: usize) {
        self.line_limit.store(limit, Ordering::Relaxed);
    }

    /// How many bytes the child took out of its stdin. Meaningful once the child is dead; where the system cannot tell, everything
    /// counts as taken.
    pub(crate) fn consumed(&self) -> u64 {
        self.outlet.consumed()
    }
}

/// The writing end of the child's stdin, and how much went in.
#[derive(Debug)]
struct Outlet {
    pipe: pipe::Sender,
    written: Mutex<u64>,
}

impl Outlet {
    async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.pipe.writable().await?;
            match self.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writing and counting are one step, so that nobody sees bytes in the pipe that are not counted.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.pipe.try_write(bytes)?;
        *written += count as u64;
        Ok(count)
    }

    fn consumed(&self) -> u64 {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        match unread(&self.pipe) {
            Some(unread) => written.saturating_sub(unread),
            None => u64::MAX,
        }
    }
}

/// Bytes still inside the pipe. Linux answers this on the writing end too, and keeps the bytes after the last reader is gone.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "FIONREAD has no safe wrapper")]
fn unread(pipe: &pipe::Sender) -> Option<u64> {
    use std::os::fd::AsRawFd;

    let mut count: nix::libc::c_int = 0;
    // SAFETY: the descriptor is open for as long as `pipe` is borrowed, and FIONREAD writes one int.
    let answer = unsafe { nix::libc::ioctl(pipe.as_raw_fd(), nix::libc::FIONREAD, &raw mut count) };
    if answer == 0 {
        u64::try_from(count).ok()
    } else {
        None
    }
}

#[cfg(not(target_os = "linux"))]
fn unread(_pipe: &pipe::Sender) -> Option<u64> {
    None
}

async fn write_lines(
    outlet: Arc<Outlet>,
    mut queue: mpsc::Receiver<Vec<u8>>,
    reports: mpsc::Sender<FromChild>,
) {
    while let Some(line) = queue.recv().await {
        let report = match outlet.write(&line).await {
            Ok(()) => FromChild::Written,
            Err(_) => FromChild::InputClosed,
        };
        let closed = matches!(report, FromChild::InputClosed);
        if reports.send(report).await.is_err() || closed {
            return;
        }
    }
}

async fn read_lines(
    mut stdout: pipe::Receiver,
    line_limit: Arc<AtomicUsize>,
    reports: mpsc::Sender<FromChild>,
) {
    let mut codec = LineCodec::new(LINE_LIMIT_BEFORE_HANDSHAKE);
    let mut chunk = vec![0; READ_CHUNK];
    loop {
        let count = match stdout.read(&mut chunk).await {
            Ok(0) | Err(_) => {
                // Nobody listens only when the generation is being dropped.
                drop(reports.send(FromChild::OutputClosed).await);
                return;
            }
            Ok(count) => count,
        };
        codec.set_limit(line_limit.load(Ordering::Relaxed));
        codec.push(&chunk[..count]);
        loop {
            let report = match codec.next_line() {
                Ok(None) => break,
                Ok(Some(line)) => match HostIncoming::parse(&line) {
                    HostIncoming::Response { id, body } => FromChild::Response { id, body },
                    HostIncoming::Bad(_) => FromChild::BadLine,
                    HostIncoming::Ignored => continue,
                },
                Err(_) => FromChild::Overflow,
            };
            let over = matches!(report, FromChild::Overflow);
            if reports.send(report).await.is_err() || over {
                return;
            }
        }
    }
}

async fn drain(mut stderr: pipe::Receiver, tail: StderrTail) {
    let mut chunk = vec![0; READ_CHUNK];
    // The end of stderr, by error or by choice, says nothing about the child.
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        tail.push(&chunk[..count]);
    }
}
