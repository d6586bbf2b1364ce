//! What a policy is told: the recorded and the claimed side of each call, in the contract's own types.
//!
//! Judging itself, the combiner, the decision log and permits belong to `maka-policy-host`; this module only translates.
//! The recorded side comes from the gateway's own state and from answers of the executor, the claimed side from the
//! request, and no value crosses from one to the other.

pub(crate) mod actions;
pub(crate) mod standing;
pub(crate) mod words;

use maka_cu_protocol::element::Element;
use maka_cu_protocol::method::PROTOCOL;
use maka_cu_protocol::snapshot::{Snapshot, SnapshotTarget};
use maka_policy_host::facts::{
    Authority, Caller, ElementRow, Rect, SnapshotRow, SnapshotState, Target,
};

use crate::session::call::Turn;
use crate::session::caller::Caller as Principal;

/// Who asks, from the authenticated connection.
pub(crate) fn caller(principal: &Principal, session: &str, turn: Option<&Turn>) -> Caller {
    Caller {
        tenant: principal.policy_set.to_string(),
        orchestrator: principal.principal.as_str().to_owned(),
        session: session.to_owned(),
        turn: turn
            .map(|turn| turn.as_str().to_owned())
            .unwrap_or_default(),
        grants: principal.grants.to_vec(),
    }
}

/// What this gateway itself allowed in the handshake of this generation.
pub(crate) fn authority(
    generation: u64,
    allow_global_pointer: bool,
    synthetic_input: bool,
) -> Authority {
    Authority {
        protocol: PROTOCOL.to_owned(),
        allow_global_pointer,
        compat_input: synthetic_input,
        generation,
        permitted: Authority::pairing_of_maka_cu_2(),
    }
}

/// The window of a snapshot. The protocol names no process start, hence zero: "not known".
pub(crate) fn target(target: &SnapshotTarget) -> Target {
    Target {
        pid: target.pid,
        process_start: 0,
        window_id: target.window_id,
        app_id: target.app_id.as_str().to_owned(),
        page: None,
    }
}

/// An element as policies see it: never its texts.
pub(crate) fn element(element: &Element) -> ElementRow {
    ElementRow {
        token: element.token.as_str().to_owned(),
        digest: element.digest.to_string(),
        role: element.role.as_str().to_owned(),
        actions: element
            .actions
            .iter()
            .map(|verb| verb.as_str().to_owned())
            .collect(),
        enabled: element.enabled,
        secure: element.is_secure(),
        frame: element.frame.map(|frame| Rect {
            x: frame.x(),
            y: frame.y(),
            width: frame.width(),
            height: frame.height(),
        }),
    }
}

/// The row of a snapshot that came with an answer, before the mirror took it in.
pub(crate) fn fresh_row(snapshot: &Snapshot, session: &str, generation: u64) -> SnapshotRow {
    SnapshotRow {
        state: SnapshotState::Live,
        owner_session: session.to_owned(),
        generation,
        target: Some(target(&snapshot.target)),
        window_digest: snapshot.window_digest.to_string(),
        truncated: snapshot.truncated.elements || snapshot.truncated.depth,
        ..SnapshotRow::never_seen(snapshot.snapshot_id.as_str())
    }
}

/// Whether the focus of a snapshot is in a field for secrets.
pub(crate) fn focus_is_secure(snapshot: &Snapshot) -> bool {
    let focused = snapshot
        .focused_element_token
        .as_ref()
        .and_then(|token| snapshot.element(token));
    focused.is_some_and(Element::is_secure)
}
