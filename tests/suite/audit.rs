//! The decision log as an operator meets it: a disk that is full, a file that somebody changed, a folder that others
//! can write to. Nothing is done that cannot be recorded, and nothing is believed that was changed.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use integration_tests::{
    binaries,
    client::{click, element, on_element, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{LaunchAppRequest, Outcome};
use serde_json::json;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

const APP: &str = "org.example.Notes";

fn options() -> GatewayOptions {
    GatewayOptions::new(Executor::Fake(json!({})))
}

/// Lets the gateway's files grow to this size and no further, which is what a full disk comes to.
fn limit_files(gateway: &GatewayProcess, bytes: &str) {
    let status = Command::new("prlimit")
        .arg(format!("--pid={}", gateway.pid()))
        .arg(format!("--fsize={bytes}"))
        .status()
        .expect("prlimit is part of util-linux");
    assert!(status.success());
}

/// While the log takes no records actions are refused, sessions do not begin and health says so; as soon as it takes
/// some again, all is as before, without anybody having to call.
#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());

    limit_files(&gateway, "0:unlimited");
    let sent = gateway.wire().len();
    let refused = agent
        .dispatch(request.clone())
        .await
        .expect_err("nothing unrecorded");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    assert_eq!(reason(&refused), "policy.maka/audit_unavailable");
    gateway.wait_for(ServingStatus::NotServing).await;
    let begin = maka_proto::v1::BeginSessionRequest::default();
    let refused = agent
        .computer_use
        .clone()
        .begin_session(begin)
        .await
        .expect_err("no session");
    assert_eq!(reason(&refused), "policy.maka/audit_unavailable");
    assert_eq!(gateway.wire().len(), sent, "the executor heard nothing");

    limit_files(&gateway, "unlimited:unlimited");
    gateway.wait_for(ServingStatus::Serving).await;
    let done = agent.dispatch(request).await.expect("as before");
    assert_eq!(done.outcome(), Outcome::Ok);
    let resumed = gateway
        .decisions()
        .iter()
        .filter(|record| record["kind"] == "log_resumed")
        .count();
    assert_eq!(resumed, 1);
    let folder = gateway.stop().await;
    // What was cut off and written anew is a whole chain.
    GatewayProcess::start_in(folder, options())
        .await
        .stop()
        .await;
}

/// A log that is renamed away, or cut, while the gateway runs is noticed, and nothing is done until it is back.
#[tokio::test]
async fn a_log_that_is_taken_away_is_missed() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let log = gateway.folder().join("state/decisions.jsonl");
    let aside = log.with_extension("aside");
    fs::rename(&log, &aside).expect("renamed");
    gateway.wait_for(ServingStatus::NotServing).await;
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());
    let refused = agent.dispatch(request.clone()).await.expect_err("no log");
    assert_eq!(reason(&refused), "policy.maka/audit_unavailable");
    fs::rename(&aside, &log).expect("renamed");
    gateway.wait_for(ServingStatus::Serving).await;
    agent.dispatch(request).await.expect("as before");
    gateway.stop().await;
}

/// Starts a gateway that is expected not to.
fn refused_start(folder: &Path) -> Output {
    Command::new(binaries::path("maka-gateway"))
        .args(["serve", "--config"])
        .arg(folder.join("gateway.toml"))
        .stdin(Stdio::null())
        .output()
        .expect("maka-gateway runs")
}

/// A record that was taken out, changed or moved is found at the start, whatever it is; the file is left as it is.
#[tokio::test]
async fn a_changed_log_does_not_start() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "key", &frame, save, click());
    agent.dispatch(request).await.expect("done");
    let folder = gateway.stop().await;
    let log = fs::read_dir(folder.path().join("state"))
        .expect("a state folder")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .expect("a decision log");
    let whole = fs::read_to_string(&log).expect("text");
    let lines: Vec<_> = whole.lines().collect();
    let joined = |lines: Vec<&str>| lines.join("\n") + "\n";
    let outcome = lines
        .iter()
        .position(|line| line.contains("maka.policy.outcome/1"))
        .expect("an outcome");
    let edited = lines[outcome].replace("\"ok\"", "\"refused\"");
    let edits = [
        ("first taken out", joined(lines[1..].to_vec())),
        (
            "one taken out",
            joined([&lines[..outcome], &lines[outcome + 1..]].concat()),
        ),
        (
            "one changed",
            joined([&lines[..outcome], &[edited.as_str()], &lines[outcome + 1..]].concat()),
        ),
        (
            "two swapped",
            joined([&lines[..1], &[lines[2], lines[1]], &lines[3..]].concat()),
        ),
    ];
    assert!(outcome + 1 < lines.len(), "a record follows the outcome");
    for (name, text) in edits {
        assert_ne!(text, whole, "{name}");
        fs::write(&log, &text).expect("written");
        let output = refused_start(folder.path());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}: {told}");
        assert!(told.contains("decision log was changed"), "{name}: {told}");
        assert_eq!(fs::read_to_string(&log).expect("text"), text, "{name}");
    }
    fs::write(&log, &whole).expect("written");
    GatewayProcess::start_in(folder, options())
        .await
        .stop()
        .await;
}

/// Whoever can write to the state folder can change policies, tokens and the pinned executor.
#[tokio::test]
async fn a_folder_that_others_can_write_to_does_not_start() {
    let gateway = GatewayProcess::serving(options()).await;
    let folder = gateway.stop().await;
    let state = folder.path().join("state");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).expect("permitted");
    let output = refused_start(folder.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && told.contains("chmod 700"),
        "{told}"
    );
}

/// A repeated launch says that it is one, in the same life of the gateway and in the next.
#[tokio::test]
async fn a_repeated_launch_is_told_from_a_new_one() {
    let gateway = GatewayProcess::serving(options()).await;
    let agent = gateway.agent();
    let request = LaunchAppRequest {
        session_id: agent.begin().await,
        tool_call_id: "launch".into(),
        app: APP.into(),
        ..LaunchAppRequest::default()
    };
    let launch = async |gateway: &GatewayProcess| {
        let launched = gateway
            .agent()
            .computer_use
            .launch_app(request.clone())
            .await;
        launched.expect("launched").into_inner()
    };
    let first = launch(&gateway).await;
    assert!(!first.replayed);
    assert!(launch(&gateway).await.replayed);
    let folder = gateway.stop().await;
    let gateway = GatewayProcess::start_in(folder, options()).await;
    gateway.wait_for(ServingStatus::Serving).await;
    let logged = launch(&gateway).await;
    assert!(logged.replayed && logged.outcome() == first.outcome());
    assert_eq!(gateway.received_count("apps.launch"), 1);
    gateway.stop().await;
}
