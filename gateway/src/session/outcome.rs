//! Results and errors from what the executor answered, or did not answer.
//!
//! The line that matters runs between "provably not delivered" and everything else: an action that may have been
//! delivered is a result with outcome `unknown`, never an error that a client library would retry.

use maka_cu_host::CallError as ExecutorError;
use maka_cu_host::error::LifecycleCause;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::results::dispatch::Verification;
use maka_cu_protocol::rpc::RpcCode;
use maka_cu_protocol::sets::{Effect, Outcome, Path, ReleaseReason, RequestStage, Tier};

use super::answer::{DispatchOutcome, DomainFault, LaunchOutcome};
use super::call::DispatchCall;
use crate::error::CallError;
use crate::forward::NotReady;

impl From<&Refusal> for DomainFault {
    fn from(refusal: &Refusal) -> Self {
        Self {
            code: refusal.code,
            changed: refusal.detail.changed.clone(),
            would_require: refusal.detail.would_require_path,
            permission: refusal.detail.permission,
        }
    }
}

/// Why nothing was sent: there is no ready executor.
pub(crate) fn not_ready(not_ready: NotReady) -> CallError {
    match not_ready {
        NotReady::NoBackend(reason) => CallError::NoBackend {
            reason: reason.as_str(),
        },
        NotReady::Lifecycle(error) => executor_error(&ExecutorError::Lifecycle(error), None),
        NotReady::Starting { generation } => CallError::Starting { generation },
        NotReady::Cancelled => CallError::Cancelled,
    }
}

/// The error of a read, or of an action that was provably not delivered.
pub(crate) fn executor_error(error: &ExecutorError, decision_id: Option<&str>) -> CallError {
    let decision_id = decision_id.map(str::to_owned);
    match error {
        ExecutorError::Lifecycle(error) => match (&error.cause, error.stage) {
            (LifecycleCause::DeadlineWhileQueued, stage) => {
                CallError::Deadline { stage: Some(stage) }
            }
            (LifecycleCause::Cancelled | LifecycleCause::SessionCleared, RequestStage::Queued) => {
                CallError::Cancelled
            }
            (cause, stage) => CallError::Lifecycle {
                code: error.code,
                stage,
                generation: error.generation,
                release_reason: error.release_reason(),
                cause: Box::new(cause.clone()),
                decision_id,
            },
        },
        // It is ending, and read the request only to say so.
        ExecutorError::Rpc(error) if error.error.code() == Some(RpcCode::ShuttingDown) => {
            CallError::Starting {
                generation: error.generation,
            }
        }
        ExecutorError::Rpc(error) => CallError::Rpc {
            number: error.error.number(),
            generation: error.generation,
            decision_id,
        },
        ExecutorError::Violation(violation) => CallError::Protocol {
            generation: violation.generation,
            decision_id,
        },
    }
}

/// Whether the caller's own cancel is why nothing was sent.
pub(crate) fn was_cancelled(error: &ExecutorError) -> bool {
    match error {
        ExecutorError::Lifecycle(error) => {
            matches!(
                error.cause,
                LifecycleCause::Cancelled | LifecycleCause::SessionCleared
            )
        }
        ExecutorError::Rpc(_) | ExecutorError::Violation(_) => false,
    }
}

/// Why the generation ended, when that is why an outcome is unknown.
pub(crate) fn release_reason(error: &ExecutorError) -> Option<ReleaseReason> {
    match error {
        ExecutorError::Lifecycle(error) => error.release_reason(),
        ExecutorError::Rpc(_) => None,
        ExecutorError::Violation(_) => Some(ReleaseReason::ProtocolViolation),
    }
}

/// A dispatch of which nothing is known but that it failed so.
fn dispatch(
    call: &DispatchCall,
    decision_id: String,
    outcome: Outcome,
    code: DomainCode,
) -> DispatchOutcome {
    DispatchOutcome {
        tool_call_id: call.tool_call_id.clone(),
        outcome,
        tier: call.tier,
        path: Path::None,
        effect: Effect::Unverifiable,
        verification: Verification::NONE,
        settle: None,
        error: Some(DomainFault::of(code)),
        frame: None,
        observation_error: None,
        decision_id,
        resolved_screen_point: None,
        withheld: false,
        release_reason: None,
        dry_run: false,
        replayed: false,
        max_bytes: None,
    }
}

/// Possibly delivered, and no answer that can be believed.
pub(crate) fn dispatch_lost(
    call: &DispatchCall,
    decision_id: String,
    release_reason: Option<ReleaseReason>,
) -> DispatchOutcome {
    DispatchOutcome {
        release_reason,
        ..dispatch(
            call,
            decision_id,
            Outcome::Unknown,
            DomainCode::OutcomeUnknown,
        )
    }
}

/// Cancelled before it was sent: the answer to a caller who repeats the call to learn what became of it.
pub(crate) fn dispatch_cancelled(call: &DispatchCall, decision_id: String) -> DispatchOutcome {
    dispatch(call, decision_id, Outcome::Refused, DomainCode::Aborted)
}

/// Allowed, and not sent because a point of it is on no display, or no pixel of the quoted picture.
pub(crate) fn dispatch_off_screen(call: &DispatchCall, decision_id: String) -> DispatchOutcome {
    dispatch(
        call,
        decision_id,
        Outcome::Refused,
        DomainCode::InvalidPoint,
    )
}

/// Allowed, and not sent because the caller wanted to know no more than that.
pub(crate) fn dispatch_dry(call: &DispatchCall, decision_id: String) -> DispatchOutcome {
    let dry = dispatch(call, decision_id, Outcome::Refused, DomainCode::Aborted);
    DispatchOutcome {
        dry_run: true,
        error: None,
        ..dry
    }
}

/// What the decision log knows about a dispatch of an earlier gateway.
pub(crate) fn dispatch_logged(
    tool_call_id: ToolCallId,
    decision_id: String,
    known: (Outcome, Tier, Path, Effect),
    verification: Verification,
    code: Option<DomainCode>,
    withheld: bool,
) -> DispatchOutcome {
    let (outcome, tier, path, effect) = known;
    DispatchOutcome {
        tool_call_id,
        outcome,
        tier,
        path,
        effect,
        verification,
        settle: None,
        error: code.map(DomainFault::of),
        frame: None,
        observation_error: None,
        decision_id,
        resolved_screen_point: None,
        withheld,
        release_reason: None,
        dry_run: false,
        replayed: true,
        max_bytes: None,
    }
}

/// A launch that ended without a launched application.
pub(crate) fn launch(decision_id: String, outcome: Outcome, error: DomainFault) -> LaunchOutcome {
    LaunchOutcome {
        outcome,
        error: Some(error),
        launched: None,
        decision_id,
        withheld: false,
        release_reason: None,
        replayed: false,
        max_bytes: None,
    }
}

/// Cancelled before it was sent.
pub(crate) fn launch_cancelled(decision_id: String) -> LaunchOutcome {
    launch(
        decision_id,
        Outcome::Refused,
        DomainFault::of(DomainCode::Aborted),
    )
}

/// Possibly delivered, and no answer that can be believed.
pub(crate) fn launch_lost(
    decision_id: String,
    release_reason: Option<ReleaseReason>,
) -> LaunchOutcome {
    let lost = launch(
        decision_id,
        Outcome::Unknown,
        DomainFault::of(DomainCode::OutcomeUnknown),
    );
    LaunchOutcome {
        release_reason,
        ..lost
    }
}

/// What a refusal of `apps.launch` says about the world.
pub(crate) const fn launch_outcome(code: DomainCode) -> Outcome {
    match code {
        // It was started and did not register in time, or nobody can tell.
        DomainCode::Timeout | DomainCode::OutcomeUnknown => Outcome::Unknown,
        // The system was asked and said no.
        DomainCode::DispatchRefused => Outcome::Failed,
        DomainCode::SnapshotUnknown
        | DomainCode::SnapshotExpired
        | DomainCode::SnapshotEvicted
        | DomainCode::SnapshotSpent
        | DomainCode::SnapshotSuperseded
        | DomainCode::ElementUnknown
        | DomainCode::ElementDigestMismatch
        | DomainCode::ElementReleased
        | DomainCode::ProcessReplaced
        | DomainCode::WindowGone
        | DomainCode::AppNotFound
        | DomainCode::ElementChanged
        | DomainCode::WindowChanged
        | DomainCode::FocusChanged
        | DomainCode::WindowOccluded
        | DomainCode::ElementNotActionable
        | DomainCode::ElementDisabled
        | DomainCode::UnsupportedAction
        | DomainCode::NotImplemented
        | DomainCode::PermissionMissing
        | DomainCode::ScreenLocked
        | DomainCode::PhysicalInputActive
        | DomainCode::InvalidPoint
        | DomainCode::CaptureFailed
        | DomainCode::ResponseTooLarge
        | DomainCode::ImageWriteFailed
        | DomainCode::Aborted => Outcome::Refused,
    }
}
