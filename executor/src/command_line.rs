//! The command line. Nothing here is read from the environment: no variable switches behaviour (spec §1.3).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use thiserror::Error;
use tracing::level_filters::LevelFilter;

use crate::backend::BackendKind;
use crate::cli::style::ColorChoice;
use crate::limits::LimitOverride;

/// What each subcommand ends with. A macro, since help texts are put together when the program is compiled.
macro_rules! exit_statuses {
    ($($line:literal)*) => { concat!("Exit status:\n", $("  ", $line, "\n",)*) };
}

const ALL_TOGETHER: &str = concat!(
    "\
Start here:
  maka-cu doctor                        is everything here that it takes?
  maka-cu list-apps                     what runs, with its windows
  maka-cu snapshot org.example.Notes    one window as an agent sees it
  maka-cu host                          serve an agent's host on stdin and stdout

Without a desktop, all of them work on the embedded one: add `--back-end virtual`.

",
    exit_statuses!(
        "0   ended by SIGTERM or end of input; doctor: everything is in place; shown"
        "1   doctor: something is missing"
        "64  wrong arguments"
        "66  that application or window is not there, or not the only one of that name"
        "69  there is no desktop of the wanted kind, or not any more"
        "71  the system refused a thread, a signal handler or random numbers"
        "73  the picture or the output cannot be written"
        "75  the desktop could not be read now"
        "77  a permission of the operating system is missing"
        "78  the host speaks another protocol version"
    )
);

const HOST: &str = exit_statuses!(
    "0   ended by SIGTERM or end of input"
    "64  wrong arguments"
    "69  there is no desktop of the wanted kind, or not any more"
    "71  the system refused a thread or a signal handler"
    "78  the host speaks another protocol version"
);

const DOCTOR: &str = concat!(
    "\
`ok` is in place, `FAIL` has to be put right, `note` is worth knowing.

",
    exit_statuses!(
        "0   everything is in place"
        "1   something is missing"
        "64  wrong arguments"
    )
);

const LIST_APPS: &str = concat!(
    "\
The id in the first column is what `snapshot` and every host call an application by.

Examples:
  maka-cu list-apps
  maka-cu list-apps --json | jq '.apps[].windows[].windowId'

",
    exit_statuses!(
        "0   shown"
        "64  wrong arguments"
        "69  there is no desktop of the wanted kind"
        "75  the desktop could not be read now"
        "77  a permission of the operating system is missing"
    )
);

const SNAPSHOT: &str = concat!(
    "\
A line of the tree is one element: its number, its role, its \"title\", label, = \"value\", states,
[what it offers], and where it lies in the window. The numbers are those in the picture.

Examples:
  maka-cu snapshot org.example.Notes
  maka-cu snapshot Notes --image notes.png --marks --tree
  maka-cu snapshot --window 318 --json

",
    exit_statuses!(
        "0   shown"
        "64  wrong arguments"
        "66  that application or window is not there, or not the only one of that name"
        "69  there is no desktop of the wanted kind, or it gives no pictures"
        "71  the system gives no random numbers"
        "73  the picture or the output cannot be written"
        "75  the window could not be read now"
        "77  a permission of the operating system is missing"
    )
);

/// The computer-use executor: operates windows for an agent's host, and shows them to a person.
#[derive(Debug, Parser)]
#[command(name = "maka-cu", version, after_help = ALL_TOGETHER)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve maka.cu/2 on stdin and stdout.
    #[command(after_help = HOST)]
    Host(HostOptions),
    /// Say whether a desktop can be driven from here, and what to install or start if not.
    #[command(after_help = DOCTOR)]
    Doctor(DoctorOptions),
    /// List the applications that run, with their windows.
    #[command(after_help = LIST_APPS)]
    ListApps(ListAppsOptions),
    /// Show one window as a tree, as JSON, or as a picture with numbered elements.
    #[command(after_help = SNAPSHOT)]
    Snapshot(SnapshotOptions),
}

/// Options of `host`.
#[derive(Debug, Args)]
pub struct HostOptions {
    /// Which desktop.
    #[command(flatten)]
    pub desktop: DesktopOptions,
    /// Use a pointer beside the person's, for X11 windows that take no other input in the background (GTK 4, and GTK 3
    /// programs that somebody else started). It stays, and is seen as a second cursor, until the X server ends.
    #[arg(long)]
    pub second_pointer: bool,
    /// How much to log on stderr.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Warn)]
    pub log: LogLevel,
    /// Advertise and keep another limit, e.g. `snapshotTtlMs=5000`. May be repeated.
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    pub limits: Vec<LimitOverride>,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// Which desktop.
    #[command(flatten)]
    pub desktop: DesktopOptions,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
    /// When to use colors.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

/// Options of `list-apps`.
#[derive(Debug, Args)]
pub struct ListAppsOptions {
    /// Which desktop.
    #[command(flatten)]
    pub desktop: DesktopOptions,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
    /// When to use colors.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotOptions {
    /// The application, by its id or, where only one has it, by its name: its front window.
    #[arg(required_unless_present = "window", conflicts_with = "window")]
    pub app: Option<String>,
    /// The window of this id instead.
    #[arg(long, value_name = "ID")]
    pub window: Option<u32>,
    /// Write a picture of the window, a PNG file.
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Draw a numbered box around each element that can be meant.
    #[arg(long, requires = "image")]
    pub marks: bool,
    /// Print the tree, which is done anyway where neither a picture nor JSON is asked for.
    #[arg(long, conflicts_with = "json")]
    pub tree: bool,
    /// Look at the whole menu bar as well.
    #[arg(long)]
    pub menu: bool,
    /// Print the snapshot as one JSON object, as a host gets it.
    #[arg(long)]
    pub json: bool,
    /// When to use colors.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// Which desktop.
    #[command(flatten)]
    pub desktop: DesktopOptions,
}

impl SnapshotOptions {
    /// Whether the tree is to be printed.
    #[must_use]
    pub const fn wants_tree(&self) -> bool {
        self.tree || (!self.json && self.image.is_none())
    }
}

/// Which desktop to drive.
#[derive(Debug, Args)]
pub struct DesktopOptions {
    /// The back end: `linux` is X11, `wayland` works through accessibility alone. Without it, the real desktop of this
    /// session; never the virtual one.
    #[arg(long, value_enum)]
    pub back_end: Option<BackendKind>,
    /// The scenario of the virtual desktop, a TOML file. Without it, the built-in desktop.
    #[arg(long, value_name = "FILE")]
    pub desktop: Option<PathBuf>,
}

/// Why options cannot be used together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("`--desktop` describes the virtual desktop; add `--back-end virtual` or leave it out")]
pub struct DesktopMisused;

impl DesktopOptions {
    /// Checks what the parser cannot: a scenario belongs to the virtual desktop, which is never implied.
    ///
    /// # Errors
    /// [`DesktopMisused`].
    pub fn check(&self) -> Result<(), DesktopMisused> {
        match (&self.desktop, self.back_end) {
            (None, _) | (Some(_), Some(BackendKind::VirtualDesktop)) => Ok(()),
            (
                Some(_),
                None | Some(BackendKind::Macos | BackendKind::Linux | BackendKind::Wayland),
            ) => Err(DesktopMisused),
        }
    }
}

/// How much to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Someone must act.
    Error,
    /// Degraded and handled.
    Warn,
    /// Life cycle.
    Info,
    /// Each request.
    Debug,
    /// Everything.
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

impl ValueEnum for BackendKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.as_str()))
    }
}
