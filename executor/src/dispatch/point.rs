//! `dispatch.point`: a gesture at a pixel of a quoted picture (spec §3.8).

use maka_cu_protocol::action::PointAction;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::window_to_screen;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::params::{DispatchPointParams, ObserveAfter};
use maka_cu_protocol::results::dispatch::DispatchAnswer;
use maka_cu_protocol::sets::{MouseButton, OcclusionPolicy, Tier};

use crate::backend::input::{Gesture, InputRoute, PointCommand, Reach};
use crate::deadline::Deadline;
use crate::dispatch::binding::{self, BoundPoint, Place, PointQuote};
use crate::dispatch::ending::{Deed, wants_rest};
use crate::dispatch::plan::{PERFORM_BUDGET, Performance};
use crate::dispatch::route::{self, Terms};
use crate::dispatch::sight::Sight;
use crate::dispatch::verdict::Verdict;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::server::ticket::Ticket;
use crate::session::SessionHandle;

/// A gesture that was asked for, by whichever method.
#[derive(Debug, Clone, Copy)]
pub struct PointRequest<'a> {
    /// Echoed.
    pub tool_call_id: &'a ToolCallId,
    /// The frame, and what the caller saw of it.
    pub quote: PointQuote<'a>,
    /// What to do.
    pub action: PointAction,
    /// Where.
    pub at: Place,
    /// Where a drag starts.
    pub from: Option<Place>,
    /// Which covering windows refuse.
    pub occlusion: OcclusionPolicy,
    /// What to look at afterwards.
    pub observe_after: Option<&'a ObserveAfter>,
}

impl<'a> From<&'a DispatchPointParams> for PointRequest<'a> {
    fn from(params: &'a DispatchPointParams) -> Self {
        Self {
            tool_call_id: &params.tool_call_id,
            quote: PointQuote {
                snapshot_id: &params.snapshot_id,
                window_digest: Some(&params.expect_window_digest),
            },
            action: params.action,
            at: Place::Image(params.point),
            from: params.start_point.map(Place::Image),
            occlusion: params.occlusion_policy,
            observe_after: params.observe_after.as_ref(),
        }
    }
}

/// Checks, chooses a route, performs, looks, judges.
///
/// # Errors
/// A promise that nothing was sent.
pub fn attempt(
    executor: &Executor,
    session: &SessionHandle,
    params: &PointRequest<'_>,
    terms: Terms,
    ticket: &Ticket,
) -> Result<DispatchAnswer, Fault> {
    let offered = &executor.capabilities().point_actions;
    if !offered.contains(&params.action.kind()) {
        return Err(refusal_of_unoffered(executor, &params.action));
    }
    let deadline = executor.deadline_of(ticket);
    let bound = binding::bind_point(executor, session, params, ticket, &deadline)?;
    let command = PointCommand {
        gesture: gesture(&params.action, &bound)?,
        at: bound.at,
    };
    let lists = || deadline.at_most(LIST_BUDGET);
    let route = choose_route(executor, &bound, &command, &lists())?;
    terms.check(route.path())?;
    let check = |point| {
        let (window, windows) = (&bound.window, &bound.windows);
        let policy = params.occlusion;
        binding::check_uncovered(executor, point, window, windows, policy, &lists())
    };
    check(bound.at)?;
    bound.from.map_or(Ok(()), check)?;
    let after = params.observe_after;
    let sight = match wants_rest(after) {
        true => Sight::Window(bound.look),
        false => Sight::Nothing(Verdict::ACTION_RESULT),
    };
    route::keep_clear(executor, &lists())?;
    ticket.commit()?;
    let limit = deadline.at_most(PERFORM_BUDGET);
    let key = bound.snapshot.window;
    let done = executor.backend().point(key, &command, route, &limit);
    let performance = Performance::of_first(done, &limit);
    let held = executor.held_buttons();
    held.note(session, key, &command, route, performance);
    // Ended meanwhile: whoever ended it found nothing held yet.
    if !executor.sessions().is_live(session) {
        held.release(executor.backend(), session);
    }
    Deed {
        executor,
        session,
        snapshot: &bound.snapshot,
        node: None,
        tool_call_id: params.tool_call_id,
        tier: Tier::CoordinateBackground,
        observe_after: after,
    }
    .conclude(performance, sight, &deadline)
}

/// A gesture that would be offered with the permission to move the pointer is a matter of permission; any other one does
/// not exist here.
fn refusal_of_unoffered(executor: &Executor, action: &PointAction) -> Fault {
    let known = executor.backend().capabilities().point_actions;
    match known.contains(&action.kind()) {
        true => route::choose(Reach::GlobalOnly, false)
            .err()
            .unwrap_or_else(|| DomainCode::DispatchRefused.into()),
        false => DomainCode::UnsupportedAction.into(),
    }
}

fn gesture(action: &PointAction, bound: &BoundPoint) -> Result<Gesture, Fault> {
    let click = |button, count| Gesture::Click { button, count };
    Ok(match *action {
        PointAction::Move => Gesture::Move,
        PointAction::LeftClick { count } => click(MouseButton::Left, count.get()),
        PointAction::RightClick => click(MouseButton::Right, 1),
        PointAction::MiddleClick => click(MouseButton::Middle, 1),
        PointAction::DoubleClick => click(MouseButton::Left, 2),
        PointAction::TripleClick => click(MouseButton::Left, 3),
        PointAction::MouseDown => Gesture::Press,
        PointAction::MouseUp => Gesture::Release,
        PointAction::Drag => Gesture::Drag {
            from: bound.from.ok_or(DomainCode::InvalidPoint)?,
        },
        PointAction::Scroll { direction, pages } => Gesture::Scroll { direction, pages },
    })
}

/// A move has no form that is bound to a window, and neither has a drag that starts outside of it.
fn choose_route(
    executor: &Executor,
    bound: &BoundPoint,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<InputRoute, Fault> {
    let starts_outside = bound.from.is_some_and(|from| {
        window_to_screen(from, bound.window.bounds)
            .map_or(true, |point| !bound.window.bounds.contains(point))
    });
    let reach = executor
        .backend()
        .point_reach(bound.snapshot.window, command, deadline)?;
    let reach = match reach {
        Reach::Window if starts_outside || command.gesture == Gesture::Move => Reach::GlobalOnly,
        reach @ (Reach::Window | Reach::GlobalOnly | Reach::Never) => reach,
    };
    route::choose(reach, executor.host().allow_global_pointer)
}
