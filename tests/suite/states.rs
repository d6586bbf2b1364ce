//! The status of a session (spec maka-cu §10.5): what the executor's answers say about the desktop decides what may be
//! sent next, and what is refused for it reaches nobody.

use integration_tests::{
    client::{click, element, on_element, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::Outcome;
use serde_json::{Value, json};
use tonic::Code;

const APP: &str = "org.example.Notes";

async fn start(rules: Value) -> GatewayProcess {
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(
        json!({ "rules": rules }),
    )))
    .await
}

/// C5: once the screen is known to be locked no action is sent, and none is kept for later; an observation finds out
/// that it is unlocked, and only what it shows can be acted on.
#[tokio::test]
async fn a_locked_screen_takes_no_action() {
    let gateway = start(json!([
        {"method": "observe", "nth": 2, "steps": [{"refuse": "screen_locked"}]},
    ]))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let before = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let locked = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect_err("locked");
    assert_eq!(reason(&locked), "executor.protocol/screen_locked");

    let save = element(&before, "AXButton", "Save");
    let request = on_element(&session_id, "1", &before, save, click());
    let sent = gateway.wire().len();
    let refused = agent.dispatch(request.clone()).await.expect_err("locked");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(reason(&refused), "gateway.maka/screen_locked");
    assert_eq!(gateway.wire().len(), sent, "nothing was sent");

    let after = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect("unlocked");
    assert_eq!(
        gateway.received_count("dispatch.element"),
        0,
        "nothing was kept"
    );
    let refused = agent.dispatch(request).await.expect_err("an old frame");
    assert_eq!(reason(&refused), "policy.maka/snapshot_superseded");
    let save = element(&after, "AXButton", "Save");
    let request = on_element(&session_id, "2", &after, save, click());
    let done = agent.dispatch(request).await.expect("allowed");
    assert_eq!(done.outcome(), Outcome::Ok);
    gateway.stop().await;
}

/// A person intervened, or nobody knows what an action did: what was seen before is worth nothing, whatever window it
/// shows, until something new was seen. Other sessions are not concerned.
#[tokio::test]
async fn an_intervention_or_an_unknown_outcome_asks_for_a_new_look() {
    for (code, expected) in [
        ("physical_input_active", Outcome::Refused),
        ("outcome_unknown", Outcome::Unknown),
    ] {
        let gateway = start(json!([
            {"method": "dispatch.element", "nth": 1, "steps": [{"refuse": code}]},
        ]))
        .await;
        let agent = gateway.agent();
        let (session_id, other) = (agent.begin().await, agent.begin().await);
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let others = agent.snapshot_app(&other, APP).await.expect("a frame");
        let save = element(&frame, "AXButton", "Save");
        let request = |session: &str, key: &str, frame| {
            on_element(
                session,
                key,
                frame,
                element(frame, "AXButton", "Save"),
                click(),
            )
        };
        let first = on_element(&session_id, "1", &frame, save, click());
        let result = agent.dispatch(first).await.expect("a result");
        assert_eq!(result.outcome(), expected, "{code}");
        let refused = agent
            .dispatch(request(&session_id, "2", &frame))
            .await
            .expect_err("an old frame");
        assert_eq!(
            refused.code(),
            Code::FailedPrecondition,
            "{code}: {refused}"
        );
        let sent = gateway.received_count("dispatch.element");
        assert_eq!(sent, 1, "{code}");
        let done = agent
            .dispatch(request(&other, "1", &others))
            .await
            .expect("of another session");
        assert_eq!(done.outcome(), Outcome::Ok, "{code}");
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let done = agent
            .dispatch(request(&session_id, "3", &frame))
            .await
            .expect("allowed");
        assert_eq!(done.outcome(), Outcome::Ok, "{code}");
        gateway.stop().await;
    }
}
