//! Text of an application, made harmless for a terminal.
//!
//! What an application shows is not ours to trust: it can hold escape sequences that move the cursor or set the clipboard,
//! line breaks that forge lines of ours, characters that turn the reading direction of what follows, and letters under a
//! heap of marks. Such characters are shown as escapes, a line stays a line, and its columns are counted as a terminal
//! counts them.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Characters of one grapheme cluster that are shown. The longest emoji in use have some twelve; a heap of combining marks
/// would be drawn over the lines around it.
const CLUSTER: usize = 16;

/// The first strong isolate and its end: text that runs from right to left cannot turn what stands around it.
const ISOLATE: char = '\u{2068}';
const END_OF_ISOLATE: char = '\u{2069}';

/// The text in quotes, on one line, in at most `columns` columns between them.
#[must_use]
pub fn quoted(text: &str, columns: usize) -> String {
    format!("\"{}\"", harmless(text, columns, true))
}

/// The text on one line, in at most `columns` columns.
#[must_use]
pub fn bare(text: &str, columns: usize) -> String {
    harmless(text, columns, false)
}

/// How many columns a line takes.
#[must_use]
pub fn width(line: &str) -> usize {
    line.width()
}

fn harmless(text: &str, columns: usize, in_quotes: bool) -> String {
    let mut line = String::new();
    let mut used = 0;
    let mut clusters = text.graphemes(true).peekable();
    while let Some(cluster) = clusters.next() {
        let shown = show(cluster, in_quotes);
        let width = shown.width();
        // Room for the mark of a cut, unless this is the end.
        let room = columns.saturating_sub(used);
        if width > room || (width == room && clusters.peek().is_some()) {
            line.push('…');
            break;
        }
        line.push_str(&shown);
        used += width;
    }
    if line.chars().any(runs_right_to_left) {
        return format!("{ISOLATE}{line}{END_OF_ISOLATE}");
    }
    line
}

fn show(cluster: &str, in_quotes: bool) -> String {
    let mut shown = String::new();
    for char in cluster.chars().take(CLUSTER) {
        match char {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '"' | '\\' if in_quotes => shown.extend(['\\', char]),
            char if is_harmful(char) => shown.extend(char.escape_unicode()),
            char => shown.push(char),
        }
    }
    shown
}

/// Controls of the terminal, of the reading direction and of the line, and what cannot be seen at all. The joiners stay:
/// scripts and emoji need them.
fn is_harmful(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}'
                | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

fn runs_right_to_left(char: char) -> bool {
    matches!(
        char,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_do_harm_is_shown_as_an_escape() {
        let rows = [
            ("plain", "\"plain\""),
            ("", "\"\""),
            ("a\nb\r\tc", "\"a\\nb\\r\\tc\""),
            ("say \"no\" \\", "\"say \\\"no\\\" \\\\\""),
            ("\u{1b}]52;c;AAAA\u{7}", "\"\\u{1b}]52;c;AAAA\\u{7}\""),
            ("\u{9b}31m", "\"\\u{9b}31m\""),
            ("exe.\u{202e}gpj", "\"exe.\\u{202e}gpj\""),
            ("a\u{200b}b\u{feff}", "\"a\\u{200b}b\\u{feff}\""),
            ("漢字 👨‍👩‍👧‍👦 é", "\"漢字 👨‍👩‍👧‍👦 é\""),
            ("שלום", "\"\u{2068}שלום\u{2069}\""),
            ("\u{e0041}", "\"\\u{e0041}\""),
        ];
        for (text, expected) in rows {
            assert_eq!(quoted(text, 80), expected);
        }
    }

    #[test]
    fn a_line_is_cut_at_columns_and_says_so() {
        let rows = [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("漢字漢字", 8, "漢字漢字"),
            ("漢字漢字", 7, "漢字漢…"),
            ("漢字漢字", 6, "漢字…"),
            ("👨‍👩‍👧‍👦x", 2, "…"),
            ("a\u{1b}b", 4, "a…"),
        ];
        for (text, columns, expected) in rows {
            assert_eq!(bare(text, columns), expected, "{text:?} in {columns}");
        }
    }

    proptest! {
        #[test]
        fn a_line_is_one_line_within_its_columns(text in any::<String>(), columns in 1_usize..60) {
            let line = bare(&text, columns);
            prop_assert!(width(&line) <= columns.max(1), "{line:?}");
            let inner = line.trim_start_matches(ISOLATE).trim_end_matches(END_OF_ISOLATE);
            prop_assert!(!inner.chars().any(is_harmful), "{line:?}");
        }

        /// A heap of marks stays a small heap.
        #[test]
        fn a_cluster_is_bounded(marks in 0_usize..2_000) {
            let text = format!("a{}", "\u{301}".repeat(marks));
            prop_assert!(bare(&text, 80).chars().count() <= CLUSTER);
        }
    }
}
