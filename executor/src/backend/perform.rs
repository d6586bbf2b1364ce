//! One action on one node, and how it went.

use maka_cu_protocol::sets::{ElementVerb, Path};
use maka_cu_protocol::text::AppText;
use thiserror::Error;

/// What to do to a node.
#[derive(Debug, Clone)]
pub enum ElementCommand {
    /// Perform one advertised accessibility action.
    Perform(ElementVerb),
    /// Replace the value by this text, which may be empty.
    SetValue(AppText),
}

/// The action was delivered and the platform reported success, which by itself confirms nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Performed {
    /// The mechanism that was used.
    pub path: Path,
}

/// The action was not delivered, or nobody can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PerformError {
    /// The node does not offer this action (any more). Nothing happened, nothing was attempted.
    #[error("the element does not offer that action")]
    NotActionable,
    /// It was attempted by this path and the application or the system rejected it. Nothing happened.
    #[error("the application refused the action")]
    Refused {
        /// The mechanism that was tried.
        path: Path,
    },
    /// It was attempted by this path and may or may not have happened.
    #[error("it is not known whether the action happened")]
    Unknown {
        /// The mechanism that was tried.
        path: Path,
    },
}
