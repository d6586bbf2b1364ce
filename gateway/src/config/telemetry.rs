//! Section `[telemetry]`: what goes to stderr, and in which form.

use serde::Deserialize;

use super::value::LoopbackAddress;

/// The gateway's own log. It never holds application text, typed text or secrets, at any level.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// The least important events that are written.
    pub level: Level,
    /// The form of a line.
    pub format: Format,
    /// Where the page with the metrics is served, without credentials. Absent: nothing is counted.
    pub metrics: Option<LoopbackAddress>,
}

/// How much is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Someone must act.
    Error,
    /// Degraded and handled.
    Warn,
    /// Life cycle.
    #[default]
    Info,
    /// Each request.
    Debug,
    /// Everything, libraries included.
    Trace,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}
