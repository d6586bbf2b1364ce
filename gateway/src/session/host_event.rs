//! What happens on the desktop beside the agent (design.md §5.10): one closed set, from whoever can see it.
//!
//! Keeps what is true of the whole desktop now, so that a session that begins later starts from it.

use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::ids::SessionId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::state::{Happening, Machine};
use super::{Entry, Sessions};
use crate::approval::ApprovalEnd;
use crate::error::CallError;

/// What a reporter saw.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HostEvent {
    /// The screen was locked.
    ScreenLocked,
    /// The screen was unlocked.
    ScreenUnlocked,
    /// A person began to use pointer or keyboard.
    UserInputBegan,
    /// The person let go.
    UserInputEnded,
    /// A person stopped a session, or all of them.
    UserStopped,
    /// A page is open in a session that must not be acted on.
    UrlBlocked,
}

impl HostEvent {
    /// Every event.
    pub const ALL: [Self; 6] = [
        Self::ScreenLocked,
        Self::ScreenUnlocked,
        Self::UserInputBegan,
        Self::UserInputEnded,
        Self::UserStopped,
        Self::UrlBlocked,
    ];

    /// The event as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScreenLocked => "screen_locked",
            Self::ScreenUnlocked => "screen_unlocked",
            Self::UserInputBegan => "user_input_began",
            Self::UserInputEnded => "user_input_ended",
            Self::UserStopped => "user_stopped",
            Self::UrlBlocked => "url_blocked",
        }
    }

    /// Which sessions it is about.
    #[must_use]
    pub const fn scope(self) -> Scope {
        match self {
            Self::ScreenLocked
            | Self::ScreenUnlocked
            | Self::UserInputBegan
            | Self::UserInputEnded => Scope::Desktop,
            Self::UserStopped => Scope::SessionOrAll,
            Self::UrlBlocked => Scope::Session,
        }
    }

    /// What it is to a session.
    pub(crate) fn happening(self, now: Instant) -> Happening {
        match self {
            Self::ScreenLocked => Happening::Locked,
            Self::ScreenUnlocked => Happening::Unlocked,
            Self::UserInputBegan => Happening::UserInputBegan,
            Self::UserInputEnded => Happening::UserInputEnded(now),
            Self::UserStopped => Happening::UserStopped,
            Self::UrlBlocked => Happening::UrlBlocked,
        }
    }
}

/// Which sessions an event is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// All: there is one screen, one pointer, one keyboard. Naming a session would be a mistake.
    Desktop,
    /// The one that is named, or all that there are.
    SessionOrAll,
    /// The one that is named.
    Session,
}

/// What is true of the desktop now.
#[derive(Debug, Default)]
pub(crate) struct Desktop {
    is_locked: bool,
    input: Input,
}

#[derive(Debug, Default)]
enum Input {
    #[default]
    Quiet,
    Active,
    Ended(Instant),
}

impl Desktop {
    /// Takes note of what was seen.
    pub(crate) fn saw(&mut self, event: HostEvent, now: Instant) {
        match event {
            HostEvent::ScreenLocked => self.is_locked = true,
            HostEvent::ScreenUnlocked => self.is_locked = false,
            HostEvent::UserInputBegan => self.input = Input::Active,
            // An end without a begin says that somebody was there.
            HostEvent::UserInputEnded => self.input = Input::Ended(now),
            HostEvent::UserStopped | HostEvent::UrlBlocked => {}
        }
    }

    /// The machine of a session that begins now.
    pub(crate) fn machine(&self, debounce: Duration, now: Instant) -> Machine {
        let mut machine = Machine::new(debounce);
        match self.input {
            Input::Quiet => {}
            Input::Active => machine.happened(Happening::UserInputBegan, now),
            Input::Ended(at) if now < at + debounce => {
                machine.happened(Happening::UserInputBegan, now);
                machine.happened(Happening::UserInputEnded(at), now);
            }
            Input::Ended(_) => {}
        }
        if self.is_locked {
            machine.happened(Happening::Locked, now);
        }
        machine
    }
}

impl Sessions {
    /// Tells sessions that the executor of their last observation is lost, when it is, until `stop`.
    pub async fn follow_executor(&self, stop: CancellationToken) {
        let forward = &self.0.parts.forward;
        let Some(mut status) = forward.watch_status() else {
            return;
        };
        loop {
            let ready = {
                let status = status.borrow_and_update();
                status.executor.as_ref().map(|executor| executor.generation)
            };
            let concerned: Vec<_> = {
                let entries = self.entries();
                let of_another = entries.by_id.iter().filter(|(_, entry)| {
                    let observed = entry.shared.observed();
                    observed != 0 && ready != Some(observed)
                });
                of_another
                    .map(|(id, entry)| (id.clone(), Arc::clone(&entry.shared)))
                    .collect()
            };
            for (id, shared) in concerned {
                shared.set_observed(0);
                let state = shared.happened(Happening::ServiceLost);
                self.0.parts.events.session_state(&id, state);
            }
            // Both are cancel-safe.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = status.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }

    /// Takes note of what happened on the desktop beside the agents. Says how many sessions it concerned.
    ///
    /// # Errors
    /// When an event of one session names none or one that is not there, and when one of the whole desktop names any.
    pub fn report(
        &self,
        event: HostEvent,
        session: Option<&SessionId>,
    ) -> Result<usize, CallError> {
        let malformed = |rule| CallError::Malformed {
            field: "session_id",
            rule,
        };
        match (event.scope(), session) {
            (Scope::Desktop, Some(_)) => {
                return Err(malformed("not allowed: the event is about the desktop"));
            }
            (Scope::Session, None) => return Err(malformed("required by this event")),
            (Scope::Desktop | Scope::SessionOrAll, None)
            | (Scope::Session | Scope::SessionOrAll, Some(_)) => {}
        }
        let now = Instant::now();
        let mut desktop = self.desktop();
        desktop.saw(event, now);
        let concerned: Vec<_> = {
            let entries = self.entries();
            let of = |(id, entry): (&SessionId, &Entry)| (id.clone(), Arc::clone(&entry.shared));
            match session {
                Some(session) => {
                    let entry = entries.by_id.get_key_value(session);
                    vec![of(entry.ok_or(CallError::SessionUnknown)?)]
                }
                None => entries.by_id.iter().map(of).collect(),
            }
        };
        for (id, shared) in &concerned {
            let state = shared.happened(event.happening(now));
            let approvals = &self.0.parts.approvals;
            approvals.drop_session(id, ApprovalEnd::Intervened);
            self.0.parts.events.session_state(id, state);
        }
        tracing::info!(
            event = event.as_str(),
            sessions = concerned.len(),
            "host event"
        );
        Ok(concerned.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::SessionState;
    use super::*;

    /// A session that begins in the middle of it starts from what is true.
    #[test]
    fn a_new_session_starts_from_the_desktop_as_it_is() {
        let debounce = Duration::from_secs(3);
        let now = Instant::now();
        let begun = |events: &[HostEvent], after: Duration| {
            let mut desktop = Desktop::default();
            for event in events {
                desktop.saw(*event, now);
            }
            desktop.machine(debounce, now + after).state(now + after)
        };
        let at_once = Duration::ZERO;
        assert_eq!(begun(&[], at_once), SessionState::Unobserved);
        assert_eq!(
            begun(&[HostEvent::ScreenLocked], at_once),
            SessionState::ScreenLocked
        );
        let unlocked = [HostEvent::ScreenLocked, HostEvent::ScreenUnlocked];
        assert_eq!(begun(&unlocked, at_once), SessionState::Unobserved);
        let ended = [HostEvent::UserInputBegan, HostEvent::UserInputEnded];
        assert_eq!(
            begun(&ended[..1], debounce * 9),
            SessionState::InterventionDebounce
        );
        assert_eq!(begun(&ended, at_once), SessionState::InterventionDebounce);
        assert_eq!(begun(&ended, debounce), SessionState::Unobserved);
        let stopped = [HostEvent::UserStopped];
        assert_eq!(begun(&stopped, at_once), SessionState::Unobserved);
    }
}
