//! `dispatch.key`: focus and keys (spec §3.7, §12.5 rows 53 and 59).

use serde_json::{Value, json};

use crate::client::Client;
use crate::desk;

const FORM: &str = "New contact";

fn typed(text: &str) -> Value {
    json!({ "kind": "type", "text": text })
}

fn chord(key: &str, modifiers: &[&str]) -> Value {
    json!({ "kind": "key", "key": key, "modifiers": modifiers })
}

fn send(client: &mut Client, params: Value) -> Value {
    client.call("dispatch.key", params)
}

/// Spec §12.5 rows 53 and 59: text is judged by what reads back, a key by the window, and never as having done nothing.
#[test]
fn text_reads_back_and_a_key_shows_in_the_window() {
    let mut client = desk::start_on("forms");
    let frame = desk::observe_window(&mut client, FORM);
    let result = send(
        &mut client,
        desk::key_params(&frame, "Name", typed("Ada 漢字")),
    );
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "confirmed", "value_readback", ""]
    );
    assert_eq!(result["tier"], "coordinate-background");
    let frame = result["snapshot"].clone();
    assert_eq!(desk::find(&frame, "Name")["value"], "Ada 漢字");
    assert_eq!(
        frame["focusedElementToken"],
        desk::find(&frame, "Name")["token"]
    );

    let all = desk::key_params(&frame, "Name", chord("a", &["command"]));
    let result = send(&mut client, all);
    let frame = result["snapshot"].clone();
    assert_eq!(frame["selectedText"]["text"], "Ada 漢字");
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "unverifiable", "tree_delta", ""],
        "a selection is not part of the digest"
    );
    let result = send(
        &mut client,
        desk::key_params(&frame, "Name", typed("Grace")),
    );
    let frame = result["snapshot"].clone();
    assert_eq!(desk::find(&frame, "Name")["value"], "Grace");
    assert!(frame["selectedText"].is_null());

    let result = send(
        &mut client,
        desk::key_params(&frame, "Name", chord("Return", &[])),
    );
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "confirmed", "tree_delta", ""]
    );
    desk::find(&result["snapshot"], "Saved Grace, South Africa, priority 3");

    let frame = result["snapshot"].clone();
    let mut quietly = desk::key_params(&frame, "Name", chord("F7", &[]));
    quietly["observeAfter"] = json!({ "includeImage": false, "settle": "none" });
    let result = send(&mut client, quietly);
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "unverifiable", "none", ""]
    );
}

/// Spec §12.5 row 59: `require` writes no focus, `acquire` writes it and reads it again.
#[test]
fn a_focus_is_required_or_acquired() {
    let mut client = desk::start_on("faults");
    let frame = desk::observe_window(&mut client, "Faults");
    let mut params = desk::key_params(&frame, "Patient", typed("x"));
    let result = send(&mut client, params.clone());
    assert_eq!(
        desk::declared(&result),
        ["refused", "none", "unverifiable", "none", "focus_changed"]
    );
    params["focusPolicy"] = json!("sometimes");
    let (code, field) = client.rpc_error("dispatch.key", params.clone());
    assert_eq!((code, field.as_deref()), (-32602, Some("focusPolicy")));
    for (name, why) in [
        ("Refuses focus", "a refused write"),
        ("Raises on focus", "a write that would raise the window"),
    ] {
        let mut params = desk::key_params(&frame, name, typed("x"));
        params["focusPolicy"] = json!("acquire");
        let result = send(&mut client, params);
        assert_eq!(desk::declared(&result)[4], "focus_changed", "{why}");
    }
    params["focusPolicy"] = json!("acquire");
    let result = send(&mut client, params);
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "confirmed", "value_readback", ""]
    );
    let frame = result["snapshot"].clone();
    let patient = desk::find(&frame, "Patient");
    assert_eq!(
        (&patient["focused"], &patient["value"]),
        (&json!(true), &json!("x"))
    );

    let mut refusing = desk::key_params(&frame, "Refuses keys", typed("x"));
    refusing["focusPolicy"] = json!("acquire");
    let result = send(&mut client, refusing);
    assert_eq!(
        desk::declared(&result),
        [
            "failed",
            "cg_event_pid",
            "unverifiable",
            "none",
            "dispatch_refused"
        ]
    );
}

/// What is typed into a password field is not read back, and its outcome is not guessed.
#[test]
fn a_password_is_typed_and_not_read_back() {
    let mut client = desk::start_on("secure");
    let frame = desk::observe_window(&mut client, "Sign in");
    let mut params = desk::key_params(&frame, "Password", typed("hunter2-∆"));
    params["focusPolicy"] = json!("acquire");
    let result = send(&mut client, params);
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "unverifiable", "value_readback", ""]
    );
    let field = desk::find(&result["snapshot"], "Password");
    assert!(field["value"].is_null());
    client.hang_up();
    assert_eq!(client.exit_status().code(), Some(0));
    assert!(!client.stderr().contains("hunter2"));
}

/// C2 and spec §12.5 row 54: a window that hears only of system-wide input is not reached without permission.
#[test]
fn a_window_that_takes_global_input_only_needs_permission() {
    let mut client = desk::start_on("windows");
    let frame = desk::observe_window(&mut client, "Takes global input only");
    let result = send(&mut client, desk::key_params(&frame, "Chat", typed("x")));
    assert_eq!(
        desk::declared(&result),
        [
            "refused",
            "none",
            "unverifiable",
            "none",
            "dispatch_refused"
        ]
    );
    assert_eq!(
        result["error"]["detail"]["wouldRequirePath"],
        "cg_event_global"
    );

    let mut client = desk::start_permitted_on("windows");
    let frame = desk::observe_window(&mut client, "Takes global input only");
    let result = send(&mut client, desk::key_params(&frame, "Chat", typed("x")));
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_global", "confirmed", "value_readback", ""]
    );
}

/// Spec §10.5: keys keep out of the way of a person; element actions need neither pointer nor keyboard.
#[test]
fn keys_keep_out_of_the_way_of_a_person() {
    let mut client = desk::start_on("person");
    let frame = desk::observe_window(&mut client, "Desk");
    let result = send(&mut client, desk::key_params(&frame, "Memo", typed("x")));
    assert_eq!(
        desk::declared(&result),
        [
            "refused",
            "none",
            "unverifiable",
            "none",
            "physical_input_active"
        ]
    );
    let click = desk::point_params(&frame, [30.0, 70.0], json!({ "kind": "left_click" }));
    let result = client.call("dispatch.point", click);
    assert_eq!(desk::declared(&result)[4], "physical_input_active");
    let result = client.ok("dispatch.element", desk::write_params(&frame, "Memo", "x"));
    assert_eq!(desk::declared(&result)[2], "confirmed");
}
