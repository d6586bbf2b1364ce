//! The events themselves, as values without any text of an application.

use std::sync::Arc;

use maka_cu_host::Status;
use maka_cu_host::event::Release;
use maka_cu_host::failure::LastFailure;
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::{SessionId, ToolCallId, WindowKey};
use maka_cu_protocol::sets::{Outcome, ServiceState};

use crate::approval::{Approval, ApprovalEnd};
use crate::session::caller::PrincipalName;
use crate::session::state::SessionState;

/// One event of one watcher.
#[derive(Clone, Debug)]
pub struct Event {
    /// Counts the watcher's events from 1, the lost ones included.
    pub sequence: u64,
    /// When it was told, in milliseconds since the Unix epoch.
    pub at_unix_ms: u64,
    /// Events that were lost just before it.
    pub lost: u64,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// Nothing; this is how things are.
    Present(Box<Present>),
    /// The executor's status changed.
    Executor(ExecutorStatus),
    /// A generation or a session was released.
    Released(Release),
    /// A session began.
    SessionBegan(LiveSession),
    /// A session ended.
    SessionEnded(SessionId, EndReason),
    /// An action is about to be sent.
    ActionBegan(Action),
    /// It ended.
    ActionEnded(ActionEnd),
    /// What a session may do changed.
    SessionState(SessionId, SessionState),
    /// A button of this session may be down in this window and cannot be let go of.
    MayBeHeld(SessionId, WindowKey),
    /// A person is asked to approve an action, or somebody has said something to it.
    Approval(Box<Approval>),
    /// An approval, or the wish for one, is over.
    ApprovalEnded(Box<Approval>, ApprovalEnd),
    /// A session was closed for actions by a policy, or opened again by an operator.
    Quarantine(SessionId, bool),
    /// The gateway has ended everything.
    Disposed,
}

/// How things are, as far as one watcher may see it.
#[derive(Clone, Debug)]
pub struct Present {
    /// The executor.
    pub executor: ExecutorStatus,
    /// Sessions, oldest first.
    pub sessions: Vec<LiveSession>,
    /// Actions under way.
    pub actions: Vec<Action>,
    /// Approvals that are not over.
    pub approvals: Vec<Approval>,
}

/// How the executor is.
#[derive(Clone, Debug)]
pub struct ExecutorStatus {
    /// The supervisor's state.
    pub state: ServiceState,
    /// The current or last generation; 0 before the first.
    pub generation: u64,
    /// Starts since the last stable life.
    pub restart_attempts: u32,
    /// Why it is not there, or why its last generation ended.
    pub last_failure: Option<Arc<LastFailure>>,
}

impl ExecutorStatus {
    /// No back end was chosen, and none will come.
    pub(super) const NO_BACKEND: Self = Self {
        state: ServiceState::Unavailable,
        generation: 0,
        restart_attempts: 0,
        last_failure: None,
    };
}

impl From<&Status> for ExecutorStatus {
    fn from(status: &Status) -> Self {
        Self {
            state: status.state,
            generation: status.generation,
            restart_attempts: status.restart_attempts,
            last_failure: status.last_failure.clone(),
        }
    }
}

/// A session that has not ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LiveSession {
    /// Its id.
    pub id: SessionId,
    /// Who began it.
    pub principal: PrincipalName,
    /// When, in milliseconds since the Unix epoch.
    pub began_unix_ms: u64,
    /// What it may do.
    pub state: SessionState,
    /// A policy closed it for actions.
    pub quarantined: bool,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EndReason {
    /// Its owner ended it.
    Caller,
    /// Nobody used it.
    Idle,
    /// An operator who does not own it ended it.
    Operator,
    /// The gateway ends.
    Shutdown,
}

/// How an action would be shown.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ActionKind {
    /// Any click, and the press or release of a button.
    Click,
    /// From one point to another.
    Drag,
    /// A wheel.
    Scroll,
    /// The pointer moves.
    Move,
    /// Everything else.
    Other,
}

/// An action that is about to be sent, or was.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The tool call id.
    pub id: ToolCallId,
    /// Its session.
    pub session: SessionId,
    /// How it would be shown.
    pub kind: ActionKind,
    /// Where, as the quoted snapshot has it.
    pub point: Option<ScreenPoint>,
    /// The window it acts on.
    pub window: Option<WindowKey>,
}

impl Action {
    /// Whether there is no window to show it in.
    #[must_use]
    pub const fn keep_elevated(&self) -> bool {
        self.window.is_none()
    }
}

/// An action that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionEnd {
    /// What ended; its point is now where it went. An action that did not succeed has none, even when it is known: whatever
    /// was shown for it goes away.
    pub action: Action,
    /// How.
    pub outcome: Outcome,
}

impl ActionEnd {
    pub(super) fn new(action: Action, outcome: Outcome, point: Option<ScreenPoint>) -> Self {
        let point = match outcome {
            Outcome::Ok => point,
            Outcome::Refused | Outcome::Failed | Outcome::Unknown => None,
        };
        let action = Action { point, ..action };
        Self { action, outcome }
    }

    /// Whether to show that it was done.
    #[must_use]
    pub const fn pulse(&self) -> bool {
        let is_shown = match self.action.kind {
            ActionKind::Click | ActionKind::Drag => true,
            ActionKind::Scroll | ActionKind::Move | ActionKind::Other => false,
        };
        let is_done = match self.outcome {
            Outcome::Ok => true,
            Outcome::Refused | Outcome::Failed | Outcome::Unknown => false,
        };
        is_shown && is_done && self.action.point.is_some()
    }
}
