//! Menus: how far to walk them, and what came back (§4.6).

use serde_json::Value;

use crate::{
    element::Element,
    json::{Fields, Json, ObjectWriter, Reason, Violation, record},
    sets::MenuScopeKind,
    snapshot::Truncation,
    text::SomeText,
};

/// How far a menu walk descends. The scope never changes digests, sibling indexes or ancestor chains.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MenuScope {
    /// The bar and its top items.
    Bar,
    /// As `Bar`, and the one menu of this title or label opened. A title that names no menu gives the bar.
    Menu {
        /// The title.
        title: SomeText,
    },
    /// Everything.
    All,
}

impl MenuScope {
    /// The wire word of the scope.
    #[must_use]
    pub const fn kind(&self) -> MenuScopeKind {
        match self {
            Self::Bar => MenuScopeKind::Bar,
            Self::Menu { .. } => MenuScopeKind::Menu,
            Self::All => MenuScopeKind::All,
        }
    }
}

impl Json for MenuScope {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let scope = match fields.get("scope")? {
            MenuScopeKind::Bar => Self::Bar,
            MenuScopeKind::Menu => {
                return Ok(Self::Menu {
                    title: fields.get("title")?,
                });
            }
            MenuScopeKind::All => Self::All,
        };
        if fields.has("title") {
            Err(Violation::of("title", Reason::NotAllowed))
        } else {
            Ok(scope)
        }
    }

    fn write(&self) -> Value {
        let object = ObjectWriter::new().with("scope", &self.kind());
        match self {
            Self::Menu { title } => object.with("title", title),
            Self::Bar | Self::All => object,
        }
        .finish()
    }
}

record! {
    /// The menu of the observed application. No elements: it has no menu bar. One element: the bar is empty.
    pub struct Menu {
        /// The bar first, depth first.
        pub elements: Vec<Element> = "elements";
        /// What the menu's own bounds cut; never mixed with the window's.
        pub truncated: Truncation = "truncated";
    }
}
