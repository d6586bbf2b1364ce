//! What holds on every back end, shown with one dialog: an entry with a text and two buttons.
//!
//! The virtual desktop has the dialog built in; on Linux it is a real `zenity --entry` on a private display.

use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

const APP: &str = "org.maka.TestEntry";

#[test]
fn a_dialog_is_answered_on_the_virtual_desktop() {
    let mut client = Client::start(&["--back-end", "virtual"]);
    answer_the_dialog(&mut client, "virtual answer");
    desk::begin(&mut client, "s-2");
    let notes = desk::observe_in(&mut client, "s-2", "org.maka.Notes");
    desk::find(&notes, "Last answer: virtual answer");
    assert_nothing_leaked(&mut client, "virtual answer");
}

#[cfg(target_os = "linux")]
#[test]
fn a_dialog_is_answered_on_a_real_desktop() {
    use maka_desktop::{Desktop, DesktopOptions};

    let desktop =
        Desktop::start(DesktopOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let answer = desktop.dir().join("answer.txt");
    let script = desktop.dir().join("ask");
    let dialog = "zenity --entry --title=Question '--text=What is your name?'";
    std::fs::write(
        &script,
        format!("#!/bin/sh\nexec {dialog} > '{}'\n", answer.display()),
    )
    .unwrap();
    let mut mode = std::fs::metadata(&script).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let entry = format!(
        "[Desktop Entry]\nType=Application\nName=Test Entry\nExec={}\n",
        script.display()
    );
    std::fs::create_dir_all(desktop.applications_dir()).unwrap();
    std::fs::write(
        desktop.applications_dir().join(format!("{APP}.desktop")),
        entry,
    )
    .unwrap();

    let mut client = Client::start_on(desktop.command(env!("CARGO_BIN_EXE_maka-cu")));
    answer_the_dialog(&mut client, "real answer");
    client.wait_until("the program wrote what it was told", |_| {
        std::fs::read_to_string(&answer).is_ok_and(|text| text == "real answer\n")
    });
    assert_nothing_leaked(&mut client, "real answer");
    desktop.stop();
}

/// Launches the dialog, types into it, confirms it. The same script on every back end.
fn answer_the_dialog(client: &mut Client, text: &str) {
    desk::begin(client, SESSION);
    let launched = client.ok(
        "apps.launch",
        json!({ "session": SESSION, "app": APP, "waitForWindowMs": 20_000 }),
    );
    assert_eq!(launched["appId"], APP);
    assert_eq!(launched["waited"]["reason"], "window_appeared");
    let apps = client.ok("apps.list", json!({}))["apps"].clone();
    assert!(
        apps.as_array()
            .unwrap()
            .iter()
            .any(|app| app["appId"] == APP && app["pid"] == launched["pid"])
    );

    let target = json!({ "kind": "app", "app": APP });
    let observe = json!({ "session": SESSION, "target": target, "includeImage": true, "menu": { "scope": "bar" } });
    // A toolkit may still be laying its dialog out; the field is what a client would wait for.
    let mut snapshot = Value::Null;
    client.wait_until("the dialog has its field", |client| {
        snapshot = client.ok("observe", observe.clone())["snapshot"].clone();
        field(&snapshot).is_some()
    });
    assert_eq!(snapshot["target"]["title"], "Question");
    assert_eq!(snapshot["target"]["pid"], launched["pid"]);
    assert_eq!(snapshot["elements"][0]["role"], "AXWindow");
    let before = crate::images::pixels(client, &snapshot["image"]);
    assert!(
        before.iter().any(|byte| *byte != before[0]),
        "the picture is not blank"
    );

    // Looking again changes nothing, and the whole window can be required to be unchanged.
    let again = client.ok("observe", observe)["snapshot"].clone();
    assert_eq!(again["windowDigest"], snapshot["windowDigest"]);
    let entry = field(&again).unwrap();
    let mut write = desk::dispatch_params(
        SESSION,
        &again,
        entry,
        json!({ "kind": "set_value", "value": text }),
    );
    write["strictness"] = json!("window");
    write["observeAfter"] = json!({ "includeImage": true, "settle": "quiesce" });
    let result = client.ok("dispatch.element", write.clone());
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_attribute", "confirmed", "value_readback", ""]
    );
    let fresh = result["snapshot"].clone();
    assert_eq!(field(&fresh).unwrap()["value"], text);
    assert_ne!(
        before,
        crate::images::pixels(client, &fresh["image"]),
        "the write can be seen"
    );
    let repeated = client.call("dispatch.element", write);
    assert_eq!(desk::declared(&repeated)[4], "snapshot_spent");

    // The root offers no press.
    let root = desk::dispatch_params(
        SESSION,
        &fresh,
        &fresh["elements"][0],
        json!({ "kind": "click" }),
    );
    assert_eq!(
        desk::declared(&client.call("dispatch.element", root))[4],
        "element_not_actionable"
    );

    let result = client.ok("dispatch.element", desk::click_params(&fresh, "OK"));
    assert_eq!(result["path"], "ax_action");
    // It closes at once or a moment later; then the next look says so.
    client.wait_until("the dialog is gone", |client| {
        let result = client.call("observe", desk::app_params(APP));
        ["window_gone", "app_not_found"].contains(&result["error"]["code"].as_str().unwrap_or(""))
    });
    let stale = client.call("dispatch.element", desk::click_params(&fresh, "OK"));
    assert_eq!(desk::declared(&stale)[4], "snapshot_spent");
    client.ok("session.end", json!({ "session": SESSION }));
    assert_eq!(client.image_files(), 0);
}

/// Field report E10: neither what was typed nor what was seen is in any log line, at trace level.
fn assert_nothing_leaked(client: &mut Client, typed: &str) {
    client.hang_up();
    assert_eq!(client.exit_status().code(), Some(0));
    let log = client.stderr();
    assert!(log.contains("request done"), "the log was on: {log}");
    for canary in [typed, "Question", "What is your name?"] {
        assert!(!log.contains(canary), "{canary} is in the log");
    }
}

fn field(snapshot: &Value) -> Option<&Value> {
    snapshot["elements"]
        .as_array()
        .unwrap()
        .iter()
        .find(|element| element["role"] == "AXTextField")
}

/// Two editors that people use, one of each toolkit that takes background input differently (C1): text by value in both, keys
/// in the one that hears them, a refusal that names the missing permission in the other.
#[cfg(target_os = "linux")]
#[test]
fn editors_are_written_into_on_a_real_desktop() {
    use maka_desktop::{Desktop, DesktopOptions};

    let desktop =
        Desktop::start(DesktopOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut client = Client::start_on(desktop.command(env!("CARGO_BIN_EXE_maka-cu")));
    desk::begin(&mut client, SESSION);
    for (app, hears_keys) in [("org.xfce.mousepad", false), ("featherpad", true)] {
        let params = json!({ "session": SESSION, "app": app, "waitForWindowMs": 20_000 });
        let launched = client.ok("apps.launch", params);
        let window = &launched["windows"][0];
        let target =
            json!({ "kind": "window", "pid": launched["pid"], "windowId": window["windowId"] });
        let observe = json!({
            "session": SESSION, "target": target, "includeImage": false, "menu": { "scope": "bar" },
        });
        let mut snapshot = Value::Null;
        client.wait_until("the editor has its text", |client| {
            snapshot = client.call("observe", observe.clone())["snapshot"].clone();
            text_area(&snapshot).is_some()
        });
        let bar = snapshot["menu"]["elements"].as_array().unwrap();
        assert!(bar.len() > 3, "{app} has a menu: {bar:?}");

        let written = "Grüße,\nzweite Zeile";
        let area = text_area(&snapshot).unwrap();
        let action = json!({ "kind": "set_value", "value": written });
        let mut write = desk::dispatch_params(SESSION, &snapshot, area, action);
        write["observeAfter"] = json!({ "includeImage": false, "settle": "quiesce" });
        let result = client.ok("dispatch.element", write);
        assert_eq!(
            desk::declared(&result)[1..4],
            ["ax_attribute", "confirmed", "value_readback"],
            "{app}"
        );
        let fresh = result["snapshot"].clone();
        let area = text_area(&fresh).unwrap();
        let params = json!({
            "session": SESSION, "snapshotId": fresh["snapshotId"], "toolCallId": "call-1",
            "focusToken": area["token"], "expectElementDigest": area["digest"], "focusPolicy": "acquire",
            "action": { "kind": "type", "text": "q" },
            "observeAfter": { "includeImage": false, "settle": "quiesce" },
        });
        let result = client.call("dispatch.key", params);
        if hears_keys {
            assert_eq!(
                desk::declared(&result)[..2],
                ["ok", "cg_event_pid"],
                "{app}: {result}"
            );
            let typed = text_area(&result["snapshot"]).unwrap()["value"].clone();
            assert_eq!(typed.as_str().unwrap().replace('q', ""), written, "{app}");
            assert_ne!(typed, written, "{app}");
        } else {
            assert_eq!(
                result["error"]["code"], "dispatch_refused",
                "{app}: {result}"
            );
            let needed = &result["error"]["detail"]["wouldRequirePath"];
            assert_eq!(needed, "cg_event_global", "{app}");
        }
    }
    desktop.stop();
}

#[cfg(target_os = "linux")]
fn text_area(snapshot: &Value) -> Option<&Value> {
    let elements = snapshot["elements"].as_array()?;
    let wanted = |element: &&Value| element["role"] == "AXTextArea" && element["frame"].is_object();
    elements.iter().find(wanted)
}
