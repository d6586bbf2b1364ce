//! From a parsed dispatch to one executor method with its params, or to the reason why there is none.
//!
//! The published methods `dispatch.*` cannot say which tier or path the caller accepts. A demand is therefore forwarded
//! only when it cannot be missed: because every route of the action satisfies it, or because the executor takes demands
//! through `host.dispatch`, where one path is named if one is left, else the tier alone. Everything else is refused before it
//! is sent; finding out from the answer would be too late.

use std::fmt;

use maka_cu_protocol::action::{ElementAction, PointAction};
use maka_cu_protocol::generic::{GenericAnchor, GenericDispatchParams, GenericPoint, GenericRoute};
use maka_cu_protocol::handshake::Capabilities;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::json::ObjectWriter;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::params::{
    DispatchElementParams, DispatchKeyParams, DispatchPointParams, ObserveAfter,
};
use maka_cu_protocol::sets::{FocusPolicy, OcclusionPolicy, Path, Space, Strictness};
use serde_json::Value;

use super::call::{DispatchAction, DispatchCall, ImageDelivery, ObserveAfterWish};

/// What would be sent.
pub(crate) struct Plan {
    pub(crate) method: Method,
    pub(crate) params: Value,
    /// Whether it may be sent, once a policy allows it.
    pub(crate) verdict: Verdict,
}

impl fmt::Debug for Plan {
    // The params can hold typed text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plan = formatter.debug_struct("Plan");
        plan.field("method", &self.method)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

/// Whether a plan can be carried out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// As it stands.
    Sendable,
    /// The executor does not offer it, or the demanded tier or path cannot be guaranteed.
    Unsupported,
    /// The request names no anchor; a policy refuses it. There are no params to send.
    NoAnchor,
}

/// The routes an action may take, by the executor protocol §3.6 to §3.8. Each path belongs to one tier.
fn routes(action: &DispatchAction) -> &'static [Path] {
    match action {
        DispatchAction::Element { action, .. } => match action {
            ElementAction::Click { .. } => &[Path::AxAction, Path::AxSelect],
            ElementAction::SecondaryAction { .. } => &[Path::AxAction],
            ElementAction::Scroll { .. } => &[Path::AxAction, Path::AxAttribute, Path::CgEventPid],
            ElementAction::SetValue { .. }
            | ElementAction::SelectText { .. }
            | ElementAction::MoveWindow { .. }
            | ElementAction::ResizeWindow { .. }
            | ElementAction::MinimizeWindow => &[Path::AxAttribute],
        },
        DispatchAction::Key { .. } => &[Path::CgEventPid, Path::SkylightPid],
        DispatchAction::Point { action, .. } => match action {
            PointAction::Move => &[Path::CgEventGlobal],
            PointAction::Drag => &[Path::CgEventPid, Path::SkylightPid, Path::CgEventGlobal],
            PointAction::LeftClick { .. }
            | PointAction::RightClick
            | PointAction::MiddleClick
            | PointAction::DoubleClick
            | PointAction::TripleClick
            | PointAction::MouseDown
            | PointAction::MouseUp
            | PointAction::Scroll { .. } => &[Path::CgEventPid, Path::SkylightPid],
        },
    }
}

/// The path the caller insists on. `none` is what a result says when nothing was dispatched; as a demand it means any.
pub(crate) fn demanded(call: &DispatchCall) -> Option<Path> {
    call.path.filter(|path| *path != Path::None)
}

/// Whether the executor advertises the action.
fn offers(capabilities: &Capabilities, action: &DispatchAction) -> bool {
    match action {
        DispatchAction::Element { action, .. } => {
            capabilities.element_actions.contains(&action.kind())
        }
        DispatchAction::Key { action, .. } => capabilities.key_actions.contains(&action.kind()),
        DispatchAction::Point { action, .. } => capabilities.point_actions.contains(&action.kind()),
    }
}

fn takes_demands(capabilities: &Capabilities) -> bool {
    capabilities
        .generic_methods
        .as_ref()
        .is_some_and(|methods| methods.contains(&Method::HostDispatch))
}

/// Plans a dispatch.
pub(crate) fn plan(session: &SessionId, call: &DispatchCall, capabilities: &Capabilities) -> Plan {
    plan_within(session, call, capabilities, None)
}

/// Plans a dispatch that may take these paths alone.
pub(crate) fn plan_within(
    session: &SessionId,
    call: &DispatchCall,
    capabilities: &Capabilities,
    only: Option<&[Path]>,
) -> Plan {
    let demanded = demanded(call);
    let routes = routes(&call.action);
    let wanted: Vec<Path> = routes
        .iter()
        .copied()
        .filter(|path| {
            call.tier.paths().contains(path) && demanded.is_none_or(|demand| demand == *path)
        })
        .collect();
    let permitted = |path: &Path| only.is_none_or(|only| only.contains(path));
    let accepted: Vec<Path> = wanted.iter().copied().filter(permitted).collect();
    let specific = specific(session, call);
    let params = match &specific {
        Some(params) => params.clone(),
        None => unanchored(session, call),
    };
    let plan = |verdict| Plan {
        method: method(&call.action),
        params,
        verdict,
    };
    if specific.is_none() {
        return plan(Verdict::NoAnchor);
    }
    if !offers(capabilities, &call.action) {
        return plan(Verdict::Unsupported);
    }
    match accepted.as_slice() {
        [] => plan(Verdict::Unsupported),
        all if all.len() == routes.len() => plan(Verdict::Sendable),
        some if takes_demands(capabilities) => {
            // Several paths of one tier: the tier is the demand, and the executor may choose among them.
            let path = match some {
                [path] => Some(*path),
                // Less than the tier cannot be demanded but by one path, so it is the first of them.
                [path, ..] if some.len() < wanted.len() => Some(*path),
                _ => None,
            };
            match generic(session, call, path) {
                Some(params) => Plan {
                    method: Method::HostDispatch,
                    params: params.to_value(),
                    verdict: Verdict::Sendable,
                },
                None => plan(Verdict::NoAnchor),
            }
        }
        _ => plan(Verdict::Unsupported),
    }
}

const fn method(action: &DispatchAction) -> Method {
    match action {
        DispatchAction::Element { .. } => Method::DispatchElement,
        DispatchAction::Key { .. } => Method::DispatchKey,
        DispatchAction::Point { .. } => Method::DispatchPoint,
    }
}

fn observe_after(wish: &ObserveAfterWish) -> ObserveAfter {
    ObserveAfter {
        include_image: wish.image != ImageDelivery::None,
        settle: wish.settle,
        menu: wish.menu.clone(),
    }
}

/// The params of the specific method; nothing when an anchor is missing.
fn specific(session: &SessionId, call: &DispatchCall) -> Option<Value> {
    let (session, tool_call_id) = (session.clone(), call.tool_call_id.clone());
    let (snapshot_id, observe_after) = (
        call.snapshot_id.clone()?,
        call.observe_after.as_ref().map(observe_after),
    );
    Some(match &call.action {
        DispatchAction::Element { anchor, action } => DispatchElementParams {
            session,
            snapshot_id,
            tool_call_id,
            element_token: anchor.token.clone()?,
            expect_element_digest: anchor.expect_digest?,
            strictness: anchor.strictness.unwrap_or(Strictness::Element),
            occlusion_policy: anchor.occlusion.unwrap_or(OcclusionPolicy::SameApp),
            action: action.clone(),
            observe_after,
        }
        .to_value(),
        DispatchAction::Key { anchor, action } => DispatchKeyParams {
            session,
            snapshot_id,
            tool_call_id,
            focus_token: anchor.token.clone()?,
            expect_element_digest: anchor.expect_digest?,
            focus_policy: anchor.policy.unwrap_or(FocusPolicy::Require),
            action: action.clone(),
            observe_after,
        }
        .to_value(),
        DispatchAction::Point { anchor, action } => DispatchPointParams {
            session,
            snapshot_id,
            tool_call_id,
            expect_window_digest: anchor.expect_window_digest?,
            point: anchor.point?,
            start_point: anchor.start,
            space: Space::ImagePx,
            occlusion_policy: anchor.occlusion.unwrap_or(OcclusionPolicy::Any),
            action: *action,
            observe_after,
        }
        .to_value(),
    })
}

/// The params of `host.dispatch` with the tier, and the one path if only one is accepted.
fn generic(
    session: &SessionId,
    call: &DispatchCall,
    path: Option<Path>,
) -> Option<GenericDispatchParams> {
    let route = match &call.action {
        DispatchAction::Element { anchor, action } => GenericRoute::Element {
            token: anchor.token.clone()?,
            expect_digest: anchor.expect_digest?,
            strictness: anchor.strictness.unwrap_or(Strictness::Element),
            occlusion: anchor.occlusion.unwrap_or(OcclusionPolicy::SameApp),
            action: action.clone(),
        },
        DispatchAction::Key { anchor, action } => GenericRoute::Key {
            focus_token: anchor.token.clone()?,
            expect_digest: anchor.expect_digest?,
            policy: anchor.policy.unwrap_or(FocusPolicy::Require),
            action: action.clone(),
        },
        DispatchAction::Point { anchor, action } => GenericRoute::Point {
            point: GenericPoint::Image {
                point: anchor.point?,
                start: anchor.start,
            },
            expect_window_digest: Some(anchor.expect_window_digest?),
            occlusion: anchor.occlusion.unwrap_or(OcclusionPolicy::Any),
            action: *action,
        },
    };
    Some(GenericDispatchParams {
        tool_call_id: call.tool_call_id.clone(),
        session: session.clone(),
        tier: call.tier,
        path,
        wished_effect: call.wished_effect,
        wished_verification: call.wished_verification,
        route,
        anchor: GenericAnchor::Snapshot(call.snapshot_id.clone()?),
        observe_after: call.observe_after.as_ref().map(observe_after),
    })
}

/// What there is of a dispatch whose anchor is incomplete: enough to be judged and logged, never sent.
fn unanchored(session: &SessionId, call: &DispatchCall) -> Value {
    let object = ObjectWriter::new()
        .with("session", session)
        .with("snapshotId", &call.snapshot_id)
        .with("toolCallId", &call.tool_call_id);
    match &call.action {
        DispatchAction::Element { anchor, action } => object
            .with("elementToken", &anchor.token)
            .with("expectElementDigest", &anchor.expect_digest)
            .with("action", action),
        DispatchAction::Key { anchor, action } => object
            .with("focusToken", &anchor.token)
            .with("expectElementDigest", &anchor.expect_digest)
            .with("action", action),
        DispatchAction::Point { anchor, action } => object
            .with("expectWindowDigest", &anchor.expect_window_digest)
            .with("point", &anchor.point)
            .with("startPoint", &anchor.start)
            .with("action", action),
    }
    .finish()
}

/// Everything of a dispatch that makes it this request and no other, for the idempotency digest.
pub(crate) fn identity(session: &SessionId, call: &DispatchCall) -> Value {
    let params = specific(session, call).unwrap_or_else(|| unanchored(session, call));
    let image = call
        .observe_after
        .as_ref()
        .map(|wish| image_word(wish.image).to_owned());
    let turn = call.turn.as_ref().map(|turn| turn.as_str().to_owned());
    ObjectWriter::new()
        .word("method", method(&call.action).as_str())
        .with("tier", &call.tier)
        .with("path", &call.path)
        .with("effect", &call.wished_effect)
        .with("verification", &call.wished_verification)
        .with("turn", &turn)
        .with("image", &image)
        .merge(Value::Object(serde_json::Map::from_iter([(
            "params".to_owned(),
            params,
        )])))
        .finish()
}

const fn image_word(delivery: ImageDelivery) -> &'static str {
    match delivery {
        ImageDelivery::None => "none",
        ImageDelivery::Reference => "reference",
        ImageDelivery::Inline => "inline",
    }
}

#[cfg(test)]
mod tests;
