//! The gateway's and the executor's state.

use maka_cu_host::{
    Status,
    failure::LastFailure,
    status::{Negotiated, Pin, PinKind},
};
use maka_cu_protocol::handshake::{Capabilities, Limits};
use maka_proto::v1;

use super::scalar;

/// Why an executor is not there, and what to do.
#[must_use]
pub(crate) fn failure(last: &LastFailure) -> v1::ExecutorFailure {
    v1::ExecutorFailure {
        code: last.failure.reason().to_owned(),
        advice: last.remedy().to_owned(),
        exit: last.failure.exit().map(|exit| exit.to_string()),
    }
}

/// Who runs; `None` until a handshake succeeded.
#[must_use]
pub(crate) fn executor(status: &Status, back_end: &str) -> Option<v1::Executor> {
    let negotiated = status.executor.as_deref()?;
    Some(introduced(negotiated, status.pin.as_ref(), back_end))
}

/// An executor as its handshake introduced it.
#[must_use]
pub(crate) fn introduced(
    negotiated: &Negotiated,
    file: Option<&Pin>,
    back_end: &str,
) -> v1::Executor {
    let identity = &negotiated.handshake.executor;
    v1::Executor {
        name: identity.name.clone(),
        version: identity.version.clone(),
        commit: identity.commit.clone(),
        pid: negotiated.pid,
        digest: file
            .map(|pin| format!("sha256:{}", pin.digest))
            .unwrap_or_default(),
        pin: file.map_or(v1::DigestPin::Unspecified, pin).into(),
        back_end: back_end.to_owned(),
        capabilities: Some(capabilities(&negotiated.handshake.capabilities)),
        limits: Some(limits(&negotiated.handshake.limits)),
    }
}

const fn pin(pin: &Pin) -> v1::DigestPin {
    match pin.kind {
        PinKind::PrivateCopy => v1::DigestPin::PrivateCopy,
        PinKind::InPlace => v1::DigestPin::InPlace,
    }
}

fn capabilities(capabilities: &Capabilities) -> v1::Capabilities {
    v1::Capabilities {
        element_actions: capabilities
            .element_actions
            .iter()
            .map(|kind| kind.as_str().to_owned())
            .collect(),
        point_actions: capabilities
            .point_actions
            .iter()
            .map(|kind| kind.as_str().to_owned())
            .collect(),
        key_actions: capabilities
            .key_actions
            .iter()
            .map(|kind| kind.as_str().to_owned())
            .collect(),
        image_formats: capabilities
            .image_formats
            .iter()
            .map(|format| scalar::image_format(*format).into())
            .collect(),
        capture_stream: capabilities.capture_stream,
    }
}

const fn limits(limits: &Limits) -> v1::Limits {
    v1::Limits {
        snapshots_per_session: limits.snapshots_per_session,
        snapshot_ttl_ms: limits.snapshot_ttl_ms,
        max_elements: limits.max_elements,
        max_depth: limits.max_depth,
        max_text_chars: limits.max_text_chars,
        max_response_bytes: limits.max_response_bytes,
        settle_ceiling_ms: limits.settle_ceiling_ms,
        shutdown_grace_ms: limits.shutdown_grace_ms,
        image_dir_budget_bytes: limits.image_dir_budget_bytes,
    }
}
