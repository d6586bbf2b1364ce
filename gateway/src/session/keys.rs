//! Idempotency: what became of each tool call id of a session.
//!
//! A key belongs to the first request that was sent under it. A request that was refused before anything was sent leaves
//! the key free, because repeating it can do no harm; one that was cancelled or ran out of time before that takes the key,
//! so that repeating the call to learn its outcome never starts it.
//!
//! INVARIANT: a key under which something may have been sent never sends again. Every key is remembered for the life of
//! the session, at most [`KEYS_MAX`] of them; then new keys are refused and the session has to be replaced. Only the
//! newest [`FRAMES_MAX`] outcomes keep their frames, which are large and soon dead, and the newest alone its picture.

mod settled;

use std::collections::{BTreeMap, VecDeque};

use maka_cu_protocol::ids::ToolCallId;
use maka_policy_host::digest::Digest;

use self::settled::Settled;
use super::answer::{DispatchOutcome, Frame, ImageAbsence, LaunchOutcome};
use super::remembered::Remembered;

/// Keys that one session remembers in its life. An entry takes about a quarter of a kilobyte.
pub(crate) const KEYS_MAX: usize = 32_768;

/// Outcomes that keep the frame they were answered with.
pub(crate) const FRAMES_MAX: usize = 4;

/// What a key stands for.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Dispatch(Box<DispatchOutcome>),
    Launch(Box<LaunchOutcome>),
}

/// What is known about a key.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing: the request may be sent under it.
    Free,
    /// Nothing, and there is no room to remember it.
    Full,
    /// It stands for another request.
    Taken,
    /// It stands for this request, which ended so.
    Ended(Stored),
}

#[derive(Debug)]
struct Entry {
    request: Digest,
    outcome: Kept,
}

#[derive(Debug)]
enum Kept {
    Dispatch(Box<Settled>),
    Launch(Box<LaunchOutcome>),
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// A tree, since a table of this size would double by steps of megabytes.
    entries: BTreeMap<Remembered, Entry>,
    /// Of the newest outcomes that came with one, the newest last.
    frames: VecDeque<(Remembered, Frame)>,
}

impl Keys {
    /// Looks a key up for this request.
    pub(crate) fn look(&self, key: &ToolCallId, request: Digest) -> Known {
        let remembered = Remembered::new(key.as_str());
        match self.entries.get(&remembered) {
            Some(entry) if entry.request == request => Known::Ended(match &entry.outcome {
                Kept::Dispatch(settled) => {
                    let mut frames = self.frames.iter();
                    let frame = frames.find(|(of, _)| *of == remembered);
                    let frame = frame.map(|(_, frame)| frame.clone());
                    Stored::Dispatch(Box::new(settled.outcome(key.clone(), frame)))
                }
                Kept::Launch(outcome) => Stored::Launch(outcome.clone()),
            }),
            Some(_) => Known::Taken,
            None if self.entries.len() >= KEYS_MAX => Known::Full,
            None => Known::Free,
        }
    }

    /// Remembers how the request under this key ended. The first outcome of a key stays.
    pub(crate) fn keep(&mut self, key: &ToolCallId, request: Digest, outcome: Stored) {
        let remembered = Remembered::new(key.as_str());
        if self.entries.contains_key(&remembered) {
            return;
        }
        let outcome = match outcome {
            Stored::Dispatch(outcome) => {
                let (settled, frame) = Settled::of(*outcome);
                if let Some(frame) = frame {
                    self.keep_frame(remembered, frame);
                }
                Kept::Dispatch(Box::new(settled))
            }
            Stored::Launch(outcome) => Kept::Launch(outcome),
        };
        self.entries.insert(remembered, Entry { request, outcome });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every frame goes: its session has ended, and with it everything that could be done with it.
    pub(crate) fn drop_frames(&mut self) {
        self.frames = VecDeque::new();
    }

    fn keep_frame(&mut self, of: Remembered, frame: Frame) {
        // The bytes of an older picture go; its file went with its frame, so they can not be fetched either.
        if let Some((_, older)) = self.frames.back_mut()
            && older.picture.data.take().is_some()
        {
            older.picture.absence = Some(ImageAbsence::Unreadable);
        }
        if self.frames.len() >= FRAMES_MAX {
            self.frames.pop_front();
        }
        self.frames.push_back((of, frame));
    }
}

#[cfg(test)]
mod tests;
