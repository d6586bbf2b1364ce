//! `host.dispatch` and `host.snapshot` (§9): routing, demands and wishes.

use std::path::Path as FilePath;

use maka_cu_protocol::{
    action::{ClickCount, PointAction},
    generic::*,
    json::{Reason, Violation},
    method::Method,
    results::dispatch,
    sets::*,
};
use serde_json::{Value, json};

use crate::samples::{self, HASH};

fn base(extra: Value) -> Value {
    let mut params =
        json!({"toolCallId": "c", "sessionId": "s", "tier": "coordinate-background", "pid": 4821});
    params
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    params
}

fn check_error(extra: Value, field: &str, reason: Reason) {
    let error = GenericDispatchParams::from_value(&base(extra.clone())).unwrap_err();
    assert_eq!((error.field(), error.reason()), (field, reason), "{extra}");
}

/// The click of the seeds: screen coordinates, a process, no snapshot, no action.
#[test]
fn a_bare_click_is_a_left_click_bound_to_the_process() {
    let params = GenericDispatchParams::from_value(&base(json!({
        "path": "cg_event_pid", "effect": "confirmed", "verification": {"method": "none", "observedChange": false},
        "x": 420, "y": 180
    })))
    .unwrap();
    assert_eq!(params.anchor, GenericAnchor::OnlyLiveOf(4821));
    assert_eq!(
        (params.wished_effect, params.wished_verification),
        (Some(Effect::Confirmed), Some(VerificationMethod::None))
    );
    assert_eq!(params.route.method(), Method::DispatchPoint);
    let GenericRoute::Point {
        point: GenericPoint::Screen { point, start: None },
        action,
        occlusion,
        ..
    } = params.route
    else {
        panic!("{:?}", params.route);
    };
    assert_eq!((point.x(), point.y()), (420.0, 180.0));
    assert_eq!(
        action,
        PointAction::LeftClick {
            count: ClickCount::ONE
        }
    );
    assert_eq!(occlusion, OcclusionPolicy::Any);
}

#[test]
fn wishes_take_the_older_words() {
    for (word, wish) in [
        ("unconfirmed", Some(Effect::Unverifiable)),
        ("none", None),
        ("suspected_noop", Some(Effect::SuspectedNoop)),
    ] {
        let params =
            GenericDispatchParams::from_value(&base(json!({"x": 1, "y": 1, "effect": word})))
                .unwrap();
        assert_eq!(params.wished_effect, wish, "{word}");
    }
    check_error(
        json!({"x": 1, "y": 1, "effect": "great"}),
        "effect",
        Reason::OutOfSet,
    );
}

#[test]
fn none_or_several_routes_are_refused() {
    let element =
        json!({"elementToken": "e", "expectElementDigest": HASH, "action": {"kind": "click"}});
    let with = |name: &str, value: Value| {
        let mut fields = element.clone();
        fields[name] = value;
        fields
    };
    check_error(json!({}), "elementToken", Reason::Missing);
    check_error(
        json!({"action": {"kind": "left_click"}}),
        "elementToken",
        Reason::Missing,
    );
    check_error(
        with("focusToken", json!("f")),
        "focusToken",
        Reason::NotAllowed,
    );
    check_error(with("x", json!(1)), "x", Reason::NotAllowed);
    check_error(
        with("action", json!({"kind": "type", "text": "a"})),
        "focusToken",
        Reason::NotAllowed,
    );
    check_error(
        json!({"action": {"kind": "type", "text": "a"}}),
        "focusToken",
        Reason::Missing,
    );
    check_error(json!({"x": 1}), "y", Reason::Missing);
    check_error(
        json!({"x": 1, "y": 1, "point": {"x": 1, "y": 1}}),
        "point",
        Reason::NotAllowed,
    );
    check_error(
        json!({"x": 1, "y": 1, "startX": 1, "startY": 1}),
        "startPoint",
        Reason::NotAllowed,
    );
    check_error(
        json!({"x": 1, "y": 1, "space": "window_pt"}),
        "space",
        Reason::OutOfSet,
    );
    check_error(
        json!({"x": 1, "y": 1, "session": "other"}),
        "session",
        Reason::Contradiction,
    );
    check_error(
        json!({"x": 1, "y": 1, "path": "ax_action"}),
        "path",
        Reason::IllegalPair,
    );
    check_error(
        json!({"x": 1, "y": 1, "path": "warp"}),
        "path",
        Reason::OutOfSet,
    );
    check_error(
        json!({"x": 1, "y": 1, "tier": "pointer"}),
        "tier",
        Reason::OutOfSet,
    );
    check_error(
        json!({"x": 1, "y": 1, "pid": null}),
        "snapshotId",
        Reason::Missing,
    );
    check_error(
        json!({"x": 1, "y": 1, "sessionId": null}),
        "sessionId",
        Reason::Missing,
    );

    let params = GenericDispatchParams::from_value(&base(element)).unwrap();
    assert_eq!(
        (params.route.method(), params.route.tier()),
        (Method::DispatchElement, Tier::Ax)
    );
    let any_path =
        GenericDispatchParams::from_value(&base(json!({"x": 1, "y": 1, "path": "none"}))).unwrap();
    assert_eq!(any_path.path, None);
    let alias =
        json!({"toolCallId": "c", "session": "s", "tier": "ax", "x": 1, "y": 1, "snapshotId": "n"});
    assert!(GenericDispatchParams::from_value(&alias).is_ok());
}

/// §9.1 rule 6: tier and path of the result are those demanded, `none` on a refusal excepted.
#[test]
fn results_keep_to_the_demand() {
    let call = samples::call_id();
    let mut expected = samples::dispatch_expectation(&call);
    (expected.tier, expected.path) = (Some(Tier::Ax), Some(Path::AxAttribute));
    let violation = dispatch::read_dispatch(&samples::dispatched(), &expected).unwrap_err();
    assert_eq!(violation, Violation::of("path", Reason::Mismatch));
    assert!(dispatch::read_dispatch(&samples::dispatch_refused(), &expected).is_ok());
    expected.path = Some(Path::AxAction);
    assert!(dispatch::read_dispatch(&samples::dispatched(), &expected).is_ok());
    expected.tier = Some(Tier::CoordinateBackground);
    let violation = dispatch::read_dispatch(&samples::dispatch_refused(), &expected).unwrap_err();
    assert_eq!(violation, Violation::of("tier", Reason::Mismatch));
}

#[test]
fn snapshots_want_tree_or_image() {
    let read = |extra: Value| {
        let mut params = json!({"sessionId": "s"});
        params
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        GenericSnapshotParams::from_value(&params)
    };
    assert_eq!(
        read(json!({"includeTree": false, "includeImage": false}))
            .unwrap_err()
            .field(),
        "includeImage"
    );
    assert_eq!(
        read(json!({"pid": 3})).unwrap().target,
        GenericTarget::Pid(3)
    );
    let both = json!({"pid": 3, "target": {"kind": "app", "app": "a"}});
    assert_eq!(read(both).unwrap_err().field(), "pid");

    let dir = FilePath::new(samples::IMAGE_DIR);
    let picture = read(json!({"includeTree": false})).unwrap();
    assert!(read_generic_snapshot(&samples::captured(), &picture, dir).is_ok());
    let violation = read_generic_snapshot(&samples::observed(), &picture, dir).unwrap_err();
    assert_eq!(violation, Violation::of("snapshot", Reason::NotAllowed));
    let tree = read(json!({})).unwrap();
    assert!(read_generic_snapshot(&samples::observed(), &tree, dir).is_ok());
    let violation = read_generic_snapshot(&samples::captured(), &tree, dir).unwrap_err();
    assert_eq!(violation, Violation::of("snapshot", Reason::Missing));
}
