//! Bad input, over real gRPC: INVALID_ARGUMENT that names the field, for every RPC that takes one, and the
//! executor hears nothing. The gateway's own tests walk each field; these rows prove the whole path.

use integration_tests::{
    client::{Client, click, details, element, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
    raw,
};
use maka_proto::v1::{self, *};
use serde_json::json;
use tonic::{Code, Status};

struct Fixture {
    gateway: GatewayProcess,
    agent: Client,
    session_id: String,
    frame: v1::Snapshot,
}

impl Fixture {
    async fn start() -> Self {
        let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({})))).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        let frame = agent
            .snapshot_app(&session_id, "org.example.Notes")
            .await
            .expect("a frame");
        Self {
            gateway,
            agent,
            session_id,
            frame,
        }
    }

    fn assert_violation<T>(&self, field: &str, sent_before: usize, answer: Result<T, Status>) {
        let Err(status) = answer else {
            panic!("{field}: accepted")
        };
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status}");
        let named: Vec<String> = details(&status)
            .bad_request()
            .map(|bad| {
                bad.field_violations
                    .iter()
                    .map(|violation| violation.field.clone())
                    .collect()
            })
            .unwrap_or_default();
        assert!(
            named.iter().any(|name| name == field),
            "{field}: {named:?} {}",
            status.message()
        );
        assert_eq!(
            self.gateway.wire().len(),
            sent_before,
            "{field}: the executor received something"
        );
    }
}

#[tokio::test]
async fn a_malformed_dispatch_names_its_field() {
    let fixture = Fixture::start().await;
    let good = || {
        let save = element(&fixture.frame, "AXButton", "Save");
        on_element(&fixture.session_id, "key", &fixture.frame, save, click())
    };
    type Change = Box<dyn Fn(&mut DispatchRequest)>;
    let target = |change: fn(&mut ElementTarget)| -> Change {
        Box::new(move |request| {
            if let Some(dispatch_request::Target::Element(target)) = &mut request.target {
                change(target);
            }
        })
    };
    let action = |action: dispatch_request::Action| -> Change {
        Box::new(move |request| request.action = Some(action.clone()))
    };
    let rows: Vec<(&str, Change)> = vec![
        (
            "session_id",
            Box::new(|request| request.session_id = String::new()),
        ),
        (
            "tool_call_id",
            Box::new(|request| request.tool_call_id = String::new()),
        ),
        (
            "tool_call_id",
            Box::new(|request| request.tool_call_id = "x".repeat(129)),
        ),
        (
            "turn",
            Box::new(|request| request.turn = Some("x".repeat(65))),
        ),
        ("tier", Box::new(|request| request.tier = 0)),
        ("tier", Box::new(|request| request.tier = 77)),
        ("path", Box::new(|request| request.path = Some(77))),
        (
            "wished_effect",
            Box::new(|request| request.wished_effect = Some(77)),
        ),
        (
            "wished_verification",
            Box::new(|request| request.wished_verification = Some(77)),
        ),
        ("action", Box::new(|request| request.action = None)),
        (
            "element.expect_digest",
            target(|target| target.expect_digest = "deadbeef".into()),
        ),
        (
            "element.strictness",
            target(|target| target.strictness = 77),
        ),
        ("element.occlusion", target(|target| target.occlusion = 77)),
        (
            "click.button",
            action(dispatch_request::Action::Click(Click {
                button: 77,
                count: None,
            })),
        ),
        (
            "click.count",
            action(dispatch_request::Action::Click(Click {
                button: 0,
                count: Some(4),
            })),
        ),
        (
            "set_value.value",
            action(set_value(&"x".repeat(64 * 1024 + 1))),
        ),
        (
            "secondary_action.action",
            action(dispatch_request::Action::SecondaryAction(SecondaryAction {
                action: "explode".into(),
            })),
        ),
        (
            "scroll.pages",
            action(dispatch_request::Action::Scroll(Scroll {
                direction: 2,
                pages: Some(f64::NAN),
            })),
        ),
        (
            "resize_window.width",
            action(dispatch_request::Action::ResizeWindow(ResizeWindow {
                width: -1.0,
                height: 1.0,
            })),
        ),
        (
            "observe_after.image",
            Box::new(|request| {
                request.observe_after = Some(ObserveAfter {
                    image: 77,
                    ..Default::default()
                });
            }),
        ),
    ];
    for (field, change) in rows {
        let mut request = good();
        change(&mut request);
        let sent = fixture.gateway.wire().len();
        fixture.assert_violation(field, sent, fixture.agent.dispatch(request).await);
    }
    // D5, E6: an unknown key or modifier is refused, never dropped.
    for (field, press) in [
        (
            "press_key.key",
            PressKey {
                key: "hyper9+a".into(),
                modifiers: vec![],
            },
        ),
        (
            "press_key.key",
            PressKey {
                key: "delete".into(),
                modifiers: vec![],
            },
        ),
        (
            "press_key.modifiers[0]",
            PressKey {
                key: "a".into(),
                modifiers: vec![77],
            },
        ),
    ] {
        let mut request = good();
        request.tier = Tier::CoordinateBackground.into();
        request.target = Some(dispatch_request::Target::Focus(FocusTarget {
            token: "el".into(),
            expect_digest: format!("sha256:{}", "0".repeat(64)),
            policy: 0,
        }));
        request.action = Some(dispatch_request::Action::PressKey(press));
        let sent = fixture.gateway.wire().len();
        fixture.assert_violation(field, sent, fixture.agent.dispatch(request).await);
    }
    fixture.gateway.stop().await;
}

#[tokio::test]
async fn every_other_method_names_its_field() {
    let fixture = Fixture::start().await;
    let mut client = fixture.agent.computer_use.clone();
    let session_id = || fixture.session_id.clone();
    let sent = fixture.gateway.wire().len();

    let answer = client.list_apps(ListAppsRequest::default()).await;
    fixture.assert_violation("session_id", sent, answer);
    let answer = client.list_windows(ListWindowsRequest::default()).await;
    fixture.assert_violation("session_id", sent, answer);
    let answer = client.end_session(EndSessionRequest::default()).await;
    fixture.assert_violation("session_id", sent, answer);
    for session_id in [String::new(), "x".repeat(1000)] {
        let session_id = Some(session_id);
        let mut events = fixture.agent.events.clone();
        let answer = events
            .watch(WatchRequest {
                session_id,
                approver: false,
            })
            .await;
        fixture.assert_violation("session_id", sent, answer);
    }
    for (field, request) in [
        (
            "app",
            LaunchAppRequest {
                app: String::new(),
                ..launch(&fixture)
            },
        ),
        (
            "app",
            LaunchAppRequest {
                app: "x".repeat(257),
                ..launch(&fixture)
            },
        ),
        (
            "tool_call_id",
            LaunchAppRequest {
                tool_call_id: String::new(),
                ..launch(&fixture)
            },
        ),
        (
            "wait_for_window_ms",
            LaunchAppRequest {
                wait_for_window_ms: Some(60_001),
                ..launch(&fixture)
            },
        ),
        (
            "turn",
            LaunchAppRequest {
                turn: Some("x".repeat(65)),
                ..launch(&fixture)
            },
        ),
    ] {
        let answer = client.launch_app(request).await;
        fixture.assert_violation(field, sent, answer);
    }
    let zero = WindowRef {
        pid: 0,
        window_id: 0,
    };
    for (field, request) in [
        (
            "window.pid",
            SnapshotRequest {
                target: Some(snapshot_request::Target::Window(zero)),
                ..observe(&fixture)
            },
        ),
        (
            "image",
            SnapshotRequest {
                image: 77,
                ..observe(&fixture)
            },
        ),
        (
            "max_elements",
            SnapshotRequest {
                max_elements: Some(0),
                ..observe(&fixture)
            },
        ),
        (
            "max_depth",
            SnapshotRequest {
                max_depth: Some(0),
                ..observe(&fixture)
            },
        ),
        (
            "max_text_chars",
            SnapshotRequest {
                max_text_chars: Some(0),
                ..observe(&fixture)
            },
        ),
        (
            "max_elements",
            SnapshotRequest {
                max_elements: Some(1_000_000),
                ..observe(&fixture)
            },
        ),
        (
            "menu.title",
            SnapshotRequest {
                menu: Some(MenuRequest {
                    scope: MenuScope::Menu.into(),
                    title: None,
                }),
                ..observe(&fixture)
            },
        ),
    ] {
        let answer = client.snapshot(request).await;
        fixture.assert_violation(field, sent, answer);
    }
    let answer = client
        .capture_screen(CaptureScreenRequest {
            session_id: session_id(),
            display_id: None,
            image: 0,
        })
        .await;
    fixture.assert_violation("image", sent, answer);
    let answer = client
        .read_image(ReadImageRequest {
            session_id: session_id(),
            image_id: String::new(),
        })
        .await;
    fixture.assert_violation("image_id", sent, answer);
    fixture.gateway.stop().await;
}

/// Bytes that are no message at all: an error, not a dropped connection, and the next call works.
#[tokio::test]
async fn bytes_that_are_no_message_are_refused() {
    let fixture = Fixture::start().await;
    let sent = fixture.gateway.wire().len();
    for method in raw::methods() {
        let answer = raw::call(
            fixture.gateway.channel(),
            &method,
            Some(&Role::Operator.token()),
            vec![0xff; 64],
        )
        .await;
        let status = answer.expect_err("no message");
        assert!(
            matches!(status.code(), Code::Internal | Code::InvalidArgument),
            "{method}: {status}"
        );
    }
    assert_eq!(fixture.gateway.wire().len(), sent);
    fixture
        .agent
        .snapshot_app(&fixture.session_id, "org.example.Notes")
        .await
        .expect("still serving");
    fixture.gateway.stop().await;
}

fn launch(fixture: &Fixture) -> LaunchAppRequest {
    LaunchAppRequest {
        session_id: fixture.session_id.clone(),
        tool_call_id: "launch".into(),
        app: "Notes".into(),
        ..Default::default()
    }
}

fn observe(fixture: &Fixture) -> SnapshotRequest {
    SnapshotRequest {
        session_id: fixture.session_id.clone(),
        ..Default::default()
    }
}
