//! `Dispatch`: the anchors of an action, and which action goes with which anchor.

use maka_cu_protocol::{geometry::ImagePoint, ids::SessionId};
use maka_proto::v1::{self, dispatch_request::Target};
use tonic::Status;

use super::{
    action::{self, Decoded},
    observe, scalar,
    violations::Violations,
};
use crate::session::call::{DispatchAction, DispatchCall, ElementAnchor, FocusAnchor, PointAnchor};

/// Decodes the request.
///
/// # Errors
/// INVALID_ARGUMENT naming every bad field.
pub(crate) fn dispatch(request: v1::DispatchRequest) -> Result<(SessionId, DispatchCall), Status> {
    let v1::DispatchRequest {
        session_id,
        tool_call_id,
        turn,
        tier,
        path,
        wished_effect,
        wished_verification,
        snapshot_id,
        observe_after,
        dry_run,
        target,
        action,
    } = request;
    let mut violations = Violations::default();
    let violations_ref = &mut violations;
    let session = scalar::session_id(violations_ref, &session_id);
    let tool_call_id = scalar::tool_call_id(violations_ref, &tool_call_id);
    let turn = scalar::turn(violations_ref, turn);
    let tier = scalar::tier(violations_ref, "tier", tier);
    let tier = scalar::required(violations_ref, "tier", tier);
    let path = scalar::path(violations_ref, "path", path.unwrap_or_default());
    let wished_effect = scalar::effect(
        violations_ref,
        "wished_effect",
        wished_effect.unwrap_or_default(),
    );
    let wished_verification = scalar::verification(
        violations_ref,
        "wished_verification",
        wished_verification.unwrap_or_default(),
    );
    let snapshot_id = scalar::snapshot_id(violations_ref, &snapshot_id);
    let observe_after = observe::observe_after(violations_ref, observe_after);
    let action = match action {
        Some(action) => action::action(violations_ref, action)
            .and_then(|action| anchored(violations_ref, target, action)),
        None => violations_ref.refuse("action", scalar::REQUIRED),
    };
    let decoded = (|| {
        let call = DispatchCall {
            tool_call_id: tool_call_id?,
            turn: turn?,
            tier: tier?,
            path: path?,
            wished_effect: wished_effect?,
            wished_verification: wished_verification?,
            snapshot_id: snapshot_id?,
            action: action?,
            observe_after: observe_after?,
            dry_run,
        };
        Some((session?, call))
    })();
    violations.finish(decoded)
}

/// Joins an action with the target of its kind. No target at all is an empty anchor, which the policy refuses
/// as `anchor_missing`; a target of another kind is a bad request.
fn anchored(
    violations: &mut Violations,
    target: Option<Target>,
    action: Decoded,
) -> Option<DispatchAction> {
    match (action, target) {
        (Decoded::Element(action), None) => Some(DispatchAction::Element {
            anchor: ElementAnchor::default(),
            action,
        }),
        (Decoded::Element(action), Some(Target::Element(target))) => {
            Some(DispatchAction::Element {
                anchor: element(violations, &target)?,
                action,
            })
        }
        (Decoded::Key(action), None) => Some(DispatchAction::Key {
            anchor: FocusAnchor::default(),
            action,
        }),
        (Decoded::Key(action), Some(Target::Focus(target))) => Some(DispatchAction::Key {
            anchor: focus(violations, &target)?,
            action,
        }),
        (Decoded::Point(action), None) => {
            // Without a target the anchor is missing, whatever else is.
            Some(DispatchAction::Point {
                anchor: PointAnchor::default(),
                action,
            })
        }
        (Decoded::Point(action), Some(Target::Point(target))) => {
            let drags = matches!(action, maka_cu_protocol::action::PointAction::Drag);
            Some(DispatchAction::Point {
                anchor: point(violations, &target, drags)?,
                action,
            })
        }
        (Decoded::Scroll { element, .. }, None) => Some(DispatchAction::Element {
            anchor: ElementAnchor::default(),
            action: element,
        }),
        (
            Decoded::Scroll {
                element: action, ..
            },
            Some(Target::Element(target)),
        ) => Some(DispatchAction::Element {
            anchor: element(violations, &target)?,
            action,
        }),
        (Decoded::Scroll { point: action, .. }, Some(Target::Point(target))) => {
            Some(DispatchAction::Point {
                anchor: point(violations, &target, false)?,
                action,
            })
        }
        (Decoded::Element(_), Some(Target::Focus(_) | Target::Point(_))) => {
            violations.refuse("target", "must be `element` for this action")
        }
        (Decoded::Key(_), Some(Target::Element(_) | Target::Point(_))) => {
            violations.refuse("target", "must be `focus` for this action")
        }
        (Decoded::Point(_), Some(Target::Element(_) | Target::Focus(_))) => {
            violations.refuse("target", "must be `point` for this action")
        }
        (Decoded::Scroll { .. }, Some(Target::Focus(_))) => {
            violations.refuse("target", "must be `element` or `point` for this action")
        }
    }
}

fn element(violations: &mut Violations, target: &v1::ElementTarget) -> Option<ElementAnchor> {
    let token = scalar::element_token(violations, "element.token", &target.token);
    let expect_digest = scalar::digest(violations, "element.expect_digest", &target.expect_digest);
    let strictness = scalar::strictness(violations, "element.strictness", target.strictness);
    let occlusion = scalar::occlusion(violations, "element.occlusion", target.occlusion);
    Some(ElementAnchor {
        token: token?,
        expect_digest: expect_digest?,
        strictness: strictness?,
        occlusion: occlusion?,
    })
}

fn focus(violations: &mut Violations, target: &v1::FocusTarget) -> Option<FocusAnchor> {
    let token = scalar::element_token(violations, "focus.token", &target.token);
    let expect_digest = scalar::digest(violations, "focus.expect_digest", &target.expect_digest);
    let policy = scalar::focus_policy(violations, "focus.policy", target.policy);
    Some(FocusAnchor {
        token: token?,
        expect_digest: expect_digest?,
        policy: policy?,
    })
}

fn point(
    violations: &mut Violations,
    target: &v1::PointTarget,
    drags: bool,
) -> Option<PointAnchor> {
    let point = image_point(violations, "point", target.x, target.y);
    let start = match (&target.start, drags) {
        (Some(start), true) => image_point(violations, "point.start", start.x, start.y).map(Some),
        (None, false) => Some(None),
        (None, true) => violations.refuse("point.start", scalar::REQUIRED),
        (Some(_), false) => violations.refuse("point.start", "allowed with `pointer_drag` only"),
    };
    let space = match v1::PointSpace::try_from(target.space) {
        Ok(v1::PointSpace::ImagePx) => Some(()),
        Ok(v1::PointSpace::Unspecified) => violations.refuse("point.space", scalar::REQUIRED),
        Err(_) => violations.refuse("point.space", "not a member of its enum"),
    };
    let expect_window_digest = scalar::digest(
        violations,
        "point.expect_window_digest",
        &target.expect_window_digest,
    );
    let occlusion = scalar::occlusion(violations, "point.occlusion", target.occlusion);
    space?;
    Some(PointAnchor {
        point: Some(point?),
        start: start?,
        expect_window_digest: expect_window_digest?,
        occlusion: occlusion?,
    })
}

fn image_point(violations: &mut Violations, field: &str, x: f64, y: f64) -> Option<ImagePoint> {
    for (axis, number) in [("x", x), ("y", y)] {
        if !number.is_finite() {
            violations.add(format!("{field}.{axis}"), "must be finite");
        }
    }
    ImagePoint::try_new(x, y).ok()
}
