//! Findings about the machine, and the refusal to start when a desktop is not there.
//!
//! Each back end offers two free functions beside its type: `open(…) -> Result<Self, StartRefusal>`, which touches the
//! real desktop, and `diagnose() -> Vec<Finding>`, which works also when opening is impossible. One whose applications have
//! switches of their own adds `notes() -> Vec<Note>`.

use thiserror::Error;

/// Whether something that a back end needs is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, a few lower-case words, e.g. `X display`.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found, one line without application text.
    pub found: String,
    /// What to do about it, one line; `None` when `ok`.
    pub remedy: Option<String>,
}

/// Something that is worth knowing and in nobody's way: what applications were told when they were started, for example,
/// which decides whether they can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What was looked at, a few words, e.g. `Qt switch`.
    pub name: &'static str,
    /// What was found, one line without application text.
    pub found: String,
    /// What to do where that is not what one wants, one line.
    pub advice: Option<String>,
}

/// Why a desktop cannot be taken: one line that says what is missing and one that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{missing}; {remedy}")]
pub struct StartRefusal {
    /// What is missing, e.g. `no X display is reachable`.
    pub missing: String,
    /// What to do, e.g. `set DISPLAY or start one with maka-desktop`.
    pub remedy: String,
}
