//! The task that owns the executor.
//!
//! One task, one bounded mailbox, one state. Nothing here waits for the child or the disk: whatever takes time is a future the loop
//! selects on. Cancels, violations found by readers and disposal bypass the mailbox, so a full one delays none of them.
//!
//! Reading order: this file has the state and the loop; [`starting`] leads from nothing to `ready`, [`requests`] moves requests
//! through a ready executor, [`ending`] leads from any child to no child.
//!
//! INVARIANTS: a request is answered exactly once; a delivered request is never sent again; a new child is made only after the old
//! one is reaped; the generation only grows.

mod ending;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod races;
mod requests;
mod starting;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::json::Violation;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::sets::{RequestStage, ServiceState};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::budget::Budget;
use crate::error::{LifecycleCause, MakaCuLifecycleError};
use crate::event::Event;
use crate::failure::LastFailure;
use crate::image_dir::Claim;
use crate::options::{Options, RestartPolicy};
use crate::pending::{Pending, Request};
use crate::process::{ExitCause, Forker, Leash};
use crate::status::{Negotiated, Pin, Status};
use crate::streams::{FromChild, Streams};

use ending::{Ending, Then};
use starting::Launch;

/// Messages that may wait for the supervisor; when full, callers wait with their own deadline and cancel.
pub(crate) const MAILBOX: usize = 256;

/// An answer to whoever asked for a ready executor.
pub(crate) type Started = oneshot::Sender<Result<Arc<Negotiated>, MakaCuLifecycleError>>;

/// What callers ask of the supervisor.
#[derive(Debug)]
pub(crate) enum Message {
    /// Send this request. `only` restricts it to one generation; `cancel` tells whether it is still wanted.
    Call {
        id: u64,
        request: Request,
        only: Option<u64>,
        cancel: CancellationToken,
    },
    /// Have a ready executor.
    EnsureStarted(Started),
    /// End the executor and start a new one, with all attempts.
    Restart(Started),
    /// Cancel what a session has in flight; answers whether any of it may have been delivered.
    ClearSession(SessionId, oneshot::Sender<bool>),
}

/// What must not wait behind a full mailbox.
#[derive(Debug, Default)]
pub(crate) struct Bypass {
    urgent: Mutex<Urgent>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Urgent {
    /// Requests their callers gave up. Bounded by the requests in flight.
    cancels: Vec<u64>,
    /// The first violation a reader found in a generation.
    verdict: Option<Verdict>,
}

#[derive(Debug)]
struct Verdict {
    generation: u64,
    method: Method,
    violation: Violation,
}

impl Bypass {
    pub(crate) fn cancel(&self, id: u64) {
        self.with(|urgent| urgent.cancels.push(id));
    }

    pub(crate) fn condemn(&self, generation: u64, method: Method, violation: Violation) {
        self.with(|urgent| {
            // Of several the newest generation counts; the older ones are over anyway.
            if urgent
                .verdict
                .as_ref()
                .is_none_or(|known| known.generation < generation)
            {
                urgent.verdict = Some(Verdict {
                    generation,
                    method,
                    violation,
                });
            }
        });
    }

    fn with(&self, change: impl FnOnce(&mut Urgent)) {
        change(&mut self.urgent.lock().unwrap_or_else(PoisonError::into_inner));
        self.notify.notify_one();
    }

    fn take(&self) -> Urgent {
        std::mem::take(&mut self.urgent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the service and its supervisor share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) bypass: Bypass,
    pub(crate) disposal: CancellationToken,
    next_ticket: AtomicU64,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            bypass: Bypass::default(),
            disposal: CancellationToken::new(),
            next_ticket: AtomicU64::new(1),
        }
    }

    /// A name for a request inside this process.
    pub(crate) fn next_ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }
}

/// A living child, seen from the supervisor.
#[derive(Debug)]
struct Generation {
    number: u64,
    pid: u32,
    image_dir: PathBuf,
    leash: Leash,
    streams: Streams,
    exit: oneshot::Receiver<ExitCause>,
    exited: Option<ExitCause>,
    output_closed: bool,
    writer_idle: bool,
    bad_lines: u8,
}

/// What the service is doing (spec 8.3).
#[derive(Debug)]
enum State {
    /// No child, and none wanted. The next start may not begin before `not_before`.
    Idle { not_before: Option<Instant> },
    /// The next start begins at `until`.
    BackingOff { until: Instant },
    /// The executable and the folders are being prepared and the child is being made.
    Preparing,
    /// The child has been asked who it is.
    Greeting { child: Generation },
    /// The child works. At `stable_at` its attempts are refilled. At `mute_until` it is killed for having closed a pipe.
    Ready {
        child: Generation,
        negotiated: Arc<Negotiated>,
        stable_at: Option<Instant>,
        mute_until: Option<Instant>,
    },
    /// The child is ending or has ended, and is not yet released.
    Ending(Ending),
    /// Given up until somebody asks again.
    Unavailable,
    /// Over.
    Disposed,
}

/// One thing to react to.
#[derive(Debug)]
enum Input {
    Dispose,
    Urgent,
    Launched(Launch),
    Child(FromChild),
    Exited(ExitCause),
    Message(Message),
    Timer,
}

/// The task's state.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    mailbox: mpsc::Receiver<Message>,
    forker: Forker,
    state: State,
    budget: Budget,
    pending: Pending,
    starters: Vec<Started>,
    launches: JoinSet<Launch>,
    generation: u64,
    /// Held from the first start to the end, between executors as well: what they wrote is read until then.
    images: Option<Arc<Claim>>,
    pin: Option<Pin>,
    last_failure: Option<Arc<LastFailure>>,
    disposing: bool,
    status: watch::Sender<Status>,
    events: broadcast::Sender<Event>,
    _finished: DropGuard,
}

impl Supervisor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        mailbox: mpsc::Receiver<Message>,
        status: watch::Sender<Status>,
        events: broadcast::Sender<Event>,
        finished: CancellationToken,
    ) -> io::Result<Self> {
        let budget = Budget::new(
            shared.options.max_restart_attempts,
            shared.options.restart_backoff,
        );
        Ok(Self {
            shared,
            mailbox,
            forker: Forker::start()?,
            state: State::Idle { not_before: None },
            budget,
            pending: Pending::default(),
            starters: Vec::new(),
            launches: JoinSet::new(),
            generation: 0,
            images: None,
            pin: None,
            last_failure: None,
            disposing: false,
            status,
            events,
            _finished: finished.drop_guard(),
        })
    }

    /// Runs until disposed.
    pub(crate) async fn run(mut self) {
        loop {
            let input = self.next().await;
            self.react(input);
            // Before anything is written: a request whose time is over is not sent any more.
            self.expire(Instant::now());
            self.pump();
            self.publish();
            if matches!(self.state, State::Disposed) {
                self.finish().await;
                return;
            }
        }
    }

    /// Waits for the next thing to react to. Every branch is cancel-safe: what it yields is either taken or still there next time.
    async fn next(&mut self) -> Input {
        let alarm = self.next_alarm();
        let child = match &mut self.state {
            State::Greeting { child, .. }
            | State::Ready { child, .. }
            | State::Ending(Ending { child, .. }) => Some(child),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Unavailable
            | State::Disposed => None,
        };
        // Unbiased on purpose: a child that floods its output must starve neither callers nor timers.
        tokio::select! {
            () = self.shared.disposal.cancelled(), if !self.disposing => Input::Dispose,
            () = self.shared.bypass.notify.notified() => Input::Urgent,
            Some(launch) = self.launches.join_next() => Input::Launched(launch.unwrap_or_else(|_| Launch::broken())),
            input = of_child(child) => input,
            Some(message) = self.mailbox.recv() => Input::Message(message),
            () = at(alarm) => Input::Timer,
        }
    }

    fn react(&mut self, input: Input) {
        match input {
            Input::Dispose => self.dispose(),
            Input::Urgent => self.urgent(),
            Input::Launched(launch) => self.launched(launch),
            Input::Child(report) => self.child_said(report),
            Input::Exited(cause) => self.child_exited(cause),
            Input::Message(message) => self.message(message),
            Input::Timer => self.alarms(),
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Call {
                id,
                request,
                only,
                cancel,
            } => self.admit(id, request, only, &cancel),
            Message::EnsureStarted(started) => self.ensure_started(started),
            Message::Restart(started) => self.restart(started),
            Message::ClearSession(session, answer) => {
                let possibly_delivered = self.clear_session(session);
                // The caller may have gone; the session is cleared all the same.
                answer.send(possibly_delivered).ok();
            }
        }
    }

    /// Reacts to what time does to the state.
    fn alarms(&mut self) {
        let now = Instant::now();
        match &mut self.state {
            State::BackingOff { until } if *until <= now => self.begin_start(),
            State::Ready {
                stable_at,
                mute_until,
                ..
            } => {
                if stable_at.is_some_and(|stable_at| stable_at <= now) {
                    *stable_at = None;
                    self.budget.refill();
                    self.last_failure = None;
                }
                if mute_until.is_some_and(|until| until <= now) {
                    self.mute_for_good();
                }
            }
            State::Ending(_) => self.ending_due(now),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Greeting { .. }
            | State::Unavailable
            | State::Disposed => {}
        }
    }

    fn next_alarm(&self) -> Option<Instant> {
        let of_state = match &self.state {
            State::BackingOff { until } => Some(*until),
            State::Ready {
                stable_at,
                mute_until,
                ..
            } => earliest(*stable_at, *mute_until),
            State::Ending(ending) => ending.alarm(),
            State::Idle { .. }
            | State::Preparing
            | State::Greeting { .. }
            | State::Unavailable
            | State::Disposed => None,
        };
        earliest(of_state, self.pending.next_alarm())
    }

    /// The state as the closed set of the protocol has it.
    fn service_state(&self) -> ServiceState {
        if self.disposing {
            return ServiceState::Disposed;
        }
        match &self.state {
            State::Idle { .. } => ServiceState::Idle,
            State::BackingOff { .. } => ServiceState::BackingOff,
            State::Preparing | State::Greeting { .. } => ServiceState::Starting,
            State::Ready { .. } => ServiceState::Ready,
            State::Ending(ending) => match ending.then {
                Then::FailedStart(_) | Then::Restart => ServiceState::Starting,
                Then::Recover
                    if self.shared.options.restart == RestartPolicy::Eager
                        && !self.budget.is_spent() =>
                {
                    ServiceState::BackingOff
                }
                Then::Recover => ServiceState::Idle,
                Then::Dispose => ServiceState::Disposed,
            },
            State::Unavailable => ServiceState::Unavailable,
            State::Disposed => ServiceState::Disposed,
        }
    }

    /// Makes a change visible, once per change.
    fn publish(&mut self) {
        let executor = match &self.state {
            State::Ready { negotiated, .. } => Some(negotiated.clone()),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Greeting { .. }
            | State::Ending(_)
            | State::Unavailable
            | State::Disposed => None,
        };
        let new = Status {
            state: self.service_state(),
            generation: self.generation,
            restart_attempts: self.budget.used(),
            executor,
            pin: self.pin,
            last_failure: self.last_failure.clone(),
        };
        let changed = self.status.send_if_modified(|old| {
            let changed = !old.is_same(&new);
            if changed {
                old.clone_from(&new);
            }
            changed
        });
        if changed {
            tracing::info!(
                state = %new.state,
                generation = new.generation,
                attempts = new.restart_attempts,
                "executor state changed"
            );
            self.tell(Event::Status(new));
        }
    }

    fn tell(&self, event: Event) {
        // An error only says that nobody listens.
        drop(self.events.send(event));
    }

    fn lifecycle(
        &self,
        cause: LifecycleCause,
        stage: RequestStage,
        method: Option<Method>,
    ) -> MakaCuLifecycleError {
        MakaCuLifecycleError::new(self.generation, stage, method, cause)
    }
}

/// The next report of a child, or its exit.
async fn of_child(child: Option<&mut Generation>) -> Input {
    let Some(child) = child else {
        return std::future::pending().await;
    };
    tokio::select! {
        Some(report) = child.streams.inbound.recv() => Input::Child(report),
        exit = &mut child.exit, if child.exited.is_none() => Input::Exited(exit.unwrap_or(ExitCause::Unknown)),
        else => std::future::pending().await,
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
