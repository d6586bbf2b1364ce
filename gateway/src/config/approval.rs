//! Section `[approval]`: how long a person has, and how long an approval is good.

use serde::Deserialize;

use super::value::Bounded;

/// Bounds of approvals.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalConfig {
    /// What is asked waits so long for a person; what is approved can be used for so long; a rejection is remembered for
    /// so long.
    pub lifetime_ms: Bounded<1, 600_000>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            lifetime_ms: Bounded::constant(60_000),
        }
    }
}
