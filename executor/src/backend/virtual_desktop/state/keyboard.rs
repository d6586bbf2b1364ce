//! Keys: what a window does with them, by the control that has its focus.
//!
//! Text goes into fields; return, escape, tab, space and the arrows do what they do in a dialog; chords with the command or
//! control key edit, or press the control whose shortcut they are. Whoever expects the effects of a change gets them once
//! for a run of characters, and before whatever the next key sets off.

use std::time::Instant;

use maka_cu_protocol::keys::{Key, Modifiers, NamedKey};
use maka_cu_protocol::sets::{Direction, Modifier};

use super::act::told;
use super::edit::{self, Motion, Selection};
use super::scroll::reveal_caret;
use super::{ActionRefusal, LiveWindow, Node, NodeId, World};
use crate::backend::virtual_desktop::scenario::{Behavior, ButtonPart, Content, Shortcut};

/// Steps that a page key moves a slider by.
const PAGE_STEPS: f64 = 10.0;

/// The modifiers of a chord, as far as anything here reacts to them.
#[derive(Clone, Copy)]
struct Held {
    shift: bool,
    option: bool,
    command: bool,
    control: bool,
}

impl Held {
    fn new(modifiers: &Modifiers) -> Self {
        Self {
            shift: modifiers.contains(Modifier::Shift),
            option: modifiers.contains(Modifier::Option),
            command: modifiers.contains(Modifier::Command),
            control: modifiers.contains(Modifier::Control),
        }
    }

    const fn commands(self) -> bool {
        self.command || self.control
    }
}

impl World {
    /// Types a text into the window of a control that has the focus there.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`]; a control that does not have the focus gets no keys.
    pub(crate) fn type_text(
        &mut self,
        window_id: u32,
        id: NodeId,
        text: &str,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let (goes_on, behavior) = self.listens(window_id, id)?;
        if goes_on {
            let mut rest = text;
            while !rest.is_empty() && self.live(window_id).is_some() {
                let end = rest.find(['\r', '\n', '\t']).unwrap_or(rest.len());
                let in_menu = self
                    .live(window_id)
                    .is_some_and(|window| window.menu.is_some());
                if end > 0 {
                    if !in_menu {
                        self.insert(window_id, &rest[..end], now);
                    }
                    rest = &rest[end..];
                } else if let Some(after) = rest.strip_prefix("\r\n") {
                    self.enter(window_id, now);
                    rest = after;
                } else {
                    match rest.as_bytes()[0] {
                        b'\t' if in_menu => {}
                        b'\t' => self.tabulator(window_id, now),
                        _ => self.enter(window_id, now),
                    }
                    rest = &rest[1..];
                }
            }
        }
        told(behavior)
    }

    /// Strikes one key with modifiers held, in the window of a control that has the focus there.
    ///
    /// # Errors
    ///
    /// As [`World::type_text`].
    pub(crate) fn chord(
        &mut self,
        window_id: u32,
        id: NodeId,
        key: Key,
        modifiers: &Modifiers,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let (goes_on, behavior) = self.listens(window_id, id)?;
        if goes_on {
            self.strike(window_id, key, modifiers, now);
        }
        told(behavior)
    }

    fn listens(&mut self, window_id: u32, id: NodeId) -> Result<(bool, Behavior), ActionRefusal> {
        let control = &self.control(window_id, id)?.control;
        if !control.focused {
            return Err(ActionRefusal::NotActionable);
        }
        let behavior = control.behavior.keys;
        Ok((self.begin(window_id, id, behavior)?, behavior))
    }

    fn strike(&mut self, window_id: u32, key: Key, modifiers: &Modifiers, now: Instant) {
        let held = Held::new(modifiers);
        if self.menu_key(window_id, key, now) {
            return;
        }
        let Some(window) = self.live(window_id) else {
            return;
        };
        if let Some(pressed) = window.with_shortcut(key, held) {
            return self.clicked(window_id, pressed, now);
        }
        match key {
            Key::Named(named) => self.strike_named(window_id, named, held, now),
            Key::Printable(printable) if held.commands() => {
                self.command(window_id, printable.character(), now);
            }
            Key::Printable(_) => {
                if let Some(character) = key.carried(modifiers).filter(|_| !held.option) {
                    self.insert(window_id, character.encode_utf8(&mut [0; 4]), now);
                }
            }
        }
    }

    fn strike_named(&mut self, window_id: u32, key: NamedKey, held: Held, now: Instant) {
        let by_word = held.option || held.control;
        match key {
            NamedKey::Return => self.enter(window_id, now),
            NamedKey::Tab => self.move_focus(window_id, held.shift),
            NamedKey::Space => self.insert(window_id, " ", now),
            NamedKey::Escape => self.press_part(window_id, ButtonPart::Cancel, now),
            NamedKey::Backspace if by_word => self.delete(window_id, Motion::WordLeft, now),
            NamedKey::Backspace if held.command => self.delete(window_id, Motion::LineStart, now),
            NamedKey::Backspace => self.delete(window_id, Motion::Left, now),
            NamedKey::ForwardDelete if by_word => self.delete(window_id, Motion::WordRight, now),
            NamedKey::ForwardDelete => self.delete(window_id, Motion::Right, now),
            NamedKey::Left if by_word => self.go(window_id, Motion::WordLeft, held, now),
            NamedKey::Left if held.command => self.go(window_id, Motion::LineStart, held, now),
            NamedKey::Left => self.go(window_id, Motion::Left, held, now),
            NamedKey::Right if by_word => self.go(window_id, Motion::WordRight, held, now),
            NamedKey::Right if held.command => self.go(window_id, Motion::LineEnd, held, now),
            NamedKey::Right => self.go(window_id, Motion::Right, held, now),
            NamedKey::Up if held.command => self.go(window_id, Motion::Start, held, now),
            NamedKey::Up => self.go(window_id, Motion::Up, held, now),
            NamedKey::Down if held.command => self.go(window_id, Motion::End, held, now),
            NamedKey::Down => self.go(window_id, Motion::Down, held, now),
            NamedKey::Home if held.commands() => self.go(window_id, Motion::Start, held, now),
            NamedKey::Home => self.go(window_id, Motion::LineStart, held, now),
            NamedKey::End if held.commands() => self.go(window_id, Motion::End, held, now),
            NamedKey::End => self.go(window_id, Motion::LineEnd, held, now),
            NamedKey::PageUp => self.page(window_id, Direction::Up, now),
            NamedKey::PageDown => self.page(window_id, Direction::Down, now),
            // Nothing but a shortcut uses these.
            NamedKey::F1
            | NamedKey::F2
            | NamedKey::F3
            | NamedKey::F4
            | NamedKey::F5
            | NamedKey::F6
            | NamedKey::F7
            | NamedKey::F8
            | NamedKey::F9
            | NamedKey::F10
            | NamedKey::F11
            | NamedKey::F12 => {}
        }
    }

    /// Puts text where the caret stands. On anything but text, a space presses, and the rest goes nowhere.
    fn insert(&mut self, window_id: u32, text: &str, now: Instant) {
        let Some((id, node)) = self.focused_mut(window_id) else {
            return;
        };
        let room = node.control.max_chars;
        let mut selection = node.selection;
        if let Some(value) = node.control.content.text_mut() {
            edit::insert(value, &mut selection, text, room);
            node.selection = selection;
            reveal_caret(node);
            return self.changed(window_id, id, now);
        }
        let presses = node.control.content.is_pressable();
        for _ in text.matches(' ').filter(|_| presses) {
            self.clicked(window_id, id, now);
        }
    }

    fn delete(&mut self, window_id: u32, motion: Motion, now: Instant) {
        let Some((id, node)) = self.focused_mut(window_id) else {
            return;
        };
        let mut selection = node.selection;
        let deleted = match node.control.content.text_mut() {
            Some(value) => edit::delete(value, &mut selection, motion),
            None => false,
        };
        node.selection = selection;
        reveal_caret(node);
        if deleted {
            self.changed(window_id, id, now);
        }
    }

    /// The return key: a new line in a text area, the row of a list that is opened by it, else the default button.
    fn enter(&mut self, window_id: u32, now: Instant) {
        if self.menu_key(window_id, Key::Named(NamedKey::Return), now) {
            return;
        }
        let Some(window) = self.live(window_id) else {
            return;
        };
        let focused = window.focus().and_then(|id| Some((id, window.node(id)?)));
        match focused.map(|(id, node)| (id, &node.control.content)) {
            Some((_, Content::TextArea { .. })) => return self.insert(window_id, "\n", now),
            Some((list, Content::List { .. })) => {
                let opens = window
                    .node(list)
                    .is_some_and(|list| !list.control.on_open.is_empty());
                let row = window.selected_row(list).filter(|_| opens);
                if let Some(row) = row.and_then(|row| window.row_node(list, row)) {
                    return self.opened(window_id, row, now);
                }
            }
            Some((link, Content::Link)) => return self.clicked(window_id, link, now),
            Some((button, Content::Button { .. })) => {
                if window.button(ButtonPart::Default).is_none() {
                    return self.clicked(window_id, button, now);
                }
            }
            Some(_) | None => {}
        }
        self.press_part(window_id, ButtonPart::Default, now);
    }

    /// A tabulator in a text that is typed: a character of a text area, anywhere else the key.
    fn tabulator(&mut self, window_id: u32, now: Instant) {
        let focused = self.focused_mut(window_id);
        if focused.is_some_and(|(_, node)| matches!(node.control.content, Content::TextArea { .. }))
        {
            self.insert(window_id, "\t", now);
        } else {
            self.move_focus(window_id, false);
        }
    }

    fn move_focus(&mut self, window_id: u32, back: bool) {
        if let Some(window) = self.live_mut(window_id) {
            let next = window.next_focus(back);
            window.set_focus(next);
            // A field that is reached by the key is ready to be typed over.
            if let Some(node) = next.and_then(|id| window.node_mut(id))
                && matches!(
                    node.control.content,
                    Content::TextField { .. } | Content::SecureField { .. }
                )
            {
                node.selection = Selection::all();
            }
        }
    }

    /// Moves the caret of a text, the number of a slider or the selection of a list.
    fn go(&mut self, window_id: u32, motion: Motion, held: Held, now: Instant) {
        let Some((id, node)) = self.focused_mut(window_id) else {
            return;
        };
        let mut selection = node.selection;
        match &node.control.content {
            Content::TextField { value }
            | Content::SecureField { value }
            | Content::TextArea { value } => {
                selection.go(value, motion, held.shift);
                node.selection = selection;
                reveal_caret(node);
            }
            Content::Slider { .. } => match motion {
                Motion::Left | Motion::Down | Motion::WordLeft => {
                    self.step(window_id, id, -1.0, now);
                }
                Motion::Right | Motion::Up | Motion::WordRight => {
                    self.step(window_id, id, 1.0, now);
                }
                Motion::LineStart | Motion::Start => self.step(window_id, id, -1e9, now),
                Motion::LineEnd | Motion::End => self.step(window_id, id, 1e9, now),
            },
            Content::List { .. } => {
                let Some(window) = self.live_mut(window_id) else {
                    return;
                };
                let selected = window.selected_row(id);
                let last = window.row_count(id).saturating_sub(1);
                let row = match motion {
                    Motion::Up => selected.map_or(last, |row| row.saturating_sub(1)),
                    Motion::Down => selected.map_or(0, |row| (row + 1).min(last)),
                    Motion::LineStart | Motion::Start => 0,
                    Motion::LineEnd | Motion::End => last,
                    Motion::Left | Motion::Right | Motion::WordLeft | Motion::WordRight => return,
                };
                if selected != Some(row) && window.select_index(id, row) {
                    self.changed(window_id, id, now);
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
            | Content::Row { .. }
            | Content::MenuBar
            | Content::Menu
            | Content::MenuItem
            | Content::ContextMenu => {}
        }
    }

    fn page(&mut self, window_id: u32, direction: Direction, now: Instant) {
        let Some((id, node)) = self.focused_mut(window_id) else {
            return;
        };
        if matches!(node.control.content, Content::Slider { .. }) {
            let steps = match direction {
                Direction::Up | Direction::Right => PAGE_STEPS,
                Direction::Down | Direction::Left => -PAGE_STEPS,
            };
            self.step(window_id, id, steps, now);
        } else if let Some(window) = self.live_mut(window_id) {
            window.scroll_in(id, direction, 1.0);
        }
    }

    /// The chords that every text knows: select all, copy, cut, paste.
    fn command(&mut self, window_id: u32, character: char, now: Instant) {
        let Some((id, node)) = self.focused_mut(window_id) else {
            return;
        };
        let mut selection = node.selection;
        let secret = matches!(node.control.content, Content::SecureField { .. });
        let Some(value) = node.control.content.text_mut() else {
            return;
        };
        let selected = value[selection.range(value)].to_owned();
        match character {
            'a' => node.selection = Selection::all(),
            'c' if !secret && !selected.is_empty() => self.clipboard = selected,
            'x' if !secret && !selected.is_empty() => {
                edit::delete(value, &mut selection, Motion::Left);
                node.selection = selection;
                self.clipboard = selected;
                self.changed(window_id, id, now);
            }
            'v' => {
                let text = self.clipboard.clone();
                self.insert(window_id, &text, now);
            }
            _ => {}
        }
    }

    /// The control with the focus of a window, if it takes keys.
    fn focused_mut(&mut self, window_id: u32) -> Option<(NodeId, &mut Node)> {
        let window = self.live_mut(window_id)?;
        let id = window.focus()?;
        let node = window.node_mut(id)?;
        node.control.enabled.then_some((id, node))
    }
}

impl LiveWindow {
    /// The control that a chord presses.
    fn with_shortcut(&self, key: Key, held: Held) -> Option<NodeId> {
        let plain = !held.commands() && matches!(key, Key::Printable(_));
        let wanted = Shortcut {
            key,
            shift: held.shift,
            option: held.option,
        };
        let found = self
            .in_paint_order()
            .find(|(_, node)| node.control.shortcut.as_ref() == Some(&wanted));
        found.filter(|_| !plain).map(|(id, _)| id)
    }

    /// The control that the tab key leads to.
    fn next_focus(&self, back: bool) -> Option<NodeId> {
        let order: Vec<NodeId> = self
            .in_paint_order()
            .filter(|(_, node)| node.control.content.is_focusable() && node.control.enabled)
            .map(|(id, _)| id)
            .collect();
        let here = self
            .focus()
            .and_then(|focus| order.iter().position(|id| *id == focus));
        let next = match (here, back) {
            (None, false) => 0,
            (None, true) => order.len().checked_sub(1)?,
            (Some(here), false) => (here + 1) % order.len(),
            (Some(here), true) => (here + order.len() - 1) % order.len(),
        };
        order.get(next).copied()
    }
}
