//! The kinds of control by their names in a scenario, and which keys make sense for which.

use serde::Deserialize;

/// What `kind` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Group,
    Panel,
    Label,
    Image,
    Progress,
    Button,
    Link,
    TextField,
    SecureField,
    TextArea,
    CheckBox,
    RadioButton,
    PopUpButton,
    List,
    Slider,
    Menu,
    MenuItem,
    ContextMenu,
}

impl Kind {
    /// Whether it holds text that can be edited.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::TextField | Self::SecureField | Self::TextArea)
    }

    /// Whether a press does something to it.
    pub(super) const fn is_pressed(self) -> bool {
        matches!(
            self,
            Self::Button
                | Self::Link
                | Self::CheckBox
                | Self::RadioButton
                | Self::PopUpButton
                | Self::MenuItem
        )
    }

    /// Whether a value can be written into it.
    pub(super) const fn is_written(self) -> bool {
        self.is_text() || matches!(self, Self::Slider)
    }

    /// Whether it holds something that a person changes.
    pub(super) const fn changes(self) -> bool {
        self.is_written()
            || matches!(
                self,
                Self::CheckBox | Self::RadioButton | Self::PopUpButton | Self::List
            )
    }

    /// Whether it can have the keyboard focus.
    pub(super) const fn is_focused(self) -> bool {
        self.changes() || matches!(self, Self::Button | Self::Link)
    }

    /// Whether it can hold more than it shows.
    pub(super) const fn scrolls(self) -> bool {
        matches!(self, Self::List | Self::TextArea)
    }

    /// Whether other controls can stand in it.
    pub(super) const fn is_container(self) -> bool {
        matches!(self, Self::Group | Self::Panel)
    }

    /// Whether it has no place of its own in the window.
    pub(super) const fn is_menu(self) -> bool {
        matches!(self, Self::Menu | Self::MenuItem | Self::ContextMenu)
    }

    /// Whether a click or an action of its own does something to it.
    pub(super) const fn is_acted_on(self) -> bool {
        self.is_pressed() || self.changes()
    }
}
