//! Text and trees arrive as they were sent: no character is split, nothing is left out in silence, and nothing is typed
//! into a control that is not the one that was observed.

use integration_tests::{
    client::{element, first, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{
    DispatchRequest, FocusTarget, ListAppsRequest, Outcome, Tier, TypeText, dispatch_request,
};
use serde_json::{Value, json};

const APP: &str = "org.example.Notes";

async fn start(script: Value) -> GatewayProcess {
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await
}

/// E1: what a person calls a character can be many bytes and several code points; the executor gets all of them, in
/// order, in one piece.
#[tokio::test]
async fn text_arrives_byte_by_byte() {
    let text = "\u{6f22}\u{5b57}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}e\u{301} \u{202e}x\u{7f}";
    let gateway = start(json!({})).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let name = element(&frame, "AXTextField", "Name");
    let request = on_element(&session_id, "set", &frame, name, set_value(text));
    let done = agent.dispatch(request).await.expect("allowed");
    assert_eq!(done.outcome(), Outcome::Ok);
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let name = element(&frame, "AXTextField", "Name");
    let typed = DispatchRequest {
        session_id: session_id.clone(),
        tool_call_id: "type".into(),
        tier: Tier::CoordinateBackground.into(),
        snapshot_id: frame.snapshot_id.clone(),
        target: Some(dispatch_request::Target::Focus(FocusTarget {
            token: name.token.clone(),
            expect_digest: name.digest.clone(),
            ..FocusTarget::default()
        })),
        action: Some(dispatch_request::Action::TypeText(TypeText {
            text: text.into(),
        })),
        ..DispatchRequest::default()
    };
    agent.dispatch(typed).await.expect("allowed");
    let wire = gateway.wire();
    let sent: Vec<_> = wire
        .iter()
        .filter_map(|line| {
            let action = &line["params"]["action"];
            action["value"].as_str().or(action["text"].as_str())
        })
        .collect();
    assert_eq!(sent, [text, text]);
    gateway.stop().await;
}

/// C2: what was observed to have the focus has lost it: the executor says so, nothing was typed, and the caller is told to
/// look again.
#[tokio::test]
async fn nothing_is_typed_into_another_control() {
    let gateway = start(json!({"rules": [
        {"method": "dispatch.key", "steps": [{"refuse": "focus_changed"}]},
    ]}))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let field = first(&frame, "AXTextField");
    let mut typed = DispatchRequest {
        session_id: session_id.clone(),
        tool_call_id: "type".into(),
        tier: Tier::CoordinateBackground.into(),
        snapshot_id: frame.snapshot_id.clone(),
        target: Some(dispatch_request::Target::Focus(FocusTarget {
            token: field.token.clone(),
            expect_digest: field.digest.clone(),
            ..FocusTarget::default()
        })),
        action: Some(dispatch_request::Action::TypeText(TypeText {
            text: "secret".into(),
        })),
        ..DispatchRequest::default()
    };
    let refused = agent.dispatch(typed.clone()).await.expect("a result");
    assert_eq!(refused.outcome(), Outcome::Refused);
    assert_eq!(refused.error.expect("why").code, "focus_changed");
    // Without a control nothing is sent at all.
    typed.tool_call_id = "nowhere".into();
    typed.target = None;
    let refused = agent.dispatch(typed).await.expect_err("no target");
    assert_eq!(
        integration_tests::client::reason(&refused),
        "policy.maka/anchor_missing"
    );
    assert_eq!(gateway.received_count("dispatch.key"), 1);
    gateway.stop().await;
}

/// F6, F9: the gateway leaves out no element, not even one without a name, and a cut that the executor made is told.
#[tokio::test]
async fn a_tree_arrives_whole_or_says_that_it_is_cut() {
    for cut in [false, true] {
        let gateway = start(json!({
            "world": {"extra_elements": 210},
            "rules": [{"method": "observe", "steps": [{"patched": {
                "set": {"/snapshot/truncated/elements": cut},
                "remove": ["/snapshot/elements/9/label"],
            }}]}],
        }))
        .await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        assert!(frame.elements.len() > 210, "{}", frame.elements.len());
        assert_eq!(frame.truncated.expect("always told").elements, cut);
        gateway.stop().await;
    }
}

/// F10: a long list of applications comes in pages.
#[tokio::test]
async fn applications_come_in_pages() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let list = async |page_size, page_token| {
        let request = ListAppsRequest {
            session_id: session_id.clone(),
            page_size,
            page_token,
            with_windows: false,
        };
        let listed = agent.computer_use.clone().list_apps(request).await;
        listed.expect("apps").into_inner()
    };
    let all = list(0, String::new()).await;
    assert!(all.apps.len() > 2 && all.next_page_token.is_empty());
    let mut paged = Vec::new();
    let mut token = String::new();
    loop {
        let page = list(2, token).await;
        assert!(page.apps.len() <= 2);
        paged.extend(page.apps);
        if page.next_page_token.is_empty() {
            break;
        }
        token = page.next_page_token;
    }
    assert_eq!(paged, all.apps);
    gateway.stop().await;
}
