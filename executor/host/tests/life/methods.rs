//! What is asked and what comes unasked: the generic methods (spec 9), and lines of the child that answer nothing (spec 8.5).

use maka_cu_host::error::{Breach, LifecycleCause};
use maka_cu_host::{CallError, CallOptions};
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::Envelope;
use maka_cu_protocol::sets::{LifecycleCode, RequestStage, ServiceState};
use serde_json::json;

use crate::child::{Script, handshake, handshake_with};
use crate::trace::{lifecycle, soon};

const GENERIC: [Method; 2] = [Method::HostDispatch, Method::HostSnapshot];

/// Not advertised: refused before anything is written, whether the executor was there already or had to be started first.
#[tokio::test]
async fn generic_methods_that_are_not_offered_are_not_sent() {
    for method in GENERIC {
        let script = Script::new("greet; serve");
        let service = script.service(|_| {});
        for started in [false, true] {
            let call = service.call(method, json!({}), CallOptions::default());
            let error = lifecycle(soon(call).await);
            let LifecycleCause::NotOffered = error.cause else {
                panic!("{method}, started {started}: {error:?}")
            };
            assert_eq!(
                (error.code, error.stage, error.method),
                (
                    LifecycleCode::ServiceMismatch,
                    RequestStage::Queued,
                    Some(method)
                )
            );
            assert!(error.is_fatal() && !error.possibly_delivered());
        }
        let others = service.call(Method::AppsList, json!({}), CallOptions::default());
        soon(others).await.unwrap();
        assert_eq!((script.starts(), script.received(method.as_str())), (1, 0));
    }
}

/// Advertised: passed through with the params as they are.
#[tokio::test]
async fn generic_methods_that_are_offered_are_passed_through() {
    let mut offering = handshake();
    offering["capabilities"]["genericMethods"] = json!(["host.dispatch", "host.snapshot"]);
    let body = "greet; while read -r line; do note \"$line\"; answer \"$line\" '\"result\":{\"ok\":true}'; done";
    let script = Script::with_handshake(&offering, body);
    let service = script.service(|_| {});
    for method in GENERIC {
        let params = json!({ "sessionId": "s", "pid": 5021, "x": 1.5, "y": -2 });
        let call = service.call(method, params.clone(), CallOptions::default());
        let Envelope::Ok(_) = soon(call).await.unwrap().value else {
            panic!("it answers everything")
        };
        let sent = script.log().pop().unwrap();
        let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            (&sent["method"], &sent["params"]),
            (&json!(method.as_str()), &params)
        );
    }
}

/// One that is advertised does not bring the other along.
#[tokio::test]
async fn each_generic_method_is_offered_by_itself() {
    let offering = handshake_with(
        "/capabilities",
        json!({
            "captureStream": false, "elementActions": [], "pointActions": [], "keyActions": [], "imageFormats": [],
            "genericMethods": ["host.snapshot"],
        }),
    );
    let body = "greet; while read -r line; do answer \"$line\" '\"result\":{\"ok\":true}'; done";
    let script = Script::with_handshake(&offering, body);
    let service = script.service(|_| {});
    let ask = |method| service.call(method, json!({}), CallOptions::default());
    let error = lifecycle(soon(ask(Method::HostDispatch)).await);
    assert!(matches!(error.cause, LifecycleCause::NotOffered));
    soon(ask(Method::HostSnapshot)).await.unwrap();
}

/// Spec 8.5 and field report H14: a child asks nothing of its host. Notifications, requests of ids that are nobody's, and answers
/// nobody waits for are dropped, uncounted, however many there are.
#[tokio::test]
async fn what_comes_unasked_is_dropped_uncounted() {
    let lines = [
        r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":2}}"#,
        r#"{"jsonrpc":"2.0","method":"window.changed"}"#,
        r#"{"jsonrpc":"2.0","id":4096,"method":"host.ask","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"2","method":"host.ask"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse_error"}}"#,
        r#"{"jsonrpc":"2.0","id":4096,"result":{"ok":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"ok":true}}"#,
        r#"{"jsonrpc":"2.0","id":-2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":2.5,"result":{}}"#,
        "{}",
    ];
    let unasked: String = lines
        .iter()
        .map(|line| format!("printf '%s\\n' '{line}'; "))
        .collect();
    let body = format!(
        "greet; while read -r line; do {unasked} answer \"$line\" \"$apps\"; {unasked} done"
    );
    let script = Script::new(&body);
    let service = script.service(|_| {});
    for _ in 0..3 {
        let call = service.call(Method::AppsList, json!({}), CallOptions::default());
        let Envelope::Ok(fields) = soon(call).await.unwrap().value else {
            panic!("the true answer is not overtaken")
        };
        assert!(fields.contains_key("apps"));
    }
    assert_eq!(service.status().state, ServiceState::Ready);
    assert_eq!(script.starts(), 1);
}

/// A request of the child's under the id of one of ours is an answer without a result, and that is a broken protocol.
#[tokio::test]
async fn a_request_that_poses_as_an_answer_breaks_the_protocol() {
    let body =
        "greet; read -r line; answer \"$line\" '\"method\":\"host.ask\",\"params\":{}'; serve";
    let script = Script::new(body);
    let service = script.service(|_| {});
    let call = service.call(Method::AppsList, json!({}), CallOptions::default());
    let Err(CallError::Violation(violation)) = soon(call).await else {
        panic!("it answers nothing")
    };
    let missing = Violation::of("result", Reason::Missing);
    assert_eq!(violation.violation, Breach::Field(missing));
    assert_eq!(violation.method, Some(Method::AppsList));
}
