//! From a quoted snapshot to an element or a point that is provably still the same one (spec §3.6.1, §3.8, §4.4).

use std::sync::Arc;
use std::time::{Duration, Instant};

use maka_cu_protocol::action::PointAction;
use maka_cu_protocol::digest::{changed_inputs, element_digest};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::{
    ImagePoint, ScreenPoint, ScreenRect, WindowPoint, WindowRect, image_to_window, window_to_screen,
};
use maka_cu_protocol::ids::{Digest, ElementToken, SnapshotId};
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::sets::{OcclusionPolicy, Strictness};

use crate::backend::desktop::WindowInfo;
use crate::backend::tree::{NodeRef, RawNode};
use crate::deadline::Deadline;
use crate::dispatch::occlusion;
use crate::dispatch::point::PointRequest;
use crate::dispatch::settle::Look;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::observe::check_access;
use crate::observe::tree::digest_of;
use crate::server::ticket::{Aborted, Ticket};
use crate::session::SessionHandle;
use crate::snapshot::{Home, Snapshot, digest_input};

/// Time to read the target again.
const READ_BUDGET: Duration = Duration::from_secs(4);

/// An element that passed every check before the commit point.
#[derive(Debug)]
pub struct Bound {
    /// The quoted snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The element's reference.
    pub node: NodeRef,
    /// The element as it is now.
    pub now: RawNode,
    /// Whether it is the root of the window's tree and so stands for the window.
    pub is_root: bool,
    /// Where its window is now.
    pub bounds: ScreenRect,
}

/// What a request quotes of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct Quote<'a> {
    /// The frame.
    pub snapshot_id: &'a SnapshotId,
    /// The element in it.
    pub token: &'a ElementToken,
    /// What the caller saw of it.
    pub digest: &'a Digest,
}

/// How much beyond the element itself must be as it was.
#[derive(Debug, Clone, Copy)]
pub struct Demands {
    /// The element alone or its whole window.
    pub strictness: Strictness,
    /// Which windows must not cover its centre.
    pub occlusion: OcclusionPolicy,
}

/// Runs the checks of an element action in their order, within the deadline of the request.
///
/// # Errors
/// The first check that fails.
pub fn bind(
    executor: &Executor,
    session: &SessionHandle,
    quote: Quote<'_>,
    demands: Demands,
    ticket: &Ticket,
    deadline: &Deadline,
) -> Result<Bound, Fault> {
    let bound = bind_element(executor, session, quote, ticket, deadline, |facts| {
        let Facts {
            snapshot,
            home,
            now,
            window,
            windows,
        } = facts;
        match demands.strictness {
            Strictness::Element => {}
            Strictness::Window => {
                let look = look_at(executor, snapshot, window, &deadline.at_most(READ_BUDGET));
                if !look.agrees_with(Look::Digest(snapshot.window_digest)) {
                    return Err(DomainCode::WindowChanged.into());
                }
            }
        }
        match (now.frame, home) {
            (Some(frame), Home::Window) => check_occlusion(
                executor,
                frame,
                window,
                windows,
                demands.occlusion,
                &deadline.at_most(LIST_BUDGET),
            ),
            (None, _) | (Some(_), Home::Menu) => Ok(()),
        }
    })?;
    if !bound.now.enabled {
        return Err(DomainCode::ElementDisabled.into());
    }
    Ok(bound)
}

/// Runs the checks up to E3, which is all that keys need before the focus (spec §3.7).
///
/// # Errors
/// The first check that fails.
pub fn bind_focus(
    executor: &Executor,
    session: &SessionHandle,
    quote: Quote<'_>,
    ticket: &Ticket,
    deadline: &Deadline,
) -> Result<Bound, Fault> {
    bind_element(executor, session, quote, ticket, deadline, |_| Ok(()))
}

/// What is known of an element once it has proved to be the same.
struct Facts<'a> {
    snapshot: &'a Snapshot,
    home: Home,
    now: &'a RawNode,
    window: &'a WindowInfo,
    windows: &'a [WindowInfo],
}

fn bind_element(
    executor: &Executor,
    session: &SessionHandle,
    quote: Quote<'_>,
    ticket: &Ticket,
    deadline: &Deadline,
    further: impl FnOnce(&Facts<'_>) -> Result<(), Fault>,
) -> Result<Bound, Fault> {
    let backend = executor.backend();
    let within = |budget| deadline.at_most(budget);
    let snapshot = executor
        .sessions()
        .resolve(session, quote.snapshot_id, Instant::now())?;
    let (home, recorded) = snapshot
        .element(quote.token)
        .ok_or(DomainCode::ElementUnknown)?;
    if recorded.digest != *quote.digest {
        return Err(DomainCode::ElementDigestMismatch.into());
    }
    if ticket.is_aborted() {
        return Err(Aborted.into());
    }
    check_access(executor, &within(LIST_BUDGET))?;
    let windows = backend.windows(&within(LIST_BUDGET))?;
    let window = find(&windows, &snapshot)?;
    // E1: the reference still answers.
    let now = read_one(executor, &recorded.node, &within(READ_BUDGET))?
        .ok_or(DomainCode::ElementReleased)?;
    // E2: by the same process.
    check_process(executor, &snapshot)?;
    // E3: and says of itself what it said then.
    let input = digest_input(&now, home);
    if element_digest(&input) != recorded.digest {
        let changed = changed_inputs(&recorded.input, &input);
        return Err(Refusal::changed(DomainCode::ElementChanged, changed).into());
    }
    further(&Facts {
        snapshot: &snapshot,
        home,
        now: &now,
        window,
        windows: &windows,
    })?;
    Ok(Bound {
        node: recorded.node.clone(),
        is_root: snapshot.is_root(quote.token),
        bounds: window.bounds,
        now,
        snapshot,
    })
}

/// A point of a window that passed every check before the choice of a route.
#[derive(Debug)]
pub struct BoundPoint {
    /// The quoted snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The window as it is now.
    pub window: WindowInfo,
    /// Every window, front to back.
    pub windows: Vec<WindowInfo>,
    /// Where the input goes.
    pub at: WindowPoint,
    /// Where a drag starts.
    pub from: Option<WindowPoint>,
    /// The window's digest a moment ago: equal to the recorded one.
    pub look: Look,
}

/// What a gesture quotes of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct PointQuote<'a> {
    /// The frame.
    pub snapshot_id: &'a SnapshotId,
    /// What the caller saw of its window; `None` takes what was recorded. The window is read again all the same.
    pub window_digest: Option<&'a Digest>,
}

/// A place in a window, as the caller names it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// A pixel of the quoted picture.
    Image(ImagePoint),
    /// A point of the screen. It needs no picture.
    Screen(ScreenPoint),
}

impl Place {
    /// The same place from the window's corner. The window lies where it lay when the snapshot was taken, which its digest
    /// has proved.
    fn in_window(self, image_scale: Option<f64>, bounds: ScreenRect) -> Result<WindowPoint, Fault> {
        let place = match self {
            Self::Image(point) => image_scale.and_then(|scale| image_to_window(point, scale).ok()),
            Self::Screen(point) => {
                WindowPoint::try_new(point.x() - bounds.x(), point.y() - bounds.y()).ok()
            }
        };
        place.ok_or(DomainCode::InvalidPoint.into())
    }
}

/// Runs the checks of spec §3.8 up to "point inside window".
///
/// # Errors
/// The first check that fails.
pub fn bind_point(
    executor: &Executor,
    session: &SessionHandle,
    request: &PointRequest<'_>,
    ticket: &Ticket,
    deadline: &Deadline,
) -> Result<BoundPoint, Fault> {
    let snapshot =
        executor
            .sessions()
            .resolve(session, request.quote.snapshot_id, Instant::now())?;
    let quoted = request.quote.window_digest;
    if quoted.is_some_and(|digest| *digest != snapshot.window_digest) {
        return Err(DomainCode::ElementDigestMismatch.into());
    }
    if ticket.is_aborted() {
        return Err(Aborted.into());
    }
    check_access(executor, &deadline.at_most(LIST_BUDGET))?;
    let windows = executor.backend().windows(&deadline.at_most(LIST_BUDGET))?;
    let window = find(&windows, &snapshot)?.clone();
    check_process(executor, &snapshot)?;
    let look = look_at(executor, &snapshot, &window, &deadline.at_most(READ_BUDGET));
    if !look.agrees_with(Look::Digest(snapshot.window_digest)) {
        return Err(DomainCode::WindowChanged.into());
    }
    let place = |place: Place| place.in_window(snapshot.image_scale, window.bounds);
    let at = place(request.at)?;
    let inside =
        window_to_screen(at, window.bounds).is_ok_and(|point| window.bounds.contains(point));
    if !inside {
        return Err(DomainCode::InvalidPoint.into());
    }
    let from = match (request.action, request.from) {
        (PointAction::Drag, None) => return Err(DomainCode::InvalidPoint.into()),
        (PointAction::Drag, Some(start)) => Some(place(start)?),
        (
            PointAction::Move
            | PointAction::LeftClick { .. }
            | PointAction::RightClick
            | PointAction::MiddleClick
            | PointAction::DoubleClick
            | PointAction::TripleClick
            | PointAction::MouseDown
            | PointAction::MouseUp
            | PointAction::Scroll { .. },
            _,
        ) => None,
    };
    Ok(BoundPoint {
        snapshot,
        window,
        windows,
        at,
        from,
        look,
    })
}

fn find<'a>(windows: &'a [WindowInfo], snapshot: &Snapshot) -> Result<&'a WindowInfo, Fault> {
    windows
        .iter()
        .find(|window| window.key == snapshot.window)
        .ok_or(DomainCode::WindowGone.into())
}

/// E2: the process that was observed is the one that is there.
fn check_process(executor: &Executor, snapshot: &Snapshot) -> Result<(), Fault> {
    let start = executor.backend().process_start(snapshot.window.pid);
    match start == Some(snapshot.process_start) {
        true => Ok(()),
        false => Err(DomainCode::ProcessReplaced.into()),
    }
}

/// One node, read again; `None` when it no longer answers.
///
/// # Errors
/// What the desktop refuses with.
pub fn read_one(
    executor: &Executor,
    node: &NodeRef,
    deadline: &Deadline,
) -> Result<Option<RawNode>, Fault> {
    let mut nodes = executor
        .backend()
        .read_nodes(std::slice::from_ref(node), deadline)?;
    Ok(nodes.pop().flatten())
}

/// The window digest over the elements that a snapshot recorded, as they are now. An element that cannot be read any more
/// drops out and so changes the digest (spec §4.5).
#[must_use]
pub fn look_at(
    executor: &Executor,
    snapshot: &Snapshot,
    window: &WindowInfo,
    deadline: &Deadline,
) -> Look {
    let nodes: Vec<NodeRef> = snapshot
        .elements
        .iter()
        .map(|element| element.node.clone())
        .collect();
    match executor.backend().read_nodes(&nodes, deadline) {
        Ok(nodes) => {
            let digest = |node: &RawNode| element_digest(&digest_input(node, Home::Window));
            Look::Digest(digest_of(nodes.iter().flatten().map(digest), window))
        }
        Err(error) => {
            tracing::debug!(%error, "the window could not be read again");
            Look::Unreadable
        }
    }
}

/// Refuses when another window covers the centre of the frame.
fn check_occlusion(
    executor: &Executor,
    frame: WindowRect,
    window: &WindowInfo,
    windows: &[WindowInfo],
    policy: OcclusionPolicy,
    deadline: &Deadline,
) -> Result<(), Fault> {
    // A centre that is no finite point lies nowhere, so nothing covers it.
    match frame.center() {
        Some(center) => check_uncovered(executor, center, window, windows, policy, deadline),
        None => Ok(()),
    }
}

/// Refuses when another window that the policy counts covers a point of `window`.
///
/// # Errors
/// `window_occluded`.
pub fn check_uncovered(
    executor: &Executor,
    point: WindowPoint,
    window: &WindowInfo,
    windows: &[WindowInfo],
    policy: OcclusionPolicy,
    deadline: &Deadline,
) -> Result<(), Fault> {
    if policy == OcclusionPolicy::None {
        return Ok(());
    }
    let displays = executor.backend().displays(deadline)?;
    let Ok(point) = window_to_screen(point, window.bounds) else {
        return Ok(());
    };
    if occlusion::is_covered(point, window, windows, &displays, policy) {
        return Err(DomainCode::WindowOccluded.into());
    }
    Ok(())
}
