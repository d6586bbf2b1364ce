//! What may be said about the effect of an action that was performed (spec §6.5).
//!
//! INVARIANT: `confirmed` needs a check that saw the difference; a platform's success code alone confirms nothing.

use maka_cu_protocol::sets::{Effect, VerificationMethod};

use super::settle::Look;

/// The three declared answers about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What is known.
    pub effect: Effect,
    /// By which check.
    pub method: VerificationMethod,
    /// Whether the check saw a difference.
    pub observed_change: bool,
}

impl Verdict {
    /// Nothing was dispatched, or nothing can be said.
    pub const NONE: Self = Self {
        effect: Effect::Unverifiable,
        method: VerificationMethod::None,
        observed_change: false,
    };

    /// The platform reported success and nobody looked.
    pub const ACTION_RESULT: Self = Self {
        effect: Effect::Unverifiable,
        method: VerificationMethod::ActionResult,
        observed_change: false,
    };

    /// A written value, read before and after. `None` = it could not be read.
    #[must_use]
    pub fn value_readback(requested: &str, before: Option<&str>, after: Option<&str>) -> Self {
        let effect = match after {
            Some(after) if after == requested => Effect::Confirmed,
            Some(after) if before == Some(after) => Effect::SuspectedNoop,
            Some(_) | None => Effect::Unverifiable,
        };
        Self {
            effect,
            method: VerificationMethod::ValueReadback,
            observed_change: before.is_some() && after.is_some() && before != after,
        }
    }

    /// The window before the action and after it settled.
    #[must_use]
    pub fn tree_delta(before: Look, after: Look) -> Self {
        let changed = match (before, after) {
            (Look::Unreadable, _) | (_, Look::Unreadable) => false,
            (Look::Digest(_) | Look::Gone, Look::Digest(_) | Look::Gone) => {
                !before.agrees_with(after)
            }
        };
        Self {
            effect: if changed {
                Effect::Confirmed
            } else {
                Effect::Unverifiable
            },
            method: VerificationMethod::TreeDelta,
            observed_change: changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::ids::Digest;

    use super::*;

    /// Spec §12.5 row 53.
    #[test]
    fn a_value_is_judged_by_what_reads_back() {
        use Effect::{Confirmed, SuspectedNoop, Unverifiable};
        let rows = [
            ("written", Some("a"), Some("b"), Confirmed, true),
            (
                "same as before and as asked",
                Some("b"),
                Some("b"),
                Confirmed,
                false,
            ),
            ("unchanged", Some("a"), Some("a"), SuspectedNoop, false),
            ("clamped", Some("a"), Some("c"), Unverifiable, true),
            ("unreadable after", Some("a"), None, Unverifiable, false),
            ("unreadable before", None, Some("c"), Unverifiable, false),
            (
                "unreadable before, as asked",
                None,
                Some("b"),
                Confirmed,
                false,
            ),
            ("never readable", None, None, Unverifiable, false),
        ];
        for (name, before, after, effect, observed_change) in rows {
            let verdict = Verdict::value_readback("b", before, after);
            assert_eq!(
                (verdict.effect, verdict.observed_change),
                (effect, observed_change),
                "{name}"
            );
        }
    }

    #[test]
    fn a_window_is_judged_by_its_digest() {
        let (one, two) = (
            Look::Digest(Digest::of(b"1")),
            Look::Digest(Digest::of(b"2")),
        );
        let rows = [
            ("changed", one, two, true),
            ("unchanged", one, one, false),
            ("closed", one, Look::Gone, true),
            ("unreadable after", one, Look::Unreadable, false),
            ("unreadable before", Look::Unreadable, two, false),
            (
                "unreadable before, then closed",
                Look::Unreadable,
                Look::Gone,
                false,
            ),
        ];
        for (name, before, after, changed) in rows {
            let verdict = Verdict::tree_delta(before, after);
            assert_eq!(verdict.observed_change, changed, "{name}");
            assert_eq!(verdict.effect == Effect::Confirmed, changed, "{name}");
        }
    }
}
