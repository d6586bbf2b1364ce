//! What is done to a control itself: its accessibility actions, value, selection and focus.

use std::time::Instant;

use maka_cu_protocol::sets::{Direction, ElementVerb};

use super::edit::Selection;
use super::scroll::{overflows, reveal_caret};
use super::{ActionRefusal, LiveWindow, Node, NodeId, World};
use crate::backend::virtual_desktop::scenario::{Behavior, ButtonPart, Content, FocusBehavior};

impl LiveWindow {
    /// The accessibility actions of a node.
    pub(crate) fn offers(&self, id: NodeId, node: &Node) -> Vec<ElementVerb> {
        let mut verbs = Vec::new();
        if node.control.content.is_pressable() {
            verbs.push(ElementVerb::Press);
        }
        match &node.control.content {
            Content::Window(_) => {
                verbs.push(ElementVerb::Raise);
                if self.button(ButtonPart::Cancel).is_some() {
                    verbs.push(ElementVerb::Cancel);
                }
            }
            Content::TextField { .. } | Content::SecureField { .. } => {
                if self.button(ButtonPart::Default).is_some() {
                    verbs.push(ElementVerb::Confirm);
                }
            }
            Content::Slider { .. } => {
                verbs.extend([ElementVerb::Increment, ElementVerb::Decrement]);
            }
            Content::List { .. } | Content::TextArea { .. } => {
                if overflows(node) {
                    verbs.extend([ElementVerb::ScrollUp, ElementVerb::ScrollDown]);
                }
            }
            Content::Row { .. } => {
                let list = self.list_of(node);
                if list.is_some_and(|list| !list.control.on_open.is_empty()) {
                    verbs.push(ElementVerb::Open);
                }
                if list.is_some_and(overflows) {
                    verbs.push(ElementVerb::ScrollToVisible);
                }
            }
            Content::MenuItem if node.parent.is_some() && node.parent == self.menu => {
                verbs.push(ElementVerb::Pick);
            }
            Content::ContextMenu => verbs.push(ElementVerb::Cancel),
            Content::PopUpButton { .. } => verbs.push(ElementVerb::ShowMenu),
            Content::Group
            | Content::Panel
            | Content::Label(_)
            | Content::Button { .. }
            | Content::Link
            | Content::Image
            | Content::Progress { .. }
            | Content::CheckBox { .. }
            | Content::RadioButton { .. }
            | Content::MenuBar
            | Content::Menu
            | Content::MenuItem => {}
        }
        if self.owns_menu(id) && !verbs.contains(&ElementVerb::ShowMenu) {
            verbs.push(ElementVerb::ShowMenu);
        }
        verbs
    }

    /// The button that plays a part in the window, if it can be pressed.
    pub(super) fn button(&self, wanted: ButtonPart) -> Option<NodeId> {
        let plays = |id: &NodeId| {
            self.node(*id).is_some_and(|node| {
                matches!(node.control.content, Content::Button { part } if part == wanted)
                    && node.control.enabled
            })
        };
        self.buttons.iter().copied().find(plays)
    }
}

impl World {
    /// Performs one accessibility action.
    ///
    /// A press on a disabled control is taken and does nothing, as toolkits do; whoever must know asks first.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`].
    pub(crate) fn perform(
        &mut self,
        window_id: u32,
        id: NodeId,
        verb: ElementVerb,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let window = self.live(window_id).ok_or(ActionRefusal::NotActionable)?;
        let node = window.node(id).ok_or(ActionRefusal::NotActionable)?;
        if !window.offers(id, node).contains(&verb) {
            return Err(ActionRefusal::NotActionable);
        }
        let behavior = node.control.behavior;
        let gate = match verb {
            ElementVerb::ScrollUp
            | ElementVerb::ScrollDown
            | ElementVerb::ScrollLeft
            | ElementVerb::ScrollRight
            | ElementVerb::ScrollToVisible => behavior.scroll,
            ElementVerb::Press
            | ElementVerb::Confirm
            | ElementVerb::Open
            | ElementVerb::ShowMenu
            | ElementVerb::Raise
            | ElementVerb::Cancel
            | ElementVerb::Pick
            | ElementVerb::Increment
            | ElementVerb::Decrement => behavior.press,
        };
        // To raise a window is not to use it: one that is blocked by its sheet can be brought forward.
        let goes_on = verb == ElementVerb::Raise || self.begin(window_id, id, gate)?;
        if goes_on {
            self.carry_out(window_id, id, verb, now);
        }
        told(gate)
    }

    fn carry_out(&mut self, window_id: u32, id: NodeId, verb: ElementVerb, now: Instant) {
        match verb {
            ElementVerb::Press | ElementVerb::Pick => self.pressed(window_id, id, now),
            ElementVerb::Confirm => self.press_part(window_id, ButtonPart::Default, now),
            ElementVerb::Open => self.opened(window_id, id, now),
            ElementVerb::ShowMenu => self.show_menu(window_id, id, None),
            ElementVerb::Raise => self.raise_in_app(window_id),
            ElementVerb::Cancel => match self.live_mut(window_id) {
                Some(window) if window.menu == Some(id) => window.close_menu(),
                Some(_) | None => self.press_part(window_id, ButtonPart::Cancel, now),
            },
            ElementVerb::Increment => self.step(window_id, id, 1.0, now),
            ElementVerb::Decrement => self.step(window_id, id, -1.0, now),
            ElementVerb::ScrollUp => self.scroll_page(window_id, id, Direction::Up),
            ElementVerb::ScrollDown => self.scroll_page(window_id, id, Direction::Down),
            ElementVerb::ScrollLeft => self.scroll_page(window_id, id, Direction::Left),
            ElementVerb::ScrollRight => self.scroll_page(window_id, id, Direction::Right),
            ElementVerb::ScrollToVisible => {
                if let Some(window) = self.live_mut(window_id) {
                    window.reveal_row(id);
                }
            }
        }
    }

    fn scroll_page(&mut self, window_id: u32, id: NodeId, direction: Direction) {
        if let Some(window) = self.live_mut(window_id) {
            window.scroll_in(id, direction, 1.0);
        }
    }

    /// Writes the value of a control.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`]; a text that is no number is refused by a slider.
    pub(crate) fn write(
        &mut self,
        window_id: u32,
        id: NodeId,
        text: &str,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let control = &self.control(window_id, id)?.control;
        if !control.content.is_writable() {
            return Err(ActionRefusal::NotActionable);
        }
        let (behavior, enabled) = (control.behavior.write, control.enabled);
        let room = control.max_chars.unwrap_or(usize::MAX);
        if !self.begin(window_id, id, behavior)? {
            return Ok(());
        }
        if !enabled {
            return Err(ActionRefusal::Refused);
        }
        let taken: String = text.chars().take(room).collect();
        let node = self.node_mut(window_id, id);
        let set = node.is_some_and(|node| {
            node.selection = Selection::AT_END;
            node.scroll = 0;
            node.control.content.set_value(&taken)
        });
        if !set {
            return Err(ActionRefusal::Refused);
        }
        self.changed(window_id, id, now);
        told(behavior)
    }

    /// Selects the first place where a text occurs in the value.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`]; a control without that text, and a password field, does not offer it.
    pub(crate) fn select_text(
        &mut self,
        window_id: u32,
        id: NodeId,
        wanted: &str,
    ) -> Result<(), ActionRefusal> {
        let control = &self.control(window_id, id)?.control;
        let found = match &control.content {
            Content::SecureField { .. } => None,
            content => content.text().and_then(|text| text.find(wanted)),
        };
        let start = found.ok_or(ActionRefusal::NotActionable)?;
        let behavior = control.behavior.write;
        self.act(window_id, id, behavior, |window| {
            if let Some(node) = window.node_mut(id) {
                node.selection = Selection::new(start, start + wanted.len());
                reveal_caret(node);
            }
        })
    }

    /// Gives a control the focus of its window. `raising` says whether the window may come to the front for it.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`].
    pub(crate) fn focus(
        &mut self,
        window_id: u32,
        id: NodeId,
        raising: bool,
    ) -> Result<bool, ActionRefusal> {
        let control = &self.control(window_id, id)?.control;
        if !control.content.is_focusable() || !control.enabled || self.is_blocked(window_id) {
            return Ok(control.focused);
        }
        let behavior = control.behavior.focus;
        match behavior {
            FocusBehavior::Refused => return Err(ActionRefusal::Refused),
            FocusBehavior::Ignored => {}
            FocusBehavior::Raises if !raising => {}
            FocusBehavior::Works | FocusBehavior::Raises => {
                if raising {
                    self.activate_id(window_id);
                }
                if let Some(window) = self.live_mut(window_id) {
                    window.set_focus(Some(id));
                }
            }
        }
        Ok(self.control(window_id, id)?.control.focused)
    }

    /// A node that is there.
    pub(super) fn control(&self, window_id: u32, id: NodeId) -> Result<&Node, ActionRefusal> {
        self.live(window_id)
            .and_then(|window| window.node(id))
            .ok_or(ActionRefusal::NotActionable)
    }

    pub(super) fn node_mut(&mut self, window_id: u32, id: NodeId) -> Option<&mut Node> {
        self.live_mut(window_id)?.node_mut(id)
    }

    /// Carries a change out as far as a behavior lets it.
    pub(super) fn act(
        &mut self,
        window_id: u32,
        id: NodeId,
        behavior: Behavior,
        change: impl FnOnce(&mut LiveWindow),
    ) -> Result<(), ActionRefusal> {
        if self.begin(window_id, id, behavior)?
            && let Some(window) = self.live_mut(window_id)
        {
            change(window);
        }
        told(behavior)
    }

    /// Whether an action on a control goes on to do something.
    pub(super) fn begin(
        &mut self,
        window_id: u32,
        id: NodeId,
        behavior: Behavior,
    ) -> Result<bool, ActionRefusal> {
        if self.is_blocked(window_id) {
            return Err(ActionRefusal::Refused);
        }
        match behavior {
            Behavior::Works | Behavior::Unknown => Ok(true),
            Behavior::Ignored => Ok(false),
            Behavior::Refused => Err(ActionRefusal::Refused),
            Behavior::Hangs => Err(ActionRefusal::Hangs),
            Behavior::Vanishes => {
                if let Some(window) = self.live_mut(window_id) {
                    window.remove(id);
                }
                Err(ActionRefusal::NotActionable)
            }
        }
    }

    /// Whether a modal window of the same application is in the way.
    pub(super) fn is_blocked(&self, window_id: u32) -> bool {
        self.live(window_id).is_some_and(|window| {
            self.shown_windows()
                .any(|other| other.pid == window.pid && other.rules.modal_for == Some(window.spec))
        })
    }

    /// What a press does once the application has taken it.
    pub(super) fn pressed(&mut self, window_id: u32, id: NodeId, now: Instant) {
        let Some(window) = self.live_mut(window_id) else {
            return;
        };
        let pid = window.pid;
        let Some(node) = window.node_mut(id).filter(|node| node.control.enabled) else {
            return;
        };
        let effects = node.control.on_press.clone();
        let list = node.parent;
        let mut changed = None;
        match &mut node.control.content {
            Content::CheckBox { checked } => {
                *checked = !*checked;
                changed = Some(id);
            }
            Content::RadioButton { .. } => {
                window.choose(id);
                changed = Some(id);
            }
            Content::Row { .. } => {
                window.select_row(id);
                changed = list;
            }
            Content::PopUpButton { .. } => return self.show_menu(window_id, id, None),
            Content::MenuItem => self.leave_menu(window_id, id, now),
            Content::Button { .. } | Content::Link => {}
            Content::Window(_)
            | Content::Group
            | Content::Panel
            | Content::Label(_)
            | Content::Image
            | Content::Progress { .. }
            | Content::TextField { .. }
            | Content::SecureField { .. }
            | Content::TextArea { .. }
            | Content::List { .. }
            | Content::MenuBar
            | Content::Menu
            | Content::ContextMenu
            | Content::Slider { .. } => return,
        }
        self.schedule(Some(pid), &effects, now);
        if let Some(changed) = changed {
            self.changed(window_id, changed, now);
        }
    }

    /// What opening a row does: what its list says.
    pub(super) fn opened(&mut self, window_id: u32, id: NodeId, now: Instant) {
        let Some(window) = self.live_mut(window_id) else {
            return;
        };
        let (pid, enabled) = (
            window.pid,
            window.node(id).is_some_and(|node| node.control.enabled),
        );
        let list = window.node(id).and_then(|node| window.list_of(node));
        let effects = list.map(|list| list.control.on_open.clone());
        if enabled {
            window.select_row(id);
            self.schedule(Some(pid), &effects.unwrap_or_default(), now);
        }
    }

    /// Presses the button that plays a part in the window.
    pub(super) fn press_part(&mut self, window_id: u32, part: ButtonPart, now: Instant) {
        let button = self.live(window_id).and_then(|window| window.button(part));
        if let Some(button) = button {
            self.clicked(window_id, button, now);
        }
    }

    /// Presses a control as an event does that nobody answers: what the application declines simply does not happen.
    pub(super) fn clicked(&mut self, window_id: u32, id: NodeId, now: Instant) {
        let Ok(control) = self.control(window_id, id) else {
            return;
        };
        let behavior = control.control.behavior.press;
        if matches!(self.begin(window_id, id, behavior), Ok(true)) {
            self.pressed(window_id, id, now);
        }
    }

    /// Moves a slider by steps.
    pub(super) fn step(&mut self, window_id: u32, id: NodeId, steps: f64, now: Instant) {
        let moved = self.node_mut(window_id, id).is_some_and(|node| {
            let Content::Slider { value, step, .. } = node.control.content else {
                return false;
            };
            node.control.enabled && node.control.content.slide_to(value + steps * step)
        });
        if moved {
            self.changed(window_id, id, now);
        }
    }

    /// Sets off what happens after a value changed.
    pub(super) fn changed(&mut self, window_id: u32, id: NodeId, now: Instant) {
        let Some(window) = self.live(window_id) else {
            return;
        };
        let pid = window.pid;
        let effects = window.node(id).map(|node| node.control.on_change.clone());
        self.schedule(Some(pid), &effects.unwrap_or_default(), now);
    }
}

/// What the application says after it did what it was asked to.
pub(super) fn told(behavior: Behavior) -> Result<(), ActionRefusal> {
    match behavior {
        Behavior::Unknown => Err(ActionRefusal::Unknown),
        Behavior::Works
        | Behavior::Ignored
        | Behavior::Refused
        | Behavior::Hangs
        | Behavior::Vanishes => Ok(()),
    }
}
