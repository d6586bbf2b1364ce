//! Spec 8.2: the start sequence, step by step, and its table of failures, one row each: how often it was tried, what it is called,
//! and what callers are told.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use maka_cu_host::Options;
use maka_cu_protocol::sets::{LifecycleCode, ServiceState};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::child::{Script, handshake, handshake_with};
use crate::trace::soon;

/// One row: what is wrong, and what follows from it.
struct Row {
    /// The reason that is remembered.
    reason: &'static str,
    /// What callers get.
    code: LifecycleCode,
    /// Generations that were made of three attempts.
    generations: u64,
    /// Of these, children that ran.
    ran: usize,
}

const UNAVAILABLE: LifecycleCode = LifecycleCode::ServiceUnavailable;
const MISMATCH: LifecycleCode = LifecycleCode::ServiceMismatch;

/// Fatal: nothing is spawned, and the generation stays what it is.
const fn fatal(reason: &'static str, code: LifecycleCode) -> Row {
    Row {
        reason,
        code,
        generations: 0,
        ran: 0,
    }
}

/// Another executor than ours: tried once.
const fn mismatch(reason: &'static str) -> Row {
    Row {
        reason,
        code: MISMATCH,
        generations: 1,
        ran: 1,
    }
}

/// Tried three times.
const fn retried(reason: &'static str) -> Row {
    Row {
        reason,
        code: UNAVAILABLE,
        generations: 3,
        ran: 3,
    }
}

async fn check(name: &str, script: &Script, change: impl FnOnce(&mut Options), row: Row) {
    let service = script.service(change);
    let error = soon(service.ensure_started()).await.unwrap_err();
    let status = service.status();
    let last = status.last_failure.expect("it is remembered");
    assert_eq!(
        (last.failure.reason(), error.code),
        (row.reason, row.code),
        "{name}"
    );
    assert_eq!(status.state, ServiceState::Unavailable, "{name}");
    assert_eq!(status.generation, row.generations, "{name}");
    assert_eq!(script.starts(), row.ran, "{name}");
    assert!(
        !error.possibly_delivered() && error.remedy().is_some(),
        "{name}"
    );
}

/// The child answers the handshake with this body, and goes on.
fn answering(body: &Value) -> Script {
    let body = body.to_string();
    Script::new(&format!(
        "read -r line; answer \"$line\" '{}'; serve",
        &body[1..body.len() - 1]
    ))
}

#[tokio::test]
async fn unusable_executables_are_fatal() {
    let script = Script::new("greet; serve");
    let plain = script.path("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let folder = script.path("folder");
    fs::create_dir(&folder).unwrap();
    let dangling = script.path("dangling");
    std::os::unix::fs::symlink(script.path("nowhere"), &dangling).unwrap();
    let rows = [
        ("absent", script.path("absent"), "binary_missing"),
        ("a link to nothing", dangling, "binary_missing"),
        ("no permission", plain, "binary_not_executable"),
        ("a folder", folder, "binary_not_regular"),
    ];
    for (name, path, reason) in rows {
        check(
            name,
            &script,
            |it| it.binary_path = path,
            fatal(reason, UNAVAILABLE),
        )
        .await;
    }
}

#[tokio::test]
async fn a_wrong_digest_is_fatal_and_a_mismatch() {
    let script = Script::new("greet; serve");
    let wrong = "0".repeat(64).parse().unwrap();
    let pin = |it: &mut Options| it.expected_digest = Some(wrong);
    check(
        "pinned to another",
        &script,
        pin,
        fatal("wrong_digest", MISMATCH),
    )
    .await;

    let digest = Sha256::digest(fs::read(script.path("executor")).unwrap());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let service = script.service(|it| it.expected_digest = Some(hex.parse().unwrap()));
    soon(service.ensure_started()).await.unwrap();
    let pin = service.status().pin.unwrap();
    assert_eq!((pin.pinned, pin.digest.to_string()), (true, hex));
}

#[tokio::test]
async fn another_version_is_tried_once() {
    let error = json!({ "error": { "code": -32000, "message": "protocol_version_mismatch", "data": { "supported": ["maka.cu/9"] } } });
    let refused = json!({ "result": { "ok": false, "error": { "code": "permission_missing", "message": "No." } } });
    let other = json!({ "result": handshake_with("/protocol", json!("maka.cu/9")) });
    let rows = [
        ("-32000", error, "version_mismatch"),
        ("ok: false", refused, "handshake_refused"),
        ("another protocol in the answer", other, "version_mismatch"),
    ];
    for (name, body, reason) in rows {
        check(name, &answering(&body), |_| {}, mismatch(reason)).await;
    }
    // Exit status 78 follows the answer; heard of in whichever order, it is the same mismatch.
    let body =
        "read -r line; answer \"$line\" '\"error\":{\"code\":-32000,\"message\":\"x\"}'; exit 78";
    check(
        "-32000 and gone",
        &Script::new(body),
        |_| {},
        mismatch("version_mismatch"),
    )
    .await;
}

#[tokio::test]
async fn a_malformed_handshake_is_tried_once() {
    let without = |pointer: &str, name: &str| {
        let mut changed = handshake();
        changed
            .pointer_mut(pointer)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(name)
            .unwrap();
        changed
    };
    let rows = [
        ("no ok", without("", "ok")),
        ("no executor", without("", "executor")),
        ("no version", without("/executor", "version")),
        ("no limit", without("/limits", "maxDepth")),
        (
            "a limit of nothing",
            handshake_with("/limits/maxElements", json!(0)),
        ),
        (
            "half an element",
            handshake_with("/limits/maxElements", json!(2.5)),
        ),
        ("a pid in words", handshake_with("/pid", json!("1"))),
        (
            "an unknown ability",
            handshake_with("/capabilities/keyActions", json!(["sing"])),
        ),
        (
            "an ability alone",
            handshake_with("/capabilities/keyActions", json!("type")),
        ),
        ("ok in words", handshake_with("/ok", json!("true"))),
        ("a list", json!([])),
    ];
    for (name, result) in rows {
        let script = answering(&json!({ "result": result }));
        check(name, &script, |_| {}, mismatch("handshake_violation")).await;
    }
    let bad_lines = Script::new("printf 'null\\n4\\n\"x\"\\n'; serve");
    check(
        "three lines that are none",
        &bad_lines,
        |_| {},
        mismatch("handshake_violation"),
    )
    .await;
}

#[tokio::test]
async fn passing_failures_are_retried() {
    let error = json!({ "error": { "code": -32603, "message": "internal_error" } });
    check(
        "another error",
        &answering(&error),
        |_| {},
        retried("handshake_rpc_error"),
    )
    .await;
    for (name, body) in [
        ("gone with a status", "exit 3"),
        ("gone by a signal", "kill -9 $$"),
        ("gone after reading", "read -r line; exit 0"),
        (
            "gone mid-line",
            "read -r line; printf '{\"jsonrpc\":'; exit 0",
        ),
    ] {
        check(name, &Script::new(body), |_| {}, retried("exited_early")).await;
    }
    let hasty = |it: &mut Options| {
        it.handshake_timeout = Duration::from_millis(50);
        it.cancel_grace = Duration::from_millis(50);
    };
    let deaf = Script::new("while read -r line; do note \"$line\"; done");
    check("no answer", &deaf, hasty, retried("handshake_timeout")).await;
    assert!(deaf.received("host.hello") >= 1);

    // The file may be executed, says its mode; what it needs is not there.
    let script = Script::new("greet; serve");
    let lost = script.executable("lost", "#!/no/such/interpreter\n");
    let row = Row {
        ran: 0,
        ..retried("missing_interpreter")
    };
    check(
        "a missing interpreter",
        &script,
        |it| it.binary_path = lost,
        row,
    )
    .await;
}

/// Steps 1, 3, 4 and 5 of a start that succeeds: links are resolved, the image folder is fresh and private, `host` is the first
/// argument, and the handshake is the first message.
#[tokio::test]
async fn a_start_follows_its_steps() {
    let script = Script::new(
        "note \"arguments $*\"; read -r line; note \"$line\"; answer \"$line\" \"$hello\"; serve",
    );
    let link = script.path("a link");
    std::os::unix::fs::symlink(script.path("executor"), &link).unwrap();
    let service = script.service(|options| {
        options.binary_path = link;
        options.executor_args = vec!["--mark".into(), "two words".into()];
    });
    for generation in 1..=2 {
        let negotiated = soon(service.restart()).await.unwrap();
        assert_eq!(negotiated.generation, generation);
        let images = fs::metadata(script.path("images")).unwrap();
        assert_eq!(images.permissions().mode() & 0o777, 0o700);
        assert_eq!(images.uid(), nix::unistd::geteuid().as_raw());
        assert!(
            !script.path("images/left.png").exists(),
            "generation {generation}"
        );
        fs::write(script.path("images/left.png"), "x").unwrap();
    }
    let log = script.log();
    assert_eq!(log[1], "arguments host --mark two words");
    let hello: Value = serde_json::from_str(&log[2]).unwrap();
    assert_eq!(hello["method"], "host.hello");
    assert_eq!(hello["id"], 1);
    assert_eq!(hello["params"]["hostPid"], std::process::id());
}
