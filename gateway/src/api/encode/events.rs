//! Events. Everything in them is an id, a number, a member of a closed set or a fixed sentence.

use maka_cu_host::event::Release;
use maka_cu_protocol::ids::SessionId;
use maka_proto::v1::{self, event::Event as Message};

use super::{approval, scalar, status};
use crate::events::what::{
    Action, ActionEnd, ActionKind, EndReason, Event, ExecutorStatus, LiveSession, Present, What,
};

/// One event.
#[must_use]
pub(crate) fn event(event: Event) -> v1::Event {
    let message = match event.what {
        What::Present(present) => Message::Current(current(&present)),
        What::Executor(executor) => Message::Executor(executor_status(&executor)),
        What::Released(release) => Message::Released(released(&release)),
        What::SessionBegan(session) => Message::SessionBegan(began(&session)),
        What::SessionEnded(session, reason) => Message::SessionEnded(v1::SessionEnded {
            session_id: session.as_str().to_owned(),
            reason: end_reason(reason).into(),
        }),
        What::ActionBegan(action) => Message::ActionBegan(action_began(&action)),
        What::ActionEnded(end) => Message::ActionEnded(action_ended(&end)),
        What::SessionState(session, state) => Message::SessionState(v1::SessionStateChanged {
            session_id: session.as_str().to_owned(),
            state: scalar::session_state(state).into(),
        }),
        What::MayBeHeld(session, window) => Message::MayBeHeld(v1::MayBeHeld {
            session_id: session.as_str().to_owned(),
            target_window: Some(scalar::window(window)),
        }),
        What::Approval(approval) => Message::Approval(approval::approval(&approval)),
        What::ApprovalEnded(approval, why) => Message::ApprovalEnded(v1::ApprovalEnded {
            approval_id: approval.id.as_str().to_owned(),
            session_id: approval.wanted.session.as_str().to_owned(),
            reason: approval::end(why).into(),
        }),
        What::Quarantine(session, quarantined) => Message::Quarantine(v1::QuarantineChanged {
            session_id: session.as_str().to_owned(),
            quarantined,
        }),
        What::Disposed => Message::Disposed(v1::Disposed {}),
    };
    v1::Event {
        sequence: event.sequence,
        at_unix_ms: scalar::unix_ms(event.at_unix_ms),
        lost: event.lost,
        event: Some(message),
    }
}

fn current(present: &Present) -> v1::CurrentState {
    v1::CurrentState {
        executor: Some(executor_status(&present.executor)),
        sessions: present.sessions.iter().map(began).collect(),
        actions: present.actions.iter().map(action_began).collect(),
        approvals: present.approvals.iter().map(approval::approval).collect(),
    }
}

fn executor_status(executor: &ExecutorStatus) -> v1::ExecutorStatus {
    v1::ExecutorStatus {
        state: scalar::executor_state(executor.state).into(),
        generation: executor.generation,
        restart_attempts: executor.restart_attempts,
        last_failure: executor.last_failure.as_deref().map(status::failure),
    }
}

fn released(release: &Release) -> v1::Release {
    v1::Release {
        generation: release.generation,
        generation_released: release.generation_released,
        reason: scalar::release_reason(release.reason).into(),
        session_ids: release
            .sessions
            .iter()
            .map(|session: &SessionId| session.as_str().to_owned())
            .collect(),
        outcome_unknown: release.outcome_unknown,
    }
}

fn began(session: &LiveSession) -> v1::SessionBegan {
    v1::SessionBegan {
        session_id: session.id.as_str().to_owned(),
        principal: session.principal.as_str().to_owned(),
        began_unix_ms: scalar::unix_ms(session.began_unix_ms),
        state: scalar::session_state(session.state).into(),
        quarantined: session.quarantined,
    }
}

const fn end_reason(reason: EndReason) -> v1::SessionEndReason {
    match reason {
        EndReason::Caller => v1::SessionEndReason::Caller,
        EndReason::Idle => v1::SessionEndReason::Idle,
        EndReason::Operator => v1::SessionEndReason::Operator,
        EndReason::Shutdown => v1::SessionEndReason::Shutdown,
    }
}

const fn action_kind(kind: ActionKind) -> v1::ActionKind {
    match kind {
        ActionKind::Click => v1::ActionKind::Click,
        ActionKind::Drag => v1::ActionKind::Drag,
        ActionKind::Scroll => v1::ActionKind::Scroll,
        ActionKind::Move => v1::ActionKind::Move,
        ActionKind::Other => v1::ActionKind::Other,
    }
}

fn action_began(action: &Action) -> v1::ActionBegan {
    v1::ActionBegan {
        action_id: action.id.as_str().to_owned(),
        session_id: action.session.as_str().to_owned(),
        kind: action_kind(action.kind).into(),
        point_screen: action.point.map(scalar::screen_point),
        target_window: action.window.map(scalar::window),
        keep_elevated: action.keep_elevated(),
    }
}

fn action_ended(end: &ActionEnd) -> v1::ActionEnded {
    let action = &end.action;
    v1::ActionEnded {
        action_id: action.id.as_str().to_owned(),
        session_id: action.session.as_str().to_owned(),
        kind: action_kind(action.kind).into(),
        outcome: scalar::outcome(end.outcome).into(),
        point_screen: action.point.map(scalar::screen_point),
        target_window: action.window.map(scalar::window),
        keep_elevated: action.keep_elevated(),
        pulse: end.pulse(),
    }
}
