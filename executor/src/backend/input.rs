//! Synthetic input, at a point or by keys, and the ways in which it can reach a window.

use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::keys::{Key, Modifiers};
use maka_cu_protocol::sets::{Direction, MouseButton, Path};
use maka_cu_protocol::text::AppText;

/// A gesture at a point of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointCommand {
    /// What to do.
    pub gesture: Gesture,
    /// Where, from the window's top left corner; for a drag, where it ends.
    pub at: WindowPoint,
}

/// What is done at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gesture {
    /// Take the pointer there.
    Move,
    /// Press and release a button, once or several times in the time of one multiple click.
    Click {
        /// Which button.
        button: MouseButton,
        /// 1 to 3.
        count: u8,
    },
    /// Press the left button and leave it down.
    Press,
    /// Release the left button.
    Release,
    /// Press the left button at `from`, move, release at the point of the command.
    Drag {
        /// Where it starts.
        from: WindowPoint,
    },
    /// Turn the wheel.
    Scroll {
        /// Where to.
        direction: Direction,
        /// How far; one page is ten steps of the wheel.
        pages: Pages,
    },
}

impl Gesture {
    /// Where the pointer is put down first, when that is not the point of the command.
    #[must_use]
    pub const fn start(&self) -> Option<WindowPoint> {
        match self {
            Self::Drag { from } => Some(*from),
            Self::Move | Self::Click { .. } | Self::Press | Self::Release | Self::Scroll { .. } => {
                None
            }
        }
    }
}

/// What is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCommand {
    /// Text, character by character.
    Type(AppText),
    /// One key with exactly these modifiers.
    Chord {
        /// The key.
        key: Key,
        /// What is held meanwhile.
        modifiers: Modifiers,
    },
}

/// How a piece of input can get to where it is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To this window alone; pointer, focus and stacking stay as they are.
    Window,
    /// Only as system-wide input, which moves the pointer or activates the window.
    GlobalOnly,
    /// Not at all: the platform has no way, or the text has a character that no key makes.
    Never,
}

/// A way that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRoute {
    /// Events for one window, by [`Path::CgEventPid`].
    Window,
    /// System-wide events, by [`Path::CgEventGlobal`]. Chosen only with the host's permission.
    Global,
}

impl InputRoute {
    /// What it is called on the wire.
    #[must_use]
    pub const fn path(self) -> Path {
        match self {
            Self::Window => Path::CgEventPid,
            Self::Global => Path::CgEventGlobal,
        }
    }
}
