//! `dispatch.*`: acting on what was observed (spec §3.6–3.9).
//!
//! The order of the checks is the contract (§3.6.1): everything up to the commit point is free of effects and refuses;
//! after it the true outcome is reported, whatever happens to the request, the session or the window.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::params::{DispatchElementParams, ObserveTarget};
use maka_cu_protocol::results::dispatch::{
    DispatchAnswer, Ending, PostFrame, Settle, Verification,
};
use maka_cu_protocol::sets::{Path, SettleMode, Tier};

use crate::call::Call;
use crate::deadline::Deadline;
use crate::executor::{Executor, Fault};
use crate::observe::{self, Look};
use crate::reply::Reply;
use crate::server::ticket::Ticket;
use crate::session::SessionHandle;
use action::{Performance, Sight};
use binding::Bound;
use verdict::Verdict;

pub mod action;
pub mod binding;
pub mod occlusion;
pub mod settle;
pub mod verdict;

/// Room for the declared fields around the frame after a dispatch.
const DISPATCH_ENVELOPE_BYTES: u64 = 1024;

/// `dispatch.element`.
#[must_use]
pub fn element(executor: &Executor, params: &DispatchElementParams, ticket: &Ticket) -> Reply {
    let session = match executor.sessions().find(&params.session) {
        Ok(session) => session,
        Err(gone) => return Fault::from(gone).into(),
    };
    match attempt(executor, &session, params, ticket) {
        Ok(answer) => Reply::dispatched(&answer),
        Err(Fault::Refused(refusal)) => {
            tracing::debug!(code = %refusal.code, "dispatch refused");
            Reply::dispatched(&DispatchAnswer::refused(
                params.tool_call_id.clone(),
                Tier::Ax,
                refusal,
            ))
        }
        Err(Fault::Unusable(error)) => Reply::Error(error),
    }
}

/// A dispatch of a kind that is not offered: refused without a look at the snapshot (spec §3.8).
#[must_use]
pub fn unsupported(executor: &Executor, session: &SessionId, call: &Call) -> Reply {
    match executor.sessions().find(session) {
        Ok(_) => call.refusal_shape().refuse(DomainCode::UnsupportedAction),
        Err(gone) => Fault::from(gone).into(),
    }
}

/// Checks, performs, looks, judges. An `Err` promises that nothing was dispatched.
fn attempt(
    executor: &Executor,
    session: &SessionHandle,
    params: &DispatchElementParams,
    ticket: &Ticket,
) -> Result<DispatchAnswer, Fault> {
    if !executor
        .capabilities()
        .element_actions
        .contains(&params.action.kind())
    {
        return Err(DomainCode::UnsupportedAction.into());
    }
    let settle = params
        .observe_after
        .as_ref()
        .is_some_and(|after| after.settle == SettleMode::Quiesce);
    let deadline = executor.deadline_of(ticket);
    let bound = binding::bind(executor, session, params, ticket, &deadline)?;
    let plan = action::plan(&params.action, &bound)?;
    let sight = Sight::before(executor, &plan, &bound, settle, &deadline)?;
    // The point of no return: from here on the outcome is reported, cancelled or not. A cancel only ends the waiting: the
    // host gives the answer two seconds and then takes the whole executor for hung (spec §8.4).
    ticket.commit()?;
    let performance = action::perform(executor, &plan, &bound, &deadline);
    let answer = |ending, path| DispatchAnswer {
        ending,
        path,
        ..DispatchAnswer::refused(
            params.tool_call_id.clone(),
            Tier::Ax,
            DomainCode::DispatchRefused,
        )
    };
    let path = match performance {
        Performance::Done { path } => path,
        Performance::Aborted => return Err(DomainCode::Aborted.into()),
        Performance::NotActionable => return Err(DomainCode::ElementNotActionable.into()),
        Performance::Failed { path } => {
            return Ok(answer(
                Ending::Failed(DomainCode::DispatchRefused.into()),
                path,
            ));
        }
        Performance::Unknown { path } => {
            executor.sessions().spend(session, &bound.snapshot.id);
            return Ok(answer(
                Ending::Unknown(DomainCode::OutcomeUnknown.into()),
                path,
            ));
        }
    };
    let (verdict, settled) = sight.after(executor, &plan, &bound, &deadline);
    executor.sessions().spend(session, &bound.snapshot.id);
    let frame = frame_after(executor, session, params, &bound, &deadline);
    let Verdict {
        effect,
        method,
        observed_change,
    } = verdict;
    Ok(DispatchAnswer {
        effect,
        verification: Verification {
            method,
            observed_change,
        },
        settle: Some(settled.map_or(Settle::NOT_REQUESTED, settle::Settled::to_wire)),
        frame,
        ..answer(Ending::Done, path)
    })
}

/// The frame that was asked for. That it cannot be taken changes nothing about the outcome of the action. One that is
/// cancelled is `aborted`: nobody waits for the sight any more, only for the outcome.
fn frame_after(
    executor: &Executor,
    session: &SessionHandle,
    params: &DispatchElementParams,
    bound: &Bound,
    deadline: &Deadline,
) -> PostFrame {
    let Some(after) = &params.observe_after else {
        return PostFrame::None;
    };
    let target = ObserveTarget::Window(bound.snapshot.window);
    let mut look = Look::at(executor, target, after.include_image, after.menu.clone());
    look.envelope_bytes = DISPATCH_ENVELOPE_BYTES;
    if deadline.is_cancelled() {
        return PostFrame::Failed(DomainCode::Aborted);
    }
    let taken = observe::take(executor, session, &look, deadline);
    // Whatever a cancelled look came to, it is not the whole of the window.
    if deadline.is_cancelled() {
        return PostFrame::Failed(DomainCode::Aborted);
    }
    let registered = taken.and_then(|frame| {
        executor.sessions().register(session, frame.kept)?;
        Ok(frame.wire)
    });
    match registered {
        Ok(wire) => PostFrame::Taken(Box::new(wire)),
        Err(Fault::Refused(refusal)) => PostFrame::Failed(refusal.code),
        // The session ended meanwhile; its frames are nobody's any more.
        Err(Fault::Unusable(_)) => PostFrame::Failed(DomainCode::Aborted),
    }
}

/// The path that an action takes when it is performed.
#[must_use]
pub const fn path_of(action: &maka_cu_protocol::action::ElementAction) -> Path {
    use maka_cu_protocol::action::ElementAction;
    match action {
        ElementAction::Click { .. }
        | ElementAction::SecondaryAction { .. }
        | ElementAction::Scroll { .. } => Path::AxAction,
        ElementAction::SetValue { .. }
        | ElementAction::SelectText { .. }
        | ElementAction::MoveWindow { .. }
        | ElementAction::ResizeWindow { .. }
        | ElementAction::MinimizeWindow => Path::AxAttribute,
    }
}
