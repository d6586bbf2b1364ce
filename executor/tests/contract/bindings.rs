//! Is it still the same element, the same window, the same process (spec §4.4, §12.5 rows 51–52)?

use serde_json::{Value, json};

use crate::client::Client;
use crate::desk;

const FORM: &str = "org.contract.Form";

fn refusal(client: &mut Client, params: Value) -> Value {
    let result = client.call("dispatch.element", params);
    let [outcome, path, effect, method, _] = desk::declared(&result);
    assert_eq!(
        [outcome, path, effect, method],
        ["refused", "none", "unverifiable", "none"],
        "{result}"
    );
    assert_eq!(result["verification"]["observedChange"], false);
    result["error"].clone()
}

#[test]
fn a_removed_element_is_released() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Remove it");
    let error = refusal(&mut client, desk::click_params(&snapshot, "Removable"));
    assert_eq!(error["code"], "element_released");
    let sentence = error["message"].as_str().unwrap();
    assert!(
        !sentence.is_empty() && !sentence.contains("Removable"),
        "a fixed sentence: {sentence}"
    );
}

#[test]
fn a_replaced_process_is_noticed_by_its_start_time() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Replace process");
    let error = refusal(&mut client, desk::click_params(&snapshot, "Set status"));
    assert_eq!(error["code"], "process_replaced");
}

#[test]
fn a_changed_element_names_what_changed() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Rename it");
    let error = refusal(&mut client, desk::click_params(&snapshot, "Named"));
    assert_eq!(error["code"], "element_changed");
    assert_eq!(error["detail"], json!({ "changed": ["label"] }));
}

#[test]
fn a_change_beyond_the_shown_text_still_counts() {
    let mut client = desk::start();
    let mut params = desk::app_params(FORM);
    params["maxTextChars"] = json!(10);
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    let long = desk::find(&snapshot, "Long");
    assert_eq!(
        (&long["value"], &long["truncated"]),
        (&json!("0123456789"), &json!(["value"]))
    );
    desk::begin(&mut client, "elsewhere");
    let other = desk::observe_in(&mut client, "elsewhere", FORM);
    let action = json!({ "kind": "set_value", "value": "0123456789 but another end" });
    client.ok(
        "dispatch.element",
        desk::dispatch_params("elsewhere", &other, desk::find(&other, "Long"), action),
    );
    let error = refusal(&mut client, desk::write_params(&snapshot, "Long", "x"));
    assert_eq!(
        (&error["code"], &error["detail"]["changed"]),
        (&json!("element_changed"), &json!(["value"]))
    );
}

/// Field reports A1 and A3: an element that is not in the quoted frame is refused, never looked for elsewhere.
#[test]
fn tokens_and_digests_belong_to_one_snapshot() {
    let mut client = desk::start();
    let cover = desk::observe(&mut client, "org.contract.Cover");
    let form = desk::observe(&mut client, FORM);
    let mut foreign = desk::click_params(&form, "Set status");
    foreign["elementToken"] = desk::find(&cover, "Own button")["token"].clone();
    assert_eq!(refusal(&mut client, foreign)["code"], "element_unknown");
    let mut mixed = desk::click_params(&form, "Set status");
    mixed["expectElementDigest"] = desk::find(&form, "Close")["digest"].clone();
    assert_eq!(
        refusal(&mut client, mixed)["code"],
        "element_digest_mismatch"
    );
    client.ok("dispatch.element", desk::click_params(&form, "Set status"));
}

#[test]
fn strictness_decides_whether_the_rest_of_the_window_counts() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Set status");
    let mut strict = desk::click_params(&snapshot, "Do nothing");
    strict["strictness"] = json!("window");
    assert_eq!(
        refusal(&mut client, strict.clone())["code"],
        "window_changed"
    );
    strict["strictness"] = json!("element");
    client.ok("dispatch.element", strict);
    // And with nothing changed the strict form passes.
    let snapshot = desk::observe(&mut client, FORM);
    let mut strict = desk::click_params(&snapshot, "Do nothing");
    strict["strictness"] = json!("window");
    client.ok("dispatch.element", strict);
}

#[test]
fn a_moved_window_changes_the_window_and_not_the_element() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Move away");
    let mut params = desk::click_params(&snapshot, "Set status");
    params["strictness"] = json!("window");
    assert_eq!(
        refusal(&mut client, params.clone())["code"],
        "window_changed"
    );
    params["strictness"] = json!("element");
    let result = client.ok("dispatch.element", params);
    assert_eq!(
        result["snapshot"]["target"]["bounds"]["x"], 60,
        "the fresh frame sees the new origin"
    );
}

#[test]
fn a_closed_window_is_gone() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Close");
    assert_eq!(
        refusal(&mut client, desk::click_params(&snapshot, "Set status"))["code"],
        "window_gone"
    );
    let target = json!({ "kind": "window", "pid": snapshot["target"]["pid"], "windowId": snapshot["target"]["windowId"] });
    let mut params = desk::app_params(FORM);
    assert_eq!(
        client.refused("observe", params.clone()),
        "window_gone",
        "the application runs without a window"
    );
    params["target"] = target;
    assert_eq!(client.refused("observe", params), "window_gone");
}

#[test]
fn a_locked_screen_stops_looking_and_acting() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    desk::press_elsewhere(&mut client, FORM, "Lock");
    assert_eq!(
        refusal(&mut client, desk::click_params(&snapshot, "Set status"))["code"],
        "screen_locked"
    );
    assert_eq!(
        client.refused("observe", desk::app_params(FORM)),
        "screen_locked"
    );
    assert_eq!(
        client.refused("screen.capture", json!({ "session": desk::SESSION })),
        "screen_locked"
    );
}

#[test]
fn a_covering_window_counts_as_the_policy_says() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, FORM);
    assert!(!snapshot["obscuringRects"].as_array().unwrap().is_empty());
    let mut params = desk::click_params(&snapshot, "Covered");
    params["occlusionPolicy"] = json!("any");
    assert_eq!(
        refusal(&mut client, params.clone())["code"],
        "window_occluded"
    );
    let mut free = desk::click_params(&snapshot, "Set status");
    free["occlusionPolicy"] = json!("any");
    client.ok("dispatch.element", free);
    // By default only windows of the same application count.
    let snapshot = desk::observe(&mut client, FORM);
    params = desk::click_params(&snapshot, "Covered");
    params.as_object_mut().unwrap().remove("occlusionPolicy");
    client.ok("dispatch.element", params);
}
