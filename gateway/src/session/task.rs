//! The task of one session: takes calls from the mailbox, runs one at a time, and hears who gives up.
//!
//! While a call runs, the mailbox is still emptied into a queue, so that a repeated key can be seen and a deadline kept.
//! A call is cancelled when its caller is gone and no queued call repeats it; a repeated call simply runs after the
//! first and finds its outcome. Cancelling never goes through the mailbox: it is the caller's dropped receiver.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use maka_cu_protocol::ids::SessionId;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::answer::EndedSession;
use super::caller::PrincipalName;
use super::core::{Context, Core};
use super::ended::Ended;
use super::held::Held;
use super::job::{Job, Reply, Running, Work};
use super::shared::Shared;
use crate::error::CallError;
use crate::events::Events;
use crate::forward::Forward;

/// Calls that may wait in the mailbox; when it is full, further calls are refused with `calls_in_session`.
pub(crate) const MAILBOX: usize = 16;

/// Calls that may wait behind the running one; when it is full, the mailbox fills.
const QUEUE_MAX: usize = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) core: Core,
    pub(crate) inbox: Inbox,
    pub(crate) idle_ttl: Duration,
    pub(crate) ended: watch::Sender<Option<EndedSession>>,
    /// Who owns the session, and where its keys go when it ends.
    pub(crate) owner: PrincipalName,
    pub(crate) left: Arc<Ended>,
}

/// What a session does next.
#[derive(Debug)]
enum Due {
    Call(Box<Job>),
    /// Let go of a held button.
    LetGo,
    End,
}

/// The calls that wait, and the wish that the session ends.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) id: SessionId,
    pub(crate) mailbox: mpsc::Receiver<Job>,
    pub(crate) queue: VecDeque<Job>,
    pub(crate) end: CancellationToken,
    pub(crate) shared: Arc<Shared>,
    pub(crate) forward: Forward,
    pub(crate) events: Events,
}

impl Task {
    /// Runs until the session is ended or idle for too long. `forget` takes it out of the registry, so that no new call
    /// arrives while it ends.
    pub(crate) async fn run(mut self, forget: impl FnOnce(&SessionId)) {
        loop {
            let pressed = self.core.held().map(|held| Pressed {
                held,
                tried: self.core.release_failed(),
            });
            match self.inbox.next(self.idle_ttl, pressed.as_ref()).await {
                Due::Call(job) => self.work(*job).await,
                Due::LetGo => self.core.release_own().await,
                Due::End => break,
            }
            self.core.publish();
        }
        forget(&self.inbox.id);
        self.inbox.mailbox.close();
        while let Some(job) = self.inbox.queue.pop_front() {
            job.work.fail(CallError::SessionEnded);
        }
        while let Some(job) = self.inbox.mailbox.recv().await {
            job.work.fail(CallError::SessionEnded);
        }
        let keys = self.core.take_keys();
        self.left.keep(self.inbox.id.clone(), self.owner, keys);
        self.core.drop_approvals();
        let ended = self.core.end().await;
        tracing::info!(session_id = %self.inbox.id, "session ended");
        let reason = self.inbox.shared.end_reason();
        self.inbox.events.session_ended(&self.inbox.id, reason);
        self.ended.send_replace(Some(ended));
    }

    async fn work(&mut self, job: Job) {
        let Job {
            caller,
            deadline,
            connection,
            work,
            in_flight,
        } = job;
        let cancel = CancellationToken::new();
        let core = &mut self.core;
        let inbox = &mut self.inbox;
        let context = |turn| Context {
            caller: &caller,
            connection: connection.as_ref(),
            turn,
            deadline,
            cancel: &cancel,
        };
        let is_abandoned = work.is_abandoned();
        match work {
            // Nothing was sent for it, and for an action nothing will be: its key says so.
            Work::Launch(call, _) if is_abandoned => core.abandon_launch(&call),
            Work::Dispatch(call, _) if is_abandoned => core.abandon_dispatch(&call),
            Work::LateLaunch(call) => core.abandon_launch(&call),
            Work::LateDispatch(call) => core.abandon_dispatch(&call),
            Work::Apps(_) | Work::Windows(_) | Work::Snapshot(..) | Work::Capture(..)
                if is_abandoned => {}
            Work::Apps(reply) => {
                inbox
                    .drive(Running::Read, &cancel, reply, core.apps(context(None)))
                    .await
            }
            Work::Windows(reply) => {
                inbox
                    .drive(Running::Read, &cancel, reply, core.windows(context(None)))
                    .await
            }
            Work::Snapshot(call, reply) => {
                inbox
                    .drive(
                        Running::Read,
                        &cancel,
                        reply,
                        Box::pin(core.snapshot(context(None), &call)),
                    )
                    .await;
            }
            Work::Capture(call, reply) => {
                inbox
                    .drive(
                        Running::Read,
                        &cancel,
                        reply,
                        Box::pin(core.capture(context(None), &call)),
                    )
                    .await;
            }
            Work::Launch(call, reply) => {
                let work = Box::pin(core.launch(context(call.turn.as_ref()), &call));
                inbox
                    .drive(Running::Launch(&call), &cancel, reply, work)
                    .await;
            }
            Work::Dispatch(call, reply) => {
                let work = Box::pin(core.dispatch(context(call.turn.as_ref()), &call));
                inbox
                    .drive(Running::Dispatch(&call), &cancel, reply, work)
                    .await;
            }
        }
        drop(in_flight);
    }
}

impl Inbox {
    /// What is to be done next. `pressed` is a button that may be down.
    async fn next(&mut self, idle_ttl: Duration, pressed: Option<&Pressed>) -> Due {
        loop {
            if self.end.is_cancelled() {
                return Due::End;
            }
            if pressed.is_some_and(|pressed| pressed.is_due(&self.shared.stopped, &self.forward)) {
                return Due::LetGo;
            }
            if let Some(job) = self.queue.pop_front() {
                match job.expire(Instant::now()) {
                    Some(job) => return Due::Call(Box::new(job)),
                    None => continue,
                }
            }
            // An image that is being read right now keeps the session; its end counts as a use.
            let is_used = self.shared.calls_in_flight() > 0;
            let idle_at = if is_used {
                Instant::now()
            } else {
                self.shared.touched()
            } + idle_ttl;
            // All are cancel-safe: tokens, a channel's receive and a timer.
            tokio::select! {
                biased;
                () = self.end.cancelled() => return Due::End,
                () = let_go(pressed, &self.shared.stopped, &self.forward) => return Due::LetGo,
                job = self.mailbox.recv() => match job {
                    Some(job) => self.queue.push_back(job),
                    None => return Due::End,
                },
                () = sleep_until(idle_at) => {
                    let is_idle = self.shared.touched() + idle_ttl <= Instant::now();
                    if is_idle && self.shared.calls_in_flight() == 0 {
                        return Due::End;
                    }
                }
            }
        }
    }

    /// Runs a call to its end while serving the mailbox.
    pub(super) async fn drive<T>(
        &mut self,
        running: Running<'_>,
        cancel: &CancellationToken,
        mut reply: Reply<T>,
        work: impl Future<Output = Result<T, CallError>>,
    ) {
        let mut work = pin!(work);
        let answer = loop {
            let has_room = self.queue.len() < QUEUE_MAX;
            let expiry = self.queue.iter().filter_map(|job| job.deadline).min();
            let (id, mailbox) = (&self.id, &mut self.mailbox);
            let (queue, end, stopped) = (&mut self.queue, &self.end, &self.shared.stopped);
            let abandoned = poll_fn(|context| {
                let repeats = queue.iter_mut().filter(|job| job.work.repeats(id, running));
                let wanted = repeats
                    .map(|job| job.work.poll_abandoned(context))
                    .filter(Poll::is_pending)
                    .count();
                if wanted == 0 {
                    reply.poll_closed(context)
                } else {
                    Poll::Pending
                }
            });
            // The call itself is pinned outside the loop; the others are cancel-safe.
            tokio::select! {
                biased;
                answer = &mut work => break answer,
                () = abandoned, if !cancel.is_cancelled() => self.cancel(cancel),
                () = end.cancelled(), if !cancel.is_cancelled() => self.cancel(cancel),
                () = stopped.cancelled(), if !cancel.is_cancelled() => self.cancel(cancel),
                Some(job) = mailbox.recv(), if has_room => self.queue.push_back(job),
                () = at(expiry) => self.expire(),
            }
        };
        // Nobody may be there to hear it: the outcome of an action is kept under its key.
        drop(reply.send(answer));
    }

    /// Cancels what runs; the supervisor sends `$/cancel` and gives the executor its grace.
    fn cancel(&self, cancel: &CancellationToken) {
        cancel.cancel();
        self.forward.note_cancel(&self.id);
    }

    /// Answers queued calls whose deadline passed: nothing was sent for them. An action keeps its place, since its key
    /// belongs to the session, which is busy.
    fn expire(&mut self) {
        let now = Instant::now();
        self.queue = self
            .queue
            .drain(..)
            .filter_map(|job| job.expire(now))
            .collect();
    }
}

impl Job {
    /// What is left to do of a call at this moment; nothing of a read whose deadline passed.
    fn expire(self, now: Instant) -> Option<Self> {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return Some(self);
        }
        self.work.expire().map(|work| Self {
            deadline: None,
            work,
            ..self
        })
    }
}

/// A button that may be down, and the executor that could not let go of it.
#[derive(Debug)]
struct Pressed {
    held: Held,
    tried: u64,
}

impl Pressed {
    /// Whether it must be let go of now: by the executor that pressed, because the session was stopped or the connection
    /// that pressed is gone; by another one, because it is there.
    fn is_due(&self, stopped: &CancellationToken, forward: &Forward) -> bool {
        let Self { held, tried } = self;
        let generation = forward.generation();
        if held.refused || generation == 0 || generation == *tried {
            return false;
        }
        let is_gone = |connection: &CancellationToken| connection.is_cancelled();
        generation != held.generation
            || stopped.is_cancelled()
            || held.connection.as_ref().is_some_and(is_gone)
    }
}

/// Ready when a held button must be let go of; see [`Pressed::is_due`].
async fn let_go(pressed: Option<&Pressed>, stopped: &CancellationToken, forward: &Forward) {
    let (Some(pressed), Some(mut status)) = (pressed, forward.watch_status()) else {
        return pending().await;
    };
    let gone = async {
        match &pressed.held.connection {
            Some(connection) => connection.cancelled().await,
            None => pending().await,
        }
    };
    tokio::pin!(gone);
    let (mut is_stopped, mut is_gone) = (stopped.is_cancelled(), false);
    while !pressed.is_due(stopped, forward) {
        // All are cancel-safe. What has happened once is not waited for again.
        tokio::select! {
            () = stopped.cancelled(), if !is_stopped => is_stopped = true,
            () = &mut gone, if !is_gone => is_gone = true,
            changed = status.changed() => {
                if changed.is_err() {
                    return pending().await;
                }
            }
        }
    }
}

/// A timer for what may have no time.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}
