//! The decision log over several files, and followed by an operator while it is written.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use integration_tests::{
    binaries,
    client::reason,
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Role},
};
use maka_proto::v1::{DecisionLogRecord, ListAppsRequest, WatchDecisionsRequest};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tonic::{Code, IntoRequest, Request, Status, Streaming};

/// With the smallest files there are.
fn options() -> GatewayOptions {
    GatewayOptions {
        sections: "[audit]\nmax_file_bytes = 65536\n".to_owned(),
        ..GatewayOptions::new(Executor::Fake(json!({})))
    }
}

async fn watch(
    gateway: &GatewayProcess,
    request: impl IntoRequest<WatchDecisionsRequest>,
) -> Result<Streaming<DecisionLogRecord>, Status> {
    let mut operator = gateway.client(Role::Operator).operator;
    let answer = operator.watch_decisions(request).await?;
    Ok(answer.into_inner())
}

async fn next(stream: &mut Streaming<DecisionLogRecord>) -> Option<DecisionLogRecord> {
    let next = tokio::time::timeout(PATIENCE, stream.next()).await;
    next.expect("the stream goes on")
        .transpose()
        .expect("a record")
}

async fn all(gateway: &GatewayProcess, from: u64) -> Vec<DecisionLogRecord> {
    let request = WatchDecisionsRequest {
        from: Some(from),
        until_now: true,
    };
    let mut stream = watch(gateway, request).await.expect("a stream");
    let mut records = Vec::new();
    while let Some(record) = next(&mut stream).await {
        records.push(record);
    }
    records
}

/// Makes calls until the log has so many files beside the current one, and returns these.
async fn fill(gateway: &GatewayProcess, files: usize) -> Vec<PathBuf> {
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    loop {
        let request = ListAppsRequest {
            session_id: session_id.clone(),
            ..ListAppsRequest::default()
        };
        agent
            .computer_use
            .clone()
            .list_apps(request)
            .await
            .expect("apps");
        let mut full: Vec<_> = fs::read_dir(gateway.folder().join("state"))
            .expect("a state folder")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.to_string_lossy().contains("decisions.0"))
            .collect();
        full.sort();
        if full.len() >= files {
            return full;
        }
    }
}

/// K9: one chain over all files, seen whole by an operator and by `maka-policy log verify`, and gone on with after a restart.
#[tokio::test]
async fn a_full_log_goes_on_in_a_new_file() {
    let gateway = GatewayProcess::serving(options()).await;
    let full = fill(&gateway, 2).await;
    let records = all(&gateway, 0).await;
    let numbers: Vec<_> = records.iter().map(|record| record.sequence).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record.missing == 0));

    // Each is the line of the file.
    let text: String = full
        .iter()
        .map(|file| fs::read_to_string(file).expect("text"))
        .collect();
    for (line, record) in text.lines().zip(&records) {
        assert_eq!(line, record.json);
    }
    // Files of the past that are gone are counted, not passed over.
    fs::remove_file(&full[0]).expect("removed");
    let left = all(&gateway, 5).await;
    assert!(left[0].sequence > 5);
    assert_eq!(left[0].missing, left[0].sequence - 5);

    let folder = gateway.stop().await;
    let verified = Command::new(binaries::path("maka-policy"))
        .args(["log", "verify", "--json"])
        .arg(folder.path().join("state/decisions.jsonl"))
        .output()
        .expect("maka-policy runs");
    let verified: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(verified["whole"], true, "{verified}");
    assert_eq!(verified["first"], left[0].sequence);

    let gateway = GatewayProcess::start_in(folder, options()).await;
    let again = all(&gateway, left[0].sequence).await;
    assert!(again.len() > left.len());
    assert_eq!(again[..left.len()], {
        let mut same = left.clone();
        same[0].missing = 0;
        same
    });
    gateway.stop().await;
}

/// Who follows sees each record as it is written, and the end of the gateway after the last of them.
#[tokio::test]
async fn an_operator_follows_what_is_decided() {
    let gateway = GatewayProcess::serving(options()).await;
    let mut stream = watch(&gateway, WatchDecisionsRequest::default())
        .await
        .expect("a stream");
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let request = ListAppsRequest {
        session_id,
        ..ListAppsRequest::default()
    };
    agent
        .computer_use
        .clone()
        .list_apps(request)
        .await
        .expect("apps");
    let mut before = None;
    let decided = loop {
        let record = next(&mut stream).await.expect("a record");
        if let Some(before) = before {
            assert_eq!(record.sequence, before + 1);
        }
        before = Some(record.sequence);
        let value: Value = serde_json::from_str(&record.json).expect("a JSON object");
        assert_eq!(value["seq"], record.sequence);
        if value["hook"] == "admit-dispatch" {
            break value;
        }
    };
    assert_eq!(decided["method"], "apps.list");
    assert_eq!(decided["effective"], "allow");

    let mut reading = JoinSet::new();
    reading.spawn(async move {
        let mut last = Value::Null;
        while let Some(record) = next(&mut stream).await {
            last = serde_json::from_str(&record.json).expect("a JSON object");
        }
        last
    });
    let folder = gateway.stop().await;
    let last = reading
        .join_next()
        .await
        .expect("it was begun")
        .expect("the stream ends well");
    let text = fs::read_to_string(folder.path().join("state/decisions.jsonl")).expect("text");
    let written: Value = serde_json::from_str(text.lines().last().expect("records")).expect("JSON");
    assert_eq!(last, written);
}

/// Streams are bounded, end with the deadline, and are for operators.
#[tokio::test]
async fn following_has_bounds() {
    let gateway = GatewayProcess::serving(options()).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(
            watch(&gateway, WatchDecisionsRequest::default())
                .await
                .expect("a stream"),
        );
    }
    let refused = watch(&gateway, WatchDecisionsRequest::default()).await;
    let refused = refused.expect_err("one too many");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(reason(&refused), "gateway.maka/log_readers");
    streams.clear();
    // A stream that was dropped makes room as soon as the gateway hears of it.
    let mut stream = loop {
        let mut request = Request::new(WatchDecisionsRequest::default());
        request.set_timeout(Duration::from_millis(300));
        match watch(&gateway, request).await {
            Ok(stream) => break stream,
            Err(refused) => assert_eq!(refused.code(), Code::ResourceExhausted),
        }
    };
    let ended = loop {
        match tokio::time::timeout(PATIENCE, stream.next())
            .await
            .expect("it ends")
        {
            Some(Ok(_)) => {}
            Some(Err(status)) => break status,
            None => panic!("the deadline ends it"),
        }
    };
    assert!(
        [Code::DeadlineExceeded, Code::Cancelled].contains(&ended.code()),
        "{ended}"
    );
    let mut agent = gateway.agent().operator;
    let refused = agent
        .watch_decisions(WatchDecisionsRequest::default())
        .await;
    assert_eq!(
        refused.expect_err("not for agents").code(),
        Code::PermissionDenied
    );
    gateway.stop().await;
}
