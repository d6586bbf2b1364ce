//! The vocabulary of actions, as values that can only be legal (§3.6–3.8). Their JSON form is in `wire`.

use crate::{
    geometry::{ScreenPoint, ScreenSize},
    keys::{Key, Modifiers},
    sets::{
        Direction, ElementActionKind, ElementVerb, KeyActionKind, MouseButton, PointActionKind,
    },
    text::{AppText, SomeText},
};

/// How many times to click: 1 to 3.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClickCount(u8);

impl ClickCount {
    /// One click.
    pub const ONE: Self = Self(1);

    /// The count, if it is 1, 2 or 3.
    #[must_use]
    pub fn new(count: u32) -> Option<Self> {
        u8::try_from(count)
            .ok()
            .filter(|count| (1..=3).contains(count))
            .map(Self)
    }

    /// The number of clicks.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// How far to scroll, in pages: finite and greater than zero.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Pages(f64);

impl Pages {
    /// One page.
    pub const ONE: Self = Self(1.0);

    /// The distance, if it is finite and greater than zero.
    #[must_use]
    pub fn new(pages: f64) -> Option<Self> {
        (pages.is_finite() && pages > 0.0).then_some(Self(pages))
    }

    /// The number of pages.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// An action of `dispatch.element`.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementAction {
    /// Press (left) or show the menu (right); no element offers the middle button.
    Click {
        /// Which button.
        button: MouseButton,
        /// How often.
        count: ClickCount,
    },
    /// Write the value, which may be empty.
    SetValue {
        /// The new value.
        value: AppText,
    },
    /// Select this text where it occurs in the value.
    SelectText {
        /// The text to select.
        text: SomeText,
    },
    /// Perform one advertised action.
    SecondaryAction {
        /// Which one.
        action: ElementVerb,
    },
    /// Scroll.
    Scroll {
        /// Where to.
        direction: Direction,
        /// How far.
        pages: Pages,
    },
    /// Move the window.
    MoveWindow {
        /// The new position of its top left corner.
        position: ScreenPoint,
    },
    /// Resize the window.
    ResizeWindow {
        /// The new size.
        size: ScreenSize,
    },
    /// Minimise the window. There is no inverse.
    MinimizeWindow,
}

impl ElementAction {
    /// The capability this action needs.
    #[must_use]
    pub const fn kind(&self) -> ElementActionKind {
        match self {
            Self::Click { .. } => ElementActionKind::Click,
            Self::SetValue { .. } => ElementActionKind::SetValue,
            Self::SelectText { .. } => ElementActionKind::SelectText,
            Self::SecondaryAction { .. } => ElementActionKind::SecondaryAction,
            Self::Scroll { .. } => ElementActionKind::Scroll,
            Self::MoveWindow { .. } => ElementActionKind::MoveWindow,
            Self::ResizeWindow { .. } => ElementActionKind::ResizeWindow,
            Self::MinimizeWindow => ElementActionKind::MinimizeWindow,
        }
    }
}

/// An action of `dispatch.key`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyAction {
    /// Type text.
    Type {
        /// The text; may be empty, as the wire sets no lower bound.
        text: AppText,
    },
    /// Press one key with modifiers held.
    Key {
        /// The key.
        key: Key,
        /// What is held.
        modifiers: Modifiers,
    },
}

impl KeyAction {
    /// The capability this action needs.
    #[must_use]
    pub const fn kind(&self) -> KeyActionKind {
        match self {
            Self::Type { .. } => KeyActionKind::Type,
            Self::Key { .. } => KeyActionKind::Key,
        }
    }
}

/// An action of `dispatch.point`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointAction {
    /// Move the pointer: has no route that is bound to one process.
    Move,
    /// Click the left button.
    LeftClick {
        /// How often.
        count: ClickCount,
    },
    /// Click the right button.
    RightClick,
    /// Click the middle button.
    MiddleClick,
    /// Two left clicks.
    DoubleClick,
    /// Three left clicks.
    TripleClick,
    /// Press the left button and keep it down.
    MouseDown,
    /// Let the left button go.
    MouseUp,
    /// Press at the start point, move, let go at the point.
    Drag,
    /// Turn the wheel.
    Scroll {
        /// Where to.
        direction: Direction,
        /// How far.
        pages: Pages,
    },
}

impl PointAction {
    /// The capability this action needs.
    #[must_use]
    pub const fn kind(&self) -> PointActionKind {
        match self {
            Self::Move => PointActionKind::Move,
            Self::LeftClick { .. } => PointActionKind::LeftClick,
            Self::RightClick => PointActionKind::RightClick,
            Self::MiddleClick => PointActionKind::MiddleClick,
            Self::DoubleClick => PointActionKind::DoubleClick,
            Self::TripleClick => PointActionKind::TripleClick,
            Self::MouseDown => PointActionKind::MouseDown,
            Self::MouseUp => PointActionKind::MouseUp,
            Self::Drag => PointActionKind::Drag,
            Self::Scroll { .. } => PointActionKind::Scroll,
        }
    }
}
