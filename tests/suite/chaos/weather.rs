//! What happens from outside while the storm lasts: signals to the executor, and somebody who keeps looking at the status.

use std::sync::Arc;

use integration_tests::{
    gateway::{GatewayProcess, PATIENCE, Role},
    process::children,
    seeded::Seeded,
};
use maka_proto::v1::{ExecutorState, GetStatusRequest, GetStatusResponse, RestartExecutorRequest};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio_util::sync::CancellationToken;

use super::book::Book;
use super::laws;

/// Kills and stops the executor now and then, and has it restarted by an operator.
pub(super) async fn signals(
    gateway: Arc<GatewayProcess>,
    mut seeded: Seeded,
    over: CancellationToken,
) {
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(seeded.millis(30, 600)) => {}
        }
        if seeded.chance(550) {
            send(&gateway, Signal::SIGKILL);
        } else if seeded.chance(250) {
            restart(&gateway).await;
        } else if let Some(pid) = send(&gateway, Signal::SIGSTOP) {
            tokio::time::sleep(seeded.millis(1, 150)).await;
            // It may be gone by now, and its number with it: only a child of the gateway is meant.
            if children(gateway.pid().as_raw()).contains(&pid) {
                kill(Pid::from_raw(pid), Signal::SIGCONT).ok();
            }
        }
    }
}

/// Asks for another executor. What comes of it in a storm is not known; that something comes of it is.
pub(super) async fn restart(gateway: &GatewayProcess) {
    let mut operator = gateway.client(Role::Operator).operator;
    let restarted = operator.restart_executor(RestartExecutorRequest {});
    match tokio::time::timeout(PATIENCE, restarted).await {
        Ok(Ok(_)) => {}
        Ok(Err(status)) => {
            let info = integration_tests::client::details(&status);
            assert!(info.error_info().is_some(), "without a reason: {status:?}");
        }
        Err(_) => panic!("a restart without an end: {}", gateway.log()),
    }
}

/// Sends a signal to the executor that runs now, if one does.
fn send(gateway: &GatewayProcess, signal: Signal) -> Option<i32> {
    let pid = *children(gateway.pid().as_raw()).last()?;
    kill(Pid::from_raw(pid), signal).ok()?;
    Some(pid)
}

/// Looks at the status until the storm is over: generations only grow. And what an executor has read was allowed before, at every
/// moment: the wire log is read first.
pub(super) async fn watch(gateway: Arc<GatewayProcess>, book: Arc<Book>, over: CancellationToken) {
    let mut newest = 0;
    while !over.is_cancelled() {
        let status = status(&gateway).await;
        assert!(
            status.generation >= newest,
            "generation {} after {newest}\n{}",
            status.generation,
            book.tail()
        );
        newest = status.generation;
        laws::everything_read_was_allowed(&gateway, &book);
        tokio::select! {
            () = over.cancelled() => {}
            () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {}
        }
    }
}

/// Kills the executor and waits for the next one.
pub(super) async fn kill_executor(gateway: &GatewayProcess) {
    let renewed = tokio::time::timeout(PATIENCE, async {
        let before = ready(gateway).await;
        let pid = before.executor.expect("ready").pid;
        kill(
            Pid::from_raw(pid.try_into().expect("a pid")),
            Signal::SIGKILL,
        )
        .ok();
        while ready(gateway).await.generation == before.generation {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    });
    assert!(renewed.await.is_ok(), "no new executor: {}", gateway.log());
}

async fn ready(gateway: &GatewayProcess) -> GetStatusResponse {
    loop {
        let status = status(gateway).await;
        if status.executor_state() == ExecutorState::Ready {
            return status;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// The status, which can be had whatever happens.
pub(super) async fn status(gateway: &GatewayProcess) -> GetStatusResponse {
    let mut client = gateway.agent().computer_use;
    let status = tokio::time::timeout(PATIENCE, client.get_status(GetStatusRequest {})).await;
    status
        .expect("a status in time")
        .expect("a status")
        .into_inner()
}
