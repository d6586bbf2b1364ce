//! Letting go of what may be held (design.md §5.5): an observation of the window and one `mouse_up`, through the door of
//! the gateway's own messages, because no policy may keep a button down.

use std::sync::Arc;

use maka_cu_host::status::Negotiated;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::results::Answer;
use maka_cu_protocol::results::dispatch::Ending;

use super::{Core, RELEASE_PATIENCE, own_message};
use crate::forward::Forward;
use crate::session::held::Held;
use crate::session::state::Happening;

/// How a release ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Release {
    /// The button is up.
    Done,
    /// The window is gone or the executor would not: the button may be down, and nobody can do anything about it.
    MayBeHeld,
    /// The executor was lost: the next one has to.
    Later,
}

impl Core {
    /// What an action of this session may have left down and this session has to let go of: by the executor that runs,
    /// and not tried in vain before.
    pub(crate) fn held(&self) -> Option<Held> {
        let runs = self.generation == self.parts.forward.generation();
        let held = self.parts.held.of(&self.id, self.generation);
        held.filter(|_| runs && self.release_failed != self.generation)
    }

    /// Lets go of what this session holds: it ends, it was stopped, or the connection that pressed is gone.
    pub(crate) async fn release_own(&mut self) {
        let Some(held) = self.held() else { return };
        let negotiated = self.parts.forward.negotiated();
        let Some(negotiated) = negotiated.filter(|now| now.generation == held.generation) else {
            // Its executor is lost: whoever comes first on the next one lets go.
            return;
        };
        let release = release(&self.parts.forward, &self.id, &held, &negotiated).await;
        match release {
            Release::Done | Release::MayBeHeld => self.parts.held.clear(&self.id),
            // Left to the next executor.
            Release::Later => self.release_failed = held.generation,
        }
        let id = self.id.clone();
        self.released(&id, &held, release);
    }

    /// Lets go of what earlier executors may have left pressed, or waits while another session does. Nothing else reaches
    /// this executor before.
    pub(super) async fn release_lost(&mut self, negotiated: &Arc<Negotiated>) {
        let Some(claim) = self.parts.held.claim(negotiated.generation) else {
            return self.parts.held.released().await;
        };
        for (session, held) in &claim.held {
            let release = match self.introduce(session, held, negotiated).await {
                true => release(&self.parts.forward, session, held, negotiated).await,
                false => Release::Later,
            };
            match release {
                Release::Done => {}
                Release::MayBeHeld => {
                    let state = held.owner.happened(Happening::OutcomeUnknown);
                    self.parts.events.session_state(session, state);
                }
                Release::Later => self.parts.held.note(session, held.clone()),
            }
            self.released(session, held, release);
            if held.owner.is_over() && held.owner.begun() == negotiated.generation {
                let sending = own_message(session, RELEASE_PATIENCE);
                // A session that does not end dies with its executor.
                drop(self.parts.forward.end_session(session, sending).await);
                held.owner.set_begun(0);
            }
        }
    }

    /// Lets this executor know the session that pressed, if it does not yet.
    async fn introduce(&self, session: &SessionId, held: &Held, negotiated: &Negotiated) -> bool {
        if held.owner.begun() == negotiated.generation {
            return true;
        }
        let sending = own_message(session, RELEASE_PATIENCE);
        let begun = self.parts.forward.begin_session(session, sending).await;
        let known = begun.is_ok_and(|answer| matches!(answer.value, Answer::Done(_)));
        if known {
            held.owner.set_begun(negotiated.generation);
        }
        known
    }

    fn released(&self, session: &SessionId, held: &Held, release: Release) {
        match release {
            Release::Done => tracing::info!(session_id = %session, "a held button was released"),
            Release::MayBeHeld => {
                tracing::warn!(session_id = %session, "a button may be held and cannot be released");
                self.parts.events.may_be_held(session, held.window);
            }
            Release::Later => {
                tracing::warn!(session_id = %session, "the executor was lost before a held button was released");
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
    let sending = own_message(session, RELEASE_PATIENCE);
    let observed = forward
        .release_observe(session, held.window, negotiated, sending)
        .await;
    let snapshot = match observed {
        Ok(Answer::Done(snapshot)) => snapshot,
        Ok(Answer::Refused(_)) => return Release::MayBeHeld,
        Err(error) => return of_error(&error),
    };
    let sending = own_message(session, RELEASE_PATIENCE);
    let let_go = forward
        .release_up(session, &snapshot, held.point, negotiated, sending)
        .await;
    match let_go {
        Ok(Ending::Done) => Release::Done,
        Ok(Ending::Refused(_) | Ending::Failed(_) | Ending::Unknown(_)) => Release::MayBeHeld,
        Err(error) => of_error(&error),
    }
}

fn of_error(error: &maka_cu_host::CallError) -> Release {
    match error {
        maka_cu_host::CallError::Lifecycle(_) | maka_cu_host::CallError::Violation(_) => {
            Release::Later
        }
        // The executor keeps running and would say the same again.
        maka_cu_host::CallError::Rpc(_) => Release::MayBeHeld,
    }
}
