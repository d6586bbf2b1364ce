//! Accessibility nodes as a back end reads them, before they get tokens and digests.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use maka_cu_protocol::geometry::WindowRect;
use maka_cu_protocol::sets::ElementVerb;
use maka_cu_protocol::text::AppText;

use crate::deadline::Deadline;

/// How many ancestor roles a node carries at most, nearest first (digest input 9, spec §4.5).
pub const MAX_ANCESTOR_ROLES: usize = 8;

/// A retained reference to one accessibility node. Only the back end that made it can look inside.
///
/// Snapshots keep these for as long as they live; a back end that has to release something does so when the last clone
/// of its value is dropped.
#[derive(Clone)]
pub struct NodeRef(Arc<dyn Any + Send + Sync>);

impl NodeRef {
    /// Wraps a back end's own node value.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(node: T) -> Self {
        Self(Arc::new(node))
    }

    /// The back end's value, or `None` when another kind of back end made this reference.
    #[must_use]
    pub fn downcast<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for NodeRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NodeRef")
    }
}

/// Everything read about one node. All text is untruncated.
#[derive(Debug, Clone)]
pub struct RawNode {
    /// Role in the AX vocabulary (`maka_cu_protocol::roles`), never empty.
    pub role: String,
    /// Subrole in the AX vocabulary.
    pub subrole: Option<String>,
    /// The application's own stable identifier for the control.
    pub ax_identifier: Option<AppText>,
    /// The name attribute.
    pub title: Option<AppText>,
    /// The description attribute.
    pub label: Option<AppText>,
    /// The value as text. `None` for a node without one, and always `None` when `secure`: the characters of a password
    /// field are never read.
    pub value: Option<AppText>,
    /// The hint shown while a field is empty.
    pub placeholder: Option<AppText>,
    /// Whether the control reacts to a person.
    pub enabled: bool,
    /// Whether it has the keyboard focus inside its window.
    pub focused: bool,
    /// Selection or check state; `None` where there is none.
    pub selected: Option<bool>,
    /// Where it lies, in points from the window's top left corner; `None` when it has no extent (always `None` in a
    /// menu).
    pub frame: Option<WindowRect>,
    /// What it can do, in the application's order, normalised, without duplicates.
    pub actions: Vec<ElementVerb>,
    /// Whether its value can be written.
    pub value_settable: bool,
    /// A password field.
    pub secure: bool,
    /// Roles of its ancestors up to and including the root of the walk, nearest first, at most
    /// [`MAX_ANCESTOR_ROLES`]; empty for the root.
    pub ancestor_roles: Vec<String>,
    /// Position in the parent's full child list; 0 for the root.
    pub sibling_index: usize,
    /// Index of the parent in [`RawTree::nodes`]; `None` for the root. Meaningless in [`super::Backend::read_nodes`].
    pub parent: Option<usize>,
    /// Levels below the root, which has 0. Meaningless in [`super::Backend::read_nodes`].
    pub depth: usize,
    /// The retained reference.
    pub node_ref: NodeRef,
}

/// A tree that was read, in depth-first order, root first; a parent always stands before its children.
#[derive(Debug, Clone)]
pub struct RawTree {
    /// The nodes; never empty.
    pub nodes: Vec<RawNode>,
    /// Nodes were left out because of the count or the clock.
    pub truncated_elements: bool,
    /// A node on the last allowed level has children.
    pub truncated_depth: bool,
}

/// How much of a tree to read.
#[derive(Debug, Clone)]
pub struct WalkBudget {
    /// At most this many nodes, at least 1.
    pub max_elements: usize,
    /// At most this many levels, at least 1; the deepest node has `depth = max_depth - 1`.
    pub max_depth: usize,
    /// When to stop.
    pub deadline: Deadline,
}

/// Which nodes a walk descends into.
#[derive(Debug, Clone)]
pub enum WalkScope {
    /// All of them: a window.
    Everything,
    /// Menu bar and its top items only.
    MenuBar,
    /// Menu bar, its top items, and everything below the one whose title or label equals the text.
    MenuNamed(AppText),
}

impl WalkScope {
    /// Whether the children of `node` belong to the walk. A back end asks this once for every node that has children;
    /// on `false` it does not read them, and calls it a cut by depth only where [`WalkScope::cut_is_truncation`] says so.
    #[must_use]
    pub fn descends_into(&self, node: &RawNode) -> bool {
        match self {
            Self::Everything => true,
            Self::MenuBar => node.depth == 0,
            Self::MenuNamed(name) => {
                let named = |text: &Option<AppText>| {
                    text.as_ref()
                        .is_some_and(|text| text.as_str() == name.as_str())
                };
                node.depth != 1 || named(&node.title) || named(&node.label)
            }
        }
    }

    /// Whether leaving out children because of the scope sets [`RawTree::truncated_depth`] (spec §4.6: for `bar` it
    /// does, for a named menu it does not).
    #[must_use]
    pub const fn cut_is_truncation(&self) -> bool {
        match self {
            Self::Everything | Self::MenuNamed(_) => false,
            Self::MenuBar => true,
        }
    }
}
