//! One action through all layers at once: what the caller is told, what the executor was sent, what a watcher sees, and what is
//! fenced when somebody clears the session.

use integration_tests::{
    client::{click, element, on_element, reason},
    events::ended,
    fake::until,
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
};
use maka_proto::v1::{
    Element, HostEvent, ListSessionsRequest, Outcome, ReportHostEventRequest, SessionState,
    event::Event as What,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Code;

const APP: &str = "org.example.Notes";

async fn start(script: Value) -> GatewayProcess {
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await
}

async fn stop_session(gateway: &GatewayProcess, session_id: &str) {
    let mut operator = gateway.client(Role::Operator).operator;
    let request = ReportHostEventRequest {
        event: HostEvent::UserStopped.into(),
        session_id: Some(session_id.into()),
    };
    operator.report_host_event(request).await.expect("told");
}

/// Spec maka-cu §12.4 row 46. One observation, one click: one dispatch, bound to what was observed; shown where it went, begun and
/// ended once; a fresh frame; and the same action again is refused and not sent.
#[tokio::test]
async fn one_click_is_one_dispatch_and_is_shown_where_it_went() {
    let gateway = start(json!({})).await;
    let agent = gateway.agent();
    let mut watching = agent.watch().await;
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let window = frame.target.as_ref().and_then(|target| target.window);
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "press", &frame, save, click());
    let pressed = agent.dispatch(request.clone()).await.expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok);

    let end = watching.until(|event| ended(event, "press")).await;
    let seen = watching.seen();
    let begins: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            What::ActionBegan(it) => Some(it),
            _ => None,
        })
        .collect();
    assert_eq!(begins.len(), 1);
    assert!(window.is_some() && begins[0].target_window == window && end.target_window == window);
    let point = pressed.resolved_screen_point;
    assert!(point.is_some() && begins[0].point_screen == point && end.point_screen == point);

    let fresh = pressed.snapshot.expect("a fresh frame");
    assert_ne!(fresh.snapshot_id, frame.snapshot_id);
    assert_eq!(fresh.target.and_then(|target| target.window), window);

    let mut again = request;
    again.tool_call_id = "again".into();
    let refused = agent.dispatch(again).await.expect_err("done already");
    assert_eq!(reason(&refused), "policy.maka/duplicate_action");
    let sent: Vec<Value> = gateway
        .wire()
        .into_iter()
        .filter(|line| line["method"] == "dispatch.element")
        .collect();
    assert_eq!(sent.len(), 1);
    let params = &sent[0]["params"];
    assert_eq!(params["snapshotId"], frame.snapshot_id);
    assert_eq!(params["elementToken"], save.token);
    assert_eq!(params["expectElementDigest"], save.digest);
    gateway.stop().await;
}

/// Spec maka-cu §12.4 row 47. A target that changed and an outcome that nobody knows are both taken off the screen without a flash;
/// only the second leaves the session with nothing to act on.
#[tokio::test]
async fn what_is_not_known_to_be_done_is_taken_off_the_screen() {
    let rows = [
        ("element_changed", Outcome::Refused, SessionState::Active),
        (
            "outcome_unknown",
            Outcome::Unknown,
            SessionState::ReobserveRequired,
        ),
    ];
    for (code, outcome, state) in rows {
        let gateway = start(json!({"rules": [
            {"method": "dispatch.element", "steps": [{"refuse": code}]},
        ]}))
        .await;
        let agent = gateway.agent();
        let mut watching = agent.watch().await;
        let session_id = agent.begin().await;
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let save = element(&frame, "AXButton", "Save");
        let request = on_element(&session_id, "press", &frame, save, click());
        let pressed = agent.dispatch(request).await.expect("a result");
        assert_eq!(pressed.outcome(), outcome, "{code}");
        let end = watching.until(|event| ended(event, "press")).await;
        assert_eq!(end.outcome(), outcome, "{code}");
        assert_eq!((end.point_screen, end.pulse), (None, false), "{code}");
        assert_eq!(agent.session_state(&session_id).await, state, "{code}");
        gateway.stop().await;
    }
}

/// Spec maka-cu §12.4 row 48. A person clears the session: work that is late changes nothing any more, and what stays on disk says
/// nothing of what the caller saw.
#[tokio::test]
async fn late_work_of_a_stopped_session_is_fenced() {
    const TITLE: &str = "title-of-the-window-canary";
    const LABEL: &str = "label-of-an-element-canary";
    let gateway = start(json!({
        "world": {"title": TITLE},
        "rules": [
            {"method": "observe", "steps": [{"patched": {"set": {"/snapshot/elements/1/label": LABEL}}}]},
            {"method": "dispatch.element", "steps": ["wait_for_cancel", {"refuse": "aborted"}]},
        ],
    }))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    // The live reply has both.
    let title = frame.target.as_ref().and_then(|it| it.title.as_deref());
    assert_eq!(title, Some(TITLE));
    let is_labelled = |it: &Element| it.label.as_deref() == Some(LABEL);
    assert!(frame.elements.iter().any(is_labelled));
    let save = element(&frame, "AXButton", "Save");
    let running = agent.dispatch(on_element(&session_id, "runs", &frame, save, click()));
    tokio::pin!(running);
    tokio::select! {
        result = &mut running => panic!("answered without a cancel: {result:?}"),
        () = gateway.received("dispatch.element") => {}
    }
    stop_session(&gateway, &session_id).await;
    let ran = running.await.expect("its outcome");
    assert_eq!(ran.outcome(), Outcome::Refused);
    let late = on_element(&session_id, "late", &frame, save, click());
    let acts = agent.dispatch(late).await.expect_err("stopped");
    let looks = agent.snapshot_app(&session_id, APP).await;
    let looks = looks.expect_err("stopped");
    for refused in [acts, looks] {
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert_eq!(reason(&refused), "gateway.maka/user_stopped");
    }
    assert_eq!(gateway.received_count("dispatch.element"), 1);
    assert_eq!(gateway.received_count("observe"), 1);
    let folder = gateway.stop().await;
    for file in ["state/decisions.jsonl", "gateway.log"] {
        let text = std::fs::read_to_string(folder.path().join(file)).expect("it stays");
        assert!(text.contains(&session_id), "{file} is of this session");
        assert!(!text.contains(TITLE) && !text.contains(LABEL), "{file}");
    }
}

/// Spec maka-cu §12.6 row 70. A session is cleared while a read of it is under way and work waits behind that: the answer that comes
/// after the clear is nobody's, and its frame is none; what waited is not sent. The session stays fenced; a new one is not.
#[tokio::test]
async fn what_waited_and_what_comes_back_after_a_clear_is_fenced() {
    let turns = TempDir::new().expect("a folder");
    let go_on = turns.path().join("go_on");
    let gateway = start(json!({"rules": [
        {"method": "observe", "nth": 2, "steps": [{"wait_for_file": go_on}, "default"]},
    ]}))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let reads = agent.snapshot_app(&session_id, APP);
    let behind = async {
        let twice = || gateway.received_count("observe") == 2;
        until("the second observation is under way", twice).await;
        let waits = agent.dispatch(on_element(&session_id, "waits", &frame, save, click()));
        let clear = async {
            agent.queued(&session_id, 2).await;
            stop_session(&gateway, &session_id).await;
            std::fs::write(&go_on, "").expect("written");
        };
        tokio::join!(waits, clear).0
    };
    let (read, waited) = tokio::join!(reads, behind);
    let read = read.expect_err("it comes after the clear");
    let waited = waited.expect_err("it was not begun");
    for refused in [&read, &waited] {
        let said = reason(refused);
        assert!(
            ["gateway.maka/user_stopped", "gateway.maka/cancelled"].contains(&said.as_str()),
            "{refused:?}"
        );
    }
    assert_eq!(gateway.received_count("dispatch.element"), 0);
    let mut client = agent.computer_use.clone();
    let listed = client.list_sessions(ListSessionsRequest {}).await;
    let listed = listed.expect("a list").into_inner();
    assert_eq!(listed.sessions[0].live_snapshots, 0, "no frame came of it");

    let same = agent.snapshot_app(&session_id, APP).await;
    let same = same.expect_err("the same session stays fenced");
    assert_eq!(reason(&same), "gateway.maka/user_stopped");
    let session_id = agent.begin().await;
    let frame = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect("a new one is open");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "waits", &frame, save, click());
    let pressed = agent.dispatch(request).await.expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok);
    gateway.stop().await;
}
