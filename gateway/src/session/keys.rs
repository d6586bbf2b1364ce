//! Idempotency: what became of each tool call id of a session.
//!
//! A key belongs to the first request that was sent under it. A request that was refused before anything was sent leaves
//! the key free, because repeating it can do no harm; one that was cancelled or ran out of time before that takes the key,
//! so that repeating the call to learn its outcome never starts it.
//!
//! INVARIANT: a key under which something may have been sent never sends again. Every key is remembered for the life of
//! the session, at most [`KEYS_MAX`] of them; then new keys are refused and the session has to be replaced. Only the
//! newest [`FRAMES_MAX`] outcomes keep their frames, which are large and soon dead, and the newest alone its picture.

use std::collections::{HashMap, VecDeque};

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::ToolCallId;
use maka_policy_host::digest::Digest;

use super::answer::{DispatchOutcome, DomainFault, ImageAbsence, LaunchOutcome};

/// Keys that one session remembers in its life. An entry takes about half a kilobyte.
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
pub(crate) enum Known<'a> {
    /// Nothing: the request may be sent under it.
    Free,
    /// Nothing, and there is no room to remember it.
    Full,
    /// It stands for another request.
    Taken,
    /// It stands for this request, which ended so.
    Ended(&'a Stored),
}

#[derive(Debug)]
struct Entry {
    request: Digest,
    outcome: Stored,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    entries: HashMap<ToolCallId, Entry>,
    with_frame: VecDeque<ToolCallId>,
}

impl Keys {
    /// Looks a key up for this request.
    pub(crate) fn look(&self, key: &ToolCallId, request: Digest) -> Known<'_> {
        match self.entries.get(key) {
            Some(entry) if entry.request == request => Known::Ended(&entry.outcome),
            Some(_) => Known::Taken,
            None if self.entries.len() >= KEYS_MAX => Known::Full,
            None => Known::Free,
        }
    }

    /// Remembers how the request under this key ended. The first outcome of a key stays.
    pub(crate) fn keep(&mut self, key: &ToolCallId, request: Digest, outcome: Stored) {
        if self.entries.contains_key(key) {
            return;
        }
        if matches!(&outcome, Stored::Dispatch(outcome) if outcome.frame.is_some()) {
            if let Some(newest) = self.with_frame.back().cloned() {
                self.drop_bytes(&newest);
            }
            if self.with_frame.len() >= FRAMES_MAX
                && let Some(oldest) = self.with_frame.pop_front()
            {
                self.drop_frame(&oldest);
            }
            self.with_frame.push_back(key.clone());
        }
        self.entries.insert(key.clone(), Entry { request, outcome });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every frame goes: its session has ended, and with it everything that could be done with it.
    pub(crate) fn drop_frames(&mut self) {
        while let Some(key) = self.with_frame.pop_front() {
            self.drop_frame(&key);
        }
    }

    /// The bytes of an older picture go; its file went with its frame, so they can not be fetched either.
    fn drop_bytes(&mut self, key: &ToolCallId) {
        if let Some(Entry {
            outcome: Stored::Dispatch(outcome),
            ..
        }) = self.entries.get_mut(key)
            && let Some(frame) = &mut outcome.frame
            && frame.picture.data.take().is_some()
        {
            frame.picture.absence = Some(ImageAbsence::Unreadable);
        }
    }

    /// The frame of an older outcome goes; the outcome says so instead.
    fn drop_frame(&mut self, key: &ToolCallId) {
        if let Some(Entry {
            outcome: Stored::Dispatch(outcome),
            ..
        }) = self.entries.get_mut(key)
        {
            outcome.frame = None;
            outcome.observation_error = Some(DomainFault::of(DomainCode::SnapshotEvicted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::outcome;

    fn key(number: usize) -> ToolCallId {
        ToolCallId::try_new(format!("call_{number}")).unwrap()
    }

    fn stored(number: usize) -> Stored {
        Stored::Launch(Box::new(outcome::launch_lost(
            format!("decision_{number}"),
            None,
        )))
    }

    #[test]
    fn a_key_belongs_to_its_first_request() {
        let mut keys = Keys::default();
        let (first, second) = (Digest::of(b"1"), Digest::of(b"2"));
        assert!(matches!(keys.look(&key(1), first), Known::Free));
        keys.keep(&key(1), first, stored(1));
        keys.keep(&key(1), second, stored(2));
        assert!(matches!(keys.look(&key(1), second), Known::Taken));
        let Known::Ended(Stored::Launch(outcome)) = keys.look(&key(1), first) else {
            panic!()
        };
        assert_eq!(outcome.decision_id, "decision_1");
    }

    /// A session whose keys are used up refuses new ones and still knows the old ones.
    #[test]
    fn no_key_is_ever_forgotten() {
        let mut keys = Keys::default();
        let request = Digest::of(b"request");
        for number in 0..KEYS_MAX {
            keys.keep(&key(number), request, stored(number));
        }
        assert!(matches!(keys.look(&key(KEYS_MAX), request), Known::Full));
        for number in [0, 1, KEYS_MAX - 1] {
            assert!(matches!(keys.look(&key(number), request), Known::Ended(_)));
        }
    }
}
