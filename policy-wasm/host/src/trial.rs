//! Asks policies outside of a gateway: for an author's fixtures, for benchmarks, and to explain one call.
//!
//! It takes complete facts instead of what a session knows, so that time, ids and approvals are whatever the author
//! says, and one set of facts always costs the same fuel. It owns no rule: the modules are asked as the judge asks them,
//! and their verdicts are combined by the same combiner. Nothing is recorded.
//!
//! **Invariant:** no permit comes out of here.

use std::time::Duration;

use maka_floor::Denial;

use crate::codes::HostCode;
use crate::combiner::{self, Combined, CombinedReview, Opinion, ReviewOpinion};
use crate::convert;
use crate::engine::Engine;
use crate::facts::{Cdp, Dispatch, Head, Review};
use crate::manifest::Hook;
use crate::module::{Mode, Module, Said};
use crate::set::PolicySet;

/// The facts of one call of one hook.
#[derive(Debug, Clone, PartialEq)]
pub enum Facts {
    /// Of an executor call.
    Dispatch(Box<Dispatch>),
    /// Of a browser command.
    Cdp(Box<Cdp>),
    /// Of an answer.
    Review(Box<Review>),
}

impl Facts {
    /// The hook they are for.
    #[must_use]
    pub const fn hook(&self) -> Hook {
        match self {
            Self::Dispatch(_) => Hook::AdmitDispatch,
            Self::Cdp(_) => Hook::AdmitCdp,
            Self::Review(_) => Hook::ReviewResult,
        }
    }

    /// What every decision has in common.
    #[must_use]
    pub const fn head(&self) -> &Head {
        match self {
            Self::Dispatch(facts) => &facts.head,
            Self::Cdp(facts) => &facts.head,
            Self::Review(facts) => &facts.head,
        }
    }

    /// What every decision has in common, to change it.
    pub const fn head_mut(&mut self) -> &mut Head {
        match self {
            Self::Dispatch(facts) => &mut facts.head,
            Self::Cdp(facts) => &mut facts.head,
            Self::Review(facts) => &mut facts.head,
        }
    }
}

/// What a policy said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// On a call.
    Admit(Opinion),
    /// On an answer.
    Review(ReviewOpinion),
}

/// What a policy said, and what that cost.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What it said. A policy that does not declare the hook has no objection.
    pub verdict: Verdict,
    /// The rules it named, as indexes into its table.
    pub rules: Vec<u16>,
    /// It declares the hook; otherwise nothing ran.
    pub asked: bool,
    /// What it executed; the same on every machine.
    pub fuel: u64,
    /// Its linear memory at the end.
    pub memory_bytes: usize,
    /// How long it took, the fresh instance included.
    pub elapsed: Duration,
}

/// The answer of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Together {
    /// On a call.
    Admit(Combined),
    /// On an answer.
    Review(CombinedReview),
}

/// Asks one policy, in a fresh instance and under its limits.
#[must_use]
pub fn ask(engine: &Engine, module: &Module, facts: &Facts) -> Trial {
    let asked = module.wants(facts.hook());
    let left = engine.limits().total_budget();
    let Some(_place) = engine.place() else {
        return Trial {
            verdict: match facts {
                Facts::Dispatch(_) | Facts::Cdp(_) => {
                    Verdict::Admit(Opinion::Fault(HostCode::PolicyBusy))
                }
                Facts::Review(_) => Verdict::Review(ReviewOpinion::Fault(HostCode::PolicyBusy)),
            },
            rules: Vec::new(),
            asked,
            fuel: 0,
            memory_bytes: 0,
            elapsed: Duration::ZERO,
        };
    };
    match facts {
        Facts::Dispatch(facts) => trial(
            module.admit_dispatch(engine, &convert::dispatch(facts), left),
            asked,
            Verdict::Admit,
        ),
        Facts::Cdp(facts) => trial(
            module.admit_cdp(engine, &convert::cdp(facts), left),
            asked,
            Verdict::Admit,
        ),
        Facts::Review(facts) => trial(
            module.review(engine, &convert::review(facts), left),
            asked,
            Verdict::Review,
        ),
    }
}

/// Asks every policy of a set, and combines what the enforcing ones say.
#[must_use]
pub fn ask_all(engine: &Engine, set: &PolicySet, facts: &Facts) -> (Vec<Trial>, Together) {
    let trials: Vec<_> = set
        .modules()
        .iter()
        .map(|module| ask(engine, module, facts))
        .collect();
    let enforcing = || {
        set.modules()
            .iter()
            .zip(&trials)
            .filter(|(module, _)| module.mode() == Mode::Enforce)
            .map(|(_, trial)| trial.verdict.clone())
    };
    let together = match facts {
        Facts::Dispatch(_) | Facts::Cdp(_) => {
            let opinions: Vec<_> = enforcing()
                .filter_map(|verdict| match verdict {
                    Verdict::Admit(opinion) => Some(opinion),
                    Verdict::Review(_) => None,
                })
                .collect();
            Together::Admit(combiner::combine(&opinions))
        }
        Facts::Review(_) => {
            let opinions: Vec<_> = enforcing()
                .filter_map(|verdict| match verdict {
                    Verdict::Review(opinion) => Some(opinion),
                    Verdict::Admit(_) => None,
                })
                .collect();
            Together::Review(combiner::combine_reviews(&opinions))
        }
    };
    (trials, together)
}

/// The code under which a caller learns of a denial of the floor. The floor cannot see which action spent a snapshot, so
/// the host tells a repetition from a stale snapshot; `repeated` says that the fingerprint is the one that spent it.
#[must_use]
pub fn floor_code(code: &str, repeated: bool) -> &str {
    if repeated && code == Denial::SnapshotSpent.code() {
        crate::codes::DenyCode::Host(HostCode::DuplicateAction).as_str()
    } else {
        code
    }
}

fn trial<O>(said: Said<O>, asked: bool, verdict: impl FnOnce(O) -> Verdict) -> Trial {
    Trial {
        verdict: verdict(said.opinion),
        rules: said.rules,
        asked,
        fuel: said.fuel,
        memory_bytes: said.memory_bytes,
        elapsed: said.elapsed,
    }
}
