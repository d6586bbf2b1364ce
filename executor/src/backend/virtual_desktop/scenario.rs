//! What a virtual desktop is made of: displays, applications, windows, controls, and what happens when they are used.
//!
//! A scenario is read from TOML once, at start, into the checked types below; what comes after never looks at TOML
//! again. `scenario/raw.rs` owns the TOML shapes and every check. A scenario that does not hold together is refused as
//! a whole, with the line, the field and what to write instead.
//!
//! The types that hold text of the desktop have no `Debug`: what a person would see there must not reach a log.
//!
//! INVARIANT: every [`ControlId`] and window index inside an [`Effect`] or a [`Template`] names something that exists.

mod content;
mod raw;

use std::path::{Path, PathBuf};
use std::time::Duration;

use maka_cu_protocol::keys::Key;
use maka_cu_protocol::sets::{ElementActionKind, KeyActionKind, PointActionKind};

use super::rect::Rect;

/// The scenario that is used when `--desktop` is absent.
const DEFAULT: &str = include_str!("default.toml");

/// Largest scenario file that is read; the built-in one is some 8 KiB.
pub(crate) const MAX_SCENARIO_BYTES: u64 = 1 << 20;

/// Height of the title bar that every window draws at its top; controls are placed below it.
pub(crate) const TITLE_BAR_HEIGHT: i32 = 38;

/// A checked description of a whole desktop at the moment it starts.
#[derive(Clone, PartialEq)]
pub(crate) struct Scenario {
    /// At least one; the first is the main display.
    pub(crate) displays: Vec<DisplaySpec>,
    /// Whether `permissions.check` finds the accessibility grant.
    pub(crate) accessibility: bool,
    /// Whether `permissions.check` finds the screen-recording grant.
    pub(crate) screen_recording: bool,
    /// Whether the screen starts locked.
    pub(crate) screen_locked: bool,
    /// Whether a person uses pointer and keyboard all the time.
    pub(crate) user_active: bool,
    /// How time passes.
    pub(crate) time: TimeSpec,
    /// Which actions are offered at all.
    pub(crate) offers: Offers,
    /// Applications, running or only installed.
    pub(crate) apps: Vec<AppSpec>,
    /// All windows of all applications; a later one starts in front of an earlier one.
    pub(crate) windows: Vec<WindowSpec>,
    /// What happens by itself after the start.
    pub(crate) events: Vec<Effect>,
}

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSpec {
    /// By itself.
    Wall,
    /// By this much with every call into the desktop.
    Stepped(Duration),
}

/// Which actions a desktop offers at all, in the handshake and to every window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    /// On elements.
    pub(crate) elements: Vec<ElementActionKind>,
    /// At points.
    pub(crate) points: Vec<PointActionKind>,
    /// With keys.
    pub(crate) keys: Vec<KeyActionKind>,
}

/// A display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DisplaySpec {
    /// The `displayId` of the wire.
    pub(crate) id: String,
    /// Screen logical points.
    pub(crate) bounds: Rect,
    /// Pixels per point: 1 or 2.
    pub(crate) scale: u8,
}

/// An application.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AppSpec {
    /// The `appId` of the wire.
    pub(crate) app_id: String,
    /// The name that a person sees, and that `apps.launch` accepts too.
    pub(crate) name: String,
    /// Color of its default button and icon.
    pub(crate) accent: Color,
    /// Whether it has a process when the desktop starts.
    pub(crate) running: bool,
    /// Whether `apps.launch` finds it.
    pub(crate) launchable: bool,
    /// Whether a second launch answers with the process that is there already.
    pub(crate) single_instance: bool,
    /// Whether a launch brings it to the front although it was asked not to.
    pub(crate) takes_foreground: bool,
    /// What a launch comes to.
    pub(crate) launch: LaunchBehavior,
    /// Time between a launch and the first window.
    pub(crate) window_delay: Duration,
}

/// What `apps.launch` comes to for an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LaunchBehavior {
    /// A process and its windows appear.
    Opens,
    /// The system declines to start it.
    Refused,
    /// It is on the desktop's own deny list.
    Denied,
    /// It is started and never registers as a process.
    NeverRegisters,
    /// A process appears and never opens a window.
    NoWindow,
}

/// A window as it is when it opens.
#[derive(Clone, PartialEq)]
pub(crate) struct WindowSpec {
    /// The name by which effects refer to it; never on the wire.
    pub(crate) id: String,
    /// Index into [`Scenario::apps`].
    pub(crate) app: usize,
    /// Title bar text.
    pub(crate) title: String,
    /// Whether it is a plain window or a dialog.
    pub(crate) style: WindowStyle,
    /// Screen logical points, title bar included.
    pub(crate) bounds: Rect,
    /// Window layer; 0 is the layer of ordinary windows.
    pub(crate) layer: i32,
    /// Whether it opens together with its application.
    pub(crate) open: bool,
    /// Whether the application has a menu bar while this window is used; its menus are among the controls.
    pub(crate) menu_bar: bool,
    /// What happens when somebody moves, resizes or minimises it.
    pub(crate) rules: WindowRules,
    /// Parents before children.
    pub(crate) controls: Vec<ControlSpec>,
}

/// The kind of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WindowStyle {
    /// An ordinary window.
    Standard,
    /// A dialog.
    Dialog,
    /// A dialog that hangs on another window.
    Sheet,
}

/// How a window takes being handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowRules {
    /// A new position.
    pub(crate) moving: WindowRule,
    /// A new size.
    pub(crate) resizing: WindowRule,
    /// Being minimised.
    pub(crate) minimizing: WindowRule,
    /// Smallest size that it takes, in points.
    pub(crate) min_size: [i32; 2],
    /// Largest size that it takes, in points.
    pub(crate) max_size: [i32; 2],
    /// How long after the order the window list shows the change: an animation.
    pub(crate) lag: Duration,
    /// By which way pointer and keys reach it.
    pub(crate) input: InputRule,
    /// The window of the same application that cannot be used while this one is open.
    pub(crate) modal_for: Option<usize>,
}

/// What a change of a window's place, size or visibility comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WindowRule {
    /// It is taken as given; a size within the window's own limits.
    Works,
    /// It is not offered.
    Fixed,
    /// It is taken as far as the window stays on its display.
    Clamped,
    /// It is accepted and nothing happens.
    Ignored,
    /// The application declines.
    Refused,
    /// It is carried out, and the application does not say whether it was.
    Unknown,
}

/// By which way pointer and keys reach a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputRule {
    /// Events meant for this window alone.
    Background,
    /// System-wide events only.
    GlobalOnly,
    /// None.
    Never,
}

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

/// A change to the desktop, carried out `delay` after its cause.
#[derive(Clone, PartialEq)]
pub(crate) struct Effect {
    /// Time between cause and change.
    pub(crate) delay: Duration,
    /// What changes.
    pub(crate) change: Change,
}

/// What an [`Effect`] changes.
///
/// A change whose target is not there any more (a closed window, a removed control) does nothing, as a signal to a
/// closed window does nothing on a real desktop.
#[derive(Clone, PartialEq)]
pub(crate) enum Change {
    /// Nothing; a press that is meant to have no effect says so.
    Noop,
    /// The value of a field, or the title of anything else, becomes a text.
    SetText(ControlId, Template),
    /// The description of a control becomes a text.
    SetLabel(ControlId, Template),
    /// A window is renamed.
    SetWindowTitle(usize, Template),
    /// A check box is inverted.
    Toggle(ControlId),
    /// A control can be used from now on, or cannot any more.
    SetEnabled(ControlId, bool),
    /// A control vanishes with everything in it.
    Remove(ControlId),
    /// A list gets one more row at its end.
    AppendRow(ControlId, Template),
    /// A window moves to a position on the screen.
    MoveWindow(usize, i32, i32),
    /// A window gets another size.
    ResizeWindow(usize, i32, i32),
    /// A window leaves the screen.
    MinimizeWindow(usize),
    /// A minimised window comes back.
    RestoreWindow(usize),
    /// A control gets the focus of its window, as when a person moves it there.
    Focus(ControlId),
    /// A control takes every action this way from now on.
    SetBehavior(ControlId, Behavior),
    /// A person touches pointer or keyboard.
    UserInput,
    /// A window comes to the front of the window order, and its application to the foreground.
    RaiseWindow(usize),
    /// A window of the same application opens, unless it is open.
    OpenWindow(usize),
    /// A window closes.
    CloseWindow(usize),
    /// The application ends; its windows close with it.
    ExitApp(usize),
    /// The application's process id now belongs to another process: same id, other start time.
    ReplaceProcess(usize),
    /// The screen is locked or unlocked.
    SetLocked(bool),
}

/// A control of a window, by place in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ControlId {
    /// Index into [`Scenario::windows`].
    pub(crate) window: usize,
    /// Index into [`WindowSpec::controls`].
    pub(crate) control: usize,
}

/// A text with holes that are filled, when the effect's cause happens, with what a control holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) Vec<TemplatePart>);

/// A piece of a [`Template`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    /// Text that stands for itself.
    Text(String),
    /// The value of a field, the state of a check box, or the title of anything else.
    Control(ControlId),
}

/// An opaque color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Color {
    /// Red, 0–255.
    pub(crate) red: u8,
    /// Green, 0–255.
    pub(crate) green: u8,
    /// Blue, 0–255.
    pub(crate) blue: u8,
}

impl Color {
    /// A color from its three parts.
    pub(crate) const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self { red, green, blue }
    }
}

/// Why a scenario was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScenarioError {
    /// The file could not be opened or read.
    #[error("the scenario file `{}` could not be read; check the path given with --desktop", path.display())]
    Read {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is longer than a scenario may be.
    #[error("`{}` is longer than {limit} bytes, which is the most that a scenario may be", path.display())]
    TooLarge {
        /// The path as it was given.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file does not hold a scenario.
    #[error("{}:{mistake}", path.display())]
    Mistaken {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong, and where.
        mistake: Mistake,
    },
}

/// One mistake in the text of a scenario: where it is, and what to write instead.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: `{field}`: {advice}")]
pub(crate) struct Mistake {
    /// Line of the text, from 1: of the value, or of the table or name that the field belongs to.
    pub(crate) line: usize,
    /// The field, dotted, with the id of its window and control where that is known.
    pub(crate) field: String,
    /// What to write.
    pub(crate) advice: String,
}

impl Scenario {
    /// The rich desktop that is built in.
    pub(crate) fn built_in() -> Self {
        Self::parse(DEFAULT).expect("the built-in scenario is checked by a test")
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is longer than [`MAX_SCENARIO_BYTES`], or does not hold together.
    pub(crate) fn read(path: &Path) -> Result<Self, ScenarioError> {
        use std::io::Read as _;

        let failed = |source| ScenarioError::Read {
            path: path.to_path_buf(),
            source,
        };
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut text = String::new();
        file.take(MAX_SCENARIO_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(failed)?;
        if text.len() as u64 > MAX_SCENARIO_BYTES {
            return Err(ScenarioError::TooLarge {
                path: path.to_path_buf(),
                limit: MAX_SCENARIO_BYTES,
            });
        }
        Self::parse(&text).map_err(|mistake| ScenarioError::Mistaken {
            path: path.to_path_buf(),
            mistake,
        })
    }

    /// Reads a scenario from TOML text.
    ///
    /// # Errors
    ///
    /// The text is no TOML, or does not hold together; the first mistake is named.
    pub(crate) fn parse(text: &str) -> Result<Self, Mistake> {
        raw::parse(text)
    }
}

#[cfg(test)]
mod tests;
