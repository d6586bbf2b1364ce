//! The last words of an executor.
//!
//! Keeps a bounded tail of what the child wrote to stderr and throws the rest away, so that the pipe never fills and memory never
//! grows. The text may hold anything a person typed or saw: it is reachable only by asking for it, never by formatting an error.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Characters kept (spec: 4096), held as bytes of at most four per character.
const KEPT_CHARS: usize = 4096;
const KEPT_BYTES: usize = KEPT_CHARS * 4;

/// A shared, bounded tail of a byte stream.
#[derive(Clone, Default)]
pub(crate) struct StderrTail {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl StderrTail {
    /// Appends `chunk` and forgets what is older than the bound.
    pub(crate) fn push(&self, chunk: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = &chunk[chunk.len().saturating_sub(KEPT_BYTES)..];
        let excess = (bytes.len() + chunk.len()).saturating_sub(KEPT_BYTES);
        bytes.drain(..excess);
        bytes.extend_from_slice(chunk);
    }

    /// The last `max` characters as an excerpt of its own.
    pub(crate) fn excerpt(&self, max: usize) -> StderrExcerpt {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        let skipped = text.chars().count().saturating_sub(max.min(KEPT_CHARS));
        StderrExcerpt(text.chars().skip(skipped).collect())
    }
}

impl fmt::Debug for StderrTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StderrTail(<redacted>)")
    }
}

/// The end of an executor's stderr. It has no `Display` and redacts its `Debug`: whoever shows it decides so by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StderrExcerpt(String);

impl StderrExcerpt {
    /// The text, with bytes that were not UTF-8 replaced.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StderrExcerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StderrExcerpt(<redacted>)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field report H9: an endless line neither grows memory nor loses its end.
    #[test]
    fn keeps_the_end_and_nothing_more() {
        let tail = StderrTail::default();
        for _ in 0..1000 {
            tail.push(&[b'x'; 65_536]);
        }
        tail.push("é漢😀".as_bytes());
        assert!(tail.bytes.lock().unwrap().len() <= KEPT_BYTES);
        assert_eq!(tail.excerpt(4).as_str(), "xé漢😀");
        assert_eq!(
            tail.excerpt(usize::MAX).as_str().chars().count(),
            KEPT_CHARS
        );
    }

    #[test]
    fn a_cut_character_is_replaced_and_never_printed_by_debug() {
        let tail = StderrTail::default();
        tail.push(&"😀".as_bytes()[1..]);
        assert!(tail.excerpt(400).as_str().starts_with('\u{fffd}'));
        assert_eq!(
            format!("{:?} {tail:?}", tail.excerpt(400)),
            "StderrExcerpt(<redacted>) StderrTail(<redacted>)"
        );
    }
}
