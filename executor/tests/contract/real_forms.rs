//! The executor as a process on a real X11 desktop, with a form in front of it.

use std::process::{Child, Stdio};

use maka_desktop::{Desktop, DesktopOptions};
use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

const EXECUTOR: &str = env!("CARGO_BIN_EXE_maka-cu");
/// Characters that would take a minute.
const HOPELESS: usize = 20_000;
/// Characters that take some seconds, which might be in time.
const LONG: usize = 2_000;

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Field reports C1 and D1: a point of GTK 4 takes permission, or the second pointer where the operator gave one; and what a
/// session leaves down on that goes up with the session.
#[test]
fn a_point_of_gtk4_takes_the_second_pointer_where_there_is_one() {
    let (desktop, _form) = start("gtk4");
    let mut client = Client::start_on(desktop.command(EXECUTOR));
    desk::begin(&mut client, SESSION);
    let result = at_a_point(&mut client, "Push", "left_click");
    assert_eq!(result["outcome"], "refused");
    let needed = &result["error"]["detail"]["wouldRequirePath"];
    assert_eq!(needed, "cg_event_global", "{result}");
    client.hang_up();
    assert_eq!(client.exit_status().code(), Some(0));

    let command = desktop.command(EXECUTOR);
    let mut client = Client::start_on_with(command, &["--second-pointer"]);
    desk::begin(&mut client, SESSION);
    let result = at_a_point(&mut client, "Push", "left_click");
    assert_eq!(
        desk::declared(&result)[..3],
        ["ok", "cg_event_pid", "confirmed"],
        "{result}"
    );
    shows(&mut client, "click button");
    let result = at_a_point(&mut client, "Pad", "mouse_down");
    assert_eq!(desk::declared(&result)[..2], ["ok", "cg_event_pid"]);
    shows(&mut client, "pad press 1");
    client.ok("session.end", json!({ "session": SESSION }));
    let other = "s-1b";
    desk::begin(&mut client, other);
    shows_in(&mut client, other, "pad release 1");
    desktop.stop();
}

/// Does that in the middle of the control, once nobody has just used the display, as a new one is thought to have been.
fn at_a_point(client: &mut Client, name: &str, kind: &str) -> Value {
    let mut result = Value::Null;
    client.wait_until("the point is taken or refused for good", |client| {
        let frame = form_of(client, "gtk4");
        let at = desk::middle(&frame, name);
        let params = desk::point_params(&frame, at, json!({ "kind": kind }));
        result = client.call("dispatch.point", params);
        // The form is not quite settled when it is first there.
        let code = result["error"]["code"].as_str().unwrap_or_default();
        !["physical_input_active", "window_changed"].contains(&code)
    });
    result
}

/// Field report E4: a text that cannot be typed in time is not begun. One that is given up while it is typed is told as not
/// known; the start of it is there once and in order, and nothing follows, neither the rest nor the whole again.
#[test]
fn a_text_that_takes_too_long_is_not_begun_or_told_as_unknown() {
    let (desktop, form) = start("qt6");
    let app = format!("pid:{}", form.0.id());
    let mut client = Client::start_on(desktop.command(EXECUTOR));
    desk::begin(&mut client, SESSION);
    let frame = form_of(&mut client, "qt6");
    client.ok("dispatch.element", desk::write_params(&frame, "Entry", ""));

    let params = typing(&mut client, HOPELESS);
    let mut result = Value::Null;
    client.wait_until("nobody has just used the display", |client| {
        result = client.call("dispatch.key", params.clone());
        result["error"]["code"] != "physical_input_active"
    });
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
    assert_eq!(typed_so_far(&desktop, &app), "");

    let params = typing(&mut client, LONG);
    let text = params["action"]["text"].as_str().unwrap().to_owned();
    let id = client.send("dispatch.key", params);
    client.wait_until("some of it is typed", |client| {
        client.has_answer(id) || !typed_so_far(&desktop, &app).is_empty()
    });
    client.cancel(id);
    let result = client.wait(id)["result"].clone();
    // What was sent is read by the program in its own time.
    let mut last = String::new();
    client.wait_until("the program has taken it in", |_| {
        let before = std::mem::replace(&mut last, typed_so_far(&desktop, &app));
        !last.is_empty() && last == before
    });
    assert!(text.starts_with(&last), "in order, and once");
    assert!(last.len() < text.len(), "not all of it");
    assert_eq!(
        desk::declared(&result)[..2],
        ["unknown", "cg_event_pid"],
        "{result}"
    );
    assert_eq!(result["error"]["code"], "outcome_unknown");
    desktop.stop();
}

/// Params of typing so many characters into the form's entry. No two places of the text look alike.
fn typing(client: &mut Client, characters: usize) -> Value {
    let text: String = (0..characters / 5)
        .map(|number| format!("{number:04} "))
        .collect();
    let typing = json!({ "kind": "type", "text": text });
    let mut params = desk::key_params(&form_of(client, "qt6"), "Entry", typing);
    params["focusPolicy"] = json!("acquire");
    params
}

/// A desktop with a form on it.
fn start(toolkit: &str) -> (Desktop, Program) {
    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
    let form = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/forms");
    let form = desktop
        .command("/usr/bin/python3")
        .args(["-B", &format!("{form}/{toolkit}.py")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    (desktop, Program(form.unwrap()))
}

/// Waits until the form shows that this happened to it.
fn shows(client: &mut Client, event: &str) {
    shows_in(client, SESSION, event);
}

fn shows_in(client: &mut Client, session: &str, event: &str) {
    client.wait_until(event, |client| {
        let frame = form_in(client, session, "gtk4");
        let mut titles = frame["elements"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["title"].as_str());
        titles.any(|title| title.starts_with("log ") && title.ends_with(event))
    });
}

/// The form with its picture, once it is there with all that it has.
fn form_of(client: &mut Client, toolkit: &str) -> Value {
    form_in(client, SESSION, toolkit)
}

fn form_in(client: &mut Client, session: &str, toolkit: &str) -> Value {
    let title = format!("Form {toolkit}");
    let mut frame = Value::Null;
    client.wait_until("the form", |client| {
        let windows = client.ok("window.list", json!({ "session": session }));
        let windows = windows["windows"].as_array().unwrap();
        let Some(form) = windows.iter().find(|window| window["title"] == title) else {
            return false;
        };
        let target = json!({ "kind": "window", "pid": form["pid"], "windowId": form["windowId"] });
        let look = json!({ "session": session, "target": target, "includeImage": true });
        frame = client.call("observe", look)["snapshot"].clone();
        let elements = frame["elements"].as_array();
        elements.is_some_and(|elements| elements.iter().any(|one| one["title"] == "Entry"))
    });
    frame
}

/// What the entry holds, as another executor sees it: the one under test is busy.
fn typed_so_far(desktop: &Desktop, app: &str) -> String {
    let seen = desktop
        .command(EXECUTOR)
        .args(["snapshot", "--json", app])
        .output()
        .unwrap();
    let frame: Value = serde_json::from_slice(&seen.stdout).unwrap_or_default();
    let elements = frame["elements"].as_array().cloned().unwrap_or_default();
    let entry = elements.into_iter().find(|one| one["title"] == "Entry");
    entry.map_or_else(String::new, |entry| {
        entry["value"].as_str().unwrap_or_default().to_owned()
    })
}
