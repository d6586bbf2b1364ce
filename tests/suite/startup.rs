//! An executor that cannot be started: the gateway comes up all the same, says which fault it is, and what to
//! do about it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use integration_tests::{
    binaries,
    client::{metadata, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Role},
};
use maka_proto::v1::{ExecutorState, GetStatusRequest, GetStatusResponse, RestartExecutorRequest};
use tempfile::TempDir;
use tonic::Code;

/// Starts a gateway and waits until its executor is given up.
async fn given_up(options: GatewayOptions) -> (GatewayProcess, GetStatusResponse) {
    let gateway = GatewayProcess::start(options).await;
    let mut client = gateway.agent().computer_use;
    let status = tokio::time::timeout(PATIENCE, async {
        loop {
            let status = client
                .get_status(GetStatusRequest {})
                .await
                .expect("status")
                .into_inner();
            if status.executor_state() == ExecutorState::Unavailable {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    let status = status
        .await
        .unwrap_or_else(|_| panic!("never given up: {}", gateway.log()));
    (gateway, status)
}

/// Checks code and advice, and that a call is refused with ErrorInfo rather than hanging.
async fn check(row: &str, executor: Executor, code: &str) {
    let (gateway, status) = given_up(GatewayOptions::new(executor)).await;
    let failure = status.last_failure.expect("why it is not there");
    assert_eq!(failure.code, code, "{row}: {failure:?}");
    assert!(failure.advice.len() > 20, "{row}: what to do: {failure:?}");
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    // Each call tries once more, and on a busy machine is told that the try takes its time.
    let refused = tokio::time::timeout(PATIENCE, async {
        loop {
            let refused = agent.snapshot_app(&session_id, "any").await;
            let refused = refused.expect_err("no executor");
            if metadata(&refused, "failure").is_some() {
                return refused;
            }
        }
    });
    let refused = refused.await.expect("it says why");
    // What no later try can mend is not called unavailable.
    let expected = match code {
        "wrong_digest" | "handshake_violation" => Code::FailedPrecondition,
        _ => Code::Unavailable,
    };
    assert_eq!(refused.code(), expected, "{row}: {refused}");
    assert!(
        reason(&refused).starts_with("executor.lifecycle/"),
        "{row}: {}",
        reason(&refused)
    );
    gateway.stop().await;
}

fn script(folder: &TempDir, text: &str, mode: u32) -> PathBuf {
    let path = folder.path().join("executor");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permitted");
    path
}

#[tokio::test]
async fn a_missing_binary() {
    let executor = Executor::File {
        path: PathBuf::from("/nonexistent/maka-cu"),
        sha256: Some("0".repeat(64)),
    };
    check("missing", executor, "binary_missing").await;
}

#[tokio::test]
async fn a_wrong_digest() {
    let executor = Executor::File {
        path: binaries::path("maka-cu"),
        sha256: Some("0".repeat(64)),
    };
    check("digest", executor, "wrong_digest").await;
}

#[tokio::test]
async fn a_file_that_is_not_executable() {
    let folder = TempDir::new().expect("a folder");
    let path = script(&folder, "#!/bin/sh\n", 0o600);
    check(
        "mode",
        Executor::File { path, sha256: None },
        "binary_not_executable",
    )
    .await;
}

#[tokio::test]
async fn a_missing_interpreter() {
    let folder = TempDir::new().expect("a folder");
    let path = script(&folder, "#!/nonexistent/interpreter\n", 0o700);
    check(
        "interpreter",
        Executor::File { path, sha256: None },
        "missing_interpreter",
    )
    .await;
}

/// An executor that ends by itself before it says who it is: how it ended is told and logged.
#[tokio::test]
async fn an_executor_that_ends_at_once() {
    let folder = TempDir::new().expect("a folder");
    let path = script(&folder, "#!/bin/sh\nexit 69\n", 0o700);
    let executor = Executor::File { path, sha256: None };
    let (gateway, status) = given_up(GatewayOptions::new(executor)).await;
    let failure = status.last_failure.expect("why it is not there");
    assert_eq!(failure.code, "exited_early", "{failure:?}");
    assert_eq!(failure.exit.as_deref(), Some("exit status 69"));
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let refused = agent.snapshot_app(&session_id, "any").await;
    let refused = refused.expect_err("no executor");
    let exit = metadata(&refused, "exit");
    assert_eq!(exit.as_deref(), Some("exit status 69"), "{refused:?}");
    assert!(gateway.log().contains("exit=exit status 69"));
    gateway.stop().await;
}

/// An executor that introduces itself wrongly is not tried again.
#[tokio::test]
async fn a_handshake_that_breaks_the_rules() {
    let executor = Executor::Fake(serde_json::json!({"limits": {"snapshotsPerSession": 0}}));
    check("handshake", executor, "handshake_violation").await;
}

/// Two gateways with one image folder: the second gets no executor, says why, and takes nothing from the first. The first is
/// killed, and what it held is free.
#[tokio::test]
async fn an_image_folder_belongs_to_one_gateway() {
    const APP: &str = "org.example.Notes";
    let fake = || GatewayOptions::new(Executor::Fake(serde_json::json!({})));
    let first = GatewayProcess::serving(fake()).await;
    let images = first.folder().join("state/images");
    let agent = first.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");

    let mut options = fake();
    options.executor_keys = format!("image_dir = {images:?}");
    let (second, status) = given_up(options).await;
    let failure = status.last_failure.expect("why it is not there");
    assert_eq!(failure.code, "image_dir_in_use", "{failure:?}");
    assert!(failure.advice.contains("folder of its own"), "{failure:?}");
    let late = second.agent();
    let late_session = late.begin().await;
    let refused = late.snapshot_app(&late_session, APP).await;
    let refused = refused.expect_err("no executor");
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(reason(&refused).starts_with("executor.lifecycle/"));

    let picture = frame.image.expect("a picture");
    let read = agent.read_image(&session_id, &picture).await;
    read.expect("the first one's picture is untouched");
    first.signal(nix::sys::signal::Signal::SIGKILL).await;
    let restarted = second
        .client(Role::Operator)
        .operator
        .restart_executor(RestartExecutorRequest {})
        .await;
    restarted.expect("a lock dies with its owner");
    let frame = late.snapshot_app(&late_session, APP).await;
    frame.expect("it works from now on");
    second.stop().await;
}

/// A gateway refuses to start, with the file, line and key, on a configuration it does not understand.
#[tokio::test]
async fn a_bad_configuration_names_the_line_and_the_key() {
    let folder = TempDir::new().expect("a folder");
    for (text, expected) in [
        ("state_dir = \"/tmp/x\"\nsurprise = 1\n", "surprise"),
        ("state_dir = \"relative\"\n", "state_dir"),
        (
            "state_dir = \"/tmp/x\"\n[listen]\ntcp = \"0.0.0.0:50051\"\n",
            "loopback",
        ),
    ] {
        let output = run_gateway(folder.path(), text).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{text}");
        assert!(
            said.contains(expected) && said.contains("gateway.toml"),
            "{expected}: {said}"
        );
    }
}

async fn run_gateway(folder: &Path, text: &str) -> std::process::Output {
    let config = folder.join("gateway.toml");
    fs::write(&config, text).expect("written");
    let mut command = std::process::Command::new(binaries::path("maka-gateway"));
    command.args(["serve", "--config"]).arg(config);
    integration_tests::tools::run(command).await
}
