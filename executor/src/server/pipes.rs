//! The two named threads that own stdin and stdout.
//!
//! Both streams are blocking and may be pipes, files or a terminal, so neither is put into non-blocking mode (that would
//! change the descriptor for everyone who shares it). Each has one thread and one bounded channel:
//!
//! - stdin → server: when the channel is full the thread waits, and so in turn does the host;
//! - server → stdout: the server reads no further request while it could not store its answer, so this channel is never
//!   full when an answer is sent (see `server::Server`).
//!
//! The threads are not joined without a time limit: a host that neither reads nor closes its end must not keep the process
//! from exiting.

use std::io::{self, Read, Write};
use std::thread;

use tokio::sync::{mpsc, oneshot};

const CHUNK_BYTES: usize = 64 * 1024;
const CHUNKS_QUEUED: usize = 8;

/// Starts the thread `stdin`. The channel closes at end of file or on a read error.
///
/// # Errors
/// When the system cannot start a thread.
pub fn spawn_reader(mut input: impl Read + Send + 'static) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_QUEUED);
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                match input.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => {
                        if sender.blocking_send(buffer[..count].to_vec()).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        tracing::warn!(kind = ?error.kind(), "stdin cannot be read");
                        return;
                    }
                }
            }
        })?;
    Ok(receiver)
}

/// The server's end of stdout.
#[derive(Debug)]
pub struct Output {
    /// Takes whole lines, newline included.
    pub lines: mpsc::Sender<Vec<u8>>,
    /// Resolves when the thread has ended: everything was flushed, or nobody reads.
    pub done: oneshot::Receiver<()>,
}

/// Starts the thread `stdout`, which writes and flushes each line and ends when the sender is dropped or the host is gone.
///
/// # Errors
/// When the system cannot start a thread.
pub fn spawn_writer(
    mut output: impl Write + Send + 'static,
    lines_queued: usize,
) -> io::Result<Output> {
    let (lines, mut receiver) = mpsc::channel::<Vec<u8>>(lines_queued);
    let (finished, done) = oneshot::channel();
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            while let Some(line) = receiver.blocking_recv() {
                if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
                    tracing::warn!(kind = ?error.kind(), "stdout cannot be written");
                    break;
                }
            }
            if finished.send(()).is_err() {
                tracing::debug!("the server ended before its output did");
            }
        })?;
    Ok(Output { lines, done })
}
