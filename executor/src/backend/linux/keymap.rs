//! Which keys make a text or a chord on the keyboard as it is mapped now. Pure, apart from reading the map.
//!
//! The map is never changed: a character that no key makes has no strokes, and then nothing at all is typed. What the layout
//! calls its levels is read from the core map: plain, shifted, with the third-level key, with both.

use std::collections::HashMap;

use maka_cu_protocol::keys::{Key, Modifiers, NamedKey};
use maka_cu_protocol::sets::Modifier;
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{ConnectionExt as _, KeyButMask};

use super::display::Screen;
use super::keysym::character;
use crate::backend::input::KeyCommand;

/// Symbols of the modifier keys (`keysymdef.h`).
const SHIFT: [u32; 2] = [0xffe1, 0xffe2];
const CONTROL: [u32; 2] = [0xffe3, 0xffe4];
const ALT: [u32; 2] = [0xffe9, 0xffea];
const SUPER: [u32; 2] = [0xffeb, 0xffec];
const THIRD_LEVEL: [u32; 1] = [0xfe03];
const NUM_LOCK: [u32; 1] = [0xff7f];
const SCROLL_LOCK: [u32; 1] = [0xff14];

/// In the map of the core protocol, the columns of a layout's levels; only the first two layouts have a place of their own.
const LEVELS: [[usize; 4]; 2] = [[0, 1, 4, 5], [2, 3, 6, 7]];

/// One key that goes down and up, with what is held meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stroke {
    pub(super) code: u8,
    /// Keys of the modifiers, in the order in which they go down.
    pub(super) held: Vec<u8>,
    /// The same as a state mask, with the number of the layout in its place.
    pub(super) state: u16,
}

/// The keyboard at one moment.
#[derive(Clone, Debug)]
pub(super) struct Keyboard {
    pub(super) first_code: u8,
    /// Symbols of each code.
    pub(super) per_code: usize,
    pub(super) symbols: Vec<u32>,
    /// The keys of each of the eight modifiers.
    pub(super) modifiers: Vec<Vec<u8>>,
    /// Modifiers, buttons and layout as the server would write them into an event now.
    pub(super) state: u16,
}

/// A modifier of this keyboard.
#[derive(Clone, Copy)]
struct Held {
    code: u8,
    mask: u16,
}

impl Keyboard {
    /// The strokes, or `None` when some part of it has no key.
    ///
    /// With `under_locks`, they are right while caps lock stands as it does; without, for events that say for themselves what
    /// is held.
    pub(super) fn strokes(&self, command: &KeyCommand, under_locks: bool) -> Option<Vec<Stroke>> {
        let capitals = under_locks && self.state & u16::from(KeyButMask::LOCK) != 0;
        match command {
            KeyCommand::Type(text) => self.text(text.as_str(), capitals),
            KeyCommand::Chord { key, modifiers } => {
                Some(vec![self.chord(*key, modifiers, capitals)?])
            }
        }
    }

    /// Whether a modifier is held that would change what is typed. Locks are not held.
    pub(super) fn is_held_down(&self) -> bool {
        let lock = |symbols: &[u32]| self.modifier(symbols).map_or(0, |held| held.mask);
        let locks = u16::from(KeyButMask::LOCK) | lock(&NUM_LOCK) | lock(&SCROLL_LOCK);
        self.state & 0xff & !locks != 0
    }

    fn text(&self, text: &str, capitals: bool) -> Option<Vec<Stroke>> {
        let mut strokes = Vec::with_capacity(text.len());
        // A long text has few different characters, and looking one up means a look at every key.
        let mut known: HashMap<char, Stroke> = HashMap::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            strokes.push(match character {
                // A line ends once, however it is written.
                '\r' | '\n' => {
                    if character == '\r' {
                        characters.next_if_eq(&'\n');
                    }
                    self.named(NamedKey::Return)?
                }
                '\t' => self.named(NamedKey::Tab)?,
                character => match known.get(&character) {
                    Some(stroke) => stroke.clone(),
                    None => {
                        let stroke = self.character(character, capitals)?;
                        known.insert(character, stroke.clone());
                        stroke
                    }
                },
            });
        }
        Some(strokes)
    }

    fn chord(&self, key: Key, modifiers: &Modifiers, capitals: bool) -> Option<Stroke> {
        let mut stroke = match key {
            Key::Named(key) => self.named(key)?,
            Key::Printable(key) => self.character(key.character(), capitals)?,
        };
        // What the caller names goes down first, then what the layout needs.
        let needed = std::mem::take(&mut stroke.held);
        for modifier in modifiers.iter() {
            let held = match modifier {
                Modifier::Command => self.modifier(&SUPER),
                Modifier::Shift => self.modifier(&SHIFT),
                Modifier::Option => self.modifier(&ALT),
                Modifier::Control => self.modifier(&CONTROL),
                // A key of the keyboard's own, of which the server hears nothing.
                Modifier::Fn => None,
            }?;
            stroke.held.push(held.code);
            stroke.state |= held.mask;
        }
        for code in needed {
            if !stroke.held.contains(&code) {
                stroke.held.push(code);
            }
        }
        Some(stroke)
    }

    fn named(&self, key: NamedKey) -> Option<Stroke> {
        let wanted = symbol(key);
        let [plain, ..] = self.levels()?;
        let code = self.find(*plain, |symbol| symbol == wanted)?;
        Some(Stroke {
            code,
            held: Vec::new(),
            state: self.layout_bits(),
        })
    }

    fn character(&self, wanted: char, capitals: bool) -> Option<Stroke> {
        let levels = self.levels()?;
        // The level with the fewest modifiers that has it.
        let (level, code) = levels.iter().enumerate().find_map(|(level, column)| {
            let code = self.find(*column, |symbol| character(symbol) == Some(wanted))?;
            Some((level, code))
        })?;
        let (mut shift, third) = (level % 2 == 1, level >= 2);
        if capitals && self.has_capitals(code, levels[level & 2], levels[level | 1]) {
            shift = !shift;
        }
        let mut stroke = Stroke {
            code,
            held: Vec::new(),
            state: self.layout_bits(),
        };
        for (wanted, symbols) in [(shift, &SHIFT[..]), (third, &THIRD_LEVEL[..])] {
            if wanted {
                let held = self.modifier(symbols)?;
                stroke.held.push(held.code);
                stroke.state |= held.mask;
            }
        }
        Some(stroke)
    }

    /// Whether the two columns hold a small letter and its capital, which is what caps lock swaps.
    fn has_capitals(&self, code: u8, small: usize, capital: usize) -> bool {
        let letter = |column| self.symbol(code, column).and_then(character);
        let (Some(small), Some(capital)) = (letter(small), letter(capital)) else {
            return false;
        };
        small != capital && small.to_uppercase().eq(std::iter::once(capital))
    }

    fn levels(&self) -> Option<&'static [usize; 4]> {
        LEVELS.get(usize::from(self.layout()))
    }

    /// The number of the layout that is in use.
    const fn layout(&self) -> u16 {
        self.state >> 13 & 3
    }

    const fn layout_bits(&self) -> u16 {
        self.layout() << 13
    }

    fn symbol(&self, code: u8, column: usize) -> Option<u32> {
        if column >= self.per_code {
            return None;
        }
        let row = usize::from(code.checked_sub(self.first_code)?);
        self.symbols.get(row * self.per_code + column).copied()
    }

    fn find(&self, column: usize, is_wanted: impl Fn(u32) -> bool) -> Option<u8> {
        (self.first_code..=u8::MAX).find(|code| self.symbol(*code, column).is_some_and(&is_wanted))
    }

    /// The first key that bears one of these symbols and acts as a modifier.
    fn modifier(&self, symbols: &[u32]) -> Option<Held> {
        self.modifiers
            .iter()
            .enumerate()
            .find_map(|(index, codes)| {
                let bears = |code: &&u8| {
                    (0..self.per_code)
                        .filter_map(|column| self.symbol(**code, column))
                        .any(|symbol| symbols.contains(&symbol))
                };
                let code = *codes.iter().find(bears)?;
                Some(Held {
                    code,
                    mask: 1 << index,
                })
            })
    }
}

/// The symbol of a key with a name.
const fn symbol(key: NamedKey) -> u32 {
    match key {
        NamedKey::Return => 0xff0d,
        NamedKey::Tab => 0xff09,
        NamedKey::Space => 0x20,
        NamedKey::Escape => 0xff1b,
        NamedKey::Backspace => 0xff08,
        NamedKey::ForwardDelete => 0xffff,
        NamedKey::Up => 0xff52,
        NamedKey::Down => 0xff54,
        NamedKey::Left => 0xff51,
        NamedKey::Right => 0xff53,
        NamedKey::Home => 0xff50,
        NamedKey::End => 0xff57,
        NamedKey::PageUp => 0xff55,
        NamedKey::PageDown => 0xff56,
        NamedKey::F1 => 0xffbe,
        NamedKey::F2 => 0xffbf,
        NamedKey::F3 => 0xffc0,
        NamedKey::F4 => 0xffc1,
        NamedKey::F5 => 0xffc2,
        NamedKey::F6 => 0xffc3,
        NamedKey::F7 => 0xffc4,
        NamedKey::F8 => 0xffc5,
        NamedKey::F9 => 0xffc6,
        NamedKey::F10 => 0xffc7,
        NamedKey::F11 => 0xffc8,
        NamedKey::F12 => 0xffc9,
    }
}

impl Screen {
    /// The keyboard as it is mapped and held now.
    pub(super) fn keyboard(&self) -> Result<Keyboard, ReplyError> {
        let setup = self.connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let count = (last - first).saturating_add(1);
        let map = self.connection.get_keyboard_mapping(first, count)?;
        let modifiers = self.connection.get_modifier_mapping()?;
        // The layout is part of the state only here: the request for it belongs to an extension of its own.
        let pointer = self.connection.query_pointer(self.root)?;
        let (map, modifiers, pointer) = (map.reply()?, modifiers.reply()?, pointer.reply()?);
        let per_modifier = usize::from(modifiers.keycodes_per_modifier()).max(1);
        Ok(Keyboard {
            first_code: first,
            per_code: usize::from(map.keysyms_per_keycode),
            symbols: map.keysyms,
            modifiers: modifiers
                .keycodes
                .chunks(per_modifier)
                .map(|codes| codes.iter().copied().filter(|code| *code != 0).collect())
                .collect(),
            state: pointer.mask.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::keys::Printable;
    use maka_cu_protocol::text::AppText;

    use super::*;

    const LAYOUT_2: u16 = 1 << 13;
    const LOCKED: u16 = 2;

    /// A small keyboard: letters with capitals, a digit, a third level, a second layout, and the modifiers.
    fn keyboard(state: u16) -> Keyboard {
        // Plain, shifted, the same of the second layout, third level of the first.
        let rows: [(u8, [u32; 6]); 12] = [
            (10, [0x31, 0x21, 0x31, 0x21, 0, 0]),
            (24, [0x71, 0x51, 0x6ca, 0x6ea, 0x40, 0x7d9]),
            (36, [0xff0d, 0, 0xff0d, 0, 0, 0]),
            (23, [0xff09, 0xfe20, 0xff09, 0xfe20, 0, 0]),
            (48, [0x1f8, 0x1d8, 0, 0, 0xfe51, 0]),
            (50, [0xffe1, 0, 0xffe1, 0, 0, 0]),
            (37, [0xffe3, 0, 0xffe3, 0, 0, 0]),
            (64, [0xffe9, 0xffe7, 0, 0, 0, 0]),
            (108, [0xfe03, 0, 0xfe03, 0, 0, 0]),
            (133, [0xffeb, 0, 0, 0, 0, 0]),
            (66, [0xffe5, 0, 0, 0, 0, 0]),
            (77, [0xff7f, 0, 0, 0, 0, 0]),
        ];
        let mut symbols = vec![0; 248 * 6];
        for (code, row) in rows {
            let start = usize::from(code - 8) * 6;
            symbols[start..start + 6].copy_from_slice(&row);
        }
        Keyboard {
            first_code: 8,
            per_code: 6,
            symbols,
            modifiers: [&[50][..], &[66], &[37], &[64], &[77], &[], &[133], &[108]]
                .map(<[u8]>::to_vec)
                .to_vec(),
            state,
        }
    }

    fn typed(keyboard: &Keyboard, text: &str) -> Option<Vec<(u8, u16)>> {
        let strokes = keyboard.strokes(&KeyCommand::Type(AppText::new(text)), true)?;
        Some(
            strokes
                .iter()
                .map(|stroke| (stroke.code, stroke.state))
                .collect(),
        )
    }

    /// Field reports E1, E2 and E5: every character or none, in order, a line break once.
    #[test]
    fn text_is_whole_or_nothing() {
        let rows = [
            ("", Some(vec![])),
            ("q1", Some(vec![(24, 0), (10, 0)])),
            ("Q!", Some(vec![(24, 1), (10, 1)])),
            ("@Ω", Some(vec![(24, 0x80), (24, 0x81)])),
            ("řŘ", Some(vec![(48, 0), (48, 1)])),
            (
                "1\r\n1\n1\r1",
                Some(vec![
                    (10, 0),
                    (36, 0),
                    (10, 0),
                    (36, 0),
                    (10, 0),
                    (36, 0),
                    (10, 0),
                ]),
            ),
            ("\t", Some(vec![(23, 0)])),
            // No key, a key only in the other layout, a dead key, a joined emoji, a control character.
            ("q漢", None),
            ("й", None),
            ("´", None),
            ("👨\u{200d}👩", None),
            ("\u{1b}", None),
        ];
        for (text, expected) in rows {
            assert_eq!(typed(&keyboard(0), text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_layout_in_use_counts() {
        let second = keyboard(LAYOUT_2);
        assert_eq!(
            typed(&second, "йЙ"),
            Some(vec![(24, LAYOUT_2), (24, LAYOUT_2 | 1)])
        );
        assert_eq!(typed(&second, "q"), None);
        assert_eq!(
            typed(&keyboard(3 << 13), "q"),
            None,
            "its keys are not in the core map"
        );
    }

    #[test]
    fn caps_lock_swaps_letters_only_and_only_in_real_input() {
        let locked = keyboard(LOCKED);
        assert_eq!(
            typed(&locked, "qQ1!"),
            Some(vec![(24, 1), (24, 0), (10, 0), (10, 1)])
        );
        let told = locked
            .strokes(&KeyCommand::Type("Q".into()), false)
            .unwrap();
        assert_eq!(told[0].state, 1);
    }

    #[test]
    fn chords_hold_what_is_named_and_what_the_layout_needs() {
        let printable = |character| Key::Printable(Printable::new(character).unwrap());
        let rows = [
            (printable('q'), vec![], Some((24, vec![], 0))),
            (
                printable('q'),
                vec![Modifier::Control],
                Some((24, vec![37], 4)),
            ),
            (
                printable('q'),
                vec![Modifier::Command, Modifier::Shift, Modifier::Option],
                Some((24, vec![133, 50, 64], 0x40 | 1 | 8)),
            ),
            (
                printable('!'),
                vec![Modifier::Shift],
                Some((10, vec![50], 1)),
            ),
            (
                printable('!'),
                vec![Modifier::Control],
                Some((10, vec![37, 50], 5)),
            ),
            (printable('@'), vec![], Some((24, vec![108], 0x80))),
            (
                Key::Named(NamedKey::Tab),
                vec![Modifier::Shift],
                Some((23, vec![50], 1)),
            ),
            (Key::Named(NamedKey::F12), vec![], None),
            (printable('q'), vec![Modifier::Fn], None),
            (printable('z'), vec![], None),
        ];
        for (key, modifiers, expected) in rows {
            let command = KeyCommand::Chord {
                key,
                modifiers: modifiers.iter().copied().collect(),
            };
            let strokes = keyboard(0).strokes(&command, true);
            let expected = expected.map(|(code, held, state)| vec![Stroke { code, held, state }]);
            assert_eq!(strokes, expected, "{key} {modifiers:?}");
        }
    }

    #[test]
    fn locks_are_not_held_keys() {
        for (state, held) in [
            (0, false),
            (LOCKED, false),
            (16, false),
            (1, true),
            (4, true),
            (0x100, false),
        ] {
            assert_eq!(keyboard(state).is_held_down(), held, "{state:#x}");
        }
    }
}
