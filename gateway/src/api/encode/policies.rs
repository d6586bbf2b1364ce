//! What the plane of policies says, as messages.

use maka_policy_host::{module::Module, outcome::Outcome};
use maka_proto::v1;

use crate::{
    api::policies::mode,
    plane::{KnownPolicy, LastChange, Line, Origin, sentence},
};

pub(crate) fn known(policy: KnownPolicy) -> v1::KnownPolicy {
    let origin = match policy.origin {
        Origin::BuiltIn => v1::PolicyOrigin::BuiltIn,
        Origin::Loaded => v1::PolicyOrigin::Loaded,
        Origin::Configured => v1::PolicyOrigin::Configured,
    };
    v1::KnownPolicy {
        name: policy.name,
        version: policy.version,
        digest: policy.digest.to_string(),
        origin: origin.into(),
        signer: policy.signer.unwrap_or_default(),
        fixtures: u32::try_from(policy.fixtures).unwrap_or(u32::MAX),
        sets: policy.sets,
    }
}

pub(crate) fn last_change(last: &LastChange) -> v1::PolicyChange {
    let result = match last.fault {
        None => v1::PolicyChangeResult::Activated,
        Some(_) => v1::PolicyChangeResult::Refused,
    };
    let fault = last.fault.as_ref();
    v1::PolicyChange {
        result: result.into(),
        at_unix_ms: last.at_unix_ms,
        generation: last.generation,
        code: fault
            .map(|fault| fault.detail.unwrap_or(fault.code.as_str()).to_owned())
            .unwrap_or_default(),
        module: fault
            .and_then(|fault| fault.module.clone())
            .unwrap_or_default(),
        place: fault.map(|fault| fault.place.clone()).unwrap_or_default(),
    }
}

pub(crate) fn line(line: Line) -> v1::EvaluatedCall {
    let sentence = line
        .code
        .as_deref()
        .map(|code| sentence(code, line.by.as_ref()))
        .unwrap_or_default();
    v1::EvaluatedCall {
        hook: line.hook.to_owned(),
        method: line.method,
        modules: line.modules.iter().map(verdict).collect(),
        decision: line.decision.as_str().to_owned(),
        code: line.code.unwrap_or_default(),
        sentence,
        obligations: line.obligations,
    }
}

fn verdict((module, outcome): &(Module, Outcome)) -> v1::ModuleVerdict {
    let table = &module.manifest().rules;
    let doc = |id: &String| {
        let row = table.iter().find(|rule| rule.id == *id);
        row.map(|rule| rule.doc.clone()).unwrap_or_default()
    };
    v1::ModuleVerdict {
        name: module.name().to_owned(),
        digest: module.digest().to_string(),
        mode: mode(module.mode()).into(),
        decision: outcome.decision.as_str().to_owned(),
        sentence: outcome
            .code
            .as_deref()
            .map(|code| sentence(code, Some(module)))
            .unwrap_or_default(),
        code: outcome.code.clone().unwrap_or_default(),
        rules: outcome
            .rules
            .iter()
            .map(|id| v1::PolicyRule {
                id: id.clone(),
                doc: doc(id),
            })
            .collect(),
        obligations: outcome.obligations.clone(),
        asked: outcome.asked,
        fuel: outcome.fuel,
    }
}
