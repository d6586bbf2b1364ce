//! Captures of facts, from the command over a running gateway to the replay of the file.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use integration_tests::{
    binaries,
    client::reason,
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Policy, Role},
};
use maka_proto::v1::{CaptureDecisionsRequest, ListAppsRequest};
use serde_json::{Value, json};
use tempfile::TempDir;

fn policy(folder: &Path, words: &[&str]) -> Output {
    let program = binaries::path("maka-policy");
    let ran = Command::new(program)
        .args(words)
        .current_dir(folder)
        .output();
    ran.expect("maka-policy starts")
}

fn status(folder: &Path, words: &[&str]) -> (i32, String) {
    let ran = policy(folder, words);
    let text = [ran.stdout, ran.stderr].concat();
    (
        ran.status.code().expect("no signal ends it"),
        String::from_utf8(text).expect("text"),
    )
}

async fn refusal(gateway: &GatewayProcess) -> String {
    let request = CaptureDecisionsRequest { seconds: 60 };
    let mut operator = gateway.client(Role::Operator).operator;
    let refused = operator.capture_decisions(request).await;
    reason(&refused.expect_err("refused"))
}

/// A capture over a running gateway is replayed without a difference, differs under a policy that denies, and can neither
/// be read with another key nor be changed or cut.
#[tokio::test]
async fn a_capture_is_replayed() {
    let keys = TempDir::new().expect("a folder");
    let folder = keys.path();
    assert_eq!(status(folder, &["keygen", "--capture", "key"]).0, 0);
    assert_eq!(status(folder, &["keygen", "--capture", "other"]).0, 0);
    let public = fs::read_to_string(folder.join("key.pub")).expect("a public key");
    let public = public.trim().rsplit(' ').next().expect("a key");
    let gateway = GatewayProcess::serving(GatewayOptions {
        policy: Policy::With(vec!["allow-all"]),
        sections: format!("[audit]\ncapture_key = \"{public}\"\n"),
        ..GatewayOptions::new(Executor::Fake(json!({})))
    })
    .await;
    fs::write(folder.join("token"), Role::Operator.token()).expect("a token");
    let mut command = tokio::process::Command::new(binaries::path("maka-gateway"));
    command.args(["policy", "capture", "--for", "2s", "--out", "capture"]);
    command.args(["--token-file", "token", "--config"]);
    command.arg(gateway.folder().join("gateway.toml"));
    let mut command = command
        .current_dir(folder)
        .kill_on_drop(true)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("maka-gateway starts");

    let records = |kind: &str| -> Vec<Value> {
        let all = gateway.decisions();
        all.into_iter()
            .filter(|record| record["kind"] == *kind)
            .collect()
    };
    let began = tokio::time::timeout(PATIENCE, async {
        while records("capture_began").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(began.await.is_ok(), "no capture: {}", gateway.log());
    assert_eq!(refusal(&gateway).await, "gateway.maka/capture_running");
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    // The capture ends by its time; calls are made until it has.
    let ended = tokio::time::timeout(PATIENCE, async {
        loop {
            let request = ListAppsRequest {
                session_id: session_id.clone(),
                ..ListAppsRequest::default()
            };
            agent
                .computer_use
                .clone()
                .list_apps(request)
                .await
                .expect("a capture refuses nothing");
            if let Some(status) = command.try_wait().expect("a child") {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(ended.await.expect("the capture ends").success());
    // The command has its last piece before the gateway has dropped the stream.
    let ended = tokio::time::timeout(PATIENCE, async {
        loop {
            let ended = records("capture_ended");
            if !ended.is_empty() {
                return ended;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let ended = ended.await.expect("the end is recorded");
    assert_eq!(
        (&ended[0]["why"], &ended[0]["by"]),
        (&json!("time"), &json!("operator"))
    );

    let file = folder.join("capture");
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let whole = fs::read(&file).expect("a file");
    assert!(
        !whole
            .windows(9)
            .any(|part| part == b"list_apps" || part == b"maka-floo")
    );

    let (code, said) = status(folder, &["replay", "capture", "--key", "key", "--json"]);
    assert_eq!(code, 0, "{said}");
    let same: Value = serde_json::from_str(&said).expect("JSON");
    let compared = same["compared"].as_u64().expect("a count");
    assert!(compared > 0 && same["differing"] == json!([]), "{said}");
    assert_eq!(same["fuel"]["recorded"], same["fuel"]["now"]);
    let against = [
        "replay",
        "capture",
        "--key",
        "key",
        "--json",
        "--against",
        "prebuilt:deny-all",
    ];
    let (code, said) = status(folder, &against);
    assert_eq!(code, 1, "{said}");
    let other: Value = serde_json::from_str(&said).expect("JSON");
    let admits = other["differing"].as_array().expect("a list");
    let admits = admits.iter().filter(|it| it["hook"] == "admit-dispatch");
    let denied = admits.filter(|it| it["differences"][0]["now"] == "deny");
    assert!(2 * denied.count() as u64 >= compared, "{said}");

    assert_eq!(
        status(folder, &["replay", "capture", "--key", "other"]).0,
        2
    );
    fs::write(folder.join("cut"), &whole[..whole.len() - 1]).expect("a file");
    let (code, said) = status(folder, &["replay", "cut", "--key", "key"]);
    assert!(code == 2 && said.contains("cut off"), "{said}");
    let mut changed = whole;
    let last = changed.len() - 1;
    changed[last] ^= 1;
    fs::write(folder.join("changed"), changed).expect("a file");
    let (code, said) = status(folder, &["replay", "changed", "--key", "key"]);
    assert!(code == 2 && said.contains("was changed"), "{said}");
}

/// Without a key nothing is captured, and nothing is recorded about it.
#[tokio::test]
async fn without_a_key_there_is_no_capture() {
    let gateway = GatewayProcess::start(GatewayOptions::new(Executor::Fake(json!({})))).await;
    assert_eq!(refusal(&gateway).await, "gateway.maka/capture_key_absent");
    let records = gateway.decisions();
    assert!(
        records
            .iter()
            .all(|record| record["kind"] != "capture_began")
    );
}
