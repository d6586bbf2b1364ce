//! Which events a watcher may see, and how much of them.

use maka_cu_host::event::Release;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::sets::ReleaseReason;

use super::Owners;
use super::what::What;
use crate::approval::Wanted;
use crate::session::caller::{Caller, PrincipalName, Reach};

/// Who watches, and what for.
#[derive(Debug)]
pub(super) struct View {
    principal: PrincipalName,
    reach: Reach,
    /// Of sessions only this one.
    session: Option<SessionId>,
    /// It is there to approve.
    approves: bool,
}

impl View {
    pub(super) fn new(caller: &Caller, session: Option<SessionId>) -> Self {
        Self {
            principal: caller.principal.clone(),
            reach: caller.reach,
            session,
            approves: false,
        }
    }

    /// The same by somebody who is there to approve. Only role `operator` may be.
    pub(super) fn approving(self) -> Self {
        let approves = match self.reach {
            Reach::All => true,
            Reach::Own | Reach::SeeAll => false,
        };
        Self { approves, ..self }
    }

    /// Whether it can approve what this principal asks for in this session. Nobody approves their own.
    pub(super) fn approves(&self, session: &SessionId, asker: &PrincipalName) -> bool {
        self.approves && self.principal != *asker && self.sees(session, Some(asker))
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.principal == other.principal
    }

    pub(super) fn may_see_sessions_of(&self, owner: &PrincipalName) -> bool {
        match self.reach {
            Reach::SeeAll | Reach::All => true,
            Reach::Own => *owner == self.principal,
        }
    }

    /// Whether a session is within the view. One whose owner is not known any more is nobody's own.
    pub(super) fn sees(&self, session: &SessionId, owner: Option<&PrincipalName>) -> bool {
        let wanted = self.session.as_ref().is_none_or(|wanted| wanted == session);
        let allowed = match (self.reach, owner) {
            (Reach::SeeAll | Reach::All, _) => true,
            (Reach::Own, Some(owner)) => *owner == self.principal,
            (Reach::Own, None) => false,
        };
        wanted && allowed
    }

    /// The event as this watcher gets it; nothing when it does not.
    pub(super) fn shape(&self, what: &What, owners: &Owners<'_>) -> Option<What> {
        let sees = |session: &SessionId| self.sees(session, owners.of(session));
        match what {
            What::Present(_) | What::Executor(_) | What::Disposed => Some(what.clone()),
            What::Released(release) => self.release(release, sees).map(What::Released),
            What::SessionBegan(session) => sees(&session.id).then(|| what.clone()),
            What::SessionEnded(session, _) => sees(session).then(|| what.clone()),
            What::SessionState(session, _) | What::MayBeHeld(session, _) => {
                sees(session).then(|| what.clone())
            }
            What::ActionBegan(action) => sees(&action.session).then(|| what.clone()),
            What::ActionEnded(end) => sees(&end.action.session).then(|| what.clone()),
            What::Quarantine(session, _) => sees(session).then(|| what.clone()),
            What::Approval(approval) | What::ApprovalEnded(approval, _) => {
                let Wanted {
                    session, principal, ..
                } = &*approval.wanted;
                self.sees(session, Some(principal)).then(|| what.clone())
            }
        }
    }

    /// A release names no session outside the view, and does not tell by its flag that there was one.
    fn release(&self, release: &Release, sees: impl Fn(&SessionId) -> bool) -> Option<Release> {
        let sessions: Vec<_> = release
            .sessions
            .iter()
            .filter(|session| sees(session))
            .cloned()
            .collect();
        if release.reason == ReleaseReason::SessionCleared && sessions.is_empty() {
            return None;
        }
        let sees_everything = match self.reach {
            Reach::SeeAll | Reach::All => self.session.is_none(),
            Reach::Own => false,
        };
        Some(Release {
            outcome_unknown: release.outcome_unknown && (sees_everything || !sessions.is_empty()),
            sessions,
            ..release.clone()
        })
    }
}
