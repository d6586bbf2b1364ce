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
enum Lock {
    Open,
    /// Somebody who will also report the unlock.
    Reported,
    /// Nobody: the executor found it, and the next observation finds out.
    Found,
}

/// A person at pointer or keyboard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Person {
    Away,
    Present,
    /// Let go; counts as present until then.
    Until(Instant),
}

/// The session's own observation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Look {
    Never,
    Stands,
    Worthless,
}

/// See the module. A lock, a person and the end of it all are kept apart, since one does not end the other: a person who
/// unlocks the screen is still at the keyboard.
#[derive(Debug)]
pub(crate) struct Machine {
    over: Option<SessionState>,
    lock: Lock,
    person: Person,
    look: Look,
    debounce: Duration,
    /// Happenings so far that made every frame worthless.
    burials: u64,
}

impl Machine {
    /// A session that has observed nothing. After a person's input it stays put for `debounce`.
    pub(crate) fn new(debounce: Duration) -> Self {
        Self {
            over: None,
            lock: Lock::Open,
            person: Person::Away,
            look: Look::Never,
            debounce,
            burials: 0,
        }
    }

    /// The state at this moment.
    pub(crate) fn state(&self, now: Instant) -> SessionState {
        if let Some(over) = self.over {
            over
        } else if self.lock != Lock::Open {
            SessionState::ScreenLocked
        } else if self.is_interrupted(now) {
            SessionState::InterventionDebounce
        } else {
            match self.look {
                Look::Never => SessionState::Unobserved,
                Look::Stands => SessionState::Active,
                Look::Worthless => SessionState::ReobserveRequired,
            }
        }
    }

    /// How long a person's input still holds the session up, if that is known.
    pub(crate) fn quiet_in(&self, now: Instant) -> Option<Duration> {
        match self.person {
            Person::Until(quiet_at) => Some(quiet_at.saturating_duration_since(now)),
            Person::Away | Person::Present => None,
        }
    }

    /// Whether an action may be sent, as far as this machine is asked: without a frame the policy refuses it anyway, with
    /// a better reason, and a launch quotes none.
    pub(crate) fn may_act(&self, now: Instant) -> Result<(), SessionState> {
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
    pub(crate) fn may_observe(&self, now: Instant) -> Result<(), SessionState> {
        match self.may_act(now) {
            Err(SessionState::ScreenLocked) if self.lock == Lock::Found => {
                if self.is_interrupted(now) {
                    Err(SessionState::InterventionDebounce)
                } else {
                    Ok(())
                }
            }
            may => may,
        }
    }

    /// Happenings so far that made every frame of the session worthless.
    pub(crate) fn burials(&self) -> u64 {
        self.burials
    }

    /// Takes note of what happened.
    pub(crate) fn happened(&mut self, what: Happening, now: Instant) {
        match what {
            Happening::Observed => return self.observed(now),
            Happening::UserInputBegan => self.person = Person::Present,
            // An end without a begin says that somebody was there.
            Happening::UserInputEnded(at) => self.person = Person::Until(at + self.debounce),
            Happening::Locked => self.lock = Lock::Reported,
            Happening::Unlocked => self.lock = Lock::Open,
            Happening::FoundLocked => {
                if self.lock == Lock::Open {
                    self.lock = Lock::Found;
                }
            }
            Happening::UserStopped => {
                self.over.get_or_insert(SessionState::UserStopped);
            }
            Happening::UrlBlocked => {
                self.over.get_or_insert(SessionState::BlockedUrl);
            }
            Happening::Intervened | Happening::OutcomeUnknown => {}
            // Frames die with their generation, and are refused for that.
            Happening::ServiceLost => return self.unsettle(),
        }
        self.bury();
    }

    /// What was observed stands, unless somebody is there by now: then it shows a moment that is over.
    fn observed(&mut self, now: Instant) {
        if self.may_observe(now).is_ok() {
            self.lock = Lock::Open;
            self.look = Look::Stands;
        } else {
            self.bury();
        }
    }

    fn bury(&mut self) {
        self.burials += 1;
        self.unsettle();
    }

    fn unsettle(&mut self) {
        if self.look == Look::Stands {
            self.look = Look::Worthless;
        }
    }

    fn is_interrupted(&self, now: Instant) -> bool {
        match self.person {
            Person::Away => false,
            Person::Present => true,
            Person::Until(quiet_at) => now < quiet_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            (N, [A, D, D, L, N, S, B, N, L, N, N]),
            (A, [A, D, D, L, R, S, B, R, L, R, R]),
            (D, [D, D, D, L, D, S, B, D, L, D, D]),
            (R, [A, D, D, L, R, S, B, R, L, R, R]),
            (L, [L, L, L, L, N, S, B, L, L, L, L]),
            (B, [B; 11]),
            (S, [S; 11]),
        ];
        let now = Instant::now();
        for (from, row) in table {
            for (what, to) in all(now).into_iter().zip(row) {
                let mut machine = machine(from, now);
                let burials = machine.burials();
                machine.happened(what, now);
                assert_eq!(machine.state(now), to, "{from:?} {what:?}");
                // Nothing but a good observation leaves the frames as they are, and a loss, which they die of anyway.
                let is_good =
                    what == Happening::Observed && to == A || what == Happening::ServiceLost;
                assert_eq!(machine.burials() == burials, is_good, "{from:?} {what:?}");
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

    proptest! {
        /// Whatever the order: while a person is reported to be there, or the screen to be locked, nothing is let through,
        /// and what is over stays over.
        #[test]
        fn nothing_passes_a_person_or_a_lock(steps in prop::collection::vec(0_usize..11, 0..40)) {
            let now = Instant::now();
            let mut machine = Machine::new(DEBOUNCE);
            let (mut present, mut resting, mut locked, mut over) = (false, false, false, None);
            for step in steps {
                let what = all(now)[step];
                machine.happened(what, now);
                match what {
                    Happening::UserInputBegan => present = true,
                    Happening::UserInputEnded(_) => (present, resting) = (false, true),
                    Happening::Locked => locked = true,
                    Happening::Unlocked => locked = false,
                    Happening::UserStopped => over = over.or(Some(SessionState::UserStopped)),
                    Happening::UrlBlocked => over = over.or(Some(SessionState::BlockedUrl)),
                    _ => {}
                }
                let held = present || resting || locked || over.is_some();
                prop_assert!(!held || machine.may_act(now).is_err());
                prop_assert!(!held || machine.may_observe(now).is_err());
                if let Some(over) = over {
                    prop_assert_eq!(machine.state(now), over);
                }
            }
        }
    }
}
