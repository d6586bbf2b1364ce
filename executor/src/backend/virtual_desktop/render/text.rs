//! Text: the two faces, how wide a line is, and glyphs as coverage.
//!
//! The faces are DejaVu Sans and DejaVu Sans Bold: they cover Latin, Greek, Cyrillic, Arabic letters and most symbols, so
//! that what a client types shows up in the picture. There is no shaping: a letter stands after the one before it.
//! Characters without a glyph show the face's box; control characters show nothing.

use std::ops::Range;
use std::sync::LazyLock;

use ab_glyph::{Font as _, FontRef, Glyph, GlyphId, PxScale, ScaleFont as _, point};

/// The weight of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

static REGULAR: LazyLock<FontRef<'static>> = LazyLock::new(|| face(dejavu::sans::regular()));
static BOLD: LazyLock<FontRef<'static>> = LazyLock::new(|| face(dejavu::sans::bold()));

fn face(bytes: &'static [u8]) -> FontRef<'static> {
    FontRef::try_from_slice(bytes).expect("the embedded faces are well-formed, which a test shows")
}

/// A face at one size.
#[derive(Clone, Copy)]
pub(super) struct Typeface {
    font: &'static FontRef<'static>,
    scale: PxScale,
}

impl Typeface {
    /// The face of a weight, with an em of `size` pixels.
    pub(super) fn new(weight: Weight, size: f32) -> Self {
        let font: &'static FontRef<'static> = match weight {
            Weight::Regular => &REGULAR,
            Weight::Bold => &BOLD,
        };
        // ab_glyph scales by line height; type sizes are given by the em.
        let em = font.units_per_em().unwrap_or(2048.0);
        Self {
            font,
            scale: PxScale::from(size * font.height_unscaled() / em),
        }
    }

    /// Distance from the top of a line box of `height` to the baseline that centers capital letters in it, in pixels.
    pub(super) fn baseline(&self, height: f32) -> f32 {
        // The height of a capital is some 0.73 em in these faces; a line box centered on it looks centered to the eye.
        let em =
            self.scale.y / self.font.height_unscaled() * self.font.units_per_em().unwrap_or(2048.0);
        ((height + em * 0.73) / 2.0).round()
    }

    /// Width of a line, in pixels.
    pub(super) fn width(&self, line: &str) -> f32 {
        let scaled = self.font.as_scaled(self.scale);
        line.chars()
            .filter_map(|char| self.glyph_id(char))
            .map(|id| scaled.h_advance(id))
            .sum()
    }

    /// The longest part of `line` that is at most `width` pixels wide, with `…` in place of what was cut at the end.
    pub(super) fn elide(&self, line: &str, width: f32) -> String {
        if self.width(line) <= width {
            return line.to_owned();
        }
        let mut kept: String = self.head(line, width - self.width("…")).to_owned();
        kept.push('…');
        kept
    }

    /// The longest end of `line` that is at most `width` pixels wide: what a field shows while the caret is at its end.
    pub(super) fn tail<'a>(&self, line: &'a str, width: f32) -> &'a str {
        let mut used = 0.0;
        for (at, char) in line.char_indices().rev() {
            used += self.advance(char);
            if used > width {
                return &line[at + char.len_utf8()..];
            }
        }
        line
    }

    /// `text` in lines of at most `width` pixels, broken at spaces where possible; at most `max_lines` lines.
    pub(super) fn wrap(&self, text: &str, width: f32, max_lines: usize) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        let mut start = 0;
        for paragraph in text.split('\n') {
            let mut rest = paragraph.trim_end_matches('\r');
            let mut at = start;
            start += paragraph.len() + 1;
            loop {
                if lines.len() == max_lines {
                    return lines;
                }
                let fitting = self.head(rest, width);
                if fitting.len() == rest.len() {
                    lines.push(at..at + rest.len());
                    break;
                }
                // At least one character goes into each line, so that a narrow box ends the loop too.
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let end = fitting
                    .rfind(' ')
                    .map_or(fitting.len(), |space| space + 1)
                    .max(first);
                lines.push(at..at + rest[..end].trim_end().len());
                at += end;
                rest = &rest[end..];
                if rest.is_empty() {
                    break;
                }
            }
        }
        lines
    }

    /// Calls `pixel` with x, y and coverage (0 to 1) for every pixel that `line` touches when it starts at `x` on
    /// `baseline`.
    pub(super) fn draw(
        &self,
        line: &str,
        mut x: f32,
        baseline: f32,
        pixel: &mut dyn FnMut(i32, i32, f32),
    ) {
        let scaled = self.font.as_scaled(self.scale);
        for id in line.chars().filter_map(|char| self.glyph_id(char)) {
            let glyph = Glyph {
                id,
                scale: self.scale,
                position: point(x, baseline),
            };
            x += scaled.h_advance(id);
            let Some(outline) = self.font.outline_glyph(glyph) else {
                continue;
            };
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x.floor() as i32, bounds.min.y.floor() as i32);
            outline.draw(|column, row, coverage| {
                pixel(
                    left + column as i32,
                    top + row as i32,
                    coverage.clamp(0.0, 1.0),
                );
            });
        }
    }

    /// The longest start of `line` that is at most `width` pixels wide.
    pub(super) fn head<'a>(&self, line: &'a str, width: f32) -> &'a str {
        let mut used = 0.0;
        for (at, char) in line.char_indices() {
            used += self.advance(char);
            if used > width {
                return &line[..at];
            }
        }
        line
    }

    fn advance(&self, char: char) -> f32 {
        self.glyph_id(char)
            .map_or(0.0, |id| self.font.as_scaled(self.scale).h_advance(id))
    }

    fn glyph_id(&self, char: char) -> Option<GlyphId> {
        match char {
            '\t' | '\n' | '\r' => Some(self.font.glyph_id(' ')),
            char if char.is_control() => None,
            char => Some(self.font.glyph_id(char)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Typeface, Weight};

    #[test]
    fn both_faces_are_readable() {
        for weight in [Weight::Regular, Weight::Bold] {
            let face = Typeface::new(weight, 13.0);
            assert!(face.width("Hello") > 20.0);
            let mut touched = 0;
            face.draw("Hello Ж λ é", 0.0, 20.0, &mut |_, _, coverage| {
                touched += usize::from(coverage > 0.5)
            });
            assert!(touched > 50);
        }
    }

    #[test]
    fn wrapping_keeps_every_word_and_ends_in_a_narrow_box() {
        let face = Typeface::new(Weight::Regular, 13.0);
        let text = "The market closes at six.\n\nGo before the meeting.";
        let lines = face.wrap(text, 80.0, 100).into_iter();
        let lines: Vec<_> = lines.map(|line| &text[line]).collect();
        assert!(lines.iter().all(|line| face.width(line) <= 80.0));
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&lines.join(" ")), words(text));
        assert_eq!(face.wrap("漢字😀", 1.0, 100).len(), 3);
        assert_eq!(face.wrap("a b c d", 1.0, 2).len(), 2);
    }

    #[test]
    fn a_long_line_is_cut_at_the_named_end() {
        let face = Typeface::new(Weight::Regular, 13.0);
        let line = "a long line with an end";
        assert_eq!(face.elide(line, 1000.0), line);
        assert!(
            face.elide(line, 60.0).ends_with('…') && face.width(&face.elide(line, 60.0)) <= 60.0
        );
        assert!(line.ends_with(face.tail(line, 60.0)) && face.width(face.tail(line, 60.0)) <= 60.0);
    }
}
