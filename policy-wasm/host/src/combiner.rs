//! Combines the verdicts of several policies into one.
//!
//! There is no expression language and no negation: a fault refuses, then a denial refuses, then an approval is asked
//! for, and only when nothing of that is there does an allow count. Adding a policy can therefore never permit more.

use crate::codes::HostCode;
use crate::obligation::{self, Obligation};

/// What one enforcing policy said, after its answer was checked against its contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opinion {
    /// Go ahead, under these conditions.
    Allow(Vec<Obligation>),
    /// No, with this code.
    Deny(String),
    /// Only with a person's approval.
    RequireApproval(String),
    /// It failed.
    Fault(HostCode),
}

/// The combined answer. `by` is the place in the set of the policy whose code it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Combined {
    /// Every policy allows; the conditions are united.
    Allow(Vec<Obligation>),
    /// A policy denies.
    Deny {
        /// The denying policy.
        by: usize,
        /// Its code.
        code: String,
    },
    /// No policy denies, and at least one wants a person to approve.
    RequireApproval {
        /// Every such policy by its place, with its code, in the order of the set. Never empty.
        asking: Vec<(usize, String)>,
    },
    /// A policy failed, or there was none, or the conditions contradict each other.
    Fault(HostCode),
}

/// Combines the opinions of all enforcing policies, in the order of the set.
#[must_use]
pub fn combine(opinions: &[Opinion]) -> Combined {
    if opinions.is_empty() {
        return Combined::Fault(HostCode::PolicyAbsent);
    }
    for opinion in opinions {
        if let Opinion::Fault(code) = opinion {
            return Combined::Fault(*code);
        }
    }
    for (by, opinion) in opinions.iter().enumerate() {
        if let Opinion::Deny(code) = opinion {
            return Combined::Deny {
                by,
                code: code.clone(),
            };
        }
    }
    let conditions = opinions.iter().flat_map(|opinion| match opinion {
        Opinion::Allow(conditions) => conditions.clone(),
        Opinion::Deny(_) | Opinion::RequireApproval(_) | Opinion::Fault(_) => Vec::new(),
    });
    // Before anybody is asked: no approval can make contradicting conditions hold.
    let Ok(united) = obligation::unite(conditions) else {
        return Combined::Fault(HostCode::ObligationConflict);
    };
    let asking: Vec<_> = opinions
        .iter()
        .enumerate()
        .filter_map(|(by, opinion)| match opinion {
            Opinion::RequireApproval(code) => Some((by, code.clone())),
            Opinion::Allow(_) | Opinion::Deny(_) | Opinion::Fault(_) => None,
        })
        .collect();
    if asking.is_empty() {
        Combined::Allow(united)
    } else {
        Combined::RequireApproval { asking }
    }
}

/// What one enforcing policy said about an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewOpinion {
    /// The caller may have it, under these conditions.
    Release(Vec<Obligation>),
    /// The caller learns only that it was executed.
    Withhold(String),
    /// And the session is closed for actions.
    Quarantine(String),
    /// It failed.
    Fault(HostCode),
}

/// The combined review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CombinedReview {
    /// Every policy releases it; the conditions are united.
    Release(Vec<Obligation>),
    /// Withheld with the code of this policy.
    Withhold {
        /// The first withholding policy.
        by: usize,
        /// Its code.
        code: String,
    },
    /// Quarantined with the code of this policy.
    Quarantine {
        /// The first such policy.
        by: usize,
        /// Its code.
        code: String,
    },
    /// Withheld because a policy failed, or there was none.
    Fault(HostCode),
}

/// Combines reviews: the strictest counts. A fault withholds and does not hide a quarantine.
#[must_use]
pub fn combine_reviews(opinions: &[ReviewOpinion]) -> CombinedReview {
    if opinions.is_empty() {
        return CombinedReview::Fault(HostCode::PolicyAbsent);
    }
    for (by, opinion) in opinions.iter().enumerate() {
        if let ReviewOpinion::Quarantine(code) = opinion {
            return CombinedReview::Quarantine {
                by,
                code: code.clone(),
            };
        }
    }
    for opinion in opinions {
        if let ReviewOpinion::Fault(code) = opinion {
            return CombinedReview::Fault(*code);
        }
    }
    for (by, opinion) in opinions.iter().enumerate() {
        if let ReviewOpinion::Withhold(code) = opinion {
            return CombinedReview::Withhold {
                by,
                code: code.clone(),
            };
        }
    }
    let conditions = opinions.iter().flat_map(|opinion| match opinion {
        ReviewOpinion::Release(conditions) => conditions.clone(),
        ReviewOpinion::Withhold(_) | ReviewOpinion::Quarantine(_) | ReviewOpinion::Fault(_) => {
            Vec::new()
        }
    });
    match obligation::unite(conditions) {
        Ok(united) => CombinedReview::Release(united),
        Err(obligation::Conflict) => CombinedReview::Fault(HostCode::ObligationConflict),
    }
}

#[cfg(test)]
mod tests {
    use maka_floor::facts::Path;
    use proptest::prelude::*;

    use super::*;

    fn obligations() -> impl Strategy<Value = Vec<Obligation>> {
        let one = prop_oneof![
            "/[a-c]".prop_map(Obligation::Redact),
            Just(Obligation::DropImage),
            (0_u64..4).prop_map(Obligation::MaxBytes),
            prop::sample::subsequence(vec![Path::AxAction, Path::AxSelect, Path::CgEventPid], 1..3)
                .prop_map(Obligation::OnlyPaths),
        ];
        prop::collection::vec(one, 0..3)
    }

    fn opinion() -> impl Strategy<Value = Opinion> {
        prop_oneof![
            6 => obligations().prop_map(Opinion::Allow),
            2 => "[ab]".prop_map(Opinion::Deny),
            2 => "[ab]".prop_map(Opinion::RequireApproval),
            1 => prop_oneof![Just(HostCode::PolicyTrap), Just(HostCode::PolicyFuel)].prop_map(Opinion::Fault),
        ]
    }

    fn rank(combined: &Combined) -> u8 {
        match combined {
            Combined::Allow(_) => 0,
            Combined::RequireApproval { .. } => 1,
            // Contradicting conditions are a denial (spec §1.9, step 4).
            Combined::Deny { .. } | Combined::Fault(HostCode::ObligationConflict) => 2,
            Combined::Fault(_) => 3,
        }
    }

    proptest! {
        /// K2: whatever the others say, a fault or a denial anywhere refuses.
        #[test]
        fn a_fault_and_then_a_denial_win_in_any_order(opinions in prop::collection::vec(opinion(), 1..6)) {
            let combined = combine(&opinions);
            let fault = opinions.iter().any(|o| matches!(o, Opinion::Fault(_)));
            let deny = opinions.iter().any(|o| matches!(o, Opinion::Deny(_)));
            let ask = opinions.iter().any(|o| matches!(o, Opinion::RequireApproval(_)));
            match rank(&combined) {
                3 => prop_assert!(fault),
                2 => prop_assert!(!fault && (deny || combined == Combined::Fault(HostCode::ObligationConflict))),
                1 => prop_assert!(ask && !deny && !fault),
                _ => prop_assert!(!ask && !deny && !fault),
            }
            let mut reversed = opinions;
            reversed.reverse();
            prop_assert_eq!(rank(&combine(&reversed)), rank(&combined));
        }

        #[test]
        fn one_policy_more_never_permits_more(opinions in prop::collection::vec(opinion(), 1..6), more in opinion(), at in 0_usize..6) {
            let before = combine(&opinions);
            let mut longer = opinions;
            longer.insert(at.min(longer.len()), more);
            let after = combine(&longer);
            prop_assert!(rank(&after) >= rank(&before));
            if let (Combined::Allow(before), Combined::Allow(after)) = (before, after) {
                // Every condition is still there, or a stricter one of its kind.
                for condition in before {
                    let kept = after.iter().any(|other| match (&condition, other) {
                        (Obligation::MaxBytes(old), Obligation::MaxBytes(new)) => new <= old,
                        (Obligation::OnlyPaths(old), Obligation::OnlyPaths(new)) => new.iter().all(|path| old.contains(path)),
                        (old, new) => old == new,
                    });
                    prop_assert!(kept, "{condition:?}");
                }
            }
        }
    }

    #[test]
    fn the_first_denial_in_order_gives_the_code() {
        let opinions = [
            Opinion::Allow(vec![]),
            Opinion::Deny("first".into()),
            Opinion::Deny("second".into()),
        ];
        assert_eq!(
            combine(&opinions),
            Combined::Deny {
                by: 1,
                code: "first".into()
            }
        );
        let asking = [
            Opinion::RequireApproval("a".into()),
            Opinion::Allow(vec![]),
            Opinion::RequireApproval("b".into()),
        ];
        assert_eq!(
            combine(&asking),
            Combined::RequireApproval {
                asking: vec![(0, "a".into()), (2, "b".into())]
            }
        );
        assert_eq!(combine(&[]), Combined::Fault(HostCode::PolicyAbsent));
    }

    #[test]
    fn the_strictest_review_counts() {
        use ReviewOpinion as R;
        let quarantine = R::Quarantine("q".into());
        let rows = [
            (vec![], CombinedReview::Fault(HostCode::PolicyAbsent)),
            (
                vec![R::Release(vec![]), R::Withhold("w".into())],
                CombinedReview::Withhold {
                    by: 1,
                    code: "w".into(),
                },
            ),
            (
                vec![
                    R::Fault(HostCode::PolicyTrap),
                    R::Withhold("w".into()),
                    quarantine,
                ],
                CombinedReview::Quarantine {
                    by: 2,
                    code: "q".into(),
                },
            ),
            (
                vec![R::Withhold("w".into()), R::Fault(HostCode::PolicyTrap)],
                CombinedReview::Fault(HostCode::PolicyTrap),
            ),
            (
                vec![R::Release(vec![Obligation::DropImage])],
                CombinedReview::Release(vec![Obligation::DropImage]),
            ),
        ];
        for (opinions, expected) in rows {
            assert_eq!(combine_reviews(&opinions), expected);
        }
    }
}
