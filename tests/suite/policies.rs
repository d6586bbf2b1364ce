//! The operator's plane of policies: what a change does, what it is refused for, and what stands over a restart.

mod chaos;
mod guest;
mod plane;
mod restart;
mod signed;

use std::fs;

use integration_tests::{
    client::{metadata, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Policy, Role},
};
use maka_proto::v1::{self, load_policy_request::Part};
use nix::sys::signal::{Signal, kill};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use guest::{Does, guest};
use plane::{
    APP, activate, changes, digest_of, gateway, generation, load, load_parts, module, parts,
    prebuilt,
};

/// A set is changed by whoever has seen what is active, all at once, and the change is on record.
#[tokio::test]
async fn an_operator_changes_what_judges() {
    let gateway = gateway(Policy::Floor).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    agent.snapshot_app(&session_id, APP).await.expect("allowed");

    let before = generation(&gateway).await;
    assert_eq!((before.generation, before.change_count), (1, 1));
    assert_eq!(before.sets.len(), 1);
    assert_eq!(before.sets[0].origin(), v1::PolicySetOrigin::Configuration);
    let deny = prebuilt("deny-all");
    let activated = activate(&gateway, "", vec![module(&deny)])
        .await
        .expect("activated");
    assert_eq!(activated.generation, 2);
    let set = activated.set.expect("the set");
    assert_eq!(set.origin(), v1::PolicySetOrigin::Call);
    let names: Vec<_> = set.modules.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["maka-floor", "deny-all"]);
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/deny_all");
    assert_eq!(metadata(&refused, "generation").as_deref(), Some("2"));
    let after = generation(&gateway).await;
    assert_eq!(after.set_digest, set.digest);
    let last = after.last_change.expect("a change");
    assert_eq!(last.result(), v1::PolicyChangeResult::Activated);
    let records = changes(&gateway);
    let record = records.last().expect("the change is on record");
    assert_eq!(record["result"], "activated");
    assert_eq!(
        (&record["trigger"], &record["principal"]),
        (&"call".into(), &"operator".into())
    );
    assert_eq!(record["sets"][0]["set"], set.digest.as_str());

    // Whoever has not seen that is refused, and an author does not get that far.
    let late = v1::ActivatePolicyRequest {
        expected_generation: 1,
        ..v1::ActivatePolicyRequest::default()
    };
    let mut operator = gateway.client(Role::Operator).policies;
    let late_answer = operator.activate(late.clone()).await.unwrap_err();
    assert_eq!(
        reason(&late_answer),
        "gateway.maka/policy_generation_changed"
    );
    let mut author = gateway.client(Role::Author).policies;
    let forbidden = author.activate(late).await.unwrap_err();
    assert_eq!(forbidden.code(), Code::PermissionDenied);

    // Back to what the configuration says.
    let back = v1::ActivatePolicyRequest {
        expected_generation: 2,
        from_configuration: true,
        ..v1::ActivatePolicyRequest::default()
    };
    let back = operator.activate(back).await.expect("back").into_inner();
    assert_eq!(back.generation, 3);
    let set = back.set.expect("the set");
    assert_eq!(set.origin(), v1::PolicySetOrigin::Configuration);
    agent.snapshot_app(&session_id, APP).await.expect("allowed");
    gateway.stop().await;
}

/// Without an active set nothing is permitted, and the gateway says that it does not serve.
#[tokio::test]
async fn without_an_active_set_nothing_is_permitted() {
    let gateway = gateway(Policy::Floor).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let request = v1::DeactivatePolicyRequest {
        set: String::new(),
        expected_generation: 1,
    };
    let mut operator = gateway.client(Role::Operator).policies;
    let answer = operator.deactivate(request).await.expect("deactivated");
    let answer = answer.into_inner();
    assert_eq!((answer.generation, answer.set), (2, None));
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/policy_absent");
    gateway.wait_for(ServingStatus::NotServing).await;
    let now = generation(&gateway).await;
    assert_eq!((now.generation, now.change_count), (0, 2));
    assert_eq!(changes(&gateway).last().unwrap()["result"], "deactivated");
    activate(&gateway, "", Vec::new()).await.expect("the floor");
    gateway.wait_for(ServingStatus::Serving).await;
    agent.snapshot_app(&session_id, APP).await.expect("allowed");
    gateway.stop().await;
}

/// Every way in which a candidate is bad: what ran goes on, and the word, the module and the place are in the status, in
/// GetGeneration and in the decision log.
#[tokio::test]
async fn a_bad_candidate_changes_nothing() {
    let gateway = gateway(Policy::With(vec!["deny-all"])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let (traps, loops) = (
        guest("traps", "1", Does::Trap),
        guest("loops", "1", Does::Loop),
    );
    let good = guest("good", "1", Does::Allow);
    for file in [&traps, &loops, &good] {
        load(&gateway, file).await.expect("no settings, one answer");
    }
    let with = |settings: &str| v1::ModuleChoice {
        settings_json: settings.into(),
        ..module(&good)
    };
    let rows = [
        ("it traps", vec![module(&traps)], "corpus", "traps", ""),
        ("it never ends", vec![module(&loops)], "corpus", "loops", ""),
        (
            "a setting of another type",
            vec![with("{\"level\": \"high\"}")],
            "settings",
            "good",
            "/level",
        ),
        (
            "a setting that is too large",
            vec![with("{\"level\": 10}")],
            "settings",
            "good",
            "/level",
        ),
        (
            "a setting that there is not",
            vec![with("{\"levle\": 1}")],
            "settings",
            "good",
            "/levle",
        ),
        (
            "one twice",
            vec![module(&good), module(&good)],
            "name_twice",
            "",
            "",
        ),
        (
            "the floor",
            vec![module(&prebuilt("maka-floor"))],
            "name_twice",
            "",
            "",
        ),
    ];
    for (row, modules, code, at_fault, place) in rows {
        let refused = activate(&gateway, "", modules).await.unwrap_err();
        assert_eq!(reason(&refused), "gateway.maka/policy_refused", "{row}");
        assert_eq!(metadata(&refused, "code").as_deref(), Some(code), "{row}");
        let told = metadata(&refused, "place").unwrap_or_default();
        assert_eq!(told, place, "{row}");
        let now = generation(&gateway).await;
        assert_eq!((now.generation, now.change_count), (1, 1), "{row}");
        let last = now.last_change.expect("a change");
        assert_eq!(last.result(), v1::PolicyChangeResult::Refused, "{row}");
        assert_eq!(
            (last.code.as_str(), last.place.as_str()),
            (code, place),
            "{row}"
        );
        assert_eq!(last.module, at_fault, "{row}");
        let records = changes(&gateway);
        let record = records.last().expect("a record");
        assert_eq!(
            (&record["result"], &record["code"]),
            (&"refused".into(), &code.into()),
            "{row}"
        );
        let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
        assert_eq!(reason(&refused), "policy.maka/deny_all", "{row}");
    }
    let unknown = activate(&gateway, "", vec![module(b"nothing")]).await;
    assert_eq!(reason(&unknown.unwrap_err()), "gateway.maka/policy_unknown");
    let nowhere = activate(&gateway, "nowhere", Vec::new()).await;
    assert_eq!(
        reason(&nowhere.unwrap_err()),
        "gateway.maka/policy_set_unknown"
    );
    gateway.wait_for(ServingStatus::Serving).await;
    gateway.stop().await;
}

/// A file arrives whole and as its header says, or not at all; what is there already is not kept twice.
#[tokio::test]
async fn what_is_loaded_is_exactly_what_was_sent() {
    let gateway = gateway(Policy::Floor).await;
    let good = guest("good", "1", Does::Allow);
    let digest = digest_of(&good);
    let size = good.len() as u64;
    let header_twice = [parts(size, &digest, &good), parts(size, &digest, &good)].concat();
    let rows: Vec<(&str, Vec<Part>, &str)> = vec![
        ("nothing", Vec::new(), "policy_upload_mismatch"),
        (
            "no header",
            vec![Part::Chunk(good.clone())],
            "policy_upload_mismatch",
        ),
        (
            "longer",
            parts(size - 1, &digest, &good),
            "policy_upload_mismatch",
        ),
        (
            "shorter",
            parts(size + 1, &digest, &good),
            "policy_upload_mismatch",
        ),
        (
            "another digest",
            parts(size, &digest_of(b""), &good),
            "policy_upload_mismatch",
        ),
        ("a header twice", header_twice, "policy_upload_mismatch"),
        ("no digest", parts(size, "md5:1", &good), "malformed"),
        ("too large", parts(33 << 20, &digest, &good), "malformed"),
        (
            "no policy",
            parts(3, &digest_of(b"abc"), b"abc"),
            "policy_refused",
        ),
        (
            "a core module",
            parts(8, &digest_of(b"\0asm\x01\0\0\0"), b"\0asm\x01\0\0\0"),
            "policy_refused",
        ),
    ];
    for (row, parts, expected) in rows {
        let refused = load_parts(&gateway, parts).await.unwrap_err();
        assert_eq!(
            reason(&refused),
            format!("gateway.maka/{expected}"),
            "{row}"
        );
    }
    let loaded = load(&gateway, &good).await.expect("loaded");
    let policy = loaded.policy.expect("the policy");
    assert_eq!((policy.digest.as_str(), loaded.known), (&*digest, false));
    assert_eq!(policy.origin(), v1::PolicyOrigin::Loaded);
    assert!(load(&gateway, &good).await.expect("again").known);
    let mut author = gateway.client(Role::Author).policies;
    let listed = author
        .list(v1::ListPoliciesRequest {})
        .await
        .expect("a list")
        .into_inner();
    let of = |origin: v1::PolicyOrigin| -> Vec<_> {
        let policies = listed.policies.iter();
        policies
            .filter(|policy| policy.origin() == origin)
            .map(|policy| policy.name.as_str())
            .collect()
    };
    assert_eq!(of(v1::PolicyOrigin::Loaded), ["good"]);
    // Those of the product are there for everybody who wants to activate them.
    let product = [
        "allow-all",
        "app-list",
        "browser-domains",
        "business-hours",
        "deny-all",
        "destructive-controls",
        "rate-limits",
        "read-only",
        "typing-guard",
    ];
    assert_eq!(of(v1::PolicyOrigin::BuiltIn), product);
    assert_eq!(listed.set_names, ["default"]);
    gateway.stop().await;
}

/// Each principal is judged by its own set, and by no other when that one is gone.
#[tokio::test]
async fn principals_have_sets_of_their_own() {
    let deny = prebuilt("deny-all");
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.agent_keys = "policy_set = \"strict\"".into();
    options.sections =
        "[[policy.sets]]\nname = \"strict\"\n[[policy.sets]]\nname = \"spare\"".into();
    let gateway = GatewayProcess::serving(options).await;
    let (agent, operator) = (gateway.agent(), gateway.client(Role::Operator));
    let (first, second) = (agent.begin().await, operator.begin().await);
    let sets = generation(&gateway).await.sets;
    let names: Vec<_> = sets.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(names, ["default", "spare", "strict"]);
    activate(&gateway, "strict", vec![module(&deny)])
        .await
        .expect("activated");
    let refused = agent.snapshot_app(&first, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/deny_all");
    operator.snapshot_app(&second, APP).await.expect("allowed");
    let record = gateway
        .decisions()
        .into_iter()
        .rfind(|record| record["effective"] == "deny")
        .expect("the decision");
    assert_eq!(record["tenant"], "strict");
    let request = v1::DeactivatePolicyRequest {
        set: "strict".into(),
        expected_generation: 2,
    };
    let mut policies = operator.policies.clone();
    policies.deactivate(request).await.expect("deactivated");
    let refused = agent.snapshot_app(&first, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/policy_absent");
    operator.snapshot_app(&second, APP).await.expect("allowed");
    gateway.stop().await;
}

/// A monitor is asked after the answer, changes nothing, and has a record of its own. That a module stops to enforce is
/// on record by name.
#[tokio::test]
async fn a_monitor_only_watches() {
    let gateway = gateway(Policy::With(vec!["deny-all"])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let deny = prebuilt("deny-all");
    let monitor = v1::ModuleChoice {
        mode: v1::PolicyMode::Monitor.into(),
        ..module(&deny)
    };
    activate(&gateway, "", vec![monitor])
        .await
        .expect("activated");
    let record = changes(&gateway).pop().expect("the change");
    assert_eq!(record["demoted"], serde_json::json!(["default/deny-all"]));
    agent.snapshot_app(&session_id, APP).await.expect("allowed");
    let watched = |record: &serde_json::Value| {
        record["schema"] == "maka.policy.monitor/1" && record["modules"][0]["decision"] == "deny"
    };
    let seen = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(record) = gateway.decisions().into_iter().find(watched) {
                return record;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    let seen = seen.await.expect("the monitor is heard");
    assert_eq!(seen["modules"][0]["name"], "deny-all");
    let records = gateway.decisions();
    let decision = records
        .iter()
        .find(|record| record["id"] == seen["decision"])
        .expect("the decision that it watched");
    assert_eq!(decision["effective"], "allow");
    assert_eq!(generation(&gateway).await.unmonitored, 0);
    gateway.stop().await;
}

/// A dry run says everything about a call and leaves no trace.
#[tokio::test]
async fn a_question_is_no_decision() {
    let gateway = gateway(Policy::Floor).await;
    let mut author = gateway.client(Role::Author).policies;
    let before = generation(&gateway).await.log_head;
    let fixture = "schema: maka.policy.fixture/1\nname: spent\nmirror: [{id: s1, state: spent}]\n\
                   call: {hook: admit-dispatch, method: dispatch.element, claim: {snapshot: s1, element: e1, element_digest: d1}}\n";
    let request = v1::EvaluatePolicyRequest {
        fixture: fixture.into(),
        ..v1::EvaluatePolicyRequest::default()
    };
    let answer = author.evaluate(request.clone()).await.expect("an answer");
    let answer = answer.into_inner();
    let call = &answer.calls[0];
    assert_eq!(
        (call.decision.as_str(), call.code.as_str()),
        ("deny", "snapshot_spent")
    );
    assert!(call.sentence.starts_with("An action has used"), "{call:?}");
    let floor = &call.modules[0];
    assert_eq!(floor.rules[0].id, "snap.state");
    assert!(!floor.rules[0].doc.is_empty() && floor.fuel > 0 && floor.asked);
    let candidate = v1::EvaluatePolicyRequest {
        fixture: "schema: maka.policy.fixture/1\nname: look\ncall: {hook: admit-dispatch, method: observe}\n".into(),
        candidate: Some(v1::PolicyCandidate {
            modules: vec![module(&prebuilt("deny-all"))],
            floor_settings_json: String::new(),
        }),
        ..v1::EvaluatePolicyRequest::default()
    };
    let answer = author.evaluate(candidate).await.expect("an answer");
    let call = &answer.into_inner().calls[0];
    assert_eq!(call.code, "deny_all");
    assert!(call.sentence.starts_with("Every action is switched off"));
    let decisions: Vec<_> = call.modules.iter().map(|it| it.decision.as_str()).collect();
    assert_eq!(decisions, ["allow", "deny"]);
    let wrong = v1::EvaluatePolicyRequest {
        fixture: fixture.replace("hook:", "hoke:"),
        ..request
    };
    let refused = author.evaluate(wrong).await.unwrap_err();
    assert_eq!(reason(&refused), "gateway.maka/policy_fixture_unusable");
    assert_eq!(metadata(&refused, "place").as_deref(), Some("4/call"));
    assert_eq!(generation(&gateway).await.log_head, before);
    gateway.stop().await;
}

/// An operator who wants fresh policies is told when nobody has looked at them for longer.
#[tokio::test]
async fn stale_policies_are_told() {
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.policy_keys = "stale_after_ms = 1000".into();
    let gateway = GatewayProcess::serving(options).await;
    let told = tokio::time::timeout(PATIENCE, async {
        while !generation(&gateway).await.stale || !gateway.log().contains("stale_after_ms") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    assert!(told.await.is_ok(), "{}", gateway.log());
    gateway.stop().await;
}

/// SIGHUP reads the section again: a good one judges from then on, a bad one changes nothing, and what a call made of a
/// set stands.
#[tokio::test]
async fn the_configuration_is_read_again() {
    let gateway = gateway(Policy::Floor).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let path = gateway.folder().join("gateway.toml");
    let original = fs::read_to_string(&path).expect("the configuration");
    let file = gateway.folder().join("deny-all.wasm");
    fs::write(&file, prebuilt("deny-all")).expect("written");
    let with = |digest: &str| {
        format!(
            "{original}\n[[policy.modules]]\nname = \"deny-all\"\npath = \"{}\"\nsha256 = \"{digest}\"\n",
            file.display()
        )
    };
    let digest = digest_of(&prebuilt("deny-all"));
    let digest = digest.strip_prefix("sha256:").expect("a digest");

    reread(&gateway, &path, &with(digest), |now| now.change_count == 2).await;
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/deny_all");
    assert_eq!(changes(&gateway).last().unwrap()["trigger"], "signal");

    let told = |code: &'static str| {
        move |now: &v1::GetGenerationResponse| {
            now.last_change
                .as_ref()
                .is_some_and(|last| last.code == code)
        }
    };
    reread(&gateway, &path, &with(&"0".repeat(64)), told("pin")).await;
    reread(&gateway, &path, "state_dir = 1", told("configuration")).await;
    assert_eq!(generation(&gateway).await.change_count, 2);
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/deny_all");

    reread(&gateway, &path, &original, |now| now.change_count == 3).await;
    agent.snapshot_app(&session_id, APP).await.expect("allowed");
    activate(&gateway, "", vec![module(&prebuilt("deny-all"))])
        .await
        .expect("activated");
    reread(&gateway, &path, &original, |now| now.change_count == 5).await;
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/deny_all");
    gateway.stop().await;
}

/// Writes a configuration, asks for it to be read, and waits for what comes of it.
async fn reread(
    gateway: &GatewayProcess,
    path: &std::path::Path,
    text: &str,
    is_done: impl Fn(&v1::GetGenerationResponse) -> bool,
) {
    fs::write(path, text).expect("the configuration");
    kill(gateway.pid(), Signal::SIGHUP).expect("the gateway lives");
    let done = tokio::time::timeout(PATIENCE, async {
        while !is_done(&generation(gateway).await) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    assert!(done.await.is_ok(), "{}", gateway.log());
}
