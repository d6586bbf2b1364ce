//! Dry runs: what a set would say about the calls of a fixture.

use std::{fmt, path::Path};

use maka_policy_host::{
    codes::{DenyCode, HostCode},
    combiner::{Combined, CombinedReview},
    digest::Digest,
    engine::Engine,
    fixture::{self, Decision, FILE_BYTES},
    module::{Mode, Module},
    outcome::{Outcome, sorted},
    set::PolicySet,
    trial::{self, Together},
};
use serde_json::Value;

use super::{
    ModuleChoice,
    fault::{Fault, FaultCode},
};

/// Which set is asked.
#[derive(Clone)]
pub enum Asked {
    /// The active one with this name.
    Active(String),
    /// One that is made for the question.
    Candidate {
        /// The modules, in order.
        modules: Vec<ModuleChoice>,
        /// Settings of the floor.
        floor_settings: Value,
    },
}

impl fmt::Debug for Asked {
    // Settings may hold a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active(name) => formatter.debug_tuple("Active").field(name).finish(),
            Self::Candidate { .. } => formatter.write_str("Candidate"),
        }
    }
}

/// What a set says.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Digest of the set.
    pub set: Digest,
    /// One line for each call.
    pub lines: Vec<Line>,
}

/// What a set says about one call.
#[derive(Clone, Debug)]
pub struct Line {
    /// The hook.
    pub hook: &'static str,
    /// The method.
    pub method: String,
    /// What each module says, the floor first.
    pub modules: Vec<(Module, Outcome)>,
    /// What the set says.
    pub decision: Decision,
    /// The code of what is not let through.
    pub code: Option<String>,
    /// The module whose code it is.
    pub by: Option<Module>,
    /// The obligations of what is.
    pub obligations: Vec<String>,
}

/// The sentence of a code that a module of a set gave.
#[must_use]
pub fn sentence(code: &str, by: Option<&Module>) -> String {
    match DenyCode::parse(code) {
        Some(code) => code.sentence().to_owned(),
        None => by
            .and_then(|module| module.manifest().denial(code))
            .map(|row| row.sentence.clone())
            .unwrap_or_default(),
    }
}

pub(super) fn ask(engine: &Engine, set: &PolicySet, text: &str) -> Result<Answer, Fault> {
    let unusable = |place: String| Fault::from(FaultCode::FixtureUnusable).at(place);
    if text.len() as u64 > FILE_BYTES {
        return Err(unusable("1".to_owned()));
    }
    let last = set
        .modules()
        .last()
        .map_or(&[][..], |module| module.manifest().rules.as_slice());
    let cases = fixture::read(Path::new("fixture"), text.as_bytes(), last)
        .map_err(|error| unusable(format!("{}{}", error.line, fixture::plain(&error.pointer))))?;
    let [case] = &cases[..] else {
        return Err(unusable(
            cases.get(1).map_or(1, |case| case.line).to_string(),
        ));
    };
    let mut scene = case.scene();
    let mut lines = Vec::new();
    for step in &case.steps {
        let bound = scene.bind(step);
        let (trials, together) = trial::ask_all(engine, set, &bound.facts);
        let modules: Vec<_> = set
            .modules()
            .iter()
            .zip(trials)
            .map(|(module, trial)| {
                let outcome = Outcome::of(module, trial, bound.is_repeated);
                (module.clone(), outcome)
            })
            .collect();
        let (decision, code, by, obligations) = combined(set, together, bound.is_repeated);
        scene.settle(&bound, decision);
        lines.push(Line {
            hook: bound.facts.hook().as_str(),
            method: bound.facts.head().method.clone(),
            modules,
            decision,
            code,
            by,
            obligations,
        });
    }
    Ok(Answer {
        set: set.digest(),
        lines,
    })
}

type Said = (Decision, Option<String>, Option<Module>, Vec<String>);

fn combined(set: &PolicySet, together: Together, is_repeated: bool) -> Said {
    let enforcing = |at: usize| {
        set.modules()
            .iter()
            .filter(|module| module.mode() == Mode::Enforce)
            .nth(at)
            .cloned()
    };
    let by = |decision, at: usize, code: &str| {
        let module = enforcing(at);
        let is_floor = module.as_ref().is_some_and(Module::is_floor);
        let code = trial::floor_code(code, is_repeated && is_floor).to_owned();
        (decision, Some(code), module, Vec::new())
    };
    let host = |code| {
        let code = DenyCode::Host(code).as_str().to_owned();
        (Decision::Error, Some(code), None, Vec::new())
    };
    match together {
        Together::Admit(Combined::Allow(obligations)) => {
            (Decision::Allow, None, None, sorted(&obligations))
        }
        Together::Admit(Combined::Deny { by: at, code }) => by(Decision::Deny, at, &code),
        Together::Admit(Combined::RequireApproval { asking }) => match asking.first() {
            Some((at, code)) => by(Decision::RequireApproval, *at, code),
            // Nobody asks without being there.
            None => host(HostCode::PolicyInternal),
        },
        Together::Review(CombinedReview::Release(obligations)) => {
            (Decision::Release, None, None, sorted(&obligations))
        }
        Together::Review(CombinedReview::Withhold { by: at, code }) => {
            by(Decision::Withhold, at, &code)
        }
        Together::Review(CombinedReview::Quarantine { by: at, code }) => {
            by(Decision::Quarantine, at, &code)
        }
        Together::Admit(Combined::Fault(code)) | Together::Review(CombinedReview::Fault(code)) => {
            host(code)
        }
    }
}
