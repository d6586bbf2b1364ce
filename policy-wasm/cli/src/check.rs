//! `check`: whether a gateway would load this policy, and what to write instead where it would not.

use std::fmt::Write as _;

use maka_policy_host::module::LoadError;
use serde_json::json;

use crate::advice::Advice;
use crate::command_line::CheckArguments;
use crate::error::InputError;
use crate::report::{Exit, Report, chain, plain};
use crate::workbench::Workbench;

/// Carries out the command.
///
/// # Errors
///
/// When the file cannot be read. A policy that is refused is a result, with exit code 2.
pub fn run(arguments: &CheckArguments) -> Result<Report, InputError> {
    let bench = Workbench::new(&arguments.load)?;
    let policy = &arguments.policy;
    match bench.load(policy) {
        Ok(module) => {
            let manifest = module.manifest();
            let out = if arguments.json {
                line(&json!({
                    "schema": "maka.policy.check/1", "accepted": true, "name": manifest.name,
                    "version": manifest.version, "digest": module.digest().to_string(),
                }))
            } else {
                format!(
                    "accepted: {} {} {}\n",
                    manifest.name,
                    manifest.version,
                    module.digest()
                )
            };
            Ok(Report::new(out, Exit::Passed))
        }
        Err(InputError::Refused {
            policy: name,
            source,
        }) => {
            let mut advice = Advice::of(&source);
            if let LoadError::Imports = *source {
                let surface = bench.surface(policy, bench.read(policy)?)?;
                advice.place = list(&surface.imports);
            } else if let LoadError::Exports = *source {
                let surface = bench.surface(policy, bench.read(policy)?)?;
                advice.place = list(&surface.exports);
            }
            let reason = chain(&*source);
            let mut report = Report::new(String::new(), Exit::BadInput);
            if arguments.json {
                report.out = line(&json!({
                    "schema": "maka.policy.check/1", "accepted": false, "code": advice.code,
                    "reason": reason.trim_end(), "where": advice.place, "instead": advice.instead,
                }));
            } else {
                write!(report.err, "refused: {name}: {reason}{}", advice.lines())
                    .expect("writing to a string");
            }
            Ok(report)
        }
        Err(error) => Err(error),
    }
}

/// Names that come from a component: quoted, and only so many that a person reads them.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<_> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{}`", plain(name)))
        .collect();
    if names.len() > SHOWN {
        shown.push(format!("and {} more", names.len() - SHOWN));
    }
    if shown.is_empty() {
        "nothing".to_owned()
    } else {
        shown.join(", ")
    }
}

fn line(value: &serde_json::Value) -> String {
    format!("{value}\n")
}
