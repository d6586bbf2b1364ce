//! The handshake, exit statuses and the command line.

use serde_json::{Value, json};

use crate::client::Client;

fn virtual_host() -> Client {
    Client::spawn(&["host", "--back-end", "virtual"])
}

/// Spec §12.5 row 55.
#[test]
fn an_unknown_version_is_answered_and_ends_the_process_with_78() {
    let mut client = virtual_host();
    // Its other fields belong to another version too and must not matter.
    let id = client.send(
        "host.hello",
        json!({ "protocol": "maka.cu/1", "hostPid": "x" }),
    );
    let answer = client.wait(id);
    assert_eq!(answer["error"]["code"], -32000);
    assert_eq!(answer["error"]["message"], "protocol_version_mismatch");
    assert_eq!(answer["error"]["data"]["supported"], json!(["maka.cu/2"]));
    assert_eq!(client.exit_status().code(), Some(78));
}

/// Spec §12.5 row 55.
#[test]
fn every_request_before_the_handshake_is_told_so() {
    let mut client = virtual_host();
    for method in [
        "session.begin",
        "observe",
        "no.such.method",
        "capture.start",
    ] {
        assert_eq!(
            client.rpc_error(method, json!({})),
            (-32001, None),
            "{method}"
        );
    }
    client.hello();
    assert_eq!(client.rpc_error("no.such.method", json!({})).0, -32601);
    let params = client.hello_params();
    assert_eq!(
        client.rpc_error("host.hello", params).0,
        -32600,
        "a second handshake"
    );
}

#[test]
fn each_field_of_the_handshake_is_checked_and_named() {
    let mut client = virtual_host();
    let good = client.hello_params();
    let file = tempfile::NamedTempFile::new().unwrap();
    let rows = [
        ("protocol", json!(2)),
        ("protocol", Value::Null),
        ("hostPid", json!(0)),
        ("hostPid", json!(-1)),
        ("hostPid", json!("1")),
        ("hostPid", json!(1.5)),
        ("hostPid", json!(4_000_000_000_u64)),
        ("imageDir", json!("relative")),
        ("imageDir", json!("/does/not/exist")),
        ("imageDir", json!(file.path())),
        ("imageDir", json!(7)),
        ("allowGlobalPointer", json!("false")),
        ("allowGlobalPointer", Value::Null),
    ];
    for (field, value) in rows {
        let mut params = good.clone();
        params[field] = value.clone();
        assert_eq!(
            client.rpc_error("host.hello", params),
            (-32602, Some(field.to_owned())),
            "{value}"
        );
    }
    client.hello();
    assert_eq!(client.image_files(), 0, "the probe file is gone");
}

#[test]
fn the_handshake_says_what_can_be_asked_for() {
    let client = Client::start(&["--back-end", "virtual"]);
    let capabilities = &client.handshake["capabilities"];
    let elements = [
        "click",
        "set_value",
        "select_text",
        "secondary_action",
        "scroll",
        "move_window",
        "resize_window",
        "minimize_window",
    ];
    assert_eq!(capabilities["elementActions"], json!(elements));
    assert_eq!(capabilities["keyActions"], json!(["type", "key"]));
    let points = [
        "left_click",
        "right_click",
        "middle_click",
        "double_click",
        "triple_click",
        "mouse_down",
        "mouse_up",
        "drag",
        "scroll",
    ];
    assert_eq!(
        capabilities["pointActions"],
        json!(points),
        "a move needs the permission to move the pointer"
    );
    let permitted = Client::start_permitted(&["--back-end", "virtual"]);
    assert_eq!(
        permitted.handshake["capabilities"]["pointActions"][0],
        "move"
    );
    assert_eq!(capabilities["imageFormats"], json!(["png"]));
    assert_eq!(capabilities["captureStream"], false);
    assert_eq!(client.handshake["executor"]["name"], "maka-cu");
    assert!(
        client.handshake["limits"]
            .as_object()
            .unwrap()
            .values()
            .all(|limit| limit.as_u64() >= Some(1))
    );
}

#[test]
fn wrong_arguments_end_with_64() {
    let rows: [&[&str]; 9] = [
        &[],
        &["serve"],
        &["host", "--no-such-flag"],
        &["host", "extra"],
        &["host", "--back-end", "windows"],
        &["host", "--desktop", "/tmp/desktop.toml"],
        &[
            "host",
            "--back-end",
            "linux",
            "--desktop",
            "/tmp/desktop.toml",
        ],
        &["host", "--back-end", "virtual", "--limit", "maxDepth=0"],
        &["host", "--back-end", "virtual", "--limit", "nothing"],
    ];
    for arguments in rows {
        assert_eq!(
            Client::spawn(arguments).exit_status().code(),
            Some(64),
            "{arguments:?}"
        );
    }
}

/// A lost display must never silently drive a fake desktop.
#[test]
fn a_host_without_a_desktop_refuses_in_one_line() {
    let mut client = Client::spawn_without_desktop(&["host"]);
    assert_eq!(client.exit_status().code(), Some(69));
    let stderr = client.stderr();
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("maka-cu: "))
        .collect();
    assert_eq!(lines.len(), 1, "{stderr}");
    let mut client = Client::spawn(&[
        "host",
        "--back-end",
        "virtual",
        "--desktop",
        "/does/not/exist.toml",
    ]);
    assert_eq!(client.exit_status().code(), Some(69));
    assert!(client.stderr().contains("--desktop"));
    // What was asked for is not silently left out.
    let second = ["host", "--back-end", "virtual", "--second-pointer"];
    let mut client = Client::spawn(&second);
    assert_eq!(client.exit_status().code(), Some(69));
    assert!(client.stderr().contains("--second-pointer"));
}

#[test]
fn doctor_finds_the_embedded_desktop_and_misses_a_real_one() {
    let mut client = Client::spawn(&["doctor", "--json", "--back-end", "virtual"]);
    assert_eq!(client.exit_status().code(), Some(0));
    let report = client.unaddressed.pop().unwrap();
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["backEnd"], "virtual");

    let mut client = Client::spawn_without_desktop(&["doctor", "--json"]);
    assert_eq!(client.exit_status().code(), Some(1));
    let report = client.unaddressed.pop().unwrap();
    assert_eq!(report["ok"], false);
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["ok"] == false && finding["remedy"].is_string()),
        "{report}"
    );
}
