//! Every domain code is reached by a test: a table of which module reaches it, and the tests of those that belong nowhere
//! else.

use maka_cu_protocol::domain::DomainCode;
use serde_json::json;

use crate::client::Client;
use crate::desk::{self, SESSION};

const FORM: &str = "org.contract.Form";

/// The module whose tests reach the code.
const fn module_of(code: DomainCode) -> &'static str {
    match code {
        DomainCode::SnapshotUnknown
        | DomainCode::SnapshotExpired
        | DomainCode::SnapshotEvicted
        | DomainCode::SnapshotSpent
        | DomainCode::SnapshotSuperseded => include_str!("snapshots.rs"),
        DomainCode::ElementUnknown
        | DomainCode::ElementDigestMismatch
        | DomainCode::ElementReleased
        | DomainCode::ProcessReplaced
        | DomainCode::WindowGone
        | DomainCode::ElementChanged
        | DomainCode::WindowChanged
        | DomainCode::WindowOccluded
        | DomainCode::ScreenLocked => include_str!("bindings.rs"),
        DomainCode::AppNotFound | DomainCode::PermissionMissing | DomainCode::ResponseTooLarge => {
            include_str!("observing.rs")
        }
        DomainCode::FocusChanged | DomainCode::InvalidPoint => include_str!("generic.rs"),
        DomainCode::ElementNotActionable
        | DomainCode::ElementDisabled
        | DomainCode::OutcomeUnknown
        | DomainCode::Aborted => include_str!("actions.rs"),
        DomainCode::UnsupportedAction | DomainCode::Timeout | DomainCode::DispatchRefused => {
            include_str!("launches.rs")
        }
        DomainCode::NotImplemented => include_str!("requests.rs"),
        DomainCode::PhysicalInputActive | DomainCode::CaptureFailed => include_str!("codes.rs"),
        DomainCode::ImageWriteFailed => include_str!("images.rs"),
    }
}

/// A new code does not compile before it is in the table, and its module has to name it.
#[test]
fn every_code_is_reached_by_a_test() {
    for code in DomainCode::ALL {
        let word = format!("\"{code}\"");
        assert!(module_of(*code).contains(&word), "no test names {code}");
    }
}

/// Starts the contract desktop with one more line of its scenario.
fn start_with_line(line: &str) -> Client {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let desktop = include_str!("desktop.toml");
    std::fs::write(scenario.path(), format!("{line}\n{desktop}")).unwrap();
    let path = scenario.path().to_str().unwrap();
    let mut client = Client::start(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    client
}

/// Spec §3.6.1 and §10.5: keys and points keep out of the way of a person; an action of an element uses neither.
#[test]
fn a_person_at_the_desktop_goes_first() {
    let mut client = start_with_line("user_active = true");
    let mut params = desk::app_params(FORM);
    params["includeImage"] = json!(true);
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    let entry = desk::find(&snapshot, "Entry");
    let common = |fields: serde_json::Value| {
        let mut params = json!({ "session": SESSION, "snapshotId": snapshot["snapshotId"], "toolCallId": "call-1" });
        let fields = fields.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(fields);
        params
    };
    let typed = common(
        json!({ "focusToken": entry["token"], "expectElementDigest": entry["digest"],
        "focusPolicy": "acquire", "action": { "kind": "type", "text": "x" } }),
    );
    let clicked = common(
        json!({ "expectWindowDigest": snapshot["windowDigest"], "point": { "x": 360, "y": 95 },
        "space": "image_px", "action": { "kind": "left_click" } }),
    );
    for (method, params) in [("dispatch.key", typed), ("dispatch.point", clicked)] {
        let result = client.call(method, params);
        assert_eq!(
            desk::declared(&result)[4],
            "physical_input_active",
            "{method}"
        );
    }
    let after = desk::observe(&mut client, FORM);
    assert_eq!(
        after["windowDigest"], snapshot["windowDigest"],
        "nothing was focused or typed"
    );
    client.ok("dispatch.element", desk::click_params(&after, "Set status"));
}

/// A picture of what a window shows on the screen has no padding, so that one that lies on two displays has none.
#[test]
fn a_window_across_two_displays_has_no_picture_of_the_desktop() {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let desktop = "[[displays]]\nid = \"1\"\nsize = [800, 600]\n\n[[displays]]\nid = \"2\"\nsize = [800, 600]\n\
                   origin = [800, 0]\n\n[[apps]]\napp_id = \"org.across\"\nname = \"Across\"\nrunning = true\n\n\
                   [[apps.windows]]\nid = \"main\"\ntitle = \"Across\"\nbounds = [700, 100, 200, 200]\n";
    std::fs::write(scenario.path(), desktop).unwrap();
    let path = scenario.path().to_str().unwrap();
    let mut client = Client::start(&["--back-end", "virtual", "--desktop", path]);
    for (session, scope) in [("own", "window"), ("screen", "desktop")] {
        client.ok(
            "session.begin",
            json!({ "session": session, "captureScope": scope }),
        );
    }
    let mut params = desk::app_params("org.across");
    params["includeImage"] = json!(true);
    params["session"] = json!("screen");
    assert_eq!(client.refused("observe", params.clone()), "capture_failed");
    assert_eq!(client.image_files(), 0);
    params["session"] = json!("own");
    assert_eq!(
        client.ok("observe", params)["snapshot"]["image"]["widthPx"],
        200
    );
}
