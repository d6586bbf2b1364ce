//! Dropping a call cancels it: `$/cancel` reaches the executor, the outcome is kept under the key, other
//! sessions are untouched, and nothing is sent twice.

use integration_tests::{
    client::{click, element, on_element},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
};
use maka_proto::v1::{EndSessionRequest, GetStatusRequest, Outcome, ReleaseReason};
use serde_json::{Value, json};

const APP: &str = "org.example.Notes";

async fn start(steps: Value) -> GatewayProcess {
    let script = json!({
        "rules": [{"method": "dispatch.element", "nth": 1, "process": 1, "steps": steps}],
    });
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await
}

/// The executor honours the cancel: nothing happened, the frame stays good, the key answers.
#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_outcome_kept() {
    let gateway = start(json!(["wait_for_cancel", {"refuse": "aborted"}])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let request = on_element(
        &session_id,
        "1",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    {
        let call = agent.dispatch(request.clone());
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("answered without a cancel: {result:?}"),
            () = gateway.received("dispatch.element") => {}
        }
    }
    gateway.received("$/cancel").await;
    let stored = agent
        .dispatch(request.clone())
        .await
        .expect("the stored outcome");
    assert!(stored.replayed);
    assert_eq!(stored.outcome(), Outcome::Refused);
    assert_eq!(stored.error.expect("why").code, "aborted");
    assert_eq!(gateway.received_count("dispatch.element"), 1);

    let mut again = request;
    again.tool_call_id = "2".into();
    let result = agent
        .dispatch(again)
        .await
        .expect("the frame is still good");
    assert_eq!(result.outcome(), Outcome::Ok);
    gateway.stop().await;
}

/// The executor had dispatched already: the truth is reported, whatever the cancel hoped for.
#[tokio::test]
async fn a_cancel_that_comes_too_late_reports_what_happened() {
    let gateway = start(json!(["wait_for_cancel", "default"])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let request = on_element(
        &session_id,
        "1",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    {
        let call = agent.dispatch(request.clone());
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("answered without a cancel: {result:?}"),
            () = gateway.received("dispatch.element") => {}
        }
    }
    gateway.received("$/cancel").await;
    let stored = agent.dispatch(request).await.expect("the stored outcome");
    assert!(stored.replayed);
    assert_eq!(stored.outcome(), Outcome::Ok);
    assert_eq!(gateway.received_count("dispatch.element"), 1);
    gateway.stop().await;
}

/// The executor ignores the cancel: after the grace it is killed, and the outcome is unknown.
#[tokio::test]
async fn an_ignored_cancel_ends_in_unknown_and_a_new_executor() {
    let gateway = start(json!(["never"])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let request = on_element(
        &session_id,
        "1",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    let mut client = agent.computer_use.clone();
    let before = client
        .get_status(GetStatusRequest {})
        .await
        .expect("status")
        .into_inner()
        .generation;
    {
        let call = agent.dispatch(request.clone());
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("answered without a cancel: {result:?}"),
            () = gateway.received("dispatch.element") => {}
        }
    }
    gateway.received("$/cancel").await;
    let stored = agent
        .dispatch(request)
        .await
        .expect("the outcome, when there is one");
    assert_eq!(stored.outcome(), Outcome::Unknown);
    assert_eq!(stored.release_reason(), ReleaseReason::RequestTimeout);
    let renewed = tokio::time::timeout(PATIENCE, async {
        while agent.snapshot_app(&session_id, APP).await.is_err() {}
    });
    assert!(renewed.await.is_ok(), "no new executor came");
    let after = client
        .get_status(GetStatusRequest {})
        .await
        .expect("status")
        .into_inner()
        .generation;
    assert!(after > before);
    gateway.stop().await;
}

/// Ending a session cancels its own call and nobody else's.
#[tokio::test]
async fn ending_a_session_leaves_the_others_alone() {
    let gateway = start(json!(["wait_for_cancel", {"refuse": "aborted"}])).await;
    let agent = gateway.agent();
    let (ending, staying) = (agent.begin().await, agent.begin().await);
    let frame = agent.snapshot_app(&ending, APP).await.expect("a frame");
    let request = on_element(
        &ending,
        "1",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    let other = agent.snapshot_app(&staying, APP).await.expect("a frame");
    let hanging = agent.dispatch(request);
    tokio::pin!(hanging);
    tokio::select! {
        result = &mut hanging => panic!("answered without a cancel: {result:?}"),
        () = gateway.received("dispatch.element") => {}
    }
    let (ended, result) = tokio::join!(
        async {
            agent
                .computer_use
                .clone()
                .end_session(EndSessionRequest {
                    session_id: ending.clone(),
                })
                .await
        },
        &mut hanging,
    );
    ended.expect("ended");
    match result {
        Ok(result) => assert_ne!(result.outcome(), Outcome::Ok),
        Err(status) => assert!(!status.message().is_empty()),
    }
    let press = on_element(
        &staying,
        "1",
        &other,
        element(&other, "AXButton", "Save"),
        click(),
    );
    let result = agent.dispatch(press).await.expect("untouched");
    assert_eq!(result.outcome(), Outcome::Ok);
    gateway.stop().await;
}
