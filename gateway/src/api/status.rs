//! The one table from everything that ends a call without a result to a gRPC status.
//!
//! A status means: unusable, not authorised, never forwarded, or a read that failed. What happened to the world
//! is a message and never a status. Every status that the product makes carries `google.rpc.ErrorInfo`; one
//! without it came from a proxy or a client library. `docs/clients.md` prints this table, and a test compares.

use std::{collections::HashMap, time::Duration};

use maka_cu_host::error::LifecycleCause;
use maka_cu_protocol::{domain::DomainCode, sets::LifecycleCode};
use maka_policy_host::codes::{Refusal, RefusalKind, Retry};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use super::decode::violations::Violations;
use crate::{
    error::{ApprovalError, CallError, CaptureRefusal, ErrorDomain, Limit},
    plane::fault::FaultCode,
    session::{answer::DomainFault, state::SessionState},
};

/// How long a caller should wait before it repeats a call that is refused for a bound.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The same while a session's status holds the call up and nobody knows for how long.
const HELD_DELAY: Duration = Duration::from_secs(1);

/// One line of the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Row {
    /// The status code.
    pub code: Code,
    /// When it makes sense to repeat the call.
    pub retry: Retry,
}

const fn row(code: Code, retry: Retry) -> Row {
    Row { code, retry }
}

/// Where a [`CallError`] stands in the table.
#[must_use]
pub fn row_of(error: &CallError) -> Row {
    match error {
        CallError::Malformed { .. } => MALFORMED,
        CallError::SessionUnknown | CallError::SessionEnded => row(Code::NotFound, Retry::Never),
        CallError::SessionForeign => FORBIDDEN,
        CallError::SessionQuarantined => row(Code::PermissionDenied, Retry::Never),
        CallError::Held { state, .. } => row_of_state(*state),
        CallError::Limit(limit) => row_of_limit(*limit),
        CallError::KeyConflict => row(Code::AlreadyExists, Retry::Never),
        CallError::ImageUnknown => row(Code::NotFound, Retry::AfterObserve),
        CallError::ImageUnreadable | CallError::ImageTooLarge => {
            row(Code::FailedPrecondition, Retry::AfterObserve)
        }
        CallError::LogUnreadable => row(Code::FailedPrecondition, Retry::Never),
        CallError::Deadline { .. } => row(Code::DeadlineExceeded, Retry::AfterDelay),
        CallError::Cancelled => row(Code::Cancelled, Retry::Never),
        CallError::Policy(refusal) | CallError::Withheld(refusal) => {
            row_of_refusal(refusal.kind, refusal.retry)
        }
        CallError::ApprovalRequired(_) => row(Code::FailedPrecondition, Retry::AfterApproval),
        CallError::Approval(error) => row_of_approval(*error),
        CallError::Capture(refusal) => row_of_capture(*refusal),
        CallError::Unsupported { .. } => row(Code::FailedPrecondition, Retry::Never),
        CallError::Policies(fault) => row_of_fault(fault.code),
        CallError::Refused { fault, .. } => row_of_domain(fault.code),
        CallError::NoBackend { .. } | CallError::Starting { .. } => {
            row(Code::Unavailable, Retry::AfterDelay)
        }
        CallError::Lifecycle { code, cause, .. } => row_of_lifecycle(*code, cause),
        // Only a bug of one of the two ends leads here.
        CallError::Rpc { .. } => row(Code::Internal, Retry::Never),
        CallError::Protocol { .. } => row(Code::FailedPrecondition, Retry::Never),
    }
}

/// Where a session's status stands that holds a call up.
const fn row_of_state(state: SessionState) -> Row {
    let retry = match state {
        SessionState::InterventionDebounce | SessionState::ScreenLocked => Retry::AfterDelay,
        SessionState::BlockedUrl | SessionState::UserStopped => Retry::Never,
        SessionState::Unobserved | SessionState::Active | SessionState::ReobserveRequired => {
            Retry::AfterObserve
        }
    };
    row(Code::FailedPrecondition, retry)
}

/// Where a decision stands that cannot be made.
const fn row_of_approval(error: ApprovalError) -> Row {
    match error {
        ApprovalError::Unknown => row(Code::NotFound, Retry::Never),
        ApprovalError::Settled => row(Code::FailedPrecondition, Retry::Never),
        ApprovalError::Own => FORBIDDEN,
    }
}

/// Where a capture stands that does not begin.
const fn row_of_capture(refusal: CaptureRefusal) -> Row {
    match refusal {
        CaptureRefusal::NoKey | CaptureRefusal::Unrecorded | CaptureRefusal::NoEntropy => {
            row(Code::FailedPrecondition, Retry::Never)
        }
        CaptureRefusal::Running => row(Code::ResourceExhausted, Retry::AfterDelay),
    }
}

const MALFORMED: Row = row(Code::InvalidArgument, Retry::Never);
const FORBIDDEN: Row = row(Code::PermissionDenied, Retry::Never);

const fn row_of_limit(limit: Limit) -> Row {
    let retry = if limit.passes_with_time() {
        Retry::AfterDelay
    } else {
        Retry::Never
    };
    row(Code::ResourceExhausted, retry)
}

/// Where a policy's refusal stands: never UNAVAILABLE, which client libraries repeat by themselves.
#[must_use]
pub const fn row_of_refusal(kind: RefusalKind, retry: Retry) -> Row {
    let code = match kind {
        RefusalKind::InvalidFacts => Code::InvalidArgument,
        RefusalKind::StaleFacts | RefusalKind::ApprovalRequired => Code::FailedPrecondition,
        RefusalKind::Denied => Code::PermissionDenied,
        RefusalKind::Overloaded => Code::ResourceExhausted,
    };
    row(code, retry)
}

/// Where a refused change of policies stands, or a refused question about them.
const fn row_of_fault(code: FaultCode) -> Row {
    match code {
        FaultCode::SetUnknown | FaultCode::PolicyUnknown => row(Code::NotFound, Retry::Never),
        FaultCode::GenerationChanged | FaultCode::StoreUnusable | FaultCode::Refused => {
            row(Code::FailedPrecondition, Retry::Never)
        }
        FaultCode::ChangeRunning => row(Code::ResourceExhausted, Retry::AfterDelay),
        FaultCode::StoreFull => row(Code::ResourceExhausted, Retry::Never),
        FaultCode::UploadMismatch | FaultCode::FixtureUnusable => MALFORMED,
        FaultCode::Unrecorded => FORBIDDEN,
    }
}

/// Where an executor's refusal of a read stands.
#[must_use]
pub const fn row_of_domain(code: DomainCode) -> Row {
    match code {
        DomainCode::AppNotFound => row(Code::NotFound, Retry::NewTarget),
        DomainCode::WindowGone => row(Code::NotFound, Retry::AfterObserve),
        DomainCode::Timeout => row(Code::DeadlineExceeded, Retry::AfterDelay),
        DomainCode::Aborted => row(Code::Cancelled, Retry::Never),
        DomainCode::ScreenLocked
        | DomainCode::PhysicalInputActive
        | DomainCode::ImageWriteFailed => row(Code::FailedPrecondition, Retry::AfterDelay),
        DomainCode::PermissionMissing
        | DomainCode::UnsupportedAction
        | DomainCode::NotImplemented
        | DomainCode::ElementNotActionable
        | DomainCode::InvalidPoint
        | DomainCode::ResponseTooLarge
        | DomainCode::DispatchRefused => row(Code::FailedPrecondition, Retry::Never),
        DomainCode::SnapshotUnknown
        | DomainCode::SnapshotExpired
        | DomainCode::SnapshotEvicted
        | DomainCode::SnapshotSpent
        | DomainCode::SnapshotSuperseded
        | DomainCode::ElementUnknown
        | DomainCode::ElementDigestMismatch
        | DomainCode::ElementReleased
        | DomainCode::ProcessReplaced
        | DomainCode::ElementChanged
        | DomainCode::WindowChanged
        | DomainCode::FocusChanged
        | DomainCode::WindowOccluded
        | DomainCode::ElementDisabled
        | DomainCode::CaptureFailed
        | DomainCode::OutcomeUnknown => row(Code::FailedPrecondition, Retry::AfterObserve),
    }
}

/// Where the supervisor's own errors stand. Only reads and calls that were never sent come here: a mutation
/// that was possibly delivered is a result with outcome UNKNOWN.
#[must_use]
pub const fn row_of_lifecycle(code: LifecycleCode, cause: &LifecycleCause) -> Row {
    match (code, cause) {
        (LifecycleCode::ServiceMismatch, _) => row(Code::FailedPrecondition, Retry::Never),
        (_, LifecycleCause::Busy) => row(Code::ResourceExhausted, Retry::AfterDelay),
        // An executor that hangs would hang again at once, so this is not the same as one that died.
        (_, LifecycleCause::DeadlineWhileQueued | LifecycleCause::RequestTimeout) => {
            row(Code::DeadlineExceeded, Retry::AfterDelay)
        }
        (LifecycleCode::ServiceUnavailable, _) => row(Code::Unavailable, Retry::AfterDelay),
        (LifecycleCode::Aborted, _) => row(Code::Cancelled, Retry::Never),
        (LifecycleCode::OutcomeUnknown, _) => row(Code::Aborted, Retry::Now),
    }
}

/// The status of a call that has no result.
#[must_use]
pub fn status_of(error: &CallError) -> Status {
    let row = row_of(error);
    let mut metadata = vec![("retry", row.retry.as_str().to_owned())];
    if let Some(key) = error.operator_key() {
        metadata.push(("operator_key", key.to_owned()));
    }
    if let Some(decision_id) = error.decision_id() {
        metadata.push(("decision_id", decision_id.to_owned()));
    }
    let mut violations = Vec::new();
    match error {
        CallError::Malformed { field, rule } => {
            violations.push(FieldViolation::new(*field, format!("the field is {rule}")));
        }
        CallError::Policy(refusal) | CallError::Withheld(refusal) => {
            metadata.extend(refusal_metadata(refusal));
        }
        CallError::ApprovalRequired(required) => {
            metadata.extend(refusal_metadata(&required.refusal));
            metadata.push(("code", required.refusal.code.clone()));
            if let Some(approval) = &required.approval {
                metadata.push(("approval_id", approval.id.as_str().to_owned()));
                metadata.push(("expires_unix_ms", approval.expires_unix_ms.to_string()));
            }
        }
        CallError::Refused { fault, .. } => metadata.extend(fault_metadata(fault)),
        CallError::Policies(fault) => {
            let detail = fault.detail.map(|detail| ("code", detail.to_owned()));
            let module = fault.module.clone().map(|module| ("module", module));
            let place = Some(fault.place.clone()).filter(|place| !place.is_empty());
            metadata.extend(detail.into_iter().chain(module));
            metadata.extend(place.map(|place| ("place", place)));
        }
        CallError::Lifecycle {
            stage,
            generation,
            release_reason,
            cause,
            ..
        } => {
            metadata.push(("stage", stage.as_str().to_owned()));
            metadata.push(("generation", generation.to_string()));
            if let Some(reason) = release_reason {
                metadata.push(("release_reason", reason.as_str().to_owned()));
            }
            if let LifecycleCause::Start(last) | LifecycleCause::Exhausted { last, .. } = &**cause {
                metadata.push(("failure", last.failure.reason().to_owned()));
                metadata.push(("advice", last.remedy().to_owned()));
                if let Some(exit) = last.failure.exit() {
                    metadata.push(("exit", exit.to_string()));
                }
            }
        }
        CallError::Deadline { stage: Some(stage) } => {
            metadata.push(("stage", stage.as_str().to_owned()))
        }
        CallError::Rpc {
            number, generation, ..
        } => {
            metadata.push(("rpc_code", number.to_string()));
            metadata.push(("generation", generation.to_string()));
        }
        CallError::Protocol { generation, .. } | CallError::Starting { generation } => {
            metadata.push(("generation", generation.to_string()));
        }
        CallError::SessionUnknown
        | CallError::SessionForeign
        | CallError::SessionEnded
        | CallError::SessionQuarantined
        | CallError::Held { .. }
        | CallError::Limit(_)
        | CallError::KeyConflict
        | CallError::ImageUnknown
        | CallError::ImageUnreadable
        | CallError::ImageTooLarge
        | CallError::LogUnreadable
        | CallError::Deadline { stage: None }
        | CallError::Cancelled
        | CallError::Approval(_)
        | CallError::Capture(_)
        | CallError::Unsupported { .. }
        | CallError::NoBackend { .. } => {}
    }
    let delay = if let CallError::Held { wait, .. } = error {
        wait.unwrap_or(HELD_DELAY).max(RETRY_DELAY)
    } else {
        RETRY_DELAY
    };
    build(
        (row, delay),
        error.domain(),
        error.reason(),
        error.to_string(),
        metadata,
        violations,
    )
}

fn refusal_metadata(refusal: &Refusal) -> [(&'static str, String); 2] {
    [
        ("class", refusal.class.as_str().to_owned()),
        ("generation", refusal.generation.to_string()),
    ]
}

fn fault_metadata(fault: &DomainFault) -> Vec<(&'static str, String)> {
    let mut metadata = Vec::new();
    if let Some(permission) = fault.permission {
        metadata.push(("permission", permission.as_str().to_owned()));
    }
    if let Some(path) = fault.would_require {
        metadata.push(("would_require", path.as_str().to_owned()));
    }
    metadata
}

fn build(
    (row, delay): (Row, Duration),
    domain: ErrorDomain,
    reason: &str,
    sentence: String,
    metadata: Vec<(&'static str, String)>,
    violations: Vec<FieldViolation>,
) -> Status {
    let metadata: HashMap<String, String> = metadata
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let mut details = ErrorDetails::with_error_info(reason, domain.as_str(), metadata);
    if row.retry == Retry::AfterDelay {
        details.set_retry_info(Some(delay));
    }
    if !violations.is_empty() {
        details.set_bad_request(violations);
    }
    Status::with_error_details(row.code, sentence, details)
}

/// A status of the edge itself: nothing behind it has seen the call.
fn edge(row: Row, reason: &str, sentence: &str, violations: Vec<FieldViolation>) -> Status {
    let metadata = vec![("retry", row.retry.as_str().to_owned())];
    build(
        (row, RETRY_DELAY),
        ErrorDomain::Gateway,
        reason,
        sentence.to_owned(),
        metadata,
        violations,
    )
}

/// Fields of a request that cannot be used; the executor is untouched.
#[must_use]
pub(crate) fn malformed(violations: Violations) -> Status {
    let fields = violations
        .into_iter()
        .map(|violation| FieldViolation::new(violation.field, violation.rule))
        .collect();
    edge(
        MALFORMED,
        "malformed",
        "the request has fields that cannot be used; see the field violations",
        fields,
    )
}

/// The message is not protobuf of its type, or was cut short.
#[must_use]
pub(crate) fn unreadable() -> Status {
    edge(
        MALFORMED,
        "message_unreadable",
        "the request is not a complete protobuf message of its type",
        Vec::new(),
    )
}

/// The message is larger than any request has to be.
#[must_use]
pub(crate) fn too_large() -> Status {
    edge(
        row(Code::ResourceExhausted, Retry::Never),
        "message_too_large",
        "the request is larger than 256 KiB; send less text in one action",
        Vec::new(),
    )
}

/// Why a caller is not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unauthenticated {
    /// It showed nothing, and is no peer of the Unix socket.
    Missing,
    /// It showed more than one `authorization` header.
    Several,
    /// It showed something that is no bearer token.
    NotBearer,
    /// Nobody has this token.
    UnknownToken,
    /// No principal is configured for this Unix user.
    UnknownUser,
}

impl Unauthenticated {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::Missing,
        Self::Several,
        Self::NotBearer,
        Self::UnknownToken,
        Self::UnknownUser,
    ];

    /// The closed reason.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Missing => "credentials_missing",
            Self::Several => "credentials_ambiguous",
            Self::NotBearer => "credentials_malformed",
            Self::UnknownToken => "token_unknown",
            Self::UnknownUser => "user_unknown",
        }
    }

    /// The fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "no credentials; send `authorization: Bearer <token>`",
            Self::Several => "more than one authorization header; send one",
            Self::NotBearer => {
                "the authorization header is no bearer token; send `authorization: Bearer <token>`"
            }
            Self::UnknownToken => "the token belongs to no principal",
            Self::UnknownUser => {
                "no principal is configured for this user of the socket; send a token"
            }
        }
    }
}

/// The caller is not known.
#[must_use]
pub fn unauthenticated(why: Unauthenticated) -> Status {
    edge(
        row(Code::Unauthenticated, Retry::Never),
        why.reason(),
        why.sentence(),
        Vec::new(),
    )
}

/// The caller's role may not call this method.
#[must_use]
pub fn forbidden() -> Status {
    edge(
        FORBIDDEN,
        "role_not_sufficient",
        "the caller's role may not call this method",
        Vec::new(),
    )
}

/// Nothing is served at this path. Clients of reflection v1 fall back to v1alpha on this code.
#[must_use]
pub fn unimplemented() -> Status {
    edge(
        row(Code::Unimplemented, Retry::Never),
        "method_unknown",
        "no such method is served",
        Vec::new(),
    )
}

#[cfg(test)]
mod tests;
