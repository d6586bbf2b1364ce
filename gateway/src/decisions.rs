//! The decision log as a stream for operators: a reader of the files, at its own pace.
//!
//! Writing the log belongs to `maka-policy-host`. A stream holds no record that its reader has not asked for, beyond one piece,
//! and no lock, so that a slow one costs nobody anything.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::try_unfold;
use maka_policy_host::judge::Judge;
use maka_policy_host::log::{Follower, LogPosition, Logged};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::{CallError, Limit};

/// Streams at a time.
const READERS_MAX: usize = 8;

/// About how much is read at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// One record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DecisionLogRecord {
    /// Its number.
    pub sequence: u64,
    /// Its line, without the line feed.
    pub line: String,
    /// Records just before it that are not kept any more.
    pub missing: u64,
}

/// The log and who reads it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Decisions {
    judge: Arc<Judge>,
    rooms: Arc<Semaphore>,
    over: CancellationToken,
}

impl Decisions {
    /// Nobody reads yet.
    #[must_use]
    pub fn new(judge: Arc<Judge>) -> Self {
        Self {
            judge,
            rooms: Arc::new(Semaphore::new(READERS_MAX)),
            over: CancellationToken::new(),
        }
    }

    /// Ends every stream once it has given out what is written by then.
    pub fn close(&self) {
        self.over.cancel();
    }

    /// The records from number `from` on, or from now on; with `until_now` no later ones. Nothing is read before the stream is
    /// polled. The stream ends with the gateway, and with [`CallError::Deadline`] at `deadline`.
    ///
    /// # Errors
    /// [`Limit::LogReaders`] when too many read.
    pub fn read(
        &self,
        from: Option<u64>,
        until_now: bool,
        deadline: Option<Instant>,
    ) -> Result<impl Stream<Item = Result<DecisionLogRecord, CallError>> + use<>, CallError> {
        let room = Arc::clone(&self.rooms).try_acquire_owned();
        let room = room.map_err(|_| CallError::Limit(Limit::LogReaders))?;
        let log = self.judge.log();
        let mut position = log.watch();
        let end = position.borrow_and_update().count;
        let next = from.unwrap_or(end + 1).max(1);
        let reader = Reader {
            follower: Some(log.follow(next)),
            expected: next,
            read: VecDeque::new(),
            position,
            end: until_now.then_some(end),
            over: self.over.clone(),
            deadline,
            _room: room,
        };
        Ok(try_unfold(reader, Reader::next))
    }
}

/// One stream.
#[derive(Debug)]
struct Reader {
    /// Not here while a thread reads with it.
    follower: Option<Follower>,
    /// Number of the record that should come next.
    expected: u64,
    read: VecDeque<Logged>,
    position: watch::Receiver<LogPosition>,
    /// The last record that is wanted.
    end: Option<u64>,
    over: CancellationToken,
    deadline: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

impl Reader {
    async fn next(mut self) -> Result<Option<(DecisionLogRecord, Self)>, CallError> {
        if let Some(record) = self.take() {
            return Ok(Some((record, self)));
        }
        let deadline = self.deadline;
        let late = async {
            match deadline {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // What is cut short by the deadline is the end of the stream, so nothing has to survive it.
        tokio::select! {
            filled = self.fill() => filled?,
            () = late => return Err(CallError::Deadline { stage: None }),
        }
        Ok(self.take().map(|record| (record, self)))
    }

    fn take(&mut self) -> Option<DecisionLogRecord> {
        let Logged { seq, line } = self.read.pop_front()?;
        let missing = seq.saturating_sub(self.expected);
        self.expected = seq + 1;
        Some(DecisionLogRecord {
            sequence: seq,
            line,
            missing,
        })
    }

    /// Reads a piece, waiting until there is one. Reads nothing at the end.
    async fn fill(&mut self) -> Result<(), CallError> {
        loop {
            // Asked before the position, so that what was written before the end is still given out.
            let is_over = self.over.is_cancelled();
            let written = self.position.borrow_and_update().count;
            let until = self.end.map_or(written, |end| end.min(written));
            let Some(mut follower) = self.follower.take_if(|follower| follower.next() <= until)
            else {
                if is_over || self.end.is_some() {
                    return Ok(());
                }
                tokio::select! {
                    changed = self.position.changed() => match changed {
                        Ok(()) => {}
                        Err(_) => return Ok(()),
                    },
                    () = self.over.cancelled() => {}
                }
                continue;
            };
            let read = tokio::task::spawn_blocking(move || {
                let read = follower.read(until, PIECE_BYTES);
                (follower, read)
            })
            .await;
            // A reader that panicked has read nothing.
            let (follower, read) = read.map_err(|_| CallError::LogUnreadable)?;
            self.follower = Some(follower);
            match read {
                // All that was asked for may be gone.
                Ok(records) if records.is_empty() => {}
                Ok(records) => {
                    self.read.extend(records);
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(error = %crate::telemetry::Chain(&error), "the decision log cannot be read");
                    return Err(CallError::LogUnreadable);
                }
            }
        }
    }
}
