//! Text that belongs to an application or a person: carried, never logged.

use std::fmt;

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::json::{Json, Reason, Violation};

/// Text of the observed application, or typed by a caller. `Debug` hides it and there is no `Display`, so that it
/// cannot slip into a log or an error; [`AppText::as_str`] is the one way out.
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AppText(String);

impl AppText {
    /// Wraps the text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The owned text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for AppText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<redacted>")
    }
}

impl From<String> for AppText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for AppText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Json for AppText {
    fn read(value: &Value) -> Result<Self, Violation> {
        String::read(value).map(Self)
    }

    fn write(&self) -> Value {
        Value::String(self.0.clone())
    }
}

/// Application text that the protocol requires to have content.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SomeText(AppText);

impl SomeText {
    /// Wraps the text; `None` when it is empty.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = AppText::new(text);
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// As application text.
    #[must_use]
    pub const fn as_app_text(&self) -> &AppText {
        &self.0
    }
}

impl Json for SomeText {
    fn read(value: &Value) -> Result<Self, Violation> {
        Self::new(String::read(value)?).ok_or(Violation::here(Reason::Empty))
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

/// The first `max` grapheme clusters of `text`, and whether anything was cut (§2.2 `maxTextChars`).
///
/// A cluster is never split, so a flag, a family emoji or a letter with combining marks stays whole or goes whole.
#[must_use]
pub fn truncate_graphemes(text: &str, max: usize) -> (String, bool) {
    // A cluster has at least one byte: short text needs no segmentation.
    if text.len() <= max {
        return (text.to_owned(), false);
    }
    match text.grapheme_indices(true).nth(max) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_clusters() {
        let rows = [
            ("", 0, "", false),
            ("abc", 3, "abc", false),
            ("abcd", 3, "abc", true),
            ("e\u{301}e\u{301}", 1, "e\u{301}", true),
            ("👨‍👩‍👧‍👦x", 1, "👨‍👩‍👧‍👦", true),
            ("👨‍👩‍👧‍👦", 1, "👨‍👩‍👧‍👦", false),
            ("a", 0, "", true),
        ];
        for (text, max, expected, cut) in rows {
            assert_eq!(
                truncate_graphemes(text, max),
                (expected.to_owned(), cut),
                "{text:?} to {max}"
            );
        }
    }

    #[test]
    fn debug_hides_the_text() {
        let shown = format!("{:?} {:?}", AppText::new("canary"), SomeText::new("canary"));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
