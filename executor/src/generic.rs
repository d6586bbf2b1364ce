//! `host.dispatch` and `host.snapshot`: the generic methods, routed onto the specific ones (spec §9).
//!
//! What a caller demands here, tier and path, is held to before anything is done, and what it wishes, effect and
//! verification, changes nothing. A session that was never seen begins by itself. A dispatch is bound to a snapshot as
//! every other is: the quoted one, or the only live one of the process.

use std::time::Instant;

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::generic::{
    GenericAnchor, GenericDispatchParams, GenericPoint, GenericRoute, GenericSnapshot,
    GenericSnapshotParams, GenericTarget, WindowImage,
};
use maka_cu_protocol::ids::{SessionId, SnapshotId, WindowKey};
use maka_cu_protocol::params::{
    DispatchElementParams, DispatchKeyParams, ObserveParams, ObserveTarget, ScreenCaptureParams,
};
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::results::dispatch::DispatchAnswer;
use maka_cu_protocol::rpc::RpcError;
use maka_cu_protocol::sets::{Path, Tier};

use crate::backend::desktop::WindowInfo;
use crate::dispatch::binding::{Place, PointQuote};
use crate::dispatch::point::PointRequest;
use crate::dispatch::route::Terms;
use crate::dispatch::{element, key, point};
use crate::executor::{Executor, Fault, LIST_BUDGET, now_ms};
use crate::observe::{self, check_access, picture};
use crate::reply::Reply;
use crate::screen;
use crate::server::ticket::{Aborted, Ticket};
use crate::session::{AdoptError, BeginError, SessionHandle, Sessions, SeveralLive};

/// `host.dispatch`.
#[must_use]
pub fn dispatch(executor: &Executor, params: &GenericDispatchParams, ticket: &Ticket) -> Reply {
    let mut answer = match attempt(executor, params, ticket) {
        Ok(answer) => answer,
        Err(Fault::Refused(refusal)) => {
            tracing::debug!(code = %refusal.code, "generic dispatch refused");
            DispatchAnswer::refused(params.tool_call_id.clone(), params.tier, refusal)
        }
        Err(Fault::Unusable(error)) => return Reply::Error(error),
    };
    answer.routed_to = Some(params.route.method());
    Reply::dispatched(&answer)
}

/// The path that a generic dispatch takes when it is carried out, as far as that can be told without a look.
#[must_use]
pub const fn path_of(params: &GenericDispatchParams) -> Path {
    match (params.path, &params.route) {
        (Some(path), _) => path,
        (None, GenericRoute::Element { action, .. }) => element::path_of(action),
        (None, GenericRoute::Key { .. } | GenericRoute::Point { .. }) => Path::CgEventPid,
    }
}

/// The window that a generic dispatch is about, to choose a lane.
#[must_use]
pub fn window_of(sessions: &Sessions, params: &GenericDispatchParams) -> Option<WindowKey> {
    match &params.anchor {
        GenericAnchor::Snapshot(snapshot_id) => sessions.window_of(&params.session, snapshot_id),
        GenericAnchor::OnlyLiveOf(pid) => sessions.only_window_of(&params.session, *pid),
    }
}

/// An `Err` promises that nothing was dispatched.
fn attempt(
    executor: &Executor,
    params: &GenericDispatchParams,
    ticket: &Ticket,
) -> Result<DispatchAnswer, Fault> {
    let session = adopt(executor, &params.session, ticket)?;
    check_demands(params, executor.host().allow_global_pointer)?;
    let snapshot_id = anchor(executor, &session, &params.anchor)?;
    let terms = Terms::only(params.path);
    match &params.route {
        GenericRoute::Element {
            token,
            expect_digest,
            strictness,
            occlusion,
            action,
        } => {
            let specific = DispatchElementParams {
                session: params.session.clone(),
                snapshot_id,
                tool_call_id: params.tool_call_id.clone(),
                element_token: token.clone(),
                expect_element_digest: *expect_digest,
                strictness: *strictness,
                occlusion_policy: *occlusion,
                action: action.clone(),
                observe_after: params.observe_after.clone(),
            };
            element::attempt(executor, &session, &specific, terms, ticket)
        }
        GenericRoute::Key {
            focus_token,
            expect_digest,
            policy,
            action,
        } => {
            let specific = DispatchKeyParams {
                session: params.session.clone(),
                snapshot_id,
                tool_call_id: params.tool_call_id.clone(),
                focus_token: focus_token.clone(),
                expect_element_digest: *expect_digest,
                focus_policy: *policy,
                action: action.clone(),
                observe_after: params.observe_after.clone(),
            };
            key::attempt(executor, &session, &specific, terms, ticket)
        }
        GenericRoute::Point {
            point: place,
            expect_window_digest,
            occlusion,
            action,
        } => {
            let (at, from) = places(*place);
            let specific = PointRequest {
                tool_call_id: &params.tool_call_id,
                quote: PointQuote {
                    snapshot_id: &snapshot_id,
                    window_digest: expect_window_digest.as_ref(),
                },
                action: *action,
                at,
                from,
                occlusion: *occlusion,
                observe_after: params.observe_after.as_ref(),
            };
            point::attempt(executor, &session, &specific, terms, ticket)
        }
    }
}

fn places(point: GenericPoint) -> (Place, Option<Place>) {
    match point {
        GenericPoint::Screen { point, start } => (Place::Screen(point), start.map(Place::Screen)),
        GenericPoint::Image { point, start } => (Place::Image(point), start.map(Place::Image)),
    }
}

/// The session, which begins when its id was never seen.
fn adopt(executor: &Executor, id: &SessionId, ticket: &Ticket) -> Result<SessionHandle, Fault> {
    // A session that nobody waits for is not begun.
    if ticket.is_aborted() {
        return Err(Aborted.into());
    }
    executor.sessions().adopt(id).map_err(|error| match error {
        AdoptError::Gone(gone) => gone.into(),
        AdoptError::Begin(BeginError::TooMany | BeginError::Live) => DomainCode::Timeout.into(),
    })
}

/// What can be refused without a look at the world: a path that is forbidden, a tier that the route does not serve.
fn check_demands(params: &GenericDispatchParams, allow_global_pointer: bool) -> Result<(), Fault> {
    match params.path {
        Some(path @ Path::CgEventGlobal) if !allow_global_pointer => {
            return Err(Refusal::would_require(path).into());
        }
        Some(
            Path::CgEventGlobal
            | Path::AxAction
            | Path::AxAttribute
            | Path::AxSelect
            | Path::CgEventPid
            | Path::SkylightPid
            | Path::None,
        )
        | None => {}
    }
    let served = match params.tier {
        Tier::Ax | Tier::CoordinateBackground => params.tier == params.route.tier(),
        Tier::SemanticBackground => false,
    };
    match served {
        true => Ok(()),
        false => Err(DomainCode::UnsupportedAction.into()),
    }
}

fn anchor(
    executor: &Executor,
    session: &SessionHandle,
    anchor: &GenericAnchor,
) -> Result<SnapshotId, Fault> {
    match anchor {
        GenericAnchor::Snapshot(snapshot_id) => Ok(snapshot_id.clone()),
        GenericAnchor::OnlyLiveOf(pid) => executor
            .sessions()
            .only_live_of(session, *pid, Instant::now())
            .map_err(|SeveralLive| RpcError::invalid_params("snapshotId"))?
            .ok_or(DomainCode::SnapshotUnknown.into()),
    }
}

/// `host.snapshot`.
///
/// # Errors
/// As `observe` or `screen.capture`, whichever it comes down to.
pub fn snapshot(
    executor: &Executor,
    params: &GenericSnapshotParams,
    ticket: &Ticket,
) -> Result<GenericSnapshot, Fault> {
    let session = adopt(executor, &params.session, ticket)?;
    params.check_limits(executor.limits())?;
    match (params.include_tree, &params.target) {
        (true, _) => tree(executor, params, ticket),
        (false, GenericTarget::Unnamed) => {
            let specific = ScreenCaptureParams {
                session: params.session.clone(),
                display_id: params.display_id.clone(),
            };
            screen::capture(executor, &specific, ticket).map(GenericSnapshot::Screen)
        }
        (false, GenericTarget::Target(_) | GenericTarget::Pid(_)) => {
            window_image(executor, &session, params, ticket)
        }
    }
}

/// The same as `observe`.
fn tree(
    executor: &Executor,
    params: &GenericSnapshotParams,
    ticket: &Ticket,
) -> Result<GenericSnapshot, Fault> {
    let deadline = executor.deadline_of(ticket);
    let target = match &params.target {
        GenericTarget::Target(target) => target.clone(),
        GenericTarget::Pid(_) | GenericTarget::Unnamed => {
            check_access(executor, &deadline.at_most(LIST_BUDGET))?;
            let windows = executor.backend().windows(&deadline.at_most(LIST_BUDGET))?;
            let window = named(executor, &params.target, &windows, ticket)?;
            ObserveTarget::Window(window.key)
        }
    };
    let specific = ObserveParams {
        include_image: params.include_image,
        max_elements: params.max_elements,
        max_depth: params.max_depth,
        max_text_chars: params.max_text_chars,
        menu: params.menu.clone(),
        ..ObserveParams::new(params.session.clone(), target)
    };
    let observed = observe::observe(executor, &specific, ticket)?;
    Ok(GenericSnapshot::Snapshot(observed.snapshot))
}

/// A picture of a window alone: no snapshot is minted and none is superseded. No control is read, so the accessibility
/// grant is not asked for.
fn window_image(
    executor: &Executor,
    session: &SessionHandle,
    params: &GenericSnapshotParams,
    ticket: &Ticket,
) -> Result<GenericSnapshot, Fault> {
    let deadline = executor.deadline_of(ticket);
    let within = || deadline.at_most(LIST_BUDGET);
    if executor.backend().screen_locked(&within())? {
        return Err(DomainCode::ScreenLocked.into());
    }
    let windows = executor.backend().windows(&within())?;
    let window = named(executor, &params.target, &windows, ticket)?;
    let displays = executor.backend().displays(&within())?;
    let (taken, captured_at) = (Instant::now(), now_ms());
    let scope = session.scope;
    let picture = picture::of_window(executor, scope, window, &displays, &within())?;
    ticket.commit()?;
    executor
        .sessions()
        .keep_capture(session, taken, picture.file)?;
    Ok(GenericSnapshot::Window(WindowImage {
        image: picture.reference,
        target: observe::describe(window),
        captured_at,
    }))
}

/// The window that a generic target names. Front to back, so that the first that fits is the frontmost.
fn named<'a>(
    executor: &Executor,
    target: &GenericTarget,
    windows: &'a [WindowInfo],
    ticket: &Ticket,
) -> Result<&'a WindowInfo, Fault> {
    let deadline = executor.deadline_of(ticket).at_most(LIST_BUDGET);
    match target {
        GenericTarget::Target(target) => observe::resolve(executor, target, windows, &deadline),
        GenericTarget::Pid(pid) => {
            let own = |window: &&WindowInfo| window.key.pid == *pid && window.layer == 0;
            let mut all = windows.iter().filter(own);
            // One that is minimised is second choice.
            let front = windows.iter().filter(own).find(|window| window.on_screen);
            if let Some(window) = front.or_else(|| all.next()) {
                return Ok(window);
            }
            // A process that runs has lost its window; one that does not run is no application.
            Err(match executor.backend().process_start(*pid) {
                Some(_) => DomainCode::WindowGone,
                None => DomainCode::AppNotFound,
            }
            .into())
        }
        GenericTarget::Unnamed => windows
            .iter()
            .find(|window| window.layer == 0 && window.on_screen)
            .ok_or(DomainCode::WindowGone.into()),
    }
}
