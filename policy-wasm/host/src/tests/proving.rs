//! What a candidate has to show before it judges, and how a change is recorded.

use std::sync::Arc;

use serde_json::json;

use super::guest::{Guest, NAME};
use super::support::{Bench, load, load_with, prebuilt, shared};
use crate::bundle::{Bundle, BundleError, fixtures_digest};
use crate::digest::Digest;
use crate::judge::{ActivateError, JudgeOptions};
use crate::key::SecretKey;
use crate::limits::Allowance;
use crate::log::Trigger;
use crate::manifest::{self, ManifestError};
use crate::module::{LoadError, Mode, Module, ModuleSource};
use crate::proof;
use crate::set::PolicySet;

const CASE: &str = "schema: maka.policy.fixture/1\nname: look\n\
                    call: {hook: admit-dispatch, method: observe}\nexpect: {decision: allow, rules: []}\n";

fn files(content: &str) -> Vec<(String, Vec<u8>)> {
    vec![("a.yaml".to_owned(), content.as_bytes().to_vec())]
}

fn set(more: Vec<Module>) -> Arc<PolicySet> {
    let (engine, floor) = shared();
    Arc::new(PolicySet::new(engine, "default", floor, more).unwrap())
}

#[test]
fn a_set_answers_the_corpus_or_is_refused() {
    let (engine, _) = shared();
    for name in ["allow-all", "deny-all"] {
        proof::set(engine, &set(vec![load(name, prebuilt(name)).unwrap()])).unwrap();
    }
    let rows = [
        ("(unreachable)", "policy_trap"),
        ("(loop (br 0)) (unreachable)", "policy_fuel"),
    ];
    for (body, code) in rows {
        for mode in [Mode::Enforce, Mode::Monitor] {
            let guest = Guest::admitting(body).build();
            let module = load_with(NAME, guest, json!({}), mode).unwrap();
            let error = proof::set(engine, &set(vec![module])).unwrap_err();
            assert_eq!((error.code(), error.module()), ("corpus", Some(NAME)));
            assert!(error.to_string().ends_with(code), "{error}");
        }
    }
}

#[test]
fn fixtures_pass_or_say_where_they_do_not() {
    let (engine, _) = shared();
    let deny = load("deny-all", prebuilt("deny-all")).unwrap();
    let good = CASE.replace(
        "decision: allow, rules: []",
        "decision: deny, code: deny_all, rules: [deny.all]",
    );
    proof::fixtures(engine, &deny, &files(&good)).unwrap();
    let rows = [
        (good.replace("[deny.all]", "[nothing]"), "fixture_unusable"),
        (good.replace("[deny.all]", "[]"), "fixture_failed"),
        (CASE.to_owned(), "fixture_failed"),
        (good.replace("expect:", "#"), "fixture_unusable"),
        (
            good.replace("call:", "settings: {a: 1}\ncall:"),
            "fixture_unusable",
        ),
        ("nothing of the kind".to_owned(), "fixture_unusable"),
    ];
    for (text, code) in rows {
        let error = proof::fixtures(engine, &deny, &files(&text)).unwrap_err();
        assert_eq!(error.code(), code, "{text}");
        assert!(error.place().starts_with("a.yaml:"), "{}", error.place());
    }
}

/// Signing writes the digest of the fixtures into the manifest; the component stays what it was otherwise.
#[test]
fn a_bundle_names_its_fixtures() {
    let guest = Guest::default().build();
    let fixtures = files(CASE);
    let bundle = Bundle::of(&guest, fixtures.clone()).unwrap();
    let module = load(NAME, bundle.policy().to_vec()).unwrap();
    assert_eq!(
        module.manifest().fixtures_digest,
        Some(fixtures_digest(&fixtures))
    );
    assert_ne!(Digest::of(bundle.policy()), Digest::of(&guest));
    let key = SecretKey::from_seed(&[3; 32]);
    let file = bundle.sign(&key).unwrap();
    let verified = Bundle::verify(&file, &[key.public()]).unwrap();
    assert_eq!(verified.fixtures, fixtures);
    // Signed again, it is the same; with other fixtures it is none.
    assert_eq!(Bundle::of(bundle.policy(), fixtures).unwrap(), bundle);
    let other = Bundle::of(bundle.policy(), files("other"));
    assert_eq!(other, Err(BundleError::Fixtures));
    let stranger = SecretKey::from_seed(&[4; 32]).public();
    assert_eq!(
        Bundle::verify(&file, &[stranger]).unwrap_err(),
        BundleError::Untrusted
    );
}

/// Whatever its length, a manifest takes the place of another and nothing else changes.
#[test]
fn a_manifest_takes_the_place_of_another() {
    let guest = Guest::default().build();
    let old = manifest::section(&guest).unwrap().to_vec();
    for length in [0, 1, 100, 127, 128, 129, 16_383, 16_384, 100_000] {
        let fresh = vec![b' '; length];
        let changed = manifest::replace_section(&guest, &fresh).unwrap();
        assert_eq!(manifest::section(&changed).unwrap(), fresh, "{length}");
        let back = manifest::replace_section(&changed, &old).unwrap();
        assert_eq!(back, guest, "{length}");
    }
}

/// What an operator gives to one policy alone, up to the ceiling and not beyond.
#[test]
fn an_allowance_is_for_one_policy_and_has_a_ceiling() {
    let asking = |fuel: u64, memory: u64, facts: &str| {
        let text = super::guest::manifest("")
            .replace("\"fuel\":1000000", &format!("\"fuel\":{fuel}"))
            .replace("\"memory_mib\":2", &format!("\"memory_mib\":{memory}"))
            .replace("\"facts\":[]", &format!("\"facts\":[{facts}]"));
        Guest {
            manifest: text,
            ..Guest::default()
        }
        .build()
    };
    let load = |bytes: Vec<u8>, allowance: Allowance| {
        let source = ModuleSource {
            name: NAME.to_owned(),
            pin: Digest::of(&bytes),
            bytes: bytes.into(),
            settings: json!({}),
            mode: Mode::Enforce,
            allowance,
        };
        Module::load(&shared().0, source).map(drop)
    };
    let refused = |result: Result<(), LoadError>| match result {
        Err(LoadError::Manifest(error)) => Some(error.code()),
        Err(error) => panic!("{error}"),
        Ok(()) => None,
    };
    let much = Allowance {
        facts: vec!["typed-text".to_owned()],
        fuel: Some(u64::MAX),
        memory_bytes: Some(u64::MAX),
        module_bytes: Some(u64::MAX),
        compile_ms: Some(u64::MAX),
    };
    let none = Allowance::default;
    let rows = [
        (asking(20_000_000, 16, ""), none(), None),
        (asking(20_000_001, 16, ""), none(), Some("limits")),
        (asking(20_000_000, 17, ""), none(), Some("limits")),
        (
            asking(1, 1, "\"typed-text\""),
            none(),
            Some("fact_not_granted"),
        ),
        (
            asking(200_000_000, 64, "\"typed-text\""),
            much.clone(),
            None,
        ),
        (asking(200_000_001, 64, ""), much.clone(), Some("limits")),
        (asking(200_000_000, 65, ""), much, Some("limits")),
    ];
    for (at, (bytes, allowance, expected)) in rows.into_iter().enumerate() {
        if expected.is_none() && at == 0 {
            assert_eq!(refused(load(bytes, allowance)), expected);
            continue;
        }
        match load(bytes, allowance) {
            // So little fuel that it cannot run is another matter than being refused for what it asks.
            Err(LoadError::Prepare(_) | LoadError::FirstDecision(_)) => assert_eq!(expected, None),
            result => assert_eq!(refused(result), expected, "row {at}"),
        }
    }
    assert_eq!(ManifestError::LimitExceeded.pointer(), "/limits");
}

/// A change is on record before it counts, or it does not happen.
#[test]
fn a_change_is_recorded_or_does_not_happen() {
    let deny = |mode| load_with("deny-all", prebuilt("deny-all"), json!({}), mode).unwrap();
    let bench = Bench::idle(JudgeOptions::default());
    let judge = &bench.judge;
    let first = set(vec![deny(Mode::Enforce)]);
    assert_eq!(
        judge
            .reload(vec![Arc::clone(&first)], Trigger::Start)
            .unwrap(),
        1
    );
    let record = bench.last();
    assert_eq!(record["schema"], "maka.policy.reload/1");
    assert_eq!(record["sets"][0]["set"], first.digest().to_string());
    assert!(record["demoted"].is_null());

    judge
        .reload(vec![set(vec![deny(Mode::Monitor)])], Trigger::Call("root"))
        .unwrap();
    let record = bench.last();
    assert_eq!(record["demoted"], json!(["default/deny-all"]));
    assert_eq!(record["principal"], "root");

    judge.reload_refused(Trigger::Signal, "settings", Some("m"), "/a\u{1b}[2J");
    let record = bench.last();
    assert_eq!(
        (&record["result"], &record["generation"]),
        (&json!("refused"), &json!(2))
    );
    assert_eq!(record["place"], "/a\u{fffd}[2J");

    assert_eq!(judge.reload(Vec::new(), Trigger::Call("root")).unwrap(), 3);
    assert_eq!(bench.last()["result"], "deactivated");
    assert!(judge.active().unwrap().sets.is_empty());

    judge.log().fail_sync();
    let error = judge.reload(vec![first], Trigger::Signal).unwrap_err();
    assert!(matches!(error, ActivateError::Unrecorded), "{error}");
    assert_eq!((judge.generation(), judge.active_sets().len()), (3, 0));
}
