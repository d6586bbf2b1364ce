//! `dispatch.key`: keys for the element that has the focus (spec §3.7).

use maka_cu_protocol::action::KeyAction;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::params::DispatchKeyParams;
use maka_cu_protocol::results::dispatch::DispatchAnswer;
use maka_cu_protocol::sets::{FocusPolicy, Tier};

use crate::backend::input::{InputRoute, KeyCommand};
use crate::backend::perform::PerformError;
use crate::deadline::Deadline;
use crate::dispatch::binding::{self, Bound, Quote};
use crate::dispatch::ending::{Deed, wants_rest};
use crate::dispatch::plan::{PERFORM_BUDGET, Performance};
use crate::dispatch::route::{self, Terms};
use crate::dispatch::sight::{self, Sight};
use crate::dispatch::verdict::Verdict;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::server::ticket::Ticket;
use crate::session::SessionHandle;

/// Checks, focuses where that is asked for, types, looks, judges.
///
/// # Errors
/// A promise that no key was sent.
pub fn attempt(
    executor: &Executor,
    session: &SessionHandle,
    params: &DispatchKeyParams,
    terms: Terms,
    ticket: &Ticket,
) -> Result<DispatchAnswer, Fault> {
    let offered = &executor.capabilities().key_actions;
    if !offered.contains(&params.action.kind()) {
        return Err(DomainCode::UnsupportedAction.into());
    }
    let deadline = executor.deadline_of(ticket);
    let quote = Quote {
        snapshot_id: &params.snapshot_id,
        token: &params.focus_token,
        digest: &params.expect_element_digest,
    };
    let bound = binding::bind_focus(executor, session, quote, ticket, &deadline)?;
    if !bound.now.focused && params.focus_policy == FocusPolicy::Require {
        return Err(DomainCode::FocusChanged.into());
    }
    let command = match &params.action {
        KeyAction::Type { text } => KeyCommand::Type(text.clone()),
        KeyAction::Key { key, modifiers } => KeyCommand::Chord {
            key: *key,
            modifiers: modifiers.clone(),
        },
    };
    let reach =
        executor
            .backend()
            .key_reach(&bound.node, &command, &deadline.at_most(LIST_BUDGET))?;
    let route = route::choose(reach, executor.host().allow_global_pointer)?;
    terms.check(route.path())?;
    let after = params.observe_after.as_ref();
    let sight = before(
        executor,
        &params.action,
        &bound,
        wants_rest(after),
        &deadline,
    );
    route::keep_clear(executor, &deadline.at_most(LIST_BUDGET))?;
    // A focus that is written is an effect, although no key was sent yet.
    ticket.commit()?;
    let gesture = deadline.at_most(PERFORM_BUDGET);
    if !bound.now.focused {
        acquire(executor, &bound, route, &gesture)?;
    }
    let done = executor
        .backend()
        .keys(&bound.node, &command, route, &gesture);
    Deed {
        executor,
        session,
        snapshot: &bound.snapshot,
        node: Some(&bound.node),
        tool_call_id: &params.tool_call_id,
        tier: Tier::CoordinateBackground,
        observe_after: after,
    }
    .conclude(Performance::of_first(done, &gesture), sight, &deadline)
}

/// Gives the element the focus; whatever does not end with the focus there is `focus_changed`.
fn acquire(
    executor: &Executor,
    bound: &Bound,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<(), Fault> {
    match executor.backend().focus(&bound.node, route, deadline) {
        Ok(true) => Ok(()),
        Ok(false)
        | Err(
            PerformError::NotActionable
            | PerformError::TimedOut
            | PerformError::Refused { .. }
            | PerformError::Unknown { .. },
        ) => Err(DomainCode::FocusChanged.into()),
    }
}

/// What the verdict will be about: typed text reads back, a key shows in the window if anywhere (spec §6.5).
fn before(
    executor: &Executor,
    action: &KeyAction,
    bound: &Bound,
    wants_rest: bool,
    deadline: &Deadline,
) -> Sight {
    match action {
        KeyAction::Type { text } => Sight::Value {
            before: bound.now.value.clone(),
            requested: text.clone(),
        },
        KeyAction::Key { .. } if wants_rest => {
            Sight::Window(sight::look(executor, &bound.snapshot, deadline))
        }
        KeyAction::Key { .. } => Sight::Nothing(Verdict::NONE),
    }
}
