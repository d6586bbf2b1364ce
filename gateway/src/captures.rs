//! Captures of facts for a replay, on an operator's word: one at a time, for a limited time, as a stream of encrypted pieces.
//!
//! What a capture holds and how it is encrypted is `maka-policy-host`'s. The gateway writes no file: whoever asks gets the
//! pieces and keeps them, so that no path travels and no full disk of a capture is the gateway's. A stream that is not read
//! fills the bounded queue before it, and what finds no room is counted.

pub mod command;

use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::try_unfold;
use maka_policy_host::capture::{CaptureKey, Capturing, Ended, Writer};
use maka_policy_host::judge::Judge;
use maka_policy_host::log::ControlKind;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::{CallError, CaptureRefusal};

/// The longest capture.
pub const MAX_DURATION: Duration = Duration::from_secs(60 * 60);

/// What a capture came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Summary {
    /// Why it ended.
    pub ended: Ended,
    /// Decisions in it.
    pub decisions: u64,
    /// Decisions that found no room.
    pub dropped: u64,
}

/// A part of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// What follows the pieces before it.
    pub bytes: Vec<u8>,
    /// With the last piece.
    pub summary: Option<Summary>,
}

/// Begins captures. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Captures {
    judge: Arc<Judge>,
    key: Option<CaptureKey>,
    over: CancellationToken,
}

impl Captures {
    /// Without a key there are none.
    #[must_use]
    pub fn new(judge: Arc<Judge>, key: Option<CaptureKey>) -> Self {
        Self {
            judge,
            key,
            over: CancellationToken::new(),
        }
    }

    /// Ends a capture that runs.
    pub fn close(&self) {
        self.over.cancel();
    }

    /// Captures for `duration`. The first piece is there at once, and says that it began.
    ///
    /// # Errors
    /// [`CaptureRefusal`]: there is no key, another one runs, or its beginning cannot be recorded.
    pub fn begin(
        &self,
        principal: &str,
        duration: Duration,
    ) -> Result<impl Stream<Item = Result<Piece, CallError>> + use<>, CallError> {
        let key = self.key.as_ref().ok_or(CaptureRefusal::NoKey)?;
        let (writer, head) = Writer::begin(key).map_err(|_| CaptureRefusal::NoEntropy)?;
        let capturing = Capturing::begin(
            Arc::clone(&self.judge),
            Some((Instant::now() + duration).into_std()),
        )
        .map_err(|_| CaptureRefusal::Running)?;
        let log = self.judge.log();
        log.capture(ControlKind::CaptureBegan, principal, None)
            .map_err(|_| CaptureRefusal::Unrecorded)?;
        tracing::warn!(
            principal,
            seconds = duration.as_secs(),
            "facts of decisions are captured"
        );
        let running = Running {
            writer: Some(writer),
            head: Some(head),
            capturing,
            until: Instant::now() + duration,
            over: self.over.clone(),
            ending: None,
            farewell: Farewell {
                judge: Arc::clone(&self.judge),
                principal: principal.to_owned(),
                ended: Ended::Abandoned,
            },
        };
        Ok(try_unfold(running, |running| async {
            Ok(running.next().await)
        }))
    }
}

/// Records the end, however it comes.
struct Farewell {
    judge: Arc<Judge>,
    principal: String,
    ended: Ended,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let why = self.ended.as_str();
        let log = self.judge.log();
        if log
            .capture(ControlKind::CaptureEnded, &self.principal, Some(why))
            .is_err()
        {
            tracing::error!(why, "the end of a capture could not be recorded");
        }
        tracing::warn!(principal = self.principal, why, "a capture ended");
    }
}

struct Running {
    /// Gone when the last piece is out.
    writer: Option<Writer>,
    /// The first piece, until it is out.
    head: Option<Vec<u8>>,
    capturing: Capturing,
    until: Instant,
    over: CancellationToken,
    /// Nothing more is taken; what waits still is.
    ending: Option<Ended>,
    farewell: Farewell,
}

impl Running {
    async fn next(mut self) -> Option<(Piece, Self)> {
        let mut writer = self.writer.take()?;
        if let Some(bytes) = self.head.take() {
            self.writer = Some(writer);
            let piece = Piece {
                bytes,
                summary: None,
            };
            return Some((piece, self));
        }
        let taken = match self.ending {
            Some(_) => self.capturing.waiting(),
            // In this order, so that a busy gateway does not outlast its capture. All are cancel-safe.
            None => tokio::select! {
                biased;
                () = self.over.cancelled() => self.end(Ended::Shutdown),
                () = sleep_until(self.until) => self.end(Ended::Time),
                taken = self.capturing.next() => taken,
            },
        };
        let Some(taken) = taken else {
            // The judge ends a capture at its time, too, and may be the first to notice.
            let ended = match self.ending {
                Some(ended) => ended,
                None if Instant::now() >= self.until => Ended::Time,
                None => Ended::Shutdown,
            };
            let (decisions, dropped) = (writer.decisions(), self.capturing.dropped());
            self.farewell.ended = ended;
            let piece = Piece {
                bytes: writer.end(ended, dropped),
                summary: Some(Summary {
                    ended,
                    decisions,
                    dropped,
                }),
            };
            return Some((piece, self));
        };
        let bytes = writer.decision(&taken);
        if writer.is_full() {
            // What still waits has no room in the file either.
            drop(self.end(Ended::Full));
            while self.capturing.waiting().is_some() {
                self.capturing.lose();
            }
        }
        self.writer = Some(writer);
        let piece = Piece {
            bytes,
            summary: None,
        };
        Some((piece, self))
    }

    /// Takes no more, and gives the first of what waits.
    fn end(&mut self, ended: Ended) -> Option<maka_policy_host::capture::Taken> {
        self.capturing.stop();
        self.ending = Some(ended);
        if ended == Ended::Full {
            return None;
        }
        self.capturing.waiting()
    }
}
