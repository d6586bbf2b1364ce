//! What every caller asked and was told, for the laws to compare; and the last calls, for whoever has to find out why.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines of the tail.
const TAIL: usize = 60;

/// An action by its session and key.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct ActionKey {
    pub(super) session: String,
    pub(super) key: String,
    /// A launch has no key on the wire; it waits for a number of milliseconds of its own.
    pub(super) wait_for_window_ms: Option<u32>,
}

/// How one call ended for its caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Ended {
    /// A result; the line holds everything that may not differ between two results of one key.
    Result {
        is_ok: bool,
        is_replayed: bool,
        line: String,
    },
    /// A status that the gateway wrote.
    Status { reason: String },
    /// The caller stopped waiting: by a drop, or by the timer in the client library.
    GaveUp,
}

/// The notes of one storm.
#[derive(Debug)]
pub(super) struct Book {
    seed: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    calls: u64,
    actions: BTreeMap<ActionKey, Vec<Ended>>,
    at_once: BTreeSet<ActionKey>,
    tail: VecDeque<String>,
}

impl Book {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            inner: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins or something else happens.
    pub(super) fn note(&self, line: String) {
        let mut inner = self.inner();
        if inner.tail.len() == TAIL {
            inner.tail.pop_front();
        }
        inner.tail.push_back(line);
    }

    /// A call ended.
    pub(super) fn ended(&self) {
        self.inner().calls += 1;
    }

    /// A call of an action ended so.
    pub(super) fn action(&self, action: ActionKey, ended: Ended) {
        self.inner().actions.entry(action).or_default().push(ended);
    }

    /// Two calls of one action run at once.
    pub(super) fn at_once(&self, action: ActionKey) {
        self.inner().at_once.insert(action);
    }

    /// Whether two calls of an action ran at once.
    pub(super) fn was_asked_at_once(&self, action: &ActionKey) -> bool {
        self.inner().at_once.contains(action)
    }

    /// How many calls ended.
    pub(super) fn calls(&self) -> u64 {
        self.inner().calls
    }

    /// Every action and how each of its calls ended.
    pub(super) fn actions(&self) -> BTreeMap<ActionKey, Vec<Ended>> {
        self.inner().actions.clone()
    }

    /// What leads back to a failure.
    pub(super) fn tail(&self) -> String {
        let inner = self.inner();
        let lines: Vec<&str> = inner.tail.iter().map(String::as_str).collect();
        format!(
            "seed {} (MAKA_SOAK_SEED={} repeats it); the last calls:\n{}",
            self.seed,
            self.seed,
            lines.join("\n")
        )
    }
}
