//! Scrolling: what a list or a text area shows of what it holds.
//!
//! A list scrolls by whole rows and a text area by whole lines, so that nothing is ever cut in half and a position has one
//! meaning.

use maka_cu_protocol::sets::Direction;

use super::{ActionRefusal, LiveWindow, Node, NodeId, World};
use crate::backend::virtual_desktop::render::layout;
use crate::backend::virtual_desktop::scenario::{Content, ROW_HEIGHT, rows_shown};

/// Index of the first row that a list shows.
pub(super) fn first_row(list: &Node) -> usize {
    usize::try_from(list.scroll / ROW_HEIGHT).unwrap_or(0)
}

/// Height of one step and number of steps that a node shows at one time, and how many it holds; `None` for a node that
/// never scrolls.
fn extent(node: &Node) -> Option<(i32, usize, usize)> {
    let bounds = node.control.bounds;
    match &node.control.content {
        Content::List { recycled } => {
            let rows = recycled
                .as_ref()
                .map_or(node.children.len(), |recycled| recycled.rows.len());
            Some((ROW_HEIGHT, rows_shown(bounds), rows))
        }
        Content::TextArea { value } => Some((
            layout::LINE_HEIGHT,
            layout::lines_shown(bounds),
            layout::lines(value, bounds).len(),
        )),
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
        | Content::CheckBox { .. }
        | Content::RadioButton { .. }
        | Content::PopUpButton { .. }
        | Content::Row { .. }
        | Content::MenuBar
        | Content::Menu
        | Content::MenuItem
        | Content::ContextMenu
        | Content::Slider { .. } => None,
    }
}

/// Whether a node holds more than it shows.
pub(crate) fn overflows(node: &Node) -> bool {
    extent(node).is_some_and(|(_, shown, held)| held > shown)
}

/// Scrolls a text area until the line with the caret is in view. Anything else shows its caret without scrolling.
pub(super) fn reveal_caret(node: &mut Node) {
    let Content::TextArea { value } = &node.control.content else {
        return;
    };
    let bounds = node.control.bounds;
    let lines = layout::lines(value, bounds);
    let line = layout::line_of(&lines, node.selection.caret(value));
    let shown = layout::lines_shown(bounds);
    let first = usize::try_from(node.scroll / layout::LINE_HEIGHT).unwrap_or(0);
    let first = first
        .clamp((line + 1).saturating_sub(shown), line)
        .min(lines.len().saturating_sub(shown));
    node.scroll = i32::try_from(first).unwrap_or(0) * layout::LINE_HEIGHT;
}

/// Which part of what it holds a node shows, from 0 to 1: where that begins and how much it is. `None` when it shows all.
pub(crate) fn shown_part(node: &Node) -> Option<(f64, f64)> {
    let (step, shown, held) = extent(node)?;
    let share = |steps: f64| steps / held as f64;
    (held > shown).then(|| (share(f64::from(node.scroll / step)), share(shown as f64)))
}

impl LiveWindow {
    /// Moves what a node shows by a number of pages, as far as there is more.
    fn scroll_by(&mut self, id: NodeId, pages: f64) {
        let Some(node) = self.node_mut(id) else {
            return;
        };
        let Some((step, shown, held)) = extent(node) else {
            return;
        };
        // Half a page of one row is still a row: whoever scrolls means to get on.
        let steps = (pages.abs() * shown as f64).round().clamp(1.0, 1e6) as i32;
        let end = i32::try_from(held.saturating_sub(shown)).unwrap_or(i32::MAX / step);
        let by = if pages < 0.0 { -steps } else { steps };
        node.scroll = (node.scroll / step).saturating_add(by).clamp(0, end) * step;
        self.refill(id);
    }

    /// How many rows a list has.
    pub(super) fn row_count(&self, list: NodeId) -> usize {
        self.node(list)
            .and_then(extent)
            .map_or(0, |(.., rows)| rows)
    }

    /// Index of the selected row of a list.
    pub(super) fn selected_row(&self, list: NodeId) -> Option<usize> {
        let list = self.node(list)?;
        if let Content::List {
            recycled: Some(recycled),
        } = &list.control.content
        {
            return recycled.selected;
        }
        list.children.iter().position(|row| {
            let row = self.node(*row).map(|row| &row.control.content);
            matches!(row, Some(Content::Row { selected: true }))
        })
    }

    /// The node that stands for a row, if there is one now.
    pub(super) fn row_node(&self, list: NodeId, row: usize) -> Option<NodeId> {
        let list = self.node(list)?;
        let recycles = matches!(list.control.content, Content::List { recycled: Some(_) });
        let first = if recycles { first_row(list) } else { 0 };
        list.children.get(row.checked_sub(first)?).copied()
    }

    /// Selects a row of a list by its index and scrolls it into view; whether there is such a row.
    pub(super) fn select_index(&mut self, list: NodeId, row: usize) -> bool {
        if row >= self.row_count(list) {
            return false;
        }
        let Some(node) = self.node_mut(list) else {
            return false;
        };
        let shown = rows_shown(node.control.bounds);
        let first = first_row(node).clamp((row + 1).saturating_sub(shown), row);
        node.scroll = i32::try_from(first).unwrap_or(0) * ROW_HEIGHT;
        self.refill(list);
        if let Some(node) = self.row_node(list, row) {
            self.select_row(node);
        }
        true
    }

    /// Scrolls a list until a row of it lies in view.
    pub(super) fn reveal_row(&mut self, row: NodeId) {
        let Some(list) = self.node(row).and_then(|node| node.parent) else {
            return;
        };
        let place = self
            .node(list)
            .and_then(|list| list.children.iter().position(|child| *child == row));
        let recycles =
            |node: &Node| matches!(node.control.content, Content::List { recycled: Some(_) });
        if let Some(place) = place
            && let Some(node) = self.node_mut(list)
            && !recycles(node)
        {
            let shown = rows_shown(node.control.bounds);
            let first = first_row(node);
            let first = first.clamp((place + 1).saturating_sub(shown), place);
            node.scroll = i32::try_from(first).unwrap_or(0) * ROW_HEIGHT;
        }
    }

    /// The node that the wheel moves when it turns over `id`: itself or the nearest one around it.
    pub(super) fn scrolled_by_wheel(&self, id: NodeId) -> Option<NodeId> {
        let mut next = Some(id);
        while let Some(id) = next {
            let node = self.node(id)?;
            if extent(node).is_some() {
                return Some(id);
            }
            next = node.parent;
        }
        None
    }

    /// Turns the wheel over a node.
    pub(super) fn wheel(&mut self, over: NodeId, direction: Direction, pages: f64) {
        if let Some(id) = self.scrolled_by_wheel(over) {
            self.scroll_in(id, direction, pages);
        }
    }

    /// Scrolls a node in a direction; nothing moves sideways. Whether it can move that way at all.
    pub(super) fn scroll_in(&mut self, id: NodeId, direction: Direction, pages: f64) -> bool {
        match direction {
            Direction::Up => self.scroll_by(id, -pages),
            Direction::Down => self.scroll_by(id, pages),
            Direction::Left | Direction::Right => return false,
        }
        true
    }
}

impl World {
    /// Scrolls a list or a text area by pages.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`]; what never scrolls, or not in this direction, cannot do it.
    pub(crate) fn scroll(
        &mut self,
        window_id: u32,
        node: NodeId,
        direction: Direction,
        pages: f64,
    ) -> Result<(), ActionRefusal> {
        let control = self.control(window_id, node)?;
        let scrolls = extent(control).is_some();
        if !scrolls || matches!(direction, Direction::Left | Direction::Right) {
            return Err(ActionRefusal::NotActionable);
        }
        let behavior = control.control.behavior.scroll;
        self.act(window_id, node, behavior, |window| {
            window.scroll_in(node, direction, pages);
        })
    }
}
