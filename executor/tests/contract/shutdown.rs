//! How the service ends (spec §1.7, §12.5 row 58).

use serde_json::json;

use crate::desk::{self, SESSION};

const SLOW: &str = "org.contract.Slow";

#[test]
fn the_end_of_input_ends_sessions_and_the_process() {
    let mut client = desk::start();
    let mut params = desk::app_params("org.contract.Form");
    params["includeImage"] = json!(true);
    client.ok("observe", params);
    assert_eq!(client.image_files(), 1);
    client.hang_up();
    assert_eq!(client.exit_status().code(), Some(0));
    assert_eq!(client.image_files(), 0);
}

#[test]
fn a_half_line_at_the_end_of_input_is_no_request() {
    let mut client = desk::start();
    client.write_raw(br#"{"jsonrpc":"2.0","id":77,"method":"apps.list","params":{}}"#);
    client.hang_up();
    assert_eq!(client.exit_status().code(), Some(0));
    assert!(!client.has_answer(77));
}

#[test]
fn sigterm_finishes_what_runs_and_aborts_what_waits() {
    let mut client = desk::start_with(&["--limit", "shutdownGraceMs=30000"]);
    let snapshot = desk::observe(&mut client, SLOW);
    let running = client.send(
        "dispatch.element",
        desk::click_params(&snapshot, "Slow button"),
    );
    let waiting = client.send(
        "dispatch.element",
        desk::click_params(&snapshot, "Slow button"),
    );
    // The control lane answers after both were read, so the signal finds one running and one waiting.
    client.ok("apps.list", json!({}));
    client.terminate();
    let aborted = client.wait(waiting)["result"].clone();
    assert_eq!(
        desk::declared(&aborted),
        ["refused", "none", "unverifiable", "none", "aborted"]
    );
    let late = client.send("apps.list", json!({}));
    assert_eq!(client.wait(late)["error"]["code"], -32003);
    assert_eq!(client.wait(running)["result"]["outcome"], "ok");
    assert_eq!(client.exit_status().code(), Some(0));
    assert_eq!(client.image_files(), 0);
}

#[test]
fn what_outlives_the_grace_is_answered_with_what_is_known() {
    let mut client = desk::start_with(&["--limit", "shutdownGraceMs=1"]);
    let snapshot = desk::observe(&mut client, SLOW);
    let read = client.send("observe", desk::app_params(SLOW));
    let act = client.send(
        "dispatch.element",
        desk::click_params(&snapshot, "Slow button"),
    );
    client.ok("apps.list", json!({}));
    client.terminate();
    assert_eq!(client.exit_status().code(), Some(0));
    assert_eq!(client.wait(read)["result"]["error"]["code"], "aborted");
    let act = client.wait(act)["result"].clone();
    assert!(
        ["aborted", "outcome_unknown"].contains(&desk::declared(&act)[4]),
        "{act}"
    );
}

#[test]
fn a_host_process_that_is_gone_ends_the_service() {
    let mut host = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let mut client = crate::client::Client::spawn(&["host", "--back-end", "virtual"]);
    let mut params = client.hello_params();
    params["hostPid"] = json!(host.id());
    client.ok("host.hello", params);
    desk::begin(&mut client, SESSION);
    host.kill().unwrap();
    host.wait().unwrap();
    assert_eq!(client.exit_status().code(), Some(0));
}

/// A window server that died takes the service with it, which then says by its status that the desktop is missing: a
/// supervisor starts another or reports it, instead of forwarding to an executor that can only refuse.
#[cfg(target_os = "linux")]
#[test]
fn a_desktop_that_is_gone_ends_the_service() {
    use maka_desktop::{Desktop, DesktopOptions};

    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
    let mut command = desktop.command(env!("CARGO_BIN_EXE_maka-cu"));
    // By this the desktop finds and ends its inhabitants when it stops; this one is to notice by itself.
    command.env_remove("XDG_RUNTIME_DIR");
    let mut client = crate::client::Client::start_on(command);
    desk::begin(&mut client, SESSION);
    client.ok("apps.list", json!({}));
    desktop.stop();
    assert_eq!(client.exit_status().code(), Some(69));
}

#[test]
fn an_endless_line_ends_the_service_after_one_answer() {
    let mut client = desk::start();
    client.flood(5 * 1024 * 1024);
    assert_eq!(client.exit_status().code(), Some(0));
    assert_eq!(client.unaddressed.len(), 1);
    assert_eq!(client.unaddressed[0]["error"]["code"], -32700);
}

#[test]
fn a_burst_of_requests_is_answered_one_by_one() {
    let mut client = desk::start();
    let ids: Vec<i64> = (0..2000)
        .map(|_| client.send("apps.list", json!({})))
        .collect();
    let mut refused = 0;
    for id in ids {
        let result = client.wait(id)["result"].clone();
        if result["ok"] == false {
            assert_eq!(
                result["error"]["code"], "timeout",
                "the only refusal of an overloaded executor"
            );
            refused += 1;
        }
    }
    assert!(refused < 2000);
}

/// Field reports D2 and D4: keys that are being typed on the real keyboard when the executor has to end are up when it has
/// ended, and the answer names the path that they took.
#[cfg(target_os = "linux")]
#[test]
fn no_key_stays_down_when_the_executor_ends_while_it_types() {
    use std::process::{Command, Stdio};

    use maka_desktop::{Desktop, DesktopOptions};
    use x11rb::protocol::xproto::ConnectionExt as _;

    /// Set in the inner run.
    const INSIDE: &str = "MAKA_TEST_INSIDE";

    let Some(folder) = std::env::var_os(INSIDE) else {
        let desktop = Desktop::start(DesktopOptions::default()).unwrap();
        let test = "shutdown::no_key_stays_down_when_the_executor_ends_while_it_types";
        let output = desktop
            .command(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, desktop.dir())
            .output()
            .unwrap();
        desktop.stop();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    };
    let written = std::path::Path::new(&folder).join("written.txt");
    let script = format!("cat > '{}'", written.display());
    let mut terminal = Command::new("xterm")
        .args(["-T", "Terminal", "-e", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = crate::client::Client::start_permitted(&[]);
    desk::begin(&mut client, SESSION);
    let mut snapshot = json!(null);
    client.wait_until("the terminal can be observed", |client| {
        let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
        let mut windows = windows.as_array().unwrap().iter();
        let Some(window) = windows.find(|window| window["title"] == "Terminal") else {
            return false;
        };
        let target =
            json!({ "kind": "window", "pid": window["pid"], "windowId": window["windowId"] });
        let params = json!({ "session": SESSION, "target": target, "includeImage": false });
        let seen = client.call("observe", params);
        snapshot = seen["snapshot"].clone();
        seen["ok"] == true
    });
    let root = &snapshot["elements"][0];
    // Takes longer than the grace; a capital letter holds Shift down too.
    let params = json!({
        "session": SESSION, "snapshotId": snapshot["snapshotId"], "toolCallId": "typing",
        "focusToken": root["token"], "expectElementDigest": root["digest"], "focusPolicy": "acquire",
        "action": { "kind": "type", "text": format!("A\n{}", "WXYZ".repeat(400)) },
    });
    let typing = client.send("dispatch.key", params);
    client.wait_until("the first line has arrived", |_| {
        std::fs::read_to_string(&written).is_ok_and(|text| text == "A\n")
    });
    client.terminate();
    let result = client.wait(typing)["result"].clone();
    assert_eq!(result["path"], "cg_event_global", "{result}");
    assert_eq!(client.exit_status().code(), Some(0));
    let (connection, _) = x11rb::connect(None).unwrap();
    let keys = connection.query_keymap().unwrap().reply().unwrap().keys;
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    assert_eq!(keys, [0; 32], "{result}");
}
