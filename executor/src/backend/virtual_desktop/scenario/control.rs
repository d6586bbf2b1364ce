//! Controls: what they are, what they hold, and how they take being used.

use std::time::Duration;

use maka_cu_protocol::keys::Key;

use super::{Effect, WindowStyle};
use crate::backend::virtual_desktop::rect::Rect;

/// A control as it is when its window opens.
#[derive(Clone, PartialEq)]
pub(crate) struct ControlSpec {
    /// The name by which effects refer to it; never on the wire.
    pub(crate) id: Option<String>,
    /// Index of the parent in [`WindowSpec::controls`]; `None` for a child of the window, or of the bar for a menu.
    pub(crate) parent: Option<usize>,
    /// Window-local points; origin at the corner of the title bar.
    pub(crate) bounds: Rect,
    /// `axIdentifier` of the wire.
    pub(crate) identifier: Option<String>,
    /// Name of the control: what a button or label shows.
    pub(crate) title: Option<String>,
    /// Description of the control.
    pub(crate) label: Option<String>,
    /// Shown in an empty text field.
    pub(crate) placeholder: Option<String>,
    /// Whether it can be used.
    pub(crate) enabled: bool,
    /// Whether it has the keyboard focus of its window.
    pub(crate) focused: bool,
    /// What it is and what it holds.
    pub(crate) content: Content,
    /// How it takes what is done to it.
    pub(crate) behavior: Behaviors,
    /// Most characters that it takes.
    pub(crate) max_chars: Option<usize>,
    /// The key that presses it wherever the focus is.
    pub(crate) shortcut: Option<Shortcut>,
    /// How long one read of it takes: an application that answers slowly.
    pub(crate) slow: Duration,
    /// Period with which its title changes by itself: a clock, a progress text.
    pub(crate) restless: Option<Duration>,
    /// Whether its child list names the window too: a broken accessibility tree with a cycle.
    pub(crate) cyclic: bool,
    /// What happens after a press.
    pub(crate) on_press: Vec<Effect>,
    /// What happens after its value changed.
    pub(crate) on_change: Vec<Effect>,
    /// What happens after it was opened, as by a double click.
    pub(crate) on_open: Vec<Effect>,
    /// What happens after the pointer came over it.
    pub(crate) on_hover: Vec<Effect>,
}

impl ControlSpec {
    /// A control with nothing set but its place and content.
    pub(crate) fn plain(parent: Option<usize>, bounds: Rect, content: Content) -> Self {
        Self {
            id: None,
            parent,
            bounds,
            identifier: None,
            title: None,
            label: None,
            placeholder: None,
            enabled: true,
            focused: false,
            content,
            behavior: Behaviors::default(),
            max_chars: None,
            shortcut: None,
            slow: Duration::ZERO,
            restless: None,
            cyclic: false,
            on_press: Vec::new(),
            on_change: Vec::new(),
            on_open: Vec::new(),
            on_hover: Vec::new(),
        }
    }
}

/// A key together with what is held meanwhile, the command and control keys counting as one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Shortcut {
    /// The key.
    pub(crate) key: Key,
    /// Whether shift is held.
    pub(crate) shift: bool,
    /// Whether option is held.
    pub(crate) option: bool,
}

/// Height of a row of a list or of an open menu, in points.
pub(crate) const ROW_HEIGHT: i32 = 26;

/// Distance of the first row from the edge of its list, in points.
pub(crate) const ROW_MARGIN: i32 = 4;

/// Where row `row` of a list at `list` lies before the list is scrolled; rows beyond its lower edge lie below it.
pub(crate) fn row_bounds(list: Rect, row: usize) -> Rect {
    let row = i32::try_from(row.min(1_000_000)).expect("a million fits");
    Rect::new(
        list.x + ROW_MARGIN,
        list.y + ROW_MARGIN + row * ROW_HEIGHT,
        (list.width - 2 * ROW_MARGIN).max(1),
        ROW_HEIGHT,
    )
}

/// How many whole rows a list at `list` shows at one time.
pub(crate) fn rows_shown(list: Rect) -> usize {
    usize::try_from((list.height - 2 * ROW_MARGIN) / ROW_HEIGHT).map_or(1, |rows| rows.max(1))
}

/// What a control is, with the state that only this kind has.
#[derive(Clone, PartialEq)]
pub(crate) enum Content {
    /// The window itself: root of the tree.
    Window(WindowStyle),
    /// A container.
    Group,
    /// A drawn panel that holds controls.
    Panel,
    /// Text that cannot be edited.
    Label(LabelStyle),
    /// A push button.
    Button {
        /// What it is to its window.
        part: ButtonPart,
    },
    /// Text that is pressed like a button.
    Link,
    /// A picture.
    Image,
    /// How far something has come.
    Progress {
        /// From 0 to 100.
        percent: u8,
    },
    /// A line of text.
    TextField {
        /// The text.
        value: String,
    },
    /// A line of text that is neither shown nor read back.
    SecureField {
        /// The text, known to the application alone.
        value: String,
    },
    /// Several lines of text.
    TextArea {
        /// The text.
        value: String,
    },
    /// A box that is checked or not.
    CheckBox {
        /// Whether it is checked.
        checked: bool,
    },
    /// A choice among the radio buttons of the same container.
    RadioButton {
        /// Whether it is the chosen one.
        chosen: bool,
    },
    /// A button that shows one of several choices and opens a menu of them.
    PopUpButton {
        /// The choices.
        choices: Vec<String>,
        /// Index of the one that is shown.
        chosen: usize,
    },
    /// A list; its rows are its children.
    List {
        /// What a recycled list shows, row by row; its row controls stand for whatever lies in view.
        recycled: Option<Recycled>,
    },
    /// A row of a list.
    Row {
        /// Whether it is the selected one.
        selected: bool,
    },
    /// The bar that holds the menus of a window's application; never part of the window's own tree.
    MenuBar,
    /// A menu of the bar.
    Menu,
    /// An item of a menu.
    MenuItem,
    /// A menu that opens over the control that it belongs to; there only while it is open.
    ContextMenu,
    /// A number in a range.
    Slider {
        /// The number.
        value: f64,
        /// Lowest number.
        min: f64,
        /// Highest number.
        max: f64,
        /// Distance between two allowed numbers.
        step: f64,
    },
}

/// How a label is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LabelStyle {
    /// Ordinary text.
    Body,
    /// A larger, bold text.
    Heading,
    /// Small gray text.
    Caption,
}

/// The part that a button plays in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ButtonPart {
    /// None.
    Plain,
    /// The return key presses it.
    Default,
    /// The escape key presses it.
    Cancel,
}

/// The content of a list that keeps only as many row controls as it shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Recycled {
    /// All rows.
    pub(crate) rows: Vec<String>,
    /// The selected one.
    pub(crate) selected: Option<usize>,
}

/// How a control takes each kind of action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behaviors {
    /// Accessibility actions and clicks.
    pub(crate) press: Behavior,
    /// Value and selection writes.
    pub(crate) write: Behavior,
    /// A focus write.
    pub(crate) focus: FocusBehavior,
    /// Keys.
    pub(crate) keys: Behavior,
    /// Scrolling by an accessibility action.
    pub(crate) scroll: Behavior,
}

impl Behaviors {
    /// The same for every kind of action.
    pub(crate) fn all(behavior: Behavior) -> Self {
        let focus = match behavior {
            Behavior::Works | Behavior::Unknown => FocusBehavior::Works,
            Behavior::Ignored => FocusBehavior::Ignored,
            Behavior::Refused | Behavior::Hangs | Behavior::Vanishes => FocusBehavior::Refused,
        };
        Self {
            press: behavior,
            write: behavior,
            focus,
            keys: behavior,
            scroll: behavior,
        }
    }
}

/// What an action on a control comes to, apart from its effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Behavior {
    /// The control does what it is there for.
    #[default]
    Works,
    /// The action is accepted and nothing happens.
    Ignored,
    /// The application declines.
    Refused,
    /// The action is carried out, and the application does not say whether it was.
    Unknown,
    /// The action is not carried out, and the application never answers.
    Hangs,
    /// The control is gone the moment before the action reaches it.
    Vanishes,
}

/// What a focus write comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FocusBehavior {
    /// The control gets the focus of its window.
    #[default]
    Works,
    /// The write is accepted and the focus stays where it is.
    Ignored,
    /// The application declines.
    Refused,
    /// The toolkit would raise the window too.
    Raises,
}

/// Length to which a value write with `write = "clamped"` cuts, in characters.
pub(crate) const CLAMPED_CHARS: usize = 8;
