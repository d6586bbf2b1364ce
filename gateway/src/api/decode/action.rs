//! The actions of a dispatch, before they are joined with their target.

use maka_cu_protocol::{
    action::{ClickCount, ElementAction, KeyAction, Pages, PointAction},
    chord::parse_chord,
    geometry::{ScreenPoint, ScreenSize},
    keys::Modifiers,
    sets::{ElementVerb, MouseButton},
    text::{AppText, SomeText},
};
use maka_proto::v1::{self, dispatch_request::Action};

use super::{scalar, violations::Violations};

/// Longest text of one action.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Longest chord: all modifiers, each once, and the longest key.
const MAX_CHORD_BYTES: usize = 64;

/// An action and the kind of target it needs.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// Needs an element.
    Element(ElementAction),
    /// Needs a focus.
    Key(KeyAction),
    /// Needs a point.
    Point(PointAction),
    /// Goes with an element or with a point.
    Scroll {
        /// With an element, or with no target.
        element: ElementAction,
        /// With a point.
        point: PointAction,
    },
}

/// Decodes the action.
pub(crate) fn action(violations: &mut Violations, action: Action) -> Option<Decoded> {
    match action {
        Action::Click(v1::Click { button, count }) => {
            let button = scalar::mouse_button(violations, "click.button", button);
            let count = click_count(violations, "click.count", count);
            let button = button?.unwrap_or(MouseButton::Left);
            Some(Decoded::Element(ElementAction::Click {
                button,
                count: count?,
            }))
        }
        Action::SetValue(v1::SetValue { value }) => {
            let value = text(violations, "set_value.value", value)?;
            Some(Decoded::Element(ElementAction::SetValue { value }))
        }
        Action::SelectText(v1::SelectText { text: selected }) => {
            let selected = text(violations, "select_text.text", selected)?;
            match SomeText::new(selected.into_string()) {
                Some(text) => Some(Decoded::Element(ElementAction::SelectText { text })),
                None => violations.refuse("select_text.text", "must not be empty"),
            }
        }
        Action::SecondaryAction(v1::SecondaryAction { action }) => {
            match ElementVerb::parse(&action) {
                Some(action) => Some(Decoded::Element(ElementAction::SecondaryAction { action })),
                None => violations.refuse(
                    "secondary_action.action",
                    "must be one of the element's `actions`",
                ),
            }
        }
        Action::Scroll(v1::Scroll { direction, pages }) => scroll(violations, direction, pages),
        Action::MoveWindow(v1::MoveWindow { position_screen }) => {
            let Some(v1::Point { x, y }) = position_screen else {
                return violations.refuse("move_window.position_screen", scalar::REQUIRED);
            };
            match ScreenPoint::try_new(x, y) {
                Ok(position) => Some(Decoded::Element(ElementAction::MoveWindow { position })),
                Err(_) => violations.refuse("move_window.position_screen", "must be finite"),
            }
        }
        Action::ResizeWindow(v1::ResizeWindow { width, height }) => {
            for (field, extent) in [
                ("resize_window.width", width),
                ("resize_window.height", height),
            ] {
                if !extent.is_finite() || extent < 0.0 {
                    violations.add(field, "must be finite and not negative");
                }
            }
            let size = ScreenSize::try_new(width, height).ok()?;
            Some(Decoded::Element(ElementAction::ResizeWindow { size }))
        }
        Action::MinimizeWindow(v1::MinimizeWindow {}) => {
            Some(Decoded::Element(ElementAction::MinimizeWindow))
        }
        Action::TypeText(v1::TypeText { text: typed }) => {
            let text = text(violations, "type_text.text", typed)?;
            Some(Decoded::Key(KeyAction::Type { text }))
        }
        Action::PressKey(press) => press_key(violations, &press).map(Decoded::Key),
        Action::PointerMove(v1::PointerMove {}) => Some(Decoded::Point(PointAction::Move)),
        Action::PointerClick(v1::PointerClick { button, count }) => {
            let button = scalar::mouse_button(violations, "pointer_click.button", button);
            let count = click_count(violations, "pointer_click.count", count);
            pointer_click(violations, button?.unwrap_or(MouseButton::Left), count?)
                .map(Decoded::Point)
        }
        Action::PointerButton(v1::PointerButton { down: true }) => {
            Some(Decoded::Point(PointAction::MouseDown))
        }
        Action::PointerButton(v1::PointerButton { down: false }) => {
            Some(Decoded::Point(PointAction::MouseUp))
        }
        Action::PointerDrag(v1::PointerDrag {}) => Some(Decoded::Point(PointAction::Drag)),
    }
}

fn click_count(violations: &mut Violations, field: &str, count: Option<u32>) -> Option<ClickCount> {
    match count {
        None => Some(ClickCount::ONE),
        Some(count) => match ClickCount::new(count) {
            Some(count) => Some(count),
            None => violations.refuse(field, "must be 1, 2 or 3"),
        },
    }
}

fn pointer_click(
    violations: &mut Violations,
    button: MouseButton,
    count: ClickCount,
) -> Option<PointAction> {
    let once = count == ClickCount::ONE;
    match button {
        MouseButton::Left => Some(PointAction::LeftClick { count }),
        MouseButton::Right if once => Some(PointAction::RightClick),
        MouseButton::Middle if once => Some(PointAction::MiddleClick),
        MouseButton::Right | MouseButton::Middle => {
            violations.refuse("pointer_click.count", "above 1 only with the left button")
        }
    }
}

fn text(violations: &mut Violations, field: &str, text: String) -> Option<AppText> {
    if text.len() <= MAX_TEXT_BYTES {
        Some(AppText::new(text))
    } else {
        violations.refuse(field, "must not have more than 65536 bytes")
    }
}

fn scroll(violations: &mut Violations, direction: i32, pages: Option<f64>) -> Option<Decoded> {
    let direction = scalar::direction(violations, "scroll.direction", direction);
    let direction = scalar::required(violations, "scroll.direction", direction);
    let pages = match pages {
        None => Some(Pages::ONE),
        Some(pages) => match Pages::new(pages) {
            Some(pages) => Some(pages),
            None => violations.refuse("scroll.pages", "must be finite and above 0"),
        },
    };
    let (direction, pages) = (direction?, pages?);
    Some(Decoded::Scroll {
        element: ElementAction::Scroll { direction, pages },
        point: PointAction::Scroll { direction, pages },
    })
}

/// A chord, with what `modifiers` adds. The executor never parses chords, and a part that is not understood is
/// never dropped.
fn press_key(violations: &mut Violations, press: &v1::PressKey) -> Option<KeyAction> {
    let chord = match Some(&press.key).filter(|key| key.len() <= MAX_CHORD_BYTES).map(|key| parse_chord(key)) {
        Some(Ok(chord)) => Some(chord),
        Some(Err(_)) | None => violations.refuse(
            "press_key.key",
            "must be a key or a chord such as `cmd+shift+a`; `delete` is ambiguous: use `Backspace` or `ForwardDelete`",
        ),
    };
    let mut listed = Vec::new();
    let mut bad = false;
    for (index, number) in press.modifiers.iter().enumerate() {
        let field = format!("press_key.modifiers[{index}]");
        let modifier = scalar::modifier(violations, &field, *number);
        match scalar::required(violations, &field, modifier) {
            Some(modifier) => listed.push(modifier),
            None => bad = true,
        }
        // Each modifier counts once, so a longer list says nothing; it must not cost one violation per entry either.
        if index >= 16 {
            violations.add("press_key.modifiers", "must not have more than 16 entries");
            bad = true;
            break;
        }
    }
    let chord = chord?;
    if bad {
        return None;
    }
    let modifiers: Modifiers = chord.modifiers.iter().chain(listed).collect();
    Some(KeyAction::Key {
        key: chord.key,
        modifiers,
    })
}
