//! What happened to a dispatch or a launch. The outcome, the effect and the check travel side by side, so that
//! an `ok` without proof stays distinguishable from a confirmed one.

use maka_cu_protocol::results::Launched;
use maka_proto::v1;

use super::{scalar, snapshot};
use crate::session::answer::{DispatchOutcome, LaunchOutcome};

/// A dispatch.
#[must_use]
pub(crate) fn dispatch(outcome: DispatchOutcome) -> v1::DispatchResult {
    v1::DispatchResult {
        tool_call_id: outcome.tool_call_id.as_str().to_owned(),
        outcome: scalar::outcome(outcome.outcome).into(),
        tier: scalar::tier(outcome.tier).into(),
        path: scalar::path(outcome.path).into(),
        effect: scalar::effect(outcome.effect).into(),
        verification: Some(scalar::verification(outcome.verification)),
        settle: outcome.settle.map(scalar::settle),
        error: outcome.error.as_ref().map(scalar::fault),
        snapshot: outcome.frame.map(snapshot::frame),
        observation_error: outcome.observation_error.as_ref().map(scalar::fault),
        decision_id: outcome.decision_id,
        resolved_screen_point: outcome.resolved_screen_point.map(scalar::screen_point),
        withheld: outcome.withheld,
        release_reason: outcome
            .release_reason
            .map(|reason| scalar::release_reason(reason).into()),
        dry_run: outcome.dry_run,
        replayed: outcome.replayed,
    }
}

/// A launch.
#[must_use]
pub(crate) fn launch(outcome: LaunchOutcome) -> v1::LaunchAppResponse {
    v1::LaunchAppResponse {
        outcome: scalar::outcome(outcome.outcome).into(),
        error: outcome.error.as_ref().map(scalar::fault),
        launched: outcome.launched.as_ref().map(launched),
        decision_id: outcome.decision_id,
        withheld: outcome.withheld,
        release_reason: outcome
            .release_reason
            .map(|reason| scalar::release_reason(reason).into()),
        replayed: outcome.replayed,
    }
}

fn launched(launched: &Launched) -> v1::Launched {
    v1::Launched {
        pid: launched.pid,
        app_id: launched.app_id.as_str().to_owned(),
        name: snapshot::text(launched.name.as_ref()),
        foreground_taken: launched.foreground_taken,
        windows: launched
            .windows
            .iter()
            .map(|window| v1::LaunchedWindow {
                window_id: window.window_id,
                title: snapshot::text(window.title.as_ref()),
            })
            .collect(),
        waited_reason: scalar::waited_reason(launched.waited.reason).into(),
        waited_ms: launched.waited.ms.0,
    }
}
