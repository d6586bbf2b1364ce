//! `bench`: what calls cost a policy: fuel, which is exact, and time and memory, which are this machine's.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use maka_policy_host::engine::Engine;
use maka_policy_host::fixture::Bound;
use maka_policy_host::module::Module;
use maka_policy_host::outcome::Outcome;
use serde_json::json;

use crate::command_line::BenchArguments;
use crate::error::InputError;
use crate::fixture;
use crate::report::{Exit, Report, plain};
use crate::workbench::Workbench;

/// Runs that are not counted: they bring pages and caches in.
const WARM_UP: u32 = 20;

/// One step, measured.
struct Measured {
    name: String,
    outcome: Outcome,
    /// The least and the most fuel of all runs; one number, unless the policy is broken.
    fuel: (u64, u64),
    p50: Duration,
    p99: Duration,
    /// Another run decided otherwise.
    wavers: bool,
}

impl Measured {
    fn is_steady(&self) -> bool {
        self.fuel.0 == self.fuel.1 && !self.wavers
    }
}

/// Carries out the command.
///
/// # Errors
///
/// When policy or fixture cannot be worked with. A policy that does not always say the same is a result.
pub fn run(arguments: &BenchArguments) -> Result<Report, InputError> {
    let bench = Workbench::new(&arguments.load)?;
    let mut cases = fixture::read(&arguments.fixture, &bench.rules(&arguments.policy)?)?;
    if arguments.case.is_some() {
        cases = vec![fixture::choose(
            &arguments.fixture,
            cases,
            arguments.case.as_deref(),
        )?];
    }
    let began = Instant::now();
    let mut policies = bench.policies(&arguments.policy)?;
    let loaded = began.elapsed();
    let mut rows = Vec::new();
    for case in &cases {
        let module = policies.with(case)?;
        let mut scene = case.scene();
        for (at, step) in case.steps.iter().enumerate() {
            let bound = scene.bind(step);
            let row = measure(
                bench.engine(),
                &module,
                &bound,
                arguments.runs,
                case.step_name(at),
            );
            scene.settle(&bound, row.outcome.decision);
            rows.push(row);
        }
    }
    let exit = if rows.iter().all(Measured::is_steady) {
        Exit::Passed
    } else {
        Exit::Failed
    };
    let out = if arguments.json {
        json(policies.base(), loaded, arguments.runs, &rows)
    } else {
        text(policies.base(), loaded, arguments.runs, &rows)
    };
    Ok(Report::new(out, exit))
}

fn measure(engine: &Engine, module: &Module, bound: &Bound, runs: u32, name: String) -> Measured {
    let outcome = Outcome::ask(engine, module, bound);
    for _ in 1..WARM_UP {
        drop(Outcome::ask(engine, module, bound));
    }
    let mut fuel = (outcome.fuel, outcome.fuel);
    let mut wavers = false;
    let mut times = Vec::new();
    for _ in 0..runs {
        let again = Outcome::ask(engine, module, bound);
        fuel = (fuel.0.min(again.fuel), fuel.1.max(again.fuel));
        wavers |= !again.decides_like(&outcome) || again.rules != outcome.rules;
        times.push(again.elapsed);
    }
    times.sort_unstable();
    let at = |percent: usize| {
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(index).copied().unwrap_or_default()
    };
    Measured {
        name,
        fuel,
        p50: at(50),
        p99: at(99),
        wavers,
        outcome,
    }
}

fn text(policy: &Module, loaded: Duration, runs: u32, rows: &[Measured]) -> String {
    let mut text = format!(
        "{} {}: loaded in {} ms, {runs} runs of each call, each in a fresh instance\n\n{:>9} {:>9} {:>9} {:>8}  call\n",
        policy.name(),
        policy.manifest().version,
        loaded.as_millis(),
        "fuel",
        "p50 µs",
        "p99 µs",
        "KiB",
    );
    for row in rows {
        push(
            &mut text,
            format_args!(
                "{:>9} {:>9} {:>9} {:>8}  {} ({})\n",
                row.fuel.1,
                row.p50.as_micros(),
                row.p99.as_micros(),
                row.outcome.memory_bytes >> 10,
                plain(&row.name),
                row.outcome.phrase(),
            ),
        );
        if !row.is_steady() {
            push(
                &mut text,
                format_args!(
                    "          NOT STEADY: fuel from {} to {}; the same facts have to give the same verdict for the same fuel\n",
                    row.fuel.0, row.fuel.1
                ),
            );
        }
    }
    text
}

fn json(policy: &Module, loaded: Duration, runs: u32, rows: &[Measured]) -> String {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name, "decision": row.outcome.decision.as_str(), "code": row.outcome.code,
                "steady": row.is_steady(), "fuel": row.fuel.1, "p50_us": micros(row.p50), "p99_us": micros(row.p99),
                "memory_bytes": row.outcome.memory_bytes,
            })
        })
        .collect();
    let value = json!({
        "schema": "maka.policy.bench/1", "runs": runs,
        "load_ms": u64::try_from(loaded.as_millis()).unwrap_or(u64::MAX),
        "policy": {"name": policy.name(), "version": policy.manifest().version, "digest": policy.digest().to_string()},
        "calls": rows,
    });
    format!("{value}\n")
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string");
}
