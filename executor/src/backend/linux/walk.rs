//! Walking a tree, and reading known nodes again.
//!
//! A walk goes level by level: all nodes of a level are read side by side, then their children make the next level. No
//! recursion, so depth costs nothing; each accessible is taken once, so a tree that contains itself ends. What a budget
//! leaves out is always the deepest and last part, whatever the timing of the answers.
//!
//! INVARIANT: no more children are remembered than the budget has room for nodes, whatever an application claims to have.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use maka_cu_protocol::roles;
use maka_cu_protocol::sets::ElementVerb;

use super::bus::{CallError, ObjectRef};
use super::frame::Placement;
use super::node::{AccessibleNode, LinuxNode};
use super::reader::{Core, Facts, IN_FLIGHT, Reader};
use super::vocabulary::{Interfaces, ROLE_MENU, State, is_pressed_by_selection, option_is_inert};
use crate::backend::error::BackendError;
use crate::backend::tree::{MAX_ANCESTOR_ROLES, NodeRef, RawNode, RawTree, WalkBudget, WalkScope};

/// One node that is to be read.
struct Candidate {
    object: ObjectRef,
    parent: usize,
    sibling_index: usize,
}

/// Where a node stands in the walk.
struct Place {
    parent: Option<usize>,
    sibling_index: usize,
    depth: usize,
}

/// Reads the tree below `root`. The answer always holds at least the root.
pub(super) async fn walk(
    reader: &Reader<'_>,
    root: &Arc<AccessibleNode>,
    placement: Placement,
    scope: &WalkScope,
    budget: &WalkBudget,
) -> Result<RawTree, BackendError> {
    let in_menu = root.in_menu;
    let extents = (!in_menu).then(|| placement.coordinate_type());
    let facts = reader
        .facts(&root.object, extents)
        .await
        .map_err(root_error)?;
    let mut walk = Walk::new(root, placement, budget);
    let at_the_top = Place {
        parent: None,
        sibling_index: 0,
        depth: 0,
    };
    let mut level = Vec::new();
    walk.take(
        facts,
        Arc::clone(root),
        at_the_top,
        scope,
        reader,
        &mut level,
    )
    .await;
    for depth in 1.. {
        if level.is_empty() {
            break;
        }
        if depth >= budget.max_depth {
            walk.truncated_depth = true;
            break;
        }
        let room = budget.max_elements.saturating_sub(walk.nodes.len());
        if level.len() > room {
            level.truncate(room);
            walk.truncated_elements = true;
        }
        let read = stream::iter(level)
            .map(|candidate| async {
                let facts = reader.facts(&candidate.object, extents).await;
                (candidate, facts)
            })
            .buffered(IN_FLIGHT)
            .collect::<Vec<_>>()
            .await;
        let mut next = Vec::new();
        for (candidate, facts) in read {
            match facts {
                Ok(facts) => {
                    let parent = candidate.parent;
                    let node = Arc::new(AccessibleNode {
                        object: candidate.object,
                        context: Arc::clone(&root.context),
                        parent: Some(Arc::clone(&walk.links[parent])),
                        in_menu,
                    });
                    let place = Place {
                        parent: Some(parent),
                        sibling_index: candidate.sibling_index,
                        depth,
                    };
                    walk.take(facts, node, place, scope, reader, &mut next)
                        .await;
                }
                Err(CallError::Lost) => return Err(BackendError::CaptureFailed),
                // It may well be there, we only could not read it.
                Err(CallError::Timeout | CallError::Rejected | CallError::Malformed) => {
                    walk.truncated_elements = true;
                }
                // It vanished meanwhile, and what was below it with it.
                Err(CallError::Gone | CallError::NoReply) => {}
            }
        }
        level = next;
    }
    Ok(walk.finish())
}

fn root_error(error: CallError) -> BackendError {
    match error {
        CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed => {
            BackendError::WindowGone
        }
        CallError::Timeout => BackendError::Timeout,
        CallError::Lost => BackendError::CaptureFailed,
    }
}

/// A tree that is being built, level by level.
struct Walk {
    placement: Placement,
    max_elements: usize,
    max_depth: usize,
    nodes: Vec<RawNode>,
    /// The retained references, by the index of their node.
    links: Vec<Arc<AccessibleNode>>,
    /// The interfaces, likewise.
    interfaces: Vec<Interfaces>,
    seen: HashSet<ObjectRef>,
    truncated_elements: bool,
    truncated_depth: bool,
}

impl Walk {
    fn new(root: &Arc<AccessibleNode>, placement: Placement, budget: &WalkBudget) -> Self {
        Self {
            placement,
            max_elements: budget.max_elements,
            max_depth: budget.max_depth,
            nodes: Vec::new(),
            links: Vec::new(),
            interfaces: Vec::new(),
            seen: HashSet::from([root.object.clone()]),
            truncated_elements: false,
            truncated_depth: false,
        }
    }

    /// Adds a node that was read, and to the next level those of its children that belong to the walk and find room.
    async fn take(
        &mut self,
        facts: Facts,
        node: Arc<AccessibleNode>,
        place: Place,
        scope: &WalkScope,
        reader: &Reader<'_>,
        next: &mut Vec<Candidate>,
    ) {
        let is_last_level = place.depth + 1 >= self.max_depth;
        let index = self.nodes.len();
        let mut ancestor_roles = Vec::new();
        let mut above = place.parent;
        while let Some(ancestor) = above.filter(|_| ancestor_roles.len() < MAX_ANCESTOR_ROLES) {
            ancestor_roles.push(self.nodes[ancestor].role.clone());
            above = self.nodes[ancestor].parent;
        }
        let above = LivePlace {
            ancestor_roles,
            sibling_index: place.sibling_index,
            container: place.parent.map(|parent| self.interfaces[parent]),
        };
        let in_combo_box = above.is_below(roles::COMBO_BOX, 1);
        let raw = RawNode {
            parent: place.parent,
            depth: place.depth,
            ..raw_node(&facts, &node, above, self.placement)
        };
        let descends = !facts.children.is_empty() && scope.descends_into(&raw);
        let cut_by_scope = !facts.children.is_empty() && !descends && scope.cut_is_truncation();
        self.truncated_depth |= cut_by_scope;
        self.truncated_elements |= facts.children_cut;
        self.nodes.push(raw);
        self.interfaces.push(facts.core.interfaces);
        let in_menu = node.in_menu;
        self.links.push(node);
        // The options of a combo box are nowhere else, and a press on one works while they are not shown.
        let may_be_closed = !in_menu && !in_combo_box;
        if !descends || (may_be_closed && is_closed_menu(&facts, reader).await) {
            return;
        }
        for (sibling_index, object) in facts.children.into_iter().enumerate() {
            // Of a level that is not read one child tells as much as all: that there is more.
            if is_last_level && !next.is_empty() {
                return;
            }
            if !is_last_level && self.nodes.len() + next.len() >= self.max_elements {
                self.truncated_elements = true;
                return;
            }
            if self.seen.insert(object.clone()) {
                next.push(Candidate {
                    object,
                    parent: index,
                    sibling_index,
                });
            } else {
                // The tree contains itself: an honest walk says that this is not all of it.
                self.truncated_elements = true;
            }
        }
    }

    /// Depth-first order, root first.
    fn finish(self) -> RawTree {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(index);
            }
        }
        let mut nodes: Vec<Option<RawNode>> = self.nodes.into_iter().map(Some).collect();
        let mut ordered = Vec::with_capacity(nodes.len());
        let mut places = vec![0; nodes.len()];
        let mut stack = vec![0];
        while let Some(index) = stack.pop() {
            let mut node = nodes[index]
                .take()
                .expect("each node has one parent, so it comes up once");
            node.parent = node.parent.map(|parent| places[parent]);
            places[index] = ordered.len();
            ordered.push(node);
            stack.extend(children[index].iter().rev());
        }
        RawTree {
            nodes: ordered,
            truncated_elements: self.truncated_elements,
            truncated_depth: self.truncated_depth,
        }
    }
}

/// The items of a closed menu are part of the tree in every toolkit, but not of what a person sees; the menu walk shows
/// them.
async fn is_closed_menu(facts: &Facts, reader: &Reader<'_>) -> bool {
    if facts.core.role != ROLE_MENU {
        return false;
    }
    match facts.children.first() {
        Some(child) => reader
            .core(child)
            .await
            .is_ok_and(|core| !core.states.is_showing(reader.toolkit)),
        None => false,
    }
}

/// Everything about a node that does not depend on the rest of the tree.
fn raw_node(
    facts: &Facts,
    node: &Arc<AccessibleNode>,
    place: LivePlace,
    placement: Placement,
) -> RawNode {
    let core = &facts.core;
    let toolkit = node.context.toolkit;
    let mut actions = facts.verbs.clone();
    if place
        .container
        .is_some_and(|container| is_pressed_by_selection(toolkit, container, core.states, &actions))
    {
        actions.push(ElementVerb::Press);
    }
    if option_is_inert(toolkit) && place.is_below(roles::COMBO_BOX, 2) {
        actions.retain(|verb| *verb != ElementVerb::Press);
    }
    let ax = roles::of_at_spi(core.role, core.states.has(State::MultiLine));
    let is_window = node.parent.is_none() && !node.in_menu;
    let text = |text: &str| (!text.is_empty()).then(|| text.into());
    RawNode {
        role: ax.role.into(),
        subrole: ax.subrole.map(Into::into),
        ax_identifier: facts.identifier.as_deref().and_then(text),
        title: text(&core.name),
        label: text(&core.description),
        value: facts.value.as_deref().map(Into::into),
        placeholder: facts.placeholder.as_deref().and_then(text),
        enabled: core.states.is_enabled(),
        focused: core.states.has(State::Focused),
        selected: facts.selected(),
        frame: match facts.extents {
            _ if node.in_menu => None,
            _ if is_window => Some(placement.whole()),
            Some(extents) => placement.frame(extents),
            None => None,
        },
        actions,
        value_settable: facts.settable(),
        secure: facts.secure(),
        ancestor_roles: place.ancestor_roles,
        sibling_index: place.sibling_index,
        parent: None,
        depth: 0,
        node_ref: NodeRef::new(LinuxNode::Accessible(Arc::clone(node))),
    }
}

/// What a node's ancestor tells about it.
struct Above {
    role: String,
    interfaces: Interfaces,
    children: Vec<ObjectRef>,
}

impl Above {
    fn new(core: &Core, children: Vec<ObjectRef>) -> Self {
        let role = roles::of_at_spi(core.role, core.states.has(State::MultiLine))
            .role
            .into();
        Self {
            role,
            interfaces: core.interfaces,
            children,
        }
    }
}

/// Reads known nodes of one window again, in the given order.
pub(super) async fn read_again(
    reader: &Reader<'_>,
    nodes: &[Arc<AccessibleNode>],
    placement: Placement,
) -> Result<Vec<Option<RawNode>>, BackendError> {
    let read = stream::iter(nodes)
        .map(|node| async {
            let extents = (!node.in_menu).then(|| placement.coordinate_type());
            reader.facts(&node.object, extents).await
        })
        .buffered(IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    let mut above: HashMap<&ObjectRef, Above> = HashMap::new();
    for (node, facts) in nodes.iter().zip(&read) {
        if let Ok(facts) = facts {
            above.insert(
                &node.object,
                Above::new(&facts.core, facts.children.clone()),
            );
        }
    }
    let missing: HashSet<&ObjectRef> = nodes
        .iter()
        .flat_map(|node| {
            node.ancestors()
                .take(MAX_ANCESTOR_ROLES)
                .map(|ancestor| &ancestor.object)
        })
        .filter(|object| !above.contains_key(object))
        .collect();
    let found = stream::iter(missing)
        .map(|object| async move { (object, reader.role_and_children(object).await) })
        .buffer_unordered(IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    for (object, answer) in found {
        if let Some((core, children)) = unless_gone(answer)? {
            above.insert(object, Above::new(&core, children));
        }
    }
    nodes
        .iter()
        .zip(read)
        .map(|(node, facts)| {
            let Some(facts) = unless_gone(facts)? else {
                return Ok(None);
            };
            Ok(live_place(node, &above).map(|place| raw_node(&facts, node, place, placement)))
        })
        .collect()
}

/// Where a node stands now, as its ancestors tell it.
#[derive(Default)]
struct LivePlace {
    ancestor_roles: Vec<String>,
    sibling_index: usize,
    /// The interfaces of its parent.
    container: Option<Interfaces>,
}

impl LivePlace {
    /// Whether the ancestor so many levels up has this role.
    fn is_below(&self, role: &str, levels: usize) -> bool {
        let above = self.ancestor_roles.get(levels.saturating_sub(1));
        above.is_some_and(|above| above == role)
    }
}

/// `None` when the way down to the node is broken, in which case nobody who looks at the window from above would find it.
fn live_place(node: &AccessibleNode, above: &HashMap<&ObjectRef, Above>) -> Option<LivePlace> {
    let mut place = LivePlace::default();
    for ancestor in node.ancestors().take(MAX_ANCESTOR_ROLES) {
        let seen = above.get(&ancestor.object)?;
        if place.container.is_none() {
            place.container = Some(seen.interfaces);
            let mut children = seen.children.iter();
            place.sibling_index = children.position(|child| *child == node.object)?;
        }
        place.ancestor_roles.push(seen.role.clone());
    }
    Some(place)
}

fn unless_gone<T>(answer: Result<T, CallError>) -> Result<Option<T>, BackendError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(CallError::Timeout) => Err(BackendError::Timeout),
        Err(CallError::Lost) => Err(BackendError::CaptureFailed),
        Err(CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed) => {
            Ok(None)
        }
    }
}
