//! One action on one node, and how it went.

use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::sets::{Direction, ElementVerb, Path};
use maka_cu_protocol::text::{AppText, SomeText};
use thiserror::Error;

/// What to do to a node.
#[derive(Debug, Clone)]
pub enum ElementCommand {
    /// Perform one advertised accessibility action.
    Perform(ElementVerb),
    /// Replace the value by this text, which may be empty.
    SetValue(AppText),
    /// Select the first place where this text occurs in the value.
    SelectText(SomeText),
    /// Scroll what the node shows by pages, by an action or a scroll bar, never by the wheel.
    Scroll {
        /// Where to.
        direction: Direction,
        /// How far; one page is what the node shows at one time.
        pages: Pages,
    },
    /// Put the window of this root there, as given.
    MoveWindow(ScreenPoint),
    /// Give the window of this root that size, as given.
    ResizeWindow(ScreenSize),
    /// Take the window of this root off the screen.
    MinimizeWindow,
}

impl ElementCommand {
    /// The mechanism by which this is done where nothing else is known.
    #[must_use]
    pub const fn usual_path(&self) -> Path {
        match self {
            Self::Perform(_) | Self::Scroll { .. } => Path::AxAction,
            Self::SetValue(_)
            | Self::SelectText(_)
            | Self::MoveWindow(_)
            | Self::ResizeWindow(_)
            | Self::MinimizeWindow => Path::AxAttribute,
        }
    }
}

/// The action was delivered and the platform reported success, which by itself confirms nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Performed {
    /// The mechanism that was used.
    pub path: Path,
    /// Whether what was written can be read back from this control. Where a toolkit is known to answer with something
    /// else, an unchanged value says nothing.
    pub readable: bool,
}

impl Performed {
    /// Done by this mechanism, and what it wrote reads back.
    #[must_use]
    pub const fn by(path: Path) -> Self {
        Self {
            path,
            readable: true,
        }
    }
}

/// The action was not delivered, or nobody can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PerformError {
    /// The node does not offer this action (any more). Nothing happened, nothing was attempted.
    #[error("the element does not offer that action")]
    NotActionable,
    /// What had to be asked first was not answered in time. Nothing happened, nothing was attempted.
    #[error("the application did not answer in time")]
    TimedOut,
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
