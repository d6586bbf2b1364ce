//! Reads requests, runs them in their lanes, writes exactly one answer for each.
//!
//! One task owns everything: the line codec, the lanes, the table of unanswered requests and the running jobs. Jobs are
//! blocking and run on their own threads; they share nothing with this task but their [`Ticket`].
//!
//! INVARIANT: an id is answered by whoever takes it out of `pending`, so it is answered once: by the finished job, by a
//! cancel that came before the job's commit point, or by the shutdown. A host may use an id again once it was answered, also
//! while the cancelled job of that name still runs; hence every job has a number of its own.
//! INVARIANT: no request is read unless its answer fits into the output queue beside the answers still owed. A host that
//! stops reading therefore stops being read, and nothing grows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::codec::{LINE_LIMIT_BEFORE_HANDSHAKE, LineCodec};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::{SessionId, SnapshotId};
use maka_cu_protocol::rpc::{Incoming, Request, RequestId, RpcCode, RpcError, error_response};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tokio::sync::mpsc;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{self, Instant, MissedTickBehavior};

use crate::call::Call;
use crate::executor::{Executor, Greeting};
use crate::exit::Exit;
use crate::reply::{RefusalShape, Reply};
use lanes::{LaneKey, Lanes, MAX_PENDING};
use pipes::Output;
use ticket::Ticket;

pub mod lanes;
pub mod pipes;
#[cfg(test)]
mod tests;
pub mod ticket;

/// Answers that may wait for the host to read them: more than can ever be owed.
pub const ANSWERS_QUEUED: usize = 2 * MAX_PENDING;

/// How often it is checked that the host process exists (spec §2.1).
const HOST_POLL: Duration = Duration::from_secs(2);

/// How long before the end of the grace what still runs is told to end, or half of the grace where that is less.
const LET_GO: Duration = Duration::from_secs(1);

/// How long the last answers may take to be written once everything else has ended.
const FLUSH_GRACE: Duration = Duration::from_secs(1);

/// What ends the service from outside.
#[derive(Debug)]
pub struct Signals {
    /// SIGTERM.
    pub terminate: tokio::signal::unix::Signal,
    /// SIGINT, for a person at a terminal; same meaning.
    pub interrupt: tokio::signal::unix::Signal,
}

/// Serves until shutdown or until the desktop is lost; returns when everything owed was answered, every session ended and
/// the output flushed.
pub async fn serve(
    executor: Arc<Executor>,
    input: mpsc::Receiver<Vec<u8>>,
    output: Output,
    signals: Signals,
) -> Exit {
    let mut server = Server::new(executor, output.lines);
    let exit = server.run(input, output.done, signals).await;
    server.executor.end_all_sessions();
    exit
}

struct Server {
    executor: Arc<Executor>,
    codec: LineCodec,
    /// The codec may hold complete lines that were not looked at yet.
    lines_waiting: bool,
    input_open: bool,
    answers: mpsc::Sender<Vec<u8>>,
    lanes: Lanes<Job>,
    pending: HashMap<RequestId, Pending>,
    running: JoinSet<Vec<u8>>,
    jobs: HashMap<task::Id, (LaneKey, JobName)>,
    next_job: u64,
    phase: Phase,
}

/// How far the service has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    BeforeHandshake,
    Serving {
        host: Pid,
    },
    /// Nothing new is taken on; what runs may run until the instant.
    Draining {
        /// When what still runs is told to end, with time left to take back what it holds and to say what became of it.
        let_go: Option<Instant>,
        until: Instant,
        exit: Exit,
    },
    /// The last answer was written; nothing more is read.
    Over(Exit),
}

/// What a job is answered as, and which of the jobs of that id it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JobName {
    id: RequestId,
    number: u64,
}

/// A request that waits in a lane or runs.
struct Job {
    name: JobName,
    call: Call,
    ticket: Ticket,
}

/// A request that is owed an answer.
struct Pending {
    job: u64,
    ticket: Ticket,
    /// The snapshot that it quotes.
    quoted: Option<(SessionId, SnapshotId)>,
    lane: LaneKey,
    shape: RefusalShape,
    started: bool,
}

impl Server {
    fn new(executor: Arc<Executor>, answers: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            executor,
            codec: LineCodec::new(LINE_LIMIT_BEFORE_HANDSHAKE),
            lines_waiting: false,
            input_open: true,
            answers,
            lanes: Lanes::default(),
            pending: HashMap::new(),
            running: JoinSet::new(),
            jobs: HashMap::new(),
            next_job: 0,
            phase: Phase::BeforeHandshake,
        }
    }

    async fn run(
        &mut self,
        mut input: mpsc::Receiver<Vec<u8>>,
        mut written: tokio::sync::oneshot::Receiver<()>,
        mut signals: Signals,
    ) -> Exit {
        let mut host_poll = interval(HOST_POLL);
        let mut sweep = interval(self.executor.sweep_interval());
        let lost = self.executor.backend().lost();
        // Every branch is cancel-safe: channel receives, joins, ticks and permits lose nothing when dropped.
        let mut output_ended = false;
        let exit = loop {
            self.read_waiting_lines();
            match self.phase {
                Phase::Over(exit) => break exit,
                Phase::Draining { exit, .. } if self.pending.is_empty() => break exit,
                Phase::BeforeHandshake | Phase::Serving { .. } | Phase::Draining { .. } => {}
            }
            let owed = self.pending.len();
            let answers = self.answers.clone();
            let let_go = match self.phase {
                Phase::Draining {
                    let_go: Some(at), ..
                } => at,
                Phase::Draining { let_go: None, .. }
                | Phase::BeforeHandshake
                | Phase::Serving { .. }
                | Phase::Over(_) => far_future(),
            };
            let grace_over = match self.phase {
                Phase::Draining { until, .. } => until,
                Phase::BeforeHandshake | Phase::Serving { .. } | Phase::Over(_) => far_future(),
            };
            let takes_work = match self.phase {
                Phase::BeforeHandshake | Phase::Serving { .. } => true,
                Phase::Draining { .. } | Phase::Over(_) => false,
            };
            tokio::select! {
                _ = signals.terminate.recv() => self.begin_shutdown("SIGTERM", Exit::Done),
                _ = signals.interrupt.recv() => self.begin_shutdown("SIGINT", Exit::Done),
                () = lost.cancelled(), if takes_work => {
                    self.begin_shutdown("the desktop is lost", Exit::NoDesktop);
                }
                Some(finished) = self.running.join_next_with_id() => self.finish(finished),
                chunk = input.recv(), if self.input_open && !self.lines_waiting => match chunk {
                    Some(chunk) => {
                        self.codec.push(&chunk);
                        self.lines_waiting = true;
                    }
                    None => {
                        self.input_open = false;
                        self.begin_shutdown("end of input", Exit::Done);
                    }
                },
                // Lines wait because the output queue is full: go on as soon as one more answer fits.
                permits = answers.reserve_many(owed + 1), if self.lines_waiting => drop(permits),
                _ = host_poll.tick() => self.check_host(),
                _ = sweep.tick() => self.executor.sweep(),
                () = time::sleep_until(let_go) => self.end_what_runs(),
                () = time::sleep_until(grace_over) => {
                    self.give_up();
                    // Nothing but a drain has a grace that can be over.
                    break match self.phase {
                        Phase::Draining { exit, .. } | Phase::Over(exit) => exit,
                        Phase::BeforeHandshake | Phase::Serving { .. } => Exit::Done,
                    };
                }
                _ = &mut written => {
                    tracing::warn!("the host reads no answers any more");
                    output_ended = true;
                    break Exit::Done;
                }
            }
        };
        // Closing the queue lets the writer drain it and end.
        let (closed, _) = mpsc::channel(1);
        self.answers = closed;
        if !output_ended && time::timeout(FLUSH_GRACE, written).await.is_err() {
            tracing::warn!("the last answers could not be written in time");
        }
        exit
    }

    /// Handles the complete lines that the codec holds, as far as their answers fit.
    fn read_waiting_lines(&mut self) {
        while self.lines_waiting && !matches!(self.phase, Phase::Over(_)) {
            if self.answers.capacity() <= self.pending.len() {
                return;
            }
            match self.codec.next_line() {
                Ok(Some(line)) => self.handle(Incoming::parse(&line)),
                Ok(None) => self.lines_waiting = false,
                Err(error) => {
                    // The stream cannot be split any more, so nothing after this could be understood.
                    tracing::error!(%error, "the input is unusable");
                    self.lines_waiting = false;
                    self.input_open = false;
                    self.reply_error(None, &RpcError::new(RpcCode::ParseError));
                    self.begin_shutdown("unusable input", Exit::Done);
                }
            }
        }
    }

    fn handle(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Ignored => {}
            Incoming::Invalid(id, error) => {
                // As below: the id belongs to the request that is being worked on.
                let id = id.filter(|id| !self.pending.contains_key(id));
                self.reply_error(id, &error);
            }
            Incoming::Cancel(id) => self.cancel(id),
            // A second request of an id that is still owed an answer could not be told apart from the first.
            Incoming::Request(request) if self.pending.contains_key(&request.id) => {
                self.reply_error(None, &RpcError::new(RpcCode::InvalidRequest));
            }
            Incoming::Request(request) => match self.phase {
                Phase::Draining { .. } | Phase::Over(_) => {
                    self.reply_error(Some(request.id), &RpcError::new(RpcCode::ShuttingDown));
                }
                Phase::BeforeHandshake => self.greet(&request),
                Phase::Serving { .. } => {
                    if let Err(error) = self.accept(&request) {
                        self.reply_error(Some(request.id), &error);
                    }
                }
            },
        }
    }

    /// The first request has to be a `host.hello` that we can agree to.
    fn greet(&mut self, request: &Request) {
        match self.executor.greet(request) {
            Ok(Greeting { host, result }) => {
                self.phase = Phase::Serving { host };
                self.reply(Reply::Result(result).encode(request.id));
            }
            Err(error) => {
                self.reply_error(Some(request.id), &error);
                if error.code() == Some(RpcCode::ProtocolVersionMismatch) {
                    self.phase = Phase::Over(Exit::VersionMismatch);
                }
            }
        }
    }

    /// Parses a request and gives it to its lane.
    fn accept(&mut self, request: &Request) -> Result<(), RpcError> {
        let call = Call::parse(request)?;
        let shape = call.refusal_shape();
        if let Some(code) = call.immediate_refusal() {
            self.reply(shape.refuse(code).encode(request.id));
            return Ok(());
        }
        if self.lanes.len() >= MAX_PENDING {
            tracing::warn!(id = %request.id, "too many requests are unanswered");
            self.reply(shape.refuse(DomainCode::Timeout).encode(request.id));
            return Ok(());
        }
        let lane = self.executor.lane_of(&call);
        let ticket = Ticket::default();
        let quoted = call
            .quoted()
            .map(|(session, snapshot)| (session.clone(), snapshot.clone()));
        let name = JobName {
            id: request.id,
            number: self.next_job,
        };
        self.next_job += 1;
        let job = Job {
            name,
            call,
            ticket: ticket.clone(),
        };
        self.pending.insert(
            request.id,
            Pending {
                job: name.number,
                ticket,
                quoted,
                lane,
                shape,
                started: false,
            },
        );
        if let Some(job) = self.lanes.submit(lane, job) {
            self.start(lane, job);
        }
        Ok(())
    }

    fn start(&mut self, lane: LaneKey, job: Job) {
        if let Some(pending) = self.pending.get_mut(&job.name.id) {
            pending.started = true;
        }
        let executor = Arc::clone(&self.executor);
        let name = job.name;
        let handle = self
            .running
            .spawn_blocking(move || executor.run(&job.call, &job.ticket).encode(name.id));
        self.jobs.insert(handle.id(), (lane, name));
    }

    /// A job ended: answers it, unless somebody else has, and starts the next one of its lane.
    fn finish(&mut self, finished: Result<(task::Id, Vec<u8>), JoinError>) {
        let (task_id, answer) = match finished {
            Ok((task_id, answer)) => (task_id, Some(answer)),
            Err(error) => (error.id(), None),
        };
        let Some((lane, name)) = self.jobs.remove(&task_id) else {
            return;
        };
        if let Some(pending) = self.take_pending(name) {
            match answer {
                Some(answer) => self.reply(answer),
                None => self.panicked(name.id, pending),
            }
        }
        if let Some(next) = self.lanes.finish(lane) {
            self.start(lane, next);
        }
    }

    /// Takes out what is owed to this job, and not to another one of its id.
    fn take_pending(&mut self, name: JobName) -> Option<Pending> {
        self.pending
            .get(&name.id)
            .filter(|pending| pending.job == name.number)?;
        self.pending.remove(&name.id)
    }

    /// A job panicked. Before its commit point that is a fault and nothing else; after it something was or may have been
    /// done, and an answer that reads like "nothing done" would invite the host to do it again.
    fn panicked(&self, id: RequestId, pending: Pending) {
        let committed = !pending.ticket.cancel();
        tracing::error!(%id, committed, "a request ended in a panic");
        if !committed {
            return self.reply_error(Some(id), &RpcError::new(RpcCode::InternalError));
        }
        if let Some((session, snapshot)) = pending.quoted {
            let mut sessions = self.executor.sessions();
            // A session that ended meanwhile took its snapshots along.
            if let Ok(handle) = sessions.find(&session) {
                sessions.spend(&handle, &snapshot);
            }
        }
        self.reply(pending.shape.interrupted().encode(id));
    }

    fn cancel(&mut self, id: RequestId) {
        let Some(pending) = self.pending.get(&id) else {
            return;
        };
        if !pending.ticket.cancel() {
            tracing::debug!(%id, "cancelled too late, the true outcome follows");
            return;
        }
        tracing::debug!(%id, started = pending.started, "cancelled");
        if let Some(pending) = self.pending.remove(&id) {
            self.lanes
                .withdraw(pending.lane, |job| job.name.number == pending.job);
            self.reply(pending.shape.refuse(DomainCode::Aborted).encode(id));
        }
    }

    fn begin_shutdown(&mut self, cause: &'static str, exit: Exit) {
        match self.phase {
            Phase::Draining { .. } | Phase::Over(_) => return,
            Phase::BeforeHandshake | Phase::Serving { .. } => {}
        }
        tracing::info!(cause, unanswered = self.pending.len(), "shutting down");
        let grace = self.executor.shutdown_grace();
        let until = Instant::now() + grace;
        self.phase = Phase::Draining {
            let_go: Some(until - LET_GO.min(grace / 2)),
            until,
            exit,
        };
        for job in self.lanes.drain() {
            if let Some(pending) = self.take_pending(job.name) {
                let refused = pending.shape.refuse(DomainCode::Aborted);
                self.reply(refused.encode(job.name.id));
            }
        }
    }

    /// Tells what still runs to end: keys and buttons that are down go up, and the answer is what really happened. The host
    /// kills whoever is there at the end of the grace, and then nobody would let go any more.
    fn end_what_runs(&mut self) {
        if let Phase::Draining { let_go, .. } = &mut self.phase {
            *let_go = None;
        }
        let running: Vec<RequestId> = self.pending.keys().copied().collect();
        for id in running {
            self.cancel(id);
        }
    }

    /// The grace is over: answers what is still owed with what can be said about it.
    fn give_up(&mut self) {
        for (id, pending) in std::mem::take(&mut self.pending) {
            let began = !pending.ticket.cancel();
            tracing::warn!(%id, began, "unfinished at the end of the grace");
            let reply = if began {
                pending.shape.interrupted()
            } else {
                pending.shape.refuse(DomainCode::Aborted)
            };
            self.reply(reply.encode(id));
        }
    }

    fn check_host(&mut self) {
        if let Phase::Serving { host } = self.phase
            && kill(host, None) == Err(Errno::ESRCH)
        {
            self.begin_shutdown("the host process is gone", Exit::Done);
        }
    }

    fn reply_error(&self, id: Option<RequestId>, error: &RpcError) {
        self.reply(maka_cu_protocol::codec::encode_line(&error_response(
            id, error,
        )));
    }

    fn reply(&self, line: Vec<u8>) {
        match self.answers.try_send(line) {
            Ok(()) => {}
            // The writer has ended; the loop sees that and ends as well.
            Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                unreachable!("a line is read only while its answer fits beside those still owed")
            }
        }
    }
}

fn interval(period: Duration) -> time::Interval {
    let mut interval = time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Tokio needs some instant; this one is never waited for.
fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(60 * 60 * 24 * 365)
}
