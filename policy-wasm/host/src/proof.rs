//! Proves a candidate before it judges anything.
//!
//! Loading a policy shows that it compiles, takes its settings and answers once. Here it shows more: that it does what
//! the fixtures of its bundle say, that the floor of its set decides the floor's own corpus as it always did, that no
//! module of the set fails on any call of that corpus, and that the engine still ends what does not end by itself.
//! Everything runs beside what is active, nothing of it is a decision, and nothing is recorded.
//!
//! It blocks for some 100 ms and belongs on a thread of its own, one candidate at a time.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::codes::{DenyCode, HostCode};
use crate::combiner::{Opinion, ReviewOpinion};
use crate::engine::{Engine, EngineError};
use crate::fixture::{self, Case, Decision, FixtureError};
use crate::module::{LoadError, Module};
use crate::outcome::{Difference, Outcome};
use crate::set::PolicySet;
use crate::trial::{self, Facts, Trial, Verdict};

/// The floor's own fixtures, which are part of the product.
const CORPUS: [(&str, &[u8]); 6] = [
    (
        "answers.yaml",
        include_bytes!("../../floor/fixtures/answers.yaml"),
    ),
    (
        "browser.yaml",
        include_bytes!("../../floor/fixtures/browser.yaml"),
    ),
    (
        "elements.yaml",
        include_bytes!("../../floor/fixtures/elements.yaml"),
    ),
    (
        "input.yaml",
        include_bytes!("../../floor/fixtures/input.yaml"),
    ),
    (
        "routes.yaml",
        include_bytes!("../../floor/fixtures/routes.yaml"),
    ),
    (
        "snapshots.yaml",
        include_bytes!("../../floor/fixtures/snapshots.yaml"),
    ),
];

/// How often a policy may be late, or find no place, because the machine is busy with other things. That says nothing
/// about the policy.
const TRIES: u32 = 20;

/// What a candidate fails at. File names and the names of cases are the author's.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// A fixture of the bundle cannot be read.
    #[error("a fixture of the bundle is not understood")]
    Fixture(#[source] FixtureError),
    /// A case does not say what has to come of it.
    #[error("{}:{line}: a fixture of the bundle has no `expect`", file.display())]
    NoExpectation {
        /// The fixture.
        file: PathBuf,
        /// Its line.
        line: usize,
    },
    /// The policy refuses the settings of a case.
    #[error("{}:{line}: the policy refuses the settings of this case", file.display())]
    CaseSettings {
        /// The fixture.
        file: PathBuf,
        /// Its line.
        line: usize,
        /// Why.
        #[source]
        source: Box<LoadError>,
    },
    /// The policy does not do what a case says.
    #[error("{}:{line}: the policy does not do what this case expects ({field})", file.display())]
    Case {
        /// The fixture.
        file: PathBuf,
        /// Its line.
        line: usize,
        /// The key of the expectation.
        field: &'static str,
    },
    /// The floor does not decide as it should: this machine or this build cannot be trusted with it.
    #[error("the floor does not decide its own corpus as it should")]
    Floor,
    /// A module fails on a call of the floor's corpus.
    #[error("the module `{module}` fails on a call of the floor's corpus: {}", DenyCode::Host(*code).as_str())]
    Corpus {
        /// The module.
        module: String,
        /// How.
        code: HostCode,
    },
    /// A limit of the engine does not hold.
    #[error("the engine fails its self-test")]
    Engine(#[source] EngineError),
}

impl ProofError {
    /// A stable word for the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Fixture(_) | Self::NoExpectation { .. } | Self::CaseSettings { .. } => {
                "fixture_unusable"
            }
            Self::Case { .. } => "fixture_failed",
            Self::Floor => "floor_corpus",
            Self::Corpus { .. } => "corpus",
            Self::Engine(_) => "engine_self_test",
        }
    }

    /// The place at fault: a JSON pointer, or a file and line of the bundle; empty where there is none.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Fixture(error) => format!(
                "{}:{}{}",
                error.file.display(),
                error.line,
                fixture::plain(&error.pointer)
            ),
            Self::NoExpectation { file, line }
            | Self::CaseSettings { file, line, .. }
            | Self::Case { file, line, .. } => format!("{}:{line}", file.display()),
            Self::Floor | Self::Corpus { .. } | Self::Engine(_) => String::new(),
        }
    }

    /// The module at fault, when the error names one.
    #[must_use]
    pub fn module(&self) -> Option<&str> {
        match self {
            Self::Corpus { module, .. } => Some(module),
            Self::Fixture(_)
            | Self::NoExpectation { .. }
            | Self::CaseSettings { .. }
            | Self::Case { .. }
            | Self::Floor
            | Self::Engine(_) => None,
        }
    }
}

/// Runs the fixtures of a bundle. A case without settings is about the policy with none: `{}`, whatever an operator sets.
///
/// # Errors
///
/// The first case that cannot be run or does not pass.
pub fn fixtures(
    engine: &Engine,
    module: &Module,
    files: &[(String, Vec<u8>)],
) -> Result<(), ProofError> {
    let mut prepared = Prepared::of(engine, module);
    for (name, content) in files {
        if name == "README.md" {
            continue;
        }
        let cases = fixture::read(Path::new(name), content, &module.manifest().rules)
            .map_err(ProofError::Fixture)?;
        for case in &cases {
            if let Some((line, field)) = failed(engine, &prepared.with(case)?, case)? {
                return Err(ProofError::Case {
                    file: case.file.clone(),
                    line,
                    field,
                });
            }
        }
    }
    Ok(())
}

/// A policy under the settings of several cases, prepared once for each.
struct Prepared<'a> {
    engine: &'a Engine,
    base: &'a Module,
    known: Vec<(Value, Module)>,
}

impl<'a> Prepared<'a> {
    fn of(engine: &'a Engine, base: &'a Module) -> Self {
        Self {
            engine,
            base,
            known: Vec::new(),
        }
    }

    fn with(&mut self, case: &Case) -> Result<Module, ProofError> {
        let settings = case.settings.clone().unwrap_or_else(|| json!({}));
        if let Some((_, module)) = self.known.iter().find(|(known, _)| *known == settings) {
            return Ok(module.clone());
        }
        let module = self
            .base
            .with_settings(self.engine, &settings)
            .map_err(|source| ProofError::CaseSettings {
                file: case.file.clone(),
                line: case.line,
                source: Box::new(source),
            })?;
        self.known.push((settings, module.clone()));
        Ok(module)
    }
}

/// Asks a whole set about the floor's corpus, and the engine about its limits.
///
/// # Errors
///
/// When the floor decides otherwise than it should, a module fails on a call, or a limit does not hold.
pub fn set(engine: &Engine, set: &PolicySet) -> Result<(), ProofError> {
    engine.prove().map_err(ProofError::Engine)?;
    let floor = set.floor();
    let floor = floor.module();
    let mut prepared = Prepared::of(engine, floor);
    for (name, content) in CORPUS {
        let cases = fixture::read(Path::new(name), content, &floor.manifest().rules)
            .map_err(|_| ProofError::Floor)?;
        for case in &cases {
            let module = prepared.with(case).map_err(|_| ProofError::Floor)?;
            if failed(engine, &module, case)
                .map_err(|_| ProofError::Floor)?
                .is_some()
            {
                return Err(ProofError::Floor);
            }
            for module in &set.modules()[1..] {
                no_fault(engine, module, case)?;
            }
        }
    }
    Ok(())
}

/// The line and the field of the first step that does not come as expected.
fn failed(
    engine: &Engine,
    module: &Module,
    case: &Case,
) -> Result<Option<(usize, &'static str)>, ProofError> {
    let mut scene = case.scene();
    for step in &case.steps {
        let Some(expect) = &step.expect else {
            return Err(ProofError::NoExpectation {
                file: case.file.clone(),
                line: step.line,
            });
        };
        let bound = scene.bind(step);
        let trial = patiently(engine, module, &bound.facts);
        let outcome = Outcome::of(module, trial, bound.is_repeated);
        scene.settle(&bound, outcome.decision);
        if let Some(Difference { field, .. }) = outcome.differences(expect).first() {
            return Ok(Some((step.line, field)));
        }
    }
    Ok(None)
}

fn no_fault(engine: &Engine, module: &Module, case: &Case) -> Result<(), ProofError> {
    let mut scene = case.scene();
    for step in &case.steps {
        let bound = scene.bind(step);
        if let Some(code) = fault(&patiently(engine, module, &bound.facts)) {
            return Err(ProofError::Corpus {
                module: module.name().to_owned(),
                code,
            });
        }
        // The steps of the corpus go on as the floor would let them.
        let decision = step
            .expect
            .as_ref()
            .map_or(Decision::Deny, |expect| expect.decision);
        scene.settle(&bound, decision);
    }
    Ok(())
}

fn patiently(engine: &Engine, module: &Module, facts: &Facts) -> Trial {
    let mut tries = 1;
    loop {
        let trial = trial::ask(engine, module, facts);
        match fault(&trial) {
            Some(HostCode::PolicyTimeout | HostCode::PolicyBusy) if tries < TRIES => tries += 1,
            Some(_) | None => return trial,
        }
    }
}

fn fault(trial: &Trial) -> Option<HostCode> {
    match &trial.verdict {
        Verdict::Admit(Opinion::Fault(code)) | Verdict::Review(ReviewOpinion::Fault(code)) => {
            Some(*code)
        }
        Verdict::Admit(Opinion::Allow(_) | Opinion::Deny(_) | Opinion::RequireApproval(_))
        | Verdict::Review(
            ReviewOpinion::Release(_) | ReviewOpinion::Withhold(_) | ReviewOpinion::Quarantine(_),
        ) => None,
    }
}
