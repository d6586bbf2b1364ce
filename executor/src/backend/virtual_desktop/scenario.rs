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
mod control;
mod effect;
mod raw;

use std::path::{Path, PathBuf};
use std::time::Duration;

use maka_cu_protocol::sets::{ElementActionKind, KeyActionKind, PointActionKind};

pub(crate) use control::{
    Behavior, Behaviors, ButtonPart, CLAMPED_CHARS, Content, ControlSpec, FocusBehavior,
    LabelStyle, ROW_HEIGHT, ROW_MARGIN, Recycled, Shortcut, row_bounds, rows_shown,
};
pub(crate) use effect::{Change, ControlId, Effect, Template, TemplatePart};

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
