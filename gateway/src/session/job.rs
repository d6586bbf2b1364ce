//! What waits in a session's mailbox: one call, and who wants its answer.

use std::task::{Context, Poll};

use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::results::lists::{AppEntry, WindowEntry};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::{Decided, DispatchOutcome, Frame, LaunchOutcome, ScreenPicture};
use super::call::{CaptureCall, DispatchCall, LaunchCall, SnapshotCall};
use super::caller::Caller;
use super::route;
use super::shared::InFlight;
use crate::error::CallError;

/// The answer goes here. The receiver is dropped when the caller is gone, which cancels the call.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, CallError>>;

/// One call.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) caller: Caller,
    pub(crate) deadline: Option<Instant>,
    pub(crate) connection: Option<CancellationToken>,
    pub(crate) work: Work,
    pub(crate) in_flight: InFlight,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    Apps(Reply<Decided<Vec<AppEntry>>>),
    Windows(Reply<Decided<Vec<WindowEntry>>>),
    Snapshot(SnapshotCall, Reply<Decided<Frame>>),
    Capture(CaptureCall, Reply<Decided<ScreenPicture>>),
    Launch(LaunchCall, Reply<LaunchOutcome>),
    Dispatch(Box<DispatchCall>, Reply<DispatchOutcome>),
    /// A launch whose caller was told that it comes too late: only its key is still to say so.
    LateLaunch(LaunchCall),
    /// A dispatch, likewise.
    LateDispatch(Box<DispatchCall>),
}

/// The call that runs, as far as another one can repeat it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Running<'a> {
    /// Nothing repeats a read.
    Read,
    Launch(&'a LaunchCall),
    Dispatch(&'a DispatchCall),
}

impl Work {
    /// Whether this is the running request again. The same key with another request, or a dry run, is answered for
    /// itself and has no part in the running call.
    pub(crate) fn repeats(&self, session: &SessionId, running: Running<'_>) -> bool {
        match (self, running) {
            (Self::Launch(call, _), Running::Launch(running)) => call == running,
            (Self::Dispatch(call, _), Running::Dispatch(running)) => {
                call.tool_call_id == running.tool_call_id
                    && !call.dry_run
                    && !running.dry_run
                    && route::identity(session, call) == route::identity(session, running)
            }
            (
                Self::Apps(_)
                | Self::Windows(_)
                | Self::Snapshot(..)
                | Self::Capture(..)
                | Self::Launch(..)
                | Self::Dispatch(..)
                | Self::LateLaunch(_)
                | Self::LateDispatch(_),
                Running::Read | Running::Launch(_) | Running::Dispatch(_),
            ) => false,
        }
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        match self {
            Self::Apps(reply) => reply.is_closed(),
            Self::Windows(reply) => reply.is_closed(),
            Self::Snapshot(_, reply) => reply.is_closed(),
            Self::Capture(_, reply) => reply.is_closed(),
            Self::Launch(_, reply) => reply.is_closed(),
            Self::Dispatch(_, reply) => reply.is_closed(),
            Self::LateLaunch(_) | Self::LateDispatch(_) => true,
        }
    }

    /// Ready when nobody waits for the answer any more.
    pub(crate) fn poll_abandoned(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Apps(reply) => reply.poll_closed(context),
            Self::Windows(reply) => reply.poll_closed(context),
            Self::Snapshot(_, reply) => reply.poll_closed(context),
            Self::Capture(_, reply) => reply.poll_closed(context),
            Self::Launch(_, reply) => reply.poll_closed(context),
            Self::Dispatch(_, reply) => reply.poll_closed(context),
            Self::LateLaunch(_) | Self::LateDispatch(_) => Poll::Ready(()),
        }
    }

    /// Answers that the deadline passed before anything was sent. What is left keeps an action's key from acting when
    /// the call is repeated to learn what became of it.
    pub(crate) fn expire(self) -> Option<Self> {
        match self {
            Self::Launch(call, reply) => {
                drop(reply.send(Err(CallError::Deadline { stage: None })));
                Some(Self::LateLaunch(call))
            }
            Self::Dispatch(call, reply) => {
                drop(reply.send(Err(CallError::Deadline { stage: None })));
                Some(Self::LateDispatch(call))
            }
            late @ (Self::LateLaunch(_) | Self::LateDispatch(_)) => Some(late),
            read @ (Self::Apps(_) | Self::Windows(_) | Self::Snapshot(..) | Self::Capture(..)) => {
                read.fail(CallError::Deadline { stage: None });
                None
            }
        }
    }

    /// Answers with an error. A caller that is gone does not hear it.
    pub(crate) fn fail(self, error: CallError) {
        match self {
            Self::Apps(reply) => drop(reply.send(Err(error))),
            Self::Windows(reply) => drop(reply.send(Err(error))),
            Self::Snapshot(_, reply) => drop(reply.send(Err(error))),
            Self::Capture(_, reply) => drop(reply.send(Err(error))),
            Self::Launch(_, reply) => drop(reply.send(Err(error))),
            Self::Dispatch(_, reply) => drop(reply.send(Err(error))),
            Self::LateLaunch(_) | Self::LateDispatch(_) => {}
        }
    }
}
