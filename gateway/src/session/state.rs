//! The status of one session (spec maka-cu §10.5, design.md §5.10): what happened on the desktop and to the executor, as
//! far as it decides whether the session may act and observe.
//!
//! Pure: states, what happens, and what follows. What enters is a closed set; changed page content is not in it, because
//! frames already bind that. Frames are not kept here: transitions that make them worthless are counted, and the mirror
//! buries them.

use std::time::Duration;

use tokio::time::Instant;

/// What a session may do now.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SessionState {
    /// Nothing was observed yet.
    Unobserved,
    /// The last observation stands.
    Active,
    /// A person uses pointer or keyboard, or did a moment ago.
    InterventionDebounce,
    /// Something happened that no frame knows of.
    ReobserveRequired,
    /// The screen is locked.
    ScreenLocked,
    /// A page is open that must not be acted on. For good.
    BlockedUrl,
    /// A person stopped the session. For good.
    UserStopped,
}

impl SessionState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Unobserved,
        Self::Active,
        Self::InterventionDebounce,
        Self::ReobserveRequired,
        Self::ScreenLocked,
        Self::BlockedUrl,
        Self::UserStopped,
    ];

    /// The state as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unobserved => "unobserved",
            Self::Active => "active",
            Self::InterventionDebounce => "intervention_debounce",
            Self::ReobserveRequired => "reobserve_required",
            Self::ScreenLocked => "screen_locked",
            Self::BlockedUrl => "blocked_url",
            Self::UserStopped => "user_stopped",
        }
    }

    /// Nothing leads out of it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::BlockedUrl | Self::UserStopped => true,
            Self::Unobserved
            | Self::Active
            | Self::InterventionDebounce
            | Self::ReobserveRequired
            | Self::ScreenLocked => false,
        }
    }
}

/// What happens to a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Happening {
    /// An observation was good.
    Observed,
    /// A person began to use pointer or keyboard.
    UserInputBegan,
    /// The person let go, at this moment.
    UserInputEnded(Instant),
    /// Somebody who will also report the unlock says that the screen is locked.
    Locked,
    /// The screen is unlocked.
    Unlocked,
    /// A person stopped the session.
    UserStopped,
    /// A page is open that must not be acted on.
    UrlBlocked,
    /// The executor refused because a person intervened.
    Intervened,
    /// The executor refused because the screen is locked. Nobody will report the unlock: the next observation tells.
    FoundLocked,
    /// An action ended in an outcome that nobody knows.
    OutcomeUnknown,
    /// The executor could not be reached, is the wrong one, or was released.
    ServiceLost,
}

/// Who will tell of the unlock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unlock {
    Reported,
    Unreported,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Machine {
    state: SessionState,
    /// Transitions so far: what was granted at an earlier number is void.
    epoch: u64,
    /// Transitions so far that made every frame worthless.
    burials: u64,
    debounce: Duration,
    /// When the debounce is over; nothing while a person still works.
    quiet_at: Option<Instant>,
    unlock: Unlock,
}

impl Machine {
    /// A session that has observed nothing. After a person's input it stays put for `debounce`.
    pub(crate) fn new(debounce: Duration) -> Self {
        Self {
            state: SessionState::Unobserved,
            epoch: 0,
            burials: 0,
            debounce,
            quiet_at: None,
            unlock: Unlock::Reported,
        }
    }

    /// The state at this moment.
    pub(crate) fn state(&mut self, now: Instant) -> SessionState {
        if self.state == SessionState::InterventionDebounce
            && self.quiet_at.is_some_and(|quiet_at| quiet_at <= now)
        {
            self.quiet_at = None;
            self.go(SessionState::ReobserveRequired);
        }
        self.state
    }

    /// Transitions so far.
    #[cfg(test)]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How long a person's input still holds the session up, if that is known.
    pub(crate) fn quiet_in(&self, now: Instant) -> Option<Duration> {
        self.quiet_at
            .map(|quiet_at| quiet_at.saturating_duration_since(now))
    }

    /// Whether an action may be sent, as far as this machine is asked: without a frame the policy refuses it anyway, with
    /// a better reason.
    pub(crate) fn may_act(&mut self, now: Instant) -> Result<(), SessionState> {
        match self.state(now) {
            SessionState::Unobserved | SessionState::Active | SessionState::ReobserveRequired => {
                Ok(())
            }
            held @ (SessionState::InterventionDebounce
            | SessionState::ScreenLocked
            | SessionState::BlockedUrl
            | SessionState::UserStopped) => Err(held),
        }
    }

    /// Whether the session may observe. While locked it may only where nobody reports the unlock.
    pub(crate) fn may_observe(&mut self, now: Instant) -> Result<(), SessionState> {
        match self.state(now) {
            SessionState::Unobserved | SessionState::Active | SessionState::ReobserveRequired => {
                Ok(())
            }
            SessionState::ScreenLocked if self.unlock == Unlock::Unreported => Ok(()),
            held @ (SessionState::InterventionDebounce
            | SessionState::ScreenLocked
            | SessionState::BlockedUrl
            | SessionState::UserStopped) => Err(held),
        }
    }

    /// Transitions so far that made every frame of the session worthless.
    pub(crate) fn burials(&self) -> u64 {
        self.burials
    }

    /// Takes note of what happened.
    pub(crate) fn happened(&mut self, what: Happening, now: Instant) {
        let before = self.state(now);
        let after = match (before, what) {
            (SessionState::BlockedUrl | SessionState::UserStopped, _) => before,
            (_, Happening::UserStopped) => SessionState::UserStopped,
            (_, Happening::UrlBlocked) => SessionState::BlockedUrl,
            (_, Happening::Locked) => {
                self.unlock = Unlock::Reported;
                SessionState::ScreenLocked
            }
            (SessionState::ScreenLocked, Happening::FoundLocked) => before,
            (_, Happening::FoundLocked) => {
                self.unlock = Unlock::Unreported;
                SessionState::ScreenLocked
            }
            (SessionState::ScreenLocked, Happening::Unlocked) => SessionState::ReobserveRequired,
            (SessionState::ScreenLocked, Happening::Observed)
                if self.unlock == Unlock::Unreported =>
            {
                SessionState::Active
            }
            // Whoever uses the keyboard of a locked screen is unlocking it.
            (SessionState::ScreenLocked, _) => before,
            (_, Happening::UserInputBegan) => {
                self.quiet_at = None;
                SessionState::InterventionDebounce
            }
            (SessionState::InterventionDebounce, Happening::UserInputEnded(at)) => {
                self.quiet_at = Some(at + self.debounce);
                before
            }
            // An observation that was under way when the person began shows a moment that is over.
            (SessionState::InterventionDebounce, _) => before,
            (_, Happening::Observed) => SessionState::Active,
            (SessionState::Unobserved, Happening::OutcomeUnknown | Happening::ServiceLost) => {
                before
            }
            (_, Happening::Intervened | Happening::OutcomeUnknown | Happening::ServiceLost) => {
                SessionState::ReobserveRequired
            }
            (_, Happening::UserInputEnded(_) | Happening::Unlocked) => before,
        };
        if after == before {
            return;
        }
        self.go(after);
        if after != SessionState::Active {
            self.burials += 1;
        }
    }

    fn go(&mut self, state: SessionState) {
        self.state = state;
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBOUNCE: Duration = Duration::from_secs(3);

    /// Every happening, at a fixed moment.
    fn all(at: Instant) -> [Happening; 11] {
        [
            Happening::Observed,
            Happening::UserInputBegan,
            Happening::UserInputEnded(at),
            Happening::Locked,
            Happening::Unlocked,
            Happening::UserStopped,
            Happening::UrlBlocked,
            Happening::Intervened,
            Happening::FoundLocked,
            Happening::OutcomeUnknown,
            Happening::ServiceLost,
        ]
    }

    /// A machine in this state.
    fn machine(state: SessionState, now: Instant) -> Machine {
        let mut machine = Machine::new(DEBOUNCE);
        let way: &[Happening] = match state {
            SessionState::Unobserved => &[],
            SessionState::Active => &[Happening::Observed],
            SessionState::InterventionDebounce => &[Happening::UserInputBegan],
            SessionState::ReobserveRequired => &[Happening::Observed, Happening::Intervened],
            SessionState::ScreenLocked => &[Happening::Locked],
            SessionState::BlockedUrl => &[Happening::UrlBlocked],
            SessionState::UserStopped => &[Happening::UserStopped],
        };
        for what in way {
            machine.happened(*what, now);
        }
        assert_eq!(machine.state(now), state);
        machine
    }

    /// Every state under every happening. Rows are states, columns are [`all`].
    #[test]
    fn the_whole_table() {
        use SessionState::{
            Active as A, BlockedUrl as B, InterventionDebounce as D, ReobserveRequired as R,
            ScreenLocked as L, Unobserved as N, UserStopped as S,
        };
        let table: [(SessionState, [SessionState; 11]); 7] = [
            //   obs beg end lck unl stp url int fnd unk lost
            (N, [A, D, N, L, N, S, B, R, L, N, N]),
            (A, [A, D, A, L, A, S, B, R, L, R, R]),
            (D, [D, D, D, L, D, S, B, D, L, D, D]),
            (R, [A, D, R, L, R, S, B, R, L, R, R]),
            (L, [L, L, L, L, R, S, B, L, L, L, L]),
            (B, [B; 11]),
            (S, [S; 11]),
        ];
        let now = Instant::now();
        for (from, row) in table {
            for (what, to) in all(now).into_iter().zip(row) {
                let mut machine = machine(from, now);
                let (epoch, burials) = (machine.epoch(), machine.burials());
                machine.happened(what, now);
                assert_eq!(machine.state(now), to, "{from:?} {what:?}");
                assert_eq!(machine.epoch() > epoch, from != to, "{from:?} {what:?}");
                // A frame outlives what changes nothing, and nothing else but an observation.
                assert_eq!(
                    machine.burials() > burials,
                    from != to && to != SessionState::Active,
                    "{from:?} {what:?}"
                );
            }
        }
    }

    #[test]
    fn what_each_state_lets_through() {
        let now = Instant::now();
        for state in SessionState::ALL {
            let open = matches!(
                state,
                SessionState::Unobserved | SessionState::Active | SessionState::ReobserveRequired
            );
            let expected = if open { Ok(()) } else { Err(state) };
            assert_eq!(machine(state, now).may_act(now), expected);
            assert_eq!(machine(state, now).may_observe(now), expected);
        }
    }

    /// A person's input holds the session up until it has been quiet for the debounce; then only an observation helps.
    #[test]
    fn an_intervention_ends_with_quiet_and_an_observation() {
        let now = Instant::now();
        let mut machine = machine(SessionState::Active, now);
        machine.happened(Happening::UserInputBegan, now);
        let later = now + DEBOUNCE * 10;
        assert_eq!(
            machine.state(later),
            SessionState::InterventionDebounce,
            "the person still works"
        );
        machine.happened(Happening::UserInputEnded(later), later);
        assert_eq!(machine.quiet_in(later), Some(DEBOUNCE));
        machine.happened(Happening::UserInputBegan, later);
        assert_eq!(machine.quiet_in(later), None, "and again");
        machine.happened(Happening::UserInputEnded(later), later);
        let almost = later + DEBOUNCE - Duration::from_millis(1);
        assert_eq!(
            machine.may_act(almost),
            Err(SessionState::InterventionDebounce)
        );
        assert_eq!(
            machine.state(later + DEBOUNCE),
            SessionState::ReobserveRequired
        );
        machine.happened(Happening::Observed, later + DEBOUNCE);
        assert_eq!(machine.state(later + DEBOUNCE), SessionState::Active);
    }

    /// A lock that the executor found is left by an observation; one that was reported, by the report of its end.
    #[test]
    fn whoever_tells_of_the_lock_tells_of_its_end() {
        let now = Instant::now();
        let mut found = machine(SessionState::Active, now);
        found.happened(Happening::FoundLocked, now);
        assert_eq!(found.may_act(now), Err(SessionState::ScreenLocked));
        assert_eq!(found.may_observe(now), Ok(()));
        found.happened(Happening::Observed, now);
        assert_eq!(found.state(now), SessionState::Active);

        let mut reported = machine(SessionState::ScreenLocked, now);
        reported.happened(Happening::FoundLocked, now);
        assert_eq!(
            reported.may_observe(now),
            Err(SessionState::ScreenLocked),
            "who reported it still does"
        );
        found.happened(Happening::FoundLocked, now);
        found.happened(Happening::Locked, now);
        assert_eq!(found.may_observe(now), Err(SessionState::ScreenLocked));
    }
}
