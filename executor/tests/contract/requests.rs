//! The envelope: what is no request, what names a wrong field, and what is refused before any look at the world.

use serde_json::{Value, json};

use crate::desk::{self, SESSION};

/// Field report H10: how bytes are cut into writes decides nothing, also in the middle of a character.
#[test]
fn a_request_may_arrive_byte_by_byte_or_two_at_a_time() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Form");
    let text = "é漢😀";
    let params = desk::write_params(&snapshot, "Entry", text);
    let line =
        json!({ "jsonrpc": "2.0", "id": 800, "method": "dispatch.element", "params": params });
    for byte in format!("{line}\r\n").bytes() {
        client.write_raw(&[byte]);
    }
    let result = client.wait(800)["result"].clone();
    assert_eq!(desk::find(&result["snapshot"], "Entry")["value"], text);
    let list = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "apps.list" });
    client.write_raw(format!("{}\n\n{}\n", list(801), list(802)).as_bytes());
    assert_eq!(client.wait(801)["result"]["ok"], true);
    assert_eq!(client.wait(802)["result"]["ok"], true);
}

/// Nothing on the wire may panic the executor or go unanswered (the executor's side of field report H14).
#[test]
fn a_line_that_is_no_request_is_answered_once_without_an_id() {
    let mut client = desk::start();
    let deep = [b'['; 100_000];
    let lines: [(&[u8], i64); 9] = [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (&deep, -32700),
        (b"null", -32600),
        (b"4", -32600),
        (b"\"text\"", -32600),
        (b"[]", -32600),
        (
            br#"{"jsonrpc":"2.0","id":"x","method":"apps.list"}"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1.5,"method":"apps.list"}"#,
            -32600,
        ),
    ];
    for (line, _) in &lines {
        client.write(line);
    }
    // Blank lines, notifications and cancels of nothing are no requests either, and are not answered.
    client.write(b"");
    client.write(b"  \r");
    client.write(br#"{"jsonrpc":"2.0","method":"no.such.notification"}"#);
    client.write(br#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"x"}}"#);
    client.write(br#"{"jsonrpc":"2.0","method":"$/cancel"}"#);
    client.cancel(999);
    client.ok("apps.list", json!({}));
    let codes: Vec<i64> = client
        .unaddressed
        .iter()
        .map(|answer| answer["error"]["code"].as_i64().unwrap())
        .collect();
    assert_eq!(codes, lines.map(|(_, code)| code));
    assert!(
        client
            .unaddressed
            .iter()
            .all(|answer| answer["id"].is_null())
    );
}

#[test]
fn an_id_that_is_still_owed_an_answer_cannot_be_used_again() {
    let mut client = desk::start();
    let id = client.send("observe", desk::app_params("org.contract.Slow"));
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": "apps.list", "params": {} });
    client.write(line.to_string().as_bytes());
    assert!(
        client.wait(id)["result"]["snapshot"].is_object(),
        "the first of the two is answered"
    );
    assert_eq!(client.unaddressed[0]["error"]["code"], -32600);
}

#[test]
fn an_envelope_of_another_version_keeps_its_id() {
    let mut client = desk::start();
    client.write(br#"{"id":900,"method":"apps.list"}"#);
    assert_eq!(client.wait(900)["error"]["code"], -32600);
    client.write(br#"{"jsonrpc":"2.0","id":901}"#);
    assert_eq!(client.wait(901)["error"]["code"], -32600);
}

/// Every field of every method, wrong in one way: `-32602` names it.
#[test]
fn an_unusable_param_is_named() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Form");
    let click = desk::click_params(&snapshot, "Set status");
    let observe = desk::app_params("org.contract.Form");
    let begin = json!({ "session": "s-2", "captureScope": "window" });
    let launch = json!({ "session": SESSION, "app": "Opens", "waitForWindowMs": 10 });
    let point = json!({ "session": SESSION, "snapshotId": "x", "toolCallId": "c",
        "expectWindowDigest": snapshot["windowDigest"], "point": { "x": 1, "y": 1 }, "space": "image_px",
        "action": { "kind": "left_click" } });
    let key = json!({ "session": SESSION, "snapshotId": "x", "toolCallId": "c", "focusToken": "el",
        "expectElementDigest": snapshot["windowDigest"], "action": { "kind": "key", "key": "a" } });
    let rows: &[(&str, &Value, &str, Value)] = &[
        ("session.begin", &begin, "session", json!("")),
        ("session.begin", &begin, "session", json!(1)),
        ("session.begin", &begin, "captureScope", json!("screen")),
        ("session.begin", &begin, "captureScope", Value::Null),
        ("window.list", &begin, "session", Value::Null),
        ("apps.launch", &launch, "app", json!("")),
        ("apps.launch", &launch, "waitForWindowMs", json!(-1)),
        ("apps.launch", &launch, "waitForWindowMs", json!(60_001)),
        ("observe", &observe, "target", json!({ "kind": "screen" })),
        ("observe", &observe, "target", Value::Null),
        ("observe", &observe, "includeImage", json!("yes")),
        ("observe", &observe, "maxElements", json!(0)),
        ("observe", &observe, "maxElements", json!(1501)),
        ("observe", &observe, "maxDepth", json!(65)),
        ("observe", &observe, "maxTextChars", json!(501)),
        ("observe", &observe, "menu", json!(true)),
        ("dispatch.element", &click, "snapshotId", json!("")),
        ("dispatch.element", &click, "toolCallId", Value::Null),
        ("dispatch.element", &click, "elementToken", Value::Null),
        (
            "dispatch.element",
            &click,
            "expectElementDigest",
            json!("abc"),
        ),
        ("dispatch.element", &click, "strictness", json!("loose")),
        ("dispatch.element", &click, "occlusionPolicy", json!("some")),
        ("dispatch.point", &point, "space", json!("screen_pt")),
        (
            "dispatch.point",
            &point,
            "startPoint",
            json!({ "x": 1, "y": 1 }),
        ),
        ("dispatch.key", &key, "focusPolicy", json!("maybe")),
    ];
    for (method, good, field, value) in rows {
        let mut params = (*good).clone();
        params[field] = value.clone();
        let (code, named) = client.rpc_error(method, params);
        let named = named.unwrap();
        assert_eq!(code, -32602, "{method} {field} {value}");
        assert!(
            named == *field || named.starts_with(&format!("{field}.")),
            "{method} {field} {value}: {named}"
        );
    }
    let nested: &[(&str, &Value, &str, &str, Value)] = &[
        ("dispatch.element", &click, "action", "kind", json!("press")),
        (
            "dispatch.element",
            &click,
            "action",
            "button",
            json!("fourth"),
        ),
        ("dispatch.element", &click, "action", "count", json!(4)),
        (
            "dispatch.element",
            &click,
            "observeAfter",
            "settle",
            json!("wait"),
        ),
        (
            "dispatch.element",
            &click,
            "observeAfter",
            "includeImage",
            Value::Null,
        ),
        ("dispatch.key", &key, "action", "key", json!("cmd+a")),
    ];
    for (method, good, object, field, value) in nested {
        let mut params = (*good).clone();
        params[object][field] = value.clone();
        assert_eq!(
            client.rpc_error(method, params),
            (-32602, Some(format!("{object}.{field}"))),
            "{value}"
        );
    }
    // Not even the title of a menu may be there when none is named.
    let mut params = observe.clone();
    params["menu"] = json!({ "scope": "bar", "title": "File" });
    assert_eq!(
        client.rpc_error("observe", params),
        (-32602, Some("menu.title".to_owned()))
    );
    // All that cost nothing: the frame is still good.
    client.ok("dispatch.element", click);
}

/// Spec §12.5 row 58 and §3.8: what is not offered is refused without a look at the snapshot.
#[test]
fn what_is_not_offered_is_refused_as_such() {
    let mut client = desk::start_on("limited");
    for method in ["capture.start", "capture.next", "capture.stop"] {
        assert_eq!(client.refused(method, json!({})), "not_implemented");
    }
    let digest = format!("sha256:{}", "0".repeat(64));
    let common =
        json!({ "session": SESSION, "snapshotId": "no such snapshot", "toolCallId": "call-1" });
    let with = |fields: Value| {
        let mut params = common.clone();
        params
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        params
    };
    let move_there = with(
        json!({ "expectWindowDigest": digest, "point": { "x": 1, "y": 1 }, "space": "image_px",
            "action": { "kind": "move" } }),
    );
    let rows = [
        (
            "dispatch.point",
            "coordinate-background",
            move_there.clone(),
        ),
        (
            "dispatch.key",
            "coordinate-background",
            with(json!({ "focusToken": "el", "expectElementDigest": digest,
                "action": { "kind": "type", "text": "x" } })),
        ),
        (
            "dispatch.element",
            "ax",
            with(json!({ "elementToken": "el", "expectElementDigest": digest,
                "action": { "kind": "minimize_window" } })),
        ),
    ];
    for (method, tier, params) in rows {
        let result = client.call(method, params.clone());
        assert_eq!(
            desk::declared(&result),
            [
                "refused",
                "none",
                "unverifiable",
                "none",
                "unsupported_action"
            ]
        );
        assert_eq!(result["tier"], tier);
        let mut elsewhere = params;
        elsewhere["session"] = json!("never begun");
        assert_eq!(client.rpc_error(method, elsewhere).0, -32002);
    }
    // Spec §12.5 row 54: what is there, and only moves the pointer, is a matter of permission.
    let mut client = desk::start();
    let result = client.call("dispatch.point", move_there);
    assert_eq!(desk::declared(&result)[4], "dispatch_refused");
    assert_eq!(
        result["error"]["detail"]["wouldRequirePath"],
        "cg_event_global"
    );
}

/// Spec §12.5 row 55.
#[test]
fn sessions_begin_once_and_end_for_good() {
    let mut client = desk::start();
    let begin = json!({ "session": SESSION, "captureScope": "desktop" });
    assert_eq!(
        client.rpc_error("session.begin", begin.clone()),
        (-32602, Some("session".to_owned()))
    );
    let snapshot = desk::observe(&mut client, "org.contract.Form");
    let zeros = json!({ "snapshots": 0, "images": 0, "streams": 0 });
    assert_eq!(
        client.ok("session.end", json!({ "session": "never begun" }))["released"],
        zeros
    );
    let released = client.ok("session.end", json!({ "session": SESSION }))["released"].clone();
    assert_eq!(
        released,
        json!({ "snapshots": 1, "images": 0, "streams": 0 })
    );
    for (method, params) in [
        ("window.list", json!({ "session": SESSION })),
        ("observe", desk::app_params("org.contract.Form")),
        ("screen.capture", json!({ "session": SESSION })),
        ("apps.launch", json!({ "session": SESSION, "app": "Opens" })),
        (
            "dispatch.element",
            desk::click_params(&snapshot, "Set status"),
        ),
    ] {
        assert_eq!(client.rpc_error(method, params), (-32002, None), "{method}");
    }
    // Begun again it is another session: the old frame means nothing in it.
    client.ok("session.begin", begin);
    let result = client.call(
        "dispatch.element",
        desk::click_params(&snapshot, "Set status"),
    );
    assert_eq!(desk::declared(&result)[4], "snapshot_unknown");
}

#[test]
fn lists_say_what_is_there_now() {
    let mut client = desk::start();
    let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
    let z_indexes: Vec<i64> = windows
        .as_array()
        .unwrap()
        .iter()
        .map(|window| window["zIndex"].as_i64().unwrap())
        .collect();
    assert!(
        z_indexes.windows(2).all(|pair| pair[0] > pair[1]),
        "front to back, never tied: {z_indexes:?}"
    );
    let apps = client.ok("apps.list", json!({}))["apps"].clone();
    let form = apps
        .as_array()
        .unwrap()
        .iter()
        .find(|app| app["appId"] == "org.contract.Form")
        .unwrap();
    assert_eq!(form["windowCount"], 1);
    let listed = windows
        .as_array()
        .unwrap()
        .iter()
        .find(|window| window["pid"] == form["pid"])
        .unwrap();
    assert_eq!(
        listed["appId"], form["appId"],
        "one process is spelled the same everywhere"
    );
    let never_launched = |apps: &Value| {
        apps.as_array()
            .unwrap()
            .iter()
            .all(|app| app["appId"] != "org.contract.Opens")
    };
    assert!(never_launched(&apps));
    client.ok(
        "apps.launch",
        json!({ "session": SESSION, "app": "Opens", "waitForWindowMs": 8000 }),
    );
    assert!(
        !never_launched(&client.ok("apps.list", json!({}))["apps"]),
        "a new process is listed at once"
    );
    let mut narrow = desk::start_with(&["--limit", "maxResponseBytes=500"]);
    assert_eq!(
        narrow.refused("window.list", json!({ "session": SESSION })),
        "response_too_large"
    );
    let permissions = client.ok("permissions.check", json!({ "prompt": false }));
    assert_eq!(permissions["accessibility"], true);
    assert_eq!(permissions["screenRecordingProbe"], "capture_succeeded");
}
