//! Policies change under load: every record names one generation, and its verdict is that generation's own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use integration_tests::{
    client::reason,
    gateway::Policy,
    seeded::Seeded,
    soak::{self, Rounds, say},
};
use maka_proto::v1::{self, ListAppsRequest};
use serde_json::Value;
use tokio::task::JoinSet;

use super::guest::{Does, guest};
use super::plane::{activate, gateway, generation, load, module, prebuilt};

/// Codes of refusals that are no policy's verdict: the policies changed twice before the call could be sent, or a machine
/// that compiles meanwhile had no time for it.
const NO_VERDICT: [&str; 3] = ["facts_changed", "policy_timeout", "policy_busy"];

/// Callers at the same time.
const CALLERS: usize = 8;

/// What is tried, with whether it becomes active.
#[derive(Clone, Copy, Debug)]
enum Try {
    Good,
    BadSettings,
    Trapping,
    WrongDigest,
    DenyAll,
    AllowAll,
}

const TRIES: [Try; 6] = [
    Try::Good,
    Try::BadSettings,
    Try::Trapping,
    Try::WrongDigest,
    Try::DenyAll,
    Try::AllowAll,
];

/// Spec policy §3.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verdict_is_of_the_generation_that_its_record_names() {
    let gateway = Arc::new(gateway(Policy::Floor).await);
    let (good, traps) = (
        guest("good", "1", Does::Allow),
        guest("traps", "1", Does::Trap),
    );
    load(&gateway, &good).await.expect("loaded");
    load(&gateway, &traps).await.expect("loaded");

    let stop = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (stop, calls) = (Arc::clone(&stop), Arc::clone(&calls));
        let agent = gateway.agent();
        callers.spawn(async move {
            let session_id = agent.begin().await;
            let mut client = agent.computer_use.clone();
            while !stop.load(Ordering::Relaxed) {
                let request = ListAppsRequest {
                    session_id: session_id.clone(),
                    ..ListAppsRequest::default()
                };
                match client.list_apps(request).await {
                    Ok(_) => {}
                    Err(status) => {
                        let reason = reason(&status);
                        let code = reason.strip_prefix("policy.maka/").unwrap_or(&reason);
                        assert!(code == "deny_all" || NO_VERDICT.contains(&code), "{reason}");
                    }
                }
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    let mut rounds = Rounds::new("policy reload", 18, 200);
    let mut random = Seeded::new(soak::seed());
    let mut activated = 1;
    while let Some(round) = rounds.next(|| format!("{} calls", calls.load(Ordering::Relaxed))) {
        // Every kind once in the short form, then as it comes.
        let what = match usize::try_from(round) {
            Ok(round) if round < TRIES.len() => TRIES[round],
            Ok(_) | Err(_) => *random.pick(&TRIES),
        };
        let (modules, is_good) = match what {
            Try::Good => (vec![module(&good)], true),
            Try::BadSettings => {
                let choice = v1::ModuleChoice {
                    settings_json: "{\"level\": 99}".into(),
                    ..module(&good)
                };
                (vec![choice], false)
            }
            Try::Trapping => (vec![module(&traps)], false),
            Try::WrongDigest => (vec![module(b"nowhere")], false),
            Try::DenyAll => (vec![module(&prebuilt("deny-all"))], true),
            Try::AllowAll => (vec![module(&prebuilt("allow-all"))], true),
        };
        let answer = activate(&gateway, "", modules).await;
        assert_eq!(answer.is_ok(), is_good, "{what:?}: {answer:?}");
        activated += u64::from(is_good);
        assert_eq!(generation(&gateway).await.change_count, activated);
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = callers.join_next().await {
        ended.expect("no caller met anything else");
    }
    let checked = check(&gateway.decisions(), activated);
    let calls = calls.load(Ordering::Relaxed);
    say(&format!(
        "policy reload: {activated} generations, {calls} calls, {checked} verdicts"
    ));
    // Every call was judged, some twice because the policies changed between judging and sending.
    assert!(checked >= calls && calls > 0, "{checked} of {calls}");
    let gateway = Arc::into_inner(gateway).expect("all callers are gone");
    gateway.stop().await;
}

/// Compares each verdict with what its generation says to everything. Returns how many there were.
fn check(records: &[Value], generations: u64) -> u64 {
    let mut sets: HashMap<u64, (String, bool)> = HashMap::new();
    for record in records.iter().filter(|record| {
        record["schema"] == "maka.policy.reload/1" && record["result"] == "activated"
    }) {
        let set = &record["sets"][0];
        let modules = set["modules"].as_array().expect("modules");
        let denies = modules.iter().any(|module| module["name"] == "deny-all");
        let number = record["generation"].as_u64().expect("a number");
        let digest = set["set"].as_str().expect("a digest").to_owned();
        assert!(sets.insert(number, (digest, denies)).is_none());
    }
    assert_eq!(sets.len() as u64, generations);
    let mut checked = 0;
    for record in records.iter().filter(|record| {
        record["hook"] == "admit-dispatch" && record["schema"] == "maka.policy.decision/1"
    }) {
        checked += 1;
        let number = record["policy"]["generation"].as_u64().expect("a number");
        let (digest, denies) = &sets[&number];
        assert_eq!(record["policy"]["set"], digest.as_str(), "{record}");
        if record["code"]
            .as_str()
            .is_some_and(|code| NO_VERDICT.contains(&code))
        {
            assert_eq!(record["effective"], "deny", "{record}");
            continue;
        }
        let expected = if *denies { "deny" } else { "allow" };
        assert_eq!(record["effective"], expected, "{record}");
    }
    checked
}
