//! `replay`: the decisions of a capture once more, by the policies that made them or by others.
//!
//! The components are not in a capture. Built-in ones are found by their digest, others among the files that are named;
//! settings are those of the capture. Time limits are not part of a comparison: what a slow machine ended is left out, and
//! said to be.

use std::sync::Arc;

use maka_policy_host::capture::{
    Capture, Ended, Line, MAX_BYTES, Recorded, RecordedModule, RecordedSet, Replayed, Together,
    replay,
};
use maka_policy_host::digest::Digest;
use maka_policy_host::limits::{Allowance, MAX_COMPILE_MS, MAX_MODULE_BYTES};
use maka_policy_host::manifest::KNOWN_FACTS;
use maka_policy_host::module::{Mode, Module, ModuleSource};
use maka_policy_host::prebuilt::{Prebuilt, floor_digest};
use maka_policy_host::set::PolicySet;
use serde_json::{Value, json};

use crate::command_line::ReplayArguments;
use crate::error::InputError;
use crate::key::read_capture_secret;
use crate::reference::{Reference, read_file};
use crate::report::{Exit, Report, plain};
use crate::workbench::Workbench;

/// Where an answer is not the recorded one.
struct Difference {
    field: String,
    recorded: String,
    now: String,
}

/// A decision that would be another one.
struct Differing<'a> {
    recorded: &'a Recorded,
    differences: Vec<Difference>,
}

/// What came of a replay.
struct Counts {
    compared: usize,
    left_out: usize,
    fuel_recorded: u64,
    fuel_now: u64,
}

/// Asks every decision of a capture again, and says which would differ.
///
/// # Errors
///
/// When capture, key or policies cannot be worked with.
pub fn run(arguments: &ReplayArguments) -> Result<Report, InputError> {
    let secret = read_capture_secret(&arguments.key)?;
    // A file ends with its last row, a little after it is full.
    let file = read_file(&arguments.capture, MAX_BYTES + (64 << 20))?;
    let capture = Capture::read(&file, &secret).map_err(|source| InputError::Capture {
        path: arguments.capture.clone(),
        source,
    })?;
    let bench = Workbench::new(&arguments.load)?;
    let sets = Sets::new(&bench, arguments)?.of(&capture)?;

    let mut counts = Counts {
        compared: 0,
        left_out: 0,
        fuel_recorded: 0,
        fuel_now: 0,
    };
    let mut differing = Vec::new();
    for recorded in &capture.decisions {
        let was = &capture.sets[recorded.set];
        let Some(before) = recorded.together().filter(|_| recorded.is_comparable()) else {
            counts.left_out += 1;
            continue;
        };
        let set = &sets[recorded.set];
        let now = replay(bench.engine(), set, was, recorded);
        counts.compared += 1;
        let fuel = |lines: &[Line]| lines.iter().map(|line| line.fuel).sum::<u64>();
        counts.fuel_recorded += fuel(recorded.said());
        counts.fuel_now += fuel(&now.said);
        let differences = differences(before, recorded, was, set, &now);
        if !differences.is_empty() {
            differing.push(Differing {
                recorded,
                differences,
            });
        }
    }
    let exit = if differing.is_empty() && counts.compared > 0 {
        Exit::Passed
    } else {
        Exit::Failed
    };
    let out = if arguments.json {
        format!("{}\n", as_json(&capture, &counts, &differing))
    } else {
        as_text(&capture, &counts, &differing)
    };
    Ok(Report::new(out, exit))
}

/// Makes the sets to ask.
struct Sets<'a> {
    bench: &'a Workbench,
    against: Vec<Module>,
    components: Vec<(Digest, Arc<[u8]>)>,
    loaded: Vec<(Digest, Value, Module)>,
}

impl<'a> Sets<'a> {
    fn new(bench: &'a Workbench, arguments: &ReplayArguments) -> Result<Self, InputError> {
        let read = |reference: &Reference| {
            let bytes = reference.read(MAX_MODULE_BYTES)?;
            Ok((Digest::of(&bytes), bytes))
        };
        let mut components = arguments
            .with
            .iter()
            .map(read)
            .collect::<Result<Vec<_>, InputError>>()?;
        let built_in = Prebuilt::ALL.iter().map(|prebuilt| prebuilt.bytes().into());
        components.extend(built_in.map(|bytes: Arc<[u8]>| (Digest::of(&bytes), bytes)));
        Ok(Self {
            bench,
            against: arguments
                .against
                .iter()
                .map(|reference| bench.load(reference))
                .collect::<Result<_, _>>()?,
            components,
            loaded: Vec::new(),
        })
    }

    fn of(mut self, capture: &Capture) -> Result<Vec<PolicySet>, InputError> {
        capture.sets.iter().map(|set| self.set(set)).collect()
    }

    fn set(&mut self, recorded: &RecordedSet) -> Result<PolicySet, InputError> {
        let (first, more) = recorded.modules.split_first().ok_or(InputError::NoFloor)?;
        let is_ours = first.digest == floor_digest();
        // A new policy is for this product's floor; the recorded set is for the floor it had.
        if !is_ours && self.against.is_empty() {
            return Err(missing(first));
        }
        let floor = self.bench.floor(&first.settings)?;
        let more = if self.against.is_empty() {
            let enforcing = more.iter().filter(|module| module.mode == Mode::Enforce);
            enforcing
                .map(|module| self.load(module))
                .collect::<Result<_, _>>()?
        } else {
            self.against.clone()
        };
        PolicySet::new(self.bench.engine(), &recorded.name, &floor, more).map_err(|source| {
            InputError::Refused {
                policy: plain(&recorded.name),
                source: Box::new(source),
            }
        })
    }

    fn load(&mut self, recorded: &RecordedModule) -> Result<Module, InputError> {
        let known = self.loaded.iter().find(|(digest, settings, _)| {
            *digest == recorded.digest && *settings == recorded.settings
        });
        if let Some((_, _, module)) = known {
            return Ok(module.clone());
        }
        let component = self
            .components
            .iter()
            .find(|(it, _)| *it == recorded.digest);
        let (digest, bytes) = component.ok_or_else(|| missing(recorded))?;
        // What it asks for was given to it, or it would not have judged.
        let policy = Reference::File(recorded.name.clone().into());
        let manifest = self.bench.manifest(&policy, bytes)?;
        let source = ModuleSource {
            name: recorded.name.clone(),
            bytes: Arc::clone(bytes),
            pin: *digest,
            settings: recorded.settings.clone(),
            mode: Mode::Enforce,
            allowance: Allowance {
                facts: KNOWN_FACTS.iter().map(|fact| (*fact).to_owned()).collect(),
                fuel: Some(manifest.fuel),
                memory_bytes: Some(manifest.memory_bytes),
                module_bytes: Some(MAX_MODULE_BYTES),
                compile_ms: Some(MAX_COMPILE_MS),
            },
        };
        let module =
            Module::load(self.bench.engine(), source).map_err(|source| InputError::Refused {
                policy: plain(&recorded.name),
                source: Box::new(source),
            })?;
        let settings = recorded.settings.clone();
        self.loaded.push((*digest, settings, module.clone()));
        Ok(module)
    }
}

fn missing(module: &RecordedModule) -> InputError {
    InputError::NoComponent {
        name: plain(&module.name),
        version: plain(&module.version),
        digest: module.digest,
    }
}

fn differences(
    before: &Together,
    recorded: &Recorded,
    was: &RecordedSet,
    set: &PolicySet,
    now: &Replayed,
) -> Vec<Difference> {
    let code = |code: &Option<String>| code.clone().unwrap_or_else(|| "none".to_owned());
    let list = |items: &[String]| format!("[{}]", items.join(", "));
    let mut rows = vec![
        (
            "decision".to_owned(),
            before.decision.clone(),
            now.together.decision.clone(),
        ),
        (
            "code".to_owned(),
            code(&before.code),
            code(&now.together.code),
        ),
        (
            "obligations".to_owned(),
            list(&before.obligations),
            list(&now.together.obligations),
        ),
    ];
    // Of modules that are in both; what another one says for itself is the point of the comparison.
    for old in recorded.said() {
        let Some(new) = now.said.iter().find(|line| line.module == old.module) else {
            continue;
        };
        let digest_now = set.modules().iter().find(|it| it.name() == old.module);
        let digest_then = was.modules.iter().find(|it| it.name == old.module);
        let field = |what: &str| format!("{what} of {}", old.module);
        rows.push((
            field("decision"),
            old.decision.clone(),
            new.decision.clone(),
        ));
        rows.push((field("code"), code(&old.code), code(&new.code)));
        rows.push((field("rules"), list(&old.rules), list(&new.rules)));
        rows.push((
            field("obligations"),
            list(&old.obligations),
            list(&new.obligations),
        ));
        if digest_now.map(Module::digest) == digest_then.map(|module| module.digest) {
            rows.push((field("fuel"), old.fuel.to_string(), new.fuel.to_string()));
        }
    }
    rows.into_iter()
        .filter(|(_, recorded, now)| recorded != now)
        .map(|(field, recorded, now)| Difference {
            field,
            recorded,
            now,
        })
        .collect()
}

fn as_text(capture: &Capture, counts: &Counts, differing: &[Differing<'_>]) -> String {
    let mut out = String::new();
    for Differing {
        recorded,
        differences,
    } in differing
    {
        let line = format!(
            "differs: {} {} {}",
            recorded.hook(),
            recorded.method(),
            recorded.id()
        );
        out.push_str(&format!("{}\n", plain(&line)));
        for Difference {
            field,
            recorded,
            now,
        } in differences
        {
            let line = format!("{field}: recorded {recorded}, now {now}");
            out.push_str(&format!("  {}\n", plain(&line)));
        }
    }
    out.push_str(&format!(
        "{} of {} decisions would differ\nfuel: recorded {}, now {}\n",
        differing.len(),
        counts.compared,
        counts.fuel_recorded,
        counts.fuel_now
    ));
    for (count, why) in [
        (
            counts.left_out as u64,
            "not compared: no policy was asked, or the machine was too slow",
        ),
        (
            capture.dropped,
            "not in the capture: there was no room for them",
        ),
    ] {
        if count > 0 {
            out.push_str(&format!("{count} {why}\n"));
        }
    }
    if capture.ended != Ended::Time {
        out.push_str(&format!(
            "the capture ended early: {}\n",
            capture.ended.as_str()
        ));
    }
    out
}

fn as_json(capture: &Capture, counts: &Counts, differing: &[Differing<'_>]) -> Value {
    let differing: Vec<_> = differing
        .iter()
        .map(|row| {
            let differences: Vec<_> = row
                .differences
                .iter()
                .map(|it| json!({"field": it.field, "recorded": it.recorded, "now": it.now}))
                .collect();
            json!({
                "id": row.recorded.id(), "hook": row.recorded.hook(), "method": row.recorded.method(),
                "effective": row.recorded.effective(), "differences": differences,
            })
        })
        .collect();
    json!({
        "schema": "maka.policy.replay/1", "decisions": capture.decisions.len(), "compared": counts.compared,
        "left_out": counts.left_out, "dropped": capture.dropped, "ended": capture.ended.as_str(),
        "fuel": {"recorded": counts.fuel_recorded, "now": counts.fuel_now}, "differing": differing,
    })
}
