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
