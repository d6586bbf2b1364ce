//! Ctrl-C: gateway and executor end, with status 0, and leave no process, socket, address or image directory.

use std::fs;

use integration_tests::{
    client::{click, element, on_element},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::GetStatusRequest;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

async fn executor_pid(gateway: &GatewayProcess) -> Pid {
    let status = gateway
        .agent()
        .computer_use
        .get_status(GetStatusRequest {})
        .await
        .expect("status")
        .into_inner();
    Pid::from_raw(
        status
            .executor
            .expect("ready")
            .pid
            .try_into()
            .expect("a pid"),
    )
}

async fn ends_clean(gateway: GatewayProcess, signal: Signal) {
    let executor = executor_pid(&gateway).await;
    let (status, folder) = gateway.signal(signal).await;
    assert_eq!(
        status.code(),
        Some(0),
        "{}",
        fs::read_to_string(folder.path().join("gateway.log")).unwrap_or_default()
    );
    assert_eq!(
        kill(executor, None),
        Err(Errno::ESRCH),
        "the executor lives on"
    );
    for left in ["state/maka-gateway.sock", "state/address", "state/images"] {
        assert!(!folder.path().join(left).exists(), "{left} is left behind");
    }
}

#[tokio::test]
async fn an_idle_gateway_ends_on_each_signal() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        agent
            .snapshot_app(&session_id, "org.maka.Notes")
            .await
            .expect("a frame with its image");
        ends_clean(gateway, signal).await;
    }
}

/// H8 and the busy half: an executor that never answers and ignores SIGTERM does not hold the gateway up.
#[tokio::test]
async fn a_busy_gateway_ends_although_the_executor_does_not_want_to() {
    let script = json!({
        "ignore_sigterm": true,
        "ignore_eof": true,
        "rules": [{"method": "dispatch.element", "steps": ["never"]}],
    });
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent
        .snapshot_app(&session_id, "org.example.Notes")
        .await
        .expect("a frame");
    let request = on_element(
        &session_id,
        "1",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    let mut calls = tokio::task::JoinSet::new();
    let caller = agent.clone();
    calls.spawn(async move { caller.dispatch(request).await });
    gateway.received("dispatch.element").await;
    ends_clean(gateway, Signal::SIGINT).await;
    let answer = calls
        .join_next()
        .await
        .expect("one call")
        .expect("not panicked");
    match answer {
        Ok(result) => assert_eq!(result.outcome(), maka_proto::v1::Outcome::Unknown),
        // The connection may end first; without ErrorInfo a client knows nothing, as docs/clients.md says.
        Err(status) => assert!(
            integration_tests::client::details(&status)
                .error_info()
                .is_none(),
            "a delivered action is never refused afterwards: {status:?}"
        ),
    }
}
