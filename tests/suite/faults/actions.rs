//! Faults in the middle of an action.

use maka_proto::v1::{Outcome, ReleaseReason};
use serde_json::{Value, json};

use super::{Bench, Then, said};

/// How the caller behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Waits for the answer.
    Waits,
    /// Drops the call once the executor has the request, and asks again with the same key.
    Drops,
}

struct Row {
    /// The key of the call, and so the name of the rule.
    name: &'static str,
    steps: Value,
    caller: Caller,
    answer: &'static str,
    then: Then,
}

fn row(name: &'static str, steps: Value, answer: &'static str, then: Then) -> Row {
    Row {
        name,
        steps,
        caller: Caller::Waits,
        answer,
        then,
    }
}

fn dropped(name: &'static str, steps: Value, answer: &'static str, then: Then) -> Row {
    Row {
        caller: Caller::Drops,
        ..row(name, steps, answer, then)
    }
}

/// An answer with these changes is believed by nobody: the action may have happened, and the executor is replaced.
fn lie(name: &'static str, set: Value) -> Row {
    row(
        name,
        json!([{ "patched": { "set": set } }]),
        "UNKNOWN UNVERIFIABLE outcome_unknown PROTOCOL_VIOLATION",
        Then::New,
    )
}

fn left_out(name: &'static str, pointer: &str) -> Row {
    row(
        name,
        json!([{ "patched": { "remove": [pointer] } }]),
        "UNKNOWN UNVERIFIABLE outcome_unknown PROTOCOL_VIOLATION",
        Then::New,
    )
}

const DONE: &str = "OK CONFIRMED";
const GONE: &str = "UNKNOWN UNVERIFIABLE outcome_unknown CHILD_EXIT";
const SILENT: &str = "UNKNOWN UNVERIFIABLE outcome_unknown REQUEST_TIMEOUT";
const BROKEN: &str = "UNKNOWN UNVERIFIABLE outcome_unknown PROTOCOL_VIOLATION";

/// Answers that are odd in form, or in time, and true.
fn odd_but_true() -> Vec<Row> {
    let lines = "{}\n{\"id\":null}\n\r\n{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}\n\
                 {\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{\"ok\":true}}\n\
                 {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"host.hello\",\"params\":{}}\n";
    let deep = format!("{}\n", "[".repeat(10_000));
    let first = |line: &str| json!([{ "raw": line }, "default"]);
    // The third bad line of one executor ends it, so that some rows come in front of a death.
    let last_words = |line: &str| json!([{ "raw": line }, "default", { "die": 9 }]);
    vec![
        row(
            "byte by byte",
            json!([{ "pieces": 1 }, "default"]),
            DONE,
            Then::Same,
        ),
        row(
            "with CRLF",
            json!([{ "raw": "\r\n" }, "default", { "raw": "\r\n" }]),
            DONE,
            Then::Same,
        ),
        row("twice", json!(["default", "again"]), DONE, Then::Same),
        row("odd messages first", first(lines), DONE, Then::Same),
        row("no message first", first("no message\n"), DONE, Then::Same),
        row("null first", last_words("null\n"), DONE, Then::New),
        row("a list first", first("[]\n"), DONE, Then::Same),
        row(
            "a number beyond numbers first",
            last_words("{\"id\":1e400}\n"),
            DONE,
            Then::New,
        ),
        row("a nest first", first(&deep), DONE, Then::Same),
        row(
            "a byte order mark first",
            last_words("\u{feff}{}\n"),
            DONE,
            Then::New,
        ),
        row(
            "a flood on stderr",
            json!([{ "flood_stderr": 1 << 20 }, "default"]),
            DONE,
            Then::Same,
        ),
        row(
            "a helper",
            json!(["spawn_helper", "default"]),
            DONE,
            Then::Same,
        ),
        row(
            "dead after the answer",
            json!(["default", { "die": 9 }]),
            DONE,
            Then::New,
        ),
        dropped(
            "done after the cancel",
            json!(["wait_for_cancel", "default"]),
            DONE,
            Then::Same,
        ),
        dropped(
            "aborted by the cancel",
            json!(["wait_for_cancel", { "refuse": "aborted" }]),
            "REFUSED UNVERIFIABLE aborted",
            Then::Same,
        ),
        row(
            "failed",
            json!([{ "patched": { "set": {
                "/ok": false, "/outcome": "failed", "/effect": "unverifiable",
                "/error": { "code": "element_released", "message": "x" },
            } } }]),
            "FAILED UNVERIFIABLE element_released",
            Then::Same,
        ),
        row(
            "an internal error",
            json!([{ "error": { "code": -32603, "message": "internal_error" } }]),
            "UNKNOWN UNVERIFIABLE outcome_unknown",
            Then::Same,
        ),
    ]
}

/// Deaths, silence and floods.
fn broken_off() -> Vec<Row> {
    vec![
        row(
            "dead before the answer",
            json!([{ "die": 9 }]),
            GONE,
            Then::New,
        ),
        row("a crash", json!([{ "die": 6 }]), GONE, Then::New),
        row("an orderly end", json!([{ "exit": 0 }]), GONE, Then::New),
        row(
            "dead in the middle of the line",
            json!(["half", { "die": 9 }]),
            GONE,
            Then::New,
        ),
        row(
            "dead between two bytes",
            json!([{ "raw": "{" }, { "die": 9 }]),
            GONE,
            Then::New,
        ),
        row(
            "dead between the answer and its end",
            json!([{ "raw": "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"ok\":true}}" }, { "die": 9 }]),
            GONE,
            Then::New,
        ),
        row(
            "a closed output",
            json!(["close_stdout"]),
            BROKEN,
            Then::New,
        ),
        row(
            "three bad lines",
            json!([{ "raw": "null\n4\n\"text\"\n" }, "default"]),
            BROKEN,
            Then::New,
        ),
        row(
            "a line without an end",
            json!([{ "flood_stdout_bytes": 5 << 20 }, "default"]),
            BROKEN,
            Then::New,
        ),
        dropped("no answer", json!(["never"]), SILENT, Then::New),
        dropped(
            "another id",
            json!([{ "other_id": 1_000_000 }]),
            SILENT,
            Then::New,
        ),
        dropped("half an answer", json!(["half"]), SILENT, Then::New),
    ]
}

/// Spec maka-cu §7 and §12.2: a lie in any field of the answer to a dispatch.
fn lies() -> Vec<Row> {
    let hex = "0".repeat(64);
    vec![
        lie("no arm", json!({ "/ok": "yes" })),
        left_out("without ok", "/ok"),
        lie(
            "another tool call",
            json!({ "/toolCallId": "of somebody else" }),
        ),
        left_out("without a tool call", "/toolCallId"),
        lie("an unknown outcome", json!({ "/outcome": "done" })),
        lie("ok and refused", json!({ "/outcome": "refused" })),
        lie(
            "not ok and ok",
            json!({ "/ok": false, "/error": { "code": "window_gone", "message": "x" } }),
        ),
        lie(
            "failed and confirmed",
            json!({ "/ok": false, "/outcome": "failed", "/error": { "code": "window_gone", "message": "x" } }),
        ),
        lie(
            "an invented refusal",
            json!({ "/ok": false, "/outcome": "refused", "/effect": "unverifiable", "/error": { "code": "tired", "message": "x" } }),
        ),
        lie(
            "a bare refusal",
            json!({ "/ok": false, "/outcome": "refused", "/effect": "unverifiable" }),
        ),
        lie("an unknown tier", json!({ "/tier": "AX" })),
        lie(
            "the tier of another path",
            json!({ "/tier": "coordinate-background" }),
        ),
        left_out("without a tier", "/tier"),
        lie("an unknown path", json!({ "/path": "teleport" })),
        lie(
            "the path of another tier",
            json!({ "/path": "cg_event_pid" }),
        ),
        lie(
            "a forbidden path",
            json!({ "/path": "cg_event_global", "/tier": "coordinate-background" }),
        ),
        left_out("without a path", "/path"),
        lie("an unknown effect", json!({ "/effect": "certain" })),
        left_out("without an effect", "/effect"),
        left_out("without a verification", "/verification"),
        lie(
            "an unknown verification",
            json!({ "/verification/method": "trust_me" }),
        ),
        lie(
            "a change that is no boolean",
            json!({ "/verification/observedChange": 1 }),
        ),
        lie(
            "a settle without a time",
            json!({ "/settle": { "quiesced": true, "reason": "quiesced" } }),
        ),
        lie("an unknown settle", json!({ "/settle/reason": "bored" })),
        lie(
            "a frame of another process",
            json!({ "/snapshot/target/pid": 1 }),
        ),
        lie("a frame that is no frame", json!({ "/snapshot": 7 })),
        lie("a bare hash", json!({ "/snapshot/windowDigest": hex })),
        lie(
            "elements that are no list",
            json!({ "/snapshot/elements": {} }),
        ),
        left_out("without displays", "/snapshot/displays"),
        left_out("without obscuring rectangles", "/snapshot/obscuringRects"),
        left_out("without an app id", "/snapshot/target/appId"),
        lie(
            "an element with a free action",
            json!({ "/snapshot/elements/1/actions": ["dance"] }),
        ),
        lie(
            "two elements with one stable id",
            json!({ "/snapshot/elements/1/stableId": 0 }),
        ),
        lie(
            "an empty parent",
            json!({ "/snapshot/elements/1/parentToken": "" }),
        ),
        lie(
            "a picture in an unknown format",
            json!({ "/snapshot/image/format": "gif" }),
        ),
        lie(
            "a picture with a bare hash",
            json!({ "/snapshot/image/sha256": hex }),
        ),
        lie(
            "a picture at a relative path",
            json!({ "/snapshot/image/path": "image.png" }),
        ),
        lie(
            "an invented reason for no frame",
            json!({ "/snapshot": null, "/postObservationError": { "code": "tired", "message": "x" } }),
        ),
    ]
}

/// Spec maka-cu §7, "no frame after a dispatch": what happened stands, and the missing frame is said to be missing.
fn without_a_frame() -> Vec<Row> {
    let without = |code: &str| {
        json!([{ "patched": { "set": {
            "/snapshot": null, "/postObservationError": { "code": code, "message": "x" },
        } } }])
    };
    vec![
        row(
            "done, and no frame could be taken",
            without("capture_failed"),
            "OK CONFIRMED no frame: capture_failed",
            Then::Same,
        ),
        row(
            "done, and the window closed",
            without("window_gone"),
            "OK CONFIRMED no frame: window_gone",
            Then::Same,
        ),
        row(
            "done, and no word about the frame",
            json!([{ "patched": { "remove": ["/snapshot"] } }]),
            "OK CONFIRMED no frame: capture_failed",
            Then::Same,
        ),
    ]
}

async fn check(rows: Vec<Row>) {
    let rules: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "method": "dispatch.element",
                "params": { "/toolCallId": row.name },
                "steps": row.steps,
            })
        })
        .collect();
    let bench = Bench::start(rules.into()).await;
    for row in rows {
        let name = row.name;
        let before = bench.ready_after(0).await;
        let frame = bench.frame().await;
        let request = bench.write(name, &frame);
        if row.caller == Caller::Drops {
            let call = bench.agent.dispatch(request.clone());
            tokio::pin!(call);
            tokio::select! {
                result = &mut call => panic!("{name}: answered without a cancel: {result:?}"),
                () = integration_tests::fake::until("it is read", || bench.sent(name) == 1) => {}
            }
        }
        let result = bench.agent.dispatch(request.clone()).await;
        assert_eq!(said(&result), row.answer, "{name}");
        let stored = bench.agent.dispatch(request).await;
        assert_eq!(said(&stored), row.answer, "{name}: one key has one outcome");
        let (result, stored) = (result.expect("a result"), stored.expect("a result"));
        assert!(stored.replayed, "{name}");
        assert_eq!(result.decision_id, stored.decision_id, "{name}");
        if let Some(frame) = &result.snapshot {
            super::has_its_title(frame);
        }
        if result.outcome() == Outcome::Unknown {
            assert!(result.snapshot.is_none(), "{name}: no frame of the unknown");
        }
        if result.release_reason() == ReleaseReason::Unspecified {
            assert_eq!(result.release_reason, None, "{name}");
        }
        assert_eq!(bench.sent(name), 1, "{name}: sent once");
        bench.goes_on(name, before, row.then, &frame).await;
    }
    bench.gateway.stop().await;
}

/// Field reports A6, H10, H14; spec maka-cu §12.1 rows 1, 5, 6: what is odd in form and true counts.
#[tokio::test]
async fn what_is_odd_and_true_counts() {
    check(odd_but_true()).await;
}

/// Field reports M2, H11; spec maka-cu §12.1 rows 2, 14, 16: what breaks off is unknown, once.
#[tokio::test]
async fn what_breaks_off_is_unknown() {
    check(broken_off()).await;
}

/// Field reports A3, C1, M5; spec maka-cu §12.2 rows 18–24, §12.3 rows 30, 34, 42, §12.6 row 73.
#[tokio::test]
async fn a_lie_is_never_passed_on() {
    check(lies()).await;
}

/// Spec maka-cu §12.3 row 38.
#[tokio::test]
async fn a_missing_frame_takes_nothing_from_the_outcome() {
    check(without_a_frame()).await;
}
