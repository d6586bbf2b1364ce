//! The executor is killed again and again while callers act. Nobody waits for a restart that does not come, nothing is sent twice,
//! and the last gateway process is as small as the first.

use std::collections::BTreeSet;

use integration_tests::{
    client::{Client, element, on_element, on_point, reason, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Role},
    process::{children, descriptors, is_zombie, resident_kib, threads},
    seeded::Seeded,
    soak::{Rounds, seed},
};
use maka_proto::v1::{
    DispatchRequest, EndSessionRequest, Outcome, PointerButton, Snapshot, dispatch_request,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::weather::{self, status};
use super::{APP, told};

/// Growth that a restart may leave in the allocator, in KiB, over a whole run.
const GROWTH_KIB: u64 = 24 * 1024;

/// Rounds in one session, which remembers every key.
const PER_SESSION: u64 = 200;

/// Every so many rounds an operator ends the executor instead of a signal.
const RESTARTED: u64 = 7;

/// Issue 3, "kill at any moment"; field reports D4, H3, M2.
#[tokio::test]
async fn a_killed_executor_is_replaced_every_time() {
    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    options.log_level = "warn";
    options.executor_keys = "max_restart_attempts = 100\nstable_after_ms = 1".into();
    let gateway = GatewayProcess::serving(options).await;
    let pid = gateway.pid().as_raw();
    let agent = gateway.agent();
    let mut seeded = Seeded::new(seed());
    let mut session_id = agent.begin().await;
    act(&agent, &session_id, "before").await;
    let mut watcher = JoinSet::new();
    watcher.spawn(gateway.client(Role::Operator).watch().await.to_the_end());
    let at_first = (descriptors(pid), threads(pid), resident_kib(pid));
    let mut counts = Counts::default();
    let mut rounds = Rounds::new("kill-storm", 25, 2_000);
    while let Some(round) = rounds.next(|| format!("{counts:?}, {} KiB", resident_kib(pid))) {
        if round % PER_SESSION == PER_SESSION - 1 {
            let request = EndSessionRequest { session_id };
            let mut client = agent.computer_use.clone();
            client.end_session(request).await.expect("ended");
            session_id = agent.begin().await;
        }
        let before = status(&gateway).await;
        let victim = i32::try_from(before.executor.expect("ready").pid).expect("a pid");
        // Every other time the frame is there before the killer sets out, so that the action itself is hit.
        let frame = if round % 2 == 0 {
            let frame = agent.snapshot_app(&session_id, APP).await;
            Some(frame.expect("a ready executor gives a frame"))
        } else {
            None
        };
        let pause = std::time::Duration::from_micros(seeded.below(40_000));
        let key = format!("{round}");
        let acts = async {
            match &frame {
                Some(frame) if round % 4 == 0 => press(&agent, &session_id, &key, frame).await,
                Some(frame) => write(&agent, &session_id, &key, frame).await,
                None => act(&agent, &session_id, &key).await,
            }
        };
        let (outcome, ()) = tokio::join!(acts, async {
            tokio::time::sleep(pause).await;
            if round % RESTARTED == RESTARTED - 1 {
                weather::restart(&gateway).await;
            } else {
                kill(Pid::from_raw(victim), Signal::SIGKILL).expect("it lives");
            }
        });
        counts.note(outcome);
        let renewed = tokio::time::timeout(PATIENCE, async {
            loop {
                let now = status(&gateway).await;
                if now.generation > before.generation && now.executor.is_some() {
                    return now.generation;
                }
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        });
        let generation = renewed
            .await
            .unwrap_or_else(|_| panic!("round {round}, seed {}: no new executor", seed()));
        assert_eq!(
            generation,
            before.generation + 1,
            "round {round}, seed {}: one end, one generation",
            seed()
        );
        let alive = children(pid);
        assert!(
            // The executor and its warden.
            alive.len() == 2 && !alive.iter().any(|child| is_zombie(*child)),
            "round {round}, seed {}: {alive:?}",
            seed()
        );
    }
    sent_once(&gateway);
    let request = EndSessionRequest { session_id };
    let mut client = agent.computer_use.clone();
    client.end_session(request).await.expect("ended");
    let small_again = || {
        descriptors(pid) <= at_first.0 + 2
            && threads(pid) <= at_first.1 + 1
            && resident_kib(pid) <= at_first.2 + GROWTH_KIB
    };
    integration_tests::fake::until("the gateway is as small as before", small_again).await;
    let wire = gateway.wire();
    gateway.stop().await;
    let watched = watcher.join_next().await.expect("one watcher");
    let watched = watched.expect("it read").expect("an end in order");
    let context = format!("seed {}", seed());
    told::check(&watched, &context);
    told::nothing_stays_held(&wire, &watched, &context);
}

fn sent_once(gateway: &GatewayProcess) {
    let mut seen = BTreeSet::new();
    for line in gateway.wire() {
        let method = line["method"].as_str().unwrap_or_default();
        if method.starts_with("dispatch.") {
            let params = &line["params"];
            let key = (
                params["session"].to_string(),
                params["toolCallId"].to_string(),
            );
            assert!(seen.insert(key.clone()), "{key:?} was sent twice");
        }
    }
}

/// What one action in front of a kill came to.
enum Act {
    Done,
    Unknown,
    NotSent,
}

/// Observes and writes; the executor may die at any moment of it.
async fn act(agent: &Client, session_id: &str, key: &str) -> Act {
    match agent.snapshot_app(session_id, APP).await {
        Ok(frame) => write(agent, session_id, key, &frame).await,
        Err(status) => not_sent(&status),
    }
}

/// Writes; the executor may die at any moment of it.
async fn write(agent: &Client, session_id: &str, key: &str, frame: &Snapshot) -> Act {
    let field = element(frame, "AXTextField", "Name");
    let request = on_element(session_id, key, frame, field, set_value(key));
    send(agent, key, request).await
}

/// Presses a button and leaves it down: whoever can lets go of it, and the executor may die at any moment of it.
async fn press(agent: &Client, session_id: &str, key: &str, frame: &Snapshot) -> Act {
    let down = dispatch_request::Action::PointerButton(PointerButton { down: true });
    let request = on_point(session_id, key, frame, (20.0, 10.0), down);
    send(agent, key, request).await
}

async fn send(agent: &Client, key: &str, request: DispatchRequest) -> Act {
    match tokio::time::timeout(PATIENCE, agent.dispatch(request)).await {
        Err(_) => panic!("{key}, seed {}: no end", seed()),
        Ok(Ok(result)) => match result.outcome() {
            Outcome::Ok => Act::Done,
            Outcome::Unknown => Act::Unknown,
            other => panic!("{key}, seed {}: {other:?}", seed()),
        },
        Ok(Err(status)) => not_sent(&status),
    }
}

fn not_sent(status: &tonic::Status) -> Act {
    let reason = reason(status);
    let expected = [
        "executor.lifecycle/outcome_unknown",
        "executor.lifecycle/service_unavailable",
        "policy.maka/snapshot_other_generation",
        "policy.maka/facts_changed",
    ];
    assert!(
        expected.contains(&reason.as_str()),
        "seed {}: {status:?}",
        seed()
    );
    Act::NotSent
}

#[derive(Debug, Default)]
struct Counts {
    done: u64,
    unknown: u64,
    not_sent: u64,
}

impl Counts {
    fn note(&mut self, act: Act) {
        match act {
            Act::Done => self.done += 1,
            Act::Unknown => self.unknown += 1,
            Act::NotSent => self.not_sent += 1,
        }
    }
}
