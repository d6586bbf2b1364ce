//! The pointer: what lies under a point, and what clicks, drags and the wheel do there.
//!
//! Events for one window go to that window whatever lies over it, and move nothing else. System-wide ones move the pointer,
//! go to whatever window is on top at that place, and bring it to the front when a button is pressed, as on any desktop.

use std::time::Instant;

use maka_cu_protocol::sets::{Direction, MouseButton};

use super::edit::{self, Selection};
use super::handle::Handling;
use super::{ActionRefusal, LiveWindow, NodeId, World};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::render::layout;
use crate::backend::virtual_desktop::scenario::{Behavior, Content, TITLE_BAR_HEIGHT};

/// A point in whole points; what it is relative to is said by who holds it.
pub(crate) type Point = (i32, i32);

/// The pointer and what it holds down.
#[derive(Debug, Default)]
pub(super) struct Pointer {
    /// Where it is, on the screen.
    at: Point,
    /// The left button that is down, if it is.
    held: Option<Held>,
}

/// A button that went down and not up again.
#[derive(Clone, Copy, Debug)]
struct Held {
    window_id: u32,
    /// In the window.
    from: Point,
}

/// What is done at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pointing {
    /// Nothing but coming there.
    Move,
    /// Clicks in quick succession.
    Click(MouseButton, u8),
    /// The left button goes down.
    Press,
    /// The left button comes up.
    Release,
    /// The left button goes down at this point of the window and comes up here.
    Drag(Point),
    /// The wheel is turned by pages.
    Wheel(Direction, f64),
}

/// Where a gesture is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To this window alone.
    Window(u32),
    /// To whatever is on top there; the id is that of the window whose points are given.
    Screen(u32),
}

/// What lies under a point of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hit {
    /// The button that closes the window.
    Close,
    /// The rest of the title bar.
    TitleBar,
    /// A control, or the window itself where nothing else is.
    Node(NodeId),
    /// Nothing: the point is outside.
    Outside,
}

impl LiveWindow {
    /// The square of the button that closes the window.
    pub(crate) fn close_button(&self) -> Rect {
        Rect::new(self.bounds.width - 30, 9, 20, 20)
    }

    fn hit(&self, at: Point) -> Hit {
        let whole = Rect::new(0, 0, self.bounds.width, self.bounds.height);
        if !whole.contains(at) {
            return Hit::Outside;
        }
        let mut top_down = self.in_paint_order().rev();
        let found = top_down.find(|(_, node)| {
            let drawn = match &node.control.content {
                Content::Group | Content::MenuBar | Content::Menu => false,
                Content::Row { .. } => {
                    let list = self.list_of(node);
                    list.is_some_and(|list| list.control.bounds.contains_rect(self.place(node)))
                }
                Content::Window(_)
                | Content::Panel
                | Content::Label(_)
                | Content::Button { .. }
                | Content::Link
                | Content::Image
                | Content::Progress { .. }
                | Content::TextField { .. }
                | Content::SecureField { .. }
                | Content::TextArea { .. }
                | Content::CheckBox { .. }
                | Content::RadioButton { .. }
                | Content::PopUpButton { .. }
                | Content::List { .. }
                | Content::MenuItem
                | Content::ContextMenu
                | Content::Slider { .. } => true,
            };
            drawn && self.place(node).contains(at)
        });
        match found {
            Some((id, _)) if id != self.root => Hit::Node(id),
            _ if self.close_button().contains(at) => Hit::Close,
            _ if at.1 < TITLE_BAR_HEIGHT => Hit::TitleBar,
            _ => Hit::Node(self.root),
        }
    }

    /// Whether a node belongs to the open menu.
    fn is_in_menu(&self, id: NodeId) -> bool {
        let parent = self.node(id).and_then(|node| node.parent);
        self.menu.is_some() && (self.menu == Some(id) || self.menu == parent)
    }
}

impl World {
    /// Where the pointer is, on the screen.
    #[cfg(test)]
    pub(crate) fn pointer(&self) -> Point {
        self.pointer.at
    }

    /// Carries a gesture out at a point of a window.
    ///
    /// # Errors
    ///
    /// [`ActionRefusal::NotActionable`] when the window is gone, [`ActionRefusal::Unknown`] from a control that does not
    /// say what it did. What an application declines simply does not happen: nobody answers an event.
    pub(crate) fn point(
        &mut self,
        target: Target,
        pointing: Pointing,
        at: Point,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let (window_id, at, pointing) = match target {
            Target::Window(window_id) => (window_id, at, pointing),
            Target::Screen(window_id) => {
                let window = self.live(window_id).ok_or(ActionRefusal::NotActionable)?;
                let (x, y) = (window.bounds.x, window.bounds.y);
                let on_screen = |at: Point| (at.0.saturating_add(x), at.1.saturating_add(y));
                self.pointer.at = on_screen(at);
                let touched = match pointing {
                    Pointing::Drag(from) => on_screen(from),
                    _ => self.pointer.at,
                };
                let under = self
                    .shown_windows()
                    .find(|window| window.bounds.contains(touched));
                let Some((id, bounds)) = under.map(|window| (window.window_id, window.bounds))
                else {
                    self.pointer.held = None;
                    return Ok(());
                };
                let local = |at: Point| (at.0 - bounds.x, at.1 - bounds.y);
                let pointing = match pointing {
                    Pointing::Drag(from) => Pointing::Drag(local(on_screen(from))),
                    other => other,
                };
                match pointing {
                    Pointing::Click(..) | Pointing::Press | Pointing::Drag(_) => {
                        self.activate_id(id);
                    }
                    Pointing::Move | Pointing::Release | Pointing::Wheel(..) => {}
                }
                (id, local(self.pointer.at), pointing)
            }
        };
        self.live(window_id).ok_or(ActionRefusal::NotActionable)?;
        self.pointed(window_id, pointing, at, now)
    }

    fn pointed(
        &mut self,
        window_id: u32,
        pointing: Pointing,
        at: Point,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        match pointing {
            Pointing::Move => self.hover(window_id, at, now),
            Pointing::Click(button, count) => {
                return self.click(window_id, button, count, at, now);
            }
            Pointing::Press => self.press_down(window_id, at),
            Pointing::Release => return self.release(window_id, at, now),
            Pointing::Drag(from) => self.drag(window_id, from, at, now),
            Pointing::Wheel(direction, pages) => {
                if !self.is_blocked(window_id)
                    && let Some(window) = self.live_mut(window_id)
                    && let Hit::Node(over) = window.hit(at)
                {
                    window.wheel(over, direction, pages);
                }
            }
        }
        Ok(())
    }

    fn hover(&mut self, window_id: u32, at: Point, now: Instant) {
        let Some(window) = self.live(window_id) else {
            return;
        };
        if let Hit::Node(id) = window.hit(at) {
            let pid = window.pid;
            let effects = window.node(id).map(|node| node.control.on_hover.clone());
            self.schedule(Some(pid), &effects.unwrap_or_default(), now);
        }
    }

    fn click(
        &mut self,
        window_id: u32,
        button: MouseButton,
        count: u8,
        at: Point,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        if self.is_blocked(window_id) {
            return Ok(());
        }
        let Some(window) = self.live_mut(window_id) else {
            return Err(ActionRefusal::NotActionable);
        };
        let hit = window.hit(at);
        let inside_menu = matches!(hit, Hit::Node(id) if window.is_in_menu(id));
        if window.menu.is_some() && !inside_menu {
            // A click beside an open menu closes it and does nothing else.
            window.close_menu();
            return Ok(());
        }
        match (button, hit) {
            (MouseButton::Left, Hit::Close) => self.close(window_id),
            (MouseButton::Left, Hit::Node(id)) => {
                return self.left_click(window_id, id, count, at, now);
            }
            (MouseButton::Right, Hit::Node(id)) => self.right_click(window_id, id, at),
            (MouseButton::Middle, Hit::Node(_))
            | (MouseButton::Right | MouseButton::Middle, Hit::Close)
            | (_, Hit::TitleBar | Hit::Outside) => {}
        }
        Ok(())
    }

    fn left_click(
        &mut self,
        window_id: u32,
        id: NodeId,
        count: u8,
        at: Point,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let control = &self.control(window_id, id)?.control;
        let behavior = control.behavior.press;
        if !control.enabled {
            return Ok(());
        }
        if !matches!(self.begin(window_id, id, behavior), Ok(true)) {
            return Ok(());
        }
        self.focus_by_click(window_id, id);
        match &self.control(window_id, id)?.control.content {
            Content::TextField { .. } | Content::SecureField { .. } | Content::TextArea { .. } => {
                self.click_text(window_id, id, count, at)
            }
            Content::Slider { .. } => self.slide(window_id, id, at, now),
            Content::Row { .. } => {
                self.pressed(window_id, id, now);
                if count > 1 {
                    self.opened(window_id, id, now);
                }
            }
            Content::Window(_)
            | Content::Group
            | Content::Panel
            | Content::Label(_)
            | Content::Button { .. }
            | Content::Link
            | Content::Image
            | Content::Progress { .. }
            | Content::CheckBox { .. }
            | Content::RadioButton { .. }
            | Content::PopUpButton { .. }
            | Content::List { .. }
            | Content::MenuBar
            | Content::Menu
            | Content::MenuItem
            | Content::ContextMenu => {
                for _ in 0..count {
                    self.pressed(window_id, id, now);
                }
            }
        }
        match behavior {
            Behavior::Unknown => Err(ActionRefusal::Unknown),
            Behavior::Works
            | Behavior::Ignored
            | Behavior::Refused
            | Behavior::Hangs
            | Behavior::Vanishes => Ok(()),
        }
    }

    fn right_click(&mut self, window_id: u32, id: NodeId, at: Point) {
        let Some(window) = self.live_mut(window_id) else {
            return;
        };
        if window.is_in_menu(id) {
            return;
        }
        let is_row = |node: &super::Node| matches!(node.control.content, Content::Row { .. });
        if window.node(id).is_some_and(is_row) {
            window.select_row(id);
        }
        if let Some(owner) = window.menu_owner(id) {
            self.show_menu(window_id, owner, Some(at));
        }
    }

    /// A click gives the focus to what is edited with keys; buttons leave it where it is.
    fn focus_by_click(&mut self, window_id: u32, id: NodeId) {
        let Some(window) = self.live_mut(window_id) else {
            return;
        };
        let Some(node) = window.node(id) else { return };
        let focused = match &node.control.content {
            Content::TextField { .. }
            | Content::SecureField { .. }
            | Content::TextArea { .. }
            | Content::Slider { .. }
            | Content::List { .. } => Some(id),
            Content::Row { .. } => node.parent,
            Content::Window(_)
            | Content::Group
            | Content::Panel
            | Content::Label(_)
            | Content::Button { .. }
            | Content::Link
            | Content::Image
            | Content::Progress { .. }
            | Content::CheckBox { .. }
            | Content::RadioButton { .. }
            | Content::PopUpButton { .. }
            | Content::MenuBar
            | Content::Menu
            | Content::MenuItem
            | Content::ContextMenu => None,
        };
        if focused.is_some() {
            window.set_focus(focused);
        }
    }

    /// One click sets the caret, two select a word, three a line.
    fn click_text(&mut self, window_id: u32, id: NodeId, count: u8, at: Point) {
        let Some(node) = self.node_mut(window_id, id) else {
            return;
        };
        let place = layout::place_in_text(node, at);
        let secret = matches!(node.control.content, Content::SecureField { .. });
        let text = node.control.content.text().unwrap_or_default();
        node.selection = match count {
            1 => Selection::caret_at(place),
            // Where a word ends is nobody's business in a password.
            _ if secret => Selection::all(),
            2 => {
                let word = edit::word_at(text, place);
                Selection::new(word.start, word.end)
            }
            _ => {
                let line = edit::line_at(text, place);
                Selection::new(line.start, line.end)
            }
        };
    }

    /// Moves the knob of a slider under a point.
    fn slide(&mut self, window_id: u32, id: NodeId, at: Point, now: Instant) {
        let moved = self.node_mut(window_id, id).is_some_and(|node| {
            let bounds = node.control.bounds;
            let Content::Slider { min, max, .. } = node.control.content else {
                return false;
            };
            let share = layout::slider_share(bounds, at.0);
            node.control.content.slide_to(min + share * (max - min))
        });
        if moved {
            self.changed(window_id, id, now);
        }
    }

    fn press_down(&mut self, window_id: u32, at: Point) {
        if self.pointer.held.is_some() || self.is_blocked(window_id) {
            // A button that is down cannot go down.
            return;
        }
        self.pointer.held = Some(Held {
            window_id,
            from: at,
        });
        self.show_held(window_id, at, true);
        if let Some(window) = self.live(window_id)
            && let Hit::Node(id) = window.hit(at)
            && window
                .node(id)
                .is_some_and(|node| node.control.content.is_text() && node.control.enabled)
        {
            self.focus_by_click(window_id, id);
            self.click_text(window_id, id, 1, at);
        }
    }

    fn release(&mut self, window_id: u32, at: Point, now: Instant) -> Result<(), ActionRefusal> {
        let Some(held) = self.pointer.held.take() else {
            return Ok(());
        };
        self.show_held(held.window_id, held.from, false);
        if held.window_id != window_id {
            return Ok(());
        }
        if held.from == at {
            return self.click(window_id, MouseButton::Left, 1, at, now);
        }
        self.drag(window_id, held.from, at, now);
        Ok(())
    }

    fn show_held(&mut self, window_id: u32, at: Point, held: bool) {
        if let Some(window) = self.live_mut(window_id)
            && let Hit::Node(id) = window.hit(at)
            && let Some(node) = window.node_mut(id)
        {
            node.held = held;
        }
    }

    /// What a drag does depends on where it starts: the title bar moves the window, a slider follows, a text is selected,
    /// and anything that is pressed is pressed when the button comes up over it.
    fn drag(&mut self, window_id: u32, from: Point, to: Point, now: Instant) {
        if self.is_blocked(window_id) {
            return;
        }
        let Some(window) = self.live_mut(window_id) else {
            return;
        };
        let (start, end) = (window.hit(from), window.hit(to));
        let bounds = window.bounds;
        let id = match start {
            Hit::TitleBar => {
                let x = bounds.x.saturating_add(to.0.saturating_sub(from.0));
                let y = bounds.y.saturating_add(to.1.saturating_sub(from.1));
                if let Err(refusal) = self.handle(window_id, Handling::Move(x, y), now) {
                    // Nobody answers an event: a window that is not to be moved stays where it is.
                    tracing::debug!(?refusal, "a window was not dragged");
                }
                return;
            }
            Hit::Node(id) => id,
            Hit::Close | Hit::Outside => return,
        };
        let Some(node) = window.node(id).filter(|node| node.control.enabled) else {
            return;
        };
        match &node.control.content {
            Content::TextField { .. } | Content::SecureField { .. } | Content::TextArea { .. } => {
                self.focus_by_click(window_id, id);
                if let Some(node) = self.node_mut(window_id, id) {
                    let anchor = layout::place_in_text(node, from);
                    node.selection = Selection::new(anchor, layout::place_in_text(node, to));
                }
            }
            Content::Slider { .. } => {
                self.focus_by_click(window_id, id);
                self.slide(window_id, id, to, now);
            }
            Content::Window(_)
            | Content::Group
            | Content::Panel
            | Content::Label(_)
            | Content::Button { .. }
            | Content::Link
            | Content::Image
            | Content::Progress { .. }
            | Content::CheckBox { .. }
            | Content::RadioButton { .. }
            | Content::PopUpButton { .. }
            | Content::List { .. }
            | Content::Row { .. }
            | Content::MenuBar
            | Content::Menu
            | Content::MenuItem
            | Content::ContextMenu => {
                if start == end {
                    self.clicked(window_id, id, now);
                }
            }
        }
    }
}
