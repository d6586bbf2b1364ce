//! The executor's strict reading of params: defaults, rejections, and the field each error names.

use maka_cu_protocol::{
    action::{ClickCount, ElementAction, Pages, PointAction},
    handshake::{HelloParams, Limits},
    json::Reason,
    params::*,
    sets::*,
};
use serde_json::{Value, json};

use crate::samples::HASH;

fn element(action: Value) -> Value {
    json!({
        "session": "s-1", "snapshotId": "snap", "toolCallId": "call_1", "elementToken": "el",
        "expectElementDigest": HASH, "action": action
    })
}

fn point(action: Value) -> Value {
    json!({
        "session": "s-1", "snapshotId": "snap", "toolCallId": "call_1", "expectWindowDigest": HASH,
        "point": {"x": 1, "y": 2}, "space": "image_px", "action": action
    })
}

fn key(action: Value) -> Value {
    json!({
        "session": "s-1", "snapshotId": "snap", "toolCallId": "call_1", "focusToken": "el",
        "expectElementDigest": HASH, "action": action
    })
}

fn with(mut params: Value, name: &str, value: Value) -> Value {
    params[name] = value;
    params
}

#[test]
fn defaults_are_those_of_the_protocol() {
    let params = DispatchElementParams::from_value(&element(json!({"kind": "click"}))).unwrap();
    assert_eq!(
        params.action,
        ElementAction::Click {
            button: MouseButton::Left,
            count: ClickCount::ONE
        }
    );
    assert_eq!(
        (params.strictness, params.occlusion_policy),
        (Strictness::Element, OcclusionPolicy::SameApp)
    );
    assert_eq!(params.observe_after, None);
    let scroll = json!({"kind": "scroll", "direction": "down"});
    let params = DispatchElementParams::from_value(&element(scroll)).unwrap();
    assert_eq!(
        params.action,
        ElementAction::Scroll {
            direction: Direction::Down,
            pages: Pages::ONE
        }
    );

    let params = DispatchPointParams::from_value(&point(json!({"kind": "left_click"}))).unwrap();
    assert_eq!(params.occlusion_policy, OcclusionPolicy::Any);
    let params = DispatchKeyParams::from_value(&key(json!({"kind": "key", "key": "a"}))).unwrap();
    assert_eq!(params.focus_policy, FocusPolicy::Require);

    let target = json!({"kind": "app", "app": "pid:4"});
    let params =
        ObserveParams::from_value(&json!({"session": "s", "target": target, "query": "ignored"}))
            .unwrap();
    assert!(params.include_image && params.menu.is_none() && params.max_elements.is_none());
    assert!(
        !PermissionsCheckParams::from_value(&json!({}))
            .unwrap()
            .prompt
    );
    assert!(AppsListParams::from_value(&json!({"anything": 1})).is_ok());
}

#[test]
fn element_errors_name_their_field() {
    let rows = [
        (
            element(json!({"kind": "press"})),
            "action.kind",
            Reason::OutOfSet,
        ),
        (
            element(json!({"kind": "click", "button": "back"})),
            "action.button",
            Reason::OutOfSet,
        ),
        (
            element(json!({"kind": "click", "count": 0})),
            "action.count",
            Reason::OutOfRange,
        ),
        (
            element(json!({"kind": "click", "count": 4})),
            "action.count",
            Reason::OutOfRange,
        ),
        (
            element(json!({"kind": "click", "count": 1.5})),
            "action.count",
            Reason::NotWhole,
        ),
        (
            element(json!({"kind": "set_value"})),
            "action.value",
            Reason::Missing,
        ),
        (
            element(json!({"kind": "select_text", "text": ""})),
            "action.text",
            Reason::Empty,
        ),
        (
            element(json!({"kind": "secondary_action", "action": "explode"})),
            "action.action",
            Reason::OutOfSet,
        ),
        (
            element(json!({"kind": "scroll", "direction": "in"})),
            "action.direction",
            Reason::OutOfSet,
        ),
        (
            element(json!({"kind": "scroll", "direction": "up", "pages": 0})),
            "action.pages",
            Reason::OutOfRange,
        ),
        (
            element(json!({"kind": "move_window", "position": {"x": "1", "y": 0}})),
            "action.position.x",
            Reason::NotNumber,
        ),
        (
            element(json!({"kind": "resize_window", "size": {"width": 1, "height": -1}})),
            "action.size.height",
            Reason::OutOfRange,
        ),
        (
            with(
                element(json!({"kind": "click"})),
                "strictness",
                json!("loose"),
            ),
            "strictness",
            Reason::OutOfSet,
        ),
        (
            with(
                element(json!({"kind": "click"})),
                "observeAfter",
                json!({"includeImage": true}),
            ),
            "observeAfter.settle",
            Reason::Missing,
        ),
        (
            with(
                element(json!({"kind": "click"})),
                "observeAfter",
                json!({"includeImage": false, "settle": "none", "menu": true}),
            ),
            "observeAfter.menu",
            Reason::NotObject,
        ),
        (
            with(
                element(json!({"kind": "click"})),
                "expectElementDigest",
                json!("abc"),
            ),
            "expectElementDigest",
            Reason::NotDigest,
        ),
        (
            with(element(json!({"kind": "click"})), "toolCallId", json!("")),
            "toolCallId",
            Reason::Empty,
        ),
        (json!([]), "params", Reason::NotObject),
        (json!({}), "session", Reason::Missing),
    ];
    for (params, field, reason) in rows {
        let error = DispatchElementParams::from_value(&params).unwrap_err();
        assert_eq!((error.field(), error.reason()), (field, reason), "{params}");
    }
}

#[test]
fn key_and_point_errors_name_their_field() {
    let rows = [
        (
            key(json!({"kind": "key", "key": "cmd+a"})),
            "action.key",
            Reason::OutOfSet,
        ),
        (
            key(json!({"kind": "key", "key": "Enter"})),
            "action.key",
            Reason::OutOfSet,
        ),
        (
            key(json!({"kind": "key", "key": "a", "modifiers": ["cmd"]})),
            "action.modifiers[0]",
            Reason::OutOfSet,
        ),
        (key(json!({"kind": "type"})), "action.text", Reason::Missing),
        (
            with(
                key(json!({"kind": "type", "text": ""})),
                "focusPolicy",
                json!("steal"),
            ),
            "focusPolicy",
            Reason::OutOfSet,
        ),
    ];
    for (params, field, reason) in rows {
        let error = DispatchKeyParams::from_value(&params).unwrap_err();
        assert_eq!((error.field(), error.reason()), (field, reason), "{params}");
    }
    let rows = [
        (
            with(point(json!({"kind": "move"})), "space", json!("screen_pt")),
            "space",
            Reason::OutOfSet,
        ),
        (
            with(point(json!({"kind": "move"})), "point", json!({"x": 1})),
            "point.y",
            Reason::Missing,
        ),
        (
            with(
                point(json!({"kind": "move"})),
                "startPoint",
                json!({"x": 1, "y": 1}),
            ),
            "startPoint",
            Reason::NotAllowed,
        ),
        (
            point(json!({"kind": "left_click", "count": 9})),
            "action.count",
            Reason::OutOfRange,
        ),
    ];
    for (params, field, reason) in rows {
        let error = DispatchPointParams::from_value(&params).unwrap_err();
        assert_eq!((error.field(), error.reason()), (field, reason), "{params}");
    }
    // A drag without a start is a question for the executor (`invalid_point`), not for the reader.
    let drag = DispatchPointParams::from_value(&point(json!({"kind": "drag"}))).unwrap();
    assert_eq!((drag.action, drag.start_point), (PointAction::Drag, None));
}

#[test]
fn observe_errors_name_their_field() {
    let target = json!({"kind": "window", "pid": 1, "windowId": 2});
    let base = json!({"session": "s", "target": target});
    let rows = [
        (
            with(base.clone(), "target", json!({"kind": "title"})),
            "target.kind",
            Reason::OutOfSet,
        ),
        (
            with(base.clone(), "target", json!({"kind": "app"})),
            "target.app",
            Reason::Missing,
        ),
        (
            with(base.clone(), "target", json!({"kind": "window", "pid": 1})),
            "target.windowId",
            Reason::Missing,
        ),
        (
            with(base.clone(), "target", json!("Notes")),
            "target",
            Reason::NotObject,
        ),
        (
            with(base.clone(), "maxElements", json!(0)),
            "maxElements",
            Reason::OutOfRange,
        ),
        (
            with(base.clone(), "maxDepth", json!(-1)),
            "maxDepth",
            Reason::NotWhole,
        ),
        (
            with(base.clone(), "menu", json!({"scope": "menu"})),
            "menu.title",
            Reason::Missing,
        ),
        (
            with(base.clone(), "menu", json!({"scope": "menu", "title": ""})),
            "menu.title",
            Reason::Empty,
        ),
        (
            with(
                base.clone(),
                "menu",
                json!({"scope": "bar", "title": "File"}),
            ),
            "menu.title",
            Reason::NotAllowed,
        ),
        (
            with(
                base.clone(),
                "menu",
                json!({"scope": "all", "title": "File"}),
            ),
            "menu.title",
            Reason::NotAllowed,
        ),
        (
            with(base.clone(), "includeImage", json!("yes")),
            "includeImage",
            Reason::NotBool,
        ),
    ];
    for (params, field, reason) in rows {
        let error = ObserveParams::from_value(&params).unwrap_err();
        assert_eq!((error.field(), error.reason()), (field, reason), "{params}");
    }
    let limits = Limits::default();
    let above = ObserveParams::from_value(&with(base.clone(), "maxElements", json!(1501))).unwrap();
    assert_eq!(
        above.check_limits(&limits).unwrap_err().field(),
        "maxElements"
    );
    let exactly = ObserveParams::from_value(&with(base, "maxElements", json!(1500))).unwrap();
    assert_eq!(exactly.check_limits(&limits), Ok(()));
}

#[test]
fn hello_asks_for_the_version_first() {
    let good = json!({"protocol": "maka.cu/2", "hostPid": 7, "imageDir": "/abs", "allowGlobalPointer": false});
    assert_eq!(HelloParams::speaks_our_protocol(&good), Ok(true));
    assert_eq!(
        HelloParams::speaks_our_protocol(&json!({"protocol": "maka.cu/3", "hostPid": "?"})),
        Ok(false)
    );
    assert_eq!(
        HelloParams::speaks_our_protocol(&json!({}))
            .unwrap_err()
            .field(),
        "protocol"
    );
    assert!(HelloParams::from_value(&good).is_ok());
    let rows = [
        ("hostPid", json!(0), Reason::OutOfRange),
        ("hostPid", json!(-1), Reason::NotWhole),
        ("imageDir", json!("images"), Reason::NotAbsolutePath),
        ("imageDir", json!("/abs/../etc"), Reason::NotAbsolutePath),
        ("imageDir", json!("/a\u{0}b"), Reason::NotAbsolutePath),
        ("allowGlobalPointer", json!(1), Reason::NotBool),
        ("allowGlobalPointer", Value::Null, Reason::NotBool),
    ];
    for (field, value, reason) in rows {
        let error = HelloParams::from_value(&with(good.clone(), field, value)).unwrap_err();
        assert_eq!((error.field(), error.reason()), (field, reason));
    }
}

/// An error never repeats what it refused.
#[test]
fn errors_hold_no_values() {
    let error =
        DispatchKeyParams::from_value(&key(json!({"kind": "key", "key": "canary"}))).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("canary"), "{shown}");
    let typed =
        DispatchKeyParams::from_value(&key(json!({"kind": "type", "text": "canary"}))).unwrap();
    assert!(!format!("{typed:?}").contains("canary"));
}
