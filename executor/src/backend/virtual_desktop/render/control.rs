//! How each kind of control looks.

use std::time::Instant;

use super::canvas::{Align, Canvas, TextStyle};
use super::layout::{self, KNOB, LINE_HEIGHT, TEXT_SIZE};
use super::text::Weight;
use super::theme;
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{
    ButtonPart, Color, Content, ControlSpec, LabelStyle,
};
use crate::backend::virtual_desktop::state::{LiveWindow, Node, NodeId, shown_part};

/// How strongly selected text is tinted.
const SELECTION_TINT: f32 = 0.28;

/// Paints one control in its window.
pub(super) fn paint(
    canvas: &mut Canvas,
    window: &LiveWindow,
    id: NodeId,
    node: &Node,
    now: Instant,
) {
    let control = &node.control;
    let rect = window.place(node);
    let whole = Rect::new(0, 0, window.bounds.width, window.bounds.height);
    if rect.overlap(whole) == 0 {
        return;
    }
    let title = window.title_of(node, now).unwrap_or_default();
    let accent = window.accent;
    match &control.content {
        Content::Window(_) | Content::Group | Content::MenuBar | Content::Menu => {}
        Content::Panel => {
            canvas.fill_round(rect, theme::CONTROL_RADIUS, theme::PANEL);
            canvas.stroke(rect, theme::CONTROL_RADIUS, theme::LINE);
        }
        Content::Label(style) => label(canvas, control, *style, &title),
        Content::Link => {
            let style = TextStyle {
                color: accent,
                ..body(control)
            };
            let width = canvas.text(&title, rect, style);
            let line = Rect::new(rect.x, rect.y + rect.height / 2 + 8, width, 1);
            canvas.fill(line, accent);
        }
        Content::Image => {
            canvas.gradient(rect, theme::WALLPAPER_TOP, theme::WALLPAPER_BOTTOM);
            canvas.stroke(rect, 0.0, theme::FIELD_EDGE);
        }
        Content::Progress { percent } => {
            canvas.fill_round(rect, 3.0, theme::TRACK);
            let done = Rect::new(
                rect.x,
                rect.y,
                rect.width * i32::from(*percent) / 100,
                rect.height,
            );
            if done.width > 0 {
                canvas.fill_round(done, 3.0, accent);
            }
        }
        Content::Button { part } => button(canvas, node, *part, &title, accent),
        Content::TextField { .. } | Content::SecureField { .. } => field(canvas, node, accent),
        Content::TextArea { value } => text_area(canvas, node, value, accent),
        Content::CheckBox { checked } => {
            tick_box(canvas, control, 4.0, *checked, &title, accent);
        }
        Content::RadioButton { chosen } => {
            tick_box(canvas, control, 9.0, *chosen, &title, accent);
        }
        Content::PopUpButton { choices, chosen } => {
            let shown = choices.get(*chosen).map_or("", String::as_str);
            button(canvas, node, ButtonPart::Plain, shown, accent);
            let (x, y) = (rect.right() - 20, rect.y + rect.height / 2 - 2);
            canvas.polyline(
                &[(x, y), (x + 4, y + 4), (x + 8, y)],
                1.6,
                theme::QUIET_TEXT,
            );
        }
        Content::List { .. } => {
            canvas.fill_round(rect, theme::CONTROL_RADIUS, theme::FIELD);
            canvas.stroke(rect, theme::CONTROL_RADIUS, theme::FIELD_EDGE);
            scroll_mark(canvas, node);
            if control.focused {
                focus_ring(canvas, rect, accent);
            }
        }
        Content::Row { selected } => {
            let list = node.parent.and_then(|list| window.node(list));
            // A row that does not fit into its list is above or below the visible part.
            if list.is_some_and(|list| list.control.bounds.contains_rect(rect)) {
                row(canvas, control, rect, *selected, &title, accent);
            }
        }
        Content::ContextMenu => {
            canvas.shadow(rect, theme::CONTROL_RADIUS, 0.6);
            canvas.fill_round(rect, theme::CONTROL_RADIUS, theme::FIELD);
            canvas.stroke(rect, theme::CONTROL_RADIUS, theme::FIELD_EDGE);
        }
        // An item of the menu bar has no place in the window.
        Content::MenuItem if rect.width == 0 => {}
        Content::MenuItem => {
            let highlighted = window.is_highlighted(id, node) == Some(true);
            row(canvas, control, rect, highlighted, &title, accent);
        }
        Content::Slider {
            value, min, max, ..
        } => {
            let share = ((value - min) / (max - min)).clamp(0.0, 1.0);
            let color = if control.enabled {
                accent
            } else {
                theme::FAINT_TEXT
            };
            slider(canvas, rect, share, color);
            if control.focused {
                focus_ring(canvas, rect, accent);
            }
        }
    }
}

/// The bar at the right edge that says which part of a list or text area is in view.
fn scroll_mark(canvas: &mut Canvas, node: &Node) {
    let Some((start, share)) = shown_part(node) else {
        return;
    };
    let track = node.control.bounds.inset(3);
    let height = f64::from(track.height);
    let length = (height * share).max(16.0);
    let top = (height - length) * (start / (1.0 - share)).clamp(0.0, 1.0);
    let mark = Rect::new(
        track.right() - 4,
        track.y + top.round() as i32,
        4,
        (length.round() as i32).min(track.height).max(1),
    );
    canvas.fill_round(mark, 2.0, theme::FAINT_TEXT);
}

fn row(
    canvas: &mut Canvas,
    control: &ControlSpec,
    rect: Rect,
    selected: bool,
    title: &str,
    accent: Color,
) {
    let style = if selected {
        canvas.fill_round(rect, 4.0, accent);
        TextStyle {
            color: theme::WHITE,
            ..body(control)
        }
    } else {
        body(control)
    };
    canvas.text(title, padded(rect, 10), style);
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

fn button(canvas: &mut Canvas, node: &Node, part: ButtonPart, title: &str, accent: Color) {
    let control = &node.control;
    let rect = control.bounds;
    let default = match part {
        ButtonPart::Default => true,
        ButtonPart::Plain | ButtonPart::Cancel => false,
    };
    let (face, edge, text) = match (control.enabled, default) {
        (false, _) => (theme::DISABLED, theme::LINE, theme::FAINT_TEXT),
        (true, true) => (accent, accent, theme::WHITE),
        (true, false) => (theme::FIELD, theme::FIELD_EDGE, theme::TEXT),
    };
    canvas.fill_round(rect, theme::CONTROL_RADIUS, face);
    if node.held {
        canvas.fill_translucent(rect.inset(1), theme::TEXT, 0.18);
    }
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

fn field(canvas: &mut Canvas, node: &Node, accent: Color) {
    let control = &node.control;
    let rect = control.bounds;
    frame(canvas, control, accent);
    let inner = layout::field_text(rect);
    let style = body(control);
    let shown = layout::shown_text(&control.content);
    let value = control.content.text().unwrap_or_default();
    let place = |place: usize| layout::shown_place(&control.content, place);
    let caret = place(node.selection.caret(value));
    let first = layout::first_shown(&shown, rect, control.focused.then_some(caret));
    let height = (rect.height - 12).clamp(8, 20);
    let top = rect.y + (rect.height - height) / 2;
    let column = |place: usize| {
        let before = shown.get(first..place.max(first)).unwrap_or_default();
        (inner.x + layout::width(before).ceil() as i32).min(inner.right())
    };
    let selected = node.selection.range(value);
    if !selected.is_empty() {
        let (left, right) = (column(place(selected.start)), column(place(selected.end)));
        let area = Rect::new(left, top, right - left, height);
        canvas.fill_translucent(area, accent, SELECTION_TINT);
    }
    match control.placeholder.as_deref() {
        Some(placeholder) if shown.is_empty() => {
            let faint = TextStyle {
                color: theme::FAINT_TEXT,
                ..style
            };
            canvas.text(placeholder, inner, faint);
        }
        // With the caret in it a field shows what is around the caret, else its start and that there is more.
        Some(_) | None if control.focused => canvas.text_head(&shown[first..], inner, style),
        Some(_) | None => {
            canvas.text(&shown, inner, style);
        }
    }
    if control.focused {
        canvas.fill(Rect::new(column(caret), top, 1, height), theme::TEXT);
    }
}

fn text_area(canvas: &mut Canvas, node: &Node, value: &str, accent: Color) {
    let control = &node.control;
    frame(canvas, control, accent);
    let inner = layout::area_text(control.bounds);
    let style = body(control);
    let faint = TextStyle {
        color: theme::FAINT_TEXT,
        ..style
    };
    let (text, style) = match control.placeholder.as_deref() {
        Some(placeholder) if value.is_empty() => (placeholder, faint),
        Some(_) | None => (value, style),
    };
    scroll_mark(canvas, node);
    let lines = layout::lines(text, control.bounds);
    let first = usize::try_from(node.scroll / LINE_HEIGHT).unwrap_or(0);
    let shown = first..(first + layout::lines_shown(control.bounds)).min(lines.len());
    let selected = node.selection.range(value);
    let caret = node.selection.caret(value);
    let caret_line = layout::line_of(&lines, caret);
    for (row, index) in (0..).zip(shown) {
        let line = lines[index].clone();
        let place = Rect::new(
            inner.x,
            inner.y + row * LINE_HEIGHT,
            inner.width,
            LINE_HEIGHT,
        );
        let column = |place: usize| {
            let before = text.get(line.start..place.clamp(line.start, line.end));
            let width = layout::width(before.unwrap_or_default()).ceil() as i32;
            (inner.x + width).min(inner.right())
        };
        let (left, right) = (column(selected.start), column(selected.end));
        if left < right && !value.is_empty() {
            let area = Rect::new(left, place.y + 1, right - left, LINE_HEIGHT - 2);
            canvas.fill_translucent(area, accent, SELECTION_TINT);
        }
        canvas.text_head(&text[line.clone()], place, style);
        if control.focused && index == caret_line {
            let x = if value.is_empty() {
                inner.x
            } else {
                column(caret)
            };
            canvas.fill(Rect::new(x, place.y + 2, 1, LINE_HEIGHT - 4), theme::TEXT);
        }
    }
}

/// A box or, with a large radius, a disc, that is ticked or not, and the text beside it.
fn tick_box(
    canvas: &mut Canvas,
    control: &ControlSpec,
    radius: f32,
    ticked: bool,
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
    if ticked {
        canvas.fill_round(square, radius, accent);
        let Rect { x, y, .. } = square;
        canvas.polyline(
            &[(x + 4, y + 9), (x + 8, y + 13), (x + 14, y + 5)],
            2.0,
            theme::WHITE,
        );
    } else {
        canvas.fill_round(square, radius, theme::FIELD);
        canvas.stroke(square, radius, theme::FIELD_EDGE);
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
    let knob = KNOB;
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
