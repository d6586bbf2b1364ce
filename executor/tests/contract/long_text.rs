//! A text that takes longer to type than anybody waits, on a real X11 desktop.

use std::process::{Child, Stdio};

use maka_desktop::{Desktop, DesktopOptions};
use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

const TITLE: &str = "Form qt6";
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

/// Field report E4: a text that cannot be typed in time is not begun. One that is given up while it is typed is told as not
/// known; the start of it is there once and in order, and nothing follows, neither the rest nor the whole again.
#[test]
fn a_text_that_takes_too_long_is_not_begun_or_told_as_unknown() {
    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
    let form = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/fixtures/forms/qt6.py"
    );
    let form = desktop
        .command("/usr/bin/python3")
        .args(["-B", form])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let form = Program(form.unwrap());
    let app = format!("pid:{}", form.0.id());
    let mut client = Client::start_on(desktop.command(env!("CARGO_BIN_EXE_maka-cu")));
    desk::begin(&mut client, SESSION);
    let frame = form_of(&mut client);
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
    let mut params = desk::key_params(&form_of(client), "Entry", typing);
    params["focusPolicy"] = json!("acquire");
    params
}

/// The form, once it is there with all that it has.
fn form_of(client: &mut Client) -> Value {
    let mut frame = Value::Null;
    client.wait_until("the form", |client| {
        let windows = client.ok("window.list", json!({ "session": SESSION }));
        let windows = windows["windows"].as_array().unwrap();
        let Some(form) = windows.iter().find(|window| window["title"] == TITLE) else {
            return false;
        };
        let target = json!({ "kind": "window", "pid": form["pid"], "windowId": form["windowId"] });
        let look = json!({ "session": SESSION, "target": target, "includeImage": false });
        frame = client.call("observe", look)["snapshot"].clone();
        let elements = frame["elements"].as_array();
        elements.is_some_and(|elements| elements.iter().any(|one| one["title"] == "Entry"))
    });
    frame
}

/// What the entry holds, as another executor sees it: the one under test is busy.
fn typed_so_far(desktop: &Desktop, app: &str) -> String {
    let seen = desktop
        .command(env!("CARGO_BIN_EXE_maka-cu"))
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
