//! Which character a key symbol stands for. Facts of the X protocol (`keysymdef.h`, and appendix A of the core protocol), for
//! the symbols that keyboard layouts bear; a symbol that is not here makes no character as far as this crate knows, and
//! text that needs it is refused rather than typed with a gap.

/// The character, or `None` for a key that makes none, such as a dead key.
pub(super) fn character(symbol: u32) -> Option<char> {
    match symbol {
        // Latin 1 is itself.
        0x20..=0x7e | 0xa0..=0xff => char::from_u32(symbol),
        // Symbols made from a code point.
        0x0100_0100..=0x0110_ffff => char::from_u32(symbol - 0x0100_0000),
        _ => OLD_SETS
            .iter()
            .take_while(|(first, _)| *first <= symbol)
            .last()
            .and_then(|(first, characters)| {
                let place = usize::try_from(symbol - first).ok()?;
                characters.chars().nth(place)
            })
            .filter(|character| *character != NONE),
    }
}

/// Fills a gap in [`OLD_SETS`].
const NONE: char = ' ';

/// Runs of symbols that are older than Unicode: the first symbol, and the characters from there on.
#[rustfmt::skip]
const OLD_SETS: &[(u32, &str)] = &[
    // Latin 2.
    (0x01a1, "Ą˘Ł ĽŚ  ŠŞŤŹ ŽŻ ą˛ł ľśˇ šşťź˝žżŔ  Ă ĹĆ Č Ę Ě  ĎĐŃŇ  Ő  ŘŮ Ű  Ţ ŕ  ă ĺć č ę ě  ďđńň  "),
    (0x01f5, "ő  řů ű  ţ˙"),
    // Latin 3.
    (0x02a1, "Ħ    Ĥ  İ ĞĴ    ħ    ĥ  ı ğĵ"),
    (0x02c5, "ĊĈ"),
    (0x02d5, "Ġ  Ĝ    ŬŜ"),
    (0x02e5, "ċĉ"),
    (0x02f5, "ġ  ĝ    ŭŝ"),
    // Latin 4.
    (0x03a2, "ĸŖ ĨĻ   ĒĢŦ"),
    (0x03b3, "ŗ ĩļ   ēģŧŊ ŋĀ"),
    (0x03c7, "Į    Ė  Ī ŅŌĶ     Ų   ŨŪ ā"),
    (0x03e7, "į    ė  ī ņōķ     ų   ũū"),
    // Arabic.
    (0x05ac, "\u{60C}"),
    (0x05bb, "\u{61B}   \u{61F} \u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\u{627}\u{628}\u{629}"),
    (0x05ca, "\u{62A}\u{62B}\u{62C}\u{62D}\u{62E}\u{62F}\u{630}\u{631}\u{632}\u{633}\u{634}\u{635}"),
    (0x05d6, "\u{636}\u{637}\u{638}\u{639}\u{63A}     \u{640}\u{641}\u{642}\u{643}\u{644}\u{645}"),
    (0x05e6, "\u{646}\u{647}\u{648}\u{649}\u{64A}\u{64B}\u{64C}\u{64D}\u{64E}\u{64F}\u{650}\u{651}"),
    (0x05f2, "\u{652}"),
    // Cyrillic.
    (0x06a1, "ђѓёєѕіїјљњћќґўџ№ЂЃЁЄЅІЇЈЉЊЋЌҐЎЏюабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТ"),
    (0x06f5, "УЖВЬЫЗШЭЩЧЪ"),
    // Greek.
    (0x07a1, "ΆΈΉΊΪ ΌΎΫ Ώ  ΅― άέήίϊΐόύϋΰώ     ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣ ΤΥΦΧΨΩ"),
    (0x07e1, "αβγδεζηθικλμνξοπρσςτυφχψω"),
    // Publishing.
    (0x0aa9, "—–   …‥⅓⅔⅕⅖⅗⅘⅙⅚℅  ‒"),
    (0x0ac3, "⅛⅜⅝⅞  ™"),
    (0x0ad0, "‘’“”℞‰′″ ✝"),
    (0x0aec, "♣♦♥ ✠†‡✓✗♯♭♂♀☎⌕℗‸‚„"),
    // Hebrew.
    (0x0cdf, "‗\u{5D0}\u{5D1}\u{5D2}\u{5D3}\u{5D4}\u{5D5}\u{5D6}\u{5D7}\u{5D8}\u{5D9}\u{5DA}"),
    (0x0ceb, "\u{5DB}\u{5DC}\u{5DD}\u{5DE}\u{5DF}\u{5E0}\u{5E1}\u{5E2}\u{5E3}\u{5E4}\u{5E5}\u{5E6}"),
    (0x0cf7, "\u{5E7}\u{5E8}\u{5E9}\u{5EA}"),
    // Thai.
    (0x0da1, "กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะ\u{E31}\u{E32}\u{E33}\u{E34}\u{E35}"),
    (0x0dd6, "\u{E36}\u{E37}\u{E38}\u{E39}\u{E3A}    \u{E3F}\u{E40}\u{E41}\u{E42}\u{E43}\u{E44}"),
    (0x0de5, "\u{E45}\u{E46}\u{E47}\u{E48}\u{E49}\u{E4A}\u{E4B}\u{E4C}\u{E4D}  ๐๑๒๓๔๕๖๗๘๙"),
    // Latin 9.
    (0x13bc, "ŒœŸ"),
    // Currency.
    (0x20ac, "€"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Field report E2: these were lost without a word elsewhere.
    #[test]
    fn symbols_of_many_layouts_are_known() {
        let rows = [
            (0x61, Some('a')),
            (0x60, Some('`')),
            (0xdf, Some('ß')),
            (0x1d8, Some('Ř')),
            (0x1c8, Some('Č')),
            (0x1ff, Some('\u{2d9}')),
            (0x6c1, Some('а')),
            (0x6ff, Some('Ъ')),
            (0x7f9, Some('ω')),
            (0xaa9, Some('—')),
            (0xcfa, Some('\u{5ea}')),
            (0xdf9, Some('๙')),
            (0x20ac, Some('€')),
            (0x0101_f600, Some('😀')),
            // A gap, a dead key, keys that do something.
            (0x1a4, None),
            (0xfe51, None),
            (0xff0d, None),
            (0xffe1, None),
            (0, None),
            (0x0100_d800, None),
            (u32::MAX, None),
        ];
        for (symbol, expected) in rows {
            assert_eq!(character(symbol), expected, "{symbol:#x}");
        }
    }

    #[test]
    fn the_runs_are_in_order_and_do_not_meet() {
        for pair in OLD_SETS.windows(2) {
            let [(first, characters), (next, _)] = pair else {
                unreachable!()
            };
            let length = u32::try_from(characters.chars().count()).unwrap();
            assert!(first + length <= *next, "{first:#x}");
        }
    }
}
