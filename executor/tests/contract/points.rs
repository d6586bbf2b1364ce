//! `dispatch.point`: gestures at pixels (spec §3.8, §12.5 rows 52 and 54).

use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

const FORM: &str = "New contact";

fn click() -> Value {
    json!({ "kind": "left_click" })
}

fn send(client: &mut Client, params: Value) -> Value {
    client.call("dispatch.point", params)
}

/// A gesture that must work, and the frame after it.
fn gesture(client: &mut Client, frame: &Value, point: [f64; 2], action: Value) -> Value {
    let result = send(client, desk::point_params(frame, point, action));
    assert_eq!(
        desk::declared(&result)[..2],
        ["ok", "cg_event_pid"],
        "{result}"
    );
    result["snapshot"].clone()
}

/// Spec §12.5 row 52: a point right after a look is not refused, and what lies under it gets the click.
#[test]
fn a_click_presses_what_the_picture_shows() {
    let mut client = desk::start_on("forms");
    let frame = desk::observe_window(&mut client, FORM);
    let middle = desk::middle(&frame, "Favourite");
    let result = send(&mut client, desk::point_params(&frame, middle, click()));
    assert_eq!(
        desk::declared(&result),
        ["ok", "cg_event_pid", "confirmed", "tree_delta", ""]
    );
    let frame = result["snapshot"].clone();
    assert_eq!(desk::find(&frame, "Favourite")["selected"], true);

    // Between two controls there is nothing to press.
    let beside = desk::point_params(&frame, [5.0, 300.0], click());
    let result = send(&mut client, beside);
    assert_eq!(desk::declared(&result)[2], "unverifiable");
    let frame = result["snapshot"].clone();
    for point in [[-1.0, 5.0], [5.0, 560.0], [560.0, 5.0]] {
        let result = send(&mut client, desk::point_params(&frame, point, click()));
        assert_eq!(
            desk::declared(&result),
            ["refused", "none", "unverifiable", "none", "invalid_point"],
            "{point:?}"
        );
    }
}

/// B1, B4: a pixel of a dense picture is half a point.
#[test]
fn a_pixel_of_a_dense_picture_is_half_a_point() {
    let mut client = desk::start_on("displays");
    let frame = desk::observe_window(&mut client, "On the dense display");
    assert_eq!(frame["image"]["scale"], 2);
    let middle = desk::middle(&frame, "Move over");
    assert_eq!(middle, [160.0, 154.0]);
    let after = gesture(&mut client, &frame, middle, click());
    assert_eq!(after["target"]["bounds"]["x"], 100);
}

#[test]
fn gestures_do_what_a_hand_would() {
    let mut client = desk::start_on("forms");
    let frame = desk::observe_window(&mut client, FORM);
    let name = desk::middle(&frame, "Name");
    let written = client.ok(
        "dispatch.element",
        desk::write_params(&frame, "Name", "one two"),
    );
    assert_eq!(desk::declared(&written)[2], "confirmed");
    let frame = desk::observe_window(&mut client, FORM);
    let left = [desk::middle(&frame, "Name")[0] - 135.0, name[1]];
    let frame = gesture(&mut client, &frame, left, json!({ "kind": "double_click" }));
    assert_eq!(frame["selectedText"]["text"], "one");
    let frame = gesture(&mut client, &frame, left, json!({ "kind": "triple_click" }));
    assert_eq!(frame["selectedText"]["text"], "one two");

    // A drag along the slider takes its knob to the end.
    let slider = find_role(&frame, "AXSlider");
    let (x, y, width) = (
        number(&slider, "x"),
        number(&slider, "y"),
        number(&slider, "width"),
    );
    let mut drag = desk::point_params(
        &frame,
        [x + width - 1.0, y + 14.0],
        json!({ "kind": "drag" }),
    );
    assert_eq!(
        desk::declared(&send(&mut client, drag.clone()))[4],
        "invalid_point"
    );
    drag["startPoint"] = json!({ "x": x + 9.0, "y": y + 14.0 });
    let result = send(&mut client, drag);
    assert_eq!(
        desk::declared(&result)[..3],
        ["ok", "cg_event_pid", "confirmed"]
    );
    let frame = result["snapshot"].clone();
    assert_eq!(value_of_role(&frame, "AXSlider"), "5");

    // A button goes down, and what comes up over it presses it.
    let save = desk::middle(&frame, "Save");
    let frame = gesture(&mut client, &frame, save, json!({ "kind": "mouse_down" }));
    desk::find(&frame, "Not saved");
    let frame = gesture(&mut client, &frame, save, json!({ "kind": "mouse_up" }));
    desk::find(&frame, "Saved one two, South Africa, priority 5");
}

#[test]
fn the_right_button_opens_a_menu_and_the_wheel_scrolls() {
    let mut client = desk::start_on("menus");
    let frame = desk::observe_window(&mut client, "Menus");
    let point = desk::middle(&frame, "two.txt");
    let frame = gesture(&mut client, &frame, point, json!({ "kind": "right_click" }));
    let rename = desk::middle(&frame, "Rename");
    let frame = gesture(&mut client, &frame, rename, click());
    desk::find(&frame, "Renamed");
    let frame = gesture(
        &mut client,
        &frame,
        [400.0, 200.0],
        json!({ "kind": "right_click" }),
    );
    let press = json!({ "kind": "click" });
    let result = desk::act(&mut client, &frame, "Refresh", press);
    desk::find(&result["snapshot"], "Refreshed");

    let mut client = desk::start_on("lists");
    let frame = desk::observe_window(&mut client, "Lists");
    let before = number(&desk::find(&frame, "Row 300")["frame"], "y");
    let wheel = json!({ "kind": "scroll", "direction": "down", "pages": 2.0 });
    let frame = gesture(&mut client, &frame, [300.0, 200.0], wheel);
    assert_eq!(
        number(&desk::find(&frame, "Row 300")["frame"], "y"),
        before - 22.0 * 26.0
    );
}

/// Spec §12.5 row 54: what only a system-wide event can do is refused by name without permission, and done with it.
#[test]
fn what_moves_the_pointer_needs_permission() {
    let outside = |frame: &Value| {
        let mut params = desk::point_params(frame, [50.0, 5.0], json!({ "kind": "drag" }));
        params["startPoint"] = json!({ "x": -5.0, "y": 5.0 });
        params
    };
    let hover = |frame: &Value| desk::point_params(frame, [50.0, 5.0], json!({ "kind": "move" }));
    let mut client = desk::start_on("forms");
    let frame = desk::observe_window(&mut client, FORM);
    for params in [hover(&frame), outside(&frame)] {
        let result = send(&mut client, params);
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
    }
    let mut client = desk::start_permitted_on("forms");
    let frame = desk::observe_window(&mut client, FORM);
    let result = send(&mut client, hover(&frame));
    assert_eq!(desk::declared(&result)[..2], ["ok", "cg_event_global"]);
    let frame = result["snapshot"].clone();
    let result = send(&mut client, outside(&frame));
    assert_eq!(desk::declared(&result)[..2], ["ok", "cg_event_global"]);
}

#[test]
fn a_window_without_input_is_reached_by_actions_alone() {
    let mut client = desk::start_on("windows");
    let frame = desk::observe_window(&mut client, "Takes no input");
    let point = desk::middle(&frame, "Only by action");
    let result = send(&mut client, desk::point_params(&frame, point, click()));
    assert_eq!(desk::declared(&result)[4], "dispatch_refused");
    assert!(result["error"]["detail"]["wouldRequirePath"].is_null());
    let result = desk::act(
        &mut client,
        &frame,
        "Only by action",
        json!({ "kind": "click" }),
    );
    assert_eq!(result["snapshot"]["target"]["title"], "Was pressed");
}

/// D4: what a session holds down is let go of when the session ends.
#[test]
fn a_button_comes_up_when_its_session_ends() {
    let mut client = desk::start_on("forms");
    let frame = desk::observe_window(&mut client, FORM);
    let start = crate::images::pixels(&client, &frame["image"]);
    let close = desk::middle(&frame, "Close");
    let slid = [close[0] + 30.0, close[1]];
    let frame = gesture(&mut client, &frame, slid, json!({ "kind": "mouse_down" }));
    let held = crate::images::pixels(&client, &frame["image"]);
    assert_ne!(start, held, "the button is painted pressed");
    client.ok("session.end", json!({ "session": SESSION }));
    desk::begin(&mut client, "s-2");
    let windows = client.ok("window.list", json!({ "session": "s-2" }))["windows"].clone();
    assert!(
        windows.as_array().unwrap().is_empty(),
        "it came up over the button that closes"
    );
}

fn find_role(frame: &Value, role: &str) -> Value {
    let elements = frame["elements"].as_array().unwrap();
    let found = elements.iter().find(|element| element["role"] == role);
    found.unwrap()["frame"].clone()
}

fn value_of_role(frame: &Value, role: &str) -> String {
    let elements = frame["elements"].as_array().unwrap();
    let found = elements.iter().find(|element| element["role"] == role);
    found.unwrap()["value"].as_str().unwrap().to_owned()
}

fn number(frame: &Value, key: &str) -> f64 {
    frame[key].as_f64().unwrap()
}
