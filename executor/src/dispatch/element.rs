//! `dispatch.element`: an action of an element, without pointer or keyboard (spec §3.6).

use maka_cu_protocol::action::ElementAction;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::params::DispatchElementParams;
use maka_cu_protocol::results::dispatch::DispatchAnswer;
use maka_cu_protocol::sets::{OcclusionPolicy, Path, Tier};

use crate::deadline::Deadline;
use crate::dispatch::binding::{self, Bound, Demands, Quote};
use crate::dispatch::ending::{Deed, wants_rest};
use crate::dispatch::plan::{self, Plan};
use crate::dispatch::route::Terms;
use crate::dispatch::sight::Sight;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::server::ticket::Ticket;
use crate::session::SessionHandle;

/// Checks, performs, looks, judges.
///
/// # Errors
/// A promise that nothing was dispatched.
pub fn attempt(
    executor: &Executor,
    session: &SessionHandle,
    params: &DispatchElementParams,
    terms: Terms,
    ticket: &Ticket,
) -> Result<DispatchAnswer, Fault> {
    let action = &params.action;
    let offered = &executor.capabilities().element_actions;
    if !offered.contains(&action.kind()) {
        return Err(DomainCode::UnsupportedAction.into());
    }
    let deadline = executor.deadline_of(ticket);
    let quote = Quote {
        snapshot_id: &params.snapshot_id,
        token: &params.element_token,
        digest: &params.expect_element_digest,
    };
    let demands = Demands {
        strictness: params.strictness,
        occlusion: match action {
            // What moves the window does not care for what lies over its middle.
            ElementAction::MoveWindow { .. }
            | ElementAction::ResizeWindow { .. }
            | ElementAction::MinimizeWindow => OcclusionPolicy::None,
            ElementAction::Click { .. }
            | ElementAction::SetValue { .. }
            | ElementAction::SelectText { .. }
            | ElementAction::SecondaryAction { .. }
            | ElementAction::Scroll { .. } => params.occlusion_policy,
        },
    };
    let bound = binding::bind(executor, session, quote, demands, ticket, &deadline)?;
    let plan = plan::plan(action, &bound)?;
    check_terms(executor, terms, &plan, &bound, &deadline)?;
    let after = params.observe_after.as_ref();
    let sight = Sight::before_element(executor, action, &bound, wants_rest(after), &deadline);
    // The point of no return: from here on the outcome is reported, cancelled or not. A cancel only ends the waiting: the
    // host gives the answer two seconds and then takes the whole executor for hung (spec §8.4).
    ticket.commit()?;
    let performance = plan::perform(executor, &plan, &bound, &deadline);
    Deed {
        executor,
        session,
        snapshot: &bound.snapshot,
        node: Some(&bound.node),
        tool_call_id: &params.tool_call_id,
        tier: Tier::Ax,
        observe_after: after,
    }
    .conclude(performance, sight, &deadline)
}

/// Refuses before anything is done what would be done by another mechanism than the caller accepts.
fn check_terms(
    executor: &Executor,
    terms: Terms,
    plan: &Plan,
    bound: &Bound,
    deadline: &Deadline,
) -> Result<(), Fault> {
    if terms.accept_any() {
        return Ok(());
    }
    let deadline = deadline.at_most(LIST_BUDGET);
    let backend = executor.backend();
    match backend.mechanism(&bound.node, &plan.command, &deadline)? {
        Some(path) => terms.check(path),
        None => Err(DomainCode::ElementNotActionable.into()),
    }
}

/// The path that an action takes when it is performed.
#[must_use]
pub const fn path_of(action: &ElementAction) -> Path {
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
