//! Builds verdicts: the rules that held are collected on the way, and the first one that does not hold ends it.
//!
//! A refusal names the one rule that refused. An allow names every rule that applied and held. So the log says why, and
//! `maka-policy test --coverage` can tell whether a rule was ever seen to make a difference.

use crate::contract::{Decision, Disposition, Obligation, Path, ReviewVerdict, Verdict};
use crate::manifest::{Code, Rule};

/// The rules of one verdict while it is being reached.
#[derive(Debug, Default)]
pub struct Trail {
    held: Vec<u16>,
    obligations: Vec<Obligation>,
}

/// The end of a judgment that does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    rule: Option<Rule>,
    code: Code,
    /// A person may still approve it.
    is_open: bool,
}

impl Refusal {
    /// Refuses what the contract does not know; see [`known`](crate::facts::known).
    pub const ACTION_UNKNOWN: Self = Self {
        rule: None,
        code: Code::ACTION_UNKNOWN,
        is_open: false,
    };
}

impl Trail {
    /// Notes that a rule applies; refuses with `code` unless it holds.
    ///
    /// # Errors
    ///
    /// When it does not hold.
    pub fn require(&mut self, rule: Rule, holds: bool, code: Code) -> Result<(), Refusal> {
        self.note(rule, holds, code, false)
    }

    /// Notes that a rule applies; asks for a person's approval with `code` unless it holds. Whether an approval is
    /// there already is for the rule to say: [`Head::is_approved`](crate::contract::Head::is_approved).
    ///
    /// # Errors
    ///
    /// When it does not hold.
    pub fn require_or_ask(&mut self, rule: Rule, holds: bool, code: Code) -> Result<(), Refusal> {
        self.note(rule, holds, code, true)
    }

    /// Sets a condition on an allow. It counts only when the judgment ends in one.
    pub fn oblige(&mut self, obligation: Obligation) {
        self.obligations.push(obligation);
    }

    fn note(&mut self, rule: Rule, holds: bool, code: Code, is_open: bool) -> Result<(), Refusal> {
        if !holds {
            return Err(Refusal {
                rule: Some(rule),
                code,
                is_open,
            });
        }
        self.held.push(rule.index());
        Ok(())
    }
}

/// Judges a call: what is required in `rules` has to hold.
pub fn judge(rules: impl FnOnce(&mut Trail) -> Result<(), Refusal>) -> Verdict {
    let mut trail = Trail::default();
    match rules(&mut trail) {
        Ok(()) => Verdict {
            decision: Decision::Allow(trail.obligations),
            rules: trail.held,
        },
        Err(refusal) => Verdict {
            decision: if refusal.is_open {
                Decision::RequireApproval(refusal.code.as_str().to_owned())
            } else {
                Decision::Deny(refusal.code.as_str().to_owned())
            },
            rules: refusal.rule.map(Rule::index).into_iter().collect(),
        },
    }
}

/// The rules of one review while it is being reached.
#[derive(Debug, Default)]
pub struct ReviewTrail {
    held: Vec<u16>,
    obligations: Vec<Obligation>,
}

/// The end of a review that does not release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptBack {
    rule: Rule,
    code: Code,
    closes_session: bool,
}

impl ReviewTrail {
    /// Notes that a rule applies; withholds the answer with `code` unless it holds.
    ///
    /// # Errors
    ///
    /// When it does not hold.
    pub fn require(&mut self, rule: Rule, holds: bool, code: Code) -> Result<(), KeptBack> {
        self.note(rule, holds, code, false)
    }

    /// Notes that a rule applies; unless it holds, withholds the answer with `code` and closes the session until an
    /// operator clears it.
    ///
    /// # Errors
    ///
    /// When it does not hold.
    pub fn require_or_quarantine(
        &mut self,
        rule: Rule,
        holds: bool,
        code: Code,
    ) -> Result<(), KeptBack> {
        self.note(rule, holds, code, true)
    }

    /// Sets a condition on a release. It counts only when the review ends in one.
    pub fn oblige(&mut self, obligation: Obligation) {
        self.obligations.push(obligation);
    }

    fn note(
        &mut self,
        rule: Rule,
        holds: bool,
        code: Code,
        closes_session: bool,
    ) -> Result<(), KeptBack> {
        if !holds {
            return Err(KeptBack {
                rule,
                code,
                closes_session,
            });
        }
        self.held.push(rule.index());
        Ok(())
    }
}

/// Judges an answer: what is required in `rules` has to hold.
pub fn review(rules: impl FnOnce(&mut ReviewTrail) -> Result<(), KeptBack>) -> ReviewVerdict {
    let mut trail = ReviewTrail::default();
    match rules(&mut trail) {
        Ok(()) => ReviewVerdict {
            disposition: Disposition::Release(trail.obligations),
            rules: trail.held,
        },
        Err(kept) => ReviewVerdict {
            disposition: if kept.closes_session {
                Disposition::Quarantine(kept.code.as_str().to_owned())
            } else {
                Disposition::Withhold(kept.code.as_str().to_owned())
            },
            rules: vec![kept.rule.index()],
        },
    }
}

/// The conditions of the host's table. The manifest declares those that a policy uses.
impl Obligation {
    /// Take the value at this JSON pointer out of the answer.
    #[must_use]
    pub fn redact(pointer: impl Into<String>) -> Self {
        Self::with("redact", pointer.into())
    }

    /// Leave the image out of the answer.
    #[must_use]
    pub fn drop_image() -> Self {
        Self::with("drop-image", String::new())
    }

    /// Answer with at most this many bytes.
    #[must_use]
    pub fn max_bytes(limit: u64) -> Self {
        Self::with("max-bytes", limit.to_string())
    }

    /// Carry the action out by one of these paths.
    #[must_use]
    pub fn only_paths(paths: &[Path]) -> Self {
        let names: Vec<_> = paths.iter().map(|path| path.as_str()).collect();
        Self::with("only-paths", names.join(","))
    }

    /// The snapshot is spent at once, whatever the outcome.
    #[must_use]
    pub fn no_follow_up() -> Self {
        Self::with("no-follow-up", String::new())
    }

    /// Keep hashes instead of names in the log.
    #[must_use]
    pub fn mark_sensitive() -> Self {
        Self::with("mark-sensitive", String::new())
    }

    fn with(kind: &str, arg: String) -> Self {
        Self {
            kind: kind.to_owned(),
            arg,
        }
    }
}

impl Path {
    /// The name in the executor's protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AxAction => "ax_action",
            Self::AxAttribute => "ax_attribute",
            Self::AxSelect => "ax_select",
            Self::CgEventPid => "cg_event_pid",
            Self::SkylightPid => "skylight_pid",
            Self::CgEventGlobal => "cg_event_global",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{"rules": [{"id": "a"}, {"id": "b"}], "denials": [{"code": "no"}]}"#;
    const A: Rule = Rule::of(MANIFEST, "a");
    const B: Rule = Rule::of(MANIFEST, "b");
    const NO: Code = Code::of(MANIFEST, "no");

    #[test]
    fn an_allow_names_what_held_and_a_refusal_what_did_not() {
        let both = |b, ask| {
            judge(|trail| {
                trail.require(A, true, NO)?;
                trail.oblige(Obligation::drop_image());
                if ask {
                    trail.require_or_ask(B, b, NO)
                } else {
                    trail.require(B, b, NO)
                }
            })
        };
        let allowed = both(true, false);
        assert_eq!(allowed.rules, [0, 1]);
        assert_eq!(
            allowed.decision,
            Decision::Allow(vec![Obligation::drop_image()])
        );
        let denied = both(false, false);
        assert_eq!(denied.rules, [1]);
        assert_eq!(denied.decision, Decision::Deny("no".to_owned()));
        let asked = both(false, true);
        assert_eq!(asked.decision, Decision::RequireApproval("no".to_owned()));
        let unknown = judge(|_| Err(Refusal::ACTION_UNKNOWN));
        assert_eq!(
            unknown.decision,
            Decision::Deny("action_unknown".to_owned())
        );
        assert!(unknown.rules.is_empty());
    }

    #[test]
    fn a_review_releases_withholds_or_quarantines() {
        assert_eq!(
            review(|trail| trail.require(A, true, NO)).disposition,
            Disposition::Release(Vec::new())
        );
        assert_eq!(
            review(|trail| trail.require(A, false, NO)).disposition,
            Disposition::Withhold("no".to_owned())
        );
        let closed = review(|trail| trail.require_or_quarantine(B, false, NO));
        assert_eq!(closed.disposition, Disposition::Quarantine("no".to_owned()));
        assert_eq!(closed.rules, [1]);
    }
}
