//! Digests of elements and windows (§4.5).
//!
//! The canonical text is built by hand: a stock JSON serialiser escapes differently. One input type serves observing and
//! dispatching, so that both ask the same question; it keeps the full title and label and only the hash of the value.

use std::fmt::Write as _;

use crate::{
    geometry::{ScreenRect, WindowRect},
    ids::Digest,
    sets::{ChangedInput, ElementVerb},
    text::AppText,
};

/// How many ancestor roles are digested.
pub const MAX_ANCESTOR_ROLES: usize = 8;

/// What an element's digest is made of. Text is untruncated.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementDigestInput {
    /// Role.
    pub role: String,
    /// Subrole.
    pub subrole: Option<String>,
    /// The application's identifier of the control.
    pub ax_identifier: Option<AppText>,
    /// Title.
    pub title: Option<AppText>,
    /// Label.
    pub label: Option<AppText>,
    /// Hash of the untruncated value's UTF-8 bytes; see [`value_digest`].
    pub value_digest: Option<Digest>,
    /// Frame in the window; `None` for menu elements, at observe and at dispatch time.
    pub frame: Option<WindowRect>,
    /// Offered actions, in any order.
    pub actions: Vec<ElementVerb>,
    /// Roles of the ancestors, nearest first; those beyond [`MAX_ANCESTOR_ROLES`] are ignored.
    pub ancestor_roles: Vec<String>,
    /// Index in the parent's full child list; 0 for a root.
    pub sibling_index: u32,
}

/// The hash of an untruncated value.
#[must_use]
pub fn value_digest(value: &str) -> Digest {
    Digest::of(value.as_bytes())
}

/// The digest of one element.
#[must_use]
pub fn element_digest(input: &ElementDigestInput) -> Digest {
    let mut canonical = Canonical::new();
    canonical.string(&input.role);
    canonical.optional(input.subrole.as_deref());
    canonical.optional(input.ax_identifier.as_ref().map(AppText::as_str));
    canonical.optional(input.title.as_ref().map(AppText::as_str));
    canonical.optional(input.label.as_ref().map(AppText::as_str));
    canonical.optional(
        input
            .value_digest
            .map(|digest| digest.to_string())
            .as_deref(),
    );
    canonical.rect(input.frame.map(WindowRect::rounded));
    canonical.list(sorted_actions(input).into_iter());
    canonical.list(ancestors(input).iter().map(String::as_str));
    canonical.whole(input.sibling_index);
    canonical.digest()
}

/// The digest of a window: its elements' digests, sorted; its bounds; its untruncated title.
#[must_use]
pub fn window_digest(
    element_digests: impl IntoIterator<Item = Digest>,
    bounds: ScreenRect,
    title: Option<&str>,
) -> Digest {
    let mut digests: Vec<Digest> = element_digests.into_iter().collect();
    // Bytes sort as their hexadecimal spelling does.
    digests.sort_unstable();
    let digests: Vec<String> = digests.iter().map(Digest::to_string).collect();
    let mut canonical = Canonical::new();
    canonical.list(digests.iter().map(String::as_str));
    canonical.rect(Some(bounds.rounded()));
    canonical.optional(title);
    canonical.digest()
}

/// Which inputs differ, in digest order; empty exactly when the digests are equal.
#[must_use]
pub fn changed_inputs(
    recorded: &ElementDigestInput,
    current: &ElementDigestInput,
) -> Vec<ChangedInput> {
    let differs = |input: &ChangedInput| match input {
        ChangedInput::Role => recorded.role != current.role,
        ChangedInput::Subrole => recorded.subrole != current.subrole,
        ChangedInput::AxIdentifier => recorded.ax_identifier != current.ax_identifier,
        ChangedInput::Title => recorded.title != current.title,
        ChangedInput::Label => recorded.label != current.label,
        ChangedInput::Value => recorded.value_digest != current.value_digest,
        ChangedInput::Frame => {
            recorded.frame.map(WindowRect::rounded) != current.frame.map(WindowRect::rounded)
        }
        ChangedInput::Actions => sorted_actions(recorded) != sorted_actions(current),
        ChangedInput::Ancestors => ancestors(recorded) != ancestors(current),
        ChangedInput::SiblingIndex => recorded.sibling_index != current.sibling_index,
    };
    ChangedInput::ALL.iter().copied().filter(differs).collect()
}

fn sorted_actions(input: &ElementDigestInput) -> Vec<&'static str> {
    let mut actions: Vec<&str> = input.actions.iter().map(|action| action.as_str()).collect();
    actions.sort_unstable();
    actions
}

fn ancestors(input: &ElementDigestInput) -> &[String] {
    &input.ancestor_roles[..input.ancestor_roles.len().min(MAX_ANCESTOR_ROLES)]
}

/// A canonical array under construction.
struct Canonical(String);

impl Canonical {
    fn new() -> Self {
        Self(String::from("["))
    }

    fn next(&mut self) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
    }

    fn string(&mut self, text: &str) {
        self.next();
        push_string(&mut self.0, text);
    }

    fn optional(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.null(),
        }
    }

    fn null(&mut self) {
        self.next();
        self.0.push_str("null");
    }

    fn whole(&mut self, number: u32) {
        self.next();
        write!(self.0, "{number}").expect("a string never refuses text");
    }

    fn rect(&mut self, rounded: Option<[f64; 4]>) {
        let Some([x, y, width, height]) = rounded else {
            return self.null();
        };
        self.next();
        write!(self.0, "[{x},{y},{width},{height}]").expect("a string never refuses text");
    }

    fn list<'a>(&mut self, items: impl Iterator<Item = &'a str>) {
        self.next();
        self.0.push('[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            push_string(&mut self.0, item);
        }
        self.0.push(']');
    }

    fn text(mut self) -> String {
        self.0.push(']');
        self.0
    }

    fn digest(self) -> Digest {
        Digest::of(self.text().as_bytes())
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < '\u{20}' => {
                write!(out, "\\u{:04x}", u32::from(control)).expect("a string never refuses text");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
