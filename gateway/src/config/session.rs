//! Section `[session]`: how long sessions live and how many there may be.

use serde::Deserialize;

use super::value::Bounded;

/// Bounds of sessions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionConfig {
    /// A session without a call ends after this long.
    pub idle_ttl_ms: Bounded<1, 86_400_000>,
    /// Sessions at once for one principal.
    pub max_per_principal: Bounded<1, 4096>,
    /// Sessions at once for everybody.
    pub max_total: Bounded<1, 4096>,
    /// How long a session rests after a person let go of pointer and keyboard.
    pub intervention_debounce_ms: Bounded<0, 600_000>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            idle_ttl_ms: Bounded::constant(15 * 60 * 1000),
            max_per_principal: Bounded::constant(64),
            max_total: Bounded::constant(256),
            intervention_debounce_ms: Bounded::constant(3000),
        }
    }
}
