//! The handle: what callers hold.

use std::io;
use std::path::Path;
use std::sync::Arc;

use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::json::Violation;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::Envelope;
use maka_cu_protocol::sets::{RequestStage, ServiceState};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::{
    Breach, CallError, LifecycleCause, MakaCuLifecycleError, MakaCuProtocolViolation,
};
use crate::event::{EVENT_CAPACITY, Event, EventStream};
use crate::options::Options;
use crate::pending::{Asker, Deadline, RawAnswer, Request};
use crate::status::{Negotiated, Status};
use crate::supervisor::{Bypass, MAILBOX, Message, Shared, Supervisor};

/// One supervised executor.
///
/// Every method takes `&self`; share it in an [`Arc`]. Dropping it kills the executor and its helpers at once; the orderly way is
/// [`MakaCuService::dispose`].
#[derive(Debug)]
pub struct MakaCuService {
    shared: Arc<Shared>,
    mailbox: mpsc::Sender<Message>,
    status: watch::Receiver<Status>,
    /// Only to subscribe from; never read.
    events: broadcast::Receiver<Event>,
    finished: CancellationToken,
    /// Owns the supervising task: dropping it drops the supervisor, and with it the child.
    _supervisor: JoinSet<()>,
}

/// Why a service could not be made.
#[derive(Debug, Error)]
pub enum NewError {
    /// The thread that forks executors could not be started.
    #[error("the forking thread could not be started")]
    Thread(#[source] io::Error),
}

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The session the request belongs to; it is named in release events and cancelled by [`MakaCuService::clear_session`].
    pub session: Option<SessionId>,
    /// When the request is to be cancelled. Default: the larger of [`Options::timeout`] and what the executor may need by its own
    /// limits. Also counts while the request waits for an executor.
    pub deadline: Option<Instant>,
    /// Cancels the request. Dropping the call does the same.
    pub cancel: CancellationToken,
    /// Refuses the request unless this generation is the one that is ready.
    pub generation: Option<u64>,
}

/// An answer, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T> {
    /// The generation that answered.
    pub generation: u64,
    /// What it answered.
    pub value: T,
}

impl MakaCuService {
    /// A service that has started nothing yet.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Errors
    /// When the system gives no thread.
    #[doc(alias = "createMakaCuService")]
    pub fn try_new(options: Options) -> Result<Self, NewError> {
        let shared = Arc::new(Shared::new(options));
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let (status, watched) = watch::channel(Status::initial());
        let (events, kept) = broadcast::channel(EVENT_CAPACITY);
        let finished = CancellationToken::new();
        let supervisor = Supervisor::new(shared.clone(), inbox, status, events, finished.clone())
            .map_err(NewError::Thread)?;
        let mut task = JoinSet::new();
        task.spawn(supervisor.run());
        Ok(Self {
            shared,
            mailbox,
            status: watched,
            events: kept,
            finished,
            _supervisor: task,
        })
    }

    /// A ready executor. Concurrent callers share one start.
    ///
    /// # Errors
    /// When it cannot be started; the cause says why and the remedy what to do.
    #[doc(alias = "ensureStarted")]
    pub async fn ensure_started(&self) -> Result<Arc<Negotiated>, MakaCuLifecycleError> {
        self.ask_for_start(Message::EnsureStarted).await
    }

    /// Ends the executor (SIGTERM, its grace, SIGKILL) and starts another one, with every attempt available again.
    ///
    /// # Errors
    /// When the new one cannot be started.
    pub async fn restart(&self) -> Result<Arc<Negotiated>, MakaCuLifecycleError> {
        self.ask_for_start(Message::Restart).await
    }

    /// Sends a request and reads the envelope of its answer. A refusal is an answer, not an error.
    ///
    /// The generic methods `host.dispatch` and `host.snapshot` are passed through as they are to an executor that advertises them,
    /// and refused with [`LifecycleCause::NotOffered`], unsent, where it does not: turning them into the specific methods takes a
    /// mirror of the session's frames, which is not kept here.
    ///
    /// # Errors
    /// See [`CallError`]. A call that was cancelled or timed out after it was written still returns what the executor answers
    /// within [`Options::cancel_grace`].
    pub async fn call(
        &self,
        method: Method,
        params: Value,
        options: CallOptions,
    ) -> Result<Answer<Envelope>, CallError> {
        self.exchange_read(method, params, options, Envelope::read)
            .await
    }

    /// Sends a request and reads the `result` of its answer with `reader`. A violation found by it kills the executor.
    ///
    /// # Errors
    /// As [`MakaCuService::call`].
    pub async fn call_typed<T>(
        &self,
        method: Method,
        params: Value,
        options: CallOptions,
        reader: impl FnOnce(&Value) -> Result<T, Violation>,
    ) -> Result<Answer<T>, CallError> {
        self.exchange_read(method, params, options, |result| reader(&result))
            .await
    }

    async fn exchange_read<T>(
        &self,
        method: Method,
        params: Value,
        options: CallOptions,
        reader: impl FnOnce(Value) -> Result<T, Violation>,
    ) -> Result<Answer<T>, CallError> {
        let RawAnswer { generation, result } = self.exchange(method, params, options).await?;
        match reader(result) {
            Ok(value) => Ok(Answer { generation, value }),
            Err(violation) => {
                self.report_violation(generation, method, violation.clone());
                let violation = Breach::Field(violation);
                Err(CallError::Violation(MakaCuProtocolViolation {
                    method: Some(method),
                    generation,
                    violation,
                }))
            }
        }
    }

    /// Reports a violation found outside a reader, for example in an image file. The executor is killed if it still is the one of
    /// `generation`.
    pub fn report_violation(&self, generation: u64, method: Method, violation: Violation) {
        self.shared.bypass.condemn(generation, method, violation);
    }

    /// The current status.
    #[must_use]
    #[doc(alias = "snapshot")]
    pub fn status(&self) -> Status {
        let mut status = self.status.borrow().clone();
        if self.finished.is_cancelled() || self.shared.disposal.is_cancelled() {
            status.state = ServiceState::Disposed;
            status.executor = None;
        }
        status
    }

    /// The status as a value to watch.
    #[must_use]
    pub fn watch_status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// What was agreed on with the executor, while it is ready.
    #[must_use]
    #[doc(alias = "handshake")]
    pub fn negotiated(&self) -> Option<Arc<Negotiated>> {
        self.status().executor
    }

    /// Events from now on.
    #[must_use]
    #[doc(alias = "onRelease")]
    pub fn events(&self) -> EventStream {
        EventStream::new(self.events.resubscribe())
    }

    /// The configured image folder.
    #[must_use]
    pub fn image_dir(&self) -> &Path {
        &self.shared.options.image_dir
    }

    /// The options the service was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Cancels what the session has in flight, and nothing else. Says whether any of it may have been delivered. It does not end
    /// the session at the executor; that is a call like any other.
    #[doc(alias = "clearSession")]
    pub async fn clear_session(&self, session: &SessionId) -> bool {
        let (answer, answered) = oneshot::channel();
        if self
            .mailbox
            .send(Message::ClearSession(session.clone(), answer))
            .await
            .is_err()
        {
            return false;
        }
        answered.await.unwrap_or(false)
    }

    /// Ends the executor and the service, and removes the image folder. Resolves when all of it is done; may be called any number
    /// of times. Every later call is refused.
    pub async fn dispose(&self) {
        self.shared.disposal.cancel();
        self.finished.cancelled().await;
    }

    async fn ask_for_start(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<Arc<Negotiated>, MakaCuLifecycleError>>) -> Message,
    ) -> Result<Arc<Negotiated>, MakaCuLifecycleError> {
        let (started, answer) = oneshot::channel();
        let disposed = || self.refusal(LifecycleCause::Disposed, None);
        self.mailbox
            .send(message(started))
            .await
            .map_err(|_| disposed())?;
        answer.await.unwrap_or_else(|_| Err(disposed()))
    }

    async fn exchange(
        &self,
        method: Method,
        params: Value,
        options: CallOptions,
    ) -> Result<RawAnswer, CallError> {
        let CallOptions {
            session,
            deadline,
            cancel,
            generation,
        } = options;
        let now = Instant::now();
        let deadline = deadline.map_or(Deadline::Negotiated { since: now }, Deadline::At);
        let room_until = match deadline {
            Deadline::At(instant) => instant,
            Deadline::Negotiated { since } => since + self.shared.options.timeout,
        };
        let refuse = |cause| CallError::Lifecycle(self.refusal(cause, Some(method)));
        // A full mailbox makes callers wait, each under its own deadline and cancel.
        let room = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(refuse(LifecycleCause::Cancelled)),
            room = self.mailbox.reserve() => room.map_err(|_| refuse(LifecycleCause::Disposed))?,
            () = sleep_until(room_until) => return Err(refuse(LifecycleCause::DeadlineWhileQueued)),
        };
        let id = self.shared.next_ticket();
        let (reply, mut answer) = oneshot::channel();
        let request = Request::new(method, session, params, Asker::Caller(reply), deadline);
        let mut given_up = GivenUp {
            bypass: &self.shared.bypass,
            id,
            token: cancel.child_token(),
            armed: true,
        };
        room.send(Message::Call {
            id,
            request,
            only: generation,
            cancel: given_up.token.clone(),
        });
        let outcome = tokio::select! {
            biased;
            outcome = &mut answer => outcome,
            () = cancel.cancelled() => {
                given_up.now();
                answer.await
            }
        };
        given_up.armed = false;
        outcome.unwrap_or_else(|_| {
            // The supervisor is gone without an answer, which happens only when the runtime shuts down under it.
            let error = MakaCuLifecycleError::new(
                self.status().generation,
                RequestStage::Delivered,
                Some(method),
                LifecycleCause::Disposed,
            );
            Err(CallError::Lifecycle(error))
        })
    }

    /// An error about something that never got as far as the supervisor.
    fn refusal(&self, cause: LifecycleCause, method: Option<Method>) -> MakaCuLifecycleError {
        MakaCuLifecycleError::new(
            self.status.borrow().generation,
            RequestStage::Queued,
            method,
            cause,
        )
    }
}

/// Cancels a request when its caller asks for it or goes away.
struct GivenUp<'a> {
    bypass: &'a Bypass,
    id: u64,
    token: CancellationToken,
    armed: bool,
}

impl GivenUp<'_> {
    fn now(&mut self) {
        self.armed = false;
        self.token.cancel();
        self.bypass.cancel(self.id);
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.now();
        }
    }
}
