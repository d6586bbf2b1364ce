//! The command line. Nothing here is read from the environment: no variable switches behaviour (spec §1.3).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use thiserror::Error;
use tracing::level_filters::LevelFilter;

use crate::backend::BackendKind;
use crate::limits::LimitOverride;

const EXIT_STATUSES: &str = "\
Exit status:
  0   ended by SIGTERM or end of input; doctor: everything is in place
  1   doctor: something is missing
  64  wrong arguments
  69  there is no desktop of the wanted kind, or not any more
  71  the system refused a thread or a signal handler
  78  the host speaks another protocol version";

/// The computer-use executor.
#[derive(Debug, Parser)]
#[command(name = "maka-cu", version, about, after_help = EXIT_STATUSES)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve maka.cu/2 on stdin and stdout.
    #[command(after_help = EXIT_STATUSES)]
    Host(HostOptions),
    /// Say whether a desktop can be driven from here, and what to install or start if not.
    Doctor(DoctorOptions),
}

/// Options of `host`.
#[derive(Debug, Args)]
pub struct HostOptions {
    /// Which desktop.
    #[command(flatten)]
    pub desktop: DesktopOptions,
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
}

/// Which desktop to drive.
#[derive(Debug, Args)]
pub struct DesktopOptions {
    /// The back end. Without it, the real desktop of this platform; never the virtual one.
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
            (Some(_), None | Some(BackendKind::Macos | BackendKind::Linux)) => Err(DesktopMisused),
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
