//! How each kind of control looks.

use std::time::Instant;

use super::canvas::{Align, Canvas, TextStyle};
use super::text::Weight;
use super::theme;
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{Color, Content, ControlSpec, LabelStyle};
use crate::backend::virtual_desktop::state::{LiveWindow, Node};

/// Size of ordinary text, in points.
const TEXT_SIZE: f32 = 13.0;
/// Distance between two lines of a text area, in points.
const LINE_HEIGHT: i32 = 20;

/// Paints one control in its window.
pub(super) fn paint(canvas: &mut Canvas, window: &LiveWindow, node: &Node, now: Instant) {
    let control = &node.control;
    let rect = control.bounds;
    let title = window.title_of(node, now).unwrap_or_default();
    let accent = window.accent;
    match &control.content {
        Content::Window(_)
        | Content::Group
        | Content::MenuBar
        | Content::Menu
        | Content::MenuItem => {}
        Content::Panel => {
            canvas.fill_round(rect, theme::CONTROL_RADIUS, theme::PANEL);
            canvas.stroke(rect, theme::CONTROL_RADIUS, theme::LINE);
        }
        Content::Label(style) => label(canvas, control, *style, &title),
        Content::Button { default } => button(canvas, control, *default, &title, accent),
        Content::TextField { value } => field(canvas, control, value, accent),
        Content::SecureField { value } => {
            let bullets: String = value.chars().map(|_| '•').collect();
            field(canvas, control, &bullets, accent);
        }
        Content::TextArea { value } => text_area(canvas, control, value, accent),
        Content::CheckBox { checked } => check_box(canvas, control, *checked, &title, accent),
        Content::List => {
            canvas.fill_round(rect, theme::CONTROL_RADIUS, theme::FIELD);
            canvas.stroke(rect, theme::CONTROL_RADIUS, theme::FIELD_EDGE);
        }
        Content::Row { selected } => {
            let list = node.parent.and_then(|list| window.node(list));
            // A row that does not fit into its list is below the visible part.
            if list.is_some_and(|list| list.control.bounds.contains_rect(rect)) {
                let color = if *selected { theme::WHITE } else { theme::TEXT };
                if *selected {
                    canvas.fill_round(rect, 4.0, accent);
                }
                canvas.text(
                    &title,
                    padded(rect, 10),
                    TextStyle {
                        color,
                        ..body(control)
                    },
                );
            }
        }
        Content::Slider {
            value, min, max, ..
        } => {
            let share = ((value - min) / (max - min)).clamp(0.0, 1.0);
            slider(
                canvas,
                rect,
                share,
                if control.enabled {
                    accent
                } else {
                    theme::FAINT_TEXT
                },
            );
        }
    }
}

fn body(control: &ControlSpec) -> TextStyle {
    let color = if control.enabled {
        theme::TEXT
    } else {
        theme::FAINT_TEXT
    };
    TextStyle {
        size: TEXT_SIZE,
        weight: Weight::Regular,
        color,
        align: Align::Left,
    }
}

fn label(canvas: &mut Canvas, control: &ControlSpec, style: LabelStyle, title: &str) {
    let style = match style {
        LabelStyle::Body => body(control),
        LabelStyle::Heading => TextStyle {
            size: 18.0,
            weight: Weight::Bold,
            ..body(control)
        },
        LabelStyle::Caption => TextStyle {
            size: 11.0,
            color: theme::QUIET_TEXT,
            ..body(control)
        },
    };
    canvas.text(title, control.bounds, style);
}

fn button(canvas: &mut Canvas, control: &ControlSpec, default: bool, title: &str, accent: Color) {
    let rect = control.bounds;
    let (face, edge, text) = match (control.enabled, default) {
        (false, _) => (theme::DISABLED, theme::LINE, theme::FAINT_TEXT),
        (true, true) => (accent, accent, theme::WHITE),
        (true, false) => (theme::FIELD, theme::FIELD_EDGE, theme::TEXT),
    };
    canvas.fill_round(rect, theme::CONTROL_RADIUS, face);
    canvas.stroke(rect, theme::CONTROL_RADIUS, edge);
    let weight = if default {
        Weight::Bold
    } else {
        Weight::Regular
    };
    canvas.text(
        title,
        padded(rect, 8),
        TextStyle {
            size: TEXT_SIZE,
            weight,
            color: text,
            align: Align::Center,
        },
    );
    if control.focused {
        focus_ring(canvas, rect, accent);
    }
}

fn field(canvas: &mut Canvas, control: &ControlSpec, shown: &str, accent: Color) {
    let rect = control.bounds;
    frame(canvas, control, accent);
    let inner = padded(rect, 10);
    let style = body(control);
    let end = match (shown.is_empty(), control.placeholder.as_deref()) {
        (true, Some(placeholder)) => {
            canvas.text(
                placeholder,
                inner,
                TextStyle {
                    color: theme::FAINT_TEXT,
                    ..style
                },
            );
            0
        }
        (true, None) => 0,
        (false, _) if control.focused => canvas.text_tail(shown, inner, style),
        (false, _) => canvas.text(shown, inner, style),
    };
    if control.focused {
        let height = (rect.height - 12).clamp(8, 20);
        let top = rect.y + (rect.height - height) / 2;
        canvas.fill(
            Rect::new((inner.x + end).min(inner.right()), top, 1, height),
            theme::TEXT,
        );
    }
}

fn text_area(canvas: &mut Canvas, control: &ControlSpec, value: &str, accent: Color) {
    frame(canvas, control, accent);
    let inner = control.bounds.inset(10);
    let style = body(control);
    let placeholder = control.placeholder.as_deref().filter(|_| value.is_empty());
    let (line, end) = match placeholder {
        Some(placeholder) => {
            let faint = TextStyle {
                color: theme::FAINT_TEXT,
                ..style
            };
            (
                canvas.paragraph(placeholder, inner, LINE_HEIGHT, faint).0,
                0,
            )
        }
        None => canvas.paragraph(value, inner, LINE_HEIGHT, style),
    };
    if control.focused {
        canvas.fill(
            Rect::new(
                (line.x + end).min(inner.right()),
                line.y + 2,
                1,
                LINE_HEIGHT - 4,
            ),
            theme::TEXT,
        );
    }
}

fn check_box(
    canvas: &mut Canvas,
    control: &ControlSpec,
    checked: bool,
    title: &str,
    accent: Color,
) {
    let rect = control.bounds;
    let side = 18;
    let square = Rect::new(rect.x, rect.y + (rect.height - side) / 2, side, side);
    let accent = if control.enabled {
        accent
    } else {
        theme::FAINT_TEXT
    };
    if checked {
        canvas.fill_round(square, 4.0, accent);
        let Rect { x, y, .. } = square;
        canvas.polyline(
            &[(x + 4, y + 9), (x + 8, y + 13), (x + 14, y + 5)],
            2.0,
            theme::WHITE,
        );
    } else {
        canvas.fill_round(square, 4.0, theme::FIELD);
        canvas.stroke(square, 4.0, theme::FIELD_EDGE);
    }
    let text = Rect::new(
        square.right() + 10,
        rect.y,
        (rect.width - side - 10).max(1),
        rect.height,
    );
    canvas.text(title, text, body(control));
    if control.focused {
        focus_ring(canvas, square, accent);
    }
}

fn slider(canvas: &mut Canvas, rect: Rect, share: f64, accent: Color) {
    let knob = 18;
    let travel = f64::from((rect.width - knob).max(0));
    let left = rect.x + (travel * share).round() as i32;
    let middle = rect.y + rect.height / 2;
    let track = Rect::new(rect.x + knob / 2, middle - 2, (rect.width - knob).max(1), 4);
    canvas.fill_round(track, 2.0, theme::TRACK);
    let filled = Rect::new(track.x, track.y, left - rect.x, 4);
    canvas.fill_round(filled, 2.0, accent);
    let knob = Rect::new(left, middle - knob / 2, knob, knob);
    canvas.disc(knob, theme::FIELD);
    canvas.stroke_wide(knob, 9.0, 2.0, accent, 1.0);
}

fn frame(canvas: &mut Canvas, control: &ControlSpec, accent: Color) {
    let rect = control.bounds;
    let face = if control.enabled {
        theme::FIELD
    } else {
        theme::DISABLED
    };
    canvas.fill_round(rect, theme::CONTROL_RADIUS, face);
    if control.focused {
        canvas.stroke_wide(rect, theme::CONTROL_RADIUS, 1.0, accent, 1.0);
        focus_ring(canvas, rect, accent);
    } else {
        canvas.stroke(rect, theme::CONTROL_RADIUS, theme::FIELD_EDGE);
    }
}

fn focus_ring(canvas: &mut Canvas, rect: Rect, accent: Color) {
    canvas.stroke_wide(
        rect.inset(-3),
        theme::CONTROL_RADIUS + 3.0,
        3.0,
        accent,
        0.28,
    );
}

fn padded(rect: Rect, by: i32) -> Rect {
    Rect::new(
        rect.x + by,
        rect.y,
        (rect.width - 2 * by).max(1),
        rect.height,
    )
}
