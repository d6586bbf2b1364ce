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

/// Where a window is, at whole logical points (spec §3.6.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// On the screen, with these x, y, width and height.
    At([f64; 4]),
    /// Minimised, or gone.
    OffScreen,
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

    /// A written value, read before and after. `None` = it could not be read. Where the control is known not to be
    /// `readable`, a value that stayed the same does not say that nothing happened.
    #[must_use]
    pub fn value_readback(
        requested: &str,
        before: Option<&str>,
        after: Option<&str>,
        readable: bool,
    ) -> Self {
        Self::readback(&requested, before.as_ref(), after.as_ref(), readable)
    }

    /// Text that was to be selected, and what is selected now.
    #[must_use]
    pub fn selection_readback(requested: &str, selected: Option<&str>) -> Self {
        let holds = selected == Some(requested);
        Self {
            effect: if holds {
                Effect::Confirmed
            } else {
                Effect::Unverifiable
            },
            method: VerificationMethod::SelectionReadback,
            observed_change: holds,
        }
    }

    /// A window action: where the window was wished to be, was, and is. `None` = it could not be read.
    #[must_use]
    pub fn place(wished: Place, before: Place, after: Option<Place>) -> Self {
        Self::readback(&wished, Some(&before), after.as_ref(), true)
    }

    fn readback<T: PartialEq>(
        requested: &T,
        before: Option<&T>,
        after: Option<&T>,
        readable: bool,
    ) -> Self {
        let effect = if after == Some(requested) {
            Effect::Confirmed
        } else if after.is_some() && after == before && readable {
            Effect::SuspectedNoop
        } else {
            Effect::Unverifiable
        };
        Self {
            effect,
            method: VerificationMethod::ValueReadback,
            observed_change: before.is_some() && after.is_some() && before != after,
        }
    }

    /// The same check, once what it saw has been taken back.
    #[must_use]
    pub const fn taken_back(self) -> Self {
        Self {
            effect: Effect::Unverifiable,
            ..self
        }
    }

    /// Whether a check saw exactly what was asked for.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.effect == Effect::Confirmed
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
            let verdict = Verdict::value_readback("b", before, after, true);
            assert_eq!(
                (verdict.effect, verdict.observed_change),
                (effect, observed_change),
                "{name}"
            );
        }
    }

    /// A toolkit that answers with something else than what is shown must not turn a success into a suspected no-op.
    #[test]
    fn an_unreadable_control_is_not_suspected() {
        for (after, effect) in [("a", Effect::Unverifiable), ("b", Effect::Confirmed)] {
            let verdict = Verdict::value_readback("b", Some("a"), Some(after), false);
            assert_eq!(verdict.effect, effect, "{after}");
        }
    }

    /// Spec §12.5 row 63.
    #[test]
    fn a_window_is_judged_by_where_it_is() {
        use Effect::{Confirmed, SuspectedNoop, Unverifiable};
        let at = |x: f64| Place::At([x, 0.0, 10.0, 10.0]);
        let rows = [
            ("moved", at(5.0), at(0.0), Some(at(5.0)), Confirmed),
            ("stayed", at(5.0), at(0.0), Some(at(0.0)), SuspectedNoop),
            ("clamped", at(5.0), at(0.0), Some(at(3.0)), Unverifiable),
            ("unreadable", at(5.0), at(0.0), None, Unverifiable),
            (
                "minimised",
                Place::OffScreen,
                at(0.0),
                Some(Place::OffScreen),
                Confirmed,
            ),
            (
                "vanished instead",
                at(5.0),
                at(0.0),
                Some(Place::OffScreen),
                Unverifiable,
            ),
        ];
        for (name, wished, before, after, effect) in rows {
            assert_eq!(
                Verdict::place(wished, before, after).effect,
                effect,
                "{name}"
            );
        }
    }

    #[test]
    fn a_selection_is_confirmed_only_by_itself() {
        let rows = [
            (Some("b"), Effect::Confirmed),
            (Some("ab"), Effect::Unverifiable),
            (None, Effect::Unverifiable),
        ];
        for (selected, effect) in rows {
            let verdict = Verdict::selection_readback("b", selected);
            assert_eq!(verdict.effect, effect, "{selected:?}");
            assert_eq!(verdict.observed_change, effect == Effect::Confirmed);
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
