//! Element actions beyond clicks and writes: selections, secondary actions, scrolling, whole windows (spec §3.6, §12.5 rows 52,
//! 53 and 63).

use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

fn root(frame: &Value) -> &Value {
    &frame["elements"][0]
}

fn move_to(x: f64, y: f64) -> Value {
    json!({ "kind": "move_window", "position": { "x": x, "y": y } })
}

fn resize_to(width: f64, height: f64) -> Value {
    json!({ "kind": "resize_window", "size": { "width": width, "height": height } })
}

fn window_action(client: &mut Client, title: &str, action: Value) -> Value {
    let frame = desk::observe_window(client, title);
    desk::act_on(client, &frame, root(&frame), action)
}

/// Spec §12.5 row 63: what reads back decides; what was clamped, declined or ignored is told apart.
#[test]
fn a_window_is_judged_by_where_it_comes_to_lie() {
    let rows = [
        (
            "Takes its time",
            move_to(-50.0, 300.5),
            ["ok", "ax_attribute", "confirmed", "value_readback", ""],
        ),
        (
            "Takes its time",
            resize_to(400.0, 300.0),
            ["ok", "ax_attribute", "confirmed", "value_readback", ""],
        ),
        (
            "Stays on its display",
            move_to(5000.0, 40.0),
            ["ok", "ax_attribute", "unverifiable", "value_readback", ""],
        ),
        (
            "Stays on its display",
            resize_to(10.0, 0.0),
            ["ok", "ax_attribute", "unverifiable", "value_readback", ""],
        ),
        (
            "Says yes and stays",
            move_to(0.0, 0.0),
            ["ok", "ax_attribute", "suspected_noop", "value_readback", ""],
        ),
        (
            "Moves without a word",
            move_to(0.0, 0.0),
            [
                "unknown",
                "ax_attribute",
                "unverifiable",
                "none",
                "outcome_unknown",
            ],
        ),
        (
            "Fixed",
            move_to(0.0, 0.0),
            [
                "refused",
                "none",
                "unverifiable",
                "none",
                "element_not_actionable",
            ],
        ),
        (
            "Fixed",
            json!({ "kind": "minimize_window" }),
            [
                "refused",
                "none",
                "unverifiable",
                "none",
                "element_not_actionable",
            ],
        ),
    ];
    let mut client = desk::start_on("windows");
    for (title, action, expected) in rows {
        let result = window_action(&mut client, title, action);
        assert_eq!(desk::declared(&result), expected, "{title}: {result}");
    }
    // A look right after a move sees the new origin.
    let frame = desk::observe_window(&mut client, "Takes its time");
    let bounds = &frame["target"]["bounds"];
    assert_eq!((&bounds["x"], &bounds["width"]), (&json!(-50), &json!(400)));
    assert_eq!(frame["elements"][0]["frame"]["width"], 400);
}

/// Spec §3.6.3: after a minimise the missing frame is the truthful answer next to a confirmed one.
#[test]
fn a_minimised_window_has_no_frame() {
    let mut client = desk::start_on("windows");
    let minimize = json!({ "kind": "minimize_window" });
    let result = window_action(&mut client, "Takes its time", minimize);
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_attribute", "confirmed", "value_readback", ""]
    );
    assert!(result["snapshot"].is_null());
    assert_eq!(result["postObservationError"]["code"], "window_gone");
}

#[test]
fn window_actions_belong_to_the_root() {
    let mut client = desk::start_on("windows");
    let frame = desk::observe_window(&mut client, "Takes no input");
    let result = desk::act(&mut client, &frame, "Only by action", move_to(0.0, 0.0));
    assert_eq!(desk::declared(&result)[4], "element_not_actionable");
    let mut negative = desk::dispatch_params(SESSION, &frame, root(&frame), resize_to(-1.0, 10.0));
    let (code, field) = client.rpc_error("dispatch.element", negative.take());
    assert_eq!(code, -32602, "{field:?}");
}

#[test]
fn a_selection_is_read_back() {
    let mut client = desk::start_on("text");
    let frame = desk::observe(&mut client, "org.example.Text");
    let select = |text: &str| json!({ "kind": "select_text", "text": text });
    let result = desk::act(&mut client, &frame, "من اليمين", select("שלום"));
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_attribute", "confirmed", "selection_readback", ""]
    );
    let frame = result["snapshot"].clone();
    assert_eq!(
        frame["selectedText"],
        json!({ "text": "שלום", "truncated": false })
    );
    let result = desk::act(&mut client, &frame, "Emoji", select("absent"));
    assert_eq!(desk::declared(&result)[4], "element_not_actionable");

    let mut client = desk::start_on("faults");
    let frame = desk::observe_window(&mut client, "Faults");
    let result = desk::act(&mut client, &frame, "Ignores writes", select("old"));
    assert_eq!(
        desk::declared(&result),
        [
            "ok",
            "ax_attribute",
            "unverifiable",
            "selection_readback",
            ""
        ]
    );
}

#[test]
fn secondary_actions_are_those_that_are_advertised() {
    let mut client = desk::start_on("lists");
    let frame = desk::observe_window(&mut client, "Lists");
    let secondary = |action: &str| json!({ "kind": "secondary_action", "action": action });
    let result = desk::act(&mut client, &frame, "Drafts", secondary("open"));
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "unverifiable", "action_result", ""]
    );
    let frame = result["snapshot"].clone();
    desk::find(&frame, "Opened a mailbox");
    for (name, action) in [
        ("Drafts", "raise"),
        ("Mailboxes", "scroll_down"),
        ("Messages", "increment"),
    ] {
        let result = desk::act(&mut client, &frame, name, secondary(action));
        assert_eq!(
            desk::declared(&result)[4],
            "element_not_actionable",
            "{name} {action}"
        );
    }
    let result = desk::act(
        &mut client,
        &frame,
        "Row 400",
        secondary("scroll_to_visible"),
    );
    let frame = result["snapshot"].clone();
    let row = &desk::find(&frame, "Row 400")["frame"];
    let list = &desk::find(&frame, "Messages")["frame"];
    let bottom = |frame: &Value| frame["y"].as_f64().unwrap() + frame["height"].as_f64().unwrap();
    assert!(bottom(row) <= bottom(list));
    let result = desk::act_on(&mut client, &frame, root(&frame), secondary("raise"));
    assert_eq!(desk::declared(&result)[0], "ok");
}

/// Spec §3.6 and §12.5 row 52: rows that are used again are what `strictness: window` is for.
#[test]
fn a_recycled_row_is_caught_by_its_digest_or_its_window() {
    let mut client = desk::start_on("lists");
    let frame = desk::observe_window(&mut client, "Lists");
    let archive = desk::find(&frame, "Archive");
    let children: Vec<&Value> = frame["elements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|element| element["parentToken"] == archive["token"])
        .collect();
    assert_eq!(children.len(), 11);
    let scroll = json!({ "kind": "scroll", "direction": "down", "pages": 1.0 });
    let mut elsewhere = desk::dispatch_params("elsewhere", &frame, archive, scroll.clone());
    desk::begin(&mut client, "elsewhere");
    let other = desk::observe_in(&mut client, "elsewhere", "org.example.Lists");
    elsewhere["snapshotId"] = other["snapshotId"].clone();
    elsewhere["elementToken"] = desk::find(&other, "Archive")["token"].clone();
    elsewhere["observeAfter"] = json!({ "includeImage": false, "settle": "quiesce" });
    let result = client.ok("dispatch.element", elsewhere);
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "confirmed", "tree_delta", ""]
    );
    // The row answers, and it is another row.
    let press = json!({ "kind": "click" });
    let result = desk::act_on(&mut client, &frame, children[2], press.clone());
    assert_eq!(desk::declared(&result)[4], "element_changed");
    assert_eq!(result["error"]["detail"]["changed"], json!(["title"]));
    // Another list of the same window did not change, so it takes the whole window to notice.
    let mut strict = desk::dispatch_params(SESSION, &frame, desk::find(&frame, "Inbox"), press);
    strict["strictness"] = json!("window");
    let result = client.call("dispatch.element", strict.clone());
    assert_eq!(desk::declared(&result)[4], "window_changed");
    strict["strictness"] = json!("element");
    assert_eq!(
        desk::declared(&client.call("dispatch.element", strict))[0],
        "ok"
    );
}

/// A6: controls that decline, hang, vanish or keep quiet give one typed answer each, and the desktop goes on.
#[test]
fn every_fault_has_its_answer() {
    let mut client = desk::start_on("faults");
    let rows = [
        (
            "Ignores",
            ["ok", "ax_action", "unverifiable", "action_result", ""],
        ),
        (
            "Refuses",
            [
                "failed",
                "ax_action",
                "unverifiable",
                "none",
                "dispatch_refused",
            ],
        ),
        (
            "Says nothing",
            [
                "unknown",
                "ax_action",
                "unverifiable",
                "none",
                "outcome_unknown",
            ],
        ),
        (
            "Vanishes",
            [
                "refused",
                "none",
                "unverifiable",
                "none",
                "element_not_actionable",
            ],
        ),
        (
            "Hangs",
            [
                "unknown",
                "ax_action",
                "unverifiable",
                "none",
                "outcome_unknown",
            ],
        ),
        (
            "Works",
            ["ok", "ax_action", "unverifiable", "action_result", ""],
        ),
    ];
    for (name, expected) in rows {
        let frame = desk::observe_window(&mut client, "Faults");
        let result = desk::act(&mut client, &frame, name, json!({ "kind": "click" }));
        assert_eq!(desk::declared(&result), expected, "{name}");
    }
}

#[test]
fn a_sheet_is_an_answer_of_its_own() {
    let mut client = desk::start_on("sheet");
    let frame = desk::observe_window(&mut client, "Letter");
    desk::act(&mut client, &frame, "Close", json!({ "kind": "click" }));
    let frame = desk::observe_window(&mut client, "Letter");
    let mut write = desk::write_params(&frame, "Text", "x");
    let result = client.call("dispatch.element", write.take());
    assert_eq!(
        desk::declared(&result),
        [
            "failed",
            "ax_attribute",
            "unverifiable",
            "none",
            "dispatch_refused"
        ]
    );
    let sheet = desk::observe_window(&mut client, "Close");
    assert_eq!(root(&sheet)["role"], "AXSheet");
    let cancel = json!({ "kind": "secondary_action", "action": "cancel" });
    let result = desk::act_on(&mut client, &sheet, root(&sheet), cancel);
    assert_eq!(result["postObservationError"]["code"], "window_gone");
    let frame = desk::observe_window(&mut client, "Letter");
    client.ok("dispatch.element", desk::write_params(&frame, "Text", "x"));
}

/// A control that takes a value back while the frame after it is taken: the answer does not contradict its own frame.
#[test]
fn a_value_that_is_taken_back_is_not_confirmed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let scenario = r#"
[[apps]]
app_id = "org.contract.Fickle"
name = "Fickle"
running = true

[[apps.windows]]
id = "main"
title = "Fickle"
bounds = [0, 0, 400, 300]

[[apps.windows.controls]]
kind = "label"
title = "Takes its time"
slow_ms = 500
bounds = [10, 90, 200, 24]

[[apps.windows.controls]]
kind = "text_field"
id = "field"
label = "Fickle field"
value = "old"
bounds = [10, 50, 200, 30]
on_change = [{ effect = "set_text", target = "field", text = "old", delay_ms = 300 }]
"#;
    std::fs::write(file.path(), scenario).unwrap();
    let path = file.path().to_str().unwrap();
    let mut client = crate::client::Client::start(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    let snapshot = desk::observe(&mut client, "org.contract.Fickle");
    let mut params = desk::write_params(&snapshot, "Fickle field", "new");
    params["observeAfter"] = json!({ "includeImage": false, "settle": "none" });
    let result = client.ok("dispatch.element", params);
    let field = desk::find(&result["snapshot"], "Fickle field");
    assert_eq!(
        field["value"], "old",
        "taken back before the frame was whole"
    );
    assert_eq!(result["effect"], "unverifiable", "{result}");
    assert_eq!(result["verification"]["observedChange"], true);
}
