//! How often an executor may be started before somebody has to look.
//!
//! An attempt is used by every start and given back only by a *stable* life. A handshake alone gives nothing back: an executor that
//! dies right after it would otherwise be started for ever (field reports H1, H2).

use std::time::Duration;

/// Attempts used since the last stable life.
#[derive(Debug)]
pub(crate) struct Budget {
    used: u32,
    max: u32,
    base: Duration,
}

impl Budget {
    pub(crate) fn new(max: u32, base: Duration) -> Self {
        Self {
            used: 0,
            max: max.max(1),
            base,
        }
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.used >= self.max
    }

    /// Uses one attempt, which must be left.
    pub(crate) fn take(&mut self) {
        self.used = self.used.saturating_add(1);
    }

    pub(crate) fn refill(&mut self) {
        self.used = 0;
    }

    /// Pause before the next start: the base, doubled for each attempt after the first.
    pub(crate) fn pause(&self) -> Duration {
        let doublings = self.used.saturating_sub(1).min(16);
        self.base.saturating_mul(1 << doublings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec 12.1 row 16: the pause doubles, and a stable life starts it anew.
    #[test]
    fn pauses_double_until_refilled() {
        let mut budget = Budget::new(3, Duration::from_millis(50));
        let mut seen = Vec::new();
        while !budget.is_spent() {
            budget.take();
            seen.push(budget.pause().as_millis());
        }
        assert_eq!(seen, [50, 100, 200]);
        budget.refill();
        assert!(!budget.is_spent());
        budget.take();
        assert_eq!(budget.pause().as_millis(), 50);
    }

    #[test]
    fn pauses_neither_overflow_nor_vanish() {
        let mut budget = Budget::new(u32::MAX, Duration::MAX);
        budget.used = u32::MAX;
        budget.take();
        assert_eq!((budget.used(), budget.pause()), (u32::MAX, Duration::MAX));
        assert!(!Budget::new(0, Duration::ZERO).is_spent());
    }
}
