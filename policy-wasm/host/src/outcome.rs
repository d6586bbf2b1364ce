//! What a policy said, in the words of fixtures and reports.

use std::time::Duration;

use crate::codes::DenyCode;
use crate::combiner::{Opinion, ReviewOpinion};
use crate::engine::Engine;
use crate::module::Module;
use crate::obligation::Obligation;
use crate::trial::{self, Trial, Verdict};

use crate::fixture::{Bound, Decision, Expect};

/// What a policy said, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// The code of what was not let through.
    pub code: Option<String>,
    /// The ids of the rules it named.
    pub rules: Vec<String>,
    /// The obligations it set, sorted.
    pub obligations: Vec<String>,
    /// It declares the hook.
    pub asked: bool,
    /// What it executed.
    pub fuel: u64,
    /// Its linear memory at the end.
    pub memory_bytes: usize,
    /// How long it took, the fresh instance included.
    pub elapsed: Duration,
}

/// Where an outcome is not what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key of the expectation.
    pub field: &'static str,
    /// What it says.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl Outcome {
    /// Asks a policy about a step.
    #[must_use]
    pub fn ask(engine: &Engine, module: &Module, bound: &Bound) -> Self {
        Self::of(
            module,
            trial::ask(engine, module, &bound.facts),
            bound.is_repeated,
        )
    }

    /// What a trial of this module means.
    #[must_use]
    pub fn of(module: &Module, trial: Trial, is_repeated: bool) -> Self {
        let host = |code| Some(DenyCode::Host(code).as_str().to_owned());
        let (decision, code, obligations) = match trial.verdict {
            Verdict::Admit(Opinion::Allow(conditions)) => (Decision::Allow, None, conditions),
            Verdict::Admit(Opinion::Deny(code)) => {
                let is_repeated = is_repeated && module.is_floor();
                let code = trial::floor_code(&code, is_repeated).to_owned();
                (Decision::Deny, Some(code), Vec::new())
            }
            Verdict::Admit(Opinion::RequireApproval(code)) => {
                (Decision::RequireApproval, Some(code), Vec::new())
            }
            Verdict::Admit(Opinion::Fault(code)) | Verdict::Review(ReviewOpinion::Fault(code)) => {
                (Decision::Error, host(code), Vec::new())
            }
            Verdict::Review(ReviewOpinion::Release(conditions)) => {
                (Decision::Release, None, conditions)
            }
            Verdict::Review(ReviewOpinion::Withhold(code)) => {
                (Decision::Withhold, Some(code), Vec::new())
            }
            Verdict::Review(ReviewOpinion::Quarantine(code)) => {
                (Decision::Quarantine, Some(code), Vec::new())
            }
        };
        let table = &module.manifest().rules;
        Self {
            decision,
            code,
            rules: trial
                .rules
                .iter()
                .filter_map(|rule| table.get(usize::from(*rule)))
                .map(|rule| rule.id.clone())
                .collect(),
            obligations: sorted(&obligations),
            asked: trial.asked,
            fuel: trial.fuel,
            memory_bytes: trial.memory_bytes,
            elapsed: trial.elapsed,
        }
    }

    /// Where this is not what was expected.
    #[must_use]
    pub fn differences(&self, expect: &Expect) -> Vec<Difference> {
        let none = || "none".to_owned();
        let list = |items: &[String]| format!("[{}]", items.join(", "));
        let mut rows = vec![
            (
                "decision",
                expect.decision.as_str().to_owned(),
                self.decision.as_str().to_owned(),
            ),
            (
                "code",
                expect.code.clone().unwrap_or_else(none),
                self.code.clone().unwrap_or_else(none),
            ),
            ("rules", list(&expect.rules), list(&self.rules)),
            (
                "obligations",
                list(&expect.obligations),
                list(&self.obligations),
            ),
        ];
        if let Some(most) = expect.fuel_max.filter(|most| self.fuel > *most) {
            rows.push(("fuel_max", most.to_string(), self.fuel.to_string()));
        }
        rows.into_iter()
            .filter(|(_, expected, got)| expected != got)
            .map(|(field, expected, got)| Difference {
                field,
                expected,
                got,
            })
            .collect()
    }

    /// Decision and code, as one phrase.
    #[must_use]
    pub fn phrase(&self) -> String {
        match &self.code {
            Some(code) => format!("{} {code}", self.decision.as_str()),
            None => self.decision.as_str().to_owned(),
        }
    }

    /// Whether something else was decided. Rules and cost are not part of it.
    #[must_use]
    pub fn decides_like(&self, other: &Self) -> bool {
        self.decision == other.decision
            && self.code == other.code
            && self.obligations == other.obligations
    }
}

/// The obligations as they are written, sorted: their order means nothing.
#[must_use]
pub fn sorted(obligations: &[Obligation]) -> Vec<String> {
    let mut texts: Vec<_> = obligations.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}
