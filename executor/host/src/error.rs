//! The three ways a call can end without an answer, kept apart because they mean three different things.
//!
//! - [`MakaCuLifecycleError`]: about the executor's life. Its stage says whether the request may have had an effect.
//! - [`MakaCuRpcError`]: the executor found the request unusable or failed with it. A bug of one of the two; the executor
//!   lives on.
//! - [`MakaCuProtocolViolation`]: the executor's answer cannot be believed. It has been killed.

use std::sync::Arc;

use maka_cu_protocol::json::Violation;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::rpc::{RpcCode, RpcError};
use maka_cu_protocol::sets::{LifecycleCode, ReleaseReason, RequestStage};
use thiserror::Error;

use crate::failure::{FailureClass, LastFailure};
use crate::process::ExitCause;

/// Why a call has no answer.
#[derive(Debug, Clone, Error)]
#[error(transparent)]
pub enum CallError {
    /// The executor was not there, was lost, or the request was cancelled.
    Lifecycle(#[from] MakaCuLifecycleError),
    /// The executor refused to look at the request.
    Rpc(#[from] MakaCuRpcError),
    /// The answer broke the protocol.
    Violation(#[from] MakaCuProtocolViolation),
}

impl CallError {
    /// Whether the request may have had an effect on the world.
    #[must_use]
    pub fn possibly_delivered(&self) -> bool {
        match self {
            Self::Lifecycle(error) => error.possibly_delivered(),
            Self::Rpc(error) => error.possibly_delivered(),
            // It was answered, so it was read.
            Self::Violation(_) => true,
        }
    }

    /// The generation the request was bound to; 0 when there was none yet.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        match self {
            Self::Lifecycle(error) => error.generation,
            Self::Rpc(error) => error.generation,
            Self::Violation(error) => error.generation,
        }
    }
}

/// Something about the executor's life ended the request.
#[derive(Debug, Clone, Error)]
#[error("{}", sentence(*.code))]
pub struct MakaCuLifecycleError {
    /// What the caller has to know.
    pub code: LifecycleCode,
    /// The generation concerned; 0 before the first.
    pub generation: u64,
    /// How far the request had come. `queued` is a proof that it had no effect.
    pub stage: RequestStage,
    /// The request's method; none when a start was asked for.
    pub method: Option<Method>,
    /// What ended it.
    #[source]
    pub cause: LifecycleCause,
}

const fn sentence(code: LifecycleCode) -> &'static str {
    match code {
        LifecycleCode::ServiceUnavailable => {
            "no executor is available, and the request had no effect"
        }
        LifecycleCode::ServiceMismatch => "the executor is not the one this host was built for",
        LifecycleCode::Aborted => "the request was cancelled before it was sent",
        LifecycleCode::OutcomeUnknown => "the request was sent, and what it did is unknown",
    }
}

impl MakaCuLifecycleError {
    /// The code follows from the stage and the cause.
    pub(crate) fn new(
        generation: u64,
        stage: RequestStage,
        method: Option<Method>,
        cause: LifecycleCause,
    ) -> Self {
        let code = match stage {
            RequestStage::Queued => cause.code_undelivered(),
            RequestStage::Writing | RequestStage::Delivered | RequestStage::Settled => {
                LifecycleCode::OutcomeUnknown
            }
        };
        Self {
            code,
            generation,
            stage,
            method,
            cause,
        }
    }

    /// Whether the request may have had an effect on the world.
    #[must_use]
    pub const fn possibly_delivered(&self) -> bool {
        match self.stage {
            RequestStage::Queued => false,
            RequestStage::Writing | RequestStage::Delivered | RequestStage::Settled => true,
        }
    }

    /// Whether asking again cannot help before a person has acted.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match &self.cause {
            LifecycleCause::Start(last) => match last.failure.class() {
                FailureClass::Fatal | FailureClass::Mismatch => true,
                FailureClass::Retryable => false,
            },
            LifecycleCause::Exhausted { .. }
            | LifecycleCause::Disposed
            | LifecycleCause::NotOffered => true,
            LifecycleCause::Cancelled
            | LifecycleCause::SessionCleared
            | LifecycleCause::DeadlineWhileQueued
            | LifecycleCause::RequestTimeout
            | LifecycleCause::ChildExit(_)
            | LifecycleCause::Violation
            | LifecycleCause::Restarted
            | LifecycleCause::Busy
            | LifecycleCause::WrongGeneration => false,
        }
    }

    /// The release event that belongs to this error, if there is one.
    #[must_use]
    pub const fn release_reason(&self) -> Option<ReleaseReason> {
        match self.cause {
            LifecycleCause::ChildExit(_) | LifecycleCause::Restarted => {
                Some(ReleaseReason::ChildExit)
            }
            LifecycleCause::RequestTimeout => Some(ReleaseReason::RequestTimeout),
            LifecycleCause::Violation => Some(ReleaseReason::ProtocolViolation),
            LifecycleCause::SessionCleared => Some(ReleaseReason::SessionCleared),
            LifecycleCause::Exhausted { .. } => Some(ReleaseReason::RestartExhausted),
            LifecycleCause::Disposed => Some(ReleaseReason::Disposed),
            LifecycleCause::Start(_)
            | LifecycleCause::Cancelled
            | LifecycleCause::DeadlineWhileQueued
            | LifecycleCause::Busy
            | LifecycleCause::NotOffered
            | LifecycleCause::WrongGeneration => None,
        }
    }

    /// What a person can do, when a failed start is the cause.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match &self.cause {
            LifecycleCause::Start(last) | LifecycleCause::Exhausted { last, .. } => {
                Some(last.remedy())
            }
            LifecycleCause::Cancelled
            | LifecycleCause::SessionCleared
            | LifecycleCause::DeadlineWhileQueued
            | LifecycleCause::RequestTimeout
            | LifecycleCause::ChildExit(_)
            | LifecycleCause::Violation
            | LifecycleCause::Disposed
            | LifecycleCause::Restarted
            | LifecycleCause::Busy
            | LifecycleCause::NotOffered
            | LifecycleCause::WrongGeneration => None,
        }
    }
}

/// What ended a request, or kept it from being sent.
#[derive(Debug, Clone, Error)]
pub enum LifecycleCause {
    /// The executor could not be started.
    #[error(transparent)]
    Start(Arc<LastFailure>),
    /// The executor could not be started, and no attempt is left.
    #[error("all {attempts} attempts to start the executor are used up")]
    Exhausted {
        /// Attempts made since the last stable life.
        attempts: u32,
        /// The last failure.
        #[source]
        last: Arc<LastFailure>,
    },
    /// The caller cancelled, or dropped its call.
    #[error("the caller cancelled")]
    Cancelled,
    /// The request's session was cleared while it was queued.
    #[error("its session was cleared")]
    SessionCleared,
    /// The deadline passed before anything was written.
    #[error("its deadline passed while it was queued")]
    DeadlineWhileQueued,
    /// The executor let a deadline or a cancel grace pass and was killed, for this request or another one.
    #[error("the executor did not answer in time and was killed by the host")]
    RequestTimeout,
    /// The executor ended.
    #[error("the executor ended by {0}")]
    ChildExit(ExitCause),
    /// The executor broke the protocol and was killed.
    #[error("the executor broke the protocol and was killed by the host")]
    Violation,
    /// The host is disposed.
    #[error("the host has shut down")]
    Disposed,
    /// An operator restarted the executor.
    #[error("the executor was restarted on request")]
    Restarted,
    /// Too many requests are in flight.
    #[error("too many requests are in flight")]
    Busy,
    /// The request is bound to a generation that is not the one that is ready.
    #[error("the generation it belongs to has ended")]
    WrongGeneration,
    /// The request is of a generic method (spec 9) that the executor's handshake does not advertise.
    #[error("the executor does not offer this method")]
    NotOffered,
}

impl LifecycleCause {
    /// The code of a request that had no effect.
    fn code_undelivered(&self) -> LifecycleCode {
        match self {
            Self::Start(last) | Self::Exhausted { last, .. } => last.failure.code(),
            Self::Cancelled | Self::SessionCleared => LifecycleCode::Aborted,
            Self::NotOffered => LifecycleCode::ServiceMismatch,
            Self::DeadlineWhileQueued
            | Self::RequestTimeout
            | Self::ChildExit(_)
            | Self::Violation
            | Self::Disposed
            | Self::Restarted
            | Self::Busy
            | Self::WrongGeneration => LifecycleCode::ServiceUnavailable,
        }
    }
}

/// The executor found a request unusable, or failed with it (JSON-RPC `error`). It says nothing about the screen, and the
/// executor lives on.
#[derive(Debug, Clone, Error)]
#[error("the executor rejected `{method}` with JSON-RPC error {}", .error.number())]
pub struct MakaCuRpcError {
    /// The rejected method.
    pub method: Method,
    /// The generation that rejected it.
    pub generation: u64,
    /// The error's body. Its message is a token of the protocol; never show a foreign one.
    pub error: RpcError,
}

impl MakaCuRpcError {
    /// Whether the request may have had an effect on the world: an executor can fail in the middle of an action, and
    /// what a number outside the protocol means is not known.
    #[must_use]
    pub fn possibly_delivered(&self) -> bool {
        match self.error.code() {
            // These are said before anything is done.
            Some(
                RpcCode::ParseError
                | RpcCode::InvalidRequest
                | RpcCode::UnknownMethod
                | RpcCode::InvalidParams
                | RpcCode::ProtocolVersionMismatch
                | RpcCode::HandshakeRequired
                | RpcCode::SessionUnknown
                | RpcCode::ShuttingDown,
            ) => false,
            Some(RpcCode::InternalError) | None => true,
        }
    }
}

/// The executor broke the protocol. Its generation is over.
#[derive(Debug, Clone, Error)]
#[error("the executor broke the protocol{}", .method.map(|method| format!(" in its answer to `{method}`")).unwrap_or_default())]
pub struct MakaCuProtocolViolation {
    /// The method whose answer broke it; none for damage to the channel itself.
    pub method: Option<Method>,
    /// The generation that broke it.
    pub generation: u64,
    /// What was wrong.
    #[source]
    pub violation: Breach,
}

impl MakaCuProtocolViolation {
    /// The code callers get: always `service_mismatch`.
    #[must_use]
    pub const fn code(&self) -> LifecycleCode {
        LifecycleCode::ServiceMismatch
    }
}

/// How a protocol was broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Breach {
    /// A field of an answer is wrong.
    #[error(transparent)]
    Field(#[from] Violation),
    /// A line is longer than the negotiated bound.
    #[error("a line is longer than the negotiated bound")]
    Overflow,
    /// Too many lines were no messages.
    #[error("three lines were no messages")]
    BadLines,
    /// Standard output was closed while the process lived on.
    #[error("standard output was closed by a running executor")]
    OutputClosed,
}
