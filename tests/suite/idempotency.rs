//! The idempotency key of a dispatch (M1): the same request is answered from the store, another one is refused,
//! two at once are one, and a restarted gateway still knows what it logged.

use integration_tests::{
    client::{click, element, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{EndSessionRequest, Outcome};
use serde_json::json;
use tonic::Code;

const APP: &str = "org.example.Notes";

fn options() -> GatewayOptions {
    GatewayOptions::new(Executor::Fake(json!({})))
}

fn dispatched(gateway: &GatewayProcess) -> usize {
    gateway.received_count("dispatch.element")
}

#[tokio::test]
async fn a_key_does_one_thing_once() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());

    let (one, two) = tokio::join!(
        agent.dispatch(request.clone()),
        agent.dispatch(request.clone())
    );
    let (one, two) = (one.expect("done"), two.expect("joined or stored"));
    assert_eq!(one.decision_id, two.decision_id, "two at once are one");
    let three = agent.dispatch(request).await.expect("stored");
    assert!(three.replayed && three.outcome() == Outcome::Ok);
    assert_eq!(dispatched(&gateway), 1);

    let name = element(&frame, "AXTextField", "Name");
    let other = on_element(&session_id, "key", &frame, name, set_value("x"));
    let refused = agent.dispatch(other).await.expect_err("the key is taken");
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert_eq!(dispatched(&gateway), 1);
    gateway.stop().await;
}

/// After a restart the logged key answers its logged outcome, without a frame; nothing is sent.
#[tokio::test]
async fn a_restarted_gateway_answers_from_its_log() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let request = on_element(
        &session_id,
        "key",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    let done = agent.dispatch(request.clone()).await.expect("done");
    let folder = gateway.stop().await;

    let gateway = GatewayProcess::start_in(folder, options()).await;
    gateway
        .wait_for(tonic_health::pb::health_check_response::ServingStatus::Serving)
        .await;
    let agent = gateway.agent();
    let logged = agent
        .dispatch(request.clone())
        .await
        .expect("the logged outcome");
    assert!(logged.replayed && logged.snapshot.is_none());
    assert_eq!(
        (logged.outcome(), &logged.decision_id),
        (Outcome::Ok, &done.decision_id)
    );
    // An effect is never confirmed by nothing.
    assert_eq!(
        (logged.effect(), logged.verification),
        (done.effect(), done.verification)
    );
    assert_eq!(dispatched(&gateway), 1, "over both lives of the gateway");

    let mut unknown = request;
    unknown.tool_call_id = "never seen".into();
    let refused = agent
        .dispatch(unknown)
        .await
        .expect_err("the session is gone");
    assert_eq!(refused.code(), Code::NotFound);
    gateway.stop().await;
}

/// An executor that fails with a request may have failed in the middle of it. Only the numbers of the protocol that are
/// said before anything is done leave the key free.
#[tokio::test]
async fn an_internal_error_after_delivery_is_unknown_and_keeps_the_key() {
    for number in [-32603, -32099, 7] {
        let script = json!({"rules": [{
            "method": "dispatch.element",
            "nth": 1,
            "steps": [{"error": {"code": number, "message": "internal_error"}}],
        }]});
        let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let save = element(&frame, "AXButton", "Save");
        let request = on_element(&session_id, "key", &frame, save, click());
        let result = agent.dispatch(request.clone()).await.expect("a result");
        assert_eq!(result.outcome(), Outcome::Unknown, "{number}");
        let again = agent.dispatch(request).await.expect("the stored outcome");
        assert!(again.replayed && again.outcome() == Outcome::Unknown);
        assert_eq!(dispatched(&gateway), 1, "{number}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn an_error_before_anything_is_done_leaves_the_key_free() {
    let script = json!({"rules": [{
        "method": "dispatch.element",
        "nth": 1,
        "steps": [{"error": {"code": -32602, "message": "invalid_params"}}],
    }]});
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());
    let status = agent.dispatch(request).await.expect_err("rejected");
    assert_eq!(status.code(), Code::Internal);
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());
    let result = agent.dispatch(request).await.expect("the key is free");
    assert_eq!(result.outcome(), Outcome::Ok);
    gateway.stop().await;
}

/// A session that ended leaves what became of its keys, without frames, to the principal that owned it.
#[tokio::test]
async fn an_ended_session_still_answers_for_its_keys() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());
    let done = agent.dispatch(request.clone()).await.expect("done");
    let mut client = agent.computer_use.clone();
    client
        .end_session(EndSessionRequest { session_id })
        .await
        .expect("ended");
    let stored = agent.dispatch(request.clone()).await.expect("stored");
    assert!(stored.replayed && stored.snapshot.is_none());
    assert_eq!(
        (stored.outcome(), &stored.decision_id),
        (Outcome::Ok, &done.decision_id)
    );
    let mut other = request.clone();
    other.turn = Some("another".into());
    let refused = agent.dispatch(other).await.expect_err("another request");
    assert_eq!(refused.code(), Code::AlreadyExists);
    let mut unknown = request;
    unknown.tool_call_id = "never seen".into();
    let refused = agent
        .dispatch(unknown)
        .await
        .expect_err("the session is gone");
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!(dispatched(&gateway), 1);
    gateway.stop().await;
}
