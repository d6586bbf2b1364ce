//! `test`: runs fixtures against one policy.

use std::path::PathBuf;

use maka_policy_host::fixture::{Bound, Case};
use maka_policy_host::module::Module;
use maka_policy_host::outcome::{Difference, Outcome};

use crate::command_line::TestArguments;
use crate::coverage::Coverage;
use crate::error::InputError;
use crate::fixture;
use crate::mutate;
use crate::report::{Exit, Report};
use crate::workbench::Workbench;

mod print;

/// A step after its run.
#[derive(Debug, Clone)]
pub struct Ran {
    /// The file of its case.
    pub file: PathBuf,
    /// Its first line.
    pub line: usize,
    /// The name of its case, and its number where the case is a sequence.
    pub name: String,
    /// What the policy said.
    pub outcome: Outcome,
    /// Where that is not what was expected.
    pub differences: Vec<Difference>,
    /// The facts on which a passed step depends; nothing when that was not asked for.
    pub depends_on: Option<Vec<&'static str>>,
}

impl Ran {
    /// Whether everything came as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }

    /// Whether no single fact matters to it.
    #[must_use]
    pub fn is_vacuous(&self) -> bool {
        self.depends_on.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Everything that came out of a run.
#[derive(Debug)]
pub struct Results {
    /// The policy under test.
    pub policy: Module,
    /// The steps, in the order of files and lines.
    pub steps: Vec<Ran>,
    /// The rules that passing steps have seen.
    pub coverage: Coverage,
}

/// Carries out the command.
///
/// # Errors
///
/// When policy or fixtures cannot be worked with. A case that fails is a result.
pub fn run(arguments: &TestArguments) -> Result<Report, InputError> {
    let bench = Workbench::new(&arguments.load)?;
    // Mistakes in fixtures are said before the policy is compiled.
    let rules = bench.rules(&arguments.policy)?;
    let cases = fixture::read_all(&arguments.fixtures, &rules)?;
    let mut policies = bench.policies(&arguments.policy)?;
    let mut steps = Vec::new();
    for case in &cases {
        let module = policies.with(case)?;
        steps.extend(run_case(&bench, &module, case, arguments.mutate)?);
    }
    let mut coverage = Coverage::new(&rules);
    for step in steps.iter().filter(|step| step.passed()) {
        coverage.take(&step.outcome);
    }
    let results = Results {
        policy: policies.base().clone(),
        steps,
        coverage,
    };
    let exit = exit(&results, arguments);
    let out = if arguments.json {
        print::json(&results, arguments, exit)
    } else {
        print::text(&results, arguments)
    };
    Ok(Report::new(out, exit))
}

fn run_case(
    bench: &Workbench,
    module: &Module,
    case: &Case,
    mutate: bool,
) -> Result<Vec<Ran>, InputError> {
    let mut scene = case.scene();
    let mut steps = Vec::new();
    for (at, step) in case.steps.iter().enumerate() {
        let Some(expect) = &step.expect else {
            return Err(InputError::NoExpectation {
                file: case.file.clone(),
                line: step.line,
            });
        };
        let bound = scene.bind(step);
        let outcome = Outcome::ask(bench.engine(), module, &bound);
        scene.settle(&bound, outcome.decision);
        let differences = outcome.differences(expect);
        let depends_on = (mutate && differences.is_empty())
            .then(|| dependencies(bench, module, &bound, &outcome));
        steps.push(Ran {
            file: case.file.clone(),
            line: step.line,
            name: case.step_name(at),
            outcome,
            differences,
            depends_on,
        });
    }
    Ok(steps)
}

/// The facts that change the decision when they alone are flipped.
fn dependencies(
    bench: &Workbench,
    module: &Module,
    bound: &Bound,
    outcome: &Outcome,
) -> Vec<&'static str> {
    let flips = mutate::flips(&bound.facts).into_iter();
    let mut facts: Vec<_> = flips
        .filter(|flip| {
            let flipped = Bound {
                facts: flip.facts.clone(),
                // Whether a call repeats another one is a fact of its fingerprint.
                is_repeated: bound.is_repeated && flip.fact != "fingerprint",
            };
            !Outcome::ask(bench.engine(), module, &flipped).decides_like(outcome)
        })
        .map(|flip| flip.fact)
        .collect();
    // One fact can be flipped in two ways.
    facts.sort_unstable();
    facts.dedup();
    facts
}

fn exit(results: &Results, arguments: &TestArguments) -> Exit {
    let wrong = |step: &Ran| !step.passed() || step.is_vacuous();
    if results.steps.iter().any(wrong) {
        Exit::Failed
    } else if arguments
        .min
        .is_some_and(|min| results.coverage.percent() < usize::from(min))
    {
        Exit::Uncovered
    } else {
        Exit::Passed
    }
}
