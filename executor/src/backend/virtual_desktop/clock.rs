//! What time it is on the desktop.
//!
//! On a wall clock delays pass while nobody looks, as on a real desktop. On a stepped one every question and every order moves
//! the time on by one step and nothing else does, so that the same calls in the same order always meet the same desktop,
//! however fast or slow the machine is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::scenario::TimeSpec;

/// The time of a desktop.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    time: TimeSpec,
    /// Steps since the start; stays 0 on a wall clock.
    steps: AtomicU64,
}

impl Clock {
    /// A clock that starts now.
    pub(super) fn start(time: TimeSpec) -> Self {
        Self {
            start: Instant::now(),
            time,
            steps: AtomicU64::new(0),
        }
    }

    /// The time at which the clock started.
    pub(super) const fn started(&self) -> Instant {
        self.start
    }

    /// The time now.
    pub(super) fn now(&self) -> Instant {
        match self.time {
            TimeSpec::Wall => Instant::now(),
            TimeSpec::Stepped(step) => {
                let steps = self.steps.load(Ordering::SeqCst);
                let elapsed = step.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
                // Beyond what the system can count a desktop has run for longer than anybody looks.
                self.start.checked_add(elapsed).unwrap_or(self.start)
            }
        }
    }

    /// Somebody asks or orders something.
    pub(super) fn tick(&self) {
        match self.time {
            TimeSpec::Wall => {}
            TimeSpec::Stepped(_) => {
                self.steps.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stepped_clock_moves_when_it_is_told_to() {
        let clock = Clock::start(TimeSpec::Stepped(Duration::from_millis(100)));
        assert_eq!(clock.now(), clock.started());
        clock.tick();
        clock.tick();
        assert_eq!(clock.now() - clock.started(), Duration::from_millis(200));
        assert_eq!(clock.now() - clock.started(), Duration::from_millis(200));
    }
}
