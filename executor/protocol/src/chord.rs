//! Parsing a caller's key chord, such as `cmd+shift+a`, on the host (§6.10).
//!
//! The executor never parses chords. A chord that cannot be read is refused whole: no modifier is dropped, no key guessed.

use crate::{
    keys::{Key, Modifiers, NamedKey, Printable},
    sets::Modifier,
};

/// A key with the modifiers held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Chord {
    /// The key pressed.
    pub key: Key,
    /// What is held meanwhile, in first-seen order.
    pub modifiers: Modifiers,
}

/// Why a chord cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ChordError {
    /// Nothing between two `+`, before the first or after the last.
    #[error("a part of the chord is empty")]
    EmptyPart,
    /// A part before the last is no modifier.
    #[error("a part before the last is not a modifier")]
    UnknownModifier,
    /// The last part is no key.
    #[error("the last part is not a key")]
    UnknownKey,
    /// `delete` and `del` name two different destructive keys.
    #[error("`delete` is ambiguous; use `Backspace` or `ForwardDelete`")]
    AmbiguousDelete,
}

/// Reads a chord.
///
/// # Errors
/// A [`ChordError`] for everything that is not exactly `modifier+…+key`.
pub fn parse_chord(text: &str) -> Result<Chord, ChordError> {
    // The key `+` cannot be found by splitting: it is the text itself, or follows a separating `+`.
    let (modifiers, key) = match text.strip_suffix('+') {
        Some("") => (None, "+"),
        Some(rest) => (
            Some(rest.strip_suffix('+').ok_or(ChordError::EmptyPart)?),
            "+",
        ),
        None => match text.rsplit_once('+') {
            Some((modifiers, key)) => (Some(modifiers), key),
            None => (None, text),
        },
    };
    let modifiers = modifiers
        .into_iter()
        .flat_map(|modifiers| modifiers.split('+'))
        .map(parse_modifier);
    Ok(Chord {
        modifiers: modifiers.collect::<Result<_, _>>()?,
        key: parse_key(key)?,
    })
}

fn parse_modifier(part: &str) -> Result<Modifier, ChordError> {
    match part.to_ascii_lowercase().as_str() {
        "" => Err(ChordError::EmptyPart),
        "cmd" | "command" | "meta" | "super" => Ok(Modifier::Command),
        "ctrl" | "control" => Ok(Modifier::Control),
        "alt" | "opt" | "option" => Ok(Modifier::Option),
        "shift" => Ok(Modifier::Shift),
        "fn" | "function" => Ok(Modifier::Fn),
        _ => Err(ChordError::UnknownModifier),
    }
}

fn parse_key(part: &str) -> Result<Key, ChordError> {
    let mut characters = part.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Printable::new(only)
            .map(Key::Printable)
            .ok_or(ChordError::UnknownKey);
    }
    let named = match part.to_ascii_lowercase().as_str() {
        "" => return Err(ChordError::EmptyPart),
        "delete" | "del" => return Err(ChordError::AmbiguousDelete),
        "enter" => NamedKey::Return,
        "esc" => NamedKey::Escape,
        "spc" => NamedKey::Space,
        "pgup" => NamedKey::PageUp,
        "pgdn" | "pgdown" => NamedKey::PageDown,
        "arrowup" => NamedKey::Up,
        "arrowdown" => NamedKey::Down,
        "arrowleft" => NamedKey::Left,
        "arrowright" => NamedKey::Right,
        _ => {
            let named = NamedKey::ALL
                .iter()
                .find(|named| named.as_str().eq_ignore_ascii_case(part));
            *named.ok_or(ChordError::UnknownKey)?
        }
    };
    Ok(Key::Named(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, key: &str, modifiers: &[Modifier]) {
        let chord = parse_chord(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = Chord {
            key: Key::parse(key).unwrap(),
            modifiers: modifiers.iter().copied().collect(),
        };
        assert_eq!(chord, expected, "{text}");
    }

    /// §12.2 row 17.
    #[test]
    fn chords_that_parse() {
        check("cmd+a", "a", &[Modifier::Command]);
        check("shift+Tab", "Tab", &[Modifier::Shift]);
        check("Return", "Return", &[]);
        check("a", "a", &[]);
        check("cmd++", "+", &[Modifier::Command]);
        check("+", "+", &[]);
        check("CTRL+esc", "Escape", &[Modifier::Control]);
        check("opt+pgdn", "PageDown", &[Modifier::Option]);
        check("meta+arrowup", "Up", &[Modifier::Command]);
        check("enter", "Return", &[]);
        check("A", "A", &[]);
        check("space", "Space", &[]);
        check("forwarddelete", "ForwardDelete", &[]);
        check(
            "cmd+command+shift+a",
            "a",
            &[Modifier::Command, Modifier::Shift],
        );
        check("fn+f12", "F12", &[Modifier::Fn]);
    }

    /// §6.10 and §12.2 row 17.
    #[test]
    fn chords_that_do_not_parse() {
        let rows = [
            ("", ChordError::EmptyPart),
            (" ", ChordError::UnknownKey),
            ("cmd+", ChordError::EmptyPart),
            ("+a", ChordError::EmptyPart),
            ("++", ChordError::EmptyPart),
            ("+++", ChordError::EmptyPart),
            ("cmd+++", ChordError::EmptyPart),
            ("cmd++a", ChordError::EmptyPart),
            ("a+b", ChordError::UnknownModifier),
            ("hyper+a", ChordError::UnknownModifier),
            ("Enter+", ChordError::EmptyPart),
            ("delete", ChordError::AmbiguousDelete),
            ("cmd+DEL", ChordError::AmbiguousDelete),
            ("Delete", ChordError::AmbiguousDelete),
            ("constructor", ChordError::UnknownKey),
            ("__proto__", ChordError::UnknownKey),
            ("cmd", ChordError::UnknownKey),
            (" a", ChordError::UnknownKey),
            ("é", ChordError::UnknownKey),
        ];
        for (text, error) in rows {
            assert_eq!(parse_chord(text), Err(error), "{text:?}");
        }
    }
}
