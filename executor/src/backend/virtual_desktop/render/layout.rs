//! Where text stands inside a control: asked by whoever paints it and by whoever points at it, so that both agree.
//!
//! Everything is in points at one pixel to the point. Glyphs are not hinted, so their widths grow with the scale and one
//! layout serves every display.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::text::{Typeface, Weight};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::Content;
use crate::backend::virtual_desktop::state::Node;

/// Size of ordinary text.
pub(crate) const TEXT_SIZE: f32 = 13.0;
/// Distance between two lines of a text area.
pub(crate) const LINE_HEIGHT: i32 = 20;
/// Side of the knob of a slider.
pub(crate) const KNOB: i32 = 18;

/// Where the text of a field stands in it.
pub(crate) fn field_text(bounds: Rect) -> Rect {
    Rect::new(
        bounds.x + 10,
        bounds.y,
        (bounds.width - 20).max(1),
        bounds.height,
    )
}

/// Where the text of a text area stands in it.
pub(crate) fn area_text(bounds: Rect) -> Rect {
    let Rect {
        x,
        y,
        width,
        height,
    } = bounds;
    Rect::new(x + 10, y + 10, (width - 20).max(1), (height - 20).max(1))
}

/// The text that a control shows: that of a password field as bullets.
pub(crate) fn shown_text(content: &Content) -> String {
    match content {
        Content::SecureField { value } => value.chars().map(|_| BULLET).collect(),
        other => other.text().unwrap_or_default().to_owned(),
    }
}

/// Stands for a character that is not shown.
const BULLET: char = '•';

/// The place in the shown text that belongs to a place in the text itself.
pub(crate) fn shown_place(content: &Content, place: usize) -> usize {
    match content {
        Content::SecureField { value } => {
            value[..place.min(value.len())].chars().count() * BULLET.len_utf8()
        }
        _ => place,
    }
}

/// Width of a text.
pub(crate) fn width(text: &str) -> f32 {
    Typeface::new(Weight::Regular, TEXT_SIZE).width(text)
}

/// Where the part of a line begins that a field shows: all of it while it fits, else enough of it to have the caret in view.
pub(crate) fn first_shown(line: &str, bounds: Rect, caret: Option<usize>) -> usize {
    let room = field_text(bounds).width as f32;
    let Some(caret) = caret.filter(|_| width(line) > room) else {
        return 0;
    };
    let before = &line[..caret.min(line.len())];
    before.len()
        - Typeface::new(Weight::Regular, TEXT_SIZE)
            .tail(before, room)
            .len()
}

/// The lines in which a text area sets a text; never none.
pub(crate) fn lines(text: &str, bounds: Rect) -> Vec<Range<usize>> {
    let face = Typeface::new(Weight::Regular, TEXT_SIZE);
    face.wrap(text, area_text(bounds).width as f32, usize::MAX)
}

/// How many lines a text area shows at one time.
pub(crate) fn lines_shown(bounds: Rect) -> usize {
    usize::try_from(area_text(bounds).height / LINE_HEIGHT).map_or(1, |lines| lines.max(1))
}

/// Index of the line that a place in the text lies in.
pub(crate) fn line_of(lines: &[Range<usize>], place: usize) -> usize {
    lines
        .iter()
        .rposition(|line| line.start <= place)
        .unwrap_or(0)
}

/// The place in the text of a control that is nearest to a point of its window.
pub(crate) fn place_in_text(node: &Node, at: (i32, i32)) -> usize {
    let content = &node.control.content;
    let bounds = node.control.bounds;
    match content {
        Content::TextArea { value } => {
            let text = area_text(bounds);
            let lines = lines(value, bounds);
            let line = (at.1 - text.y + node.scroll).max(0) / LINE_HEIGHT;
            let line = usize::try_from(line).unwrap_or(0).min(lines.len() - 1);
            let Range { start, end } = lines[line].clone();
            start + place_in_line(&value[start..end], (at.0 - text.x) as f32)
        }
        _ => {
            let shown = shown_text(content);
            let value = content.text().unwrap_or_default();
            let caret = shown_place(content, node.selection.caret(value));
            let caret = node.control.focused.then_some(caret);
            let first = first_shown(&shown, bounds, caret);
            let x = (at.0 - field_text(bounds).x) as f32;
            let place = first + place_in_line(&shown[first..], x);
            match content {
                Content::SecureField { value } => {
                    let before = shown[..place].chars().count();
                    value
                        .char_indices()
                        .nth(before)
                        .map_or(value.len(), |(start, _)| start)
                }
                _ => place,
            }
        }
    }
}

/// How much of its range a slider shows when its knob is over a column of the window: 0 to 1.
pub(crate) fn slider_share(bounds: Rect, x: i32) -> f64 {
    let travel = f64::from((bounds.width - KNOB).max(1));
    (f64::from(x - bounds.x - KNOB / 2) / travel).clamp(0.0, 1.0)
}

fn place_in_line(line: &str, x: f32) -> usize {
    let mut left = 0.0;
    for (start, cluster) in line.grapheme_indices(true) {
        let advance = width(cluster);
        if x < left + advance / 2.0 {
            return start;
        }
        left += advance;
    }
    line.len()
}
