//! Buttons that may be down (design.md §5.5), over the whole gateway.
//!
//! Noted when an action may have pressed one and not let it go. Its own session releases it: at its end, when it is stopped,
//! when the connection that pressed it is gone, and when another executor has taken the place of the one that pressed. If
//! somebody else comes first on that one, that session claims it and releases it, and everybody waits for that: nothing
//! reaches the desktop while a button of a lost executor may be down.
//!
//! This module keeps the books; `core::release` does the releasing. Short critical sections, never across an await.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maka_cu_protocol::action::PointAction;
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::{SessionId, WindowKey};
use maka_cu_protocol::sets::{Outcome, Path};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;

/// A left button that may be down.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The executor that may have pressed it.
    pub(crate) generation: u64,
    /// The window it was pressed in.
    pub(crate) window: WindowKey,
    /// Where the pointer was last.
    pub(crate) point: ScreenPoint,
    /// Ends with the connection of the caller that pressed it.
    pub(crate) connection: Option<CancellationToken>,
    /// The session that pressed it, which may be over.
    pub(crate) owner: Arc<Shared>,
    /// The executor would not let go of it: tried once more when the session ends.
    pub(crate) refused: bool,
}

/// What an action means for the button.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Press {
    /// It may be down now.
    Down,
    /// It is up.
    Up,
    /// As it was.
    AsBefore,
}

impl Press {
    /// What an action with this ending means. Only the left button can be released by the protocol, so only it is kept.
    pub(crate) fn after(action: &PointAction, outcome: Outcome, path: Path) -> Self {
        let was_tried = match outcome {
            Outcome::Ok | Outcome::Unknown => true,
            // A failure by a path has begun; one without a path has not.
            Outcome::Failed => path != Path::None,
            Outcome::Refused => false,
        };
        if !was_tried {
            return Self::AsBefore;
        }
        match (action, outcome) {
            (PointAction::MouseDown, _) => Self::Down,
            (PointAction::MouseUp, Outcome::Ok) => Self::Up,
            // These let go at their end, which only a good one has surely come to.
            (
                PointAction::Drag
                | PointAction::LeftClick { .. }
                | PointAction::DoubleClick
                | PointAction::TripleClick,
                Outcome::Ok,
            ) => Self::Up,
            (
                PointAction::Drag
                | PointAction::LeftClick { .. }
                | PointAction::DoubleClick
                | PointAction::TripleClick,
                _,
            ) => Self::Down,
            (
                PointAction::MouseUp
                | PointAction::Move
                | PointAction::RightClick
                | PointAction::MiddleClick
                | PointAction::Scroll { .. },
                _,
            ) => Self::AsBefore,
        }
    }
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct HeldButtons(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// At most one per session, and sessions are bounded; one of a session that is gone leaves with its release.
    by_session: Mutex<HashMap<SessionId, Held>>,
    /// Releases of a lost executor's buttons that are under way.
    releasing: watch::Sender<usize>,
}

/// The buttons of a lost executor that one task has taken on. Dropping it lets the others go on.
#[derive(Debug)]
pub(crate) struct Claim {
    inner: Arc<Inner>,
    pub(crate) held: Vec<(SessionId, Held)>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.inner.releasing.send_modify(|claims| *claims -= 1);
    }
}

impl Default for HeldButtons {
    fn default() -> Self {
        Self(Arc::new(Inner {
            by_session: Mutex::default(),
            releasing: watch::Sender::new(0),
        }))
    }
}

impl HeldButtons {
    /// A button of this session may be down. A press that was noted before is replaced: there is one left button.
    pub(crate) fn note(&self, session: &SessionId, held: Held) {
        self.lock().insert(session.clone(), held);
    }

    /// What this session may hold, of whatever executor.
    pub(crate) fn of(&self, session: &SessionId) -> Option<Held> {
        self.lock().get(session).cloned()
    }

    /// The button of this session is up.
    pub(crate) fn clear(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    /// Takes on what earlier executors may have left pressed, or waits until nobody is at it any more and nothing is left:
    /// whoever was at it may have lost its executor on the way and put the rest back.
    pub(crate) async fn claim_or_wait(&self, generation: u64) -> Option<Claim> {
        loop {
            if let Some(claim) = self.claim(generation) {
                return Some(claim);
            }
            if self.is_settled(generation) {
                return None;
            }
            self.released().await;
        }
    }

    /// Whether nothing of earlier executors is pressed, claimed or not. One look: a claim is counted, and what it puts back is
    /// noted, before the other is gone.
    fn is_settled(&self, generation: u64) -> bool {
        let by_session = self.lock();
        let is_lost = |held: &Held| held.generation != generation;
        !by_session.values().any(is_lost) && *self.0.releasing.borrow() == 0
    }

    /// Takes on what earlier executors may have left pressed; nothing when there is nothing.
    fn claim(&self, generation: u64) -> Option<Claim> {
        let mut by_session = self.lock();
        let held: Vec<_> = by_session
            .extract_if(|_, held| held.generation != generation)
            .collect();
        if held.is_empty() {
            return None;
        }
        // Counted before the lock is let go: nobody may find neither the button nor its release.
        self.0.releasing.send_modify(|claims| *claims += 1);
        Some(Claim {
            inner: Arc::clone(&self.0),
            held,
        })
    }

    /// Waits until no release of a lost executor's buttons is under way.
    async fn released(&self) {
        let mut releasing = self.0.releasing.subscribe();
        // The sender lives in this value.
        drop(releasing.wait_for(|claims| *claims == 0).await);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
        self.0
            .by_session
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use maka_cu_protocol::action::ClickCount;

    use super::super::state::Machine;
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::try_new(name).unwrap()
    }

    fn held(generation: u64) -> Held {
        Held {
            generation,
            window: WindowKey {
                pid: 7,
                window_id: 8,
            },
            point: ScreenPoint::try_new(1.0, 2.0).unwrap(),
            connection: None,
            owner: Arc::new(Shared::new(Machine::new(Duration::ZERO))),
            refused: false,
        }
    }

    /// D2, D4: every action that can leave the button down, with every ending.
    #[test]
    fn what_leaves_a_button_down() {
        let count = ClickCount::new(1).unwrap();
        let pressing = [
            PointAction::Drag,
            PointAction::LeftClick { count },
            PointAction::DoubleClick,
            PointAction::TripleClick,
        ];
        for action in pressing {
            for (outcome, path, expected) in [
                (Outcome::Ok, Path::CgEventPid, Press::Up),
                (Outcome::Unknown, Path::None, Press::Down),
                (Outcome::Failed, Path::CgEventPid, Press::Down),
                (Outcome::Failed, Path::None, Press::AsBefore),
                (Outcome::Refused, Path::None, Press::AsBefore),
            ] {
                assert_eq!(Press::after(&action, outcome, path), expected, "{action:?}");
            }
        }
        let down = |outcome| Press::after(&PointAction::MouseDown, outcome, Path::CgEventPid);
        assert_eq!(down(Outcome::Ok), Press::Down);
        assert_eq!(down(Outcome::Unknown), Press::Down);
        assert_eq!(down(Outcome::Refused), Press::AsBefore);
        let up = |outcome| Press::after(&PointAction::MouseUp, outcome, Path::CgEventPid);
        assert_eq!(up(Outcome::Ok), Press::Up);
        assert_eq!(
            up(Outcome::Unknown),
            Press::AsBefore,
            "it may still be down"
        );
        for action in [
            PointAction::Move,
            PointAction::RightClick,
            PointAction::MiddleClick,
        ] {
            let after = Press::after(&action, Outcome::Unknown, Path::None);
            assert_eq!(after, Press::AsBefore, "{action:?}");
        }
    }

    /// Buttons of a lost executor are claimed once, and everybody waits until the claim is dropped.
    #[tokio::test]
    async fn a_lost_button_is_released_by_one_and_awaited_by_all() {
        let buttons = HeldButtons::default();
        buttons.note(&session("a"), held(1));
        buttons.note(&session("b"), held(2));
        assert_eq!(
            buttons.of(&session("a")).map(|held| held.generation),
            Some(1)
        );
        assert!(buttons.of(&session("c")).is_none());
        let claim = buttons.claim(2).unwrap();
        assert_eq!(claim.held.len(), 1);
        assert!(buttons.claim(2).is_none(), "claimed once");
        let waits = buttons.released();
        let mut waits = std::pin::pin!(waits);
        let now = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waits.as_mut().poll(context).is_pending())
        });
        assert!(now.await);
        drop(claim);
        waits.await;
        buttons.clear(&session("b"));
        assert!(buttons.claim(3).is_none());
        assert!(buttons.claim_or_wait(3).await.is_none(), "nothing is left");
    }

    /// A claim that comes to nothing, because its executor was lost on the way, puts the button back: whoever waited takes it
    /// on, and does not go ahead.
    #[tokio::test]
    async fn a_button_that_was_put_back_is_claimed_by_who_waited() {
        let buttons = HeldButtons::default();
        buttons.note(&session("a"), held(1));
        let claim = buttons.claim(2).unwrap();
        let waits = buttons.claim_or_wait(3);
        let mut waits = std::pin::pin!(waits);
        let now = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waits.as_mut().poll(context).is_pending())
        });
        assert!(now.await);
        buttons.note(&session("a"), held(1));
        drop(claim);
        let claim = waits.await.unwrap();
        assert_eq!(claim.held.len(), 1);
    }
}
