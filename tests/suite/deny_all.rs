//! Under a set that denies everything, every method is called and the executor still hears nothing but the
//! closed control set (design §2). This is the no-bypass proof of the gateway as a whole.

use integration_tests::{
    client::{click, on_element, reason, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, Policy, Role},
};
use maka_proto::v1::{self, *};
use serde_json::json;
use tonic::Status;

/// What the gateway may say to an executor by itself.
const CONTROL: [&str; 5] = [
    "host.hello",
    "$/cancel",
    "session.begin",
    "session.end",
    "permissions.check",
];

#[tokio::test]
async fn a_deny_all_set_lets_nothing_but_control_through() {
    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    options.policy = Policy::With(vec!["deny-all"]);
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let mut client = agent.computer_use.clone();

    // Not judged: about the gateway, or control.
    let mut watching = agent.watch().await;
    let restarted = gateway
        .client(Role::Operator)
        .operator
        .restart_executor(RestartExecutorRequest {})
        .await
        .expect("an operator's word, and no action")
        .into_inner();
    assert_eq!(restarted.generation, 2);
    gateway
        .client(Role::Operator)
        .operator
        .report_host_event(ReportHostEventRequest {
            event: HostEvent::ScreenUnlocked.into(),
            session_id: None,
        })
        .await
        .expect("a report, and no action");
    client
        .get_status(GetStatusRequest {})
        .await
        .expect("status is not an action");
    client
        .list_sessions(ListSessionsRequest {})
        .await
        .expect("the gateway's own list");
    client
        .check_permissions(CheckPermissionsRequest {})
        .await
        .expect("control");

    let session = || session_id.clone();
    let denied = |what: &str, answer: Option<Status>| {
        let status = answer.unwrap_or_else(|| panic!("{what} was allowed"));
        assert!(
            reason(&status).starts_with("policy.maka/"),
            "{what}: {status}"
        );
    };
    denied(
        "ListApps",
        client
            .list_apps(ListAppsRequest {
                session_id: session(),
                ..ListAppsRequest::default()
            })
            .await
            .err(),
    );
    denied(
        "ListWindows",
        client
            .list_windows(ListWindowsRequest {
                session_id: session(),
            })
            .await
            .err(),
    );
    denied(
        "LaunchApp",
        client
            .launch_app(LaunchAppRequest {
                session_id: session(),
                tool_call_id: "launch".into(),
                app: "Notes".into(),
                ..Default::default()
            })
            .await
            .err(),
    );
    for target in [
        None,
        Some(snapshot_request::Target::AppId("org.example.Notes".into())),
        Some(snapshot_request::Target::Window(WindowRef {
            pid: 5021,
            window_id: 318,
        })),
    ] {
        let request = SnapshotRequest {
            session_id: session(),
            target,
            ..Default::default()
        };
        denied("Snapshot", client.snapshot(request).await.err());
    }
    denied(
        "CaptureScreen",
        client
            .capture_screen(CaptureScreenRequest {
                session_id: session(),
                display_id: None,
                image: ImageDelivery::Reference.into(),
            })
            .await
            .err(),
    );
    let frame = v1::Snapshot {
        snapshot_id: "snap_x_1".into(),
        ..Default::default()
    };
    let target = v1::Element {
        token: "el_1".into(),
        digest: format!("sha256:{}", "1".repeat(64)),
        ..Default::default()
    };
    for (key, action) in [("click", click()), ("set_value", set_value("x"))] {
        let request = on_element(&session_id, key, &frame, &target, action);
        denied("Dispatch", client.dispatch(request).await.err());
    }
    client
        .end_session(EndSessionRequest {
            session_id: session(),
        })
        .await
        .expect("a deny-all set never blocks a release");

    while !matches!(watching.next().await, event::Event::SessionEnded(_)) {}
    assert!(
        !watching
            .seen()
            .iter()
            .any(|event| matches!(event, event::Event::ActionBegan(_))),
        "nothing was sent, so nothing began: {:?}",
        watching.seen()
    );

    let methods = gateway.wire_methods();
    assert!(
        methods.contains(&"host.hello".to_owned()),
        "the log is the executor's: {methods:?}"
    );
    for method in &methods {
        assert!(
            CONTROL.contains(&method.as_str()),
            "{method} reached the executor"
        );
    }
    gateway.stop().await;
}
