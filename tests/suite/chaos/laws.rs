//! The laws, checked against what the executors read and said and against the decision log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use integration_tests::gateway::GatewayProcess;
use maka_cu_protocol::ids::Digest;
use serde_json::Value;

use super::book::{ActionKey, Book, Ended};

/// Everything that can be checked once the storm is over.
pub(super) fn check(gateway: &GatewayProcess, book: &Book) {
    let wire = gateway.wire();
    let actions = book.actions();
    let read = read_actions(&wire);
    let told = replies(&wire);
    for (action, ends) in &actions {
        let times = read.get(&on_the_wire(action)).copied().unwrap_or_default();
        assert!(
            times <= 1,
            "{action:?} was sent {times} times: {ends:?}\n{}",
            book.tail()
        );
        one_outcome(action, ends, book);
        if ends.iter().all(is_certain_status) {
            assert_eq!(
                times,
                0,
                "{action:?} was sent, and its callers were told that it was not: {ends:?}\n{}",
                book.tail()
            );
        }
        let is_done = |ended: &Ended| matches!(ended, Ended::Result { is_ok: true, .. });
        if ends.iter().any(is_done) {
            assert!(
                told.contains(&on_the_wire(action)),
                "{action:?} is called done, and no executor said so: {ends:?}\n{}",
                book.tail()
            );
        }
    }
    everything_read_was_allowed(gateway, book);
    chain_is_whole(gateway, book);
    generations_match(&wire, book);
}

/// One key, one outcome, for ever; and only who asked first is told that it is new.
fn one_outcome(action: &ActionKey, ends: &[Ended], book: &Book) {
    let mut known: Option<&str> = None;
    let mut fresh = 0;
    for ended in ends {
        match ended {
            Ended::Result {
                line, is_replayed, ..
            } => {
                fresh += u32::from(!is_replayed);
                assert!(
                    known.is_none_or(|known| known == line),
                    "{action:?} has several outcomes: {ends:?}\n{}",
                    book.tail()
                );
                known = Some(line);
            }
            Ended::Status { reason } => assert!(
                known.is_none() || AT_ANY_TIME.contains(&reason.as_str()),
                "{action:?} has an outcome, and a later call was refused: {ends:?}\n{}",
                book.tail()
            ),
            Ended::GaveUp => {}
        }
    }
    // Two at once may both hear it first.
    assert!(
        fresh <= 1 + u32::from(book.was_asked_at_once(action)),
        "{action:?} was done anew: {ends:?}\n{}",
        book.tail()
    );
}

/// Refusals that say nothing about the action: the call itself came to nothing.
const AT_ANY_TIME: [&str; 3] = [
    "gateway.maka/deadline",
    "gateway.maka/cancelled",
    "gateway.maka/calls_in_session",
];

/// A status that says: this call sent nothing. A rejection by the executor is the one that was sent, and had no effect.
fn is_certain_status(ended: &Ended) -> bool {
    match ended {
        Ended::Status { reason } => !reason.ends_with("/rpc_rejected"),
        Ended::Result { .. } | Ended::GaveUp => false,
    }
}

/// How an action looks on the wire: session, and key or waiting time.
fn on_the_wire(action: &ActionKey) -> (String, String) {
    let key = action
        .wait_for_window_ms
        .map_or_else(|| action.key.clone(), |wait| format!("launch {wait}"));
    (action.session.clone(), key)
}

fn key_of_params(method: &str, params: &Value) -> Option<(String, String)> {
    let session = params["session"].as_str()?.to_owned();
    if method.starts_with("dispatch.") {
        Some((session, params["toolCallId"].as_str()?.to_owned()))
    } else if method == "apps.launch" {
        Some((session, format!("launch {}", params["waitForWindowMs"])))
    } else {
        None
    }
}

/// How often each action was read by an executor.
fn read_actions(wire: &[Value]) -> BTreeMap<(String, String), u32> {
    let mut read = BTreeMap::new();
    for line in wire {
        let method = line["method"].as_str().unwrap_or_default();
        if let Some(key) = key_of_params(method, &line["params"]) {
            *read.entry(key).or_default() += 1;
        }
    }
    read
}

/// The actions that an executor said were done, in answers that may be believed. Answers are found by the id of the request, which
/// is never used twice.
fn replies(wire: &[Value]) -> BTreeSet<(String, String)> {
    let mut requests = BTreeMap::new();
    let mut lies = BTreeSet::new();
    let mut told = BTreeSet::new();
    for line in wire {
        let detail = &line["detail"];
        match line["event"].as_str() {
            None => {
                let method = line["method"].as_str().unwrap_or_default();
                if let (Some(id), Some(key)) =
                    (line["id"].as_i64(), key_of_params(method, &line["params"]))
                {
                    let before = requests.insert(id, key);
                    assert!(before.is_none(), "the id {id} was used twice");
                }
            }
            Some("fault") if detail["honest"] == false => {
                lies.insert(detail["id"].as_i64());
            }
            Some("reply") if detail["said"]["ok"] == true => {
                let id = detail["id"].as_i64();
                if !lies.contains(&id)
                    && let Some(key) = id.and_then(|id| requests.get(&id))
                {
                    told.insert(key.clone());
                }
            }
            Some(_) => {}
        }
    }
    told
}

/// Whatever an executor has read was allowed before: the wire log is read first, so an allow that is missing was missing then.
pub(super) fn everything_read_was_allowed(gateway: &GatewayProcess, book: &Book) {
    let wire = gateway.wire();
    let allowed: BTreeSet<(String, String)> = gateway
        .decisions()
        .iter()
        .filter(|record| {
            record["schema"] == "maka.policy.decision/1" && record["effective"] == "allow"
        })
        .filter_map(|record| {
            let session = record["session"].as_str()?;
            let key = record["tool_call"].as_str()?;
            Some((session.to_owned(), key.to_owned()))
        })
        .collect();
    for line in wire {
        let is_dispatch = line["method"]
            .as_str()
            .is_some_and(|method| method.starts_with("dispatch."));
        if !is_dispatch {
            continue;
        }
        let key = key_of_params("dispatch.", &line["params"]).expect("every dispatch has a key");
        // The gateway lets go of held buttons by itself, and does nothing else without an allow.
        if key.1.starts_with("release_") && line["params"]["action"]["kind"] == "mouse_up" {
            continue;
        }
        assert!(
            allowed.contains(&key),
            "{key:?} was sent without an allow\n{}",
            book.tail()
        );
    }
}

/// Every record of the decision log names the hash of the one before it.
fn chain_is_whole(gateway: &GatewayProcess, book: &Book) {
    let path = gateway.folder().join("state/decisions.jsonl");
    let log = fs::read_to_string(path).expect("a decision log");
    assert!(log.ends_with('\n'), "no record is torn");
    let mut head: Option<String> = None;
    for (line, seq) in log.lines().zip(1_u64..) {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert_eq!(record["seq"], seq, "{}", book.tail());
        assert_eq!(
            record["prev"].as_str(),
            head.as_deref(),
            "record {seq} does not follow\n{}",
            book.tail()
        );
        head = Some(Digest::of(line.as_bytes()).to_string());
    }
}

/// Starts of executors, in order.
pub(super) fn starts(wire: &[Value]) -> Vec<&Value> {
    wire.iter()
        .filter(|line| line["event"] == "start")
        .collect()
}

/// Every start is a process of its own, and one handshake belongs to it at most.
fn generations_match(wire: &[Value], book: &Book) {
    let numbers: Vec<u64> = starts(wire)
        .iter()
        .filter_map(|start| start["process"].as_u64())
        .collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "one executor at a time\n{}", book.tail());
}
