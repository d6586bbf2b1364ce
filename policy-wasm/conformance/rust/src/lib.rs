//! The reference policy of the conformance fixtures: it does what the settings of a case say.
//!
//! `README.md` one folder up says what it does in words, for whoever writes it in another language; the fixtures say
//! whether it does.

mod text;

use maka_policy_sdk::contract::{Decision, Disposition};
use maka_policy_sdk::prelude::*;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    fact: Option<Fact>,
    answer: Option<Answer>,
    fault: Option<Fault>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fact {
    path: String,
    equals: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    rules: Vec<u16>,
    #[serde(default)]
    obligations: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    Trap,
    Loop,
    Memory,
    Recursion,
}

impl Fault {
    fn happen(self) {
        match self {
            Self::Trap => panic!("as the settings say"),
            Self::Loop => loop {
                std::hint::black_box(());
            },
            Self::Memory => loop {
                std::mem::forget(std::hint::black_box(vec![1_u8; 1 << 16]));
            },
            Self::Recursion => {
                recurse(0);
            }
        }
    }
}

/// Deeper and deeper, in frames that have to be kept.
#[expect(unconditional_recursion, reason = "this is what the fixture asks for")]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 32]);
    recurse(depth + 1) + frame[0]
}

impl Answer {
    fn obligations(&self) -> Vec<Obligation> {
        let made = self.obligations.iter().map(|(kind, arg)| Obligation {
            kind: kind.clone(),
            arg: arg.clone(),
        });
        made.collect()
    }
}

struct Conformance;

impl Policy for Conformance {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), Misfit> {
        let answer = settings
            .answer
            .as_ref()
            .map(|answer| answer.decision.as_str());
        match answer {
            None
            | Some("allow" | "deny" | "require-approval" | "release" | "withhold" | "quarantine") => {
                Ok(())
            }
            Some(_) => Err(Misfit::at("/answer/decision", "not_a_decision")),
        }
    }
}

impl AdmitDispatch for Conformance {
    fn admit_dispatch(settings: &Settings, facts: &Dispatch) -> Verdict {
        admit(settings, &facts.head, |path| text::dispatch(facts, path))
    }
}

impl AdmitCdp for Conformance {
    fn admit_cdp(settings: &Settings, facts: &Cdp) -> Verdict {
        admit(settings, &facts.head, |path| text::cdp(facts, path))
    }
}

impl ReviewResult for Conformance {
    fn review_result(settings: &Settings, facts: &Review) -> ReviewVerdict {
        let released = ReviewVerdict {
            disposition: Disposition::Release(Vec::new()),
            rules: Vec::new(),
        };
        if facts.head.method == "observe" {
            return released;
        }
        if let Some(fault) = settings.fault {
            fault.happen();
        }
        if let Some(answer) = &settings.answer {
            return ReviewVerdict {
                disposition: match answer.decision.as_str() {
                    "withhold" => Disposition::Withhold(answer.code.clone()),
                    "quarantine" => Disposition::Quarantine(answer.code.clone()),
                    _ => Disposition::Release(answer.obligations()),
                },
                rules: answer.rules.clone(),
            };
        }
        let Some(fact) = &settings.fact else {
            return released;
        };
        review(|trail| {
            let equal = text::review(facts, &fact.path) == fact.equals;
            trail.require(rule!("fact.equal"), equal, code!("fact_differs"))
        })
    }
}

/// What both admit hooks do. The first decision of a load is for `observe`, and has to pass for the load to.
fn admit(settings: &Settings, head: &Head, text: impl Fn(&str) -> String) -> Verdict {
    if head.method == "observe" {
        return judge(|_| Ok(()));
    }
    if let Some(fault) = settings.fault {
        fault.happen();
    }
    if let Some(answer) = &settings.answer {
        return Verdict {
            decision: match answer.decision.as_str() {
                "deny" => Decision::Deny(answer.code.clone()),
                "require-approval" => Decision::RequireApproval(answer.code.clone()),
                _ => Decision::Allow(answer.obligations()),
            },
            rules: answer.rules.clone(),
        };
    }
    judge(|trail| match &settings.fact {
        Some(fact) => {
            let equal = text(&fact.path) == fact.equals;
            trail.require(rule!("fact.equal"), equal, code!("fact_differs"))
        }
        None => Ok(()),
    })
}

policy!(Conformance: admit_dispatch, admit_cdp, review_result);
