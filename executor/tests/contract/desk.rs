//! Shorthand over the client: sessions, observations, and finding elements.

use serde_json::{Value, json};

use crate::client::Client;

/// The session most tests use.
pub(crate) const SESSION: &str = "s-1";

/// Starts the contract desktop, shakes hands and begins [`SESSION`].
pub(crate) fn start() -> Client {
    start_with(&[])
}

/// The same with further arguments, such as `--limit`.
pub(crate) fn start_with(arguments: &[&str]) -> Client {
    let desktop = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract/desktop.toml");
    let mut client =
        Client::start(&[&["--back-end", "virtual", "--desktop", desktop], arguments].concat());
    begin(&mut client, SESSION);
    client
}

/// Begins a session.
pub(crate) fn begin(client: &mut Client, session: &str) {
    client.ok(
        "session.begin",
        json!({ "session": session, "captureScope": "window" }),
    );
}

/// Params of an observation of the application's front window, without image.
pub(crate) fn app_params(app: &str) -> Value {
    json!({ "session": SESSION, "target": { "kind": "app", "app": app }, "includeImage": false })
}

/// Observes the application's front window, without image.
pub(crate) fn observe(client: &mut Client, app: &str) -> Value {
    observe_in(client, SESSION, app)
}

/// The same in another session.
pub(crate) fn observe_in(client: &mut Client, session: &str, app: &str) -> Value {
    let mut params = app_params(app);
    params["session"] = session.into();
    client.ok("observe", params)["snapshot"].clone()
}

/// The element that carries this title or label.
pub(crate) fn find<'a>(snapshot: &'a Value, name: &str) -> &'a Value {
    find_in(&snapshot["elements"], name)
}

/// The same in one of the element arrays.
pub(crate) fn find_in<'a>(elements: &'a Value, name: &str) -> &'a Value {
    let named = |element: &&Value| element["title"] == name || element["label"] == name;
    elements
        .as_array()
        .unwrap()
        .iter()
        .find(named)
        .unwrap_or_else(|| panic!("no element is named {name}"))
}

/// Params of `dispatch.element`.
pub(crate) fn dispatch_params(
    session: &str,
    snapshot: &Value,
    element: &Value,
    action: Value,
) -> Value {
    json!({
        "session": session,
        "snapshotId": snapshot["snapshotId"],
        "toolCallId": "call-1",
        "elementToken": element["token"],
        "expectElementDigest": element["digest"],
        "occlusionPolicy": "none",
        "action": action,
    })
}

/// Params of a left click on the named element, with settling and a fresh frame.
pub(crate) fn click_params(snapshot: &Value, name: &str) -> Value {
    let mut params = dispatch_params(
        SESSION,
        snapshot,
        find(snapshot, name),
        json!({ "kind": "click" }),
    );
    params["observeAfter"] = json!({ "includeImage": false, "settle": "quiesce" });
    params
}

/// Params of a value write on the named element, with a fresh frame and no settling.
pub(crate) fn write_params(snapshot: &Value, name: &str, value: &str) -> Value {
    let action = json!({ "kind": "set_value", "value": value });
    let mut params = dispatch_params(SESSION, snapshot, find(snapshot, name), action);
    params["observeAfter"] = json!({ "includeImage": false, "settle": "none" });
    params
}

/// Changes the desktop behind the back of [`SESSION`]: presses a button of the form in a session of its own.
pub(crate) fn press_elsewhere(client: &mut Client, app: &str, name: &str) {
    begin(client, "elsewhere");
    let snapshot = observe_in(client, "elsewhere", app);
    let params = dispatch_params(
        "elsewhere",
        &snapshot,
        find(&snapshot, name),
        json!({ "kind": "click" }),
    );
    client.ok("dispatch.element", params);
    client.ok("session.end", json!({ "session": "elsewhere" }));
}

/// The declared fields of a dispatch answer: outcome, path, effect, method, error code.
pub(crate) fn declared(result: &Value) -> [&str; 5] {
    assert_eq!(result["toolCallId"], "call-1");
    let word = |value: &'_ Value| value.as_str().map(|_| ()).map_or("", |()| "word");
    assert_eq!(word(&result["tier"]), "word");
    [
        result["outcome"].as_str().unwrap(),
        result["path"].as_str().unwrap(),
        result["effect"].as_str().unwrap(),
        result["verification"]["method"].as_str().unwrap(),
        result["error"]["code"].as_str().unwrap_or(""),
    ]
}
