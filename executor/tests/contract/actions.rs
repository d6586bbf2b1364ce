//! What actions do and what is said about them (spec §6.5, §12.5 rows 53 and 62).

use serde_json::json;

use crate::desk::{self, SESSION};

const FORM: &str = "org.contract.Form";

/// Spec §12.5 row 53: a written value is judged by what reads back, whatever the application answered.
#[test]
fn a_value_write_is_judged_by_what_reads_back() {
    let rows = [
        (
            "Entry",
            "new",
            ["ok", "ax_attribute", "confirmed", "value_readback", ""],
            true,
        ),
        (
            "Entry",
            "old",
            ["ok", "ax_attribute", "confirmed", "value_readback", ""],
            false,
        ),
        (
            "Entry",
            "",
            ["ok", "ax_attribute", "confirmed", "value_readback", ""],
            true,
        ),
        (
            "Clamped",
            "much too long",
            ["ok", "ax_attribute", "unverifiable", "value_readback", ""],
            true,
        ),
        (
            "Stubborn",
            "new",
            ["ok", "ax_attribute", "suspected_noop", "value_readback", ""],
            false,
        ),
        (
            "Password",
            "secret",
            ["ok", "ax_attribute", "unverifiable", "value_readback", ""],
            false,
        ),
        (
            "Declining",
            "new",
            [
                "failed",
                "ax_attribute",
                "unverifiable",
                "none",
                "dispatch_refused",
            ],
            false,
        ),
        (
            "Silent",
            "new",
            [
                "unknown",
                "ax_attribute",
                "unverifiable",
                "none",
                "outcome_unknown",
            ],
            false,
        ),
        (
            "Ready",
            "new",
            [
                "refused",
                "none",
                "unverifiable",
                "none",
                "element_not_actionable",
            ],
            false,
        ),
    ];
    for (name, value, expected, changed) in rows {
        let mut client = desk::start();
        let snapshot = desk::observe(&mut client, FORM);
        let result = client.call(
            "dispatch.element",
            desk::write_params(&snapshot, name, value),
        );
        assert_eq!(desk::declared(&result), expected, "{name} := {value:?}");
        assert_eq!(
            result["verification"]["observedChange"], changed,
            "{name} := {value:?}"
        );
        assert_eq!(result["tier"], "ax");
    }
}

#[test]
fn the_frame_after_a_write_shows_the_value_and_never_a_secret() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let result = client.ok(
        "dispatch.element",
        desk::write_params(&snapshot, "Entry", "grüße 👋"),
    );
    let fresh = &result["snapshot"];
    assert_eq!(desk::find(fresh, "Entry")["value"], "grüße 👋");
    assert_eq!(result["settle"]["reason"], "not_requested");
    let result = client.ok(
        "dispatch.element",
        desk::write_params(fresh, "Password", "hunter2-canary"),
    );
    assert!(
        !result.to_string().contains("hunter2-canary"),
        "a secret is not read back"
    );
    client.terminate();
    client.exit_status();
    assert!(!client.stderr().contains("canary"), "nor logged");
}

/// Spec §12.5 row 53: a click is confirmed by a changed window only, and only when somebody waited and looked.
#[test]
fn a_click_is_judged_by_the_window_after_it_settled() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let result = client.ok(
        "dispatch.element",
        desk::click_params(&snapshot, "Set status"),
    );
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "confirmed", "tree_delta", ""]
    );
    assert_eq!(result["verification"]["observedChange"], true);
    assert_eq!(result["settle"]["reason"], "quiesced");
    desk::find(&result["snapshot"], "Pressed");

    let result = client.ok(
        "dispatch.element",
        desk::click_params(&result["snapshot"], "Do nothing"),
    );
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "unverifiable", "tree_delta", ""]
    );

    let mut params = desk::click_params(&result["snapshot"], "Set status");
    params.as_object_mut().unwrap().remove("observeAfter");
    let result = client.ok("dispatch.element", params);
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "unverifiable", "action_result", ""]
    );
    assert!(result.get("snapshot").is_none());

    let snapshot = desk::observe(&mut client, FORM);
    let mut params = desk::click_params(&snapshot, "Set status");
    params["observeAfter"]["settle"] = json!("none");
    let result = client.ok("dispatch.element", params);
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "unverifiable", "action_result", ""]
    );
    assert_eq!(
        result["settle"],
        json!({ "waitedMs": 0, "quiesced": false, "reason": "not_requested" })
    );
    assert!(result["snapshot"].is_object());
}

#[test]
fn what_somebody_else_changed_earlier_confirms_nothing() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Set status");
    let result = client.ok(
        "dispatch.element",
        desk::click_params(&snapshot, "Do nothing"),
    );
    assert_eq!(result["effect"], "unverifiable", "{result}");
}

#[test]
fn settling_ends_when_two_looks_agree() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let result = client.ok(
        "dispatch.element",
        desk::click_params(&snapshot, "Count up"),
    );
    let settle = &result["settle"];
    assert_eq!(
        (&settle["quiesced"], &settle["reason"]),
        (&json!(true), &json!("quiesced"))
    );
    assert!(
        settle["waitedMs"].as_u64().unwrap() >= 50,
        "two looks lie one poll apart: {settle}"
    );
}

#[test]
fn a_click_without_rest_ends_at_the_ceiling() {
    let mut client = desk::start_with(&["--limit", "settleCeilingMs=300"]);
    let snapshot = desk::observe(&mut client, "org.contract.Restless");
    let mut params = desk::click_params(&snapshot, "Press");
    params["strictness"] = json!("element");
    let result = client.ok("dispatch.element", params);
    let settle = &result["settle"];
    assert_eq!(
        (&settle["reason"], &settle["quiesced"]),
        (&json!("ceiling"), &json!(false)),
        "{settle}"
    );
    assert!(
        settle["waitedMs"].as_u64().unwrap() > 100,
        "the measured time: {settle}"
    );
}

/// Spec §12.5 row 62.
#[test]
fn a_window_that_is_too_slow_is_looked_at_exactly_once() {
    let mut client = desk::start_with(&["--limit", "settleCeilingMs=300"]);
    let snapshot = desk::observe(&mut client, "org.contract.Slow");
    let result = client.ok(
        "dispatch.element",
        desk::click_params(&snapshot, "Slow button"),
    );
    let settle = &result["settle"];
    assert_eq!(settle["reason"], "window_too_slow", "{settle}");
    assert!(settle["waitedMs"].as_u64().unwrap() >= 400, "{settle}");
}

#[test]
fn a_click_that_closes_the_window_is_confirmed_without_a_frame() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    let result = client.ok("dispatch.element", desk::click_params(&snapshot, "Close"));
    assert_eq!(
        desk::declared(&result),
        ["ok", "ax_action", "confirmed", "tree_delta", ""]
    );
    assert_eq!(result["postObservationError"]["code"], "window_gone");
    assert!(result.get("snapshot").is_none(), "absent is absent");
}

#[test]
fn buttons_need_what_the_element_advertises() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    for button in ["right", "middle"] {
        let mut params = desk::click_params(&snapshot, "Set status");
        params["action"]["button"] = json!(button);
        let result = client.call("dispatch.element", params);
        assert_eq!(
            desk::declared(&result)[4],
            "element_not_actionable",
            "{button}"
        );
    }
}

#[test]
fn a_repeated_click_is_performed_that_often() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Toggle");
    let box_of = |snapshot: &serde_json::Value| desk::find(snapshot, "Box")["selected"].clone();
    assert_eq!(box_of(&snapshot), false);
    let mut params = desk::click_params(&snapshot, "Box");
    params["action"]["count"] = json!(3);
    let result = client.ok("dispatch.element", params);
    assert_eq!(box_of(&result["snapshot"]), true, "three presses");
    let mut params = desk::click_params(&result["snapshot"], "Box");
    params["action"]["count"] = json!(2);
    let result = client.ok("dispatch.element", params);
    assert_eq!(
        result["effect"], "unverifiable",
        "two presses leave it as it was"
    );
}

#[test]
fn menu_items_are_pressed_like_controls_and_disabled_ones_are_refused() {
    let mut client = desk::start();
    let mut params = desk::app_params("org.contract.Menus");
    params["menu"] = json!({ "scope": "all" });
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    let menu = &snapshot["menu"]["elements"];
    let press = |name| {
        let element = desk::find_in(menu, name);
        let mut params =
            desk::dispatch_params(SESSION, &snapshot, element, json!({ "kind": "click" }));
        params["observeAfter"] = json!({ "includeImage": false, "settle": "quiesce" });
        params
    };
    let result = client.call("dispatch.element", press("Print"));
    assert_eq!(desk::declared(&result)[4], "element_disabled");
    let result = client.ok("dispatch.element", press("Save"));
    assert_eq!(result["effect"], "confirmed");
    desk::find(&result["snapshot"], "Saved");
}

/// Spec §3.12 and §8.4: a cancel after the action was performed ends the waiting and not the truth. A host kills an executor
/// that answers a cancel later than after two seconds; this window would have been waited for for a day.
#[test]
fn a_cancel_after_the_action_ends_the_settling_and_tells_the_outcome() {
    let mut client = desk::start_with(&["--limit", "settleCeilingMs=86400000"]);
    let snapshot = desk::observe(&mut client, "org.contract.Restless");
    let place = |client: &mut crate::client::Client| {
        let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
        let windows = windows.as_array().unwrap().clone();
        let mut own = windows
            .iter()
            .filter(|one| one["appId"] == "org.contract.Restless");
        own.next().unwrap()["bounds"]["x"].clone()
    };
    let before = place(&mut client);
    let id = client.send(
        "dispatch.element",
        desk::click_params(&snapshot, "Step aside"),
    );
    client.wait_until("the press moves the window", |client| {
        place(client) != before
    });
    assert!(!client.has_answer(id), "it is being waited for rest");
    client.cancel(id);
    let result = client.wait(id)["result"].clone();
    assert_eq!(result["outcome"], "ok", "{result}");
    assert_eq!(result["path"], "ax_action");
    assert_eq!(result["settle"]["quiesced"], false);
    assert_eq!(result["postObservationError"]["code"], "aborted");
    assert!(result.get("snapshot").is_none());
    let again = client.call("dispatch.element", desk::click_params(&snapshot, "Press"));
    assert_eq!(desk::declared(&again)[4], "snapshot_spent");
}

#[test]
fn a_cancel_before_the_commit_aborts_and_one_after_it_is_ignored() {
    let mut client = desk::start();
    let slow = desk::observe(&mut client, "org.contract.Slow");
    // The first reads the slow window, the second waits behind it in the same lane.
    let first = client.send("dispatch.element", desk::click_params(&slow, "Slow button"));
    let second = client.send("dispatch.element", desk::click_params(&slow, "Slow button"));
    client.cancel(second);
    let aborted = client.wait(second)["result"].clone();
    assert_eq!(
        desk::declared(&aborted),
        ["refused", "none", "unverifiable", "none", "aborted"]
    );
    assert!(
        !client.has_answer(first),
        "a queued request is answered at once"
    );
    let done = client.wait(first)["result"].clone();
    assert_eq!(done["outcome"], "ok");
    client.cancel(first);

    // A read may be cancelled at any point and leaves no frame behind.
    let before = desk::observe(&mut client, "org.contract.Slow");
    let read = client.send("observe", desk::app_params("org.contract.Slow"));
    client.cancel(read);
    assert_eq!(client.wait(read)["result"]["error"]["code"], "aborted");
    client.ok(
        "dispatch.element",
        desk::click_params(&before, "Slow button"),
    );
}

/// Spec §1.6: work on one window holds up no other window, no list, and nothing of another session.
#[test]
fn a_slow_window_holds_up_nothing_else() {
    let mut client = desk::start();
    desk::observe(&mut client, "org.contract.Slow");
    let windows = client.ok("window.list", json!({ "session": SESSION }));
    let slow = windows["windows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|window| window["appId"] == "org.contract.Slow")
        .unwrap();
    let target = json!({ "kind": "window", "pid": slow["pid"], "windowId": slow["windowId"] });
    let params = json!({ "session": SESSION, "target": target, "includeImage": false });
    // Each takes most of a second, one after another.
    let waiting: Vec<i64> = (0..10)
        .map(|_| client.send("observe", params.clone()))
        .collect();
    desk::observe(&mut client, "org.contract.Form");
    client.ok("window.list", json!({ "session": SESSION }));
    client.ok("permissions.check", json!({}));
    let last = *waiting.last().unwrap();
    assert!(!client.has_answer(last), "the slow lane is still at work");
    for id in &waiting {
        client.cancel(*id);
    }
    for id in waiting {
        client.wait(id);
    }
}
