//! From no child to a ready one: the start sequence of spec 8.2, the handshake, and what a failure leads to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maka_cu_protocol::codec::line_limit;
use maka_cu_protocol::handshake::{Handshake, HelloParams, HostIdentity};
use maka_cu_protocol::image::AbsolutePath;
use maka_cu_protocol::json::{Json, Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::rpc::{ResponseBody, RpcCode};
use maka_cu_protocol::sets::{ReleaseReason, RequestStage};
use nix::errno::Errno;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::ending::{Ending, How, Then};
use super::{Generation, Shared, Started, State, Supervisor};
use crate::error::{Breach, LifecycleCause};
use crate::event::{Event, Release};
use crate::failure::{FailureClass, LastFailure, StartFailure};
use crate::image_dir::Claim;
use crate::pending::{Asker, Deadline, MOST_IN_FLIGHT, Request};
use crate::process::{Child, Forker, SpawnOrder};
use crate::status::{Negotiated, Pin};
use crate::stderr_tail::StderrExcerpt;
use crate::streams::Streams;
use crate::{executable, image_dir};

/// The mandatory first argument: an executor started without it does nothing but explain itself.
const HOST_ARGUMENT: &str = "host";

/// Characters of stderr kept with a failure (spec 8.3).
pub(super) const EXCERPT: usize = 400;

/// What became of a start.
#[derive(Debug)]
pub(super) enum Launch {
    /// Nothing was spawned.
    Unprepared(StartFailure),
    /// The spawn was tried and failed.
    Unspawned(StartFailure, Pin, Arc<Claim>),
    /// A child runs.
    Running {
        child: Child,
        pin: Pin,
        images: Arc<Claim>,
    },
}

impl Launch {
    /// The launching task itself was lost, which happens only while the runtime shuts down.
    pub(super) fn broken() -> Self {
        Self::Unprepared(StartFailure::Spawn {
            source: std::io::Error::other("the start was interrupted"),
        })
    }
}

/// Steps 1 to 4 of the start sequence. Nothing of it touches the supervisor.
async fn launch(shared: Arc<Shared>, forker: Forker, images: Option<Arc<Claim>>) -> Launch {
    let prepared = spawn_blocking({
        let shared = shared.clone();
        move || {
            let options = &shared.options;
            let program = executable::prepare(
                &options.binary_path,
                options.expected_digest,
                &options.state_dir,
            )?;
            Ok((program, image_dir::claim(&options.image_dir, images)?))
        }
    });
    let (program, images) = match prepared.await {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(failure)) => return Launch::Unprepared(failure),
        Err(_) => return Launch::broken(),
    };
    let options = &shared.options;
    let order = SpawnOrder {
        program: program.path.clone(),
        args: std::iter::once(OsString::from(HOST_ARGUMENT))
            .chain(options.executor_args.iter().cloned())
            .collect(),
        environment: options.environment.clone(),
    };
    match forker.spawn(order).await {
        Ok(child) => Launch::Running {
            child,
            pin: program.pin,
            images,
        },
        Err(error) => Launch::Unspawned(
            exec_failure(error, &program.path, &options.state_dir),
            program.pin,
            images,
        ),
    }
}

/// The file is there and executable by its mode, so these errors speak about something else.
fn exec_failure(source: std::io::Error, program: &Path, state_dir: &Path) -> StartFailure {
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => StartFailure::MissingInterpreter,
        Some(Errno::ENOEXEC) => StartFailure::WrongFormat {
            path: program.to_owned(),
        },
        Some(Errno::EACCES) if executable::is_noexec(program) => StartFailure::StateDirNoexec {
            path: state_dir.to_owned(),
        },
        Some(_) | None => StartFailure::Spawn { source },
    }
}

impl Supervisor {
    pub(super) fn ensure_started(&mut self, started: Started) {
        if let State::Ready { negotiated, .. } = &self.state {
            drop(started.send(Ok(negotiated.clone())));
            return;
        }
        if self.disposing {
            return self.refuse_start(started, LifecycleCause::Disposed);
        }
        if !self.wait_for_start(started) {
            return;
        }
        self.want_executor();
    }

    /// TERM, grace, KILL, and a new start with all attempts.
    pub(super) fn restart(&mut self, started: Started) {
        if self.disposing {
            return self.refuse_start(started, LifecycleCause::Disposed);
        }
        if !self.wait_for_start(started) {
            return;
        }
        self.budget.refill();
        self.last_failure = None;
        match &mut self.state {
            State::Idle { .. } | State::BackingOff { .. } | State::Unavailable => {
                self.begin_start()
            }
            // A start that has made no child yet is as new as any.
            State::Preparing | State::Disposed => {}
            State::Greeting { .. } => {
                self.end(
                    ReleaseReason::ChildExit,
                    LifecycleCause::Restarted,
                    How::Kill,
                    Then::Restart,
                );
            }
            State::Ready { negotiated, .. } => {
                let grace =
                    std::time::Duration::from_millis(negotiated.handshake.limits.shutdown_grace_ms);
                self.end(
                    ReleaseReason::ChildExit,
                    LifecycleCause::Restarted,
                    How::Terminate(grace),
                    Then::Restart,
                );
            }
            State::Ending(ending) => ending.then = Then::Restart,
        }
    }

    /// Remembers who waits for a ready executor. Bounded: those who went away are forgotten first, then new ones are refused.
    fn wait_for_start(&mut self, started: Started) -> bool {
        self.starters.retain(|waiting| !waiting.is_closed());
        if self.starters.len() >= MOST_IN_FLIGHT {
            self.refuse_start(started, LifecycleCause::Busy);
            return false;
        }
        self.starters.push(started);
        true
    }

    fn refuse_start(&self, started: Started, cause: LifecycleCause) {
        drop(started.send(Err(self.lifecycle(cause, RequestStage::Queued, None))));
    }

    /// Somebody needs an executor that is not ready.
    pub(super) fn want_executor(&mut self) {
        let now = Instant::now();
        match self.state {
            State::Idle { .. } | State::Unavailable if self.budget.is_spent() => self.give_up(),
            State::Idle {
                not_before: Some(until),
            } if until > now => self.state = State::BackingOff { until },
            State::Idle { .. } | State::Unavailable => self.begin_start(),
            State::BackingOff { .. }
            | State::Preparing
            | State::Greeting { .. }
            | State::Ready { .. }
            | State::Ending(_)
            | State::Disposed => {}
        }
    }

    pub(super) fn begin_start(&mut self) {
        self.budget.take();
        self.state = State::Preparing;
        self.launches.spawn(launch(
            self.shared.clone(),
            self.forker.clone(),
            self.images.clone(),
        ));
    }

    pub(super) fn launched(&mut self, launch: Launch) {
        match launch {
            Launch::Unprepared(failure) => self.start_failed(failure, StderrExcerpt::default()),
            Launch::Unspawned(failure, pin, images) => {
                self.images = Some(images);
                self.next_generation(pin);
                self.tell(Event::Released(Release {
                    generation: self.generation,
                    generation_released: true,
                    reason: ReleaseReason::ChildExit,
                    sessions: Vec::new(),
                    outcome_unknown: false,
                }));
                self.start_failed(failure, StderrExcerpt::default());
            }
            Launch::Running { child, pin, images } => {
                let image_dir = images.path().to_owned();
                self.images = Some(images);
                self.next_generation(pin);
                self.greet(child, image_dir);
            }
        }
    }

    pub(super) fn next_generation(&mut self, pin: Pin) {
        self.generation += 1;
        self.pin = Some(pin);
        self.pending.begin_generation();
    }

    /// Step 5: ask the child who it is.
    pub(super) fn greet(&mut self, child: Child, image_dir: PathBuf) {
        let Child {
            pid,
            leash,
            stdin,
            stdout,
            stderr,
            exit,
        } = child;
        let streams = match Streams::start(stdin, stdout, stderr) {
            Ok(streams) => streams,
            Err(source) => {
                // The leash is dropped here, which kills the child.
                return self.start_failed(StartFailure::Spawn { source }, StderrExcerpt::default());
            }
        };
        tracing::info!(generation = self.generation, pid, "executor spawned");
        let hello = self.hello(&image_dir);
        let child = Generation {
            number: self.generation,
            pid,
            image_dir,
            leash,
            streams,
            exit,
            exited: None,
            output_closed: false,
            writer_idle: true,
            bad_lines: 0,
        };
        self.state = State::Greeting { child };
        if self.disposing {
            return self.end(
                ReleaseReason::Disposed,
                LifecycleCause::Disposed,
                How::Kill,
                Then::Dispose,
            );
        }
        let Some(hello) = hello else {
            let failure = StartFailure::ImageDir {
                path: self.shared.options.image_dir.clone(),
                source: std::io::Error::other("the path is not UTF-8"),
            };
            return self.greeting_failed(failure);
        };
        let id = self.shared.next_ticket();
        let alarm = Instant::now() + self.shared.options.handshake_timeout;
        let mut request = Request::new(
            Method::HostHello,
            None,
            hello,
            Asker::Greeting,
            Deadline::At(alarm),
        );
        request.generation = Some(self.generation);
        self.pending.insert(id, request, alarm);
    }

    fn hello(&self, image_dir: &Path) -> Option<Value> {
        let options = &self.shared.options;
        let params = HelloParams {
            protocol: options.protocol_version.clone(),
            host: Some(HostIdentity {
                name: options.host_name.clone(),
                version: options.host_version.clone(),
            }),
            host_pid: std::process::id(),
            image_dir: AbsolutePath::of_path(image_dir).ok()?,
            allow_global_pointer: options.allow_global_pointer,
        };
        Some(params.write())
    }

    /// The handshake was answered, by a child that greets or by one whose end was heard of before its last words.
    pub(super) fn greeted(&mut self, body: ResponseBody) {
        let answer = read_answer(body, &self.shared.options.protocol_version);
        match (&mut self.state, answer) {
            (State::Greeting { .. }, Ok(handshake)) => self.ready(handshake),
            (State::Greeting { .. }, Err(failure)) => self.greeting_failed(failure),
            // The exit and the answer of a child that answers and ends at once race on two channels. What it said
            // tells more than that it ended: a mismatch stays one and is not tried again.
            (
                State::Ending(Ending {
                    then: Then::FailedStart(failure @ StartFailure::ExitedEarly { .. }),
                    ..
                }),
                Err(said),
            ) => *failure = said,
            // A good handshake of a dead child, or the end was decided otherwise.
            (
                State::Ending(_)
                | State::Idle { .. }
                | State::BackingOff { .. }
                | State::Preparing
                | State::Ready { .. }
                | State::Unavailable
                | State::Disposed,
                _,
            ) => {}
        }
    }

    fn ready(&mut self, handshake: Handshake) {
        let child = match std::mem::replace(&mut self.state, State::Unavailable) {
            State::Greeting { child } => child,
            other => {
                self.state = other;
                return;
            }
        };
        child
            .streams
            .set_line_limit(line_limit(handshake.limits.max_response_bytes));
        let longest = self.longest(Some(&handshake.limits));
        let negotiated = Arc::new(Negotiated {
            generation: child.number,
            pid: child.pid,
            handshake,
            image_dir: child.image_dir.clone(),
        });
        // Whether a waiting request can be understood is known only now.
        let offered = &negotiated.handshake.capabilities;
        let foreign = |it: &Request| it.generation.is_none() && !offered.understands(it.method);
        for request in self.pending.take_if(foreign) {
            self.reject(request, LifecycleCause::NotOffered, RequestStage::Queued);
        }
        self.pending.bind(child.number, longest);
        for started in self.starters.drain(..) {
            // Whoever went away needs no answer.
            drop(started.send(Ok(negotiated.clone())));
        }
        let now = Instant::now();
        let mute_until = child.output_closed.then_some(now);
        let stable_at = Some(now + self.shared.options.stable_after);
        self.state = State::Ready {
            child,
            negotiated,
            stable_at,
            mute_until,
        };
    }

    pub(super) fn greeting_breached(&mut self, breach: Breach) {
        self.greeting_failed(StartFailure::HandshakeViolation { breach });
    }

    fn greeting_failed(&mut self, failure: StartFailure) {
        let cause = LifecycleCause::Violation;
        self.end(
            ReleaseReason::ChildExit,
            cause,
            How::Kill,
            Then::FailedStart(failure),
        );
    }

    pub(super) fn hello_timed_out(&mut self) {
        let then = Then::FailedStart(StartFailure::HelloTimeout);
        self.end(
            ReleaseReason::RequestTimeout,
            LifecycleCause::RequestTimeout,
            How::Kill,
            then,
        );
    }

    /// No child is left of a start that failed.
    pub(super) fn start_failed(&mut self, failure: StartFailure, stderr: StderrExcerpt) {
        tracing::warn!(
            reason = failure.reason(),
            exit = failure.exit().map(tracing::field::display),
            generation = self.generation,
            attempts = self.budget.used(),
            "the executor could not be started"
        );
        if self.disposing {
            self.state = State::Disposed;
            return;
        }
        let class = failure.class();
        let last = Arc::new(LastFailure::new(failure, stderr));
        self.last_failure = Some(last.clone());
        match class {
            FailureClass::Retryable if self.budget.is_spent() => self.give_up(),
            FailureClass::Retryable => self.back_off(),
            FailureClass::Fatal | FailureClass::Mismatch => {
                self.state = State::Unavailable;
                self.refuse_waiting(&LifecycleCause::Start(last));
            }
        }
    }

    pub(super) fn back_off(&mut self) {
        self.state = State::BackingOff {
            until: Instant::now() + self.budget.pause(),
        };
    }

    /// No attempt is left.
    pub(super) fn give_up(&mut self) {
        self.state = State::Unavailable;
        self.tell(Event::Released(Release {
            generation: self.generation,
            generation_released: false,
            reason: ReleaseReason::RestartExhausted,
            sessions: Vec::new(),
            outcome_unknown: false,
        }));
        let last = self.last_failure.clone().unwrap_or_else(|| {
            let failure = StartFailure::Lost {
                reason: ReleaseReason::ChildExit,
                exit: None,
            };
            Arc::new(LastFailure::new(failure, StderrExcerpt::default()))
        });
        tracing::error!(
            reason = last.failure.reason(),
            exit = last.failure.exit().map(tracing::field::display),
            attempts = self.budget.used(),
            "the executor is given up: every attempt to start it is used"
        );
        self.refuse_waiting(&LifecycleCause::Exhausted {
            attempts: self.budget.used(),
            last,
        });
    }

    /// Answers everybody who waits for an executor that will not come.
    pub(super) fn refuse_waiting(&mut self, cause: &LifecycleCause) {
        for started in std::mem::take(&mut self.starters) {
            self.refuse_start(started, cause.clone());
        }
        for request in self.pending.take_if(|request| request.generation.is_none()) {
            self.reject(request, cause.clone(), RequestStage::Queued);
        }
    }
}

/// What the answer to `host.hello` comes down to, whichever form it has.
fn read_answer(body: ResponseBody, protocol: &str) -> Result<Handshake, StartFailure> {
    match body {
        ResponseBody::Result(result) => read_handshake(&result, protocol),
        ResponseBody::Error(error) if error.code() == Some(RpcCode::ProtocolVersionMismatch) => {
            Err(StartFailure::VersionMismatch)
        }
        ResponseBody::Error(error) => Err(StartFailure::HandshakeRpc {
            code: error.number(),
        }),
        ResponseBody::Malformed(violation) => Err(StartFailure::HandshakeViolation {
            breach: Breach::Field(violation),
        }),
    }
}

/// Reads the result of `host.hello` (spec 2.2). Another version is told from a malformed answer before anything else is read.
fn read_handshake(result: &Value, protocol: &str) -> Result<Handshake, StartFailure> {
    let violated = |violation| StartFailure::HandshakeViolation {
        breach: Breach::Field(violation),
    };
    match result.get("ok") {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Err(StartFailure::HandshakeRefused),
        Some(_) => return Err(violated(Violation::of("ok", Reason::NotBool))),
        None if result.is_object() => return Err(violated(Violation::of("ok", Reason::Missing))),
        None => return Err(violated(Violation::here(Reason::NotObject))),
    }
    if result
        .get("protocol")
        .and_then(Value::as_str)
        .is_some_and(|theirs| theirs != protocol)
    {
        return Err(StartFailure::VersionMismatch);
    }
    Handshake::read(result).map_err(violated)
}
