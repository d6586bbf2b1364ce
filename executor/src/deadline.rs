//! How long a call into the back end may take.
//!
//! A [`Deadline`] is an instant together with the request's cancellation token, so that one question,
//! [`Deadline::is_over`], covers both "the time is up" and "nobody wants the answer any more". It never aborts
//! anything by itself: the callee asks between two steps and stops with what it has.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// An instant after which (or a cancellation after which) a call should stop.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    cancel: CancellationToken,
}

impl Deadline {
    /// A deadline `budget` from now that nobody cancels.
    #[must_use]
    pub fn within(budget: Duration) -> Self {
        Self::cancellable(budget, CancellationToken::new())
    }

    /// A deadline `budget` from now that is over at once when `cancel` fires.
    #[must_use]
    pub fn cancellable(budget: Duration, cancel: CancellationToken) -> Self {
        Self {
            at: Instant::now() + budget,
            cancel,
        }
    }

    /// The same cancellation with less time: `budget` from now, or this deadline when that is earlier.
    #[must_use]
    pub fn at_most(&self, budget: Duration) -> Self {
        Self {
            at: self.at.min(Instant::now() + budget),
            cancel: self.cancel.clone(),
        }
    }

    /// The time left; zero once the deadline is over or the request was cancelled.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.cancel.is_cancelled() {
            return Duration::ZERO;
        }
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether the callee should stop now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Whether the caller gave up, as opposed to the time being over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Ends when the caller gives up, which may be never. The time has no part in it.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Blocks for `pause`, less when the deadline comes first. Only for threads that may block.
    ///
    /// A cancellation is noticed within 10 ms.
    pub fn pause(&self, pause: Duration) {
        const SLICE: Duration = Duration::from_millis(10);
        let until = Instant::now() + pause.min(self.remaining());
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_deadline_is_over() {
        let cancel = CancellationToken::new();
        let deadline = Deadline::cancellable(Duration::from_secs(60), cancel.clone());
        assert!(!deadline.is_over());
        cancel.cancel();
        assert!(deadline.is_over() && deadline.is_cancelled());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[test]
    fn a_shorter_deadline_never_outlives_the_longer_one() {
        let deadline = Deadline::within(Duration::from_millis(1));
        assert!(deadline.at_most(Duration::from_secs(60)).remaining() <= Duration::from_millis(1));
    }
}
