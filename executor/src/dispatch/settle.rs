//! Waiting until a window comes to rest (spec §6.9, "Settle procedure").
//!
//! A look is one reading of the window digest over the elements that the quoted snapshot recorded. Two equal looks one
//! after the other mean rest. The wait never exceeds its ceiling by more than one look, and the time it states is the
//! time it took. A wait that is cut short by its deadline ends as one at its ceiling does, with what was seen by then.

use std::time::{Duration, Instant};

use maka_cu_protocol::ids::{Digest, Millis};
use maka_cu_protocol::results::dispatch::Settle;
use maka_cu_protocol::sets::SettleReason;

use crate::deadline::Deadline;

/// Time between two looks.
pub const POLL: Duration = Duration::from_millis(50);

/// What one look saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The digest of the window.
    Digest(Digest),
    /// The window is not in the window list any more.
    Gone,
    /// The window could not be read in time. Equal to no other look, not even to another of its kind.
    Unreadable,
}

impl Look {
    /// Whether both looks saw something and saw the same.
    #[must_use]
    pub fn agrees_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Digest(this), Self::Digest(that)) => this == that,
            (Self::Gone, Self::Gone) => true,
            (Self::Unreadable, _)
            | (_, Self::Unreadable)
            | (Self::Gone, Self::Digest(_))
            | (Self::Digest(_), Self::Gone) => false,
        }
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Measured time.
    pub waited: Duration,
    /// Why it ended; `Quiesced`, `Ceiling` or `WindowTooSlow`.
    pub reason: SettleReason,
    /// The last look.
    pub last: Look,
}

impl Settled {
    /// The form in a dispatch's answer: the time rounded to milliseconds.
    #[must_use]
    pub fn to_wire(self) -> Settle {
        let rounded = (self.waited + Duration::from_micros(500)).as_millis();
        Settle {
            waited_ms: Millis(u64::try_from(rounded).unwrap_or(u64::MAX)),
            quiesced: self.reason == SettleReason::Quiesced,
            reason: self.reason,
        }
    }
}

/// Looks until two looks agree, no further look is affordable, or the deadline is over. Blocks.
pub fn settle(ceiling: Duration, deadline: &Deadline, look: impl FnMut() -> Look) -> Settled {
    let clock = RealClock {
        started: Instant::now(),
        deadline,
    };
    settle_by(&clock, ceiling, look)
}

trait Clock {
    fn elapsed(&self) -> Duration;
    fn is_over(&self) -> bool;
    fn sleep(&self, pause: Duration);
}

struct RealClock<'d> {
    started: Instant,
    deadline: &'d Deadline,
}

impl Clock for RealClock<'_> {
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn is_over(&self) -> bool {
        self.deadline.is_over()
    }

    fn sleep(&self, pause: Duration) {
        self.deadline.pause(pause);
    }
}

fn settle_by(clock: &impl Clock, ceiling: Duration, mut look: impl FnMut() -> Look) -> Settled {
    let mut previous: Option<Look> = None;
    let mut costliest = Duration::ZERO;
    loop {
        let before = clock.elapsed();
        let last = look();
        let waited = clock.elapsed();
        costliest = costliest.max(waited.saturating_sub(before));
        if previous.is_some_and(|previous| previous.agrees_with(last)) {
            return Settled {
                waited,
                reason: SettleReason::Quiesced,
                last,
            };
        }
        let over = clock.is_over();
        if over || ceiling.saturating_sub(waited) < costliest + POLL {
            // The look that was cut short saw nothing, the one before it did.
            let last = match (last, previous) {
                (Look::Unreadable, Some(previous)) if over => previous,
                (last, _) => last,
            };
            let reason = if previous.is_some() {
                SettleReason::Ceiling
            } else {
                SettleReason::WindowTooSlow
            };
            return Settled {
                waited,
                reason,
                last,
            };
        }
        previous = Some(last);
        clock.sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A time, and the time at which the deadline is over.
    struct FakeClock(Cell<Duration>, Duration);

    impl Clock for FakeClock {
        fn elapsed(&self) -> Duration {
            self.0.get()
        }

        fn is_over(&self) -> bool {
            self.0.get() >= self.1
        }

        fn sleep(&self, pause: Duration) {
            self.0.set(self.0.get() + pause);
        }
    }

    /// Each look costs `cost_ms` and sees the digest of the next number; the last number repeats.
    fn check(ceiling_ms: u64, cost_ms: u64, seen: &[Option<u8>], expected: (SettleReason, u64)) {
        let clock = FakeClock(Cell::new(Duration::ZERO), Duration::MAX);
        let mut looks = 0;
        let settled = settle_by(&clock, Duration::from_millis(ceiling_ms), || {
            clock.sleep(Duration::from_millis(cost_ms));
            let number = seen[looks.min(seen.len() - 1)];
            looks += 1;
            number.map_or(Look::Unreadable, |number| {
                Look::Digest(Digest::of(&[number]))
            })
        });
        let waited_ms = u64::try_from(settled.waited.as_millis()).unwrap();
        assert_eq!(
            (settled.reason, waited_ms),
            expected,
            "{ceiling_ms} {cost_ms} {seen:?}"
        );
        assert_eq!(
            settled.waited,
            clock.elapsed(),
            "the stated time is the clock's"
        );
        assert!(
            waited_ms <= ceiling_ms + cost_ms,
            "at most one look beyond the ceiling"
        );
    }

    /// A deadline ends the wait at once, with the last thing that was seen; a look that it cut short saw nothing.
    #[test]
    fn a_deadline_ends_the_wait_with_what_was_seen() {
        use SettleReason::{Ceiling, WindowTooSlow};
        let seen = |number: u8| Look::Digest(Digest::of(&[number]));
        let rows = [
            (0, WindowTooSlow, Look::Unreadable, 0),
            (10, WindowTooSlow, seen(1), 10),
            (65, Ceiling, seen(1), 65),
            (70, Ceiling, seen(2), 70),
        ];
        for (deadline_ms, reason, last, waited_ms) in rows {
            let deadline = Duration::from_millis(deadline_ms);
            let clock = FakeClock(Cell::new(Duration::ZERO), deadline);
            let mut looks = 0;
            let settled = settle_by(&clock, Duration::from_secs(60), || {
                let left = deadline.saturating_sub(clock.elapsed());
                clock.sleep(left.min(Duration::from_millis(10)));
                looks += 1;
                if left < Duration::from_millis(10) {
                    Look::Unreadable
                } else {
                    seen(looks)
                }
            });
            let expected = Settled {
                waited: Duration::from_millis(waited_ms),
                reason,
                last,
            };
            assert_eq!(settled, expected, "{deadline_ms}");
        }
    }

    /// Spec §12.5 row 62.
    #[test]
    fn every_arm_states_its_measured_time() {
        use SettleReason::{Ceiling, Quiesced, WindowTooSlow};
        check(2500, 10, &[Some(1)], (Quiesced, 70));
        check(2500, 10, &[Some(1), Some(2), Some(2)], (Quiesced, 130));
        check(2500, 2480, &[Some(1)], (WindowTooSlow, 2480));
        check(2500, 3000, &[Some(1)], (WindowTooSlow, 3000));
        check(2500, 1200, &[Some(1)], (Quiesced, 2450));
        check(
            200,
            10,
            &[Some(1), Some(2), Some(3), Some(4), Some(5)],
            (Ceiling, 190),
        );
        check(200, 10, &[None], (Ceiling, 190));
    }
}
