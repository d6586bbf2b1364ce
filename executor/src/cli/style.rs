//! Colors, where a terminal shows them.

use std::io::{IsTerminal as _, stdout};

use clap::ValueEnum;

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal.
    Auto,
    /// Also in a pipe, for a pager.
    Always,
    /// Never.
    Never,
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// What an element is.
    Role,
    /// The number of an element.
    Number,
    /// Text of the application.
    Quote,
    /// A state such as the focus.
    State,
    /// What can be done.
    Action,
    /// What matters least.
    Dim,
    /// What matters most.
    Bold,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Self::Role => "36",
            Self::Number => "33",
            Self::Quote => "0",
            Self::State => "35",
            Self::Action | Self::Good => "32",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Bad => "31",
        }
    }
}

/// Whether colors are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colors: bool,
}

impl Style {
    /// Text alone.
    pub const PLAIN: Self = Self { colors: false };

    /// What the choice means for standard output.
    #[must_use]
    pub fn of(choice: ColorChoice) -> Self {
        let colors = match choice {
            ColorChoice::Auto => stdout().is_terminal(),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self { colors }
    }

    /// The text in that ink.
    #[must_use]
    pub fn paint(self, ink: Ink, text: &str) -> String {
        if self.colors && ink != Ink::Quote && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code())
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_surround_the_text_and_end_with_it() {
        let colored = Style::of(ColorChoice::Always);
        assert_eq!(colored.paint(Ink::Bad, "no"), "\u{1b}[31mno\u{1b}[0m");
        assert_eq!(colored.paint(Ink::Bad, ""), "");
        assert_eq!(Style::of(ColorChoice::Never).paint(Ink::Bad, "no"), "no");
    }
}
