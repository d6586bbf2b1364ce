//! `Operator.ReportHostEvent`: what a person does on the desktop holds agents up at once, shows in what watchers see,
//! and leaves nothing held.

use integration_tests::{
    client::{click, element, on_element, on_point, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
};
use maka_proto::v1::{
    HostEvent, Outcome, PointerButton, ReportHostEventRequest, SessionState, dispatch_request,
    event::Event as What,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

const APP: &str = "org.example.Notes";

async fn start(rules: Value) -> GatewayProcess {
    let mut options = GatewayOptions::new(Executor::Fake(json!({ "rules": rules })));
    options.sections = "[session]\nintervention_debounce_ms = 0\n".into();
    GatewayProcess::serving(options).await
}

async fn report(
    gateway: &GatewayProcess,
    event: HostEvent,
    session: Option<&str>,
) -> Result<u32, Status> {
    let mut operator = gateway.client(Role::Operator).operator;
    let request = ReportHostEventRequest {
        event: event.into(),
        session_id: session.map(Into::into),
    };
    let answer = operator.report_host_event(request).await?;
    Ok(answer.into_inner().sessions)
}

/// Each event, with what it lets an agent do, and what a watcher is told. What nobody reports is not felt.
#[tokio::test]
async fn a_person_comes_first() {
    let gateway = start(json!([])).await;
    let agent = gateway.agent();
    let mut watching = gateway.client(Role::Viewer).watch().await;
    let session_id = agent.begin().await;
    assert_eq!(
        agent.session_state(&session_id).await,
        SessionState::Unobserved
    );
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    assert_eq!(agent.session_state(&session_id).await, SessionState::Active);
    let save = element(&frame, "AXButton", "Save");
    let old = on_element(&session_id, "old", &frame, save, click());

    let rows = [
        (
            HostEvent::ScreenLocked,
            "screen_locked",
            HostEvent::ScreenUnlocked,
        ),
        (
            HostEvent::UserInputBegan,
            "user_intervened",
            HostEvent::UserInputEnded,
        ),
    ];
    for (comes, code, goes) in rows {
        assert_eq!(report(&gateway, comes, None).await.expect("told"), 1);
        let sent = gateway.wire().len();
        let acts = agent.dispatch(old.clone()).await.expect_err(code);
        let sees = agent.snapshot_app(&session_id, APP).await.expect_err(code);
        for refused in [acts, sees] {
            assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
            assert_eq!(reason(&refused), format!("gateway.maka/{code}"));
        }
        assert_eq!(gateway.wire().len(), sent, "{code}: nothing was sent");

        report(&gateway, goes, None).await.expect("told");
        assert_eq!(
            agent.session_state(&session_id).await,
            SessionState::ReobserveRequired
        );
        let stale = agent.dispatch(old.clone()).await.expect_err("an old frame");
        assert_eq!(reason(&stale), "policy.maka/snapshot_superseded", "{code}");
        agent.snapshot_app(&session_id, APP).await.expect("a frame");
        assert_eq!(agent.session_state(&session_id).await, SessionState::Active);
    }
    assert_eq!(gateway.received_count("dispatch.element"), 0);

    let mut states = Vec::new();
    watching
        .until(|event| {
            if let What::SessionState(it) = event {
                states.push(it.state());
            }
            (states.len() == 7).then_some(())
        })
        .await;
    assert_eq!(
        states,
        [
            SessionState::Active,
            SessionState::ScreenLocked,
            SessionState::ReobserveRequired,
            SessionState::Active,
            SessionState::InterventionDebounce,
            SessionState::ReobserveRequired,
            SessionState::Active,
        ]
    );
    gateway.stop().await;
}

/// A lock does not make a person go away: who unlocks the screen is at the keyboard. In whatever order they are reported, each
/// ends by its own report.
#[tokio::test]
async fn a_lock_does_not_hide_a_person() {
    use HostEvent::{ScreenLocked, ScreenUnlocked, UserInputBegan, UserInputEnded};
    let orders: [&[HostEvent]; 3] = [
        &[UserInputBegan, ScreenLocked, ScreenUnlocked],
        &[ScreenLocked, UserInputBegan, ScreenUnlocked],
        &[
            UserInputBegan,
            ScreenLocked,
            UserInputEnded,
            UserInputBegan,
            ScreenUnlocked,
        ],
    ];
    for order in orders {
        let gateway = start(json!([])).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        for event in order {
            report(&gateway, *event, None).await.expect("told");
        }
        let save = element(&frame, "AXButton", "Save");
        let request = on_element(&session_id, "1", &frame, save, click());
        let acts = agent.dispatch(request).await.expect_err("a person");
        let sees = agent
            .snapshot_app(&session_id, APP)
            .await
            .expect_err("a person");
        for refused in [acts, sees] {
            assert_eq!(
                reason(&refused),
                "gateway.maka/user_intervened",
                "{order:?}"
            );
        }
        report(&gateway, UserInputEnded, None).await.expect("told");
        agent.snapshot_app(&session_id, APP).await.expect("a frame");
        gateway.stop().await;
    }
}

/// A session whose executor is lost has to observe again, and everybody can see that before it makes another call.
#[tokio::test]
async fn a_lost_executor_shows_in_the_state() {
    let gateway = start(json!([])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let mut watching = agent.watch().await;
    let mut operator = gateway.client(Role::Operator).operator;
    let restart = maka_proto::v1::RestartExecutorRequest {};
    operator.restart_executor(restart).await.expect("another");
    let now = watching
        .until(|event| match event {
            What::SessionState(it) => Some(it.state()),
            _ => None,
        })
        .await;
    assert_eq!(now, SessionState::ReobserveRequired);
    assert_eq!(
        agent.session_state(&session_id).await,
        SessionState::ReobserveRequired
    );
    gateway.stop().await;
}

/// A person stops one session: what runs in it is cancelled, what it holds is let go of, and it does nothing any more.
/// Another session is not concerned.
#[tokio::test]
async fn a_person_stops_a_session() {
    let gateway = start(json!([
        {"method": "dispatch.element", "nth": 1, "steps": ["wait_for_cancel", {"refuse": "aborted"}]},
    ]))
    .await;
    let agent = gateway.agent();
    let (session_id, other) = (agent.begin().await, agent.begin().await);
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let down = dispatch_request::Action::PointerButton(PointerButton { down: true });
    let request = on_point(&session_id, "down", &frame, (9.0, 9.0), down);
    let pressed = agent.dispatch(request).await.expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok);
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "click", &frame, save, click());
    let call = agent.dispatch(request);
    tokio::pin!(call);
    tokio::select! {
        result = &mut call => panic!("answered without a cancel: {result:?}"),
        () = gateway.received("dispatch.element") => {}
    }
    let stopped = report(&gateway, HostEvent::UserStopped, Some(&session_id)).await;
    assert_eq!(stopped.expect("told"), 1);
    let cancelled = call.await.expect("its outcome");
    assert_eq!(cancelled.error.expect("why").code, "aborted");
    gateway
        .received_line(|line| line["params"]["action"]["kind"] == "mouse_up")
        .await;
    let refused = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect_err("stopped");
    assert_eq!(reason(&refused), "gateway.maka/user_stopped");
    agent
        .snapshot_app(&other, APP)
        .await
        .expect("not concerned");
    gateway.stop().await;
}

/// Spec maka-cu §12.6 row 69: what happens while an observation is under way fences that observation, even when it is over
/// before the answer comes: the frame shows a moment before the person was there.
#[tokio::test]
async fn an_event_fences_the_observation_that_it_falls_into() {
    let turns = tempfile::TempDir::new().expect("a folder");
    let (asked, go_on) = (turns.path().join("asked"), turns.path().join("go_on"));
    let gateway = start(json!([
        {"method": "observe", "nth": 1, "steps": [{"touch": asked}, {"wait_for_file": go_on}, "default"]},
    ]))
    .await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = {
        let observation = agent.snapshot_app(&session_id, APP);
        tokio::pin!(observation);
        tokio::select! {
            frame = &mut observation => panic!("answered without being told to: {frame:?}"),
            () = gateway.received("observe") => {}
        }
        for event in [HostEvent::UserInputBegan, HostEvent::UserInputEnded] {
            report(&gateway, event, None).await.expect("told");
        }
        std::fs::write(&go_on, "").expect("written");
        observation.await.expect("a frame, as it was")
    };
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "1", &frame, save, click());
    let refused = agent.dispatch(request).await.expect_err("of another time");
    assert_eq!(reason(&refused), "policy.maka/snapshot_superseded");
    assert_eq!(gateway.received_count("dispatch.element"), 0);
    gateway.stop().await;
}

/// Only what makes sense is taken, and only from an operator.
#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let gateway = start(json!([])).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let rows = [
        (HostEvent::Unspecified, None, "event"),
        (
            HostEvent::ScreenLocked,
            Some(session_id.as_str()),
            "session_id",
        ),
        (HostEvent::UrlBlocked, None, "session_id"),
    ];
    for (event, session, field) in rows {
        let refused = report(&gateway, event, session).await.expect_err(field);
        assert_eq!(refused.code(), Code::InvalidArgument, "{event:?}");
        let named = integration_tests::client::details(&refused);
        let named = named.bad_request().expect("fields");
        assert_eq!(named.field_violations[0].field, field, "{event:?}");
    }
    let unknown = report(&gateway, HostEvent::UserStopped, Some("s_unknown")).await;
    assert_eq!(unknown.expect_err("unknown").code(), Code::NotFound);
    agent
        .snapshot_app(&session_id, APP)
        .await
        .expect("nothing came of it");
    gateway.stop().await;
}
