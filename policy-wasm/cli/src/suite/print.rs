//! The report of a test run, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Ran, Results};
use crate::command_line::TestArguments;
use crate::report::{Exit, plain};

/// For people: what failed in full, what passed on one line each, the sum at the end.
pub(super) fn text(results: &Results, arguments: &TestArguments) -> String {
    let mut text = String::new();
    for step in &results.steps {
        step_text(&mut text, step);
    }
    let failed = results.steps.iter().filter(|step| !step.passed()).count();
    push(
        &mut text,
        format_args!(
            "\n{} steps, {} passed, {failed} failed\n",
            results.steps.len(),
            results.steps.len() - failed
        ),
    );
    if arguments.mutate {
        let vacuous = results
            .steps
            .iter()
            .filter(|step| step.is_vacuous())
            .count();
        push(
            &mut text,
            format_args!("{vacuous} steps whose verdict depends on no fact\n"),
        );
    }
    if arguments.coverage || arguments.min.is_some() {
        coverage_text(&mut text, results, arguments);
    }
    text
}

fn step_text(text: &mut String, step: &Ran) {
    let word = if step.passed() { "ok  " } else { "FAIL" };
    push(
        text,
        format_args!(
            "{word}  {}:{}  {}\n",
            step.file.display(),
            step.line,
            plain(&step.name)
        ),
    );
    for difference in &step.differences {
        push(
            text,
            format_args!(
                "      {}: expected {}, got {}\n",
                difference.field, difference.expected, difference.got
            ),
        );
    }
    match step.depends_on.as_deref() {
        Some([]) => text.push_str(
            "      depends on no fact: it passes for a policy that always says the same; name a fact that matters\n",
        ),
        Some(facts) => push(text, format_args!("      depends on {}\n", facts.join(", "))),
        None => {}
    }
}

fn coverage_text(text: &mut String, results: &Results, arguments: &TestArguments) {
    let coverage = &results.coverage;
    push(
        text,
        format_args!(
            "coverage {} of {} rules, {} %\n",
            coverage.covered(),
            coverage.rules.len(),
            coverage.percent()
        ),
    );
    for hits in &coverage.rules {
        let missing = match (hits.allowing, hits.refusing) {
            (0, 0) => "no passing case names it",
            (0, _) => "no passing case that allows names it",
            (_, 0) => "no passing case that refuses names it",
            (_, _) => continue,
        };
        push(text, format_args!("  {}: {missing}\n", hits.id));
    }
    if let Some(min) = arguments.min
        && coverage.percent() < usize::from(min)
    {
        push(
            text,
            format_args!("coverage is under the minimum of {min} %\n"),
        );
    }
}

/// For programs: one object.
pub(super) fn json(results: &Results, arguments: &TestArguments, exit: Exit) -> String {
    let steps: Vec<_> = results.steps.iter().map(step_json).collect();
    let failed = results.steps.iter().filter(|step| !step.passed()).count();
    let rules: Vec<_> = results
        .coverage
        .rules
        .iter()
        .map(|hits| json!({"id": hits.id, "allowing": hits.allowing, "refusing": hits.refusing}))
        .collect();
    let value = json!({
        "schema": "maka.policy.test/1",
        "policy": {"name": results.policy.name(), "version": results.policy.manifest().version,
                   "digest": results.policy.digest().to_string()},
        "passed": results.steps.len() - failed, "failed": failed, "exit": exit.status(),
        "coverage": {"covered": results.coverage.covered(), "rules": rules,
                     "percent": results.coverage.percent(), "min": arguments.min},
        "steps": steps,
    });
    format!("{value}\n")
}

fn step_json(step: &Ran) -> Value {
    let outcome = &step.outcome;
    let differences: Vec<_> = step
        .differences
        .iter()
        .map(|difference| {
            json!({"field": difference.field, "expected": difference.expected, "got": difference.got})
        })
        .collect();
    json!({
        "file": step.file.display().to_string(), "line": step.line, "name": step.name,
        "passed": step.passed(), "decision": outcome.decision.as_str(), "code": outcome.code,
        "rules": outcome.rules, "obligations": outcome.obligations, "fuel": outcome.fuel,
        "us": u64::try_from(outcome.elapsed.as_micros()).unwrap_or(u64::MAX),
        "differences": differences, "depends_on": step.depends_on,
    })
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string");
}
