//! One open window and the controls in it.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{
    Color, Content, ControlSpec, Scenario, WindowStyle, row_bounds,
};

/// Identity of a node, unique for the life of the desktop.
pub(crate) type NodeId = u64;

/// Distance by which a further instance of the same window is moved, in points.
const CASCADE: i32 = 28;

/// A control, a menu or the window itself, as a node of an accessibility tree.
#[derive(Clone)]
pub(crate) struct Node {
    /// The node above; `None` for the window and for the menu bar.
    pub(crate) parent: Option<NodeId>,
    /// The nodes below, in order.
    pub(crate) children: Vec<NodeId>,
    /// What it is and holds now.
    pub(crate) control: ControlSpec,
}

/// An open window.
#[derive(Clone)]
pub(crate) struct LiveWindow {
    /// Its id.
    pub(crate) window_id: u32,
    /// The process that owns it.
    pub(crate) pid: u32,
    /// Index of its description in the scenario.
    pub(crate) spec: usize,
    /// Title bar text.
    pub(crate) title: String,
    /// Whether it is a plain window or a dialog.
    pub(crate) style: WindowStyle,
    /// Screen logical points.
    pub(crate) bounds: Rect,
    /// Window layer.
    pub(crate) layer: i32,
    /// Color of its application.
    pub(crate) accent: Color,
    /// The node that stands for the window.
    pub(crate) root: NodeId,
    /// The menu bar, if its application has one.
    pub(crate) menu_bar: Option<NodeId>,
    opened: Instant,
    /// Ordered by age: a control that is drawn over another one comes later.
    nodes: BTreeMap<NodeId, Node>,
    by_control: HashMap<usize, NodeId>,
}

impl LiveWindow {
    /// Opens window `spec` of a scenario; `siblings` instances of it are open already.
    pub(super) fn open(
        scenario: &Scenario,
        spec: usize,
        pid: u32,
        window_id: u32,
        siblings: usize,
        next_node: &mut NodeId,
        now: Instant,
    ) -> Self {
        let window = &scenario.windows[spec];
        let offset = CASCADE * i32::try_from(siblings % 8).expect("less than 8");
        let mut live = Self {
            window_id,
            pid,
            spec,
            title: window.title.clone(),
            style: window.style,
            bounds: window.bounds.moved(offset, offset),
            layer: window.layer,
            accent: scenario.apps[window.app].accent,
            root: 0,
            menu_bar: None,
            opened: now,
            nodes: BTreeMap::new(),
            by_control: HashMap::new(),
        };
        let whole = Rect::new(0, 0, window.bounds.width, window.bounds.height);
        live.root = live.add(
            None,
            ControlSpec::plain(None, whole, Content::Window(window.style)),
            next_node,
        );
        if window.menu_bar {
            let bar = ControlSpec::plain(None, Rect::new(0, 0, 0, 0), Content::MenuBar);
            live.menu_bar = Some(live.add(None, bar, next_node));
        }
        for (index, control) in window.controls.iter().enumerate() {
            let parent = match control.parent {
                Some(parent) => live.by_control.get(&parent).copied(),
                None if matches!(control.content, Content::Menu) => live.menu_bar,
                None => Some(live.root),
            };
            let node = live.add(parent, control.clone(), next_node);
            live.by_control.insert(index, node);
        }
        live
    }

    /// A node that is still there.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Every node, a later one drawn over an earlier one.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The name of a node at `now`: the window's title, or the control's, with the count of a restless one.
    pub(crate) fn title_of(&self, node: &Node, now: Instant) -> Option<String> {
        if matches!(node.control.content, Content::Window(_)) {
            return (!self.title.is_empty()).then(|| self.title.clone());
        }
        match (&node.control.title, node.control.restless) {
            (title, None) => title.clone(),
            (title, Some(period)) => {
                let ticks = now.saturating_duration_since(self.opened).as_nanos()
                    / period.as_nanos().max(1);
                Some(format!("{} {ticks}", title.as_deref().unwrap_or("Tick")))
            }
        }
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(&id)
    }

    /// The node that came from a control of the scenario.
    pub(super) fn control(&self, index: usize) -> Option<&Node> {
        self.nodes.get(self.by_control.get(&index)?)
    }

    /// As [`LiveWindow::control`], to change it.
    pub(super) fn control_mut(&mut self, index: usize) -> Option<&mut Node> {
        self.nodes.get_mut(self.by_control.get(&index)?)
    }

    /// Takes a control out, with everything in it.
    pub(super) fn remove_control(&mut self, index: usize) {
        let Some(id) = self.by_control.get(&index).copied() else {
            return;
        };
        let Some(removed) = self.nodes.remove(&id) else {
            return;
        };
        if let Some(parent) = removed
            .parent
            .and_then(|parent| self.nodes.get_mut(&parent))
        {
            parent.children.retain(|child| *child != id);
        }
        let mut waiting = removed.children;
        while let Some(id) = waiting.pop() {
            if let Some(node) = self.nodes.remove(&id) {
                waiting.extend(node.children);
            }
        }
    }

    /// Adds a row at the end of a list.
    pub(super) fn append_row(&mut self, index: usize, title: String, next_node: &mut NodeId) {
        /// Rows that a list holds at most; a further one is not added.
        const MAX_ROWS: usize = 50_000;
        let Some(list) = self.by_control.get(&index).copied() else {
            return;
        };
        let Some(node) = self.nodes.get(&list) else {
            return;
        };
        if node.children.len() < MAX_ROWS {
            let bounds = row_bounds(node.control.bounds, node.children.len());
            let row = ControlSpec::plain(None, bounds, Content::Row { selected: false });
            self.add(
                Some(list),
                ControlSpec {
                    title: Some(title),
                    ..row
                },
                next_node,
            );
        }
    }

    /// Makes `row` the selected row of its list.
    pub(super) fn select_row(&mut self, row: NodeId) {
        let list = self.nodes.get(&row).and_then(|node| node.parent);
        let rows = list
            .and_then(|list| self.nodes.get(&list))
            .map(|list| list.children.clone());
        for id in rows.unwrap_or_default() {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.control.content = Content::Row {
                    selected: id == row,
                };
            }
        }
    }

    fn add(
        &mut self,
        parent: Option<NodeId>,
        control: ControlSpec,
        next_node: &mut NodeId,
    ) -> NodeId {
        let id = *next_node;
        *next_node += 1;
        // A cyclic control claims that the window lies inside it.
        let children = if control.cyclic {
            vec![self.root]
        } else {
            Vec::new()
        };
        self.nodes.insert(
            id,
            Node {
                parent,
                children,
                control,
            },
        );
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            parent.children.push(id);
        }
        id
    }
}
