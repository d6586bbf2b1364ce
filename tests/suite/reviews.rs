//! Reviews end to end: what is withheld, what a quarantine closes, and who opens it again.

use integration_tests::{
    client::{Client, click, element, on_element, reason},
    events::{Watching, is_release},
    gateway::{Executor, GatewayOptions, GatewayProcess, Policy, Role},
    policy::{Says, TestPolicy},
};
use maka_proto::v1::{
    self, CaptureScreenRequest, ClearQuarantineRequest, DispatchRequest, ImageDelivery,
    LaunchAppRequest, Outcome, ReleaseReason, SessionState, event::Event as What,
};
use serde_json::{Value, json};
use tonic::Code;

const APP: &str = "org.example.Notes";

async fn start(policy: TestPolicy, script: Value) -> (GatewayProcess, Client, String) {
    let mut options = GatewayOptions::new(Executor::Fake(script));
    options.policy = Policy::Made(vec![policy]);
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    (gateway, agent, session_id)
}

fn save(session_id: &str, key: &str, frame: &v1::Snapshot) -> DispatchRequest {
    let save = element(frame, "AXButton", "Save");
    on_element(session_id, key, frame, save, click())
}

fn capture(session_id: &str) -> CaptureScreenRequest {
    CaptureScreenRequest {
        session_id: session_id.into(),
        display_id: None,
        image: ImageDelivery::Reference.into(),
    }
}

async fn quarantined(watching: &mut Watching) -> bool {
    watching
        .until(|event| match event {
            What::Quarantine(it) => Some(it.quarantined),
            _ => None,
        })
        .await
}

/// A read that is withheld is an error; an action that is withheld is told truly, without what was seen, also when it is
/// asked for again. A refusal of the executor is an answer, too.
#[tokio::test]
async fn what_is_withheld_stays_true() {
    let policy = TestPolicy::new("withholding")
        .reviews("dispatch.element", Says::No)
        .reviews("apps.launch", Says::No)
        .reviews("window.list", Says::No)
        .reviews("screen.capture", Says::No);
    let script = json!({
        "rules": [{"method": "screen.capture", "steps": [{"refuse": "capture_failed"}]}],
    });
    let (gateway, agent, session_id) = start(policy, script).await;
    let mut client = agent.computer_use.clone();
    let request = v1::ListWindowsRequest {
        session_id: session_id.clone(),
    };
    let withheld = client.list_windows(request).await.expect_err("withheld");
    assert_eq!(reason(&withheld), "policy.maka/test.no");
    let withheld = client.capture_screen(capture(&session_id)).await;
    assert_eq!(
        reason(&withheld.expect_err("withheld")),
        "policy.maka/test.no"
    );

    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    for replayed in [false, true] {
        let result = agent.dispatch(save(&session_id, "click", &frame)).await;
        let result = result.expect("a result");
        assert_eq!((result.outcome(), result.withheld), (Outcome::Ok, true));
        assert_eq!(result.replayed, replayed);
        assert!(result.snapshot.is_none() && result.resolved_screen_point.is_none());
    }
    let launch = LaunchAppRequest {
        session_id: session_id.clone(),
        tool_call_id: "launch".into(),
        app: "Notes".into(),
        ..Default::default()
    };
    let launched = client
        .launch_app(launch)
        .await
        .expect("a result")
        .into_inner();
    assert_eq!((launched.outcome(), launched.withheld), (Outcome::Ok, true));
    assert_eq!(launched.launched, None);
    assert_eq!(gateway.received_count("dispatch.element"), 1);
    gateway.stop().await;
}

/// A quarantine closes one session for actions and for nothing else, is told and listed, and is opened by an operator who is
/// not its owner; what was seen before is dead. A policy that says so twice is no reason to stop the executor.
#[tokio::test]
async fn a_quarantine_is_opened_by_an_operator() {
    let policy = TestPolicy::new("closing").reviews("dispatch.element", Says::Third(vec![]));
    let (gateway, agent, session_id) = start(policy, json!({})).await;
    let operator = gateway.client(Role::Operator);
    let mut watching = operator.watch().await;
    let clear = async |of: &Client| {
        let request = ClearQuarantineRequest {
            session_id: session_id.clone(),
        };
        let answer = of.operator.clone().clear_quarantine(request).await;
        answer.map(|answer| answer.into_inner().was_quarantined)
    };
    assert!(!clear(&operator).await.expect("there is nothing to clear"));
    for round in ["one", "two"] {
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let result = agent.dispatch(save(&session_id, round, &frame)).await;
        let result = result.expect("what happened is told");
        assert_eq!((result.outcome(), result.withheld), (Outcome::Ok, true));
        assert!(quarantined(&mut watching).await);

        let frame = agent
            .snapshot_app(&session_id, APP)
            .await
            .expect("reads go on");
        let refused = agent.dispatch(save(&session_id, "closed", &frame)).await;
        let refused = refused.expect_err("closed");
        assert_eq!(reason(&refused), "gateway.maka/session_quarantined");
        let launch = LaunchAppRequest {
            session_id: session_id.clone(),
            tool_call_id: "launch".into(),
            app: "Notes".into(),
            ..Default::default()
        };
        let refused = agent.computer_use.clone().launch_app(launch).await;
        assert_eq!(refused.expect_err("closed").code(), Code::PermissionDenied);
        assert_eq!(
            clear(&agent).await.expect_err("no operator").code(),
            Code::PermissionDenied
        );
        let other = agent.begin().await;
        agent
            .snapshot_app(&other, APP)
            .await
            .expect("another session is open");
        agent.end(&other).await;

        let listed = operator
            .computer_use
            .clone()
            .list_sessions(v1::ListSessionsRequest {})
            .await
            .expect("a list")
            .into_inner();
        assert!(
            listed
                .sessions
                .iter()
                .any(|it| it.session_id == session_id && it.quarantined)
        );
        assert!(clear(&operator).await.expect("cleared"));
        assert!(!quarantined(&mut watching).await);
        let state = agent.session_state(&session_id).await;
        assert_eq!(state, SessionState::ReobserveRequired);
        let refused = agent.dispatch(save(&session_id, "old", &frame)).await;
        assert_eq!(
            reason(&refused.expect_err("dead")),
            "policy.maka/snapshot_superseded"
        );
    }
    let cleared = gateway.decisions();
    let cleared: Vec<_> = cleared
        .iter()
        .filter(|record| record["kind"] == "quarantine_cleared")
        .collect();
    assert_eq!(cleared.len(), 2);
    assert!(
        cleared
            .iter()
            .all(|it| it["by"] == "operator" && it["session"] == session_id.as_str())
    );
    assert_eq!(
        gateway.received_count("host.hello"),
        1,
        "the executor lives on"
    );
    gateway.stop().await;
}

/// An executor that broke its protocol once closes a session; one that does so again in the same life is stopped, and the
/// next one begins with a clean slate.
#[tokio::test]
async fn the_second_breach_of_a_generation_stops_the_executor() {
    let policy = TestPolicy::new("strict").reviews("observe", Says::Breach);
    let (gateway, agent, session_id) = start(policy, json!({})).await;
    let mut watching = gateway.client(Role::Viewer).watch().await;
    let other = agent.begin().await;
    for session_id in [&session_id, &other] {
        let withheld = agent.snapshot_app(session_id, APP).await;
        let withheld = withheld.expect_err("it is not to be trusted");
        assert_eq!(reason(&withheld), "policy.maka/outcome_dishonest");
        assert!(quarantined(&mut watching).await);
    }
    watching
        .until(|event| is_release(event, 1, ReleaseReason::ProtocolViolation).then_some(()))
        .await;
    watching.until_ready(2).await;
    let third = agent.begin().await;
    agent
        .snapshot_app(&third, APP)
        .await
        .expect_err("once more");
    assert!(quarantined(&mut watching).await);
    let mut client = agent.computer_use.clone();
    let request = v1::ListAppsRequest {
        session_id: third,
        ..Default::default()
    };
    client
        .list_apps(request)
        .await
        .expect("the first breach of its life");
    assert_eq!(gateway.received_count("host.hello"), 2);
    gateway.stop().await;
}

/// Nobody opens their own session again.
#[tokio::test]
async fn nobody_clears_their_own_quarantine() {
    let policy = TestPolicy::new("closing").reviews("observe", Says::Third(vec![]));
    let (gateway, _, _) = start(policy, json!({})).await;
    let operator = gateway.client(Role::Operator);
    let session_id = operator.begin().await;
    let withheld = operator.snapshot_app(&session_id, APP).await;
    assert_eq!(
        reason(&withheld.expect_err("withheld")),
        "policy.maka/test.no"
    );
    let request = ClearQuarantineRequest { session_id };
    let refused = operator.operator.clone().clear_quarantine(request).await;
    let refused = refused.expect_err("its own");
    assert_eq!(reason(&refused), "gateway.maka/own_principal");
    gateway.stop().await;
}
