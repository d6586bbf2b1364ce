//! Test: every order in which a child, its caller, the operator and the clock can act on the state machine.
//!
//! The supervisor is fed by hand, without its loop, so that each order of events is dealt exactly: from a child that was just asked
//! who it is and one call that waits for it, through *all* orders of up to [`LENGTH`] events that change anything, to disposal. The
//! child is imaginary; what is written to it is read on its side of the pipe, and is the witness.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::codec::LineCodec;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::rpc::ResponseBody;
use maka_cu_protocol::sets::{LifecycleCode, ReleaseReason, ServiceState};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::races::good_handshake;
use super::starting::Launch;
use super::{Input, MAILBOX, Message, Shared, State, Supervisor};
use crate::error::{CallError, MakaCuLifecycleError};
use crate::event::{EVENT_CAPACITY, Event};
use crate::image_dir::Claim;
use crate::options::{ExecutableDigest, Options, RestartPolicy};
use crate::pending::{Asker, Deadline, RawAnswer, Request};
use crate::process::{ExitCause, imaginary};
use crate::status::{Negotiated, Pin, PinKind, Status};
use crate::streams::FromChild;

/// Events between the greeting and disposal. Enough for a whole life: greeted, ended, drained, made anew. Five hold as well and take
/// ten times as long.
const LENGTH: usize = 4;

/// The name of the call inside this process.
const TICKET: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A child that was wanted is there.
    Launched,
    /// The handshake is answered.
    Greeted,
    /// The call is answered.
    Answered,
    /// The child ends.
    Exited,
    /// Its output ends.
    OutputClosed,
    /// A line is too long.
    Overflow,
    /// A reader found a violation.
    Condemned,
    /// The caller gives up.
    GivenUp,
    /// The call's session is cleared.
    Cleared,
    /// Whatever waits for a time has waited long enough.
    TimeUp,
    /// The operator restarts.
    Restart,
    /// The host disposes.
    Dispose,
}

const STEPS: [Step; 12] = [
    Step::Launched,
    Step::Greeted,
    Step::Answered,
    Step::Exited,
    Step::OutputClosed,
    Step::Overflow,
    Step::Condemned,
    Step::GivenUp,
    Step::Cleared,
    Step::TimeUp,
    Step::Restart,
    Step::Dispose,
];

/// How far the child takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// Everything at once.
    Free,
    /// The handshake, and nothing after it: what is for this child stays queued.
    Stuck,
}

/// The supervisor and everything that was seen of it.
struct World {
    writer: Writer,
    supervisor: Supervisor,
    events: broadcast::Receiver<Event>,
    answer: oneshot::Receiver<Result<RawAnswer, CallError>>,
    outcome: Option<Result<RawAnswer, CallError>>,
    /// The far end of the newest child.
    far_end: Option<imaginary::FarEnd>,
    codec: LineCodec,
    /// Ids as they were written: of the newest handshake, of the call.
    hello: Option<u64>,
    call: Option<u64>,
    cancels: u32,
    gave_up: bool,
    released: Vec<u64>,
    restarted: Vec<oneshot::Receiver<Result<Arc<Negotiated>, MakaCuLifecycleError>>>,
    disposed: bool,
    now: Instant,
}

impl World {
    async fn new(restart: RestartPolicy, writer: Writer) -> Self {
        let options = Options {
            restart,
            ..Options::new("/nowhere/maka-cu", "/nowhere/state", "/nowhere/images", "0")
        };
        let (_, mailbox) = mpsc::channel(MAILBOX);
        let (status, _) = watch::channel(Status::initial());
        let (sender, events) = broadcast::channel(EVENT_CAPACITY);
        let shared = Arc::new(Shared::new(options));
        let mut supervisor =
            Supervisor::new(shared, mailbox, status, sender, CancellationToken::new()).unwrap();
        let (reply, answer) = oneshot::channel();
        let now = Instant::now();
        let request = Request::new(
            Method::AppsList,
            SessionId::try_new("s").ok(),
            json!({}),
            Asker::Caller(reply),
            Deadline::Negotiated { since: now },
        );
        // The call wants an executor; the start that follows is dealt by hand.
        supervisor.message(Message::Call {
            id: TICKET,
            request,
            only: None,
            cancel: CancellationToken::new(),
        });
        supervisor.launches.abort_all();
        let mut world = Self {
            writer,
            supervisor,
            events,
            answer,
            outcome: None,
            far_end: None,
            codec: LineCodec::new(usize::MAX),
            hello: None,
            call: None,
            cancels: 0,
            gave_up: false,
            released: Vec::new(),
            restarted: Vec::new(),
            disposed: false,
            now,
        };
        world.step(Step::Launched).await;
        assert_eq!(world.hello, Some(1), "the handshake is the first message");
        world
    }

    /// Deals one event, and looks at what came of it. An event that cannot happen now does nothing.
    async fn step(&mut self, step: Step) {
        match step {
            Step::Launched => self.launched().await,
            Step::Greeted => {
                if let Some(id) = self.hello.take() {
                    self.said(id, good_handshake());
                }
            }
            Step::Answered => {
                if let Some(id) = self.call {
                    self.said(id, json!({ "ok": true }));
                }
            }
            Step::Exited => {
                if self
                    .supervisor
                    .child()
                    .is_some_and(|child| child.exited.is_none())
                {
                    self.supervisor.react(Input::Exited(ExitCause::Status(0)));
                }
            }
            Step::OutputClosed => {
                if self
                    .supervisor
                    .child()
                    .is_some_and(|child| !child.output_closed)
                {
                    self.supervisor.react(Input::Child(FromChild::OutputClosed));
                }
            }
            Step::Overflow => {
                if self.supervisor.child().is_some() {
                    self.supervisor.react(Input::Child(FromChild::Overflow));
                }
            }
            Step::Condemned => {
                let violation = Violation::of("apps", Reason::NotArray);
                let generation = self.supervisor.generation;
                let bypass = &self.supervisor.shared.bypass;
                bypass.condemn(generation, Method::Observe, violation);
                self.supervisor.react(Input::Urgent);
            }
            Step::GivenUp => {
                if !std::mem::replace(&mut self.gave_up, true) {
                    self.supervisor.shared.bypass.cancel(TICKET);
                    self.supervisor.react(Input::Urgent);
                }
            }
            Step::Cleared => {
                self.supervisor
                    .clear_session(SessionId::try_new("s").unwrap());
            }
            Step::TimeUp => self.time_up(),
            Step::Restart => {
                let (started, restarted) = oneshot::channel();
                self.restarted.push(restarted);
                self.supervisor
                    .react(Input::Message(Message::Restart(started)));
            }
            Step::Dispose => {
                if !std::mem::replace(&mut self.disposed, true) {
                    self.supervisor.react(Input::Dispose);
                }
            }
        }
        self.supervisor.launches.abort_all();
        self.supervisor.pump();
        self.supervisor.publish();
        self.look();
    }

    fn said(&mut self, id: u64, result: Value) {
        let body = ResponseBody::Result(result);
        let report = FromChild::Response { id, body };
        self.supervisor.react(Input::Child(report));
    }

    async fn launched(&mut self) {
        if !matches!(self.supervisor.state, State::Preparing) {
            return;
        }
        let (child, far_end) = imaginary::child().unwrap();
        // Only what is there is read: nobody here waits.
        fcntl(&far_end.stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        self.far_end = Some(far_end);
        self.codec = LineCodec::new(usize::MAX);
        self.hello = None;
        let pin = Pin {
            digest: ExecutableDigest::from_bytes([0; 32]),
            kind: PinKind::PrivateCopy,
            pinned: false,
        };
        let before = self.supervisor.generation;
        self.supervisor.react(Input::Launched(Launch::Running {
            child,
            pin,
            images: Claim::imaginary(),
        }));
        assert_eq!(
            self.supervisor.generation,
            before + 1,
            "generations only grow"
        );
        let State::Greeting { child } = &self.supervisor.state else {
            // Unwanted by now: it is ended unasked.
            return;
        };
        child.streams.writable().await.unwrap();
        self.supervisor.pump();
        if let (Writer::Stuck, Some(child)) = (self.writer, self.supervisor.child()) {
            child.writer_idle = false;
        }
    }

    fn time_up(&mut self) {
        self.now += Duration::from_secs(3_600);
        match &mut self.supervisor.state {
            State::BackingOff { .. } => self.supervisor.begin_start(),
            State::Ending(_) => self.supervisor.ending_due(self.now),
            State::Ready {
                mute_until: Some(_),
                ..
            } => self.supervisor.mute_for_good(),
            State::Ready { .. }
            | State::Idle { .. }
            | State::Preparing
            | State::Greeting { .. }
            | State::Unavailable
            | State::Disposed => {}
        }
        self.supervisor.expire(self.now);
    }

    /// Reads what was written and told, and holds it to the laws.
    fn look(&mut self) {
        let mut written = Vec::new();
        if let Some(far_end) = &mut self.far_end {
            // Nothing more is there, or the other side is closed.
            far_end.stdin.read_to_end(&mut written).ok();
        }
        self.codec.push(&written);
        while let Some(line) = self.codec.next_line().unwrap() {
            self.read(&serde_json::from_slice(&line).unwrap());
        }
        if self.outcome.is_none()
            && let Ok(outcome) = self.answer.try_recv()
        {
            self.judge(&outcome);
            self.outcome = Some(outcome);
        }
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Released(release) if release.generation_released => {
                    let again = self.released.contains(&release.generation);
                    assert!(!again, "a generation is released once");
                    self.released.push(release.generation);
                }
                Event::Released(release) => {
                    assert_ne!(release.reason, ReleaseReason::ChildExit);
                }
                Event::Status(status) => {
                    let ready = status.state == ServiceState::Ready;
                    let over = self.released.contains(&status.generation);
                    assert!(!(ready && over), "a released generation is not ready again");
                    assert_eq!(ready, status.executor.is_some());
                }
                Event::Lost { count } => panic!("{count} events are lost"),
            }
        }
    }

    fn read(&mut self, message: &Value) {
        match message["method"].as_str().unwrap() {
            "host.hello" => self.hello = message["id"].as_u64(),
            "apps.list" => {
                assert_eq!(
                    self.call, None,
                    "a request is sent once, over all generations"
                );
                assert!(!self.gave_up, "what was given up is not sent");
                assert!(self.outcome.is_none(), "what was answered is not sent");
                self.call = message["id"].as_u64();
            }
            "$/cancel" => {
                let id = message["params"]["id"].as_u64();
                assert!(id.is_some(), "a cancel names a request");
                if id == self.call {
                    self.cancels += 1;
                    assert_eq!(self.cancels, 1, "a cancel is one word");
                }
            }
            other => panic!("nobody asked for {other}"),
        }
    }

    /// The truth of an outcome: what was never written had no effect, what was written and not answered is unknown.
    fn judge(&self, outcome: &Result<RawAnswer, CallError>) {
        let written = self.call.is_some();
        assert!(!written || self.writer == Writer::Free);
        match outcome {
            Ok(_) => assert!(written, "only what was asked is answered"),
            Err(CallError::Lifecycle(error)) => {
                assert_eq!(error.possibly_delivered(), written, "{error:?}");
                assert_eq!(
                    error.code == LifecycleCode::OutcomeUnknown,
                    written,
                    "{error:?}"
                );
            }
            Err(other) => panic!("nothing here leads to {other:?}"),
        }
    }

    /// What a further event could change.
    fn picture(&self) -> String {
        format!(
            "{:?} {:?} {:?} {} {}",
            self.supervisor.state,
            self.supervisor.pending,
            (
                self.hello,
                self.call,
                self.cancels,
                self.gave_up,
                self.outcome.is_some()
            ),
            self.supervisor.disposing,
            self.supervisor.starters.len(),
        )
    }

    /// Disposal from wherever this is: it ends, and everybody has an answer.
    async fn close(mut self) -> ServiceState {
        let reached = self.supervisor.service_state();
        self.step(Step::Dispose).await;
        for step in [
            Step::Launched,
            Step::Exited,
            Step::OutputClosed,
            Step::TimeUp,
        ] {
            self.step(step).await;
        }
        assert!(
            matches!(self.supervisor.state, State::Disposed),
            "{:?}",
            self.supervisor.state
        );
        assert!(self.outcome.is_some(), "the caller has an answer");
        for restarted in &mut self.restarted {
            assert!(restarted.try_recv().is_ok(), "the operator has an answer");
        }
        let made: Vec<u64> = (1..=self.supervisor.generation).collect();
        self.released.sort_unstable();
        assert_eq!(
            self.released, made,
            "every generation that was made is released"
        );
        assert!(
            self.supervisor.pending.ids(|_| true).is_empty(),
            "nothing is owed"
        );
        reached
    }
}

/// The world after these steps; none when the last of them changes nothing.
async fn replay(restart: RestartPolicy, writer: Writer, steps: &[Step]) -> Option<World> {
    let mut world = World::new(restart, writer).await;
    let Some((last, earlier)) = steps.split_last() else {
        return Some(world);
    };
    for step in earlier {
        world.step(*step).await;
    }
    let before = world.picture();
    world.step(*last).await;
    (world.picture() != before).then_some(world)
}

#[tokio::test]
async fn every_order_of_events_leads_to_one_truthful_answer() {
    for (restart, writer) in [
        (RestartPolicy::OnDemand, Writer::Free),
        (RestartPolicy::OnDemand, Writer::Stuck),
        (RestartPolicy::Eager, Writer::Free),
    ] {
        let mut orders = 0_u64;
        let mut reached = std::collections::HashSet::new();
        let mut open: Vec<Vec<Step>> = vec![Vec::new()];
        while let Some(steps) = open.pop() {
            if let Some(world) = replay(restart, writer, &steps).await {
                orders += 1;
                reached.insert(world.close().await.as_str());
                if steps.len() < LENGTH {
                    open.extend(STEPS.map(|step| [&steps[..], &[step]].concat()));
                }
            }
            // The tasks of the pipes end.
            tokio::task::yield_now().await;
        }
        for state in ServiceState::ALL {
            // An eager supervisor is never idle again.
            let expected = *state != ServiceState::Idle || restart == RestartPolicy::OnDemand;
            assert_eq!(
                reached.contains(state.as_str()),
                expected,
                "{restart:?} and {state}"
            );
        }
        assert!(
            orders > 1_000,
            "{restart:?}: {orders} orders are not all there are"
        );
    }
}
