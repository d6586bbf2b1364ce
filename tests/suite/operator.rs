//! `Operator.RestartExecutor`: a new executor on an operator's word, out of every state, with the truth for everybody
//! whose action the old one had.

use std::{fs, time::Duration};

use integration_tests::{
    client::{click, element, metadata, on_element, reason},
    events::{is_outcome, is_release, position, words},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Role},
    tools,
};
use maka_proto::v1::{
    ExecutorState, GetStatusRequest, GetStatusResponse, Outcome, ReleaseReason,
    RestartExecutorRequest, RestartExecutorResponse, event::Event as What,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tonic::{Code, Request, Status};

const APP: &str = "org.example.Notes";

async fn restart(gateway: &GatewayProcess) -> Result<RestartExecutorResponse, Status> {
    let mut operator = gateway.client(Role::Operator).operator;
    let answer = operator.restart_executor(RestartExecutorRequest {}).await?;
    Ok(answer.into_inner())
}

async fn status(gateway: &GatewayProcess) -> GetStatusResponse {
    let mut client = gateway.agent().computer_use;
    let status = client.get_status(GetStatusRequest {}).await;
    status.expect("status").into_inner()
}

/// How often the decision log says that the executor was stopped.
fn recorded(gateway: &GatewayProcess) -> usize {
    let records = gateway.decisions();
    records
        .iter()
        .filter(|record| record["kind"] == "executor_stop")
        .count()
}

/// Waits until the gateway's log has so many lines with `text`.
async fn logged(gateway: &GatewayProcess, text: &str, count: usize) {
    let seen = tokio::time::timeout(PATIENCE, async {
        while gateway.log().matches(text).count() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(seen.await.is_ok(), "{text} is not in {}", gateway.log());
}

/// An executor that dies three times at its start is given up; an operator's word gives it every attempt again, and the
/// sessions that were begun meanwhile go on.
#[tokio::test]
async fn a_restart_leads_out_of_unavailable() {
    let dies =
        |process: u64| json!({"method": "host.hello", "process": process, "steps": [{"exit": 3}]});
    let script = json!({"rules": [dies(1), dies(2), dies(3)]});
    let gateway = GatewayProcess::start(GatewayOptions::new(Executor::Fake(script))).await;
    let agent = gateway.agent();
    let mut watching = gateway.client(Role::Viewer).watch().await;
    watching
        .until(|event| {
            let status = match event {
                What::Current(state) => state.executor.as_ref(),
                What::Executor(status) => Some(status),
                _ => None,
            };
            status
                .is_some_and(|it| {
                    it.state() == ExecutorState::Unavailable && it.restart_attempts == 3
                })
                .then_some(())
        })
        .await;
    let session_id = agent.begin().await;
    let refused = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect_err("given up");
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");

    let restarted = restart(&gateway).await.expect("the fourth process lives");
    assert_eq!(restarted.generation, 4);
    let executor = restarted.executor.expect("who introduced itself");
    let now = status(&gateway).await;
    assert_eq!(now.executor.as_ref().map(|it| it.pid), Some(executor.pid));
    assert!(executor.digest.starts_with("sha256:") && executor.capabilities.is_some());
    assert_eq!(
        (now.executor_state(), now.restart_attempts),
        (ExecutorState::Ready, 1)
    );
    assert_eq!(now.last_failure, None);
    watching.until_ready(4).await;
    agent
        .snapshot_app(&session_id, APP)
        .await
        .expect("the session goes on");
    assert_eq!(recorded(&gateway), 1);
    gateway.stop().await;
}

/// An executor that cannot be started at all is an error with its reason, and stays one however often it is tried.
#[tokio::test]
async fn a_restart_that_fails_says_why() {
    let executor = Executor::File {
        path: integration_tests::binaries::path("fake-executor"),
        sha256: Some("0".repeat(64)),
    };
    let gateway = GatewayProcess::start(GatewayOptions::new(executor)).await;
    for _ in 0..2 {
        let refused = restart(&gateway).await.expect_err("not the pinned file");
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert_eq!(reason(&refused), "executor.lifecycle/service_mismatch");
        assert_eq!(
            metadata(&refused, "failure").as_deref(),
            Some("wrong_digest")
        );
    }
    gateway.stop().await;
}

/// The action that the old executor had ends as UNKNOWN for its caller, who learns why; the executor was asked to end
/// (SIGTERM) before it was made to; watchers see it in order. The session acts again on the same channel (H23).
#[tokio::test]
async fn a_restart_tells_the_truth_about_what_was_running() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({
        "rules": [{"method": "dispatch.element", "process": 1, "steps": ["never"]}],
    }))))
    .await;
    let agent = gateway.agent();
    let mut watching = agent.watch().await;
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "running", &frame, save, click());
    let mut calls = JoinSet::new();
    let caller = agent.clone();
    calls.spawn(async move { caller.dispatch(request).await });
    gateway.received("dispatch.element").await;

    let restarted = restart(&gateway).await.expect("a new one");
    assert_eq!(restarted.generation, 2);
    let result = calls.join_next().await.expect("one").expect("not panicked");
    let result = result.expect("a result: it was delivered");
    assert_eq!(result.outcome(), Outcome::Unknown);
    assert_eq!(result.release_reason(), ReleaseReason::ChildExit);
    let signals: Vec<Value> = gateway
        .wire()
        .into_iter()
        .filter(|line| line["event"] == "signal")
        .collect();
    assert_eq!(signals.len(), 1, "{signals:?}");
    assert_eq!(signals[0]["detail"], "SIGTERM");

    watching.until_ready(2).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "again", &frame, save, click());
    let result = agent.dispatch(request).await.expect("the session goes on");
    assert_eq!(result.outcome(), Outcome::Ok);
    watching
        .until(|event| is_outcome(event, "again", Outcome::Ok).then_some(()))
        .await;
    let seen = watching.seen();
    let released = position(seen, |event| is_release(event, 1, ReleaseReason::ChildExit));
    let ended = position(seen, |event| is_outcome(event, "running", Outcome::Unknown));
    let ready = position(seen, |event| match event {
        What::Executor(it) => it.state() == ExecutorState::Ready,
        _ => false,
    });
    assert!(released < ended && released < ready, "{:?}", words(seen));
    gateway.stop().await;
}

/// An executor that does not want to end is killed after its grace.
#[tokio::test]
async fn an_executor_that_ignores_the_order_is_killed() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({
        "ignore_sigterm": true,
        "ignore_eof": true,
        "limits": {"shutdownGraceMs": 50},
    }))))
    .await;
    let old = status(&gateway).await.executor.expect("ready").pid;
    let restarted = restart(&gateway).await.expect("a new one");
    assert_eq!(restarted.generation, 2);
    let pid = nix::unistd::Pid::from_raw(old.try_into().expect("a pid"));
    assert_eq!(
        nix::sys::signal::kill(pid, None),
        Err(nix::errno::Errno::ESRCH)
    );
    gateway.stop().await;
}

/// A caller's deadline ends its call and not the restart; whoever asks while one is under way shares it.
#[tokio::test]
async fn a_restart_under_way_is_shared_and_outlives_its_caller() {
    let folder = TempDir::new().expect("a folder");
    let go = folder.path().join("go");
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({
        "rules": [{"method": "host.hello", "process": 2, "steps": [{"wait_for_file": go}, "default"]}],
    }))))
    .await;
    let mut watching = gateway.client(Role::Viewer).watch().await;
    let mut request = Request::new(RestartExecutorRequest {});
    request.set_timeout(Duration::from_secs(5));
    let mut operator = gateway.client(Role::Operator).operator;
    let late = operator.restart_executor(request);
    tokio::pin!(late);
    tokio::select! {
        answer = &mut late => panic!("answered before anything was done: {answer:?}"),
        () = logged(&gateway, "restarted on request", 1) => {}
    }
    // The client has a timer of its own, which counts only when its call is polled: until the gateway's answer has come
    // in on the connection, it is not.
    logged(&gateway, "reason=\"deadline\"", 1).await;
    status(&gateway).await;
    let late = late.await.expect_err("it hangs");
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
    assert_eq!(reason(&late), "gateway.maka/deadline");

    let mut calls = JoinSet::new();
    for _ in 0..3 {
        let mut operator = gateway.client(Role::Operator).operator;
        calls.spawn(async move { operator.restart_executor(RestartExecutorRequest {}).await });
    }
    logged(&gateway, "and is shared", 3).await;
    fs::write(&go, "").expect("the file");
    while let Some(answer) = calls.join_next().await {
        let answer = answer.expect("not panicked").expect("shared");
        assert_eq!(answer.into_inner().generation, 2);
    }
    watching.until_ready(2).await;
    assert_eq!(recorded(&gateway), 1);
    gateway.stop().await;
}

/// The printed line of docs/clients.md.
#[tokio::test]
async fn grpcurl_restarts() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let mut command = tools::grpcurl();
    command
        .arg("-plaintext")
        .args([
            "-H",
            &format!("authorization: Bearer {}", Role::Operator.token()),
        ])
        .args([
            gateway.address(),
            "maka.gateway.v1.Operator/RestartExecutor",
        ]);
    let printed: Value =
        serde_json::from_str(&tools::stdout(command).await).expect("grpcurl prints JSON");
    assert_eq!(printed["generation"], "2", "{printed}");
    assert_eq!(printed["executor"]["name"], "maka-cu", "{printed}");
    gateway.stop().await;
}
