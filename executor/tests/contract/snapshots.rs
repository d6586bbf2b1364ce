//! The life of a snapshot (spec §5.1, §12.5 row 50).

use serde_json::json;

use crate::client::Client;
use crate::desk::{self, SESSION};

const FORM: &str = "org.contract.Form";

/// The code that a click on the named element of this snapshot is refused with.
fn code(client: &mut Client, snapshot: &serde_json::Value, name: &str) -> String {
    let result = client.call("dispatch.element", desk::click_params(snapshot, name));
    desk::declared(&result)[4].to_owned()
}

#[test]
fn a_frame_that_was_acted_on_is_spent_and_its_successor_lives() {
    let mut client = desk::start();
    let first = desk::observe(&mut client, FORM);
    let result = client.ok("dispatch.element", desk::click_params(&first, "Set status"));
    let second = &result["snapshot"];
    assert_ne!(second["snapshotId"], first["snapshotId"]);
    assert_eq!(code(&mut client, &first, "Set status"), "snapshot_spent");
    client.ok("dispatch.element", desk::click_params(second, "Set status"));
}

/// Field report A1: a token never outlives its frame, whatever stands in its place now.
#[test]
fn a_newer_frame_supersedes_only_its_own_window_and_session() {
    let mut client = desk::start();
    desk::begin(&mut client, "s-2");
    let form = desk::observe(&mut client, FORM);
    let cover = desk::observe(&mut client, "org.contract.Cover");
    let other_session = desk::observe_in(&mut client, "s-2", FORM);
    let newer = desk::observe(&mut client, FORM);
    assert_eq!(
        code(&mut client, &form, "Set status"),
        "snapshot_superseded"
    );
    client.ok("dispatch.element", desk::click_params(&newer, "Set status"));
    client.ok("dispatch.element", desk::click_params(&cover, "Own button"));
    assert_eq!(
        code(&mut client, &other_session, "Set status"),
        "snapshot_unknown",
        "an id of another session"
    );
}

#[test]
fn the_oldest_frame_beyond_the_limit_is_evicted() {
    let mut client = desk::start_with(&["--limit", "snapshotsPerSession=2"]);
    let form = desk::observe(&mut client, FORM);
    desk::observe(&mut client, "org.contract.Cover");
    desk::observe(&mut client, "org.contract.Menus");
    assert_eq!(code(&mut client, &form, "Set status"), "snapshot_evicted");
}

#[test]
fn a_frame_expires_by_time_and_its_file_goes_without_a_request() {
    let mut client = desk::start_with(&["--limit", "snapshotTtlMs=200"]);
    let mut params = desk::app_params(FORM);
    params["includeImage"] = json!(true);
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    client.ok("screen.capture", json!({ "session": SESSION }));
    client.wait_until("both pictures are deleted", |client| {
        client.image_files() == 0
    });
    assert_eq!(
        code(&mut client, &snapshot, "Set status"),
        "snapshot_expired"
    );
}

#[test]
fn refusals_and_failures_do_not_use_a_frame_up() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    assert_eq!(code(&mut client, &snapshot, "Disabled"), "element_disabled");
    assert_eq!(
        code(&mut client, &snapshot, "Ready"),
        "element_not_actionable"
    );
    let failed = client.call("dispatch.element", desk::click_params(&snapshot, "Decline"));
    assert_eq!(desk::declared(&failed)[..2], ["failed", "ax_action"]);
    client.ok(
        "dispatch.element",
        desk::click_params(&snapshot, "Set status"),
    );
}

#[test]
fn an_unknown_outcome_uses_the_frame_up() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let unknown = client.call(
        "dispatch.element",
        desk::click_params(&snapshot, "Say nothing"),
    );
    assert_eq!(
        desk::declared(&unknown),
        [
            "unknown",
            "ax_action",
            "unverifiable",
            "none",
            "outcome_unknown"
        ]
    );
    assert!(unknown.get("snapshot").is_none());
    assert_eq!(code(&mut client, &snapshot, "Set status"), "snapshot_spent");
}

#[test]
fn ids_of_another_process_or_no_process_are_unknown() {
    let mut first = desk::start();
    let mut second = desk::start();
    let foreign = desk::observe(&mut first, FORM);
    let own = desk::observe(&mut second, FORM);
    assert_ne!(
        foreign["snapshotId"], own["snapshotId"],
        "ids never collide across generations"
    );
    assert_eq!(
        code(&mut second, &foreign, "Set status"),
        "snapshot_unknown"
    );
    let id = own["snapshotId"].as_str().unwrap();
    let misspelled = [
        format!("{id} "),
        format!("{id}0"),
        id.replace("_0", "_+0"),
        id.to_uppercase(),
        "_".to_owned(),
    ];
    for wrong in misspelled {
        let mut params = desk::click_params(&own, "Set status");
        params["snapshotId"] = json!(wrong);
        let result = second.call("dispatch.element", params);
        assert_eq!(desk::declared(&result)[4], "snapshot_unknown", "{wrong}");
    }
    second.ok("dispatch.element", desk::click_params(&own, "Set status"));
}

#[test]
fn a_dispatch_that_outlives_its_session_tells_what_happened_and_leaves_nothing() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Slow");
    let mut params = desk::click_params(&snapshot, "Slow button");
    params["observeAfter"]["includeImage"] = json!(true);
    let act = client.send("dispatch.element", params);
    let mut params = desk::app_params("org.contract.Slow");
    params["includeImage"] = json!(true);
    let read = client.send("observe", params);
    // Both are under way for at least the 400 ms that one look at the window takes.
    client.ok("apps.list", json!({}));
    client.ok("session.end", json!({ "session": SESSION }));
    let result = client.wait(act)["result"].clone();
    assert_eq!(result["outcome"], "ok");
    assert_eq!(result["postObservationError"]["code"], "aborted");
    assert_eq!(client.wait(read)["error"]["code"], -32002);
    assert_eq!(client.image_files(), 0);
}

#[test]
fn lists_and_captures_leave_frames_alone() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    client.ok("window.list", json!({ "session": SESSION }));
    client.ok("apps.list", json!({}));
    client.ok("screen.capture", json!({ "session": SESSION }));
    client.ok("permissions.check", json!({}));
    client.ok(
        "dispatch.element",
        desk::click_params(&snapshot, "Set status"),
    );
}

/// Field report A2, spec §4.3 and §4.9: numbers stay with the elements of a window, and an answer says what changed since the last one.
#[test]
fn an_action_tells_what_it_changed() {
    let mut client = desk::start();
    let first = desk::observe(&mut client, FORM);
    assert!(first.get("difference").is_none(), "there is no base yet");
    let numbers = |snapshot: &serde_json::Value| -> Vec<u64> {
        let elements = snapshot["elements"].as_array().unwrap();
        elements
            .iter()
            .map(|element| element["stableId"].as_u64().unwrap())
            .collect()
    };
    let count = numbers(&first).len() as u64;
    assert_eq!(numbers(&first), (0..count).collect::<Vec<_>>());
    let second = client.ok(
        "dispatch.element",
        desk::write_params(&first, "Entry", "new"),
    )["snapshot"]
        .clone();
    assert_eq!(numbers(&second), numbers(&first));
    let entry = desk::find(&second, "Entry");
    let difference = &second["difference"];
    assert_eq!(difference["baseSnapshotId"], first["snapshotId"]);
    assert_eq!(difference["presentation"], "difference");
    assert_eq!(
        difference["changes"].as_array().unwrap().as_slice(),
        [json!({
            "kind": "update",
            "path": difference["changes"][0]["path"],
            "stableId": entry["stableId"],
            "token": entry["token"],
        })]
    );
    let third = desk::observe(&mut client, FORM);
    assert_eq!(third["difference"]["presentation"], "no-change");
    assert_eq!(third["difference"]["baseSnapshotId"], second["snapshotId"]);
    // Another session and another window have chains of their own.
    desk::begin(&mut client, "s-2");
    assert!(
        desk::observe_in(&mut client, "s-2", FORM)
            .get("difference")
            .is_none()
    );
    assert!(
        desk::observe(&mut client, "org.contract.Cover")
            .get("difference")
            .is_none()
    );
}

/// Spec §4.9: what expired or was evicted is no base.
#[test]
fn a_chain_ends_with_its_snapshot() {
    let mut client = desk::start_with(&["--limit", "snapshotsPerSession=2"]);
    desk::observe(&mut client, FORM);
    desk::observe(&mut client, "org.contract.Cover");
    desk::observe(&mut client, "org.contract.Menus");
    assert!(desk::observe(&mut client, FORM).get("difference").is_none());
    assert!(
        desk::observe(&mut client, "org.contract.Menus")["difference"].is_object(),
        "this one was not evicted"
    );
}

/// A session that holds as much as it may stays small: eight live snapshots of 1,500 elements each, every one with a base
/// to be compared with, and a second round that supersedes them all.
#[cfg(target_os = "linux")]
#[test]
fn a_full_session_stays_small() {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let mut desktop =
        "[[displays]]\nid = \"1\"\nsize = [800, 600]\n\n[[apps]]\napp_id = \"org.large\"\n\
                       name = \"Large\"\nrunning = true\n\n"
            .to_owned();
    for number in 0..8 {
        desktop.push_str(&format!(
            "[[apps.windows]]\nid = \"w{number}\"\ntitle = \"Window {number}\"\nbounds = [0, 0, 300, 400]\n\n\
             [[apps.windows.controls]]\nkind = \"list\"\nlabel = \"Rows\"\ngenerated_rows = 1600\n\
             bounds = [20, 50, 260, 300]\n\n"
        ));
    }
    std::fs::write(scenario.path(), desktop).unwrap();
    let path = scenario.path().to_str().unwrap();
    let mut client = Client::start(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
    let before = client.resident_bytes();
    for round in 0..2 {
        for window in windows.as_array().unwrap() {
            let target =
                json!({ "kind": "window", "pid": window["pid"], "windowId": window["windowId"] });
            let params = json!({ "session": SESSION, "target": target, "includeImage": false });
            let snapshot = client.ok("observe", params)["snapshot"].clone();
            assert_eq!(snapshot["elements"].as_array().unwrap().len(), 1_500);
            assert_eq!(
                snapshot["difference"]["presentation"] == "no-change",
                round == 1
            );
        }
    }
    let after = client.resident_bytes();
    assert!(after <= 60_000_000, "{before} before, {after} after");
    let released = client.ok("session.end", json!({ "session": SESSION }))["released"].clone();
    assert_eq!(released["snapshots"], 8);
}

/// Spec §4.1: the selected text is that of the focused element, cut as every text is; an empty selection is absent.
#[test]
fn what_is_selected_is_told() {
    let mut client = desk::start();
    let first = desk::observe(&mut client, FORM);
    assert!(first.get("selectedText").is_none());
    let entry = desk::find(&first, "Entry");
    let type_in = json!({
        "session": SESSION,
        "snapshotId": first["snapshotId"],
        "toolCallId": "call-1",
        "focusToken": entry["token"],
        "expectElementDigest": entry["digest"],
        "focusPolicy": "acquire",
        "action": { "kind": "type", "text": "one two" },
    });
    client.ok("dispatch.key", type_in);
    let second = desk::observe(&mut client, FORM);
    assert_eq!(
        second["focusedElementToken"],
        desk::find(&second, "Entry")["token"]
    );
    assert!(second.get("selectedText").is_none(), "nothing is selected");
    let select = desk::dispatch_params(
        SESSION,
        &second,
        desk::find(&second, "Entry"),
        json!({ "kind": "select_text", "text": "two" }),
    );
    client.ok("dispatch.element", select);
    let third = desk::observe(&mut client, FORM);
    assert_eq!(
        third["selectedText"],
        json!({ "text": "two", "truncated": false })
    );
    let mut params = desk::app_params(FORM);
    params["maxTextChars"] = json!(2);
    let cut = client.ok("observe", params)["snapshot"].clone();
    assert_eq!(
        cut["selectedText"],
        json!({ "text": "tw", "truncated": true })
    );
    // Cut off together with its element.
    let mut params = desk::app_params(FORM);
    params["maxElements"] = json!(2);
    let short = client.ok("observe", params)["snapshot"].clone();
    assert!(short.get("selectedText").is_none() && short.get("focusedElementToken").is_none());
}
