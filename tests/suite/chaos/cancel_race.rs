//! A cancel that races the answer. Whoever wins, the call ends once, and the caller who asks again is told what the window shows.

use std::time::{Duration, Instant};

use integration_tests::{
    client::{element, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
    seeded::Seeded,
    soak::{Rounds, seed},
};
use maka_proto::v1::{EndSessionRequest, Outcome};
use serde_json::json;

use super::APP;

/// Rounds in one session, which remembers every key.
const PER_SESSION: u64 = 200;

/// Issue 3: rounds of a cancel racing the answer, each ends exactly once. The fake answers after eight milliseconds unless it is
/// cancelled before; the caller goes away at any moment around that one.
#[tokio::test]
async fn a_cancel_that_races_the_answer_ends_once() {
    let script = json!({ "rules": [{
        "method": "dispatch.element",
        "steps": [{ "default_unless_cancelled_within": 8 }],
    }] });
    let mut options = GatewayOptions::new(Executor::Fake(script));
    options.log_level = "warn";
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let mut seeded = Seeded::new(seed());
    let mut session_id = agent.begin().await;
    let mut counts = Counts::default();
    // Twice the time that an answer takes on this machine at this moment, so that either side can win; the first guess is too long.
    let mut usual = micros(Duration::from_millis(200));
    let mut rounds = Rounds::new("cancel-race", 60, 20_000);
    while let Some(round) = rounds.next(|| format!("{counts:?}")) {
        if round % PER_SESSION == PER_SESSION - 1 {
            let request = EndSessionRequest { session_id };
            let mut client = agent.computer_use.clone();
            client.end_session(request).await.expect("ended");
            session_id = agent.begin().await;
        }
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let key = format!("{round}");
        let field = element(&frame, "AXTextField", "Name");
        let request = on_element(&session_id, &key, &frame, field, set_value(&key));
        let pause = Duration::from_micros(seeded.below(usual.max(1)));
        let asked = Instant::now();
        let heard = tokio::time::timeout(pause, agent.dispatch(request.clone())).await;
        let again = tokio::time::timeout(PATIENCE, agent.dispatch(request))
            .await
            .unwrap_or_else(|_| panic!("round {round}, seed {}: no end", seed()))
            .expect("an outcome");
        if let Ok(first) = heard {
            let first = first.expect("an outcome");
            assert!(again.replayed, "round {round}");
            assert_eq!(
                (first.outcome(), &first.decision_id),
                (again.outcome(), &again.decision_id),
                "round {round}, seed {}",
                seed()
            );
            counts.heard += 1;
            usual = (usual * 3 + micros(asked.elapsed()) * 2) / 4;
        }
        let now = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let shows = element(&now, "AXTextField", "Name").value.as_deref() == Some(key.as_str());
        match again.outcome() {
            Outcome::Ok => counts.done += 1,
            Outcome::Refused => {
                assert_eq!(again.error.as_ref().expect("why").code, "aborted");
                counts.aborted += 1;
            }
            other => panic!("round {round}, seed {}: {other:?}", seed()),
        }
        assert_eq!(
            shows,
            again.outcome() == Outcome::Ok,
            "round {round}, seed {}: the window shows what became of it",
            seed()
        );
    }
    let mut keys: Vec<_> = gateway
        .wire()
        .into_iter()
        .filter(|line| line["method"] == "dispatch.element")
        .map(|mut line| {
            let params = line["params"].take();
            (
                params["session"].to_string(),
                params["toolCallId"].to_string(),
            )
        })
        .collect();
    let sent = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), sent, "nothing is sent twice");
    let starts = gateway
        .wire()
        .iter()
        .filter(|line| line["event"] == "start")
        .count();
    assert_eq!(starts, 1, "no cancel cost an executor");
    gateway.stop().await;
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a short time")
}

/// How the races ended.
#[derive(Debug, Default)]
struct Counts {
    heard: u64,
    done: u64,
    aborted: u64,
}
