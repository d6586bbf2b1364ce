//! Editing a text: a selection, and what the keys of an editor do to both.
//!
//! Everything moves by what a person takes for one character, a grapheme cluster, so that no step and no deletion ever
//! leaves half of a flag or a lone accent behind (field report E1).

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

/// Where the caret stands and where the selection began. Both are byte offsets; one that lies beyond the text or inside a
/// character means the next smaller place that does not, so that a text can be replaced without a word to its selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    anchor: usize,
    caret: usize,
}

/// Where a caret can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// One character back.
    Left,
    /// One character on.
    Right,
    /// To the start of this or the previous word.
    WordLeft,
    /// To the end of this or the next word.
    WordRight,
    /// To the start of the line.
    LineStart,
    /// To the end of the line.
    LineEnd,
    /// To the start of the text.
    Start,
    /// To the end of the text.
    End,
    /// To the line above, or to the start.
    Up,
    /// To the line below, or to the end.
    Down,
}

impl Selection {
    /// A caret behind the last character, wherever that is.
    pub(crate) const AT_END: Self = Self {
        anchor: usize::MAX,
        caret: usize::MAX,
    };

    /// The text from `anchor` to `caret`.
    pub(crate) const fn new(anchor: usize, caret: usize) -> Self {
        Self { anchor, caret }
    }

    /// Everything, with the caret at the end.
    pub(crate) const fn all() -> Self {
        Self::new(0, usize::MAX)
    }

    /// A caret and nothing selected.
    pub(crate) const fn caret_at(at: usize) -> Self {
        Self::new(at, at)
    }

    /// Where the caret stands in `text`.
    pub(crate) fn caret(self, text: &str) -> usize {
        floor(text, self.caret)
    }

    /// Where the selection began in `text`.
    pub(crate) fn anchor(self, text: &str) -> usize {
        floor(text, self.anchor)
    }

    /// The part of `text` that is selected, empty where the caret stands when nothing is.
    pub(crate) fn range(self, text: &str) -> Range<usize> {
        let (anchor, caret) = (self.anchor(text), self.caret(text));
        anchor.min(caret)..anchor.max(caret)
    }

    /// Sends the caret somewhere; the selection grows or shrinks with it when `extend`, else it ends.
    pub(crate) fn go(&mut self, text: &str, motion: Motion, extend: bool) {
        let range = self.range(text);
        let target = match motion {
            // Without shift, an arrow only leaves the selection, at the side that it points to.
            Motion::Left if !extend && !range.is_empty() => range.start,
            Motion::Right if !extend && !range.is_empty() => range.end,
            Motion::Left
            | Motion::Right
            | Motion::WordLeft
            | Motion::WordRight
            | Motion::LineStart
            | Motion::LineEnd
            | Motion::Start
            | Motion::End
            | Motion::Up
            | Motion::Down => target(text, self.caret(text), motion),
        };
        let anchor = if extend { self.anchor(text) } else { target };
        *self = Self::new(anchor, target);
    }
}

/// Puts `what` in the place of the selection, as much of it as keeps the text within `room` characters.
pub(crate) fn insert(
    text: &mut String,
    selection: &mut Selection,
    what: &str,
    room: Option<usize>,
) {
    let range = selection.range(text);
    let kept = text.chars().count() - text[range.clone()].chars().count();
    let taken: String = match room {
        Some(room) => what.chars().take(room.saturating_sub(kept)).collect(),
        None => what.to_owned(),
    };
    text.replace_range(range.clone(), &taken);
    *selection = Selection::caret_at(range.start + taken.len());
}

/// Deletes the selection, or what lies between the caret and where `motion` leads. `false` when that is nothing.
pub(crate) fn delete(text: &mut String, selection: &mut Selection, motion: Motion) -> bool {
    let mut range = selection.range(text);
    if range.is_empty() {
        let caret = range.start;
        let other = target(text, caret, motion);
        range = caret.min(other)..caret.max(other);
    }
    text.replace_range(range.clone(), "");
    *selection = Selection::caret_at(range.start);
    !range.is_empty()
}

/// The word around a place, or the gap between two.
pub(crate) fn word_at(text: &str, at: usize) -> Range<usize> {
    let at = floor(text, at);
    let word = text
        .split_word_bound_indices()
        .map(|(start, word)| start..start + word.len())
        .find(|word| word.contains(&at));
    word.or_else(|| {
        let last = text.split_word_bound_indices().next_back();
        last.map(|(start, word)| start..start + word.len())
    })
    .unwrap_or(0..0)
}

/// The line around a place, without the character that ends it.
pub(crate) fn line_at(text: &str, at: usize) -> Range<usize> {
    let at = floor(text, at);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    start..end
}

fn target(text: &str, caret: usize, motion: Motion) -> usize {
    match motion {
        Motion::Left => text[..caret]
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(start, _)| start),
        Motion::Right => text[caret..]
            .graphemes(true)
            .next()
            .map_or(caret, |cluster| caret + cluster.len()),
        Motion::WordLeft => text[..caret]
            .unicode_word_indices()
            .next_back()
            .map_or(0, |(start, _)| start),
        Motion::WordRight => text[caret..]
            .unicode_word_indices()
            .next()
            .map_or(text.len(), |(start, word)| caret + start + word.len()),
        Motion::LineStart => line_at(text, caret).start,
        Motion::LineEnd => line_at(text, caret).end,
        Motion::Start => 0,
        Motion::End => text.len(),
        Motion::Up => {
            let line = line_at(text, caret);
            match line.start {
                0 => 0,
                start => in_line(text, line_at(text, start - 1), column(text, &line, caret)),
            }
        }
        Motion::Down => {
            let line = line_at(text, caret);
            if line.end == text.len() {
                line.end
            } else {
                in_line(
                    text,
                    line_at(text, line.end + 1),
                    column(text, &line, caret),
                )
            }
        }
    }
}

fn column(text: &str, line: &Range<usize>, caret: usize) -> usize {
    text[line.start..caret].graphemes(true).count()
}

fn in_line(text: &str, line: Range<usize>, column: usize) -> usize {
    text[line.clone()]
        .grapheme_indices(true)
        .nth(column)
        .map_or(line.end, |(start, _)| line.start + start)
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text with `[` and `]` around the selection, or `|` for a bare caret.
    fn check(before: &str, act: impl Fn(&mut String, &mut Selection), after: &str) {
        let at = |mark: char| before.find(mark);
        let mut text = before.replace(['[', ']', '|'], "");
        let mut selection = match (at('['), at(']'), at('|')) {
            (Some(start), Some(end), None) => Selection::new(start, end - 1),
            (None, None, Some(caret)) => Selection::caret_at(caret),
            other => panic!("{before} has the marks {other:?}"),
        };
        act(&mut text, &mut selection);
        let range = selection.range(&text);
        let shown = if range.is_empty() {
            format!("{}|{}", &text[..range.start], &text[range.end..])
        } else {
            format!(
                "{}[{}]{}",
                &text[..range.start],
                &text[range.clone()],
                &text[range.end..]
            )
        };
        assert_eq!(shown, after, "from {before}");
    }

    #[test]
    fn a_caret_moves_by_what_a_person_takes_for_a_character() {
        use Motion::{Down, End, Left, LineEnd, LineStart, Right, Start, Up, WordLeft, WordRight};
        let rows = [
            ("ab|", Left, "a|b"),
            ("👨‍👩‍👧|", Left, "|👨‍👩‍👧"),
            ("|e\u{301}a", Right, "e\u{301}|a"),
            ("|🇿🇦🇩🇪", Right, "🇿🇦|🇩🇪"),
            ("a[bc]d", Left, "a|bcd"),
            ("a[bc]d", Right, "abc|d"),
            ("one two|", WordLeft, "one |two"),
            ("|one two", WordRight, "one| two"),
            ("ab\nc|d", LineStart, "ab\n|cd"),
            ("a|b\ncd", LineEnd, "ab|\ncd"),
            ("ab\nc|d", Start, "|ab\ncd"),
            ("a|b\ncd", End, "ab\ncd|"),
            ("abc\nde|\nf", Up, "ab|c\nde\nf"),
            ("abc|\nde\nf", Down, "abc\nde|\nf"),
            ("a|b", Up, "|ab"),
            ("a|b", Down, "ab|"),
            ("|", Left, "|"),
        ];
        for (before, motion, after) in rows {
            check(
                before,
                |text, selection| selection.go(text, motion, false),
                after,
            );
        }
        let extend = |text: &mut String, selection: &mut Selection| {
            selection.go(text, Left, true);
            selection.go(text, Left, true);
        };
        check("abc|", extend, "a[bc]");
    }

    #[test]
    fn text_goes_in_and_out_at_the_selection() {
        check(
            "a[bc]d",
            |text, selection| insert(text, selection, "X漢", None),
            "aX漢|d",
        );
        check(
            "abc|",
            |text, selection| insert(text, selection, "defg", Some(5)),
            "abcde|",
        );
        check(
            "[abc]",
            |text, selection| insert(text, selection, "defg", Some(2)),
            "de|",
        );
        let backspace = |text: &mut String, selection: &mut Selection| {
            delete(text, selection, Motion::Left);
        };
        check("a[bc]d", backspace, "a|d");
        check("a👨‍👩‍👧|", backspace, "a|");
        check("|a", backspace, "|a");
        let forward = |text: &mut String, selection: &mut Selection| {
            delete(text, selection, Motion::Right);
        };
        check("a|bc", forward, "a|c");
        let word = |text: &mut String, selection: &mut Selection| {
            delete(text, selection, Motion::WordLeft);
        };
        check("one two|", word, "one |");
    }

    #[test]
    fn words_and_lines_are_found_around_a_place() {
        assert_eq!(word_at("one two", 5), 4..7);
        assert_eq!(word_at("one two", 3), 3..4);
        assert_eq!(word_at("one two", 7), 4..7);
        assert_eq!(word_at("", 3), 0..0);
        assert_eq!(line_at("ab\ncd\n", 4), 3..5);
        assert_eq!(line_at("ab\ncd\n", 99), 6..6);
    }

    proptest! {
        /// No text, place or motion leads into the middle of a character.
        #[test]
        fn every_place_is_between_two_characters(
            text in ".{0,30}", anchor in 0_usize..80, caret in 0_usize..80, extend in any::<bool>(),
        ) {
            use Motion::{Down, End, Left, LineEnd, LineStart, Right, Start, Up, WordLeft, WordRight};
            for motion in [Left, Right, WordLeft, WordRight, LineStart, LineEnd, Start, End, Up, Down] {
                let mut selection = Selection::new(anchor, caret);
                selection.go(&text, motion, extend);
                prop_assert!(text.get(selection.range(&text)).is_some());
                let mut edited = text.clone();
                let mut selection = Selection::new(anchor, caret);
                delete(&mut edited, &mut selection, motion);
                insert(&mut edited, &mut selection, "é漢", Some(20));
                prop_assert!(edited.get(selection.range(&edited)).is_some());
                prop_assert!(edited.chars().count() <= text.chars().count().max(20));
            }
        }
    }
}
