//! From any child to no child: release, restart, disposal.
//!
//! Whatever ends a child, the path is one: it is told or made to end, its last output is read, its requests are answered, its
//! generation is released, and only when it is reaped does something new begin.

use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::sets::{ReleaseReason, RequestStage};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::starting::EXCERPT;
use super::{Generation, State, Supervisor};
use crate::error::LifecycleCause;
use crate::event::{Event, Release};
use crate::failure::{LastFailure, StartFailure};
use crate::options::RestartPolicy;
use crate::process::ExitCause;

/// How long the rest of a dead child's output is waited for. A helper that left the group may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(200);

/// How long a killed child may take to be reaped before its requests are answered without knowing what it had read.
const REAP: Duration = Duration::from_millis(250);

/// How long disposal waits for a killed child that does not die: the kernel holds it, and nobody can do more.
const LINGER: Duration = Duration::from_secs(5);

/// How an end begins.
#[derive(Debug)]
pub(super) enum How {
    /// The child is dead already; its last output still counts.
    Exited,
    /// At once. What it says from now on is not believed.
    Kill,
    /// By SIGTERM, and after this time by SIGKILL. Its answers still count.
    Terminate(Duration),
}

/// What follows when the child is gone.
#[derive(Debug)]
pub(super) enum Then {
    /// The start has failed.
    FailedStart(StartFailure),
    /// The restart policy decides.
    Recover,
    /// A new start.
    Restart,
    /// Nothing more.
    Dispose,
}

/// A child on its way out.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) child: Generation,
    pub(super) then: Then,
    reason: ReleaseReason,
    cause: LifecycleCause,
    phase: Phase,
    believed: bool,
    released: bool,
}

#[derive(Debug)]
enum Phase {
    /// SIGTERM is sent.
    Terminating { kill_at: Instant },
    /// The child is dead or killed, and not yet released.
    Draining { release_at: Instant },
    /// Released, and killed, and still not reaped.
    Lingering { since: Instant },
}

impl Ending {
    /// Whether an answer that comes now still counts.
    pub(super) fn still_believed(&self) -> bool {
        self.believed && !self.released
    }

    /// Whether lines may still be written to it: cancels, since nothing else is left to be sent.
    pub(super) fn still_listens(&self) -> bool {
        matches!(self.phase, Phase::Terminating { .. })
    }

    pub(super) fn alarm(&self) -> Option<Instant> {
        match (&self.phase, &self.then) {
            (Phase::Terminating { kill_at }, _) => Some(*kill_at),
            (Phase::Draining { release_at }, _) => Some(*release_at),
            (Phase::Lingering { since }, Then::Dispose) => Some(*since + LINGER),
            (Phase::Lingering { .. }, Then::FailedStart(_) | Then::Recover | Then::Restart) => None,
        }
    }
}

impl Supervisor {
    /// The child of the current state, whatever the state is.
    pub(super) fn child(&mut self) -> Option<&mut Generation> {
        match &mut self.state {
            State::Greeting { child }
            | State::Ready { child, .. }
            | State::Ending(Ending { child, .. }) => Some(child),
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Unavailable
            | State::Disposed => None,
        }
    }

    /// Begins the end of the child that greets or is ready. In any other state there is nothing left to end.
    pub(super) fn end(
        &mut self,
        reason: ReleaseReason,
        cause: LifecycleCause,
        how: How,
        then: Then,
    ) {
        let child = match std::mem::replace(&mut self.state, State::Unavailable) {
            State::Greeting { child } | State::Ready { child, .. } => child,
            other => {
                self.state = other;
                return;
            }
        };
        let now = Instant::now();
        let phase = match how {
            How::Exited => Phase::Draining {
                release_at: now + DRAIN,
            },
            How::Kill => {
                child.leash.kill();
                Phase::Draining {
                    release_at: now + REAP,
                }
            }
            How::Terminate(grace) => {
                child.leash.terminate();
                Phase::Terminating {
                    kill_at: now + grace,
                }
            }
        };
        // What was never handed to the writer will not be any more.
        let number = child.number;
        for request in self
            .pending
            .take_if(|it| it.generation == Some(number) && it.stage == RequestStage::Queued)
        {
            self.reject(request, cause.clone(), RequestStage::Queued);
        }
        let believed = !matches!(how, How::Kill);
        self.state = State::Ending(Ending {
            child,
            then,
            reason,
            cause,
            phase,
            believed,
            released: false,
        });
        self.ending_progress();
    }

    pub(super) fn child_exited(&mut self, exit: ExitCause) {
        if let Some(child) = self.child() {
            child.exited = Some(exit);
        }
        let cause = LifecycleCause::ChildExit(exit);
        match &mut self.state {
            State::Greeting { .. } => {
                let then = Then::FailedStart(StartFailure::ExitedEarly { exit });
                self.end(ReleaseReason::ChildExit, cause, How::Exited, then);
            }
            State::Ready { .. } => {
                self.end(ReleaseReason::ChildExit, cause, How::Exited, Then::Recover)
            }
            State::Ending(ending) => {
                if let Phase::Terminating { .. } = ending.phase {
                    ending.phase = Phase::Draining {
                        release_at: Instant::now() + DRAIN,
                    };
                }
                self.ending_progress();
            }
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Preparing
            | State::Unavailable
            | State::Disposed => {}
        }
    }

    /// Kills a child that is being waited for.
    pub(super) fn hurry(&mut self) {
        if let State::Ending(ending) = &mut self.state {
            ending.child.leash.kill();
            ending.believed = false;
            if let Phase::Terminating { .. } = ending.phase {
                ending.phase = Phase::Draining {
                    release_at: Instant::now() + REAP,
                };
            }
            self.ending_progress();
        }
    }

    /// Releases and concludes as soon as the child is dead and nothing it said is outstanding.
    pub(super) fn ending_progress(&mut self) {
        let State::Ending(ending) = &self.state else {
            return;
        };
        let heard = ending.child.output_closed || !ending.still_believed();
        if ending.child.exited.is_some() && heard {
            self.release();
            self.conclude();
        }
    }

    pub(super) fn ending_due(&mut self, now: Instant) {
        let State::Ending(ending) = &mut self.state else {
            return;
        };
        match &ending.phase {
            Phase::Terminating { kill_at } if *kill_at <= now => {
                tracing::warn!(
                    generation = ending.child.number,
                    "the executor outlived its grace and is killed"
                );
                self.hurry();
            }
            Phase::Draining { release_at } if *release_at <= now => {
                ending.phase = Phase::Lingering { since: now };
                let exited = ending.child.exited.is_some();
                self.release();
                if exited {
                    self.conclude();
                }
            }
            Phase::Lingering { since }
                if *since + LINGER <= now && matches!(ending.then, Then::Dispose) =>
            {
                tracing::error!(
                    pid = ending.child.pid,
                    "the killed executor does not die; it is left behind"
                );
                self.conclude();
            }
            Phase::Terminating { .. } | Phase::Draining { .. } | Phase::Lingering { .. } => {}
        }
    }

    /// Answers what the child still owed and announces the end of its generation, once.
    fn release(&mut self) {
        let State::Ending(ending) = &mut self.state else {
            return;
        };
        if std::mem::replace(&mut ending.released, true) {
            return;
        }
        let (number, reason, cause) = (ending.child.number, ending.reason, ending.cause.clone());
        // Only a dead child can no longer read; until then every byte in the pipe may yet be taken.
        let consumed = ending.child.exited.map(|_| ending.child.streams.consumed());
        let mut sessions: Vec<SessionId> = Vec::new();
        let mut outcome_unknown = false;
        let owed = self
            .pending
            .take_if(|request| request.generation == Some(number));
        for request in &owed {
            if request.stage_given(consumed) != RequestStage::Queued && request.is_callers() {
                outcome_unknown = true;
                sessions.extend(request.session.clone());
            }
        }
        sessions.sort_unstable();
        sessions.dedup();
        let exit = ending.child.exited.map(tracing::field::display);
        tracing::warn!(generation = number, %reason, exit, outcome_unknown, "executor generation released");
        self.tell(Event::Released(Release {
            generation: number,
            generation_released: true,
            reason,
            sessions,
            outcome_unknown,
        }));
        // After the release: whoever learns from its answer that the generation is over finds that said already.
        for request in owed {
            let stage = request.stage_given(consumed);
            self.reject(request, cause.clone(), stage);
        }
    }

    /// The child is gone; what comes next?
    fn conclude(&mut self) {
        let ending = match std::mem::replace(&mut self.state, State::Unavailable) {
            State::Ending(ending) => ending,
            other => {
                self.state = other;
                return;
            }
        };
        let Ending {
            child,
            then,
            reason,
            ..
        } = ending;
        let stderr = child.streams.stderr.excerpt(EXCERPT);
        // A child that was made to end tells nothing by how it did.
        let exit = child.exited.filter(|_| reason == ReleaseReason::ChildExit);
        drop(child);
        match then {
            Then::FailedStart(failure) => self.start_failed(failure, stderr),
            Then::Recover => {
                self.last_failure = Some(Arc::new(LastFailure::new(
                    StartFailure::Lost { reason, exit },
                    stderr,
                )));
                self.recover();
            }
            Then::Restart => self.begin_start(),
            Then::Dispose => self.state = State::Disposed,
        }
    }

    fn recover(&mut self) {
        let somebody_waits = !self.starters.is_empty() || self.pending.is_anyone_waiting();
        let wanted = match self.shared.options.restart {
            RestartPolicy::Eager => true,
            RestartPolicy::OnDemand => somebody_waits,
        };
        match (wanted, self.budget.is_spent()) {
            (true, true) => self.give_up(),
            (true, false) => self.back_off(),
            (false, _) => {
                self.state = State::Idle {
                    not_before: Some(Instant::now() + self.budget.pause()),
                }
            }
        }
    }

    /// Ends everything (spec 8.7).
    pub(super) fn dispose(&mut self) {
        self.disposing = true;
        self.refuse_waiting(&LifecycleCause::Disposed);
        match &mut self.state {
            State::Idle { .. }
            | State::BackingOff { .. }
            | State::Unavailable
            | State::Disposed => {
                self.state = State::Disposed;
            }
            // The child, if one comes of it, is ended when the start reports.
            State::Preparing => {}
            State::Greeting { .. } => self.dispose_child(self.shared.options.shutdown_grace),
            State::Ready { negotiated, .. } => {
                let grace = Duration::from_millis(negotiated.handshake.limits.shutdown_grace_ms);
                self.dispose_child(grace);
            }
            State::Ending(ending) => ending.then = Then::Dispose,
        }
    }

    fn dispose_child(&mut self, grace: Duration) {
        self.end(
            ReleaseReason::Disposed,
            LifecycleCause::Disposed,
            How::Terminate(grace),
            Then::Dispose,
        );
        // Nobody waits for the executor's goodbye: callers learn at once that their outcome is unknown.
        self.release();
    }

    /// The last things, after which nobody is left to ask.
    pub(super) async fn finish(&mut self) {
        // A folder that was never claimed may be another host's.
        if let Some(images) = self.images.take() {
            let purged = spawn_blocking(move || images.purge()).await;
            if let Ok(Err(error)) = purged {
                // Not an error of disposal (spec 8.7): the next start purges or refuses.
                tracing::warn!(%error, "the image folder could not be removed");
            }
        }
        self.mailbox.close();
        while let Some(message) = self.mailbox.recv().await {
            self.reject_message(message);
        }
        self.tell(Event::Released(Release {
            generation: self.generation,
            generation_released: false,
            reason: ReleaseReason::Disposed,
            sessions: Vec::new(),
            outcome_unknown: false,
        }));
    }
}
