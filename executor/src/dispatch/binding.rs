//! From a quoted snapshot to an element that is provably still the same one (spec §3.6.1, §4.4).

use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::digest::{changed_inputs, element_digest};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::{WindowRect, window_to_screen};
use maka_cu_protocol::params::DispatchElementParams;
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::sets::{OcclusionPolicy, Strictness};

use crate::backend::desktop::WindowInfo;
use crate::backend::tree::{NodeRef, RawNode};
use crate::deadline::Deadline;
use crate::dispatch::occlusion;
use crate::dispatch::settle::Look;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::observe::check_access;
use crate::observe::tree::digest_of;
use crate::server::ticket::{Aborted, Ticket};
use crate::session::SessionHandle;
use crate::snapshot::{Home, Snapshot, digest_input};

/// Time to read the target again.
const READ_BUDGET: Duration = Duration::from_secs(4);

/// A target that passed every check before the commit point.
#[derive(Debug)]
pub struct Bound {
    /// The quoted snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The target's reference.
    pub node: NodeRef,
    /// The target as it is now.
    pub now: RawNode,
}

/// Runs the checks in their order, within the deadline of the request.
///
/// # Errors
/// The first check that fails.
pub fn bind(
    executor: &Executor,
    session: &SessionHandle,
    params: &DispatchElementParams,
    ticket: &Ticket,
    deadline: &Deadline,
) -> Result<Bound, Fault> {
    let backend = executor.backend();
    let within = |budget| deadline.at_most(budget);
    let snapshot =
        executor
            .sessions()
            .resolve(session, &params.snapshot_id, std::time::Instant::now())?;
    let (home, recorded) = snapshot
        .element(&params.element_token)
        .ok_or(DomainCode::ElementUnknown)?;
    if recorded.digest != params.expect_element_digest {
        return Err(DomainCode::ElementDigestMismatch.into());
    }
    if ticket.is_aborted() {
        return Err(Aborted.into());
    }
    check_access(executor, &within(LIST_BUDGET))?;
    let windows = backend.windows(&within(LIST_BUDGET))?;
    let window = windows
        .iter()
        .find(|window| window.key == snapshot.window)
        .ok_or(DomainCode::WindowGone)?;
    // E1: the reference still answers.
    let now = read_one(executor, &recorded.node, &within(READ_BUDGET))?
        .ok_or(DomainCode::ElementReleased)?;
    // E2: by the same process.
    if backend.process_start(snapshot.window.pid) != Some(snapshot.process_start) {
        return Err(DomainCode::ProcessReplaced.into());
    }
    // E3: and says of itself what it said then.
    let input = digest_input(&now, home);
    if element_digest(&input) != recorded.digest {
        let changed = changed_inputs(&recorded.input, &input);
        return Err(Refusal::changed(DomainCode::ElementChanged, changed).into());
    }
    match params.strictness {
        Strictness::Element => {}
        Strictness::Window => {
            let look = look_at(executor, &snapshot, window, &within(READ_BUDGET));
            if !look.agrees_with(Look::Digest(snapshot.window_digest)) {
                return Err(DomainCode::WindowChanged.into());
            }
        }
    }
    if let Some(frame) = now.frame
        && home == Home::Window
    {
        check_occlusion(
            executor,
            frame,
            window,
            &windows,
            params.occlusion_policy,
            &within(LIST_BUDGET),
        )?;
    }
    if !now.enabled {
        return Err(DomainCode::ElementDisabled.into());
    }
    let node = recorded.node.clone();
    Ok(Bound {
        snapshot,
        node,
        now,
    })
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

fn check_occlusion(
    executor: &Executor,
    frame: WindowRect,
    window: &WindowInfo,
    windows: &[WindowInfo],
    policy: OcclusionPolicy,
    deadline: &Deadline,
) -> Result<(), Fault> {
    if policy == OcclusionPolicy::None {
        return Ok(());
    }
    let displays = executor.backend().displays(deadline)?;
    // A centre that is no finite point lies nowhere, so nothing covers it.
    let Some(point) = frame
        .center()
        .and_then(|center| window_to_screen(center, window.bounds).ok())
    else {
        return Ok(());
    };
    if occlusion::is_covered(point, window, windows, &displays, policy) {
        return Err(DomainCode::WindowOccluded.into());
    }
    Ok(())
}
