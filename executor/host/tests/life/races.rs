//! A thousand cancels that race their answers, over one child.

use std::collections::HashSet;

use maka_cu_host::CallOptions;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::Envelope;
use maka_cu_protocol::sets::{LifecycleCode, RequestStage, ServiceState};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::child::Script;
use crate::trace::{lifecycle, soon};

const ROUNDS: usize = 1_000;

/// How long a round lets its call run before it cancels, in turns of the scheduler; no cancel at all in the last of a cycle.
const CYCLE: usize = 25;

/// Each round ends exactly once: with the answer, or withdrawn and never sent. Nothing is sent twice, no cancel kills, and the
/// child's own notes are the witness.
#[tokio::test]
async fn a_cancel_that_races_the_answer_ends_once() {
    race().await;
}

/// The same with the caller and the supervisor on different threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_races_the_answer_ends_once_on_threads() {
    race().await;
}

async fn race() {
    let script = Script::new("greet; serve");
    let service = script.service(|_| {});
    soon(service.ensure_started()).await.unwrap();
    let (mut answered, mut withdrawn) = (0, 0);
    for round in 0..ROUNDS {
        let cancel = CancellationToken::new();
        let options = CallOptions {
            cancel: cancel.clone(),
            ..CallOptions::default()
        };
        let call = service.call(Method::AppsList, json!({ "round": round }), options);
        let turns = round % CYCLE;
        let give_up = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            if turns + 1 < CYCLE {
                cancel.cancel();
            }
        };
        match soon(async { tokio::join!(give_up, call) }).await.1 {
            Ok(answer) => {
                let Envelope::Ok(_) = answer.value else {
                    panic!("the child only knows one answer")
                };
                assert_eq!(answer.generation, 1);
                answered += 1;
            }
            refused => {
                let error = lifecycle(refused);
                assert_eq!(
                    (error.code, error.stage),
                    (LifecycleCode::Aborted, RequestStage::Queued),
                    "round {round}"
                );
                withdrawn += 1;
            }
        }
    }
    assert_eq!(answered + withdrawn, ROUNDS);
    assert!(answered >= ROUNDS / CYCLE, "{answered} answered");
    assert!(withdrawn >= ROUNDS / CYCLE, "{withdrawn} withdrawn");
    // The last cancels may still be on their way; a call behind them is read after them.
    let last = service.call(
        Method::AppsList,
        json!({ "round": ROUNDS }),
        CallOptions::default(),
    );
    soon(last).await.unwrap();
    assert_eq!(service.status().state, ServiceState::Ready);
    assert_eq!(script.starts(), 1, "no cancel ended the child");
    let sent: Vec<Value> = script
        .log()
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let rounds: Vec<u64> = sent
        .iter()
        .filter_map(|message| message["params"]["round"].as_u64())
        .collect();
    assert_eq!(
        rounds.len(),
        answered + 1,
        "what was withdrawn was never sent"
    );
    let once: HashSet<u64> = rounds.iter().copied().collect();
    assert_eq!(once.len(), rounds.len(), "nothing is sent twice");
    let cancels: Vec<u64> = sent
        .iter()
        .filter(|message| message["method"] == "$/cancel")
        .map(|message| message["params"]["id"].as_u64().unwrap())
        .collect();
    let cancelled: HashSet<u64> = cancels.iter().copied().collect();
    assert_eq!(cancelled.len(), cancels.len(), "nothing is cancelled twice");
    let ids: HashSet<u64> = sent
        .iter()
        .filter_map(|message| message["id"].as_u64())
        .collect();
    assert!(
        cancelled.is_subset(&ids),
        "only what was sent is cancelled by a word"
    );
}
