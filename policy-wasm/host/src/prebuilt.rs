//! The components that are part of the product, as committed in `policy-wasm/prebuilt`.
//!
//! They are committed so that an ordinary build needs no WebAssembly target. `cargo xtask policy --check` rebuilds them
//! from source and compares.

use crate::digest::Digest;

/// The floor.
pub const FLOOR: &[u8] = include_bytes!("../../prebuilt/maka-floor.wasm");

/// The digest of [`FLOOR`]: the pin every set is built on.
#[must_use]
pub fn floor_digest() -> Digest {
    Digest::of(FLOOR)
}

/// A component that is part of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prebuilt {
    /// The floor.
    Floor,
    /// Permits what no other policy of its set refuses.
    AllowAll,
    /// Refuses everything.
    DenyAll,
    /// Lets only listed applications be used.
    AppList,
    /// Lets a browser be used on listed sites, without scripts and files.
    BrowserDomains,
    /// Lets something be done in opening hours.
    BusinessHours,
    /// Asks a person before what cannot be taken back.
    DestructiveControls,
    /// Limits how much is done.
    RateLimits,
    /// Lets an agent look, and do nothing.
    ReadOnly,
    /// Limits what is typed, and where.
    TypingGuard,
}

impl Prebuilt {
    /// Every one of them.
    pub const ALL: &'static [Self] = &[
        Self::Floor,
        Self::AllowAll,
        Self::DenyAll,
        Self::AppList,
        Self::BrowserDomains,
        Self::BusinessHours,
        Self::DestructiveControls,
        Self::RateLimits,
        Self::ReadOnly,
        Self::TypingGuard,
    ];

    /// The name in its manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => maka_floor::manifest::NAME,
            Self::AllowAll => "allow-all",
            Self::DenyAll => "deny-all",
            Self::AppList => "app-list",
            Self::BrowserDomains => "browser-domains",
            Self::BusinessHours => "business-hours",
            Self::DestructiveControls => "destructive-controls",
            Self::RateLimits => "rate-limits",
            Self::ReadOnly => "read-only",
            Self::TypingGuard => "typing-guard",
        }
    }

    /// The component.
    #[must_use]
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Floor => FLOOR,
            Self::AllowAll => include_bytes!("../../prebuilt/allow-all.wasm"),
            Self::DenyAll => include_bytes!("../../prebuilt/deny-all.wasm"),
            Self::AppList => include_bytes!("../../prebuilt/app-list.wasm"),
            Self::BrowserDomains => include_bytes!("../../prebuilt/browser-domains.wasm"),
            Self::BusinessHours => include_bytes!("../../prebuilt/business-hours.wasm"),
            Self::DestructiveControls => include_bytes!("../../prebuilt/destructive-controls.wasm"),
            Self::RateLimits => include_bytes!("../../prebuilt/rate-limits.wasm"),
            Self::ReadOnly => include_bytes!("../../prebuilt/read-only.wasm"),
            Self::TypingGuard => include_bytes!("../../prebuilt/typing-guard.wasm"),
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|prebuilt| prebuilt.name() == name)
    }
}
