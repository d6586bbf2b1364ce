//! The truth table as data: what an action does to a program of each toolkit, uncovered and covered.
//!
//! A row is one action; a cell says what comes of it. Rows of pointer and keyboard are in `input`, rows of elements in
//! `element`.

use std::fmt;

use maka_cu_protocol::sets::Path;

use crate::element;
use crate::form::Form;
use crate::input;
use crate::second;

/// What a form is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolkit {
    Gtk3,
    Gtk4,
    Qt5,
    Qt6,
    Chromium,
}

impl Toolkit {
    pub(crate) const ALL: [Self; 5] =
        [Self::Gtk3, Self::Gtk4, Self::Qt5, Self::Qt6, Self::Chromium];

    /// As the forms are called.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Gtk3 => "gtk3",
            Self::Gtk4 => "gtk4",
            Self::Qt5 => "qt5",
            Self::Qt6 => "qt6",
            Self::Chromium => "chromium",
        }
    }
}

/// Whether a window over the whole screen lies above the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    Uncovered,
    Covered,
}

impl Cover {
    pub(crate) const ALL: [Self; 2] = [Self::Uncovered, Self::Covered];
}

/// What the back end said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Delivered, by this mechanism.
    Done(Path),
    /// Not offered; nothing was attempted.
    Declined,
    /// Offered as input for everybody only; nothing was attempted.
    NeedsGlobal,
    /// Attempted and rejected.
    Refused(Path),
    /// Attempted, and nobody can tell.
    Unknown(Path),
    /// The form has no such control in its tree.
    NoControl,
}

/// Something that should stay as it is while a program is operated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The pointer moved.
    Pointer,
    /// Another window became the active one.
    Active,
    /// Windows changed their order.
    Stacking,
    /// The keyboard focus of the display changed.
    Focus,
}

impl Side {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pointer => "pointer",
            Self::Active => "active window",
            Self::Stacking => "stacking",
            Self::Focus => "focus",
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// The program shows the effect.
    Works {
        path: Path,
        /// What else changed; empty means clean.
        sides: Vec<Side>,
    },
    /// Accepted, and the program has no effect to show.
    Accepted(Path),
    /// An honest no: nothing happened.
    Declined,
    /// Only as input for everybody: nothing happened.
    NeedsGlobal,
    /// Attempted and rejected.
    Refused(Path),
    /// It is not told whether it happened.
    Unknown(Path),
    /// There is no such control in the tree.
    NoControl,
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A row that only looks.
            Self::Works {
                path: Path::None, ..
            } => formatter.write_str("yes"),
            Self::Works { path, sides } if sides.is_empty() => write!(formatter, "`{path}`"),
            Self::Works { path, sides } => {
                let sides: Vec<_> = sides.iter().map(|side| side.as_str()).collect();
                write!(formatter, "`{path}`, changes {}", sides.join(", "))
            }
            Self::Accepted(path) => write!(formatter, "`{path}`, no effect"),
            Self::Declined => formatter.write_str("no"),
            Self::NeedsGlobal => formatter.write_str("`cg_event_global` only"),
            Self::Refused(path) => write!(formatter, "`{path}` rejected"),
            Self::Unknown(path) => write!(formatter, "`{path}` unknown"),
            Self::NoControl => formatter.write_str("–"),
        }
    }
}

/// How an effect is seen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The form's log has a new event that begins so.
    Event(&'static str),
    /// The new events are these, in this order; a run of equal ones counts once, since nobody counts the moves of a drag. Of
    /// more than the form shows, these are the last.
    Events(fn(Toolkit) -> &'static [&'static str]),
    /// As [`Self::Event`], where toolkits differ in what they do.
    EventOf(fn(Toolkit) -> &'static str),
    /// This text is selected in the control of this name.
    Selected(&'static str, &'static str),
    /// Of the window list, compared with the one before.
    Window(fn(&Form) -> bool),
}

/// One action.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// What is done, for the table.
    pub(crate) name: &'static str,
    /// Does it, once.
    pub(crate) run: fn(&Form) -> Outcome,
    /// What comes of it where it works.
    pub(crate) effect: Effect,
    /// What is expected, by [`Toolkit::ALL`]; the second is for a covered window.
    pub(crate) cells: fn(Toolkit, Cover) -> Cell,
}

/// How the back end and the form are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// As the executor does it where nothing is said: programs that it starts hear core events.
    Usual,
    /// With the second pointer, and programs that somebody else started.
    SecondPointer,
}

impl Setup {
    /// Its rows, in the order in which they are run and shown.
    pub(crate) fn rows(self) -> Vec<Row> {
        match self {
            Self::Usual => rows(),
            Self::SecondPointer => second::rows(),
        }
    }
}

fn rows() -> Vec<Row> {
    // The last element row takes the window off the screen.
    [input::POINTS, input::KEYS, element::ROWS].concat()
}

/// A cell that works and changes nothing else.
pub(crate) const fn clean(path: Path) -> Cell {
    Cell::Works {
        path,
        sides: Vec::new(),
    }
}
