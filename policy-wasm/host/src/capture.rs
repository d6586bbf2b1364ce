//! Captures: for a time, the full facts of every decision with what each policy said, for a replay.
//!
//! The decision log holds no facts on purpose; a capture does, and is therefore made only on an operator's word, for a
//! limited time, and readable only with a key that the gateway does not have. This module owns what is taken from the
//! judge, the rows of the file, and reading them again. Who may capture, how long, and where the file goes is not its.
//!
//! **Invariants.**
//! - A capture delays no decision and refuses none: what finds no room is dropped and counted.
//! - Typed text is in it only when a policy of the set was granted it.

mod replay;
mod rows;
mod seal;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::bindings::exports::maka::policy::hooks as wit;
use crate::combiner::{Opinion, ReviewOpinion};
use crate::convert;
use crate::facts::{Dispatch, Head, Subject};
use crate::id::NoEntropy;
use crate::judge::Judge;
use crate::log::now_unix_ms;
use crate::manifest::KNOWN_FACTS;
use crate::module::{Mode, Said};
use crate::set::PolicySet;
use crate::trial::Verdict;

use rows::{DecisionRow, FactsRow, ModuleRow, Row, SetRow};
use seal::Sealer;

pub use replay::{Capture, Recorded, RecordedModule, RecordedSet, Replayed, replay};
pub use rows::{Ended, Line, Together};
pub use seal::{CaptureKey, CaptureKeyError, CaptureSecret};

/// Decisions that wait to be written. Each holds at most the largest facts.
const QUEUE: usize = 128;

/// The largest file: a capture that has come to it ends.
pub const MAX_BYTES: u64 = 256 << 20;

/// Why a file cannot be read as a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// It is something else.
    #[error("the file is no capture")]
    NotCapture,
    /// The key is not the one it is encrypted to.
    #[error("the capture is not encrypted to this key, or its beginning was changed")]
    WrongKey,
    /// It has no end.
    #[error("the capture is cut off: it has no last row, so what is missing cannot be told")]
    Cut,
    /// Something in it is not what was written.
    #[error("the capture was changed after it was written")]
    Changed,
    /// It holds rows that this version does not know.
    #[error("the capture holds rows that this version does not understand")]
    Row,
}

/// What one module said, kept for a capture.
pub(crate) struct Kept {
    verdict: Verdict,
    rules: Vec<u16>,
    fuel: u64,
}

impl Kept {
    pub(crate) fn admit(said: &Said<Opinion>) -> Self {
        Self {
            verdict: Verdict::Admit(said.opinion.clone()),
            rules: said.rules.clone(),
            fuel: said.fuel,
        }
    }

    pub(crate) fn review(said: &Said<ReviewOpinion>) -> Self {
        Self {
            verdict: Verdict::Review(said.opinion.clone()),
            rules: said.rules.clone(),
            fuel: said.fuel,
        }
    }
}

/// What was judged.
pub(crate) enum Asked {
    Dispatch {
        facts: Box<Dispatch>,
        is_repeated: bool,
    },
    Review {
        head: Box<Head>,
        admitted_rules: Vec<Vec<u16>>,
        subject: Box<Subject>,
    },
}

/// One decision on its way into a capture.
pub struct Taken {
    pub(crate) id: String,
    pub(crate) generation: u64,
    pub(crate) set: Arc<PolicySet>,
    pub(crate) asked: Asked,
    /// By module of the set; empty when none was asked.
    pub(crate) said: Vec<Kept>,
    pub(crate) effective: &'static str,
}

impl fmt::Debug for Taken {
    // The facts are what must not be in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The judge's end of a running capture.
#[derive(Debug)]
pub(crate) struct Tap {
    queue: Sender<Taken>,
    dropped: Arc<AtomicU64>,
    until: Option<Instant>,
}

impl Tap {
    /// Its time is up, whether or not its reader has noticed.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    pub(crate) fn offer(&self, taken: Taken) {
        if self.queue.try_send(taken).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A capture is running already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a capture is running already")]
pub struct CaptureRunning;

/// A running capture: decisions come out of it in order. It ends when it is dropped.
#[derive(Debug)]
pub struct Capturing {
    judge: Arc<Judge>,
    queue: Receiver<Taken>,
    dropped: Arc<AtomicU64>,
}

impl Capturing {
    /// Begins to take decisions of this judge, and takes none after `until`, however slowly they are asked for.
    ///
    /// # Errors
    ///
    /// When another capture is running.
    pub fn begin(judge: Arc<Judge>, until: Option<Instant>) -> Result<Self, CaptureRunning> {
        let (sender, queue) = mpsc::channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        judge.tap(Tap {
            queue: sender,
            dropped: Arc::clone(&dropped),
            until,
        })?;
        Ok(Self {
            judge,
            queue,
            dropped,
        })
    }

    /// The next decision. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Option<Taken> {
        self.queue.recv().await
    }

    /// What waits already, without waiting for more.
    pub fn waiting(&mut self) -> Option<Taken> {
        self.queue.try_recv().ok()
    }

    /// Takes no further decision; what waits can still be had.
    pub fn stop(&self) {
        self.judge.untap();
    }

    /// Counts a decision that was taken and has no room in the file.
    pub fn lose(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Decisions that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        self.judge.tap_free();
    }
}

/// Makes the bytes of a file, piece by piece.
pub struct Writer {
    sealer: Sealer,
    known: Vec<(u64, String)>,
    bytes: u64,
    decisions: u64,
    unwritten: u64,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("bytes", &self.bytes)
            .field("decisions", &self.decisions)
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// The beginning of a file that is encrypted to this key.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn begin(key: &CaptureKey) -> Result<(Self, Vec<u8>), NoEntropy> {
        let (sealer, mut piece) = Sealer::new(key)?;
        let mut writer = Self {
            sealer,
            known: Vec::new(),
            bytes: 0,
            decisions: 0,
            unwritten: 0,
        };
        let row = Row::Begin {
            unix_ms: now_unix_ms(),
        };
        piece.extend(writer.row(&row, false).ok_or(NoEntropy)?);
        writer.bytes = piece.len() as u64;
        Ok((writer, piece))
    }

    /// A decision as bytes; with its set before it, where that is new.
    pub fn decision(&mut self, taken: &Taken) -> Vec<u8> {
        let mut piece = Vec::new();
        let place = (taken.generation, taken.set.name().to_owned());
        if !self.known.contains(&place) {
            match self.row(&Row::Set(set_row(taken)), false) {
                Some(frame) => piece.extend(frame),
                None => {
                    self.unwritten += 1;
                    return piece;
                }
            }
            self.known.push(place);
        }
        match self.row(&Row::Decision(Box::new(decision_row(taken))), false) {
            Some(frame) => {
                self.decisions += 1;
                piece.extend(frame);
            }
            None => self.unwritten += 1,
        }
        self.bytes += piece.len() as u64;
        piece
    }

    /// Whether the file is as large as it may be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// Decisions in the file.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// The end of the file. Without it nobody takes the file for whole.
    #[must_use]
    pub fn end(mut self, reason: Ended, dropped: u64) -> Vec<u8> {
        let row = Row::End {
            reason,
            decisions: self.decisions,
            dropped: dropped + self.unwritten,
        };
        self.row(&row, true).unwrap_or_default()
    }

    fn row(&mut self, row: &Row, is_last: bool) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(row).ok()?;
        self.sealer.seal(&text, is_last)
    }
}

fn set_row(taken: &Taken) -> SetRow {
    SetRow {
        generation: taken.generation,
        name: taken.set.name().to_owned(),
        digest: taken.set.digest().to_string(),
        modules: taken
            .set
            .modules()
            .iter()
            .map(|module| ModuleRow {
                name: module.name().to_owned(),
                version: module.manifest().version.clone(),
                digest: module.digest().to_string(),
                monitor: module.mode() == Mode::Monitor,
                settings: module.settings().to_owned(),
            })
            .collect(),
    }
}

fn decision_row(taken: &Taken) -> DecisionRow {
    let (facts, is_repeated) = match &taken.asked {
        Asked::Dispatch { facts, is_repeated } => {
            let mut facts = convert::dispatch(facts);
            if !sees_text(&taken.set) {
                strip(&mut facts.action);
            }
            (FactsRow::Dispatch(facts), *is_repeated)
        }
        Asked::Review {
            head,
            admitted_rules,
            subject,
        } => {
            let facts = FactsRow::Review {
                head: convert::head(head),
                admitted_rules: admitted_rules.clone(),
                subject: convert::subject(subject),
            };
            (facts, false)
        }
    };
    let said = taken.set.modules().iter().zip(&taken.said);
    let said: Vec<_> = said
        .filter(|(module, _)| module.mode() == Mode::Enforce)
        .collect();
    let lines = said
        .iter()
        .map(|(module, kept)| {
            Line::of(
                module,
                kept.verdict.clone(),
                kept.rules.clone(),
                kept.fuel,
                is_repeated,
            )
        })
        .collect();
    let verdicts = said.iter().map(|(_, kept)| kept.verdict.clone()).collect();
    DecisionRow {
        id: taken.id.clone(),
        generation: taken.generation,
        set: taken.set.name().to_owned(),
        facts,
        is_repeated,
        together: (!said.is_empty()).then(|| Together::of(&taken.set, verdicts, is_repeated)),
        said: lines,
        effective: taken.effective.to_owned(),
    }
}

/// Whether a policy of the set was granted typed text.
fn sees_text(set: &PolicySet) -> bool {
    let asks = |facts: &[String]| {
        KNOWN_FACTS
            .iter()
            .any(|fact| facts.iter().any(|it| it == fact))
    };
    set.modules()
        .iter()
        .any(|module| asks(&module.manifest().facts))
}

/// The row of a decision before it is encrypted.
#[cfg(test)]
pub(crate) fn plain_row(taken: &Taken) -> String {
    serde_json::to_string(&decision_row(taken)).expect("rows have a text form")
}

fn strip(action: &mut wit::Action) {
    match action {
        wit::Action::Element(args) => {
            if let Some(text) = &mut args.text {
                text.plain = None;
            }
        }
        wit::Action::Text(text) => text.plain = None,
        wit::Action::Point(_)
        | wit::Action::Key(_)
        | wit::Action::Launch(_)
        | wit::Action::Observe(_)
        | wit::Action::Other(_) => {}
    }
}
