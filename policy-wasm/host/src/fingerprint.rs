//! The fingerprint: which action this is, whatever the attempt.
//!
//! It covers session, principal, method, canonical action, snapshot id, window and element digests, target identity,
//! demanded tier and path, and the policy set; not the tool call id. The same click asked for twice has one fingerprint,
//! and an approval given under one policy set does not survive into the next.

use std::fmt;

use crate::call::ExecutorCall;
use crate::digest::Digest;
use crate::facts::DispatchFacts;
use crate::measure::Measure;

/// Identifies an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The fingerprint of an executor call under a policy set.
    #[must_use]
    pub fn of(facts: &DispatchFacts, call: &ExecutorCall, policy_set: Digest) -> Self {
        let mut measure = Measure::default();
        measure.text("maka.fingerprint/1");
        measure.text(&facts.caller.session);
        measure.text(&facts.caller.orchestrator);
        measure.text(call.method());
        measure.text(call.action());
        measure.text(&facts.claim.snapshot_id);
        // The recorded digest where there is a record: a request need not repeat it.
        measure.text(&facts.snapshot.window_digest);
        measure.optional(facts.claim.window_digest.as_deref());
        measure.optional(facts.claim.element_token.as_deref());
        measure.optional(facts.claim.element_digest.as_deref());
        measure.target(facts.claim.target.as_ref());
        measure.target(facts.snapshot.target.as_ref());
        measure.optional(facts.claim.tier.map(maka_floor::facts::Tier::as_str));
        measure.optional(facts.claim.path.map(maka_floor::facts::Path::as_str));
        measure.text(&policy_set.to_string());
        Self(measure.finish().1)
    }

    /// A fingerprint that was kept as a digest.
    #[must_use]
    pub const fn from_digest(digest: Digest) -> Self {
        Self(digest)
    }

    /// The digest.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
