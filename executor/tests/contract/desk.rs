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

/// Starts one of the desktops in `examples/desktops`, shakes hands and begins [`SESSION`].
pub(crate) fn start_on(example: &str) -> Client {
    let mut client = Client::start(&["--back-end", "virtual", "--desktop", &path_of(example)]);
    begin(&mut client, SESSION);
    client
}

/// The same with the permission to move the pointer.
pub(crate) fn start_permitted_on(example: &str) -> Client {
    let path = path_of(example);
    let mut client = Client::start_permitted(&["--back-end", "virtual", "--desktop", &path]);
    begin(&mut client, SESSION);
    client
}

fn path_of(example: &str) -> String {
    format!(
        "{}/examples/desktops/{example}.toml",
        env!("CARGO_MANIFEST_DIR")
    )
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

/// Observes the window with this title, with its picture.
pub(crate) fn observe_window(client: &mut Client, title: &str) -> Value {
    let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
    let named = |window: &&Value| window["title"] == title;
    let windows = windows.as_array().unwrap();
    let found = windows.iter().find(named);
    let window = found.unwrap_or_else(|| panic!("no window is named {title}"));
    let target = json!({ "kind": "window", "pid": window["pid"], "windowId": window["windowId"] });
    let params = json!({ "session": SESSION, "target": target, "includeImage": true });
    client.ok("observe", params)["snapshot"].clone()
}

/// Does something to the named element, with a fresh frame and no settling.
pub(crate) fn act(client: &mut Client, snapshot: &Value, name: &str, action: Value) -> Value {
    act_on(client, snapshot, find(snapshot, name), action)
}

/// The same to an element.
pub(crate) fn act_on(
    client: &mut Client,
    snapshot: &Value,
    element: &Value,
    action: Value,
) -> Value {
    let mut params = dispatch_params(SESSION, snapshot, element, action);
    params["observeAfter"] = json!({ "includeImage": true, "settle": "none" });
    client.call("dispatch.element", params)
}

/// Params of `dispatch.key` for the named element, with a fresh frame.
pub(crate) fn key_params(snapshot: &Value, name: &str, action: Value) -> Value {
    let element = find(snapshot, name);
    json!({
        "session": SESSION,
        "snapshotId": snapshot["snapshotId"],
        "toolCallId": "call-1",
        "focusToken": element["token"],
        "expectElementDigest": element["digest"],
        "action": action,
        "observeAfter": { "includeImage": true, "settle": "quiesce" },
    })
}

/// Params of `dispatch.point` at a pixel, with settling and a fresh frame.
pub(crate) fn point_params(snapshot: &Value, point: [f64; 2], action: Value) -> Value {
    json!({
        "session": SESSION,
        "snapshotId": snapshot["snapshotId"],
        "toolCallId": "call-1",
        "expectWindowDigest": snapshot["windowDigest"],
        "point": { "x": point[0], "y": point[1] },
        "space": "image_px",
        "action": action,
        "observeAfter": { "includeImage": true, "settle": "quiesce" },
    })
}

/// The pixel in the middle of the named element.
pub(crate) fn middle(snapshot: &Value, name: &str) -> [f64; 2] {
    let frame = &find(snapshot, name)["frame"];
    let number = |key: &str| frame[key].as_f64().unwrap();
    let scale = snapshot["image"]["scale"].as_f64().unwrap();
    [
        (number("x") + number("width") / 2.0) * scale,
        (number("y") + number("height") / 2.0) * scale,
    ]
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
