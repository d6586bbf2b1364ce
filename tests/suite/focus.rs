//! Keys go to the control that the caller names and that has the focus, and to nobody while a person is at the keyboard.

use integration_tests::{
    client::{Client, click, element, on_element, on_focus, reason, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{
    FocusPolicy, Outcome, PointerClick, SessionState, TypeText, dispatch_request,
};
use serde_json::{Value, json};

const APP: &str = "org.example.Notes";

async fn start(script: Value) -> GatewayProcess {
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await
}

fn text() -> dispatch_request::Action {
    dispatch_request::Action::TypeText(TypeText { text: "x".into() })
}

/// Spec maka-cu §12.3 row 41. A control that is to get the focus is named with that policy; without one the control must have the
/// focus already, which is what is sent; a control that the quoted frame does not have is nobody's, and nothing is sent.
#[tokio::test]
async fn keys_go_to_the_control_that_was_seen() {
    let gateway = start(json!({})).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let rows = [
        ("named", FocusPolicy::Acquire, "acquire"),
        ("focused", FocusPolicy::Unspecified, "require"),
        ("required", FocusPolicy::Require, "require"),
    ];
    for (key, policy, expected) in rows {
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let field = element(&frame, "AXTextField", "Name");
        assert_eq!(
            frame.focused_element_token.as_ref(),
            Some(&field.token),
            "the fake's field has the focus"
        );
        let request = on_focus(&session_id, key, &frame, field, policy, text());
        let typed = agent.dispatch(request).await.expect("allowed");
        assert_eq!(typed.outcome(), Outcome::Ok, "{key}");
        let sent = gateway.wire();
        let sent = sent.iter().rfind(|line| line["method"] == "dispatch.key");
        let params = &sent.expect("it was sent")["params"];
        assert_eq!(params["snapshotId"], frame.snapshot_id, "{key}");
        assert_eq!(params["focusToken"], field.token, "{key}");
        // A field that is left out means to require.
        let sent = params["focusPolicy"].as_str().unwrap_or("require");
        assert_eq!(sent, expected, "{key}");
    }

    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let mut elsewhere = element(&frame, "AXTextField", "Name").clone();
    elsewhere.token = "e_of_another_frame".into();
    let policy = FocusPolicy::Acquire;
    let request = on_focus(&session_id, "gone", &frame, &elsewhere, policy, text());
    let refused = agent.dispatch(request).await.expect_err("not in the frame");
    assert_eq!(reason(&refused), "policy.maka/element_unknown");
    assert_eq!(gateway.received_count("dispatch.key"), rows.len());
    gateway.stop().await;
}

/// Spec maka-cu §12.3 row 32. A person is at the keyboard: what needs keyboard or pointer is refused and asks for a new look, and
/// what goes to an element directly goes on.
#[tokio::test]
async fn a_person_at_the_keyboard_fences_keys_and_not_elements() {
    let refuse = json!([{"refuse": "physical_input_active"}]);
    let gateway = start(json!({"rules": [
        {"method": "dispatch.key", "steps": refuse},
        {"method": "dispatch.point", "steps": refuse},
    ]}))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    for key in ["key", "point"] {
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let field = element(&frame, "AXTextField", "Name");
        let request = on_element(
            &session_id,
            &format!("{key} 1"),
            &frame,
            field,
            set_value(key),
        );
        let written = agent.dispatch(request).await.expect("allowed");
        assert_eq!(written.outcome(), Outcome::Ok, "{key}");

        let frame = written.snapshot.expect("a fresh frame");
        let fenced = fenced(&agent, &session_id, key, &frame).await;
        assert_eq!(fenced.outcome(), Outcome::Refused, "{key}");
        assert_eq!(fenced.error.expect("why").code, "physical_input_active");
        let state = agent.session_state(&session_id).await;
        assert_eq!(state, SessionState::ReobserveRequired, "{key}");

        // Not even the element of the frame from before the person was noticed.
        let save = element(&frame, "AXButton", "Save");
        let request = on_element(&session_id, &format!("{key} 2"), &frame, save, click());
        agent.dispatch(request).await.expect_err("an old frame");
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let save = element(&frame, "AXButton", "Save");
        let request = on_element(&session_id, &format!("{key} 3"), &frame, save, click());
        let pressed = agent.dispatch(request).await.expect("allowed");
        assert_eq!(pressed.outcome(), Outcome::Ok, "{key}: elements go on");
    }
    gateway.stop().await;
}

async fn fenced(
    agent: &Client,
    session_id: &str,
    key: &str,
    frame: &maka_proto::v1::Snapshot,
) -> maka_proto::v1::DispatchResult {
    let request = if key == "key" {
        let field = element(frame, "AXTextField", "Name");
        on_focus(
            session_id,
            key,
            frame,
            field,
            FocusPolicy::Unspecified,
            text(),
        )
    } else {
        let click = dispatch_request::Action::PointerClick(PointerClick::default());
        integration_tests::client::on_point(session_id, key, frame, (9.0, 9.0), click)
    };
    agent.dispatch(request).await.expect("allowed")
}
