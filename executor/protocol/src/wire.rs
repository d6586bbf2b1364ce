//! The JSON form of [`crate::action`]: a union tagged by `kind`.

use serde_json::Value;

use crate::{
    action::{ClickCount, ElementAction, KeyAction, Pages, PointAction},
    json::{Fields, Json, ObjectWriter, Reason, Violation},
    keys::Modifiers,
    sets::{ElementActionKind, KeyActionKind, MouseButton, PointActionKind},
};

impl Json for ClickCount {
    fn read(value: &Value) -> Result<Self, Violation> {
        Self::new(u32::read(value)?).ok_or(Violation::here(Reason::OutOfRange))
    }

    fn write(&self) -> Value {
        Value::from(self.get())
    }
}

impl Json for Pages {
    fn read(value: &Value) -> Result<Self, Violation> {
        Self::new(f64::read(value)?).ok_or(Violation::here(Reason::OutOfRange))
    }

    fn write(&self) -> Value {
        self.get().write()
    }
}

impl Json for ElementAction {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        Ok(match fields.get("kind")? {
            ElementActionKind::Click => Self::Click {
                button: fields.get_or("button", MouseButton::Left)?,
                count: fields.get_or("count", ClickCount::ONE)?,
            },
            ElementActionKind::SetValue => Self::SetValue {
                value: fields.get("value")?,
            },
            ElementActionKind::SelectText => Self::SelectText {
                text: fields.get("text")?,
            },
            ElementActionKind::SecondaryAction => Self::SecondaryAction {
                action: fields.get("action")?,
            },
            ElementActionKind::Scroll => Self::Scroll {
                direction: fields.get("direction")?,
                pages: fields.get_or("pages", Pages::ONE)?,
            },
            ElementActionKind::MoveWindow => Self::MoveWindow {
                position: fields.get("position")?,
            },
            ElementActionKind::ResizeWindow => Self::ResizeWindow {
                size: fields.get("size")?,
            },
            ElementActionKind::MinimizeWindow => Self::MinimizeWindow,
        })
    }

    fn write(&self) -> Value {
        let object = ObjectWriter::new().with("kind", &self.kind());
        match self {
            Self::Click { button, count } => object.with("button", button).with("count", count),
            Self::SetValue { value } => object.with("value", value),
            Self::SelectText { text } => object.with("text", text),
            Self::SecondaryAction { action } => object.with("action", action),
            Self::Scroll { direction, pages } => {
                object.with("direction", direction).with("pages", pages)
            }
            Self::MoveWindow { position } => object.with("position", position),
            Self::ResizeWindow { size } => object.with("size", size),
            Self::MinimizeWindow => object,
        }
        .finish()
    }
}

impl Json for KeyAction {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        Ok(match fields.get("kind")? {
            KeyActionKind::Type => Self::Type {
                text: fields.get("text")?,
            },
            KeyActionKind::Key => Self::Key {
                key: fields.get("key")?,
                modifiers: fields.get_or("modifiers", Modifiers::NONE)?,
            },
        })
    }

    fn write(&self) -> Value {
        let object = ObjectWriter::new().with("kind", &self.kind());
        match self {
            Self::Type { text } => object.with("text", text),
            Self::Key { key, modifiers } => object.with("key", key).with("modifiers", modifiers),
        }
        .finish()
    }
}

impl Json for PointAction {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        Ok(match fields.get("kind")? {
            PointActionKind::Move => Self::Move,
            PointActionKind::LeftClick => Self::LeftClick {
                count: fields.get_or("count", ClickCount::ONE)?,
            },
            PointActionKind::RightClick => Self::RightClick,
            PointActionKind::MiddleClick => Self::MiddleClick,
            PointActionKind::DoubleClick => Self::DoubleClick,
            PointActionKind::TripleClick => Self::TripleClick,
            PointActionKind::MouseDown => Self::MouseDown,
            PointActionKind::MouseUp => Self::MouseUp,
            PointActionKind::Drag => Self::Drag,
            PointActionKind::Scroll => Self::Scroll {
                direction: fields.get("direction")?,
                pages: fields.get_or("pages", Pages::ONE)?,
            },
        })
    }

    fn write(&self) -> Value {
        let object = ObjectWriter::new().with("kind", &self.kind());
        match self {
            Self::LeftClick { count } => object.with("count", count),
            Self::Scroll { direction, pages } => {
                object.with("direction", direction).with("pages", pages)
            }
            Self::Move
            | Self::RightClick
            | Self::MiddleClick
            | Self::DoubleClick
            | Self::TripleClick
            | Self::MouseDown
            | Self::MouseUp
            | Self::Drag => object,
        }
        .finish()
    }
}
