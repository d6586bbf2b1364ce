//! Modules of a set, their settings and digests.

use maka_policy_host::{
    canonical,
    digest::Digest,
    limits::{MAX_FUEL, MAX_MEMORY_BYTES},
    manifest::KNOWN_FACTS,
    module::Mode,
};
use maka_proto::v1;
use serde_json::Value;

use super::{scalar::UNKNOWN_MEMBER, violations::Violations};
use crate::plane::ModuleChoice;

/// More than any set can have.
const MAX_MODULES: usize = 16;
/// More than any settings can have.
const MAX_SETTINGS_BYTES: usize = 64 << 10;

/// The modules of a set, in order.
pub(crate) fn modules(
    violations: &mut Violations,
    field: &str,
    modules: Vec<v1::ModuleChoice>,
) -> Option<Vec<ModuleChoice>> {
    if modules.len() > MAX_MODULES {
        return violations.refuse(field, "must have at most 16 members");
    }
    let mut decoded = Vec::new();
    for (at, choice) in modules.into_iter().enumerate() {
        decoded.push(module(violations, &format!("{field}[{at}]"), choice));
    }
    decoded.into_iter().collect()
}

fn module(violations: &mut Violations, at: &str, choice: v1::ModuleChoice) -> Option<ModuleChoice> {
    let v1::ModuleChoice {
        digest: named,
        mode,
        settings_json,
        grant_facts,
        max_fuel,
        max_memory_mib,
    } = choice;
    let digest = digest(violations, &format!("{at}.digest"), &named);
    let mode = match v1::PolicyMode::try_from(mode) {
        Ok(v1::PolicyMode::Unspecified | v1::PolicyMode::Enforce) => Some(Mode::Enforce),
        Ok(v1::PolicyMode::Monitor) => Some(Mode::Monitor),
        Err(_) => violations.refuse(format!("{at}.mode"), UNKNOWN_MEMBER),
    };
    let settings = settings(violations, &format!("{at}.settings_json"), &settings_json);
    let is_known = |fact: &String| KNOWN_FACTS.contains(&fact.as_str());
    if grant_facts.len() > KNOWN_FACTS.len() || !grant_facts.iter().all(is_known) {
        violations.add(format!("{at}.grant_facts"), "must be `typed-text` or empty");
    }
    if max_fuel > MAX_FUEL {
        violations.add(format!("{at}.max_fuel"), "must be at most 200000000");
    }
    let max_memory = u64::from(max_memory_mib) << 20;
    if max_memory > MAX_MEMORY_BYTES {
        violations.add(format!("{at}.max_memory_mib"), "must be at most 64");
    }
    Some(ModuleChoice {
        digest: digest?.to_string(),
        mode: mode?,
        settings: settings?,
        grant_facts,
        max_fuel: (max_fuel > 0).then_some(max_fuel),
        max_memory_bytes: (max_memory > 0).then_some(max_memory),
    })
}

/// A digest as text.
pub(crate) fn digest(violations: &mut Violations, field: &str, text: &str) -> Option<Digest> {
    match text.parse() {
        Ok(digest) => Some(digest),
        Err(_) => violations.refuse(field, "must be `sha256:` and 64 lower-case hex digits"),
    }
}

/// Settings as JSON text; empty for none.
pub(crate) fn settings(violations: &mut Violations, field: &str, text: &str) -> Option<Value> {
    if text.is_empty() {
        return Some(Value::Object(serde_json::Map::new()));
    }
    if text.len() > MAX_SETTINGS_BYTES {
        return violations.refuse(field, "must have at most 65536 bytes");
    }
    // Not by an ordinary parser: of a key that is there twice, somebody would have read the other value.
    match canonical::parse(text) {
        Ok(settings @ Value::Object(_)) => Some(settings),
        Ok(_) | Err(_) => violations.refuse(field, "must be a JSON object, each key once"),
    }
}
