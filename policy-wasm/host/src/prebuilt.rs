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
}

impl Prebuilt {
    /// Every one of them.
    pub const ALL: &'static [Self] = &[Self::Floor, Self::AllowAll, Self::DenyAll];

    /// The name in its manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => maka_floor::manifest::NAME,
            Self::AllowAll => "allow-all",
            Self::DenyAll => "deny-all",
        }
    }

    /// The component.
    #[must_use]
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Floor => FLOOR,
            Self::AllowAll => include_bytes!("../../prebuilt/allow-all.wasm"),
            Self::DenyAll => include_bytes!("../../prebuilt/deny-all.wasm"),
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
