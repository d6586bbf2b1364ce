//! The 120 keys of the wire and the characters they carry (§6.10).
//!
//! A fixed table, not the live keyboard layout: the same request means the same key on every machine.

use std::fmt;

use serde_json::Value;

use crate::{
    json::{Json, Reason, Violation, closed_set},
    sets::Modifier,
};

closed_set! {
    /// The keys that have a name. `Enter` and `Delete` do not exist: each names two different keys.
    pub enum NamedKey {
        /// Return.
        Return = "Return",
        /// Tabulator.
        Tab = "Tab",
        /// Space bar.
        Space = "Space",
        /// Escape.
        Escape = "Escape",
        /// Deletes to the left.
        Backspace = "Backspace",
        /// Deletes to the right.
        ForwardDelete = "ForwardDelete",
        /// Arrow up.
        Up = "Up",
        /// Arrow down.
        Down = "Down",
        /// Arrow left.
        Left = "Left",
        /// Arrow right.
        Right = "Right",
        /// Home.
        Home = "Home",
        /// End.
        End = "End",
        /// Page up.
        PageUp = "PageUp",
        /// Page down.
        PageDown = "PageDown",
        /// Function key 1.
        F1 = "F1",
        /// Function key 2.
        F2 = "F2",
        /// Function key 3.
        F3 = "F3",
        /// Function key 4.
        F4 = "F4",
        /// Function key 5.
        F5 = "F5",
        /// Function key 6.
        F6 = "F6",
        /// Function key 7.
        F7 = "F7",
        /// Function key 8.
        F8 = "F8",
        /// Function key 9.
        F9 = "F9",
        /// Function key 10.
        F10 = "F10",
        /// Function key 11.
        F11 = "F11",
        /// Function key 12.
        F12 = "F12",
    }
}

impl NamedKey {
    /// The character a key event carries.
    #[must_use]
    pub const fn character(self) -> char {
        match self {
            Self::Return => '\u{D}',
            Self::Tab => '\u{9}',
            Self::Space => '\u{20}',
            Self::Escape => '\u{1B}',
            Self::Backspace => '\u{8}',
            Self::ForwardDelete => '\u{F728}',
            Self::Up => '\u{F700}',
            Self::Down => '\u{F701}',
            Self::Left => '\u{F702}',
            Self::Right => '\u{F703}',
            Self::Home => '\u{F729}',
            Self::End => '\u{F72B}',
            Self::PageUp => '\u{F72C}',
            Self::PageDown => '\u{F72D}',
            Self::F1 => '\u{F704}',
            Self::F2 => '\u{F705}',
            Self::F3 => '\u{F706}',
            Self::F4 => '\u{F707}',
            Self::F5 => '\u{F708}',
            Self::F6 => '\u{F709}',
            Self::F7 => '\u{F70A}',
            Self::F8 => '\u{F70B}',
            Self::F9 => '\u{F70C}',
            Self::F10 => '\u{F70D}',
            Self::F11 => '\u{F70E}',
            Self::F12 => '\u{F70F}',
        }
    }
}

/// A printable ASCII character other than space, U+0021 to U+007E.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Printable(u8);

impl Printable {
    /// The key of this character, if it is one.
    #[must_use]
    pub fn new(character: char) -> Option<Self> {
        let byte = u8::try_from(character).ok()?;
        byte.is_ascii_graphic().then_some(Self(byte))
    }

    /// The character.
    #[must_use]
    pub const fn character(self) -> char {
        self.0 as char
    }

    /// The character with shift held, as on a US keyboard.
    #[must_use]
    pub const fn shifted(self) -> char {
        let shifted = match self.0 {
            b'1' => b'!',
            b'2' => b'@',
            b'3' => b'#',
            b'4' => b'$',
            b'5' => b'%',
            b'6' => b'^',
            b'7' => b'&',
            b'8' => b'*',
            b'9' => b'(',
            b'0' => b')',
            b'-' => b'_',
            b'=' => b'+',
            b'[' => b'{',
            b']' => b'}',
            b'\\' => b'|',
            b';' => b':',
            b'\'' => b'"',
            b',' => b'<',
            b'.' => b'>',
            b'/' => b'?',
            b'`' => b'~',
            // Letters; what is a shifted form already stays what it is.
            other => other.to_ascii_uppercase(),
        };
        shifted as char
    }
}

/// One key of the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Key {
    /// A key with a name.
    Named(NamedKey),
    /// A printable character.
    Printable(Printable),
}

impl Key {
    /// All 120 keys: the 26 names, then the 94 characters.
    pub fn all() -> impl Iterator<Item = Self> {
        let printable = (b'!'..=b'~').map(|byte| Self::Printable(Printable(byte)));
        NamedKey::ALL
            .iter()
            .copied()
            .map(Self::Named)
            .chain(printable)
    }

    /// The key of exactly this wire word (case-sensitive); chords are not parsed here.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let mut characters = word.chars();
        match (characters.next(), characters.next()) {
            (Some(only), None) => Printable::new(only).map(Self::Printable),
            _ => NamedKey::parse(word).map(Self::Named),
        }
    }

    /// The character the key event carries under these modifiers: none when `command` is among them, so that a menu
    /// equivalent can match (§3.7).
    #[must_use]
    pub fn carried(self, modifiers: &Modifiers) -> Option<char> {
        if modifiers.contains(Modifier::Command) {
            return None;
        }
        Some(match self {
            Self::Named(named) => named.character(),
            Self::Printable(printable) if modifiers.contains(Modifier::Shift) => {
                printable.shifted()
            }
            Self::Printable(printable) => printable.character(),
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(named) => named.fmt(formatter),
            Self::Printable(printable) => printable.character().fmt(formatter),
        }
    }
}

impl Json for Key {
    fn read(value: &Value) -> Result<Self, Violation> {
        value
            .as_str()
            .and_then(Self::parse)
            .ok_or(Violation::here(Reason::OutOfSet))
    }

    fn write(&self) -> Value {
        Value::String(self.to_string())
    }
}

/// Modifiers in first-seen order, each at most once.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Modifiers(Vec<Modifier>);

impl Modifiers {
    /// No modifier.
    pub const NONE: Self = Self(Vec::new());

    /// Adds a modifier unless it is there.
    pub fn insert(&mut self, modifier: Modifier) {
        if !self.contains(modifier) {
            self.0.push(modifier);
        }
    }

    /// Whether the modifier is held.
    #[must_use]
    pub fn contains(&self, modifier: Modifier) -> bool {
        self.0.contains(&modifier)
    }

    /// The modifiers in order.
    pub fn iter(&self) -> impl Iterator<Item = Modifier> {
        self.0.iter().copied()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Modifier> for Modifiers {
    fn from_iter<I: IntoIterator<Item = Modifier>>(modifiers: I) -> Self {
        let mut set = Self::NONE;
        modifiers
            .into_iter()
            .for_each(|modifier| set.insert(modifier));
        set
    }
}

impl Json for Modifiers {
    fn read(value: &Value) -> Result<Self, Violation> {
        Vec::<Modifier>::read(value).map(|modifiers| modifiers.into_iter().collect())
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn there_are_120_keys_and_each_reads_back() {
        let words: HashSet<String> = Key::all().map(|key| key.to_string()).collect();
        assert_eq!(words.len(), 120);
        for key in Key::all() {
            assert_eq!(Key::parse(&key.to_string()), Some(key));
        }
        for word in [
            "", " ", "cmd+a", "Enter", "Delete", "return", "é", "F13", "\u{7f}", "ab",
        ] {
            assert_eq!(Key::parse(word), None, "{word:?}");
        }
    }

    #[test]
    fn characters_follow_the_table() {
        let carried = |word: &str, modifiers: &[Modifier]| {
            Key::parse(word)
                .unwrap()
                .carried(&modifiers.iter().copied().collect())
        };
        assert_eq!(carried("Return", &[]), Some('\r'));
        assert_eq!(carried("End", &[Modifier::Shift]), Some('\u{F72B}'));
        assert_eq!(carried("a", &[Modifier::Shift]), Some('A'));
        assert_eq!(carried("1", &[Modifier::Shift]), Some('!'));
        assert_eq!(carried("A", &[]), Some('A'));
        assert_eq!(carried("a", &[Modifier::Command]), None);
        assert_eq!(carried("F12", &[Modifier::Fn]), Some('\u{F70F}'));
    }
}
