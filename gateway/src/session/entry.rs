//! The entry: every call of a caller, from the check of its session's owner to the answer of the session's task.

use std::sync::Arc;
use std::time::Duration;

use maka_cu_host::status::Negotiated;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::results::lists::{AppEntry, WindowEntry};
use maka_cu_protocol::results::{Answer, Permissions};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::answer::{Decided, DispatchOutcome, DomainFault, Frame, LaunchOutcome, ScreenPicture};
use super::call::{CallContext, CaptureCall, DispatchCall, LaunchCall, SnapshotCall};
use super::caller::Caller;
use super::job::{self, Job, Work};
use super::{Entry, Sessions, core, outcome};
use crate::error::{CallError, Limit};
use crate::forward::Sending;

impl Sessions {
    /// Which permissions the executor holds. Belongs to no session; recorded, never judged, so it has no decision id.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn check_permissions(&self, context: CallContext) -> Result<Permissions, CallError> {
        let cancel = CancellationToken::new();
        let _dropped = cancel.clone().drop_guard();
        let forward = &self.0.parts.forward;
        let check = async {
            forward.ready(&cancel).await.map_err(outcome::not_ready)?;
            let sending = Sending {
                session: None,
                deadline: context.deadline,
                extra: Duration::ZERO,
                cancel: cancel.clone(),
                generation: None,
            };
            let answer = forward.check_permissions(sending).await;
            match answer
                .map_err(|error| outcome::executor_error(&error, None))?
                .value
            {
                Answer::Done(permissions) => Ok(permissions),
                Answer::Refused(refusal) => Err(CallError::Refused {
                    fault: DomainFault::from(&refusal),
                    decision_id: None,
                }),
            }
        };
        until(context.deadline, check).await
    }

    /// Ends the executor (SIGTERM, its grace, SIGKILL) and starts another one with every attempt available again. Whoever
    /// asks while a restart is under way shares it. Belongs to no session; recorded, never judged.
    ///
    /// # Errors
    /// Why there is no ready executor. After the deadline the restart goes on.
    pub async fn restart_executor(
        &self,
        context: CallContext,
    ) -> Result<Arc<Negotiated>, CallError> {
        // A deadline is looked at after its call was polled, and this one would have begun by then.
        if context
            .deadline
            .is_some_and(|deadline| deadline <= Instant::now())
        {
            return Err(CallError::Deadline { stage: None });
        }
        let restarted = async {
            let restarted = self.0.parts.forward.restart().await;
            restarted.map_err(outcome::not_ready)
        };
        until(context.deadline, restarted).await
    }

    /// What runs now.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn list_apps(
        &self,
        caller: &Caller,
        session: &SessionId,
        context: CallContext,
    ) -> Result<Decided<Vec<AppEntry>>, CallError> {
        let entry = self.find(caller, session)?;
        until(context.deadline, ask(&entry, caller, context, Work::Apps)).await
    }

    /// Windows, front to back.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn list_windows(
        &self,
        caller: &Caller,
        session: &SessionId,
        context: CallContext,
    ) -> Result<Decided<Vec<WindowEntry>>, CallError> {
        let entry = self.find(caller, session)?;
        until(
            context.deadline,
            ask(&entry, caller, context, Work::Windows),
        )
        .await
    }

    /// Observes one window.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn snapshot(
        &self,
        caller: &Caller,
        session: &SessionId,
        call: SnapshotCall,
        context: CallContext,
    ) -> Result<Decided<Frame>, CallError> {
        let entry = self.find(caller, session)?;
        until(
            context.deadline,
            ask(&entry, caller, context, |reply| Work::Snapshot(call, reply)),
        )
        .await
    }

    /// A picture of a whole display.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn capture_screen(
        &self,
        caller: &Caller,
        session: &SessionId,
        call: CaptureCall,
        context: CallContext,
    ) -> Result<Decided<ScreenPicture>, CallError> {
        let entry = self.find(caller, session)?;
        until(
            context.deadline,
            ask(&entry, caller, context, |reply| Work::Capture(call, reply)),
        )
        .await
    }

    /// Starts an application. Whatever may have been sent is a result, also when the deadline passes: this call ends
    /// within the executor's cancel grace after it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn launch(
        &self,
        caller: &Caller,
        session: &SessionId,
        call: LaunchCall,
        context: CallContext,
    ) -> Result<LaunchOutcome, CallError> {
        match self.find(caller, session) {
            Ok(entry) => ask(&entry, caller, context, |reply| Work::Launch(call, reply)).await,
            Err(CallError::SessionUnknown) => {
                let request = core::request_of_launch(&self.0.parts.secret, session, &call);
                let key = &call.tool_call_id;
                match self.0.ended.launch(caller, session, key, request) {
                    Err(CallError::SessionUnknown) => {
                        self.0.history.launch(caller, session, &call, request)
                    }
                    known => known,
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Does one action. Whatever may have been sent is a result, also when the deadline passes: this call ends within
    /// the executor's cancel grace after it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn dispatch(
        &self,
        caller: &Caller,
        session: &SessionId,
        call: DispatchCall,
        context: CallContext,
    ) -> Result<DispatchOutcome, CallError> {
        match self.find(caller, session) {
            Ok(entry) => {
                ask(&entry, caller, context, |reply| {
                    Work::Dispatch(Box::new(call), reply)
                })
                .await
            }
            Err(CallError::SessionUnknown) => {
                let request = core::request_of_dispatch(&self.0.parts.secret, session, &call);
                let key = &call.tool_call_id;
                match self.0.ended.dispatch(caller, session, key, request) {
                    Err(CallError::SessionUnknown) => {
                        self.0.history.dispatch(caller, session, &call, request)
                    }
                    known => known,
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Hands a call to the session's task and waits for its answer.
async fn ask<T>(
    entry: &Entry,
    caller: &Caller,
    context: CallContext,
    work: impl FnOnce(job::Reply<T>) -> Work,
) -> Result<T, CallError> {
    let (reply, answer) = oneshot::channel();
    let job = Job {
        caller: caller.clone(),
        deadline: context.deadline,
        connection: context.connection,
        work: work(reply),
        in_flight: entry.shared.enter(),
    };
    entry.mailbox.try_send(job).map_err(|error| match error {
        mpsc::error::TrySendError::Full(_) => CallError::Limit(Limit::CallsInSession),
        mpsc::error::TrySendError::Closed(_) => CallError::SessionEnded,
    })?;
    answer.await.unwrap_or(Err(CallError::SessionEnded))
}

/// A read that must answer at its deadline; leaving it cancels it.
pub(super) async fn until<T>(
    deadline: Option<Instant>,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match deadline {
        None => call.await,
        Some(deadline) => timeout_at(deadline, call)
            .await
            .unwrap_or(Err(CallError::Deadline { stage: None })),
    }
}
