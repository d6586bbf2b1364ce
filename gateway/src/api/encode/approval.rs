//! Approvals. Everything in them is an id, a number, a word of a closed set or a fixed sentence, but for the name of an
//! application to launch, which is the agent's.

use maka_policy_host::facts::{Path, Tier};
use maka_proto::v1;

use super::scalar;
use crate::approval::{Approval, ApprovalEnd, ApprovalState, Counts, WantedElement};

/// An approval.
#[must_use]
pub(crate) fn approval(approval: &Approval) -> v1::Approval {
    let wanted = &*approval.wanted;
    let (state, decided_by) = match &approval.state {
        ApprovalState::Waiting => (v1::ApprovalState::Waiting, ""),
        ApprovalState::Approved(by) => (v1::ApprovalState::Approved, by.as_str()),
        ApprovalState::Rejected(by) => (v1::ApprovalState::Rejected, by.as_str()),
    };
    v1::Approval {
        approval_id: approval.id.as_str().to_owned(),
        state: state.into(),
        decided_by: decided_by.to_owned(),
        asked_unix_ms: scalar::unix_ms(approval.asked_unix_ms),
        expires_unix_ms: scalar::unix_ms(approval.expires_unix_ms),
        session_id: wanted.session.as_str().to_owned(),
        principal: wanted.principal.as_str().to_owned(),
        tool_call_id: wanted.tool_call_id.clone(),
        turn: wanted.turn.clone(),
        method: wanted.method.to_owned(),
        kind: wanted.kind.clone(),
        text_length: wanted.text_length,
        key: wanted.key.clone(),
        point_image: wanted.point.map(|(x, y)| v1::Point { x, y }),
        launch: wanted.launch.clone(),
        app_id: wanted.app_id.clone(),
        target_window: wanted.window.map(scalar::window),
        snapshot_id: wanted.snapshot_id.clone(),
        window_digest: wanted.window_digest.clone(),
        element: wanted.element.as_ref().map(element),
        tier: wanted.tier.map_or(v1::Tier::Unspecified, tier).into(),
        path: wanted.path.map_or(v1::Path::Unspecified, path).into(),
        reasons: wanted
            .asks
            .iter()
            .map(|ask| v1::ApprovalReason {
                code: ask.code.clone(),
                sentence: ask.sentence.clone(),
            })
            .collect(),
        decision_id: wanted.decision_id.clone(),
        fingerprint: wanted.fingerprint.to_string(),
    }
}

/// What became of approvals.
#[must_use]
pub(crate) const fn counts(counts: Counts) -> v1::ApprovalCounts {
    v1::ApprovalCounts {
        asked: counts.asked,
        approved: counts.approved,
        rejected: counts.rejected,
        used: counts.used,
        expired: counts.expired,
        dropped: counts.dropped,
    }
}

/// Why an approval is over.
#[must_use]
pub(crate) const fn end(end: ApprovalEnd) -> v1::ApprovalEnd {
    match end {
        ApprovalEnd::Used => v1::ApprovalEnd::Used,
        ApprovalEnd::Expired => v1::ApprovalEnd::Expired,
        ApprovalEnd::PolicyChanged => v1::ApprovalEnd::PolicyChanged,
        ApprovalEnd::ExecutorChanged => v1::ApprovalEnd::ExecutorChanged,
        ApprovalEnd::SnapshotChanged => v1::ApprovalEnd::SnapshotChanged,
        ApprovalEnd::Intervened => v1::ApprovalEnd::Intervened,
        ApprovalEnd::SessionEnded => v1::ApprovalEnd::SessionEnded,
    }
}

fn element(element: &WantedElement) -> v1::ApprovalElement {
    v1::ApprovalElement {
        token: element.token.clone(),
        digest: element.digest.clone(),
        role: element.role.clone(),
        secure: element.secure,
        frame_window: element.frame.map(|frame| v1::Rect {
            x: frame.x,
            y: frame.y,
            width: frame.width,
            height: frame.height,
        }),
    }
}

const fn tier(tier: Tier) -> v1::Tier {
    match tier {
        Tier::Ax => v1::Tier::Ax,
        Tier::SemanticBackground => v1::Tier::SemanticBackground,
        Tier::CoordinateBackground => v1::Tier::CoordinateBackground,
    }
}

const fn path(path: Path) -> v1::Path {
    match path {
        Path::AxAction => v1::Path::AxAction,
        Path::AxAttribute => v1::Path::AxAttribute,
        Path::AxSelect => v1::Path::AxSelect,
        Path::CgEventPid => v1::Path::CgEventPid,
        Path::SkylightPid => v1::Path::SkylightPid,
        Path::CgEventGlobal => v1::Path::CgEventGlobal,
        Path::None => v1::Path::None,
    }
}
