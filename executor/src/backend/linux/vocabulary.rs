//! AT-SPI's numbers and names, and what they mean in the protocol's words. Decides nothing about the desktop.
//!
//! State and role numbers are those of `atspi-constants.h` (at-spi2-core 2.46). Action names are matched in their
//! untranslated form (`Action.GetName`); the list that `GetActions` gives is translated and is never asked for.

use maka_cu_protocol::sets::ElementVerb;

use super::frame::Toolkit;

/// `ROLE_PASSWORD_TEXT`.
pub(super) const ROLE_PASSWORD_TEXT: u32 = 40;
/// `ROLE_MENU`: an entry that holds a submenu, as well as the submenu.
pub(super) const ROLE_MENU: u32 = 33;
/// `ROLE_MENU_BAR`.
pub(super) const ROLE_MENU_BAR: u32 = 34;
/// `ROLE_COMBO_BOX`.
pub(super) const ROLE_COMBO_BOX: u32 = 11;
/// `ROLE_FILLER`.
pub(super) const ROLE_FILLER: u32 = 20;
/// `ROLE_SCROLL_BAR`.
pub(super) const ROLE_SCROLL_BAR: u32 = 48;
const ROLE_ALERT: u32 = 2;
const ROLE_CHECK_BOX: u32 = 7;
const ROLE_CHECK_MENU_ITEM: u32 = 8;
const ROLE_COLOR_CHOOSER: u32 = 9;
const ROLE_DATE_EDITOR: u32 = 12;
const ROLE_DIALOG: u32 = 16;
const ROLE_FILE_CHOOSER: u32 = 19;
const ROLE_FONT_CHOOSER: u32 = 22;
const ROLE_FRAME: u32 = 23;
const ROLE_LIST_ITEM: u32 = 32;
const ROLE_PROGRESS_BAR: u32 = 42;
const ROLE_RADIO_BUTTON: u32 = 44;
const ROLE_RADIO_MENU_ITEM: u32 = 45;
const ROLE_TABLE_CELL: u32 = 56;
const ROLE_TERMINAL: u32 = 60;
const ROLE_TEXT: u32 = 61;
const ROLE_TOGGLE_BUTTON: u32 = 62;
const ROLE_WINDOW: u32 = 69;
const ROLE_EDITBAR: u32 = 77;
const ROLE_ENTRY: u32 = 79;
const ROLE_LEVEL_BAR: u32 = 103;
const ROLE_SWITCH: u32 = 130;
const ROLE_TREE_ITEM: u32 = 91;

/// One AT-SPI state that is read, by its bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Active = 1,
    Checked = 4,
    Defunct = 6,
    Editable = 7,
    Enabled = 8,
    Focused = 12,
    Horizontal = 13,
    Iconified = 15,
    MultiLine = 17,
    Pressed = 20,
    Selectable = 22,
    Selected = 23,
    Sensitive = 24,
    Showing = 25,
    Vertical = 29,
    Visible = 30,
    Indeterminate = 32,
    Checkable = 41,
    ReadOnly = 43,
}

/// The states of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct States(u64);

impl States {
    /// From the two words that `GetState` returns, low word first. Missing words are zero.
    pub(super) fn from_words(words: &[u32]) -> Self {
        let word = |index: usize| u64::from(words.get(index).copied().unwrap_or(0));
        Self(word(0) | word(1) << 32)
    }

    pub(super) const fn has(self, state: State) -> bool {
        self.0 & (1 << state as u8) != 0
    }

    /// It is laid out and not hidden. GTK 4 (4.8) says so with another state, and of windows only with the usual one.
    pub(super) fn is_showing(self, toolkit: Toolkit) -> bool {
        self.has(State::Showing) || (toolkit == Toolkit::Gtk4 && self.has(State::Visible))
    }

    /// A person can operate it. Toolkits set one or both.
    pub(super) const fn is_enabled(self) -> bool {
        self.has(State::Sensitive) || self.has(State::Enabled)
    }
}

/// The interfaces of one object that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interfaces {
    pub(super) action: bool,
    pub(super) component: bool,
    pub(super) editable_text: bool,
    pub(super) selection: bool,
    pub(super) table: bool,
    pub(super) text: bool,
    pub(super) value: bool,
}

impl Interfaces {
    /// From the names that `GetInterfaces` returns.
    pub(super) fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut found = Self::default();
        for name in names {
            match name.strip_prefix("org.a11y.atspi.").unwrap_or_default() {
                "Action" => found.action = true,
                "Component" => found.component = true,
                "EditableText" => found.editable_text = true,
                "Selection" => found.selection = true,
                "Table" => found.table = true,
                "Text" => found.text = true,
                "Value" => found.value = true,
                // Others exist and more may come; they are not used.
                _ => {}
            }
        }
        found
    }
}

/// Where a node's value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// It has none.
    None,
    /// Its characters must not be read.
    Secret,
    /// The check state: `0`, `1`, or `2` for mixed, as AX tells it.
    Check,
    /// `Value.CurrentValue`.
    Number,
    /// `Text.GetText`.
    Text,
}

/// What to read as the value.
pub(super) fn value_source(role: u32, states: States, interfaces: Interfaces) -> ValueSource {
    match role {
        ROLE_PASSWORD_TEXT => ValueSource::Secret,
        ROLE_CHECK_BOX | ROLE_CHECK_MENU_ITEM | ROLE_RADIO_BUTTON | ROLE_RADIO_MENU_ITEM
        | ROLE_TOGGLE_BUTTON | ROLE_SWITCH => ValueSource::Check,
        _ if interfaces.value => ValueSource::Number,
        // A label has the Text interface too; its text is its name already.
        ROLE_TEXT | ROLE_ENTRY | ROLE_TERMINAL | ROLE_EDITBAR | ROLE_DATE_EDITOR
            if interfaces.text =>
        {
            ValueSource::Text
        }
        _ if interfaces.text && (interfaces.editable_text || states.has(State::Editable)) => {
            ValueSource::Text
        }
        _ => ValueSource::None,
    }
}

/// Whether a top-level with this role is a window that a person works in. Where no window server lists the windows, this is
/// what tells them from tooltips, menus and other pop-ups, which are top-levels too: GTK 3 calls those windows.
pub(super) fn is_window(toolkit: Toolkit, role: u32) -> bool {
    match role {
        ROLE_ALERT | ROLE_COLOR_CHOOSER | ROLE_DIALOG | ROLE_FILE_CHOOSER | ROLE_FONT_CHOOSER
        | ROLE_FRAME => true,
        ROLE_WINDOW => toolkit != Toolkit::Gtk3,
        // A plain widget of Qt that is a window of its own.
        ROLE_FILLER => toolkit == Toolkit::Qt,
        _ => false,
    }
}

/// Whether [`value_source`]'s value can be written.
pub(super) fn value_settable(role: u32, states: States, interfaces: Interfaces) -> bool {
    if !states.is_enabled() || states.has(State::ReadOnly) {
        return false;
    }
    match value_source(role, states, interfaces) {
        ValueSource::Secret | ValueSource::Text => {
            interfaces.editable_text && states.has(State::Editable)
        }
        // These two show a number that the program alone sets.
        ValueSource::Number => role != ROLE_PROGRESS_BAR && role != ROLE_LEVEL_BAR,
        ValueSource::Check | ValueSource::None => false,
    }
}

/// The check state as AX tells it.
pub(super) const fn check_value(states: States) -> &'static str {
    if states.has(State::Indeterminate) {
        "2"
    } else if states.has(State::Checked) || states.has(State::Pressed) {
        "1"
    } else {
        "0"
    }
}

/// Check state where there is one, else selection state where there is one.
pub(super) fn selected(role: u32, states: States, interfaces: Interfaces) -> Option<bool> {
    let checkable = value_source(role, states, interfaces) == ValueSource::Check
        || states.has(State::Checkable);
    if checkable {
        Some(states.has(State::Checked) || states.has(State::Pressed))
    } else {
        states
            .has(State::Selectable)
            .then(|| states.has(State::Selected))
    }
}

/// Whether a press on a node without an action of that kind is a selection in its container: rows and tabs of GTK. Qt and
/// Chromium have no selection that works, and their items offer actions.
pub(super) fn is_pressed_by_selection(
    toolkit: Toolkit,
    container: Interfaces,
    states: States,
    actions: &[ElementVerb],
) -> bool {
    toolkit.is_gtk()
        && container.selection
        && states.has(State::Selectable)
        && !actions.contains(&ElementVerb::Press)
}

/// Whether a press on an option of a combo box does nothing. Qt's options take it, look selected in the hidden list, and the
/// combo box keeps what it had.
pub(super) fn option_is_inert(toolkit: Toolkit) -> bool {
    toolkit == Toolkit::Qt
}

/// Whether a press on an item that is chosen takes the choice back, which no click does. The one action of rows in Qt and of
/// list boxes in Chromium switches between the two; where it is offered is part of a digest and so does not depend on what is
/// chosen.
pub(super) fn press_would_undo(toolkit: Toolkit, role: u32, states: States) -> bool {
    let switches = match toolkit {
        Toolkit::Qt => matches!(role, ROLE_LIST_ITEM | ROLE_TABLE_CELL | ROLE_TREE_ITEM),
        Toolkit::Chromium => role == ROLE_LIST_ITEM,
        Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::ScreenBased => false,
    };
    switches && states.has(State::Selectable) && states.has(State::Selected)
}

/// Whether `Component.ScrollTo` does something. GTK answers false, Qt does not have it.
pub(super) fn scrolls_to(toolkit: Toolkit, interfaces: Interfaces) -> bool {
    toolkit == Toolkit::Chromium && interfaces.component
}

/// What an action of this untranslated name does, or `None` when the protocol has no word for it.
///
/// GTK says `click`, `press`, `activate`; Qt `Press`, `Toggle`, `ShowMenu`, `Increase`; Chromium `press`, `check`,
/// `open`, `jump`, `doDefault`, `showContextMenu`. The names of GTK 4's program actions (`clipboard.copy`, `menu.popup`)
/// have a dot and are none of these.
pub(super) fn verb(toolkit: Toolkit, role: u32, action: &str) -> Option<ElementVerb> {
    if action.contains('.') {
        return None;
    }
    let name: String = action
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    Some(match name.as_str() {
        // In a text field or a row this is what the Return key does, and more than a click; in Chromium it only goes there.
        "activate"
            if matches!(
                role,
                ROLE_TEXT | ROLE_ENTRY | ROLE_PASSWORD_TEXT | ROLE_TABLE_CELL
            ) && toolkit != Toolkit::Chromium =>
        {
            ElementVerb::Confirm
        }
        "click" | "press" | "activate" | "toggle" | "check" | "uncheck" | "jump" | "dodefault"
        | "push" | "switch" => ElementVerb::Press,
        "open" | "expandorcontract" | "expand" | "collapse" => ElementVerb::Open,
        "menu" | "showmenu" | "popup" | "showcontextmenu" => ElementVerb::ShowMenu,
        "select" => ElementVerb::Pick,
        "confirm" => ElementVerb::Confirm,
        "cancel" => ElementVerb::Cancel,
        "raise" => ElementVerb::Raise,
        "increment" | "increase" => ElementVerb::Increment,
        "decrement" | "decrease" => ElementVerb::Decrement,
        "scrollup" | "pageup" => ElementVerb::ScrollUp,
        "scrolldown" | "pagedown" => ElementVerb::ScrollDown,
        "scrollleft" | "pageleft" => ElementVerb::ScrollLeft,
        "scrollright" | "pageright" => ElementVerb::ScrollRight,
        "scrolltomakevisible" | "scrolltovisible" => ElementVerb::ScrollToVisible,
        _ => return None,
    })
}

/// The verbs of a list of action names, in the application's order, each once. What can be picked can be pressed: the
/// options and menu items of Chromium have no other name for it.
pub(super) fn verbs<'n>(
    toolkit: Toolkit,
    role: u32,
    actions: impl IntoIterator<Item = &'n str>,
) -> Vec<ElementVerb> {
    let mut found = Vec::new();
    let known = |action| verb(toolkit, role, action);
    for verb in actions.into_iter().filter_map(known) {
        if !found.contains(&verb) {
            found.push(verb);
        }
    }
    if found.contains(&ElementVerb::Pick) && !found.contains(&ElementVerb::Press) {
        found.push(ElementVerb::Press);
    }
    found
}

/// Which of the actions carries out a verb of [`verbs`].
pub(super) fn action_for<'n>(
    toolkit: Toolkit,
    role: u32,
    actions: impl IntoIterator<Item = &'n str> + Clone,
    wanted: ElementVerb,
) -> Option<usize> {
    let place = |wanted| {
        let mut names = actions.clone().into_iter();
        names.position(|name| verb(toolkit, role, name) == Some(wanted))
    };
    place(wanted).or_else(|| {
        (wanted == ElementVerb::Press)
            .then(|| place(ElementVerb::Pick))
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(list: &[State]) -> States {
        States(list.iter().fold(0, |bits, state| bits | 1 << *state as u8))
    }

    #[test]
    fn states_come_from_two_words() {
        let found = States::from_words(&[1 << 24 | 1 << 12, 1 << 9]);
        assert!(
            found.has(State::Sensitive) && found.has(State::Focused) && found.has(State::Checkable)
        );
        assert!(!found.has(State::Showing) && !found.has(State::Enabled));
        assert_eq!(States::from_words(&[]), States::default());
    }

    #[test]
    fn pop_ups_are_no_windows() {
        let rows = [
            (Toolkit::Gtk3, ROLE_FRAME, true),
            (Toolkit::Gtk3, ROLE_DIALOG, true),
            (Toolkit::Gtk3, ROLE_WINDOW, false),
            (Toolkit::Gtk4, ROLE_WINDOW, true),
            (Toolkit::Qt, ROLE_FILLER, true),
            (Toolkit::Gtk4, ROLE_FILLER, false),
            (Toolkit::ScreenBased, ROLE_ALERT, true),
            (Toolkit::Qt, ROLE_MENU, false),
        ];
        for (toolkit, role, expected) in rows {
            assert_eq!(is_window(toolkit, role), expected, "{toolkit:?} {role}");
        }
    }

    #[test]
    fn values_and_whether_they_can_be_written() {
        let (enabled, editable) = (State::Enabled, State::Editable);
        let text = Interfaces {
            text: true,
            ..Interfaces::default()
        };
        let edit = Interfaces {
            text: true,
            editable_text: true,
            ..Interfaces::default()
        };
        let spin = Interfaces {
            text: true,
            editable_text: true,
            value: true,
            ..Interfaces::default()
        };
        let number = Interfaces {
            value: true,
            ..Interfaces::default()
        };
        let rows = [
            (
                "entry",
                79,
                states(&[enabled, editable]),
                edit,
                ValueSource::Text,
                true,
            ),
            (
                "entry of GTK 3",
                61,
                states(&[enabled, editable]),
                edit,
                ValueSource::Text,
                true,
            ),
            (
                "read-only text",
                61,
                states(&[enabled]),
                edit,
                ValueSource::Text,
                false,
            ),
            (
                "disabled entry",
                79,
                states(&[editable]),
                edit,
                ValueSource::Text,
                false,
            ),
            (
                "password",
                40,
                states(&[enabled, editable]),
                edit,
                ValueSource::Secret,
                true,
            ),
            (
                "label",
                29,
                states(&[enabled]),
                text,
                ValueSource::None,
                false,
            ),
            (
                "spin button",
                52,
                states(&[enabled, editable]),
                spin,
                ValueSource::Number,
                true,
            ),
            (
                "slider",
                51,
                states(&[enabled]),
                number,
                ValueSource::Number,
                true,
            ),
            (
                "progress bar",
                42,
                states(&[enabled]),
                number,
                ValueSource::Number,
                false,
            ),
            (
                "check box",
                7,
                states(&[enabled]),
                Interfaces::default(),
                ValueSource::Check,
                false,
            ),
            (
                "button",
                43,
                states(&[enabled]),
                Interfaces::default(),
                ValueSource::None,
                false,
            ),
        ];
        for (what, role, states, interfaces, source, settable) in rows {
            assert_eq!(value_source(role, states, interfaces), source, "{what}");
            assert_eq!(value_settable(role, states, interfaces), settable, "{what}");
        }
    }

    #[test]
    fn check_and_selection_states() {
        let none = Interfaces::default();
        assert_eq!(check_value(states(&[State::Checked])), "1");
        assert_eq!(check_value(states(&[State::Pressed])), "1");
        assert_eq!(
            check_value(states(&[State::Checked, State::Indeterminate])),
            "2"
        );
        assert_eq!(check_value(states(&[])), "0");
        assert_eq!(selected(7, states(&[]), none), Some(false));
        assert_eq!(
            selected(32, states(&[State::Selectable, State::Selected]), none),
            Some(true)
        );
        assert_eq!(selected(43, states(&[]), none), None);
    }

    #[test]
    fn rows_without_actions_are_selected_in_their_container() {
        let list = Interfaces {
            selection: true,
            ..Interfaces::default()
        };
        let row = states(&[State::Selectable]);
        assert!(is_pressed_by_selection(Toolkit::Gtk3, list, row, &[]));
        assert!(is_pressed_by_selection(
            Toolkit::Gtk4,
            list,
            row,
            &[ElementVerb::Open]
        ));
        assert!(!is_pressed_by_selection(
            Toolkit::Gtk4,
            list,
            row,
            &[ElementVerb::Press]
        ));
        assert!(!is_pressed_by_selection(
            Toolkit::Gtk4,
            Interfaces::default(),
            row,
            &[]
        ));
        assert!(!is_pressed_by_selection(
            Toolkit::Gtk3,
            list,
            states(&[]),
            &[]
        ));
        assert!(!is_pressed_by_selection(Toolkit::Qt, list, row, &[]));
    }

    #[test]
    fn action_names_of_the_toolkits() {
        let rows = [
            (43, "click", Some(ElementVerb::Press)),
            (43, "Press", Some(ElementVerb::Press)),
            (7, "Toggle", Some(ElementVerb::Press)),
            (61, "activate", Some(ElementVerb::Confirm)),
            (35, "activate", Some(ElementVerb::Press)),
            (56, "activate", Some(ElementVerb::Confirm)),
            (56, "expand or contract", Some(ElementVerb::Open)),
            (51, "Increase", Some(ElementVerb::Increment)),
            (85, "showContextMenu", Some(ElementVerb::ShowMenu)),
            (85, "scrollDown", Some(ElementVerb::ScrollDown)),
            (85, "scrollForward", None),
            (56, "edit", None),
            (4, "release", None),
            (43, "Klicken", None),
            (43, "", None),
            (23, "window.raise", None),
            (61, "menu.popup", None),
        ];
        for (role, name, expected) in rows {
            assert_eq!(verb(Toolkit::Qt, role, name), expected, "{name}");
        }
        let press = Some(ElementVerb::Press);
        assert_eq!(verb(Toolkit::Chromium, 79, "activate"), press);
        assert_eq!(
            verbs(Toolkit::Qt, 43, ["click", "press", "SetFocus", "ShowMenu"]),
            [ElementVerb::Press, ElementVerb::ShowMenu]
        );
    }

    #[test]
    fn a_press_on_a_chosen_row_may_give_it_up() {
        let chosen = states(&[State::Selectable, State::Selected]);
        let open = states(&[State::Selectable]);
        let (item, cell, tab) = (ROLE_LIST_ITEM, ROLE_TABLE_CELL, 37);
        let rows = [
            (Toolkit::Qt, item, chosen, true),
            (Toolkit::Qt, cell, chosen, true),
            (Toolkit::Qt, item, open, false),
            (Toolkit::Qt, tab, chosen, false),
            (Toolkit::Chromium, item, chosen, true),
            (Toolkit::Chromium, ROLE_TREE_ITEM, chosen, false),
            (Toolkit::Gtk3, item, chosen, false),
        ];
        for (toolkit, role, states, expected) in rows {
            let would = press_would_undo(toolkit, role, states);
            assert_eq!(would, expected, "{toolkit:?} {role}");
        }
    }

    /// An option of a web page offers `select` alone; a click on it is that.
    #[test]
    fn what_can_be_picked_can_be_pressed() {
        let (toolkit, option) = (Toolkit::Chromium, ["showContextMenu", "select"]);
        assert_eq!(
            verbs(toolkit, 32, option),
            [ElementVerb::ShowMenu, ElementVerb::Pick, ElementVerb::Press]
        );
        let of = |actions: [&str; 2], wanted| action_for(toolkit, 32, actions, wanted);
        assert_eq!(of(option, ElementVerb::Press), Some(1));
        assert_eq!(of(option, ElementVerb::Pick), Some(1));
        assert_eq!(of(option, ElementVerb::Open), None);
        assert_eq!(of(["select", "press"], ElementVerb::Press), Some(1));
    }
}
