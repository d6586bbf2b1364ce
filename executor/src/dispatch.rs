//! `dispatch.*`: acting on what was observed (spec §3.6–3.9).
//!
//! The order of the checks is the contract (§3.6.1): everything up to the commit point is free of effects and refuses;
//! after it the true outcome is reported, whatever happens to the request, the session or the window.

use maka_cu_protocol::ids::{SessionId, ToolCallId};
use maka_cu_protocol::params::{DispatchElementParams, DispatchKeyParams, DispatchPointParams};
use maka_cu_protocol::results::dispatch::DispatchAnswer;
use maka_cu_protocol::sets::Tier;

use crate::executor::{Executor, Fault};
use crate::reply::Reply;
use crate::server::ticket::Ticket;
use crate::session::SessionHandle;
use route::Terms;

pub mod binding;
pub mod element;
pub mod ending;
pub mod held;
pub mod key;
pub mod occlusion;
pub mod plan;
pub mod point;
pub mod route;
pub mod settle;
pub mod sight;
pub mod verdict;

/// `dispatch.element`.
#[must_use]
pub fn element(executor: &Executor, params: &DispatchElementParams, ticket: &Ticket) -> Reply {
    let (id, tier) = (&params.tool_call_id, Tier::Ax);
    answer(executor, &params.session, id, tier, |session| {
        element::attempt(executor, session, params, Terms::ANY, ticket)
    })
}

/// `dispatch.key`.
#[must_use]
pub fn key(executor: &Executor, params: &DispatchKeyParams, ticket: &Ticket) -> Reply {
    let (id, tier) = (&params.tool_call_id, Tier::CoordinateBackground);
    answer(executor, &params.session, id, tier, |session| {
        key::attempt(executor, session, params, Terms::ANY, ticket)
    })
}

/// `dispatch.point`.
#[must_use]
pub fn point(executor: &Executor, params: &DispatchPointParams, ticket: &Ticket) -> Reply {
    let (id, tier) = (&params.tool_call_id, Tier::CoordinateBackground);
    answer(executor, &params.session, id, tier, |session| {
        point::attempt(executor, session, &params.into(), Terms::ANY, ticket)
    })
}

/// Runs an attempt of a live session; a refusal becomes the full arm of a dispatch.
fn answer(
    executor: &Executor,
    session: &SessionId,
    tool_call_id: &ToolCallId,
    tier: Tier,
    attempt: impl FnOnce(&SessionHandle) -> Result<DispatchAnswer, Fault>,
) -> Reply {
    let found = executor.sessions().find(session);
    let session = match found {
        Ok(session) => session,
        Err(gone) => return Fault::from(gone).into(),
    };
    match attempt(&session) {
        Ok(answer) => Reply::dispatched(&answer),
        Err(Fault::Refused(refusal)) => {
            tracing::debug!(code = %refusal.code, "dispatch refused");
            Reply::dispatched(&DispatchAnswer::refused(
                tool_call_id.clone(),
                tier,
                refusal,
            ))
        }
        Err(Fault::Unusable(error)) => Reply::Error(error),
    }
}
