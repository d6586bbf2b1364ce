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
    /// Applications, running or only installed.
    pub(crate) apps: Vec<AppSpec>,
    /// All windows of all applications; a later one starts in front of an earlier one.
    pub(crate) windows: Vec<WindowSpec>,
    /// What happens by itself after the start.
    pub(crate) events: Vec<Effect>,
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
    /// What a press does.
    pub(crate) press: PressBehavior,
    /// What a value write does.
    pub(crate) write: WriteBehavior,
    /// How long one read of it takes: an application that answers slowly.
    pub(crate) slow: Duration,
    /// Period with which its title changes by itself: a clock, a progress text.
    pub(crate) restless: Option<Duration>,
    /// Whether its child list names the window too: a broken accessibility tree with a cycle.
    pub(crate) cyclic: bool,
    /// What happens after a press.
    pub(crate) on_press: Vec<Effect>,
    /// What happens after its value was written.
    pub(crate) on_change: Vec<Effect>,
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
            press: PressBehavior::Works,
            write: WriteBehavior::Works,
            slow: Duration::ZERO,
            restless: None,
            cyclic: false,
            on_press: Vec::new(),
            on_change: Vec::new(),
        }
    }
}

/// Where row `row` of a list at `list` lies; rows beyond its lower edge lie below it, as in a list before it is
/// scrolled.
pub(crate) fn row_bounds(list: Rect, row: usize) -> Rect {
    const HEIGHT: i32 = 26;
    const MARGIN: i32 = 4;
    let row = i32::try_from(row.min(1_000_000)).expect("a million fits");
    Rect::new(
        list.x + MARGIN,
        list.y + MARGIN + row * HEIGHT,
        (list.width - 2 * MARGIN).max(1),
        HEIGHT,
    )
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
        /// Whether it is drawn as the window's default button.
        default: bool,
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
    /// A list; its rows are its children.
    List,
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

/// What a press does, apart from `on_press`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PressBehavior {
    /// The control does what it is there for.
    Works,
    /// The press is accepted and nothing happens.
    Ignored,
    /// The application declines the press.
    Refused,
    /// The press is carried out, and the application does not say whether it was.
    Unknown,
}

/// What a value write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WriteBehavior {
    /// The value is taken as given.
    Works,
    /// The write is accepted and the old value stays.
    Ignored,
    /// The value is cut after eight characters.
    Clamped,
    /// The application declines the write.
    Refused,
    /// The value is taken, and the application does not say whether it was.
    Unknown,
}

/// Length to which [`WriteBehavior::Clamped`] cuts, in characters.
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
    #[error("the scenario file is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The text is not TOML, or has a key or type that a scenario does not have.
    #[error("scenario line {line}: {problem}")]
    Syntax {
        /// Line of the file, from 1.
        line: usize,
        /// What is wrong, in the TOML reader's words.
        problem: String,
    },
    /// The text is TOML and a value in it does not make sense.
    #[error("scenario line {line}: `{field}`: {advice}")]
    Invalid {
        /// Line of the table or name that the field belongs to, from 1.
        line: usize,
        /// The field, dotted, with the id of its window and control.
        field: String,
        /// What to write.
        advice: String,
    },
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
                limit: MAX_SCENARIO_BYTES,
            });
        }
        Self::parse(&text)
    }

    /// Reads a scenario from TOML text.
    ///
    /// # Errors
    ///
    /// The text is no TOML, or does not hold together.
    pub(crate) fn parse(text: &str) -> Result<Self, ScenarioError> {
        raw::parse(text)
    }
}

#[cfg(test)]
mod tests;
