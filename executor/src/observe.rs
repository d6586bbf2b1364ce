//! `observe`: one window as a snapshot (spec §3.5, §4).
//!
//! Nothing here launches, activates or raises anything, and a window that was named exactly is never replaced by another
//! one. The order of the checks is part of the contract.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::desktop::WindowInfo;
use crate::backend::error::BackendError;
use crate::backend::tree::{NodeRef, RawTree, WalkBudget, WalkScope};
use crate::deadline::Deadline;
use crate::dispatch::occlusion;
use crate::executor::{Executor, Fault, LIST_BUDGET, WALK_CEILING_MS, bounded, now_ms};
use crate::reply::{ENVELOPE_BYTES, encoded_len};
use crate::server::ticket::Ticket;
use crate::session::{Kept, SessionHandle};
use crate::snapshot::Snapshot;
use lineage::Lineage;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::{Digest, WindowKey};
use maka_cu_protocol::json::Json;
use maka_cu_protocol::menu::MenuScope;
use maka_cu_protocol::params::{ObserveParams, ObserveTarget};
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::results::Observed;
use maka_cu_protocol::sets::{ImageAbsence, Permission};
use maka_cu_protocol::snapshot::{Snapshot as WireSnapshot, SnapshotTarget};
use tree::{MenuLook, Parts, Selection, Trees};

mod common;
mod difference;

pub mod lineage;
pub mod picture;
pub mod tree;

/// How long an accessibility window that must match a listed one may take to show up.
const MATCH_PATIENCE: Duration = Duration::from_millis(250);
const MATCH_POLL: Duration = Duration::from_millis(25);

/// Time for the selected text, out of what the request has.
const SELECTION_BUDGET: Duration = Duration::from_millis(500);

/// How many times a message that is too large is built again with half the elements.
const HALVINGS: usize = 3;

/// What to look at, and how closely.
#[derive(Debug, Clone)]
pub struct Look {
    /// Which window.
    pub target: ObserveTarget,
    /// Whether a picture is wanted, and then mandatory where pictures are offered.
    pub include_image: bool,
    /// Element bound.
    pub max_elements: u64,
    /// Depth bound, in levels.
    pub max_depth: u64,
    /// Text bound, in grapheme clusters.
    pub max_text_chars: u64,
    /// How far to walk the menu, if at all.
    pub menu: Option<MenuScope>,
    /// How much of `maxResponseBytes` is needed for what surrounds the snapshot.
    pub envelope_bytes: u64,
}

/// A snapshot in both forms: for the wire, and to be registered.
#[derive(Debug)]
pub struct Frame {
    /// What the host gets.
    pub wire: WireSnapshot,
    /// What the session keeps.
    pub kept: Kept,
}

impl Look {
    /// A look at one window within the limits.
    #[must_use]
    pub fn at(
        executor: &Executor,
        target: ObserveTarget,
        include_image: bool,
        menu: Option<MenuScope>,
    ) -> Self {
        let limits = executor.limits();
        Self {
            target,
            include_image,
            max_elements: limits.max_elements,
            max_depth: limits.max_depth,
            max_text_chars: limits.max_text_chars,
            menu,
            envelope_bytes: ENVELOPE_BYTES,
        }
    }
}

/// The method.
///
/// # Errors
/// See the table of spec §3.
pub fn observe(
    executor: &Executor,
    params: &ObserveParams,
    ticket: &Ticket,
) -> Result<Observed, Fault> {
    let session = executor.sessions().find(&params.session)?;
    params.check_limits(executor.limits())?;
    let mut look = Look::at(
        executor,
        params.target.clone(),
        params.include_image,
        params.menu.clone(),
    );
    let tighter = |bound: Option<std::num::NonZeroU32>, limit| {
        bound.map_or(limit, |bound| u64::from(bound.get()))
    };
    look.max_elements = tighter(params.max_elements, look.max_elements);
    look.max_depth = tighter(params.max_depth, look.max_depth);
    look.max_text_chars = tighter(params.max_text_chars, look.max_text_chars);
    let frame = take(executor, &session, &look, &executor.deadline_of(ticket))?;
    // From here on the snapshot is the session's newest, and the host has to be told.
    ticket.commit()?;
    executor.sessions().register(&session, frame.kept)?;
    Ok(Observed {
        snapshot: Box::new(frame.wire),
    })
}

/// Takes a snapshot without registering it. Blocks, until the deadline at most.
///
/// # Errors
/// A domain refusal, or `session_unknown` when the session ended meanwhile.
pub fn take(
    executor: &Executor,
    session: &SessionHandle,
    look: &Look,
    deadline: &Deadline,
) -> Result<Frame, Fault> {
    let backend = executor.backend();
    let within = |budget| deadline.at_most(budget);
    check_access(executor, &within(LIST_BUDGET))?;
    let windows = backend.windows(&within(LIST_BUDGET))?;
    let target = resolve(executor, &look.target, &windows, &within(LIST_BUDGET))?;
    let root = match_root(executor, target.key, &within(LIST_BUDGET))?;
    let process_start = backend
        .process_start(target.key.pid)
        .ok_or(DomainCode::ProcessReplaced)?;
    let displays = backend.displays(&within(LIST_BUDGET))?;
    let taken = Instant::now();
    let captured_at = now_ms();
    let offered = !backend.capabilities().image_formats.is_empty();
    let picture = match look.include_image && offered {
        true => Some(picture::of_window(
            executor,
            session.scope,
            target,
            &displays,
            &within(LIST_BUDGET),
        )?),
        false => None,
    };
    let image_absence = (look.include_image && !offered).then_some(ImageAbsence::NotOffered);
    let mut trees = walk(executor, &root, look, deadline)?;
    trees.selection = selection(executor, &trees, look, &within(SELECTION_BUDGET));
    let base = executor.sessions().base_of(session, target.key, taken)?;
    let lineage = Lineage::trace(base, &trees.window.nodes);
    let snapshot_id = executor.sessions().reserve(session)?;
    let (image, stored) = picture.map_or((None, None), |picture| {
        let scale = picture.reference.scale;
        (Some(picture.reference), Some((picture.file, scale)))
    });
    let mut wire = WireSnapshot {
        snapshot_id: snapshot_id.clone(),
        captured_at,
        target: describe(target),
        window_digest: Digest::of(&[]),
        focused_element_token: None,
        selected_text: None,
        image,
        image_absence,
        obscuring_rects: occlusion::above(target, &windows, &displays)
            .map(|window| window.bounds)
            .collect(),
        displays,
        elements: Vec::new(),
        truncated: trees.window.truncation,
        difference: None,
        menu: None,
    };
    let Parts { elements, menu } = fit(executor, look, &trees, &lineage, target, &mut wire)?;
    let base = lineage.leave(snapshot_id.clone(), taken, &wire.elements);
    let snapshot = Snapshot::new(
        snapshot_id,
        target.key,
        process_start,
        taken,
        wire.window_digest,
        elements,
        menu,
        stored,
    );
    let kept = Kept {
        snapshot: Arc::new(snapshot),
        base: Arc::new(base),
    };
    Ok(Frame { wire, kept })
}

/// Fills the trees into the snapshot, halving the window's tree until the message fits (spec §1.5).
fn fit(
    executor: &Executor,
    look: &Look,
    trees: &Trees,
    lineage: &Lineage,
    target: &WindowInfo,
    wire: &mut WireSnapshot,
) -> Result<Parts, Fault> {
    let limit = executor.limits().max_response_bytes;
    let tokens: Vec<_> = executor.mint_tokens(trees.len()).collect();
    let mut keep = trees.window.nodes.len();
    let mut halvings = 0;
    loop {
        let bounds = (keep, bounded(look.max_text_chars));
        let parts = trees.fill(wire, target, lineage, bounds, &tokens);
        let bytes = encoded_len(&wire.write()).saturating_add(look.envelope_bytes);
        if bytes <= limit {
            return Ok(parts);
        }
        if halvings == HALVINGS || keep == 1 {
            return Err(Refusal::too_large(bytes, limit).into());
        }
        halvings += 1;
        // Half of what is there: a bound above it would build the same message again.
        keep = (keep / 2).max(1);
    }
}

/// The text that is selected in the focused element. It is a hint beside the tree, so that it cannot be read costs nothing
/// but the hint.
fn selection(
    executor: &Executor,
    trees: &Trees,
    look: &Look,
    deadline: &Deadline,
) -> Option<Selection> {
    let (at, focused) = trees.focused()?;
    // What is selected in a password field is a part of the password.
    if focused.secure {
        return None;
    }
    match executor
        .backend()
        .selected_text(&focused.node_ref, deadline)
    {
        Ok(text) => Selection::new(at, &text?, bounded(look.max_text_chars)),
        Err(error) => {
            tracing::debug!(%error, "the selection could not be read");
            None
        }
    }
}

/// Refuses while the screen is locked or the accessibility grant is missing.
///
/// # Errors
/// `screen_locked`, `permission_missing`.
pub fn check_access(executor: &Executor, deadline: &Deadline) -> Result<(), Fault> {
    if executor.backend().screen_locked(deadline)? {
        return Err(DomainCode::ScreenLocked.into());
    }
    if !executor.backend().accessibility_permitted(deadline)? {
        return Err(Refusal::permission(Permission::Accessibility).into());
    }
    Ok(())
}

/// The window that the target names.
///
/// # Errors
/// `window_gone`, `app_not_found`, or what the desktop refuses with.
pub fn resolve<'a>(
    executor: &Executor,
    target: &ObserveTarget,
    windows: &'a [WindowInfo],
    deadline: &Deadline,
) -> Result<&'a WindowInfo, Fault> {
    match target {
        ObserveTarget::Window(key) => windows
            .iter()
            .find(|window| window.key == *key)
            .ok_or(DomainCode::WindowGone.into()),
        ObserveTarget::App(app_id) => {
            let own = || {
                windows
                    .iter()
                    .filter(|window| window.app_id == *app_id && window.layer == 0)
            };
            // Front to back; one that is minimised is second choice.
            if let Some(window) = own()
                .find(|window| window.on_screen)
                .or_else(|| own().next())
            {
                return Ok(window);
            }
            let runs = executor
                .backend()
                .applications(deadline)?
                .iter()
                .any(|app| app.app_id == *app_id);
            Err(if runs {
                DomainCode::WindowGone
            } else {
                DomainCode::AppNotFound
            }
            .into())
        }
    }
}

/// The accessibility window that belongs to a listed one, which may appear a moment later than the list says.
fn match_root(executor: &Executor, key: WindowKey, deadline: &Deadline) -> Result<NodeRef, Fault> {
    let patience = deadline.at_most(MATCH_PATIENCE);
    loop {
        if let Some(root) = executor.backend().window_root(key, deadline)? {
            return Ok(root);
        }
        if patience.is_over() {
            return Err(if deadline.is_cancelled() {
                DomainCode::Aborted
            } else {
                DomainCode::WindowGone
            }
            .into());
        }
        patience.pause(MATCH_POLL);
    }
}

/// Walks the menu, then the window, on one clock of which the menu has a share.
fn walk(
    executor: &Executor,
    root: &NodeRef,
    look: &Look,
    deadline: &Deadline,
) -> Result<Trees, Fault> {
    let limits = executor.limits();
    let milliseconds =
        |limit: Option<u64>, default: u64| Duration::from_millis(limit.unwrap_or(default));
    let clock = deadline.at_most(milliseconds(limits.tree_walk_ceiling_ms, WALK_CEILING_MS));
    let menu = match &look.menu {
        None => None,
        Some(scope) => {
            let scope = match scope {
                MenuScope::Bar => WalkScope::MenuBar,
                MenuScope::Menu { title } => WalkScope::MenuNamed(title.as_app_text().clone()),
                MenuScope::All => WalkScope::Everything,
            };
            let budget = WalkBudget {
                max_elements: bounded(limits.max_menu_elements.unwrap_or(500)),
                max_depth: bounded(limits.max_depth),
                deadline: clock.at_most(milliseconds(limits.menu_walk_ceiling_ms, 1_500)),
            };
            Some(unless_cut(menu(executor, root, &scope, &budget))?)
        }
    };
    let budget = WalkBudget {
        max_elements: bounded(look.max_elements),
        max_depth: bounded(look.max_depth),
        deadline: clock,
    };
    let window = executor
        .backend()
        .walk(root, &WalkScope::Everything, &budget)?;
    Trees::new(window, menu).ok_or(DomainCode::CaptureFailed.into())
}

fn menu(
    executor: &Executor,
    root: &NodeRef,
    scope: &WalkScope,
    budget: &WalkBudget,
) -> Result<MenuLook<RawTree>, BackendError> {
    let bar = executor.backend().menu_bar(root, &budget.deadline)?;
    bar.map_or(Ok(MenuLook::Absent), |bar| {
        executor
            .backend()
            .walk(&bar, scope, budget)
            .map(MenuLook::Seen)
    })
}

/// The menu's own clock cuts the menu and nothing else (spec §4.6). A bar that went away while it was read is cut as well:
/// whether the window is still there, the window's walk will tell.
fn unless_cut(menu: Result<MenuLook<RawTree>, BackendError>) -> Result<MenuLook<RawTree>, Fault> {
    match menu {
        Err(BackendError::Timeout | BackendError::WindowGone) => Ok(MenuLook::CutOff),
        Ok(menu) => Ok(menu),
        Err(
            error @ (BackendError::PermissionMissing(_)
            | BackendError::CaptureFailed
            | BackendError::AppNotFound
            | BackendError::Ambiguous
            | BackendError::ScreenLocked
            | BackendError::Unsupported
            | BackendError::Refused),
        ) => Err(error.into()),
    }
}

/// A window as a snapshot names its target.
#[must_use]
pub fn describe(window: &WindowInfo) -> SnapshotTarget {
    SnapshotTarget {
        pid: window.key.pid,
        window_id: window.key.window_id,
        app_id: window.app_id.clone(),
        app_name: window.app_name.clone(),
        title: window.title.clone(),
        bounds: window.bounds,
        layer: window.layer,
        z_index: window.z_index,
        display_id: window.display_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec §4.6: the menu has a clock of its own, which must not cost the window.
    #[test]
    fn the_menus_clock_cuts_the_menu_only() {
        let rows = [
            (BackendError::Timeout, true),
            (BackendError::WindowGone, true),
            (BackendError::CaptureFailed, false),
            (
                BackendError::PermissionMissing(Permission::Accessibility),
                false,
            ),
        ];
        for (error, cut) in rows {
            let text = error.to_string();
            let menu = unless_cut(Err(error));
            assert_eq!(matches!(menu, Ok(MenuLook::CutOff)), cut, "{text}");
            assert_eq!(menu.is_err(), !cut, "{text}");
        }
    }
}
