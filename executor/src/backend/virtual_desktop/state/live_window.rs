//! One open window and the controls in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use super::edit::Selection;
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{
    ButtonPart, Color, Content, ControlSpec, Recycled, Scenario, WindowRules, WindowStyle,
    row_bounds, rows_shown,
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
    /// The selection in its text, if it has one.
    pub(crate) selection: Selection,
    /// How far its content is scrolled, in points.
    pub(crate) scroll: i32,
    /// Whether a mouse button is held down on it.
    pub(crate) held: bool,
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
    /// The menu that is open over the controls.
    pub(crate) menu: Option<NodeId>,
    /// The item of the open menu that the arrow keys came to.
    pub(super) highlight: Option<NodeId>,
    /// The nodes that a context menu belongs to.
    pub(super) menus: HashSet<NodeId>,
    /// The buttons that play a part in the window, so that nobody has to look for them in a large tree.
    pub(super) buttons: Vec<NodeId>,
    /// Whether it is off the screen.
    pub(crate) minimized: bool,
    /// How it takes being handled.
    pub(crate) rules: WindowRules,
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
            menu: None,
            highlight: None,
            menus: HashSet::new(),
            buttons: Vec::new(),
            minimized: false,
            rules: window.rules,
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
            if is_in_context_menu(&window.controls, control) {
                let owner = control
                    .parent
                    .map_or(Some(live.root), |owner| live.node_of(owner));
                live.menus.extend(owner);
                continue;
            }
            let parent = match control.parent {
                Some(parent) => live.by_control.get(&parent).copied(),
                None if matches!(control.content, Content::Menu) => live.menu_bar,
                None => Some(live.root),
            };
            let node = live.add(parent, control.clone(), next_node);
            live.by_control.insert(index, node);
            live.add_recycled_rows(node, next_node);
        }
        live
    }

    /// A node that is still there.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
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

    /// Where a node lies now, in window-local points: a row moves as its list is scrolled.
    pub(crate) fn place(&self, node: &Node) -> Rect {
        let bounds = node.control.bounds;
        match self.list_of(node) {
            Some(list) => bounds.moved(0, -list.scroll),
            None => bounds,
        }
    }

    /// The list that a node is a row of.
    pub(crate) fn list_of(&self, node: &Node) -> Option<&Node> {
        if !matches!(node.control.content, Content::Row { .. }) {
            return None;
        }
        node.parent.and_then(|list| self.node(list))
    }

    /// The nodes with their ids, a later one drawn over an earlier one, those of an open menu last.
    pub(crate) fn in_paint_order(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        let in_menu = |id: &NodeId, node: &Node| {
            self.menu
                .is_some_and(|menu| *id == menu || node.parent == Some(menu))
        };
        let all = || self.nodes.iter().map(|(id, node)| (*id, node));
        let below = all().filter(move |(id, node)| !in_menu(id, node));
        below.chain(all().filter(move |(id, node)| in_menu(id, node)))
    }

    /// The control of the scenario that a node came from.
    pub(super) fn control_of(&self, id: NodeId) -> Option<usize> {
        let found = self.by_control.iter().find(|(_, node)| **node == id);
        found.map(|(control, _)| *control)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(&id)
    }

    /// The node that came from a control of the scenario.
    pub(super) fn control(&self, index: usize) -> Option<&Node> {
        self.nodes.get(self.by_control.get(&index)?)
    }

    /// As [`LiveWindow::control`], its id.
    pub(super) fn node_of(&self, index: usize) -> Option<NodeId> {
        self.by_control.get(&index).copied()
    }

    /// As [`LiveWindow::control`], to change it.
    pub(super) fn control_mut(&mut self, index: usize) -> Option<&mut Node> {
        self.nodes.get_mut(self.by_control.get(&index)?)
    }

    /// Takes a control out, with everything in it.
    pub(super) fn remove_control(&mut self, index: usize) {
        if let Some(id) = self.by_control.get(&index).copied() {
            self.remove(id);
        }
    }

    /// Takes a node out, with everything in it.
    pub(super) fn remove(&mut self, id: NodeId) {
        if id == self.root {
            return;
        }
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
            if id != self.root
                && let Some(node) = self.nodes.remove(&id)
            {
                waiting.extend(node.children);
            }
        }
        self.menu = self.menu.filter(|menu| self.nodes.contains_key(menu));
        self.by_control
            .retain(|_, node| self.nodes.contains_key(node));
    }

    /// Adds a row at the end of a list.
    pub(super) fn append_row(&mut self, index: usize, title: String, next_node: &mut NodeId) {
        /// Rows that a list holds at most; a further one is not added.
        const MAX_ROWS: usize = 50_000;
        let Some(list) = self.by_control.get(&index).copied() else {
            return;
        };
        let Some(node) = self.nodes.get_mut(&list) else {
            return;
        };
        if let Content::List {
            recycled: Some(Recycled { rows, .. }),
        } = &mut node.control.content
        {
            if rows.len() < MAX_ROWS {
                rows.push(title);
                self.add_recycled_rows(list, next_node);
            }
            return;
        }
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

    /// Gives a recycled list as many row controls as it shows, and those what lies in view.
    fn add_recycled_rows(&mut self, list: NodeId, next_node: &mut NodeId) {
        let Some(node) = self.nodes.get(&list) else {
            return;
        };
        let Content::List {
            recycled: Some(Recycled { rows, .. }),
        } = &node.control.content
        else {
            return;
        };
        let bounds = node.control.bounds;
        for _ in node.children.len()..rows.len().min(rows_shown(bounds)) {
            let row = ControlSpec::plain(
                None,
                row_bounds(bounds, 0),
                Content::Row { selected: false },
            );
            self.add(Some(list), row, next_node);
        }
        self.refill(list);
    }

    /// Puts into the row controls of a recycled list what lies in view.
    pub(super) fn refill(&mut self, list: NodeId) {
        let Some(node) = self.nodes.get(&list) else {
            return;
        };
        let Content::List {
            recycled: Some(Recycled { rows, selected }),
        } = node.control.content.clone()
        else {
            return;
        };
        let bounds = node.control.bounds;
        let first = super::scroll::first_row(node);
        for (row, id) in (first..).zip(node.children.clone()) {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.control.title = rows.get(row).cloned();
                node.control.bounds = row_bounds(bounds, row);
                node.control.content = Content::Row {
                    selected: selected == Some(row),
                };
            }
        }
    }

    /// Makes `row` the selected row of its list.
    pub(super) fn select_row(&mut self, row: NodeId) {
        let Some(list) = self.nodes.get(&row).and_then(|node| node.parent) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(&list) else {
            return;
        };
        let first = super::scroll::first_row(node);
        let children = node.children.clone();
        if let Content::List {
            recycled: Some(Recycled { selected, .. }),
        } = &mut node.control.content
        {
            *selected = children
                .iter()
                .position(|child| *child == row)
                .map(|place| first + place);
            self.refill(list);
            return;
        }
        for id in children {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.control.content = Content::Row {
                    selected: id == row,
                };
            }
        }
    }

    /// Gives the focus to a node, or to none.
    pub(super) fn set_focus(&mut self, focus: Option<NodeId>) {
        for (id, node) in &mut self.nodes {
            node.control.focused = Some(*id) == focus;
        }
    }

    /// The node that has the focus.
    pub(super) fn focus(&self) -> Option<NodeId> {
        let mut nodes = self.nodes.iter();
        nodes
            .find(|(_, node)| node.control.focused)
            .map(|(id, _)| *id)
    }

    /// Opens the menu of a control at a place, in place of another one that is open.
    pub(super) fn add_menu(
        &mut self,
        owner: NodeId,
        menu: ControlSpec,
        items: Vec<(Option<usize>, ControlSpec)>,
        next_node: &mut NodeId,
    ) {
        self.close_menu();
        let menu = self.add(Some(owner), menu, next_node);
        for (control, item) in items {
            let node = self.add(Some(menu), item, next_node);
            if let Some(control) = control {
                self.by_control.insert(control, node);
            }
        }
        self.menu = Some(menu);
    }

    /// Closes the open menu.
    pub(super) fn close_menu(&mut self) {
        self.highlight = None;
        if let Some(menu) = self.menu.take() {
            self.remove(menu);
        }
    }

    /// Gives the window another size; what lies inside stays where it is.
    pub(super) fn resize(&mut self, width: i32, height: i32) {
        (self.bounds.width, self.bounds.height) = (width, height);
        if let Some(root) = self.nodes.get_mut(&self.root) {
            root.control.bounds = Rect::new(0, 0, width, height);
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
        if let Content::Button {
            part: ButtonPart::Default | ButtonPart::Cancel,
        } = control.content
        {
            self.buttons.push(id);
        }
        self.nodes.insert(
            id,
            Node {
                parent,
                children,
                control,
                selection: Selection::AT_END,
                scroll: 0,
                held: false,
            },
        );
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            parent.children.push(id);
        }
        id
    }
}

/// Whether a control of the scenario is there only while a menu is open.
fn is_in_context_menu(controls: &[ControlSpec], control: &ControlSpec) -> bool {
    let is_menu = |control: &ControlSpec| matches!(control.content, Content::ContextMenu);
    is_menu(control)
        || control
            .parent
            .is_some_and(|parent| is_menu(&controls[parent]))
}
