//! `host.dispatch` and `host.snapshot`: every route and refusal of spec §9 (§12.5 row 64).

use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

const FORM: &str = "org.contract.Form";

/// Params of a click on the named element by the generic method, bound to its snapshot.
fn click(snapshot: &Value, name: &str) -> Value {
    let element = desk::find(snapshot, name);
    json!({
        "toolCallId": "call-1",
        "sessionId": SESSION,
        "tier": "ax",
        "snapshotId": snapshot["snapshotId"],
        "elementToken": element["token"],
        "expectElementDigest": element["digest"],
        "occlusionPolicy": "none",
        "action": { "kind": "click" },
        "observeAfter": { "includeImage": false, "settle": "quiesce" },
    })
}

fn with(mut params: Value, fields: Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(fields);
    params
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    params
}

/// Tier, code and `wouldRequirePath` of a refusal that did nothing.
fn refusal(client: &mut Client, params: Value) -> (String, String, Option<String>) {
    let result = client.call("host.dispatch", params);
    let [outcome, path, effect, method, code] = desk::declared(&result);
    assert_eq!(
        [outcome, path, effect, method],
        ["refused", "none", "unverifiable", "none"]
    );
    let path = result["error"]["detail"]["wouldRequirePath"].as_str();
    (
        result["tier"].as_str().unwrap().to_owned(),
        code.to_owned(),
        path.map(str::to_owned),
    )
}

#[test]
fn the_generic_methods_are_advertised() {
    let client = desk::start();
    assert_eq!(
        client.handshake["capabilities"]["genericMethods"],
        json!(["host.dispatch", "host.snapshot"])
    );
}

#[test]
fn an_element_dispatch_is_the_specific_one() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    // What is wished changes nothing and is copied nowhere.
    let wishes = json!({ "path": "ax_action", "effect": "none", "verification": { "method": "value_readback" } });
    let result = client.ok(
        "host.dispatch",
        with(click(&snapshot, "Set status"), wishes),
    );
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "confirmed", "tree_delta", ""]
    );
    assert_eq!(result["routedTo"], "dispatch.element");
    let fresh = &result["snapshot"];
    desk::find(fresh, "Pressed");
    assert_eq!(
        fresh["difference"]["baseSnapshotId"],
        snapshot["snapshotId"]
    );
    let old = refusal(&mut client, click(&snapshot, "Set status"));
    assert_eq!(old.1, "snapshot_spent");
    let bare = with(
        click(fresh, "Do nothing"),
        json!({ "effect": "unconfirmed", "path": "none" }),
    );
    assert_eq!(client.ok("host.dispatch", bare)["effect"], "unverifiable");
}

/// A path that is not the one that would be taken is refused before anything is done, and the real one named.
#[test]
fn another_path_than_the_demanded_one_is_not_taken() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let demand = |path: &str| with(click(&snapshot, "Set status"), json!({ "path": path }));
    for path in ["ax_attribute", "ax_select"] {
        assert_eq!(
            refusal(&mut client, demand(path)),
            (
                "ax".to_owned(),
                "dispatch_refused".to_owned(),
                Some("ax_action".to_owned())
            )
        );
    }
    let element = desk::find(&snapshot, "Entry");
    let write = json!({ "elementToken": element["token"], "expectElementDigest": element["digest"],
        "action": { "kind": "set_value", "value": "new" }, "path": "ax_action" });
    assert_eq!(
        refusal(&mut client, with(click(&snapshot, "Entry"), write.clone()))
            .2
            .as_deref(),
        Some("ax_attribute")
    );
    // Nothing happened and the frame is still good.
    let ready = desk::observe_in(&mut client, SESSION, "org.contract.Cover");
    assert!(ready["snapshotId"].is_string());
    let write = with(
        with(click(&snapshot, "Entry"), write),
        json!({ "path": "ax_attribute" }),
    );
    let result = client.ok("host.dispatch", write);
    assert_eq!(result["effect"], "confirmed");
    desk::find(&result["snapshot"], "Ready");
}

/// A row is selected in its list: the demand is held to what this control really needs.
#[test]
fn a_row_is_selected_and_not_pressed() {
    let mut client = Client::start(&["--back-end", "virtual"]);
    desk::begin(&mut client, SESSION);
    let snapshot = desk::observe(&mut client, "org.maka.Notes");
    let press = with(
        click(&snapshot, "Travel plan"),
        json!({ "path": "ax_action" }),
    );
    assert_eq!(refusal(&mut client, press).2.as_deref(), Some("ax_select"));
    let select = with(
        click(&snapshot, "Travel plan"),
        json!({ "path": "ax_select" }),
    );
    assert_eq!(client.ok("host.dispatch", select)["path"], "ax_select");
}

#[test]
fn what_cannot_be_served_is_refused_in_the_callers_tier() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let rows = [
        (
            json!({ "tier": "semantic-background" }),
            "unsupported_action",
            None,
        ),
        (
            json!({ "tier": "coordinate-background" }),
            "unsupported_action",
            None,
        ),
        (
            json!({ "tier": "coordinate-background", "path": "cg_event_global" }),
            "dispatch_refused",
            Some("cg_event_global"),
        ),
    ];
    for (demand, code, path) in rows {
        let refused = refusal(
            &mut client,
            with(click(&snapshot, "Set status"), demand.clone()),
        );
        assert_eq!(refused.0, demand["tier"].as_str().unwrap());
        assert_eq!(
            (refused.1.as_str(), refused.2.as_deref()),
            (code, path),
            "{demand}"
        );
    }
    client.ok("host.dispatch", click(&snapshot, "Set status"));
}

/// What is wrong with a request by itself is an error that names the field.
#[test]
fn an_unusable_request_is_named() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let rows = [
        (json!({ "path": "cg_event_pid" }), "path"),
        (json!({ "path": "teleport" }), "path"),
        (json!({ "tier": "best" }), "tier"),
        (json!({ "session": "another" }), "session"),
        (json!({ "sessionId": null }), "sessionId"),
        (json!({ "elementToken": null }), "elementToken"),
        (json!({ "focusToken": "el" }), "focusToken"),
        (json!({ "x": 1, "y": 1 }), "x"),
        (json!({ "snapshotId": null }), "snapshotId"),
        (json!({ "effect": "certain" }), "effect"),
        (json!({ "toolCallId": "" }), "toolCallId"),
    ];
    for (fields, field) in rows {
        let params = with(click(&snapshot, "Set status"), fields.clone());
        assert_eq!(
            client.rpc_error("host.dispatch", params),
            (-32602, Some(field.to_owned())),
            "{fields}"
        );
    }
    let rows = [
        (
            json!({ "includeTree": false, "includeImage": false }),
            "includeImage",
        ),
        (json!({ "maxElements": 1501 }), "maxElements"),
        (
            json!({ "pid": 1, "target": { "kind": "app", "app": "a" } }),
            "pid",
        ),
        (json!({ "target": { "kind": "screen" } }), "target.kind"),
        (
            json!({ "includeTree": false, "displayId": "9" }),
            "displayId",
        ),
    ];
    for (fields, field) in rows {
        let params = with(json!({ "session": SESSION }), fields.clone());
        assert_eq!(
            client.rpc_error("host.snapshot", params),
            (-32602, Some(field.to_owned())),
            "{fields}"
        );
    }
    assert_eq!(
        client.image_files(),
        0,
        "nothing was written for any of them"
    );
}

/// Field report A1: without a quoted snapshot, the only live one of the process is meant; never one of several.
#[test]
fn an_anchor_is_found_by_its_process() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let pid = &snapshot["target"]["pid"];
    let unbound = |name: &str| {
        with(
            click(&snapshot, name),
            json!({ "snapshotId": null, "pid": pid }),
        )
    };
    let other = desk::observe(&mut client, "org.contract.Cover");
    let of_other = with(unbound("Set status"), json!({ "pid": 4_000_000 }));
    assert_eq!(refusal(&mut client, of_other).1, "snapshot_unknown");
    let result = client.ok("host.dispatch", unbound("Set status"));
    assert_eq!(result["snapshot"]["target"]["pid"], *pid);
    // The quoted one was spent, the frame afterwards took its place and holds other tokens.
    assert_eq!(
        refusal(&mut client, unbound("Set status")).1,
        "element_unknown"
    );
    drop(other);
}

#[test]
fn several_live_snapshots_of_a_process_are_not_guessed_at() {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let window = |id: &str, x: u32| {
        format!(
            "[[apps.windows]]\nid = \"{id}\"\ntitle = \"{id}\"\nbounds = [{x}, 0, 200, 200]\n\n\
             [[apps.windows.controls]]\nkind = \"button\"\ntitle = \"Button\"\nbounds = [10, 50, 100, 30]\n\n"
        )
    };
    let desktop = format!(
        "[[displays]]\nid = \"1\"\nsize = [800, 600]\n\n[[apps]]\napp_id = \"org.two\"\nname = \"Two\"\nrunning = true\n\n{}{}",
        window("first", 0),
        window("second", 300)
    );
    std::fs::write(scenario.path(), desktop).unwrap();
    let path = scenario.path().to_str().unwrap();
    let mut client = Client::start(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
    let observe = |client: &mut Client, window: &Value| {
        let target =
            json!({ "kind": "window", "pid": window["pid"], "windowId": window["windowId"] });
        let params = json!({ "session": SESSION, "target": target, "includeImage": false });
        client.ok("observe", params)["snapshot"].clone()
    };
    let first = observe(&mut client, &windows[0]);
    let second = observe(&mut client, &windows[1]);
    let params = with(
        click(&first, "Button"),
        json!({ "snapshotId": null, "pid": windows[0]["pid"] }),
    );
    assert_eq!(
        client.rpc_error("host.dispatch", params.clone()),
        (-32602, Some("snapshotId".to_owned()))
    );
    client.ok(
        "host.dispatch",
        with(click(&second, "Button"), json!({ "observeAfter": null })),
    );
    client.ok("host.dispatch", params);
}

/// A session that was never seen begins by itself, with pictures of windows; one that was ended does not.
#[test]
fn a_session_begins_once_by_itself() {
    let mut client = desk::start();
    let params = json!({ "sessionId": "seed", "target": { "kind": "app", "app": FORM }, "includeImage": false });
    let snapshot = client.ok("host.snapshot", params.clone())["snapshot"].clone();
    let own = json!({ "sessionId": "seed" });
    client.ok(
        "host.dispatch",
        with(click(&snapshot, "Set status"), own.clone()),
    );
    let begin = json!({ "session": "seed", "captureScope": "desktop" });
    assert_eq!(client.rpc_error("session.begin", begin.clone()).0, -32602);
    client.ok("session.end", json!({ "session": "seed" }));
    assert_eq!(
        client.rpc_error("host.snapshot", params.clone()),
        (-32002, None)
    );
    let again = with(click(&snapshot, "Set status"), own);
    assert_eq!(client.rpc_error("host.dispatch", again), (-32002, None));
    client.ok("session.begin", begin);
    client.ok("host.snapshot", params);
}

#[test]
fn a_snapshot_is_of_what_is_named_or_of_what_is_in_front() {
    let mut client = desk::start();
    let with_tree = json!({ "session": SESSION, "includeImage": false });
    let of = |client: &mut Client, fields: Value| {
        client.ok("host.snapshot", with(with_tree.clone(), fields))["snapshot"].clone()
    };
    let app = of(
        &mut client,
        json!({ "target": { "kind": "app", "app": FORM } }),
    );
    let pid = app["target"]["pid"].clone();
    let by_pid = of(&mut client, json!({ "pid": pid }));
    assert_eq!(by_pid["target"]["appId"], FORM);
    assert_eq!(by_pid["difference"]["baseSnapshotId"], app["snapshotId"]);
    let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
    let mut all = windows.as_array().unwrap().iter();
    let front = all
        .find(|window| window["layer"] == 0 && window["onScreen"] == true)
        .unwrap();
    assert_eq!(
        of(&mut client, json!({}))["target"]["windowId"],
        front["windowId"]
    );
    let nobody = with(with_tree, json!({ "pid": 4_000_000 }));
    assert_eq!(client.refused("host.snapshot", nobody), "app_not_found");
}

/// Pictures alone mint no snapshot and supersede none.
#[test]
fn a_picture_alone_is_no_snapshot() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let target = &snapshot["target"];
    let alone = json!({ "session": SESSION, "includeTree": false });
    let shown = client.ok(
        "host.snapshot",
        with(alone.clone(), json!({ "pid": target["pid"] })),
    );
    assert_eq!(shown["target"]["windowId"], target["windowId"]);
    assert_eq!(shown["image"]["widthPx"], 600);
    assert!(shown["capturedAt"].is_u64() && shown.get("snapshot").is_none());
    let screen = client.ok("host.snapshot", with(alone, json!({ "displayId": "2" })));
    assert_eq!(
        (&screen["displayId"], &screen["image"]["widthPx"]),
        (&json!("2"), &json!(1280))
    );
    assert_eq!(client.image_files(), 2);
    client.ok("host.dispatch", click(&snapshot, "Set status"));
    let released = client.ok("session.end", json!({ "session": SESSION }))["released"].clone();
    assert_eq!(released["images"], 2);
    assert_eq!(client.image_files(), 0);
}

/// The click of the seeds: a place on the screen, a process, a path; no snapshot is quoted and none has a picture.
fn seed(snapshot: &Value, x: f64, y: f64) -> Value {
    json!({
        "toolCallId": "call-1",
        "sessionId": SESSION,
        "tier": "coordinate-background",
        "path": "cg_event_pid",
        "effect": "confirmed",
        "verification": { "method": "none", "observedChange": false },
        "pid": snapshot["target"]["pid"],
        "x": x,
        "y": y,
    })
}

#[test]
fn a_bare_click_goes_to_the_point_of_the_screen() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    // The middle of "Set status", whose window begins at 40, 40.
    let result = client.ok("host.dispatch", seed(&snapshot, 400.0, 135.0));
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "unverifiable", "action_result", ""]
    );
    assert_eq!(result["routedTo"], "dispatch.point");
    desk::find(&desk::observe(&mut client, FORM), "Pressed");
}

#[test]
fn a_click_at_a_pixel_is_the_specific_one() {
    let mut client = desk::start();
    let mut params = desk::app_params(FORM);
    params["includeImage"] = json!(true);
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    let click = with(
        seed(&snapshot, 360.0, 95.0),
        json!({ "space": "image_px", "snapshotId": snapshot["snapshotId"], "path": null,
            "expectWindowDigest": snapshot["windowDigest"],
            "observeAfter": { "includeImage": false, "settle": "quiesce" } }),
    );
    let wrong = with(
        click.clone(),
        json!({ "expectWindowDigest": format!("sha256:{}", "0".repeat(64)) }),
    );
    assert_eq!(refusal(&mut client, wrong).1, "element_digest_mismatch");
    let result = client.ok("host.dispatch", click);
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "confirmed", "tree_delta", ""]
    );
    desk::find(&result["snapshot"], "Pressed");
}

#[test]
fn a_point_that_cannot_be_reached_as_demanded_is_refused() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let at = |fields: Value| with(seed(&snapshot, 400.0, 135.0), fields);
    let rows = [
        (at(json!({ "x": 20 })), "invalid_point", None),
        // A pixel needs a picture, which this snapshot does not have.
        (at(json!({ "space": "image_px" })), "invalid_point", None),
        (
            at(json!({ "path": "skylight_pid" })),
            "dispatch_refused",
            Some("cg_event_pid"),
        ),
        (
            at(json!({ "path": null, "action": { "kind": "move" } })),
            "dispatch_refused",
            Some("cg_event_global"),
        ),
        (
            at(json!({ "path": null, "tier": "ax" })),
            "unsupported_action",
            None,
        ),
        (
            at(json!({ "path": null, "action": { "kind": "drag" } })),
            "invalid_point",
            None,
        ),
    ];
    for (params, code, path) in rows {
        let refused = refusal(&mut client, params.clone());
        assert_eq!(
            (refused.1.as_str(), refused.2.as_deref()),
            (code, path),
            "{params}"
        );
    }
    client.ok("host.dispatch", at(json!({})));
}

#[test]
fn keys_are_the_specific_ones() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let entry = desk::find(&snapshot, "Entry");
    let typed = json!({
        "toolCallId": "call-1",
        "sessionId": SESSION,
        "tier": "coordinate-background",
        "path": "cg_event_pid",
        "snapshotId": snapshot["snapshotId"],
        "focusToken": entry["token"],
        "expectElementDigest": entry["digest"],
        "focusPolicy": "acquire",
        "action": { "kind": "type", "text": "new" },
    });
    assert_eq!(
        client.rpc_error(
            "host.dispatch",
            with(typed.clone(), json!({ "focusToken": null }))
        ),
        (-32602, Some("focusToken".to_owned()))
    );
    let require = with(typed.clone(), json!({ "focusPolicy": "require" }));
    assert_eq!(refusal(&mut client, require).1, "focus_changed");
    let other = with(typed.clone(), json!({ "path": "skylight_pid" }));
    assert_eq!(
        refusal(&mut client, other).2.as_deref(),
        Some("cg_event_pid")
    );
    let result = client.ok("host.dispatch", typed);
    assert_eq!(result["routedTo"], "dispatch.key");
    assert_eq!(result["path"], "cg_event_pid");
    let after = desk::observe(&mut client, FORM);
    let entry = desk::find(&after, "Entry");
    assert!(entry["value"].as_str().unwrap().contains("new"), "{entry}");
    assert_eq!(after["focusedElementToken"], entry["token"]);
}

/// With the permission to move the pointer, the global path is taken where it is the one that is needed, and no other input
/// is sent by it because a caller would like that.
#[test]
fn the_global_path_is_for_what_needs_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract/desktop.toml");
    let mut client = Client::start_permitted(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    let snapshot = desk::observe(&mut client, FORM);
    let global = json!({ "path": "cg_event_global" });
    let click = with(seed(&snapshot, 400.0, 135.0), global.clone());
    assert_eq!(
        refusal(&mut client, click).2.as_deref(),
        Some("cg_event_pid")
    );
    let hover = with(
        seed(&snapshot, 400.0, 135.0),
        json!({ "action": { "kind": "move" } }),
    );
    assert_eq!(
        refusal(&mut client, hover.clone()).2.as_deref(),
        Some("cg_event_global")
    );
    let result = client.ok("host.dispatch", with(hover, global));
    assert_eq!(result["path"], "cg_event_global");
}

/// The generic methods on a real desktop, with a real dialog.
#[cfg(target_os = "linux")]
#[test]
fn a_real_dialog_is_answered_by_the_generic_methods() {
    use maka_desktop::{Desktop, DesktopOptions};

    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
    let dialog = desktop
        .command("zenity")
        .args(["--entry", "--title=Question", "--text=What is your name?"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = Client::start_on(desktop.command(env!("CARGO_BIN_EXE_maka-cu")));
    let look = json!({ "sessionId": SESSION, "pid": dialog.id(), "includeImage": false });
    let mut snapshot = Value::Null;
    let field = |snapshot: &Value| {
        let elements = snapshot["elements"].as_array().cloned().unwrap_or_default();
        elements
            .into_iter()
            .find(|element| element["role"] == "AXTextField")
    };
    client.wait_until("the dialog has its field", |client| {
        snapshot = client.call("host.snapshot", look.clone())["snapshot"].clone();
        field(&snapshot).is_some()
    });
    let entry = field(&snapshot).unwrap();
    let write = with(
        click(&snapshot, "OK"),
        json!({ "elementToken": entry["token"], "expectElementDigest": entry["digest"], "snapshotId": null,
            "pid": dialog.id(), "action": { "kind": "set_value", "value": "generic" } }),
    );
    let wrong = with(write.clone(), json!({ "path": "ax_action" }));
    assert_eq!(
        refusal(&mut client, wrong).2.as_deref(),
        Some("ax_attribute")
    );
    let written = client.ok(
        "host.dispatch",
        with(write, json!({ "path": "ax_attribute" })),
    );
    assert_eq!(written["effect"], "confirmed");
    let press = with(
        click(&written["snapshot"], "OK"),
        json!({ "path": "ax_action" }),
    );
    assert_eq!(client.ok("host.dispatch", press)["path"], "ax_action");
    let output = dialog.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"generic\n");
    desktop.stop();
}
