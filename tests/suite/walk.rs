//! The usual loop on the embedded desktop: observe, act, look again, for each read and each action that
//! this build offers.

use integration_tests::{
    client::{click, element, first, on_element, reason, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{
    CaptureScreenRequest, CheckPermissionsRequest, Effect, EndSessionRequest, ExecutorState,
    GetGenerationRequest, GetStatusRequest, ImageAbsence, ImageDelivery, LaunchAppRequest,
    ListAppsRequest, ListWindowsRequest, Outcome, Path, SnapshotRequest, VerificationMethod,
    WindowRef, snapshot_request,
};
use tonic::Code;

#[tokio::test]
async fn an_agent_writes_and_presses_and_sees_what_happened() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;

    let before = agent
        .snapshot_app(&session_id, "org.maka.Notes")
        .await
        .expect("a frame");
    let picture = before.image.as_ref().expect("a picture was asked for");
    let bytes_before = agent
        .read_image(&session_id, picture)
        .await
        .expect("the picture");
    assert!(bytes_before.starts_with(b"\x89PNG\r\n\x1a\n"));

    let title = element(&before, "AXTextField", "Title");
    let written = agent
        .dispatch(on_element(
            &session_id,
            "write",
            &before,
            title,
            set_value("Grüße, 世界"),
        ))
        .await
        .expect("allowed");
    assert_eq!(written.outcome(), Outcome::Ok, "{written:?}");
    assert_eq!(written.path(), Path::AxAttribute);
    assert_eq!(written.effect(), Effect::Confirmed);
    let verification = written.verification.expect("always there");
    assert_eq!(verification.method(), VerificationMethod::ValueReadback);
    assert!(verification.observed_change && !written.decision_id.is_empty());

    let after = written.snapshot.expect("a fresh frame was asked for");
    assert_ne!(after.snapshot_id, before.snapshot_id);
    assert_eq!(
        element(&after, "AXTextField", "Title").value.as_deref(),
        Some("Grüße, 世界")
    );
    let picture = after.image.as_ref().expect("a picture was asked for");
    let bytes_after = agent
        .read_image(&session_id, picture)
        .await
        .expect("the picture");
    assert_ne!(bytes_before, bytes_after, "the pixels changed");

    let save = element(&after, "AXButton", "Save");
    let pressed = agent
        .dispatch(on_element(&session_id, "press", &after, save, click()))
        .await
        .expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok);
    assert_eq!(
        pressed.effect(),
        Effect::Confirmed,
        "the window's tree changed and came to rest"
    );
    let last = pressed.snapshot.expect("a fresh frame");
    assert!(
        last.elements.iter().any(|element| {
            [&element.title, &element.value]
                .into_iter()
                .flatten()
                .any(|text| text == "Saved: Grüße, 世界")
        }),
        "the program did what the button says"
    );
    let ended = agent
        .computer_use
        .clone()
        .end_session(EndSessionRequest {
            session_id: session_id.clone(),
        })
        .await
        .expect("ended")
        .into_inner();
    assert!(ended.released_snapshots >= 1);
    let gone = agent
        .snapshot_app(&session_id, "org.maka.Notes")
        .await
        .expect_err("ended");
    assert_eq!(gone.code(), Code::NotFound, "{gone}");
    gateway.stop().await;
}

/// A program that takes a write and does nothing: the answer says so instead of claiming success (M5).
#[tokio::test]
async fn a_write_that_changes_nothing_is_a_suspected_noop() {
    let scenario = r#"
        [[apps]]
        app_id = "org.example.Deaf"
        name = "Deaf"
        running = true

        [[apps.windows]]
        id = "window"
        title = "Deaf"
        bounds = [10, 10, 300, 200]

        [[apps.windows.controls]]
        kind = "text_field"
        label = "Name"
        value = "as it was"
        write = "ignored"
        bounds = [20, 60, 200, 30]
    "#;
    let executor = Executor::Scenario(scenario.into());
    let gateway = GatewayProcess::serving(GatewayOptions::new(executor)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent
        .snapshot_app(&session_id, "org.example.Deaf")
        .await
        .expect("a frame");
    let name = element(&frame, "AXTextField", "Name");
    let request = on_element(
        &session_id,
        "noop",
        &frame,
        name,
        set_value("something else"),
    );
    let result = agent.dispatch(request).await.expect("allowed");
    assert_eq!(result.outcome(), Outcome::Ok);
    assert_eq!(result.effect(), Effect::SuspectedNoop);
    gateway.stop().await;
}

#[tokio::test]
async fn every_read_answers_with_its_decision() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let mut client = agent.computer_use.clone();

    let status = client
        .get_status(GetStatusRequest {})
        .await
        .expect("status")
        .into_inner();
    assert_eq!(status.executor_state(), ExecutorState::Ready);
    assert_eq!(status.backend.expect("always there").id, "maka-cu");
    let executor = status.executor.expect("a handshake was done");
    assert_eq!(
        (executor.name.as_str(), executor.back_end.as_str()),
        ("maka-cu", "virtual")
    );
    let capabilities = executor.capabilities.expect("always there");
    assert_eq!(capabilities.element_actions[..2], ["click", "set_value"]);
    assert_eq!(capabilities.key_actions, ["type", "key"]);
    assert!(
        !capabilities.point_actions.iter().any(|kind| kind == "move"),
        "nothing here may move the pointer"
    );

    let permissions = client
        .check_permissions(CheckPermissionsRequest {})
        .await
        .expect("permissions")
        .into_inner();
    assert!(permissions.accessibility && permissions.screen_recording);

    let apps = client
        .list_apps(ListAppsRequest {
            session_id: session_id.clone(),
            ..ListAppsRequest::default()
        })
        .await
        .expect("apps")
        .into_inner();
    assert!(
        apps.apps.iter().any(|app| app.app_id == "org.maka.Notes") && !apps.decision_id.is_empty()
    );

    let windows = client
        .list_windows(ListWindowsRequest {
            session_id: session_id.clone(),
        })
        .await
        .expect("windows")
        .into_inner();
    assert!(
        windows
            .windows
            .windows(2)
            .all(|pair| pair[0].z_index > pair[1].z_index)
    );
    assert!(!windows.decision_id.is_empty());

    let screen = client
        .capture_screen(CaptureScreenRequest {
            session_id: session_id.clone(),
            display_id: None,
            image: ImageDelivery::Inline.into(),
        })
        .await
        .expect("a picture")
        .into_inner();
    let image = screen.image.expect("a picture");
    assert_eq!(
        image.data.len() as u64,
        image.byte_length,
        "small enough for inline"
    );
    assert_eq!(screen.image_absence, i32::from(ImageAbsence::Unspecified));

    let generation = gateway
        .client(integration_tests::gateway::Role::Author)
        .policies
        .get_generation(GetGenerationRequest {})
        .await
        .expect("the generation")
        .into_inner();
    assert_eq!(generation.generation, 1);
    assert_eq!(generation.modules[0].name, "maka-floor");
    assert!(generation.log_head.expect("always there").count > 0);
    gateway.stop().await;
}

/// Without a target the frontmost ordinary window is observed, and bounds are honoured and reported.
#[tokio::test]
async fn a_bounded_snapshot_of_the_frontmost_window_says_that_it_was_cut() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let answer = agent
        .computer_use
        .clone()
        .snapshot(SnapshotRequest {
            session_id,
            max_elements: Some(3),
            ..Default::default()
        })
        .await
        .expect("a frame")
        .into_inner();
    let frame = answer.snapshot.expect("a frame");
    assert_eq!(frame.target.expect("always there").app_id, "org.maka.Notes");
    assert_eq!(frame.elements.len(), 3);
    assert!(frame.truncated.expect("always there").elements);
    assert_eq!(
        frame.image_absence,
        i32::from(ImageAbsence::NotRequested),
        "absent is said, with why (C10)"
    );
    gateway.stop().await;
}

/// Launch, act, and the window goes: the answer is a success that says why there is no fresh frame.
#[tokio::test]
async fn a_dialog_that_closes_on_ok_ends_in_window_gone() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let request = LaunchAppRequest {
        session_id: session_id.clone(),
        tool_call_id: "launch".into(),
        app: "org.maka.TestEntry".into(),
        ..Default::default()
    };
    let launched = agent
        .computer_use
        .clone()
        .launch_app(request.clone())
        .await
        .expect("launched")
        .into_inner();
    assert_eq!(launched.outcome(), Outcome::Ok, "{launched:?}");
    let launched = launched.launched.expect("it started");
    assert!(!launched.foreground_taken);
    let window = WindowRef {
        pid: launched.pid,
        window_id: launched.windows[0].window_id,
    };

    let again = agent
        .computer_use
        .clone()
        .launch_app(request)
        .await
        .expect("stored")
        .into_inner();
    assert_eq!(
        again.launched.expect("stored").pid,
        launched.pid,
        "the key starts nothing twice"
    );

    let dialog = agent
        .snapshot_window(&session_id, window)
        .await
        .expect("a frame");
    let entry = first(&dialog, "AXTextField");
    let written = agent
        .dispatch(on_element(
            &session_id,
            "write",
            &dialog,
            entry,
            set_value("Ada"),
        ))
        .await
        .expect("allowed");
    let dialog = written.snapshot.expect("a fresh frame");
    let ok = element(&dialog, "AXButton", "OK");
    let pressed = agent
        .dispatch(on_element(&session_id, "press", &dialog, ok, click()))
        .await
        .expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok, "{pressed:?}");
    assert!(pressed.snapshot.is_none());
    assert_eq!(
        pressed.observation_error.expect("why there is none").code,
        "window_gone"
    );

    let gone = agent
        .snapshot_window(&session_id, window)
        .await
        .expect_err("it is gone");
    assert_eq!(
        (gone.code(), reason(&gone).as_str()),
        (Code::NotFound, "executor.protocol/window_gone")
    );

    let notes = agent
        .computer_use
        .clone()
        .snapshot(SnapshotRequest {
            session_id,
            target: Some(snapshot_request::Target::AppId("org.maka.Notes".into())),
            ..Default::default()
        })
        .await
        .expect("a frame")
        .into_inner()
        .snapshot
        .expect("a frame");
    let answer = notes
        .elements
        .iter()
        .flat_map(|element| [&element.title, &element.value])
        .flatten();
    assert!(answer.into_iter().any(|text| text == "Last answer: Ada"));
    gateway.stop().await;
}
