//! Letting go of what may be held (design.md §5.5): an observation of the window and one `mouse_up`, through the door of
//! the gateway's own messages, because no policy may keep a button down.

use std::sync::Arc;

use maka_cu_host::status::{Negotiated, Status};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::results::Answer;
use maka_cu_protocol::results::dispatch::Ending;

use tokio::time::{Instant, timeout_at};

use super::{Core, RELEASE_PATIENCE, own_message};
use crate::forward::Forward;
use crate::session::held::Held;
use crate::session::state::Happening;

/// How a release ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Release {
    /// The button is up.
    Done,
    /// The window is gone: the button may be down, and nobody can do anything about it.
    Gone,
    /// The executor would not: the button may be down, and the end of the session is worth another try.
    Refused,
    /// The executor was lost: the next one has to.
    Later,
}

impl Core {
    /// What an action of this session may have left down.
    pub(crate) fn held(&self) -> Option<Held> {
        self.parts.held.of(&self.id)
    }

    /// The generation that was lost, or could not be reached, while it let go of what this session holds.
    pub(crate) fn release_failed(&self) -> u64 {
        self.release_failed
    }

    /// Lets go of what this session holds: it was stopped, the connection that pressed is gone, or the executor that
    /// pressed has a successor.
    pub(crate) async fn release_own(&mut self) {
        let (Some(held), Some(negotiated)) = (self.held(), self.parts.forward.negotiated()) else {
            return;
        };
        if negotiated.generation == held.generation {
            let release = release(&self.parts.forward, &self.id, &held, &negotiated).await;
            let id = self.id.clone();
            self.released(&id, held, release, &negotiated);
        } else {
            self.release_lost(&negotiated).await;
        }
    }

    /// Lets go of what this session holds before it ends, on the executor that is there or on one that is about to be. What
    /// cannot be let go of is told.
    pub(crate) async fn release_at_end(&mut self) {
        let deadline = Instant::now() + RELEASE_PATIENCE;
        let is_open = |core: &Self| core.held().is_some_and(|held| !held.refused);
        if self.held().is_none() {
            return;
        }
        // Whatever was refused before is asked once more; what is lost with its executor, as long as there is time.
        self.release_own().await;
        let Some(mut status) = self.parts.forward.watch_status() else {
            return;
        };
        while is_open(self) && Instant::now() < deadline {
            let next = async {
                let another = |status: &Status| {
                    let ready = status.executor.as_ref();
                    ready.is_some_and(|ready| ready.generation != self.release_failed)
                };
                status.wait_for(another).await.is_ok()
            };
            if !timeout_at(deadline, next).await.unwrap_or(false) {
                break;
            }
            self.release_own().await;
        }
        if let Some(held) = self.held().filter(|held| !held.refused) {
            self.parts.events.may_be_held(&self.id, held.window);
        }
    }

    /// Lets go of what earlier executors may have left pressed, or waits while another session does. Nothing else reaches
    /// this executor before.
    pub(super) async fn release_lost(&mut self, negotiated: &Arc<Negotiated>) {
        let Some(mut claim) = self.parts.held.claim_or_wait(negotiated.generation).await else {
            return;
        };
        for (session, held) in std::mem::take(&mut claim.held) {
            let release = match self.introduce(&session, &held, negotiated).await {
                true => release(&self.parts.forward, &session, &held, negotiated).await,
                false => Release::Later,
            };
            let owner = Arc::clone(&held.owner);
            self.released(&session, held, release, negotiated);
            if owner.is_over() && owner.begun() == negotiated.generation {
                let sending = own_message(&session, RELEASE_PATIENCE, negotiated.generation);
                // A session that does not end dies with its executor.
                drop(self.parts.forward.end_session(&session, sending).await);
                owner.set_begun(0);
            }
        }
    }

    /// Lets this executor know the session that pressed, if it does not yet.
    async fn introduce(&self, session: &SessionId, held: &Held, negotiated: &Negotiated) -> bool {
        if held.owner.begun() == negotiated.generation {
            return true;
        }
        let sending = own_message(session, RELEASE_PATIENCE, negotiated.generation);
        let begun = self.parts.forward.begin_session(session, sending).await;
        match begun {
            // Whoever answered knows it, and that may be a successor already.
            Ok(answer) if matches!(answer.value, Answer::Done(_)) => {
                held.owner.set_begun(answer.generation);
                answer.generation == negotiated.generation
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Keeps the books of a release.
    fn released(
        &mut self,
        session: &SessionId,
        held: Held,
        release: Release,
        negotiated: &Negotiated,
    ) {
        match release {
            Release::Done => {
                tracing::info!(session_id = %session, "a held button was released");
                self.parts.held.clear(session);
            }
            Release::Gone | Release::Refused => {
                tracing::warn!(session_id = %session, "a button may be held and cannot be released");
                let state = held.owner.happened(Happening::OutcomeUnknown);
                self.parts.events.session_state(session, state);
                self.parts.events.may_be_held(session, held.window);
                if release == Release::Refused && !held.owner.is_over() {
                    let held = Held {
                        generation: negotiated.generation,
                        refused: true,
                        ..held
                    };
                    self.parts.held.note(session, held);
                } else {
                    self.parts.held.clear(session);
                }
            }
            Release::Later => {
                tracing::warn!(session_id = %session, "the executor was lost before a held button was released");
                self.release_failed = negotiated.generation;
                self.parts.held.note(session, held);
            }
        }
    }
}

async fn release(
    forward: &Forward,
    session: &SessionId,
    held: &Held,
    negotiated: &Negotiated,
) -> Release {
    let sending = own_message(session, RELEASE_PATIENCE, negotiated.generation);
    let observed = forward
        .release_observe(session, held.window, negotiated, sending)
        .await;
    let snapshot = match observed {
        Ok(Answer::Done(snapshot)) => snapshot,
        Ok(Answer::Refused(refusal)) if refusal.code == DomainCode::WindowGone => {
            return Release::Gone;
        }
        Ok(Answer::Refused(_)) => return Release::Refused,
        Err(error) => return of_error(&error),
    };
    let sending = own_message(session, RELEASE_PATIENCE, negotiated.generation);
    let let_go = forward
        .release_up(session, &snapshot, held.point, negotiated, sending)
        .await;
    match let_go {
        Ok(Ending::Done) => Release::Done,
        Ok(Ending::Refused(_) | Ending::Failed(_) | Ending::Unknown(_)) => Release::Refused,
        Err(error) => of_error(&error),
    }
}

fn of_error(error: &maka_cu_host::CallError) -> Release {
    match error {
        maka_cu_host::CallError::Lifecycle(_) | maka_cu_host::CallError::Violation(_) => {
            Release::Later
        }
        // The executor keeps running and would say the same again.
        maka_cu_host::CallError::Rpc(_) => Release::Refused,
    }
}
