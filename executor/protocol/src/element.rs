//! One element of a window or menu tree (§4.2).

use crate::{
    geometry::WindowRect,
    ids::{Digest, ElementToken},
    json::record,
    roles::{self, Role},
    sets::{ElementVerb, TextField},
    text::AppText,
};

record! {
    /// An element as observed. Text fields may be cut (see `truncated`); the digest is always over the full text.
    pub struct Element {
        /// Valid inside its snapshot only.
        pub token: ElementToken = "token";
        /// Presentation identity across snapshots of one window; never dispatchable (§4.3).
        pub stable_id: Option<u64> = "stableId";
        /// The parent; absent for a root. A parent that is not in the tree is a hint lost, not an error.
        pub parent_token: Option<ElementToken> = "parentToken";
        /// Levels below the root, which has 0.
        pub depth: u32 = "depth";
        /// AX role name, on every back end.
        pub role: Role = "role";
        /// AX subrole name.
        pub subrole: Option<String> = "subrole";
        /// The application's own identifier of the control.
        pub ax_identifier: Option<AppText> = "axIdentifier";
        /// The platform's title (name) attribute.
        pub title: Option<AppText> = "title";
        /// The platform's label (description) attribute.
        pub label: Option<AppText> = "label";
        /// The value.
        pub value: Option<AppText> = "value";
        /// The placeholder of an empty field. Not digested.
        pub placeholder: Option<AppText> = "placeholder";
        /// Whether it takes actions.
        pub enabled: bool = "enabled";
        /// Whether it has the keyboard focus.
        pub focused: bool = "focused";
        /// Whether it is selected, where that is a question.
        pub selected: Option<bool> = "selected";
        /// Where it is in its window; always absent in a menu.
        pub frame: Option<WindowRect> = "frame";
        /// What it offers, in the application's order, without duplicates.
        pub actions: Vec<ElementVerb> = "actions";
        /// Identity of what was seen (§4.5).
        pub digest: Digest = "digest";
        /// Which text fields are cut.
        pub truncated: Vec<TextField> = "truncated";
    }
}

impl Element {
    /// Whether this is a field for secrets.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.role.as_str() == roles::SECURE_TEXT_FIELD
            || self.subrole.as_deref() == Some(roles::SECURE_TEXT_FIELD)
    }
}
