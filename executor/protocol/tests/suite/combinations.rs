//! Every combination of tier, path, authority, outcome and effect that an executor could claim for a dispatch, and what becomes of
//! each: 3 · 7 · 2 · 4 · 3 = 504 (§6.1, §6.2, §6.4, §7).
//!
//! The expectation is written out by hand from the protocol's tables, in the words of the wire, and asks nothing of the code.

use maka_cu_protocol::{
    json::Reason,
    results::dispatch::{DispatchExpectation, Ending, read_dispatch},
};
use serde_json::{Value, json};

use crate::samples;

const TIERS: [&str; 3] = ["ax", "semantic-background", "coordinate-background"];
const PATHS: [&str; 7] = [
    "ax_action",
    "ax_attribute",
    "ax_select",
    "cg_event_pid",
    "skylight_pid",
    "cg_event_global",
    "none",
];
const OUTCOMES: [&str; 4] = ["ok", "refused", "failed", "unknown"];
const EFFECTS: [&str; 3] = ["confirmed", "unverifiable", "suspected_noop"];

/// Which path goes with which tier: rows are tiers, columns paths, as printed above.
const LEGAL: [[bool; 7]; 3] = [
    [true, true, true, false, false, false, true],
    [false, false, false, false, false, false, true],
    [false, false, false, true, true, true, true],
];

/// Which effect goes with which outcome: rows are outcomes, columns effects. Only what was done can be confirmed.
const BELIEVED: [[bool; 3]; 4] = [
    [true, true, true],
    [false, true, true],
    [false, true, true],
    [false, true, true],
];

/// Column of `cg_event_global` in [`LEGAL`].
const GLOBAL: usize = 5;

/// What becomes of one combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Violation(&'static str, Reason),
}

fn claim(tier: &str, path: &str, outcome: &str, effect: &str) -> Value {
    let mut claim = json!({
        "ok": outcome == "ok", "toolCallId": "call_1", "outcome": outcome, "tier": tier, "path": path, "effect": effect,
        "verification": {"method": "tree_delta", "observedChange": effect == "confirmed"},
    });
    let code = match outcome {
        "ok" => return claim,
        "unknown" => "outcome_unknown",
        _ => "dispatch_refused",
    };
    claim["error"] = json!({"code": code, "message": "A sentence."});
    claim
}

/// The word of an ending, spelled here once more.
fn word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Done => "ok",
        Ending::Refused(_) => "refused",
        Ending::Failed(_) => "failed",
        Ending::Unknown(_) => "unknown",
    }
}

#[test]
fn all_504_claims_are_judged() {
    let call = samples::call_id();
    let (mut rows, mut accepted) = (0, 0);
    for (tier_row, tier) in TIERS.into_iter().enumerate() {
        for (path_column, path) in PATHS.into_iter().enumerate() {
            for allow_global_pointer in [false, true] {
                for (outcome_row, outcome) in OUTCOMES.into_iter().enumerate() {
                    for (effect_column, effect) in EFFECTS.into_iter().enumerate() {
                        // An effect nobody can know is the graver lie; then the pair; then the missing permission.
                        let expected = if !BELIEVED[outcome_row][effect_column] {
                            Verdict::Violation("effect", Reason::Contradiction)
                        } else if !LEGAL[tier_row][path_column] {
                            Verdict::Violation("path", Reason::IllegalPair)
                        } else if path_column == GLOBAL && !allow_global_pointer {
                            Verdict::Violation("path", Reason::GlobalPointer)
                        } else {
                            Verdict::Accepted
                        };
                        let said = claim(tier, path, outcome, effect);
                        let name = format!("{said}, global pointer: {allow_global_pointer}");
                        let expectation = DispatchExpectation {
                            allow_global_pointer,
                            ..samples::dispatch_expectation(&call)
                        };
                        let seen = match read_dispatch(&said, &expectation) {
                            Ok(answer) => {
                                // What is accepted says what the wire said.
                                assert_eq!(answer.tier.as_str(), tier, "{name}");
                                assert_eq!(answer.path.as_str(), path, "{name}");
                                assert_eq!(answer.effect.as_str(), effect, "{name}");
                                assert_eq!(word(&answer.ending), outcome, "{name}");
                                accepted += 1;
                                Verdict::Accepted
                            }
                            Err(violation) => {
                                let field = ["effect", "path"]
                                    .into_iter()
                                    .find(|field| *field == violation.field)
                                    .unwrap_or_else(|| panic!("{name}: {violation}"));
                                Verdict::Violation(field, violation.reason)
                            }
                        };
                        assert_eq!(seen, expected, "{name}");
                        rows += 1;
                    }
                }
            }
        }
    }
    assert_eq!(rows, 504);
    // Counted by hand: 8 legal pairs under either authority and 1 under the permission only, for 9 pairs of outcome and effect.
    assert_eq!(accepted, (8 * 2 + 1) * 9);
}

/// The same claims on the arm they do not belong to: `ok` and `outcome` contradict each other, whatever else is said.
#[test]
fn the_arms_are_not_mixed() {
    let call = samples::call_id();
    for tier in TIERS {
        for path in PATHS {
            for outcome in OUTCOMES {
                for effect in EFFECTS {
                    let mut said = claim(tier, path, outcome, effect);
                    said["ok"] = json!(outcome != "ok");
                    if outcome == "ok" {
                        said["error"] =
                            json!({"code": "dispatch_refused", "message": "A sentence."});
                    }
                    let violation = read_dispatch(&said, &samples::dispatch_expectation(&call))
                        .expect_err("a contradiction");
                    assert_eq!(
                        (violation.field.as_str(), violation.reason),
                        ("outcome", Reason::Contradiction),
                        "{said}"
                    );
                }
            }
        }
    }
}
