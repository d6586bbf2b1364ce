//! The rows of a capture. Facts are in the form that is generated from the contract.

use serde::{Deserialize, Serialize};

use crate::bindings::exports::maka::policy::hooks as wit;
use crate::codes::{DenyCode, HostCode};
use crate::combiner::{self, Combined, CombinedReview};
use crate::fixture::Decision;
use crate::module::{Mode, Module};
use crate::outcome::{Outcome, sorted};
use crate::set::PolicySet;
use crate::trial::{self, Trial, Verdict};

/// One frame.
#[derive(Serialize, Deserialize)]
pub(super) enum Row {
    /// The first one.
    Begin { unix_ms: u64 },
    /// A set, before its first decision.
    Set(SetRow),
    /// A decision.
    Decision(Box<DecisionRow>),
    /// The last one.
    End {
        reason: Ended,
        decisions: u64,
        dropped: u64,
    },
}

/// Why a capture ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its time was over.
    Time,
    /// Its file had come to the largest size.
    Full,
    /// The gateway ended.
    Shutdown,
    /// Whoever asked for it went away. No file says so, since it lacks its end.
    Abandoned,
}

impl Ended {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Full => "full",
            Self::Shutdown => "shutdown",
            Self::Abandoned => "abandoned",
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct SetRow {
    pub(super) generation: u64,
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) modules: Vec<ModuleRow>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ModuleRow {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) digest: String,
    pub(super) monitor: bool,
    /// Canonical JSON.
    pub(super) settings: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DecisionRow {
    pub(super) id: String,
    pub(super) generation: u64,
    pub(super) set: String,
    pub(super) facts: FactsRow,
    pub(super) is_repeated: bool,
    pub(super) said: Vec<Line>,
    /// Nothing when no module was asked.
    pub(super) together: Option<Together>,
    pub(super) effective: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum FactsRow {
    Dispatch(wit::Dispatch),
    Review {
        head: wit::Head,
        /// By module of the set.
        admitted_rules: Vec<Vec<u16>>,
        subject: wit::Subject,
    },
}

/// What one policy said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The policy.
    pub module: String,
    /// The word for its decision.
    pub decision: String,
    /// The code of what was not let through.
    pub code: Option<String>,
    /// The rules it named.
    pub rules: Vec<String>,
    /// The obligations it set, sorted.
    pub obligations: Vec<String>,
    /// What it executed.
    pub fuel: u64,
}

impl Line {
    pub(super) fn of(
        module: &Module,
        verdict: Verdict,
        rules: Vec<u16>,
        fuel: u64,
        is_repeated: bool,
    ) -> Self {
        let trial = Trial {
            verdict,
            rules,
            asked: true,
            fuel,
            memory_bytes: 0,
            elapsed: std::time::Duration::ZERO,
        };
        let outcome = Outcome::of(module, trial, is_repeated);
        Self {
            module: module.name().to_owned(),
            decision: outcome.decision.as_str().to_owned(),
            code: outcome.code,
            rules: outcome.rules,
            obligations: outcome.obligations,
            fuel: outcome.fuel,
        }
    }
}

/// What a set said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// The word for the decision.
    pub decision: String,
    /// The code of what was not let through.
    pub code: Option<String>,
    /// The obligations, sorted.
    pub obligations: Vec<String>,
}

impl Together {
    /// Combines what the enforcing modules of a set said, in its order.
    pub(super) fn of(set: &PolicySet, verdicts: Vec<Verdict>, is_repeated: bool) -> Self {
        let mut opinions = Vec::new();
        let mut reviews = Vec::new();
        for verdict in verdicts {
            match verdict {
                Verdict::Admit(opinion) => opinions.push(opinion),
                Verdict::Review(opinion) => reviews.push(opinion),
            }
        }
        let host = |code: HostCode| Some(DenyCode::Host(code).as_str().to_owned());
        let (decision, code, obligations) = if reviews.is_empty() {
            match combiner::combine(&opinions) {
                Combined::Allow(obligations) => (Decision::Allow, None, obligations),
                Combined::Deny { by, code } => {
                    let mut enforcing =
                        set.modules().iter().filter(|it| it.mode() == Mode::Enforce);
                    let is_floor = enforcing.nth(by).is_some_and(Module::is_floor);
                    let code = trial::floor_code(&code, is_repeated && is_floor).to_owned();
                    (Decision::Deny, Some(code), Vec::new())
                }
                Combined::RequireApproval { asking } => {
                    let code = asking.into_iter().next().map(|(_, code)| code);
                    (Decision::RequireApproval, code, Vec::new())
                }
                Combined::Fault(code) => (Decision::Error, host(code), Vec::new()),
            }
        } else {
            match combiner::combine_reviews(&reviews) {
                CombinedReview::Release(obligations) => (Decision::Release, None, obligations),
                CombinedReview::Withhold { by: _, code } => {
                    (Decision::Withhold, Some(code), Vec::new())
                }
                CombinedReview::Quarantine { by: _, code } => {
                    (Decision::Quarantine, Some(code), Vec::new())
                }
                CombinedReview::Fault(code) => (Decision::Error, host(code), Vec::new()),
            }
        };
        Self {
            decision: decision.as_str().to_owned(),
            code,
            obligations: sorted(&obligations),
        }
    }
}
