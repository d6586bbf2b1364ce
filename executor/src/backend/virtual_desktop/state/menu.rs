//! Menus that open over the controls of a window: context menus, and the choices of a pop-up button.
//!
//! Such a menu belongs to the tree of its window and is there only while it is open. Each opening makes new nodes, so that
//! a reference to an item of an earlier one stops answering, as it does on a real desktop.

use std::time::Instant;

use maka_cu_protocol::keys::{Key, NamedKey};

use super::{LiveWindow, Node, NodeId, World};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{
    Content, ControlSpec, ROW_HEIGHT, ROW_MARGIN, TITLE_BAR_HEIGHT, row_bounds,
};

/// Width of an open menu, in points.
const WIDTH: i32 = 180;

impl LiveWindow {
    /// Whether a menu belongs to a node.
    pub(super) fn owns_menu(&self, id: NodeId) -> bool {
        match self.node(id).map(|node| &node.control.content) {
            Some(Content::PopUpButton { .. }) => true,
            Some(_) => self.menus.contains(&id),
            None => false,
        }
    }

    /// The nearest node at or around `id` that a menu belongs to.
    pub(super) fn menu_owner(&self, id: NodeId) -> Option<NodeId> {
        let mut next = Some(id);
        while let Some(id) = next {
            if self.owns_menu(id) {
                return Some(id);
            }
            next = self.node(id)?.parent;
        }
        None
    }

    /// Whether a node is an item of the open menu that the arrow keys came to; `None` for what is no item of it.
    pub(crate) fn is_highlighted(&self, id: NodeId, node: &Node) -> Option<bool> {
        let is_item = self.menu.is_some() && node.parent == self.menu;
        is_item.then(|| self.highlight == Some(id))
    }

    /// Sends the highlight of the open menu to the next item that can be picked, or to the one before.
    fn move_highlight(&mut self, back: bool) {
        let items = self.menu.and_then(|menu| self.node(menu));
        let usable = |id: &NodeId| self.node(*id).is_some_and(|item| item.control.enabled);
        let items = items.map(|menu| menu.children.iter().copied().filter(usable));
        let items: Vec<NodeId> = items.into_iter().flatten().collect();
        let here = self
            .highlight
            .and_then(|highlight| items.iter().position(|id| *id == highlight));
        let next = match (here, back) {
            (None, false) => 0,
            (None, true) => items.len().saturating_sub(1),
            (Some(here), false) => (here + 1).min(items.len() - 1),
            (Some(here), true) => here.saturating_sub(1),
        };
        self.highlight = items.get(next).copied();
    }

    /// Makes a radio button the chosen one of its container.
    pub(super) fn choose(&mut self, id: NodeId) {
        let container = self.node(id).and_then(|node| node.parent);
        let siblings = container
            .and_then(|container| self.node(container))
            .map(|container| container.children.clone());
        for sibling in siblings.unwrap_or_default() {
            if let Some(node) = self.node_mut(sibling)
                && let Content::RadioButton { chosen } = &mut node.control.content
            {
                *chosen = sibling == id;
            }
        }
    }
}

impl World {
    /// A key while a menu is open: the menu takes all of them. Whether one is.
    pub(super) fn menu_key(&mut self, window_id: u32, key: Key, now: Instant) -> bool {
        let Some(window) = self
            .live_mut(window_id)
            .filter(|window| window.menu.is_some())
        else {
            return false;
        };
        match key {
            Key::Named(NamedKey::Escape) => window.close_menu(),
            Key::Named(NamedKey::Down) => window.move_highlight(false),
            Key::Named(NamedKey::Up) => window.move_highlight(true),
            Key::Named(NamedKey::Return | NamedKey::Space) => {
                if let Some(item) = window.highlight {
                    self.clicked(window_id, item, now);
                }
            }
            Key::Named(_) | Key::Printable(_) => {}
        }
        true
    }

    /// Opens the menu that belongs to a control, at a point or below the control.
    pub(super) fn show_menu(&mut self, window_id: u32, owner: NodeId, at: Option<(i32, i32)>) {
        let Some(window) = self.live(window_id) else {
            return;
        };
        let Some(node) = window.node(owner).filter(|node| node.control.enabled) else {
            return;
        };
        let mut menu = ControlSpec::plain(None, Rect::new(0, 0, 0, 0), Content::ContextMenu);
        let items: Vec<(Option<usize>, ControlSpec)> =
            if let Content::PopUpButton { choices, .. } = &node.control.content {
                let item = |choice: &String| {
                    let bounds = Rect::new(0, 0, 0, 0);
                    let item = ControlSpec::plain(None, bounds, Content::MenuItem);
                    let title = Some(choice.clone());
                    (None, ControlSpec { title, ..item })
                };
                choices.iter().map(item).collect()
            } else {
                let controls = &self.scenario.windows[window.spec].controls;
                let own = if owner == window.root {
                    None
                } else {
                    window.control_of(owner)
                };
                let found = controls.iter().position(|control| {
                    matches!(control.content, Content::ContextMenu) && control.parent == own
                });
                let Some(found) = found else { return };
                menu = controls[found].clone();
                let items = controls.iter().enumerate();
                items
                    .filter(|(_, item)| item.parent == Some(found))
                    .map(|(index, item)| (Some(index), item.clone()))
                    .collect()
            };
        let place = window.place(node);
        let (x, y) = at.unwrap_or((place.x, place.bottom()));
        menu.bounds = menu_bounds(window.bounds, x, y, items.len());
        let bounds = menu.bounds;
        let items = items
            .into_iter()
            .enumerate()
            .map(|(row, (index, mut item))| {
                item.bounds = row_bounds(bounds, row);
                (index, item)
            });
        let items = items.collect();
        let mut next_node = self.next_node;
        if let Some(window) = self.live_mut(window_id) {
            window.add_menu(owner, menu, items, &mut next_node);
        }
        self.next_node = next_node;
    }

    /// Closes the menu that an item was picked from, after a choice was handed to its button. Does nothing for an item of
    /// the menu bar.
    pub(super) fn leave_menu(&mut self, window_id: u32, item: NodeId, now: Instant) {
        let Some(window) = self.live_mut(window_id) else {
            return;
        };
        let menu = window.node(item).and_then(|item| item.parent);
        if menu.is_none() || menu != window.menu {
            return;
        }
        let menu = menu.and_then(|menu| window.node(menu));
        let place = menu.and_then(|menu| menu.children.iter().position(|child| *child == item));
        let owner = menu.and_then(|menu| menu.parent);
        window.close_menu();
        let Some(owner) = owner else { return };
        if let Some(node) = window.node_mut(owner)
            && let Content::PopUpButton { chosen, .. } = &mut node.control.content
        {
            *chosen = place.unwrap_or(*chosen);
            self.changed(window_id, owner, now);
        }
    }
}

/// Where a menu of `items` rows opens: with its corner at a point, moved so that it lies inside the window.
fn menu_bounds(window: Rect, x: i32, y: i32, items: usize) -> Rect {
    let width = WIDTH.min(window.width);
    let rows = i32::try_from(items.clamp(1, 64)).expect("64 fits");
    let height = rows * ROW_HEIGHT + 2 * ROW_MARGIN;
    Rect::new(
        x.min(window.width - width).max(0),
        y.min(window.height - height).max(TITLE_BAR_HEIGHT),
        width,
        height,
    )
}
