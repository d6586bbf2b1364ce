//! Faults in the middle of calls that read, and of launches.

use std::time::Duration;

use maka_proto::v1::{
    LaunchAppRequest, ListWindowsRequest, Outcome, SnapshotRequest, snapshot_request,
};
use serde_json::{Value, json};
use tonic::Request;

use super::{APP, Bench, Then, status_line};

struct Row {
    name: &'static str,
    steps: Value,
    answer: &'static str,
    then: Then,
}

const LOST: &str = "Aborted executor.lifecycle/outcome_unknown";
const DISBELIEVED: &str = "FailedPrecondition executor.protocol/protocol_violation";

fn row(name: &'static str, steps: Value, answer: &'static str, then: Then) -> Row {
    Row {
        name,
        steps,
        answer,
        then,
    }
}

fn lie(name: &'static str, set: Value) -> Row {
    row(
        name,
        json!([{ "patched": { "set": set } }]),
        DISBELIEVED,
        Then::New,
    )
}

fn left_out(name: &'static str, pointer: &str) -> Row {
    let steps = json!([{ "patched": { "remove": [pointer] } }]);
    row(name, steps, DISBELIEVED, Then::New)
}

/// Faults of `observe`; each row asks for a number of elements of its own, by which its rule knows it.
fn observations() -> Vec<Row> {
    vec![
        row("dead", json!([{ "die": 9 }]), LOST, Then::New),
        row(
            "gone in the middle",
            json!(["half", { "exit": 1 }]),
            LOST,
            Then::New,
        ),
        row("a closed output", json!(["close_stdout"]), LOST, Then::New),
        row(
            "an internal error",
            json!([{ "error": { "code": -32603, "message": "x" } }]),
            "Internal executor.rpc/rpc_rejected",
            Then::Same,
        ),
        row(
            "a refusal",
            json!([{ "refuse": "window_gone" }]),
            "NotFound executor.protocol/window_gone",
            Then::Same,
        ),
        row(
            "a refusal with another arm",
            json!([{ "result": { "ok": true, "error": { "code": "window_gone", "message": "x" } } }]),
            DISBELIEVED,
            Then::New,
        ),
        row(
            "an invented refusal",
            json!([{ "result": { "ok": false, "error": { "code": "tired", "message": "x" } } }]),
            DISBELIEVED,
            Then::New,
        ),
        row(
            "a refusal without a code",
            json!([{ "result": { "ok": false, "error": {} } }]),
            DISBELIEVED,
            Then::New,
        ),
        left_out("no snapshot", "/snapshot"),
        left_out("no displays", "/snapshot/displays"),
        left_out("no app id", "/snapshot/target/appId"),
        lie(
            "a selection of nothing",
            json!({ "/snapshot/selectedText": { "text": "", "truncated": false } }),
        ),
        lie(
            "a token that is a number",
            json!({ "/snapshot/focusedElementToken": 4 }),
        ),
        lie(
            "an empty token",
            json!({ "/snapshot/focusedElementToken": "" }),
        ),
        lie(
            "selected in words",
            json!({ "/snapshot/elements/1/selected": "yes" }),
        ),
        lie(
            "a label that is a number",
            json!({ "/snapshot/elements/1/label": 7 }),
        ),
        lie(
            "a bare digest",
            json!({ "/snapshot/elements/1/digest": "0".repeat(64) }),
        ),
        lie(
            "a difference without order",
            json!({ "/snapshot/difference": { "presentation": "odd" } }),
        ),
        lie(
            "a picture elsewhere",
            json!({ "/snapshot/image/path": "/etc/hostname" }),
        ),
    ]
}

/// Field reports F1, M2, H14; spec maka-cu §12.2 rows 18–21, §12.3 rows 34, 44.
#[tokio::test]
async fn a_read_ends_in_one_status() {
    let rows = observations();
    let rules: Vec<Value> = (1_u32..)
        .zip(&rows)
        .map(|(number, row)| {
            json!({
                "method": "observe", "params": { "/maxElements": 100 + number }, "steps": row.steps,
            })
        })
        .collect();
    let bench = Bench::start(rules.into()).await;
    for (number, row) in (1_u32..).zip(rows) {
        let name = row.name;
        let before = bench.ready_after(0).await;
        let old = bench.frame().await;
        let request = SnapshotRequest {
            session_id: bench.session_id.clone(),
            target: Some(snapshot_request::Target::AppId(APP.into())),
            image: maka_proto::v1::ImageDelivery::Reference.into(),
            max_elements: Some(100 + number),
            ..Default::default()
        };
        let mut client = bench.agent.computer_use.clone();
        let status = client.snapshot(request).await.expect_err("no frame");
        assert_eq!(status_line(&status), row.answer, "{name}");
        bench.goes_on(name, before, row.then, &old).await;
    }
    bench.gateway.stop().await;
}

/// Spec maka-cu §12.2 row 21, §12.3 row 44: a list with a broken entry is no list.
#[tokio::test]
async fn a_broken_entry_breaks_the_list() {
    let rows = [
        left_out("no app id", "/windows/0/appId"),
        left_out("no z index", "/windows/0/zIndex"),
        left_out("no word on the screen", "/windows/0/onScreen"),
        left_out("no layer", "/windows/0/layer"),
        lie("no list", json!({ "/windows": {} })),
    ];
    let rules: Vec<Value> = (1_u64..)
        .zip(&rows)
        .map(|(process, row)| {
            json!({ "method": "window.list", "process": process, "steps": row.steps })
        })
        .collect();
    let bench = Bench::start(rules.into()).await;
    for row in rows {
        let name = row.name;
        let before = bench.ready_after(0).await;
        let old = bench.frame().await;
        let mut client = bench.agent.computer_use.clone();
        let request = ListWindowsRequest {
            session_id: bench.session_id.clone(),
        };
        let status = client.list_windows(request).await.expect_err("no list");
        assert_eq!(status_line(&status), row.answer, "{name}");
        bench.goes_on(name, before, row.then, &old).await;
    }
    bench.gateway.stop().await;
}

/// Spec maka-cu §12.3 row 33: a launch is an action. Whatever goes wrong after it was sent is a result, and nothing is sent again.
#[tokio::test]
async fn a_launch_of_unknown_fate_is_a_result() {
    let rows = [
        ("dead", json!([{ "die": 9 }]), Then::New),
        (
            "no word on the foreground",
            json!([{ "patched": { "remove": ["/foregroundTaken"] } }]),
            Then::New,
        ),
        (
            "an unknown wait",
            json!([{ "patched": { "set": { "/waited/reason": "bored" } } }]),
            Then::New,
        ),
        ("not in time", json!([{ "refuse": "timeout" }]), Then::Same),
        (
            "an internal error",
            json!([{ "error": { "code": -32603, "message": "x" } }]),
            Then::Same,
        ),
    ];
    let rules: Vec<Value> = (1_u32..)
        .zip(&rows)
        .map(|(number, (_, steps, _))| {
            json!({
                "method": "apps.launch", "params": { "/waitForWindowMs": number }, "steps": steps,
            })
        })
        .collect();
    let bench = Bench::start(rules.into()).await;
    for (number, (name, _, then)) in (1_u32..).zip(rows) {
        let before = bench.ready_after(0).await;
        let old = bench.frame().await;
        let launched = bench.gateway.received_count("apps.launch");
        let request = LaunchAppRequest {
            session_id: bench.session_id.clone(),
            tool_call_id: name.to_owned(),
            app: APP.to_owned(),
            wait_for_window_ms: Some(number),
            turn: None,
        };
        let mut client = bench.agent.computer_use.clone();
        for is_repeated in [false, true] {
            let result = client.launch_app(request.clone()).await;
            let result = result.expect("a result: it was sent").into_inner();
            assert_eq!(
                (result.outcome(), result.replayed),
                (Outcome::Unknown, is_repeated),
                "{name}"
            );
        }
        let sent = bench.gateway.received_count("apps.launch") - launched;
        assert_eq!(sent, 1, "{name}: sent once");
        bench.goes_on(name, before, then, &old).await;
    }
    bench.gateway.stop().await;
}

/// Field report F1; spec maka-cu §12.1 rows 5 and 7: a read that nobody answers ends with the caller, and then with the executor.
#[tokio::test]
async fn a_read_that_is_never_answered_costs_one_generation() {
    let bench = Bench::start(json!([
        { "method": "observe", "params": { "/maxElements": 101 }, "steps": ["never"] },
    ]))
    .await;
    let before = bench.ready_after(0).await;
    let old = bench.frame().await;
    let mut request = Request::new(SnapshotRequest {
        session_id: bench.session_id.clone(),
        target: Some(snapshot_request::Target::AppId(APP.into())),
        max_elements: Some(101),
        ..Default::default()
    });
    request.set_timeout(Duration::from_millis(200));
    let mut client = bench.agent.computer_use.clone();
    client.snapshot(request).await.expect_err("never answered");
    bench.gateway.received("$/cancel").await;
    bench.ready_after(before).await;
    bench.goes_on("never", before, Then::New, &old).await;
    bench.gateway.stop().await;
}
