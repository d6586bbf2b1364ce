//! Every field of every request that can be wrong: which field the answer names, and that good ones pass.

use maka_cu_protocol::{
    action::{ClickCount, ElementAction, KeyAction, PointAction},
    keys::{Key, NamedKey},
    menu::MenuScope,
    sets::{
        FocusPolicy, Modifier, MouseButton, OcclusionPolicy, Path, SettleMode, Strictness, Tier,
    },
};
use maka_proto::v1::{
    self,
    dispatch_request::{Action, Target},
};
use proptest::prelude::*;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::*;
use crate::session::call::{DispatchAction, ImageDelivery, ObserveWish};

/// The fields that a status names, in order.
fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    let info = details
        .error_info()
        .expect("every status carries ErrorInfo");
    assert_eq!(
        (info.domain.as_str(), info.reason.as_str()),
        ("gateway.maka", "malformed")
    );
    assert_eq!(info.metadata["retry"], "never");
    let violations = &details
        .bad_request()
        .expect("field violations")
        .field_violations;
    assert!(
        violations
            .iter()
            .all(|violation| !violation.description.is_empty())
    );
    violations
        .iter()
        .map(|violation| violation.field.clone())
        .collect()
}

const DIGEST: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn click() -> v1::DispatchRequest {
    v1::DispatchRequest {
        session_id: "s_1".into(),
        tool_call_id: "call_1".into(),
        tier: v1::Tier::Ax.into(),
        snapshot_id: "snap_1".into(),
        target: Some(Target::Element(v1::ElementTarget {
            token: "el_1".into(),
            expect_digest: DIGEST.into(),
            ..Default::default()
        })),
        action: Some(Action::Click(v1::Click::default())),
        ..Default::default()
    }
}

fn typing() -> v1::DispatchRequest {
    v1::DispatchRequest {
        tier: v1::Tier::CoordinateBackground.into(),
        target: Some(Target::Focus(v1::FocusTarget {
            token: "el_1".into(),
            expect_digest: DIGEST.into(),
            ..Default::default()
        })),
        action: Some(Action::TypeText(v1::TypeText { text: "x".into() })),
        ..click()
    }
}

fn pointing() -> v1::DispatchRequest {
    v1::DispatchRequest {
        tier: v1::Tier::CoordinateBackground.into(),
        target: Some(Target::Point(v1::PointTarget {
            x: 1.0,
            y: 2.0,
            space: v1::PointSpace::ImagePx.into(),
            expect_window_digest: DIGEST.into(),
            ..Default::default()
        })),
        action: Some(Action::PointerClick(v1::PointerClick::default())),
        ..click()
    }
}

fn element(request: &mut v1::DispatchRequest) -> &mut v1::ElementTarget {
    match &mut request.target {
        Some(Target::Element(target)) => target,
        other => panic!("{other:?}"),
    }
}

fn focus(request: &mut v1::DispatchRequest) -> &mut v1::FocusTarget {
    match &mut request.target {
        Some(Target::Focus(target)) => target,
        other => panic!("{other:?}"),
    }
}

fn point(request: &mut v1::DispatchRequest) -> &mut v1::PointTarget {
    match &mut request.target {
        Some(Target::Point(target)) => target,
        other => panic!("{other:?}"),
    }
}

fn check_dispatch(
    row: &str,
    base: v1::DispatchRequest,
    change: impl FnOnce(&mut v1::DispatchRequest),
    bad: &[&str],
) {
    let mut request = base;
    change(&mut request);
    match dispatch::dispatch(request) {
        Ok(_) => assert!(bad.is_empty(), "{row}: accepted"),
        Err(status) => assert_eq!(fields(&status), bad, "{row}"),
    }
}

/// A field of the message itself.
#[test]
fn dispatch_fields() {
    let check = |row, change: fn(&mut v1::DispatchRequest), bad: &[&str]| {
        check_dispatch(row, click(), change, bad)
    };
    check("good", |_| {}, &[]);
    check("no session", |r| r.session_id.clear(), &["session_id"]);
    check(
        "long session",
        |r| r.session_id = "s".repeat(257),
        &["session_id"],
    );
    check("no key", |r| r.tool_call_id.clear(), &["tool_call_id"]);
    check("longest key", |r| r.tool_call_id = "k".repeat(128), &[]);
    check(
        "long key",
        |r| r.tool_call_id = "k".repeat(129),
        &["tool_call_id"],
    );
    check("long turn", |r| r.turn = Some("t".repeat(65)), &["turn"]);
    check("odd turn", |r| r.turn = Some("t\n".into()), &["turn"]);
    check(
        "odd key",
        |r| r.tool_call_id = "a\u{7}".into(),
        &["tool_call_id"],
    );
    check(
        "odd session",
        |r| r.session_id = "s\0".into(),
        &["session_id"],
    );
    check(
        "odd snapshot",
        |r| r.snapshot_id = "s\u{85}".into(),
        &["snapshot_id"],
    );
    check("no tier", |r| r.tier = 0, &["tier"]);
    check("unknown tier", |r| r.tier = 99, &["tier"]);
    check("unknown path", |r| r.path = Some(99), &["path"]);
    check("unspecified path", |r| r.path = Some(0), &[]);
    check(
        "unknown effect",
        |r| r.wished_effect = Some(-1),
        &["wished_effect"],
    );
    check(
        "unknown verification",
        |r| r.wished_verification = Some(77),
        &["wished_verification"],
    );
    check(
        "no snapshot is the policy's business",
        |r| r.snapshot_id.clear(),
        &[],
    );
    check(
        "long snapshot",
        |r| r.snapshot_id = "s".repeat(257),
        &["snapshot_id"],
    );
    check(
        "no target is the policy's business",
        |r| r.target = None,
        &[],
    );
    check("no action", |r| r.action = None, &["action"]);
    check(
        "an image of an unknown kind",
        |r| {
            r.observe_after = Some(v1::ObserveAfter {
                image: 9,
                ..Default::default()
            })
        },
        &["observe_after.image"],
    );
    let menu = |scope: i32, title: Option<&str>| v1::ObserveAfter {
        menu: Some(v1::MenuRequest {
            scope,
            title: title.map(str::to_owned),
        }),
        ..Default::default()
    };
    let with = |row, wish: v1::ObserveAfter, bad: &[&str]| {
        check_dispatch(row, click(), |r| r.observe_after = Some(wish), bad);
    };
    with(
        "a menu without scope",
        menu(0, None),
        &["observe_after.menu.scope"],
    );
    with(
        "a menu of an unknown scope",
        menu(9, None),
        &["observe_after.menu.scope"],
    );
    with(
        "a menu without title",
        menu(v1::MenuScope::Menu.into(), None),
        &["observe_after.menu.title"],
    );
    with(
        "a menu with an empty title",
        menu(v1::MenuScope::Menu.into(), Some("")),
        &["observe_after.menu.title"],
    );
    with(
        "a bar with a title",
        menu(v1::MenuScope::Bar.into(), Some("File")),
        &["observe_after.menu.title"],
    );
    with(
        "everything with a title",
        menu(v1::MenuScope::All.into(), Some("File")),
        &["observe_after.menu.title"],
    );
    with(
        "a menu",
        menu(v1::MenuScope::Menu.into(), Some("File")),
        &[],
    );
    check(
        "all bad fields are named at once",
        |r| {
            r.session_id.clear();
            r.tier = 0;
            r.action = None;
        },
        &["session_id", "tier", "action"],
    );
}

/// A field of a target, and targets that do not go with the action.
#[test]
fn dispatch_targets() {
    check_dispatch("no token", click(), |r| element(r).token.clear(), &[]);
    check_dispatch(
        "long token",
        click(),
        |r| element(r).token = "t".repeat(257),
        &["element.token"],
    );
    check_dispatch(
        "no digest",
        click(),
        |r| element(r).expect_digest.clear(),
        &[],
    );
    check_dispatch(
        "bare digest",
        click(),
        |r| element(r).expect_digest = DIGEST[7..].into(),
        &["element.expect_digest"],
    );
    check_dispatch(
        "strictness",
        click(),
        |r| element(r).strictness = 9,
        &["element.strictness"],
    );
    check_dispatch(
        "occlusion",
        click(),
        |r| element(r).occlusion = 9,
        &["element.occlusion"],
    );
    check_dispatch("good focus", typing(), |_| {}, &[]);
    check_dispatch(
        "focus token",
        typing(),
        |r| focus(r).token = "t".repeat(257),
        &["focus.token"],
    );
    check_dispatch(
        "focus digest",
        typing(),
        |r| focus(r).expect_digest = "x".into(),
        &["focus.expect_digest"],
    );
    check_dispatch(
        "focus policy",
        typing(),
        |r| focus(r).policy = 9,
        &["focus.policy"],
    );
    check_dispatch("good point", pointing(), |_| {}, &[]);
    check_dispatch("x", pointing(), |r| point(r).x = f64::NAN, &["point.x"]);
    check_dispatch(
        "y",
        pointing(),
        |r| point(r).y = f64::INFINITY,
        &["point.y"],
    );
    check_dispatch(
        "no space",
        pointing(),
        |r| point(r).space = 0,
        &["point.space"],
    );
    check_dispatch(
        "unknown space",
        pointing(),
        |r| point(r).space = 2,
        &["point.space"],
    );
    check_dispatch(
        "window digest",
        pointing(),
        |r| point(r).expect_window_digest = "x".into(),
        &["point.expect_window_digest"],
    );
    check_dispatch(
        "point occlusion",
        pointing(),
        |r| point(r).occlusion = 4,
        &["point.occlusion"],
    );
    check_dispatch(
        "a start without a drag",
        pointing(),
        |r| point(r).start = Some(v1::Point::default()),
        &["point.start"],
    );
    let drag = || v1::DispatchRequest {
        action: Some(Action::PointerDrag(v1::PointerDrag {})),
        ..pointing()
    };
    check_dispatch("a drag without a start", drag(), |_| {}, &["point.start"]);
    check_dispatch(
        "a drag",
        drag(),
        |r| point(r).start = Some(v1::Point::default()),
        &[],
    );
    check_dispatch(
        "a drag from nowhere",
        drag(),
        |r| {
            point(r).start = Some(v1::Point {
                x: f64::NAN,
                y: f64::NEG_INFINITY,
            })
        },
        &["point.start.x", "point.start.y"],
    );
    let targets = [click().target, typing().target, pointing().target];
    let scroll = Action::Scroll(v1::Scroll {
        direction: v1::ScrollDirection::Down.into(),
        pages: None,
    });
    for (action, legal) in [
        (click().action, [true, false, false]),
        (typing().action, [false, true, false]),
        (pointing().action, [false, false, true]),
        (Some(scroll), [true, false, true]),
    ] {
        for (target, legal) in targets.iter().zip(legal) {
            let request = v1::DispatchRequest {
                action: action.clone(),
                target: target.clone(),
                ..click()
            };
            let bad: &[&str] = if legal { &[] } else { &["target"] };
            check_dispatch("target and action", request, |_| {}, bad);
        }
    }
}

fn check_action(row: &str, action: Action, bad: &[&str]) {
    // No target goes with every action: what is missing there is the policy's business.
    check_dispatch(
        row,
        v1::DispatchRequest {
            target: None,
            action: Some(action),
            ..click()
        },
        |_| {},
        bad,
    );
}

/// A field of an action.
#[test]
fn dispatch_actions() {
    let click = |button, count| Action::Click(v1::Click { button, count });
    check_action("default click", click(0, None), &[]);
    check_action("unknown button", click(4, None), &["click.button"]);
    check_action("no clicks", click(1, Some(0)), &["click.count"]);
    check_action("four clicks", click(1, Some(4)), &["click.count"]);
    let long = || "x".repeat(64 * 1024 + 1);
    check_action(
        "empty value",
        Action::SetValue(v1::SetValue::default()),
        &[],
    );
    check_action(
        "longest value",
        Action::SetValue(v1::SetValue {
            value: "x".repeat(64 * 1024),
        }),
        &[],
    );
    check_action(
        "long value",
        Action::SetValue(v1::SetValue { value: long() }),
        &["set_value.value"],
    );
    check_action(
        "nothing to select",
        Action::SelectText(v1::SelectText::default()),
        &["select_text.text"],
    );
    check_action(
        "long selection",
        Action::SelectText(v1::SelectText { text: long() }),
        &["select_text.text"],
    );
    check_action(
        "long text",
        Action::TypeText(v1::TypeText { text: long() }),
        &["type_text.text"],
    );
    let secondary = |action: &str| {
        Action::SecondaryAction(v1::SecondaryAction {
            action: action.into(),
        })
    };
    check_action("an action of an element", secondary("increment"), &[]);
    check_action(
        "no action of an element",
        secondary("AXPress"),
        &["secondary_action.action"],
    );
    let scroll = |direction, pages| Action::Scroll(v1::Scroll { direction, pages });
    check_action("no direction", scroll(0, None), &["scroll.direction"]);
    check_action("unknown direction", scroll(5, None), &["scroll.direction"]);
    check_action("no way", scroll(1, Some(0.0)), &["scroll.pages"]);
    check_action("endless", scroll(1, Some(f64::INFINITY)), &["scroll.pages"]);
    let moved = |position_screen| Action::MoveWindow(v1::MoveWindow { position_screen });
    check_action("nowhere", moved(None), &["move_window.position_screen"]);
    check_action(
        "no number",
        moved(Some(v1::Point {
            x: f64::NAN,
            y: 0.0,
        })),
        &["move_window.position_screen"],
    );
    check_action(
        "negative position",
        moved(Some(v1::Point { x: -5.0, y: 0.0 })),
        &[],
    );
    let resized = |width, height| Action::ResizeWindow(v1::ResizeWindow { width, height });
    check_action(
        "negative width",
        resized(-1.0, 1.0),
        &["resize_window.width"],
    );
    check_action(
        "both",
        resized(f64::NAN, -1.0),
        &["resize_window.width", "resize_window.height"],
    );
    let press = |key: &str, modifiers: &[i32]| {
        Action::PressKey(v1::PressKey {
            key: key.into(),
            modifiers: modifiers.to_vec(),
        })
    };
    for key in [
        "",
        "cmd+",
        "hyper+a",
        "delete",
        "cmd+DEL",
        "Enter+",
        "a+b",
        &"x".repeat(100),
    ] {
        check_action(key, press(key, &[]), &["press_key.key"]);
    }
    check_action(
        "unknown modifier",
        press("a", &[1, 9]),
        &["press_key.modifiers[1]"],
    );
    check_action("no modifier", press("a", &[0]), &["press_key.modifiers[0]"]);
    check_action("too many", press("a", &[1; 40]), &["press_key.modifiers"]);
    let pointer = |button, count| Action::PointerClick(v1::PointerClick { button, count });
    check_action(
        "pointer button",
        pointer(4, None),
        &["pointer_click.button"],
    );
    check_action("right twice", pointer(2, Some(2)), &["pointer_click.count"]);
    check_action("left twice", pointer(1, Some(2)), &[]);
}

/// What good requests mean.
#[test]
fn good_dispatches_are_understood() {
    let mut request = click();
    request.path = Some(v1::Path::AxAction.into());
    request.turn = Some("7".into());
    *element(&mut request) = v1::ElementTarget {
        strictness: v1::Strictness::Window.into(),
        occlusion: v1::OcclusionPolicy::None.into(),
        ..element(&mut request).clone()
    };
    request.observe_after = Some(v1::ObserveAfter {
        image: v1::ImageDelivery::Reference.into(),
        settle: true,
        menu: None,
    });
    let (session, call) = dispatch::dispatch(request).unwrap();
    assert_eq!(session.as_str(), "s_1");
    assert_eq!((call.tier, call.path), (Tier::Ax, Some(Path::AxAction)));
    let wish = call.observe_after.unwrap();
    assert_eq!(
        (wish.image, wish.settle),
        (ImageDelivery::Reference, SettleMode::Quiesce)
    );
    let DispatchAction::Element { anchor, action } = call.action else {
        panic!("an element action")
    };
    assert_eq!(anchor.strictness, Some(Strictness::Window));
    assert_eq!(anchor.occlusion, Some(OcclusionPolicy::None));
    assert_eq!(
        action,
        ElementAction::Click {
            button: MouseButton::Left,
            count: ClickCount::ONE
        }
    );

    // What the chord names comes first, and nothing counts twice.
    let mut request = typing();
    focus(&mut request).policy = v1::FocusPolicy::Acquire.into();
    let modifiers = vec![
        v1::KeyModifier::Shift.into(),
        v1::KeyModifier::Command.into(),
    ];
    request.action = Some(Action::PressKey(v1::PressKey {
        key: "cmd+enter".into(),
        modifiers,
    }));
    let (_, call) = dispatch::dispatch(request).unwrap();
    let DispatchAction::Key { anchor, action } = call.action else {
        panic!("a key action")
    };
    assert_eq!(anchor.policy, Some(FocusPolicy::Acquire));
    let KeyAction::Key { key, modifiers } = action else {
        panic!("a key")
    };
    assert_eq!(key, Key::Named(NamedKey::Return));
    assert_eq!(
        modifiers.iter().collect::<Vec<_>>(),
        [Modifier::Command, Modifier::Shift]
    );

    let mut request = pointing();
    request.action = Some(Action::PointerButton(v1::PointerButton { down: false }));
    let (_, call) = dispatch::dispatch(request).unwrap();
    assert!(matches!(
        call.action,
        DispatchAction::Point {
            action: PointAction::MouseUp,
            ..
        }
    ));
}

#[test]
fn snapshot_fields() {
    let good = || v1::SnapshotRequest {
        session_id: "s_1".into(),
        ..Default::default()
    };
    let check = |row: &str, change: &dyn Fn(&mut v1::SnapshotRequest), bad: &[&str]| {
        let mut request = good();
        change(&mut request);
        match observe::snapshot(request) {
            Ok(_) => assert!(bad.is_empty(), "{row}: accepted"),
            Err(status) => assert_eq!(fields(&status), bad, "{row}"),
        }
    };
    let window = |pid, window_id| {
        Some(v1::snapshot_request::Target::Window(v1::WindowRef {
            pid,
            window_id,
        }))
    };
    let app = |id: &str| Some(v1::snapshot_request::Target::AppId(id.into()));
    check("good", &|_| {}, &[]);
    check("no session", &|r| r.session_id.clear(), &["session_id"]);
    check("empty app", &|r| r.target = app(""), &["app_id"]);
    check(
        "long app",
        &|r| r.target = app(&"a".repeat(257)),
        &["app_id"],
    );
    check("no pid", &|r| r.target = window(0, 1), &["window.pid"]);
    check(
        "no window",
        &|r| r.target = window(1, 0),
        &["window.window_id"],
    );
    check(
        "neither",
        &|r| r.target = window(0, 0),
        &["window.pid", "window.window_id"],
    );
    check("unknown delivery", &|r| r.image = 4, &["image"]);
    check(
        "no elements",
        &|r| r.max_elements = Some(0),
        &["max_elements"],
    );
    check("no depth", &|r| r.max_depth = Some(0), &["max_depth"]);
    check(
        "no text",
        &|r| r.max_text_chars = Some(0),
        &["max_text_chars"],
    );
    check(
        "no scope",
        &|r| r.menu = Some(v1::MenuRequest::default()),
        &["menu.scope"],
    );
    let (_, call) = observe::snapshot(v1::SnapshotRequest {
        menu: Some(v1::MenuRequest {
            scope: v1::MenuScope::Bar.into(),
            title: None,
        }),
        ..good()
    })
    .unwrap();
    assert_eq!(
        (call.target, call.image),
        (ObserveWish::Frontmost, ImageDelivery::None)
    );
    assert_eq!(call.menu, Some(MenuScope::Bar));
}

#[test]
fn launch_and_capture_fields() {
    let launch = |change: fn(&mut v1::LaunchAppRequest)| {
        let mut request = v1::LaunchAppRequest {
            session_id: "s_1".into(),
            tool_call_id: "call_1".into(),
            app: "Notes".into(),
            ..Default::default()
        };
        change(&mut request);
        launch::launch(request)
            .map(|_| ())
            .map_err(|status| fields(&status))
    };
    assert_eq!(launch(|_| {}), Ok(()));
    assert_eq!(launch(|r| r.wait_for_window_ms = Some(60_000)), Ok(()));
    let bad = |field: &str| Err(vec![field.to_owned()]);
    assert_eq!(launch(|r| r.session_id.clear()), bad("session_id"));
    assert_eq!(launch(|r| r.tool_call_id.clear()), bad("tool_call_id"));
    assert_eq!(launch(|r| r.turn = Some("t".repeat(65))), bad("turn"));
    assert_eq!(launch(|r| r.app.clear()), bad("app"));
    assert_eq!(launch(|r| r.app = "a".repeat(257)), bad("app"));
    assert_eq!(
        launch(|r| r.wait_for_window_ms = Some(60_001)),
        bad("wait_for_window_ms")
    );

    let capture = |change: fn(&mut v1::CaptureScreenRequest)| {
        let image = v1::ImageDelivery::Inline.into();
        let mut request = v1::CaptureScreenRequest {
            session_id: "s_1".into(),
            display_id: None,
            image,
        };
        change(&mut request);
        observe::capture(&request)
            .map(|_| ())
            .map_err(|status| fields(&status))
    };
    assert_eq!(capture(|_| {}), Ok(()));
    assert_eq!(capture(|r| r.session_id.clear()), bad("session_id"));
    assert_eq!(
        capture(|r| r.display_id = Some(String::new())),
        bad("display_id")
    );
    assert_eq!(
        capture(|r| r.image = v1::ImageDelivery::None.into()),
        bad("image")
    );
    assert_eq!(capture(|r| r.image = 0), bad("image"));
    assert_eq!(capture(|r| r.image = 9), bad("image"));
}

/// No violation quotes what was sent: it may be what a person typed.
#[test]
fn violations_quote_no_value() {
    let mut request = typing();
    request.action = Some(Action::PressKey(v1::PressKey {
        key: "canary+q".into(),
        modifiers: vec![],
    }));
    focus(&mut request).expect_digest = "canary".into();
    let status = dispatch::dispatch(request).unwrap_err();
    assert!(!format!("{status:?}").contains("canary"));
}

proptest! {
    /// No numbers and no texts make a decoder panic, and a refusal always names a field.
    #[test]
    fn decoders_answer_everything(
        ids in proptest::collection::vec(".{0,300}", 6),
        numbers in proptest::collection::vec(any::<i32>(), 8),
        floats in proptest::collection::vec(any::<f64>(), 5),
        which in 0..4_u8,
    ) {
        let (target, action) = match which {
            0 => (
                Target::Element(v1::ElementTarget { token: ids[2].clone(), expect_digest: ids[3].clone(), strictness: numbers[0], occlusion: numbers[1] }),
                Action::Click(v1::Click { button: numbers[2], count: u32::try_from(numbers[3]).ok() }),
            ),
            1 => (
                Target::Focus(v1::FocusTarget { token: ids[2].clone(), expect_digest: ids[3].clone(), policy: numbers[0] }),
                Action::PressKey(v1::PressKey { key: ids[4].clone(), modifiers: numbers.clone() }),
            ),
            2 => (
                Target::Point(v1::PointTarget { x: floats[0], y: floats[1], start: Some(v1::Point { x: floats[2], y: floats[3] }), space: numbers[0], expect_window_digest: ids[2].clone(), occlusion: numbers[1] }),
                Action::PointerDrag(v1::PointerDrag {}),
            ),
            _ => (
                Target::Element(v1::ElementTarget::default()),
                Action::Scroll(v1::Scroll { direction: numbers[2], pages: Some(floats[4]) }),
            ),
        };
        let request = v1::DispatchRequest {
            session_id: ids[0].clone(),
            tool_call_id: ids[1].clone(),
            turn: Some(ids[5].clone()),
            tier: numbers[4],
            path: Some(numbers[5]),
            target: Some(target),
            action: Some(action),
            ..Default::default()
        };
        if let Err(status) = dispatch::dispatch(request) {
            prop_assert!(!fields(&status).is_empty());
        }
    }
}
