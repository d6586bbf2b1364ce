//! Faults around the begin and the end of sessions.

use integration_tests::fake::until;
use maka_proto::v1::{EndSessionRequest, SnapshotRequest, snapshot_request};
use serde_json::json;

use super::{APP, Bench, said, status_line};

impl Bench {
    fn observation(&self, max_elements: u32) -> SnapshotRequest {
        SnapshotRequest {
            session_id: self.session_id.clone(),
            target: Some(snapshot_request::Target::AppId(APP.into())),
            max_elements: Some(max_elements),
            ..Default::default()
        }
    }

    async fn end(&self) {
        let mut client = self.agent.computer_use.clone();
        let request = EndSessionRequest {
            session_id: self.session_id.clone(),
        };
        client.end_session(request).await.expect("ended");
    }

    /// The messages about sessions and cancels that the executors read, in order.
    fn about_sessions(&self) -> Vec<String> {
        self.gateway
            .wire_methods()
            .into_iter()
            .filter(|method| method.starts_with("session.") || method == "$/cancel")
            .collect()
    }
}

/// Spec maka-cu §12.3 row 44, §12.6 row 68: a refused beginning reaches the caller in its own words, and the next call begins again.
#[tokio::test]
async fn a_refused_beginning_is_tried_again() {
    let bench = Bench::start(json!([
        { "method": "session.begin", "nth": 1, "steps": [{ "refuse": "permission_missing" }] },
        { "method": "session.begin", "nth": 2, "steps": [{ "error": { "code": -32603, "message": "x" } }] },
    ]))
    .await;
    let refusals = [
        "FailedPrecondition executor.protocol/permission_missing",
        "Internal executor.rpc/rpc_rejected",
    ];
    for refusal in refusals {
        let status = bench.agent.snapshot_app(&bench.session_id, APP).await;
        assert_eq!(status_line(&status.expect_err("refused")), refusal);
    }
    let frame = bench.frame().await;
    let result = bench.agent.dispatch(bench.write("then", &frame)).await;
    assert_eq!(said(&result), "OK CONFIRMED");
    assert_eq!(bench.about_sessions(), ["session.begin"; 3]);
    assert_eq!(bench.gateway.received_count("observe"), 1);
    assert_eq!(bench.status().await.generation, 1);
    bench.gateway.stop().await;
}

/// Spec maka-cu §12.3 row 39 and §12.6 row 72: ending a session cancels what it has in flight and says so to the executor; a frame
/// that comes back after it belongs to nobody.
#[tokio::test]
async fn a_frame_that_comes_after_the_end_is_nobodys() {
    let bench = Bench::start(json!([
        { "method": "observe", "params": { "/maxElements": 101 }, "steps": ["wait_for_cancel", "default"] },
    ]))
    .await;
    let frame = bench.frame().await;
    let mut client = bench.agent.computer_use.clone();
    let late = client.snapshot(bench.observation(101));
    tokio::pin!(late);
    tokio::select! {
        answer = &mut late => panic!("answered without a cancel: {answer:?}"),
        () = until("it is read", || bench.gateway.received_count("observe") == 2) => {}
    }
    let ((), late) = tokio::join!(bench.end(), late);
    // It may still have been answered; what counts is that nobody can use it.
    let late = late.ok().and_then(|answer| answer.into_inner().snapshot);
    for (key, frame) in [("old", Some(frame)), ("late", late)] {
        let Some(frame) = frame else { continue };
        let result = bench.agent.dispatch(bench.write(key, &frame)).await;
        assert_eq!(
            said(&result),
            "NotFound gateway.maka/session_unknown",
            "{key}"
        );
        assert_eq!(bench.sent(key), 0);
    }
    assert_eq!(
        bench.about_sessions(),
        ["session.begin", "$/cancel", "session.end"]
    );
    assert_eq!(bench.status().await.generation, 1);
    bench.gateway.stop().await;
}

/// Issue 3: an executor that does not want to hear of the end costs the others nothing but its own generation.
#[tokio::test]
async fn an_end_that_is_never_answered_ends_all_the_same() {
    let mut bench = Bench::start(json!([
        { "method": "session.end", "process": 1, "steps": [{ "die": 9 }] },
    ]))
    .await;
    bench.frame().await;
    let before = bench.ready_after(0).await;
    bench.end().await;
    bench.ready_after(before).await;
    assert_eq!(
        bench.gateway.received_count("session.end"),
        1,
        "not sent again"
    );
    bench.session_id = bench.agent.begin().await;
    let frame = bench.frame().await;
    let result = bench.agent.dispatch(bench.write("next", &frame)).await;
    assert_eq!(said(&result), "OK CONFIRMED");
    bench.gateway.stop().await;
}
