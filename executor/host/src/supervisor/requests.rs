//! Requests through a ready executor: admission, writing, answers, cancels, deadlines.

use std::time::Duration;

use maka_cu_protocol::handshake::Limits;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::rpc::ResponseBody;
use maka_cu_protocol::sets::{ReleaseReason, RequestStage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ending::{How, Then};
use super::{Message, State, Supervisor, Verdict};
use crate::error::{Breach, CallError, LifecycleCause, MakaCuProtocolViolation, MakaCuRpcError};
use crate::event::{Event, Release};
use crate::pending::{Asker, Cancelled, Deadline, RawAnswer, Request};
use crate::process::ExitCause;
use crate::streams::FromChild;

/// Bad lines that end a generation (spec 8.5).
const BAD_LINES: u8 = 3;

/// Added to what the executor may need by its own limits (design 5.4).
const SLACK: Duration = Duration::from_secs(5);

/// How long a child may live on with its output closed. A child that is exiting closes it a moment before it is gone.
const MUTE: Duration = Duration::from_secs(1);

impl Supervisor {
    pub(super) fn admit(
        &mut self,
        id: u64,
        mut request: Request,
        only: Option<u64>,
        cancel: &CancellationToken,
    ) {
        let ready = match &self.state {
            State::Ready { negotiated, .. } => Some(negotiated.clone()),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Greeting { .. }
            | State::Ending(_)
            | State::Unavailable
            | State::Disposed => None,
        };
        let refusal = if self.disposing {
            Some(LifecycleCause::Disposed)
        } else if cancel.is_cancelled() {
            Some(LifecycleCause::Cancelled)
        } else if only.is_some() && only != ready.as_ref().map(|ready| ready.generation) {
            Some(LifecycleCause::WrongGeneration)
        } else if ready
            .as_ref()
            .is_some_and(|ready| !ready.handshake.capabilities.understands(request.method))
        {
            Some(LifecycleCause::NotOffered)
        } else if self.pending.is_full() {
            Some(LifecycleCause::Busy)
        } else {
            None
        };
        if let Some(cause) = refusal {
            return self.reject(request, cause, RequestStage::Queued);
        }
        request.generation = ready.as_ref().map(|ready| ready.generation);
        let alarm = match request.deadline {
            Deadline::At(instant) => instant,
            Deadline::Negotiated { since } => {
                let limits = ready.as_ref().map(|ready| &ready.handshake.limits);
                since + self.longest(limits)
            }
        };
        self.pending.insert(id, request, alarm);
        if ready.is_none() {
            self.want_executor();
        }
    }

    /// How long a request may take when its caller does not say.
    pub(super) fn longest(&self, limits: Option<&Limits>) -> Duration {
        let timeout = self.shared.options.timeout;
        limits.map_or(timeout, |limits| {
            timeout.max(ceilings(limits).saturating_add(SLACK))
        })
    }

    /// Writes what there is to write, as far as the pipe takes it.
    pub(super) fn pump(&mut self) {
        let child = match &mut self.state {
            State::Greeting { child, .. } | State::Ready { child, .. } => child,
            State::Ending(ending) if ending.still_listens() => &mut ending.child,
            State::Ending(_)
            | State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Unavailable
            | State::Disposed => return,
        };
        while child.writer_idle {
            let Some(line) = self.pending.next_line() else {
                return;
            };
            child.writer_idle = child.streams.hand_over(line);
            if child.writer_idle {
                self.pending.written();
            }
        }
    }

    pub(super) fn child_said(&mut self, report: FromChild) {
        match report {
            FromChild::Response { id, body } => self.answered(id, body),
            FromChild::BadLine => self.bad_line(),
            FromChild::Overflow => self.breach(None, Breach::Overflow),
            FromChild::OutputClosed => self.output_closed(),
            FromChild::Written => {
                self.pending.written();
                if let Some(child) = self.child() {
                    child.writer_idle = true;
                }
            }
            FromChild::InputClosed => self.pipe_closed(),
        }
    }

    fn answered(&mut self, id: u64, body: ResponseBody) {
        if let State::Ending(ending) = &self.state
            && !ending.still_believed()
        {
            return;
        }
        // Unknown, settled, or an answer to something never asked: dropped, uncounted (spec 8.5).
        let Some(id) = self.pending.ticket(id) else {
            return;
        };
        let Some(request) = self.pending.remove(id) else {
            return;
        };
        let Request { method, asker, .. } = request;
        let generation = self.generation;
        let reply = match asker {
            Asker::Greeting => return self.greeted(body),
            Asker::Caller(reply) => reply,
        };
        let outcome = match body {
            ResponseBody::Result(result) => Ok(RawAnswer { generation, result }),
            ResponseBody::Error(error) => {
                tracing::debug!(%method, generation, number = error.number(), "the executor rejected a request");
                Err(CallError::Rpc(MakaCuRpcError {
                    method,
                    generation,
                    error,
                }))
            }
            ResponseBody::Malformed(violation) => {
                let violation = Breach::Field(violation);
                self.breach(Some(method), violation.clone());
                Err(CallError::Violation(MakaCuProtocolViolation {
                    method: Some(method),
                    generation,
                    violation,
                }))
            }
        };
        // A caller that went away had its request cancelled; nobody is left to hear the answer.
        drop(reply.send(outcome));
    }

    fn bad_line(&mut self) {
        if let Some(child) = self.child() {
            child.bad_lines = child.bad_lines.saturating_add(1);
            if child.bad_lines >= BAD_LINES {
                self.breach(None, Breach::BadLines);
            }
        }
    }

    fn output_closed(&mut self) {
        if let Some(child) = self.child() {
            child.output_closed = true;
        }
        self.pipe_closed();
        self.ending_progress();
    }

    /// A child that closes one of its pipes is expected to end by itself, soon. One that greets has a deadline anyway.
    fn pipe_closed(&mut self) {
        if let State::Ready { mute_until, .. } = &mut self.state {
            mute_until.get_or_insert(Instant::now() + MUTE);
        }
    }

    /// It closed a pipe and lives on.
    pub(super) fn mute_for_good(&mut self) {
        if self.child().is_some_and(|child| child.output_closed) {
            return self.breach(None, Breach::OutputClosed);
        }
        // Spec 8.3: a child that takes no more input is as good as ended.
        let cause = LifecycleCause::ChildExit(ExitCause::Unknown);
        self.end(ReleaseReason::ChildExit, cause, How::Kill, Then::Recover);
    }

    /// What bypasses the mailbox.
    pub(super) fn urgent(&mut self) {
        let urgent = self.shared.bypass.take();
        if let Some(Verdict {
            generation,
            method,
            violation,
        }) = urgent.verdict
            && generation == self.generation
        {
            self.breach(Some(method), Breach::Field(violation));
        }
        if urgent
            .cancels
            .iter()
            .any(|&id| self.pending.get(id).is_none())
        {
            // A cancel may overtake its request, which then is still in the mailbox; the cancel token it carries withdraws it there.
            for _ in 0..super::MAILBOX {
                let Ok(message) = self.mailbox.try_recv() else {
                    break;
                };
                self.message(message);
            }
        }
        for id in urgent.cancels {
            self.cancel(id, LifecycleCause::Cancelled);
        }
    }

    /// Never nothing: the cancel has to be out before the kill.
    fn cancel_grace(&self) -> Duration {
        self.shared
            .options
            .cancel_grace
            .max(Duration::from_millis(1))
    }

    fn cancel(&mut self, id: u64, cause: LifecycleCause) -> bool {
        let grace = self.cancel_grace();
        match self.pending.cancel(id, Instant::now(), grace) {
            Cancelled::Withdrawn(request) => {
                self.reject(request, cause, RequestStage::Queued);
                false
            }
            Cancelled::Notified => true,
            Cancelled::Nothing => self.pending.get(id).is_some(),
        }
    }

    /// Reacts to every request whose deadline or grace is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(id) = self.pending.due(now) {
            let grace = self.cancel_grace();
            match self.pending.cancel(id, now, grace) {
                Cancelled::Withdrawn(request) => match request.asker {
                    // The handshake goes out first of all, so only a child that takes nothing at all leads here.
                    Asker::Greeting => self.hello_timed_out(),
                    Asker::Caller(_) => {
                        self.reject(
                            request,
                            LifecycleCause::DeadlineWhileQueued,
                            RequestStage::Queued,
                        );
                    }
                },
                // Its alarm is now the end of the grace.
                Cancelled::Notified => {}
                // It was cancelled before: the grace is over.
                Cancelled::Nothing => self.grace_over(id),
            }
        }
    }

    /// The executor ignored a cancel. The end of its generation answers the request, with everything else that is pending.
    fn grace_over(&mut self, id: u64) {
        self.pending.silence(id);
        match &self.state {
            State::Greeting { .. } => self.hello_timed_out(),
            State::Ready { .. } => {
                tracing::warn!(
                    generation = self.generation,
                    "the executor ignored a cancel and is killed"
                );
                let cause = LifecycleCause::RequestTimeout;
                self.end(
                    ReleaseReason::RequestTimeout,
                    cause,
                    How::Kill,
                    Then::Recover,
                );
            }
            State::Ending(_) => self.hurry(),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Unavailable
            | State::Disposed => {}
        }
    }

    pub(super) fn clear_session(&mut self, session: SessionId) -> bool {
        let ids = self
            .pending
            .ids(|request| request.session.as_ref() == Some(&session));
        let mut outcome_unknown = false;
        for id in ids {
            outcome_unknown |= self.cancel(id, LifecycleCause::SessionCleared);
        }
        self.tell(Event::Released(Release {
            generation: self.generation,
            generation_released: false,
            reason: ReleaseReason::SessionCleared,
            sessions: vec![session],
            outcome_unknown,
        }));
        outcome_unknown
    }

    /// The channel or an answer is broken: the child cannot be believed any more.
    pub(super) fn breach(&mut self, method: Option<Method>, breach: Breach) {
        tracing::error!(
            method = method.map(Method::as_str),
            generation = self.generation,
            %breach,
            "the executor broke the protocol and is killed"
        );
        match &self.state {
            State::Ready { .. } => {
                self.end(
                    ReleaseReason::ProtocolViolation,
                    LifecycleCause::Violation,
                    How::Kill,
                    Then::Recover,
                );
            }
            State::Greeting { .. } => self.greeting_breached(breach),
            State::Ending(_) => self.hurry(),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Unavailable
            | State::Disposed => {}
        }
    }

    /// Answers a request that is out of the table.
    pub(super) fn reject(&self, request: Request, cause: LifecycleCause, stage: RequestStage) {
        if let Asker::Caller(reply) = request.asker {
            let error = self.lifecycle(cause, stage, Some(request.method));
            // Nobody may be left to hear it.
            drop(reply.send(Err(CallError::Lifecycle(error))));
        }
    }

    /// Handles what is still in the mailbox when the service is over.
    pub(super) fn reject_message(&self, message: Message) {
        match message {
            Message::Call { request, .. } => {
                self.reject(request, LifecycleCause::Disposed, RequestStage::Queued)
            }
            Message::EnsureStarted(started) | Message::Restart(started) => {
                drop(started.send(Err(self.lifecycle(
                    LifecycleCause::Disposed,
                    RequestStage::Queued,
                    None,
                ))));
            }
            Message::ClearSession(_, answer) => {
                answer.send(false).ok();
            }
        }
    }
}

/// The longest an executor may need for one request by the limits it announced.
fn ceilings(limits: &Limits) -> Duration {
    /// The protocol's default, for executors that do not announce theirs.
    const WALK_MS: u64 = 6_000;
    let walk = limits.tree_walk_ceiling_ms.unwrap_or(WALK_MS);
    Duration::from_millis(walk.saturating_add(limits.settle_ceiling_ms))
}
