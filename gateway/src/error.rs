//! Everything that makes a call end without a result: one closed enum, each row of the error table of the contract.
//!
//! A [`CallError`] means unusable, unauthorised, never forwarded, or a read that failed. What happened to the world is
//! never an error; that is a [`crate::session::answer::DispatchOutcome`] or
//! [`crate::session::answer::LaunchOutcome`]. This module knows nothing of gRPC: `api::status` turns each row into a
//! status, and a test walks all of them.
//!
//! No text of an executor, of an application or of a request is ever part of an error.

use std::time::Duration;

use maka_cu_host::error::LifecycleCause;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::sets::{LifecycleCode, ReleaseReason, RequestStage};
use maka_policy_host::codes::Refusal;
use thiserror::Error;

use crate::approval::Approval;
use crate::plane::fault::Fault;
use crate::session::answer::DomainFault;
use crate::session::state::SessionState;

/// Why a call has no result.
#[derive(Clone, Debug, Error)]
pub enum CallError {
    /// A value the edge could not judge by itself is out of range, for example above the executor's limit.
    #[error("the field `{field}` is {rule}")]
    Malformed {
        /// Proto field path, for example `max_elements`.
        field: &'static str,
        /// What holds for it, as the rest of the sentence "the field … is".
        rule: &'static str,
    },
    /// No session of that id. It never was, it ended, or it died with an earlier gateway.
    #[error("there is no such session; begin one")]
    SessionUnknown,
    /// The session belongs to another principal.
    #[error("the session belongs to another principal")]
    SessionForeign,
    /// The session ended while the call waited; nothing was sent.
    #[error("the session ended before the call was sent")]
    SessionEnded,
    /// A policy closed the session for new actions; only an operator can open it again, or begin another.
    #[error("the session is quarantined; no action is accepted in it")]
    SessionQuarantined,
    /// The session's status holds the call up; nothing was sent.
    #[error("{}", held_sentence(*.state))]
    Held {
        /// The status.
        state: SessionState,
        /// How long it will hold, when that is known.
        wait: Option<Duration>,
    },
    /// A bound of the gateway is reached.
    #[error("{}", .0.sentence())]
    Limit(Limit),
    /// The idempotency key was used with another request.
    #[error("the tool call id was used with a different request")]
    KeyConflict,
    /// No image of that id, or it went with its frame.
    #[error("there is no such image any more; observe again")]
    ImageUnknown,
    /// The image file is gone or cannot be read. Code `capture_failed`.
    #[error("the image can not be read any more; observe again")]
    ImageUnreadable,
    /// The image is above the frame budget. Code `capture_failed`.
    #[error("the image is larger than 8 MiB; observe without an image")]
    ImageTooLarge,
    /// A file of the decision log cannot be read, by an operator who follows it.
    #[error("the decision log cannot be read; look at its files, and follow it again")]
    LogUnreadable,
    /// The deadline passed. Nothing that acts on the desktop was sent by this call.
    #[error("the deadline passed before an answer came")]
    Deadline {
        /// How far the request had come; absent when it never reached the supervisor.
        stage: Option<RequestStage>,
    },
    /// The gateway is shutting down, or the caller cancelled; nothing that acts on the desktop was sent.
    #[error("cancelled before anything was sent")]
    Cancelled,
    /// The policy refused, or its engine could not answer, or the decision could not be logged. Nothing was sent.
    #[error("{}", .0.sentence)]
    Policy(Box<Refusal>),
    /// A person has to approve, and can be asked. Nothing was sent; the same call may be repeated.
    #[error("{}", .0.refusal.sentence)]
    ApprovalRequired(Box<ApprovalRequired>),
    /// No capture of facts begins.
    #[error("{}", .0.sentence())]
    Capture(CaptureRefusal),
    /// An approval cannot be decided on.
    #[error("{}", .0.sentence())]
    Approval(ApprovalError),
    /// The policy allows it, and the executor has no way to do it as demanded: an action it does not offer, or a tier or
    /// path that this action cannot be held to. Nothing was sent.
    #[error("the executor does not offer this action by this tier and path")]
    Unsupported {
        /// The decision that allowed it.
        decision_id: String,
    },
    /// The policy keeps the answer of a read from the caller.
    #[error("{}", .0.sentence)]
    Withheld(Box<Refusal>),
    /// The executor refused a read.
    #[error("{}", .fault.code.sentence())]
    Refused {
        /// Why.
        fault: DomainFault,
        /// The decision that allowed the read; none for a message of the gateway itself.
        decision_id: Option<String>,
    },
    /// No executor back end was chosen at start; the reason is a closed token.
    #[error("no executor back end is configured or usable")]
    NoBackend {
        /// Closed token, for example `platform_unsupported`.
        reason: &'static str,
    },
    /// The executor is starting and was not ready soon enough, or is ending. Nothing was done.
    #[error("the executor is starting or stopping; nothing was done")]
    Starting {
        /// The generation concerned.
        generation: u64,
    },
    /// The supervisor's own error: not there, lost, of another version, cancelled.
    #[error("{}", lifecycle_sentence(*.code))]
    Lifecycle {
        /// Its code.
        code: LifecycleCode,
        /// How far the request had come.
        stage: RequestStage,
        /// The generation it concerned.
        generation: u64,
        /// Why the generation ended, when it did.
        release_reason: Option<ReleaseReason>,
        /// The supervisor's cause, for logs and details; it holds no application text.
        cause: Box<LifecycleCause>,
        /// The decision that allowed the call, when it was judged.
        decision_id: Option<String>,
    },
    /// A change of policies, or a question about them, is refused. What is active stays active.
    #[error("{}", .0.code.sentence())]
    Policies(Box<Fault>),
    /// The executor rejected the call on the RPC layer: a bug of one of the two ends. The executor keeps running.
    #[error("the executor rejected the request as malformed or out of order")]
    Rpc {
        /// The JSON-RPC number.
        number: i64,
        /// The generation that answered.
        generation: u64,
        /// The decision that allowed the call, when it was judged.
        decision_id: Option<String>,
    },
    /// The executor broke the protocol during a read, and was ended for it.
    #[error("the executor broke the protocol and was stopped")]
    Protocol {
        /// The generation that was ended.
        generation: u64,
        /// The decision that allowed the call, when it was judged.
        decision_id: Option<String>,
    },
}

/// A refusal that an approval helps against.
#[derive(Clone, Debug)]
pub struct ApprovalRequired {
    /// The refusal; its code is that of the first policy that asks.
    pub refusal: Refusal,
    /// What was asked of a person; nothing when the call was a dry run, which asks nobody, or when the policies changed
    /// meanwhile.
    pub approval: Option<Approval>,
}

/// Why an approval, or a quarantine, cannot be decided on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ApprovalError {
    /// There is none of that id, or it is over.
    Unknown,
    /// It was decided already.
    Settled,
    /// It is about what is done in the name of the one who decides.
    Own,
}

impl ApprovalError {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Settled, Self::Own];

    /// The closed reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "approval_unknown",
            Self::Settled => "approval_settled",
            Self::Own => "own_principal",
        }
    }

    /// The fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => {
                "there is no such approval any more; it was used, or what it was for changed"
            }
            Self::Settled => "this approval was decided already",
            Self::Own => {
                "nobody decides on what is done in their own name; another operator has to"
            }
        }
    }
}

impl From<ApprovalError> for CallError {
    fn from(error: ApprovalError) -> Self {
        Self::Approval(error)
    }
}

/// Why no capture of facts begins.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CaptureRefusal {
    /// There is no key to encrypt it to.
    NoKey,
    /// There is one.
    Running,
    /// The decision log takes no record of it.
    Unrecorded,
    /// The system gives no random numbers to encrypt with.
    NoEntropy,
}

impl CaptureRefusal {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::NoKey,
        Self::Running,
        Self::Unrecorded,
        Self::NoEntropy,
    ];

    /// The closed reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoKey => "capture_key_absent",
            Self::Running => "capture_running",
            Self::Unrecorded => "capture_unrecorded",
            Self::NoEntropy => "capture_no_entropy",
        }
    }

    /// The fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoKey => {
                "there is no key to encrypt a capture to; set `audit.capture_key`, and start the gateway again"
            }
            Self::Running => "a capture is running already; wait for its end",
            Self::Unrecorded => {
                "the decision log takes no record of the capture, so it does not begin"
            }
            Self::NoEntropy => "the system gives no random numbers to encrypt a capture with",
        }
    }
}

impl From<CaptureRefusal> for CallError {
    fn from(refusal: CaptureRefusal) -> Self {
        Self::Capture(refusal)
    }
}

/// The bounds of the gateway that a caller can reach. All are RESOURCE_EXHAUSTED.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Limit {
    /// Sessions of one principal.
    SessionsOfPrincipal,
    /// Sessions of the whole gateway.
    SessionsInTotal,
    /// Calls waiting in one session.
    CallsInSession,
    /// Idempotency keys of one session: all are remembered for its life, so that none executes twice.
    KeysInSession,
    /// Snapshot ids remembered in one session.
    SnapshotsInSession,
    /// Images whose bytes are in memory.
    ImagesAtOnce,
    /// Watchers of one principal.
    WatchersOfPrincipal,
    /// Streams of the decision log.
    LogReaders,
}

impl Limit {
    /// Every bound.
    pub const ALL: [Self; 8] = [
        Self::SessionsOfPrincipal,
        Self::SessionsInTotal,
        Self::CallsInSession,
        Self::KeysInSession,
        Self::SnapshotsInSession,
        Self::ImagesAtOnce,
        Self::WatchersOfPrincipal,
        Self::LogReaders,
    ];

    /// The closed reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionsOfPrincipal => "sessions_of_principal",
            Self::SessionsInTotal => "sessions_in_total",
            Self::CallsInSession => "calls_in_session",
            Self::KeysInSession => "keys_in_session",
            Self::SnapshotsInSession => "snapshots_in_session",
            Self::ImagesAtOnce => "images_at_once",
            Self::WatchersOfPrincipal => "watchers_of_principal",
            Self::LogReaders => "log_readers",
        }
    }

    /// The fixed sentence, which says what to do.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::SessionsOfPrincipal => {
                "this principal has as many sessions as it may have; end one"
            }
            Self::SessionsInTotal => {
                "the gateway holds as many sessions as it may; try again later"
            }
            Self::CallsInSession => "too many calls wait in this session; wait for their answers",
            Self::KeysInSession => {
                "this session has used up its tool call ids; end it and begin another"
            }
            Self::SnapshotsInSession => {
                "this session has used up its snapshots; end it and begin another"
            }
            Self::ImagesAtOnce => "too many images are being read; try again later",
            Self::WatchersOfPrincipal => {
                "this principal watches as often as it may; end one of its streams"
            }
            Self::LogReaders => "as many streams follow the decision log as may; end one of them",
        }
    }

    /// Whether the same call can succeed later without the caller changing anything.
    #[must_use]
    pub const fn passes_with_time(self) -> bool {
        match self {
            Self::SessionsInTotal | Self::CallsInSession | Self::ImagesAtOnce => true,
            Self::SessionsOfPrincipal
            | Self::KeysInSession
            | Self::SnapshotsInSession
            | Self::WatchersOfPrincipal
            | Self::LogReaders => false,
        }
    }
}

const fn held_sentence(state: SessionState) -> &'static str {
    match state {
        SessionState::InterventionDebounce => {
            "a person is using pointer or keyboard; wait, then observe again"
        }
        SessionState::ScreenLocked => "the screen is locked; wait for a person to unlock it",
        SessionState::BlockedUrl => {
            "a page is open in this session that must not be acted on; end the session"
        }
        SessionState::UserStopped => "a person stopped this session; end it",
        // These hold nothing up.
        SessionState::Unobserved | SessionState::Active | SessionState::ReobserveRequired => {
            "something happened that no frame knows of; observe again"
        }
    }
}

const fn held_reason(state: SessionState) -> &'static str {
    match state {
        SessionState::InterventionDebounce => "user_intervened",
        SessionState::ScreenLocked => "screen_locked",
        SessionState::BlockedUrl => "blocked_url",
        SessionState::UserStopped => "user_stopped",
        SessionState::Unobserved | SessionState::Active | SessionState::ReobserveRequired => {
            "reobserve_required"
        }
    }
}

const fn lifecycle_sentence(code: LifecycleCode) -> &'static str {
    match code {
        LifecycleCode::ServiceUnavailable => "the executor is not there; nothing was sent",
        LifecycleCode::ServiceMismatch => "the executor is not the one this gateway was built for",
        LifecycleCode::Aborted => "cancelled before anything was sent",
        LifecycleCode::OutcomeUnknown => "the executor was lost before it answered",
    }
}

impl CallError {
    /// The closed reason: the code a caller branches on.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::SessionUnknown => "session_unknown",
            Self::SessionForeign => "session_foreign",
            Self::SessionEnded => "session_ended",
            Self::SessionQuarantined => "session_quarantined",
            Self::Held { state, .. } => held_reason(*state),
            Self::Limit(limit) => limit.as_str(),
            Self::KeyConflict => "tool_call_id_reused",
            Self::ImageUnknown => "image_unknown",
            Self::ImageUnreadable | Self::ImageTooLarge => "capture_failed",
            Self::LogUnreadable => "decision_log_unreadable",
            Self::Deadline { .. } => "deadline",
            Self::Cancelled => "cancelled",
            Self::Unsupported { .. } => DomainCode::UnsupportedAction.as_str(),
            Self::Policy(refusal) | Self::Withheld(refusal) => &refusal.code,
            Self::ApprovalRequired(_) => "approval_required",
            Self::Approval(error) => error.as_str(),
            Self::Capture(refusal) => refusal.as_str(),
            Self::Refused { fault, .. } => fault.code.as_str(),
            Self::NoBackend { reason } => reason,
            Self::Starting { .. } => LifecycleCode::ServiceUnavailable.as_str(),
            Self::Lifecycle { code, .. } => code.as_str(),
            Self::Policies(fault) => fault.code.as_str(),
            Self::Rpc { .. } => "rpc_rejected",
            Self::Protocol { .. } => "protocol_violation",
        }
    }

    /// Which part of the system says so: the ErrorInfo domain.
    #[must_use]
    pub const fn domain(&self) -> ErrorDomain {
        match self {
            Self::Malformed { .. }
            | Self::SessionUnknown
            | Self::SessionForeign
            | Self::SessionEnded
            | Self::SessionQuarantined
            | Self::Held { .. }
            | Self::Limit(_)
            | Self::KeyConflict
            | Self::ImageUnknown
            | Self::ImageUnreadable
            | Self::ImageTooLarge
            | Self::LogUnreadable
            | Self::Deadline { .. }
            | Self::Cancelled
            | Self::Approval(_)
            | Self::Capture(_)
            | Self::Unsupported { .. }
            | Self::Policies(_)
            | Self::NoBackend { .. } => ErrorDomain::Gateway,
            Self::Policy(_) | Self::Withheld(_) | Self::ApprovalRequired(_) => ErrorDomain::Policy,
            Self::Refused { .. } | Self::Protocol { .. } => ErrorDomain::ExecutorProtocol,
            Self::Starting { .. } | Self::Lifecycle { .. } => ErrorDomain::ExecutorLifecycle,
            Self::Rpc { .. } => ErrorDomain::ExecutorRpc,
        }
    }

    /// The decision this call was judged by, when it was.
    #[must_use]
    pub fn decision_id(&self) -> Option<&str> {
        match self {
            Self::Policy(refusal) | Self::Withheld(refusal) => Some(refusal.decision_id.as_str()),
            Self::ApprovalRequired(required) => Some(required.refusal.decision_id.as_str()),
            Self::Unsupported { decision_id } => Some(decision_id),
            Self::Refused { decision_id, .. }
            | Self::Lifecycle { decision_id, .. }
            | Self::Rpc { decision_id, .. }
            | Self::Protocol { decision_id, .. } => decision_id.as_deref(),
            Self::Malformed { .. }
            | Self::SessionUnknown
            | Self::SessionForeign
            | Self::SessionEnded
            | Self::SessionQuarantined
            | Self::Held { .. }
            | Self::Limit(_)
            | Self::KeyConflict
            | Self::ImageUnknown
            | Self::ImageUnreadable
            | Self::ImageTooLarge
            | Self::LogUnreadable
            | Self::Deadline { .. }
            | Self::Cancelled
            | Self::Policies(_)
            | Self::Approval(_)
            | Self::Capture(_)
            | Self::NoBackend { .. }
            | Self::Starting { .. } => None,
        }
    }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        Self::Policies(Box::new(fault))
    }
}

impl CallError {
    /// The operator key that this refusal comes from: with another value of the key the call could be allowed.
    #[must_use]
    pub fn operator_key(&self) -> Option<&'static str> {
        let code = match self {
            Self::ApprovalRequired(required) => &required.refusal.code,
            other => other.reason(),
        };
        match code {
            "global_pointer_forbidden" | "global_pointer_approval" => Some("allow_global_pointer"),
            "synthetic_input_off" => Some("input.synthetic"),
            _ => None,
        }
    }
}

/// The ErrorInfo domains of the contract.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ErrorDomain {
    /// A policy said so.
    Policy,
    /// The gateway itself.
    Gateway,
    /// The executor's supervisor.
    ExecutorLifecycle,
    /// The RPC layer of the executor.
    ExecutorRpc,
    /// An answer of the executor.
    ExecutorProtocol,
}

impl ErrorDomain {
    /// The domain as the wire spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy.maka",
            Self::Gateway => "gateway.maka",
            Self::ExecutorLifecycle => "executor.lifecycle",
            Self::ExecutorRpc => "executor.rpc",
            Self::ExecutorProtocol => "executor.protocol",
        }
    }
}
