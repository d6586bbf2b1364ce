//! Counters of one session, so that rate rules of a policy need no state of their own.

use std::collections::VecDeque;
use std::time::Duration;

use maka_policy_host::facts;
use tokio::time::Instant;

use super::call::Turn;

const MINUTE: Duration = Duration::from_secs(60);

/// Actions of the last minute that are counted one by one; more than this read as exactly this many.
const RECENT_MAX: usize = 4096;

/// What happened since some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    actions: u32,
    denials: u32,
}

/// See the module. Counters run per turn; a call without a turn is counted from the begin of the session.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    turn: Option<Turn>,
    in_turn: Tally,
    in_session: Tally,
    recent: VecDeque<Instant>,
}

impl Meter {
    /// The counters as a call of this turn sees them. A turn other than the last one starts at zero.
    pub(crate) fn facts(
        &mut self,
        turn: Option<&Turn>,
        in_flight: u32,
        now: Instant,
    ) -> facts::Meter {
        while self
            .recent
            .front()
            .is_some_and(|at| now.saturating_duration_since(*at) >= MINUTE)
        {
            self.recent.pop_front();
        }
        let tally = self.tally(turn);
        facts::Meter {
            actions_this_turn: tally.actions,
            actions_last_minute: u32::try_from(self.recent.len()).unwrap_or(u32::MAX),
            denials_this_turn: tally.denials,
            in_flight,
        }
    }

    /// An action was sent.
    pub(crate) fn acted(&mut self, turn: Option<&Turn>, now: Instant) {
        self.count(turn, |tally| {
            tally.actions = tally.actions.saturating_add(1)
        });
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
    }

    /// A call was refused.
    pub(crate) fn denied(&mut self, turn: Option<&Turn>) {
        self.count(turn, |tally| {
            tally.denials = tally.denials.saturating_add(1)
        });
    }

    fn tally(&mut self, turn: Option<&Turn>) -> Tally {
        match turn {
            None => self.in_session,
            Some(turn) => {
                if self.turn.as_ref() != Some(turn) {
                    (self.turn, self.in_turn) = (Some(turn.clone()), Tally::default());
                }
                self.in_turn
            }
        }
    }

    fn count(&mut self, turn: Option<&Turn>, step: impl Fn(&mut Tally)) {
        self.tally(turn);
        if turn.is_some() {
            step(&mut self.in_turn);
        }
        step(&mut self.in_session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_run_per_turn_and_per_session() {
        let (mut meter, now) = (Meter::default(), Instant::now());
        let (first, second) = (Turn::try_new("1").unwrap(), Turn::try_new("2").unwrap());
        meter.acted(Some(&first), now);
        meter.acted(Some(&first), now);
        meter.denied(Some(&first));
        let seen = meter.facts(Some(&first), 3, now);
        assert_eq!(
            (
                seen.actions_this_turn,
                seen.denials_this_turn,
                seen.in_flight
            ),
            (2, 1, 3)
        );
        let seen = meter.facts(Some(&second), 0, now);
        assert_eq!(
            (
                seen.actions_this_turn,
                seen.denials_this_turn,
                seen.actions_last_minute
            ),
            (0, 0, 2)
        );
        meter.acted(None, now);
        let seen = meter.facts(None, 0, now);
        assert_eq!((seen.actions_this_turn, seen.denials_this_turn), (3, 1));
        assert_eq!(meter.facts(None, 0, now + MINUTE).actions_last_minute, 0);
    }

    #[test]
    fn recent_actions_are_bounded() {
        let (mut meter, now) = (Meter::default(), Instant::now());
        for _ in 0..RECENT_MAX + 10 {
            meter.acted(None, now);
        }
        assert_eq!(meter.recent.len(), RECENT_MAX);
    }
}
