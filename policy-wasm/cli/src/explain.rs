//! `run`: one call explained, as the set of a gateway would judge it.

use std::fmt::Write as _;

use maka_policy_host::codes::{DenyCode, HostCode};
use maka_policy_host::combiner::{Combined, CombinedReview};
use maka_policy_host::fixture::{Bound, Decision};
use maka_policy_host::manifest::Hook;
use maka_policy_host::outcome::{Difference, Outcome, sorted};
use maka_policy_host::set::PolicySet;
use maka_policy_host::trial::{self, Together, Trial};
use serde_json::{Value, json};

use crate::command_line::RunArguments;
use crate::error::InputError;
use crate::fixture;
use crate::report::{Exit, Report, plain};
use crate::workbench::Workbench;

/// One step, explained.
struct Explained {
    name: String,
    hook: Hook,
    method: String,
    session: String,
    policies: Vec<Said>,
    together: Answer,
    /// Where the policy in question did not do what the fixture expects; nothing when it expects nothing.
    differences: Option<Vec<Difference>>,
}

/// What one policy said.
struct Said {
    name: String,
    outcome: Outcome,
    /// The rules it named, with what they demand.
    rules: Vec<(String, String)>,
}

/// What the set answers.
struct Answer {
    decision: Decision,
    code: Option<String>,
    /// The fixed sentence of the code, and when to try again.
    sentence: Option<(String, &'static str)>,
    obligations: Vec<String>,
}

/// Carries out the command.
///
/// # Errors
///
/// When policies or fixture cannot be worked with.
pub fn run(arguments: &RunArguments) -> Result<Report, InputError> {
    let bench = Workbench::new(&arguments.load)?;
    let rules = bench.rules(&arguments.policy)?;
    let case = fixture::choose(
        &arguments.fixture,
        fixture::read(&arguments.fixture, &rules)?,
        arguments.case.as_deref(),
    )?;
    let module = bench.load(&arguments.policy)?;
    let settings = match &case.settings {
        Some(settings) => settings.clone(),
        None => bench.settings()?,
    };
    let mut more = Vec::new();
    let floor = if module.is_floor() {
        bench.floor(&settings)?
    } else {
        let prepared = module
            .with_settings(bench.engine(), &settings)
            .map_err(|source| InputError::CaseSettings {
                file: case.file.clone(),
                line: case.line,
                source: Box::new(source),
            })?;
        more.push(prepared);
        bench.floor(&json!({}))?
    };
    // The one in question: right after the floor, or the floor itself.
    let under_test = more.len();
    for reference in &arguments.with {
        more.push(bench.load_with(reference, json!({}))?);
    }
    let set = PolicySet::new(bench.engine(), "default", &floor, more).map_err(|source| {
        InputError::Refused {
            policy: arguments.policy.to_string(),
            source: Box::new(source),
        }
    })?;

    let mut scene = case.scene();
    let mut steps = Vec::new();
    for (at, step) in case.steps.iter().enumerate() {
        let bound = scene.bind(step);
        let (trials, together) = trial::ask_all(bench.engine(), &set, &bound.facts);
        let policies = said(&set, trials, &bound);
        let differences = step
            .expect
            .as_ref()
            .map(|expect| policies[under_test].outcome.differences(expect));
        let together = answer(&set, together, bound.is_repeated);
        scene.settle(&bound, together.decision);
        let head = bound.facts.head();
        steps.push(Explained {
            name: case.step_name(at),
            hook: bound.facts.hook(),
            method: head.method.clone(),
            session: head.caller.session.clone(),
            policies,
            together,
            differences,
        });
    }
    let as_expected = steps
        .iter()
        .all(|step| step.differences.as_ref().is_none_or(Vec::is_empty));
    let exit = if as_expected {
        Exit::Passed
    } else {
        Exit::Failed
    };
    let out = if arguments.json {
        let steps: Vec<_> = steps.iter().map(Explained::json).collect();
        let value =
            json!({"schema": "maka.policy.run/1", "set": set.digest().to_string(), "steps": steps});
        format!("{value:#}\n")
    } else {
        steps
            .iter()
            .map(Explained::text)
            .collect::<Vec<_>>()
            .join("\n")
    };
    Ok(Report::new(out, exit))
}

fn said(set: &PolicySet, trials: Vec<Trial>, bound: &Bound) -> Vec<Said> {
    set.modules()
        .iter()
        .zip(trials)
        .map(|(module, trial)| {
            let table = &module.manifest().rules;
            let rules = trial
                .rules
                .iter()
                .filter_map(|rule| table.get(usize::from(*rule)))
                .map(|rule| (rule.id.clone(), rule.doc.clone()))
                .collect();
            Said {
                name: module.name().to_owned(),
                outcome: Outcome::of(module, trial, bound.is_repeated),
                rules,
            }
        })
        .collect()
}

fn answer(set: &PolicySet, together: Together, is_repeated: bool) -> Answer {
    let given = |decision, by: usize, code: &str| {
        let module = set.modules().get(by);
        let is_repeated = is_repeated && module.is_some_and(|module| module.is_floor());
        let code = trial::floor_code(code, is_repeated).to_owned();
        let own = module.and_then(|module| module.manifest().denial(&code));
        let sentence = match (own, DenyCode::parse(&code)) {
            (Some(row), _) => Some((row.sentence.clone(), row.retry.as_str())),
            (None, Some(code)) => Some((code.sentence().to_owned(), code.retry().as_str())),
            (None, None) => None,
        };
        Answer {
            decision,
            code: Some(code),
            sentence,
            obligations: Vec::new(),
        }
    };
    let fault = |code| {
        let code = DenyCode::Host(code);
        Answer {
            decision: Decision::Error,
            code: Some(code.as_str().to_owned()),
            sentence: Some((code.sentence().to_owned(), code.retry().as_str())),
            obligations: Vec::new(),
        }
    };
    let passes = |decision, obligations: &[_]| Answer {
        decision,
        code: None,
        sentence: None,
        obligations: sorted(obligations),
    };
    match together {
        Together::Admit(Combined::Allow(obligations)) => passes(Decision::Allow, &obligations),
        Together::Admit(Combined::Deny { by, code }) => given(Decision::Deny, by, &code),
        Together::Admit(Combined::RequireApproval { asking }) => match asking.first() {
            Some((by, code)) => given(Decision::RequireApproval, *by, code),
            // The combiner asks only when somebody does.
            None => fault(HostCode::PolicyInternal),
        },
        Together::Review(CombinedReview::Release(obligations)) => {
            passes(Decision::Release, &obligations)
        }
        Together::Review(CombinedReview::Withhold { by, code }) => {
            given(Decision::Withhold, by, &code)
        }
        Together::Review(CombinedReview::Quarantine { by, code }) => {
            given(Decision::Quarantine, by, &code)
        }
        Together::Admit(Combined::Fault(code)) | Together::Review(CombinedReview::Fault(code)) => {
            fault(code)
        }
    }
}

impl Explained {
    fn text(&self) -> String {
        let mut text = format!(
            "{}\n{} {} in session {}\n",
            plain(&self.name),
            self.hook.as_str(),
            plain(&self.method),
            plain(&self.session)
        );
        for said in &self.policies {
            let Outcome {
                fuel,
                memory_bytes,
                elapsed,
                ..
            } = said.outcome;
            push(
                &mut text,
                format_args!("\n{}  {}", said.name, said.outcome.phrase()),
            );
            if said.outcome.asked {
                push(
                    &mut text,
                    format_args!(
                        "  ({fuel} fuel, {} KiB, {} µs)\n",
                        memory_bytes >> 10,
                        elapsed.as_micros()
                    ),
                );
            } else {
                text.push_str("  (it does not declare this hook, so it was not asked)\n");
            }
            let width = said.rules.iter().map(|(id, _)| id.len()).max();
            for (id, doc) in &said.rules {
                let width = width.unwrap_or_default();
                push(&mut text, format_args!("  {id:<width$}  {doc}\n"));
            }
            for obligation in &said.outcome.obligations {
                push(&mut text, format_args!("  obligation {obligation}\n"));
            }
        }
        let answer = &self.together;
        push(
            &mut text,
            format_args!("\ntogether  {}", answer.decision.as_str()),
        );
        if let Some(code) = &answer.code {
            push(&mut text, format_args!(" {code}"));
        }
        text.push('\n');
        for obligation in &answer.obligations {
            push(&mut text, format_args!("  obligation {obligation}\n"));
        }
        if let Some((sentence, retry)) = &answer.sentence {
            push(&mut text, format_args!("  {sentence} (retry: {retry})\n"));
        }
        match self.differences.as_deref() {
            Some([]) => text.push_str("\nas the fixture expects\n"),
            Some(differences) => {
                text.push_str("\nnot as the fixture expects\n");
                for difference in differences {
                    push(
                        &mut text,
                        format_args!(
                            "  {}: expected {}, got {}\n",
                            difference.field, difference.expected, difference.got
                        ),
                    );
                }
            }
            None => {}
        }
        text
    }

    fn json(&self) -> Value {
        let policies: Vec<_> = self
            .policies
            .iter()
            .map(|said| {
                let outcome = &said.outcome;
                let rules: Vec<_> = said
                    .rules
                    .iter()
                    .map(|(id, doc)| json!({"id": id, "doc": doc}))
                    .collect();
                json!({
                    "name": said.name, "asked": outcome.asked, "decision": outcome.decision.as_str(),
                    "code": outcome.code, "rules": rules, "obligations": outcome.obligations,
                    "fuel": outcome.fuel, "memory_bytes": outcome.memory_bytes,
                    "us": u64::try_from(outcome.elapsed.as_micros()).unwrap_or(u64::MAX),
                })
            })
            .collect();
        let answer = &self.together;
        json!({
            "name": self.name, "hook": self.hook.as_str(), "method": self.method,
            "policies": policies,
            "together": {
                "decision": answer.decision.as_str(), "code": answer.code,
                "sentence": answer.sentence.as_ref().map(|(sentence, _)| sentence),
                "retry": answer.sentence.as_ref().map(|(_, retry)| retry),
                "obligations": answer.obligations,
            },
            "as_expected": self.differences.as_ref().map(Vec::is_empty),
        })
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string");
}
