//! What callers are told when the executor misbehaves in the middle of a call: the truth, once, and never a
//! status that client libraries repeat by themselves.

use std::time::Duration;

use integration_tests::{
    client::{click, element, on_element, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
};
use maka_proto::v1::{
    Effect, GetStatusRequest, ImageAbsence, Outcome, ReleaseReason, SnapshotRequest,
    snapshot_request,
};
use serde_json::{Value, json};
use tonic::{Code, Request};

const APP: &str = "org.example.Notes";

async fn start(script: Value) -> GatewayProcess {
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await
}

/// M2: dead after reading the dispatch is UNKNOWN, a result; and repeating the key sends nothing.
#[tokio::test]
async fn a_crash_after_delivery_is_unknown_and_is_never_replayed() {
    let gateway = start(json!({
        "rules": [{"method": "dispatch.element", "process": 1, "steps": [{"die": 9}]}],
    }))
    .await;
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
    let result = agent
        .dispatch(request.clone())
        .await
        .expect("a result, not a status");
    assert_eq!(result.outcome(), Outcome::Unknown);
    assert_eq!(result.effect(), Effect::Unverifiable);
    assert_eq!(result.release_reason(), ReleaseReason::ChildExit);
    let again = agent.dispatch(request).await.expect("the stored outcome");
    assert!(again.replayed && again.outcome() == Outcome::Unknown);
    let sent = gateway
        .wire_methods()
        .iter()
        .filter(|method| *method == "dispatch.element")
        .count();
    assert_eq!(sent, 1);
    gateway.stop().await;
}

/// M5: what the executor could not verify stays unverified on the way to the client.
#[tokio::test]
async fn an_unverified_effect_is_never_upgraded() {
    for (effect, expected) in [
        ("unverifiable", Effect::Unverifiable),
        ("suspected_noop", Effect::SuspectedNoop),
    ] {
        let gateway = start(json!({
            "rules": [{
                "method": "dispatch.element",
                "steps": [{"patched": {"set": {"/effect": effect}}}],
            }],
        }))
        .await;
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
        let result = agent.dispatch(request).await.expect("allowed");
        assert_eq!((result.outcome(), result.effect()), (Outcome::Ok, expected));
        gateway.stop().await;
    }
}

/// F1: an executor that never answers a read costs the caller its deadline and nobody else anything. The status is the
/// gateway's own, not one of the client's timer or of the server's framework.
#[tokio::test]
async fn a_hung_read_ends_at_the_callers_deadline_and_is_cancelled() {
    let gateway = start(json!({
        "rules": [{"method": "observe", "nth": 1, "steps": ["wait_for_cancel", {"refuse": "aborted"}]}],
    }))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let mut request = Request::new(SnapshotRequest {
        session_id: session_id.clone(),
        target: Some(snapshot_request::Target::AppId(APP.into())),
        ..Default::default()
    });
    request.set_timeout(Duration::from_millis(700));
    let mut client = agent.computer_use.clone();
    let hung = client.snapshot(request);
    tokio::pin!(hung);
    tokio::select! {
        answer = &mut hung => panic!("answered before the executor was asked: {answer:?}"),
        () = gateway.received("observe") => {}
    }
    // The client has a timer of its own, which counts only when its call is polled: until the gateway's answer has
    // come in on the connection, it is not.
    gateway.received("$/cancel").await;
    agent.begin().await;
    let mut other = agent.computer_use.clone();
    other
        .get_status(GetStatusRequest {})
        .await
        .expect("others are served");
    let status = hung.await.expect_err("the executor never answers");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(reason(&status), "gateway.maka/deadline");
    agent
        .snapshot_app(&session_id, APP)
        .await
        .expect("the session goes on, on the same executor");
    gateway.stop().await;
}

/// C8: a missing permission is named, not flattened into a generic failure.
#[tokio::test]
async fn a_missing_permission_is_named() {
    let gateway = start(json!({
        "rules": [{
            "method": "observe",
            "steps": [{"result": {"ok": false, "error": {
                "code": "permission_missing",
                "message": "anything",
                "detail": {"permission": "screen_recording"},
            }}}],
        }],
    }))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let status = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(reason(&status), "executor.protocol/permission_missing");
    assert_eq!(
        integration_tests::client::metadata(&status, "permission").as_deref(),
        Some("screen_recording")
    );
    assert!(
        !status.message().contains("anything"),
        "the sentence is the gateway's"
    );
    gateway.stop().await;
}

/// C10: a picture that was asked for and is not there is said to be absent, with why.
#[tokio::test]
async fn an_omitted_picture_is_said_to_be_absent() {
    let gateway = start(json!({
        "rules": [{"method": "observe", "steps": [{"patched": {"remove": ["/snapshot/image"]}}]}],
    }))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    assert!(frame.image.is_none());
    assert_eq!(
        frame.image_absence,
        i32::from(ImageAbsence::OmittedByExecutor)
    );
    gateway.stop().await;
}

/// A result whose path is illegal for its tier, or global without permission, ends the executor and is never
/// passed on as a success.
#[tokio::test]
async fn an_executor_that_breaks_the_protocol_is_replaced() {
    for set in [
        json!({"/path": "cg_event_global", "/tier": "coordinate-background"}),
        json!({"/path": "cg_event_pid"}),
        json!({"/outcome": "refused"}),
        json!({"/toolCallId": "somebody else's"}),
    ] {
        let gateway = start(json!({
            "rules": [{
                "method": "dispatch.element",
                "process": 1,
                "steps": [{"patched": {"set": set}}],
            }],
        }))
        .await;
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
        let result = agent
            .dispatch(request)
            .await
            .expect("a result: it was delivered");
        assert_eq!(result.outcome(), Outcome::Unknown, "{set}");
        assert_eq!(
            result.release_reason(),
            ReleaseReason::ProtocolViolation,
            "{set}"
        );
        let fresh = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Ok(frame) = agent.snapshot_app(&session_id, APP).await {
                    return frame;
                }
            }
        });
        fresh
            .await
            .unwrap_or_else(|_| panic!("{set}: no new executor"));
        gateway.stop().await;
    }
}
