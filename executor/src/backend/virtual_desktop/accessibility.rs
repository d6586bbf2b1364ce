//! The accessibility tree, read from the live state one node at a time.
//!
//! As on a real desktop a walk is not atomic: the state is locked for one node, never for a whole tree, and a control
//! that vanishes while the walk is under way is left out.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use maka_cu_protocol::geometry::WindowRect;
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::roles;
use maka_cu_protocol::sets::Permission;
use maka_cu_protocol::text::AppText;

use super::VirtualDesktop;
use super::scenario::{Content, LabelStyle, WindowStyle};
use super::state::{LiveWindow, Node, NodeId, World};
use crate::backend::error::BackendError;
use crate::backend::tree::{MAX_ANCESTOR_ROLES, NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use crate::deadline::Deadline;

/// What a [`NodeRef`] of this back end holds. Ids are never reused, so it answers exactly as long as its node exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VirtualNode {
    pub(super) window_id: u32,
    pub(super) node: NodeId,
}

/// The node that stands for a window.
pub(super) fn window_root(world: &World, key: WindowKey) -> Result<NodeRef, BackendError> {
    allowed(world)?;
    let window = world
        .window(key.pid, key.window_id)
        .ok_or(BackendError::WindowGone)?;
    Ok(NodeRef::new(VirtualNode {
        window_id: window.window_id,
        node: window.root,
    }))
}

/// The menu bar of a window's application, if it has one.
pub(super) fn menu_bar(world: &World, root: &NodeRef) -> Result<Option<NodeRef>, BackendError> {
    allowed(world)?;
    let root = root
        .downcast::<VirtualNode>()
        .ok_or(BackendError::WindowGone)?;
    let window = world.live(root.window_id).ok_or(BackendError::WindowGone)?;
    Ok(window.menu_bar.map(|node| {
        NodeRef::new(VirtualNode {
            window_id: window.window_id,
            node,
        })
    }))
}

/// Reads a tree, depth first, until it ends or the budget does.
pub(super) fn walk(
    desktop: &VirtualDesktop,
    root: &NodeRef,
    scope: &WalkScope,
    budget: &WalkBudget,
) -> Result<RawTree, BackendError> {
    let root = *root
        .downcast::<VirtualNode>()
        .ok_or(BackendError::WindowGone)?;
    let deadline = &budget.deadline;
    let mut tree = RawTree {
        nodes: Vec::new(),
        truncated_elements: false,
        truncated_depth: false,
    };
    let mut waiting = vec![Step {
        node: root.node,
        parent: None,
        depth: 0,
    }];
    // INVARIANT: no node is read twice, so a tree that claims to contain itself ends like any other.
    let mut seen = HashSet::new();
    while let Some(step) = waiting.pop() {
        let is_root = step.parent.is_none();
        let no_room = tree.nodes.len() >= budget.max_elements.max(1) || deadline.is_over();
        if !is_root && (no_room || !seen.insert(step.node)) {
            tree.truncated_elements = true;
            if no_room {
                break;
            }
            continue;
        }
        let node = VirtualNode {
            window_id: root.window_id,
            node: step.node,
        };
        let Some(read) = read_live(desktop, node)? else {
            if is_root {
                return Err(BackendError::WindowGone);
            }
            continue;
        };
        if is_root {
            seen.insert(step.node);
        }
        deadline.pause(read.slow);
        let raw = RawNode {
            parent: step.parent,
            depth: step.depth,
            ..read.raw
        };
        // The time ran out over this one: whatever it says below itself was not heard.
        if !read.slow.is_zero() && deadline.is_over() {
            tree.truncated_elements = true;
            tree.nodes.push(raw);
            break;
        }
        let children = descend(&mut tree, &raw, read.children, scope, budget);
        let parent = Some(tree.nodes.len());
        waiting.extend(children.into_iter().rev().map(|node| Step {
            node,
            parent,
            depth: step.depth + 1,
        }));
        tree.nodes.push(raw);
    }
    Ok(tree)
}

/// Reads single nodes again.
pub(super) fn read_nodes(
    desktop: &VirtualDesktop,
    nodes: &[NodeRef],
    deadline: &Deadline,
) -> Result<Vec<Option<RawNode>>, BackendError> {
    let mut answers = Vec::with_capacity(nodes.len());
    for node in nodes {
        if deadline.is_over() {
            return Err(BackendError::Timeout);
        }
        let read = match node.downcast::<VirtualNode>() {
            Some(node) => read_live(desktop, *node)?,
            None => None,
        };
        if let Some(read) = &read {
            deadline.pause(read.slow);
        }
        answers.push(read.map(|read| read.raw));
    }
    Ok(answers)
}

/// A node that a walk still has to read.
struct Step {
    node: NodeId,
    parent: Option<usize>,
    depth: usize,
}

/// One node, its children, and how long its application takes to answer.
struct Read {
    raw: RawNode,
    children: Vec<NodeId>,
    slow: Duration,
}

/// The children that a walk goes on to, with a note in the tree about those that it does not.
fn descend(
    tree: &mut RawTree,
    raw: &RawNode,
    children: Vec<NodeId>,
    scope: &WalkScope,
    budget: &WalkBudget,
) -> Vec<NodeId> {
    if children.is_empty() {
        return children;
    }
    if !scope.descends_into(raw) {
        tree.truncated_depth |= scope.cut_is_truncation();
        return Vec::new();
    }
    if raw.depth + 1 >= budget.max_depth {
        tree.truncated_depth = true;
        return Vec::new();
    }
    children
}

fn read_live(desktop: &VirtualDesktop, node: VirtualNode) -> Result<Option<Read>, BackendError> {
    let world = desktop.world();
    allowed(&world)?;
    let window = world.live(node.window_id);
    Ok(window.and_then(|window| {
        let found = window.node(node.node)?;
        Some(Read {
            raw: raw_node(window, node, found, desktop.now()),
            children: found.children.clone(),
            slow: found.control.slow,
        })
    }))
}

fn allowed(world: &World) -> Result<(), BackendError> {
    if world.scenario().accessibility {
        Ok(())
    } else {
        Err(BackendError::PermissionMissing(Permission::Accessibility))
    }
}

/// The one place where a node turns into what is observed and digested.
fn raw_node(window: &LiveWindow, id: VirtualNode, node: &Node, now: Instant) -> RawNode {
    let control = &node.control;
    let text = |text: &Option<String>| text.as_deref().map(AppText::new);
    let (role, subrole) = role(&control.content);
    let secure = matches!(control.content, Content::SecureField { .. });
    let selected = match control.content {
        Content::CheckBox { checked } => Some(checked),
        Content::RadioButton { chosen } => Some(chosen),
        Content::Row { selected } => Some(selected),
        Content::Window(_)
        | Content::Group
        | Content::Panel
        | Content::Label(_)
        | Content::Button { .. }
        | Content::Link
        | Content::Image
        | Content::Progress { .. }
        | Content::TextField { .. }
        | Content::SecureField { .. }
        | Content::TextArea { .. }
        | Content::PopUpButton { .. }
        | Content::List { .. }
        | Content::MenuBar
        | Content::Menu
        | Content::ContextMenu
        | Content::Slider { .. } => None,
        Content::MenuItem => window.is_highlighted(id.node, node),
    };
    RawNode {
        role: role.to_owned(),
        subrole: subrole.map(str::to_owned),
        ax_identifier: text(&control.identifier),
        title: window.title_of(node, now).map(AppText::new),
        label: text(&control.label),
        value: if secure {
            None
        } else {
            control.content.shown_value().map(AppText::new)
        },
        placeholder: text(&control.placeholder),
        enabled: control.enabled,
        focused: control.focused,
        selected,
        frame: frame(window, node),
        actions: window.offers(id.node, node),
        value_settable: control.content.is_writable(),
        secure,
        ancestor_roles: ancestor_roles(window, node),
        sibling_index: sibling_index(window, id.node, node),
        parent: None,
        depth: 0,
        node_ref: NodeRef::new(id),
    }
}

fn role(content: &Content) -> (&'static str, Option<&'static str>) {
    match content {
        Content::Window(WindowStyle::Standard) => (roles::WINDOW, Some(roles::STANDARD_WINDOW)),
        Content::Window(WindowStyle::Dialog) => (roles::WINDOW, Some(roles::DIALOG)),
        Content::Window(WindowStyle::Sheet) => (roles::SHEET, None),
        Content::Group | Content::Panel => (roles::GROUP, None),
        Content::Label(LabelStyle::Heading) => (roles::HEADING, None),
        Content::Label(LabelStyle::Body | LabelStyle::Caption) => (roles::STATIC_TEXT, None),
        Content::Button { .. } => (roles::BUTTON, None),
        Content::Link => (roles::LINK, None),
        Content::Image => (roles::IMAGE, None),
        Content::Progress { .. } => (roles::PROGRESS_INDICATOR, None),
        Content::TextField { .. } => (roles::TEXT_FIELD, None),
        Content::SecureField { .. } => (roles::TEXT_FIELD, Some(roles::SECURE_TEXT_FIELD)),
        Content::TextArea { .. } => (roles::TEXT_AREA, None),
        Content::CheckBox { .. } => (roles::CHECK_BOX, None),
        Content::RadioButton { .. } => (roles::RADIO_BUTTON, None),
        Content::PopUpButton { .. } => (roles::POP_UP_BUTTON, None),
        Content::List { .. } => (roles::LIST, None),
        Content::Row { .. } => (roles::ROW, None),
        Content::MenuBar => (roles::MENU_BAR, None),
        Content::Menu => (roles::MENU_BAR_ITEM, None),
        Content::MenuItem => (roles::MENU_ITEM, None),
        Content::ContextMenu => (roles::MENU, None),
        Content::Slider { .. } => (roles::SLIDER, None),
    }
}

/// Where a node lies; items of the menu bar lie nowhere in the window.
fn frame(window: &LiveWindow, node: &Node) -> Option<WindowRect> {
    let place = window.place(node);
    if place.width == 0 {
        return None;
    }
    let [x, y, width, height] = [place.x, place.y, place.width, place.height].map(f64::from);
    Some(WindowRect::try_new(x, y, width, height).expect("whole numbers are finite"))
}

/// Roles above a node, nearest first, from the parent links as they are now.
fn ancestor_roles(window: &LiveWindow, node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let mut parent = node.parent;
    while found.len() < MAX_ANCESTOR_ROLES
        && let Some(above) = parent.and_then(|parent| window.node(parent))
    {
        found.push(role(&above.control.content).0.to_owned());
        parent = above.parent;
    }
    found
}

fn sibling_index(window: &LiveWindow, id: NodeId, node: &Node) -> usize {
    let siblings = node
        .parent
        .and_then(|parent| window.node(parent))
        .map(|parent| parent.children.as_slice());
    // Ids grow, and a child is added behind its siblings, so that this finds it without a look at all of them.
    siblings
        .and_then(|siblings| siblings.binary_search(&id).ok())
        .unwrap_or(0)
}
