//! Which rules of a policy the passing cases have seen from both sides.
//!
//! A rule counts as covered when a case that lets something through names it and a case that does not, too. Only such a
//! pair shows that the rule can tell the two apart.

use maka_policy_host::fixture::Decision;
use maka_policy_host::manifest::RuleRow;
use maka_policy_host::outcome::Outcome;

/// The rules with their hits.
#[derive(Debug, Clone)]
pub struct Coverage {
    /// In the order of the manifest.
    pub rules: Vec<RuleHits>,
}

/// The hits of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleHits {
    /// Its id.
    pub id: String,
    /// Steps that let something through and name it.
    pub allowing: u32,
    /// Steps that refuse, withhold, or ask for approval, and name it.
    pub refusing: u32,
}

impl Coverage {
    /// No hits yet.
    #[must_use]
    pub fn new(rules: &[RuleRow]) -> Self {
        Self {
            rules: rules
                .iter()
                .map(|rule| RuleHits {
                    id: rule.id.clone(),
                    allowing: 0,
                    refusing: 0,
                })
                .collect(),
        }
    }

    /// Takes in a step that passed.
    pub fn take(&mut self, outcome: &Outcome) {
        for hits in &mut self.rules {
            if !outcome.rules.contains(&hits.id) {
                continue;
            }
            match outcome.decision {
                Decision::Allow | Decision::Release => hits.allowing += 1,
                Decision::Deny
                | Decision::RequireApproval
                | Decision::Withhold
                | Decision::Quarantine => hits.refusing += 1,
                // A policy that failed has named no rule.
                Decision::Error => {}
            }
        }
    }

    /// The rules that were seen from both sides.
    #[must_use]
    pub fn covered(&self) -> usize {
        self.rules
            .iter()
            .filter(|hits| hits.allowing > 0 && hits.refusing > 0)
            .count()
    }

    /// The covered rules in percent, rounded down; a policy without rules is covered.
    #[must_use]
    pub fn percent(&self) -> usize {
        (self.covered() * 100)
            .checked_div(self.rules.len())
            .unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rule_has_to_be_seen_from_both_sides() {
        let rules: Vec<_> = ["a", "b", "c"]
            .map(|id| RuleRow {
                id: id.to_owned(),
                doc: String::new(),
            })
            .into();
        let outcome = |decision, rules: &[&str]| Outcome {
            decision,
            code: None,
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            obligations: Vec::new(),
            asked: true,
            fuel: 0,
            memory_bytes: 0,
            elapsed: Duration::ZERO,
        };
        let mut coverage = Coverage::new(&rules);
        assert_eq!(coverage.percent(), 0);
        coverage.take(&outcome(Decision::Allow, &["a", "b"]));
        coverage.take(&outcome(Decision::Error, &["a", "b"]));
        assert_eq!(coverage.covered(), 0);
        coverage.take(&outcome(Decision::Quarantine, &["a"]));
        assert_eq!((coverage.covered(), coverage.percent()), (1, 33));
        coverage.take(&outcome(Decision::Deny, &["b"]));
        coverage.take(&outcome(Decision::RequireApproval, &["c"]));
        coverage.take(&outcome(Decision::Release, &["c"]));
        assert_eq!(coverage.percent(), 100);
        assert_eq!(Coverage::new(&[]).percent(), 100);
    }
}
