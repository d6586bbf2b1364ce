use maka_cu_protocol::action::{ClickCount, KeyAction, Pages};
use maka_cu_protocol::geometry::ImagePoint;
use maka_cu_protocol::ids::{Digest, ElementToken, SnapshotId, ToolCallId};
use maka_cu_protocol::sets::{
    Direction, ElementActionKind, KeyActionKind, MouseButton, PointActionKind, SettleMode, Tier,
};
use maka_cu_protocol::text::AppText;

use super::*;
use crate::session::call::{ElementAnchor, FocusAnchor, PointAnchor};

fn element(action: ElementAction) -> DispatchAction {
    let anchor = ElementAnchor {
        token: Some(ElementToken::try_new("el_1").unwrap()),
        expect_digest: Some(Digest::of(b"el")),
        ..ElementAnchor::default()
    };
    DispatchAction::Element { anchor, action }
}

fn click() -> DispatchAction {
    element(ElementAction::Click {
        button: MouseButton::Left,
        count: ClickCount::ONE,
    })
}

fn set_value() -> DispatchAction {
    element(ElementAction::SetValue {
        value: AppText::new("text"),
    })
}

fn scroll() -> DispatchAction {
    element(ElementAction::Scroll {
        direction: Direction::Down,
        pages: Pages::ONE,
    })
}

fn type_text() -> DispatchAction {
    let anchor = FocusAnchor {
        token: Some(ElementToken::try_new("el_1").unwrap()),
        expect_digest: Some(Digest::of(b"el")),
        policy: None,
    };
    DispatchAction::Key {
        anchor,
        action: KeyAction::Type {
            text: AppText::new("text"),
        },
    }
}

fn point(action: PointAction) -> DispatchAction {
    let anchor = PointAnchor {
        point: Some(ImagePoint::try_new(1.0, 2.0).unwrap()),
        expect_window_digest: Some(Digest::of(b"window")),
        ..PointAnchor::default()
    };
    DispatchAction::Point { anchor, action }
}

fn call(tier: Tier, path: Option<Path>, action: DispatchAction) -> DispatchCall {
    DispatchCall {
        tool_call_id: ToolCallId::try_new("call_1").unwrap(),
        turn: None,
        tier,
        path,
        wished_effect: None,
        wished_verification: None,
        snapshot_id: Some(SnapshotId::try_new("snap_1").unwrap()),
        action,
        observe_after: None,
        dry_run: false,
    }
}

fn all() -> Capabilities {
    Capabilities {
        element_actions: ElementActionKind::ALL.to_vec(),
        point_actions: PointActionKind::ALL.to_vec(),
        key_actions: KeyActionKind::ALL.to_vec(),
        ..Capabilities::default()
    }
}

fn generic_too() -> Capabilities {
    Capabilities {
        generic_methods: Some(vec![Method::HostDispatch]),
        ..all()
    }
}

fn session() -> SessionId {
    SessionId::try_new("s_1").unwrap()
}

/// What a policy permits alone is demanded by one path where the executor takes demands, is no demand where the action
/// takes nothing else, and is not sent otherwise.
#[test]
fn permitted_paths_are_sent_or_nothing_is() {
    let plan = |action: DispatchAction, capabilities: &Capabilities, only: &[Path]| {
        let call = call(Tier::Ax, None, action);
        plan_within(&session(), &call, capabilities, Some(only))
    };
    let both = [Path::AxAction, Path::AxSelect];
    let open = plan(click(), &all(), &both);
    assert_eq!(
        (open.method, open.verdict),
        (Method::DispatchElement, Verdict::Sendable)
    );
    let narrow = plan(click(), &generic_too(), &[Path::AxSelect]);
    assert_eq!(
        (narrow.method, narrow.verdict),
        (Method::HostDispatch, Verdict::Sendable)
    );
    assert!(narrow.params.to_string().contains("ax_select"));
    // Of three routes the tier has two; one of these is demanded.
    let narrow = plan(
        scroll(),
        &generic_too(),
        &[Path::AxAttribute, Path::CgEventPid],
    );
    assert!(narrow.params.to_string().contains("ax_attribute"));
    for (capabilities, only) in [(all(), Path::AxAction), (generic_too(), Path::CgEventPid)] {
        let refused = plan(click(), &capabilities, &[only]);
        assert_eq!(refused.verdict, Verdict::Unsupported);
    }
}

/// A demand is forwarded only when no route of the action can miss it.
#[test]
fn demands_are_forwarded_only_when_they_can_be_kept() {
    use Method::{DispatchElement, DispatchKey, DispatchPoint, HostDispatch};
    use Verdict::{Sendable, Unsupported};
    let (ax, coordinate) = (Tier::Ax, Tier::CoordinateBackground);
    // name, tier, path, action; without and with `host.dispatch`
    let rows = [
        (
            "any ax click",
            ax,
            None,
            click(),
            (DispatchElement, Sendable),
            (DispatchElement, Sendable),
        ),
        (
            "none is any",
            ax,
            Some(Path::None),
            click(),
            (DispatchElement, Sendable),
            (DispatchElement, Sendable),
        ),
        (
            "one of two",
            ax,
            Some(Path::AxAction),
            click(),
            (DispatchElement, Unsupported),
            (HostDispatch, Sendable),
        ),
        (
            "no such route",
            ax,
            Some(Path::AxAttribute),
            click(),
            (DispatchElement, Unsupported),
            (DispatchElement, Unsupported),
        ),
        (
            "sole route",
            ax,
            Some(Path::AxAttribute),
            set_value(),
            (DispatchElement, Sendable),
            (DispatchElement, Sendable),
        ),
        (
            "wrong tier",
            coordinate,
            None,
            click(),
            (DispatchElement, Unsupported),
            (DispatchElement, Unsupported),
        ),
        (
            "no path at all",
            Tier::SemanticBackground,
            None,
            click(),
            (DispatchElement, Unsupported),
            (DispatchElement, Unsupported),
        ),
        (
            "two tiers, one accepted",
            ax,
            None,
            scroll(),
            (DispatchElement, Unsupported),
            (HostDispatch, Sendable),
        ),
        (
            "keys",
            coordinate,
            None,
            type_text(),
            (DispatchKey, Sendable),
            (DispatchKey, Sendable),
        ),
        (
            "keys by pid",
            coordinate,
            Some(Path::CgEventPid),
            type_text(),
            (DispatchKey, Unsupported),
            (HostDispatch, Sendable),
        ),
        (
            "keys by ax",
            ax,
            None,
            type_text(),
            (DispatchKey, Unsupported),
            (DispatchKey, Unsupported),
        ),
        (
            "move",
            coordinate,
            None,
            point(PointAction::Move),
            (DispatchPoint, Sendable),
            (DispatchPoint, Sendable),
        ),
        (
            "click by pointer",
            coordinate,
            Some(Path::CgEventGlobal),
            point(PointAction::RightClick),
            (DispatchPoint, Unsupported),
            (DispatchPoint, Unsupported),
        ),
    ];
    for (name, tier, path, action, specific, generic) in rows {
        let call = call(tier, path, action);
        for (capabilities, expected) in [(all(), specific), (generic_too(), generic)] {
            let plan = plan(&session(), &call, &capabilities);
            assert_eq!((plan.method, plan.verdict), expected, "{name}");
        }
    }
}

#[test]
fn what_is_not_advertised_is_not_sent() {
    let click_only = Capabilities {
        element_actions: vec![ElementActionKind::Click],
        ..Capabilities::default()
    };
    let verdict = |tier, action| plan(&session(), &call(tier, None, action), &click_only).verdict;
    assert_eq!(verdict(Tier::Ax, click()), Verdict::Sendable);
    assert_eq!(verdict(Tier::Ax, set_value()), Verdict::Unsupported);
    assert_eq!(
        verdict(Tier::CoordinateBackground, type_text()),
        Verdict::Unsupported
    );
    assert_eq!(
        verdict(Tier::CoordinateBackground, point(PointAction::RightClick)),
        Verdict::Unsupported
    );
}

/// The gateway never fills in an anchor: what the request does not say is not in the params either.
#[test]
fn a_missing_anchor_is_never_made_up() {
    let whole = call(Tier::Ax, None, click());
    let no_snapshot = DispatchCall {
        snapshot_id: None,
        ..whole.clone()
    };
    let bare = ElementAnchor::default();
    let no_target = call(
        Tier::Ax,
        None,
        DispatchAction::Element {
            anchor: bare,
            action: ElementAction::MinimizeWindow,
        },
    );
    let no_digest = call(
        Tier::CoordinateBackground,
        None,
        DispatchAction::Point {
            anchor: PointAnchor::default(),
            action: PointAction::RightClick,
        },
    );
    for (call, absent) in [
        (&no_snapshot, "snapshotId"),
        (&no_target, "elementToken"),
        (&no_digest, "expectWindowDigest"),
    ] {
        let plan = plan(&session(), call, &generic_too());
        assert_eq!(plan.verdict, Verdict::NoAnchor);
        assert!(plan.params.get(absent).is_none(), "{absent}");
    }
}

/// The generic form carries the demand that the specific one cannot.
#[test]
fn the_generic_form_names_the_path() {
    let plan = plan(
        &session(),
        &call(Tier::Ax, Some(Path::AxAction), click()),
        &generic_too(),
    );
    assert_eq!(plan.params["path"], "ax_action");
    assert_eq!(plan.params["tier"], "ax");
    assert_eq!(plan.params["snapshotId"], "snap_1");
}

/// Where several paths of the demanded tier are left, the tier is the demand.
#[test]
fn the_generic_form_demands_the_tier_alone() {
    let plan = plan(&session(), &call(Tier::Ax, None, scroll()), &generic_too());
    assert_eq!(plan.method, Method::HostDispatch);
    assert_eq!(plan.params["tier"], "ax");
    assert!(
        plan.params
            .get("path")
            .is_none_or(serde_json::Value::is_null)
    );
}

/// Every field of a request makes it another request, and the key does not.
#[test]
fn identity_covers_the_whole_request() {
    let base = call(Tier::Ax, None, set_value());
    let wish = ObserveAfterWish {
        image: ImageDelivery::None,
        settle: SettleMode::None,
        menu: None,
    };
    let others = [
        DispatchCall {
            path: Some(Path::AxAttribute),
            ..base.clone()
        },
        DispatchCall {
            snapshot_id: None,
            ..base.clone()
        },
        DispatchCall {
            turn: Some(crate::session::call::Turn::try_new("1").unwrap()),
            ..base.clone()
        },
        DispatchCall {
            observe_after: Some(wish.clone()),
            ..base.clone()
        },
        DispatchCall {
            observe_after: Some(ObserveAfterWish {
                image: ImageDelivery::Inline,
                ..wish
            }),
            ..base.clone()
        },
        DispatchCall {
            action: element(ElementAction::SetValue {
                value: AppText::new("other"),
            }),
            ..base.clone()
        },
        call(Tier::Ax, None, click()),
    ];
    let mut seen = vec![identity(&session(), &base)];
    for other in &others {
        let identity = identity(&session(), other);
        assert!(!seen.contains(&identity), "{other:?}");
        seen.push(identity);
    }
    assert_eq!(identity(&session(), &base.clone()), seen[0]);
}
