//! Sessions: who owns them, how many there are, and the one way for a call to reach a desktop.
//!
//! Each session is one task with a bounded mailbox that owns the session's snapshots, keys and order; see `task`. This
//! file is the registry and the entry: it checks the owner, hands the call to the task and waits for the answer. It
//! knows nothing of gRPC.
//!
//! Dropping the future of a call cancels that call. What was sent for a dispatch or a launch is settled and kept all the
//! same, and repeating the call with the same key tells what became of it.

pub mod answer;
pub mod call;
pub mod caller;
mod core;
mod ended;
mod held;
pub mod history;
pub mod host_event;
pub mod image;
mod index;
mod job;
mod keys;
mod meter;
mod mirror;
mod outcome;
mod route;
pub mod secret;
mod shared;
pub mod state;
mod task;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maka_cu_host::status::Negotiated;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::results::lists::{AppEntry, WindowEntry};
use maka_cu_protocol::results::{Answer, Permissions};
use maka_policy_host::judge::Judge;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use answer::{
    Decided, DispatchOutcome, DomainFault, EndedSession, Frame, ImageBytes, ImageId, LaunchOutcome,
    ScreenPicture, SessionSummary,
};
use call::{CallContext, CaptureCall, DispatchCall, LaunchCall, SnapshotCall};
use caller::{Caller, PrincipalName, Reach};
pub(crate) use core::unix_ms;
use ended::Ended;
use held::HeldButtons;
use history::History;
use host_event::{Desktop, HostEvent, Scope};
use index::Owners;
use job::{Job, Work};
use secret::RequestSecret;
use shared::Shared;
use task::{Inbox, Task};

use crate::error::{CallError, Limit};
use crate::events::{
    Events,
    what::{EndReason, LiveSession},
};
use crate::forward::{Forward, Sending};
use crate::policy::{actions::TextKey, standing::StandingWatch};

/// Images whose bytes are in memory at a time, each of at most [`image::IMAGE_MAX_BYTES`]: until a caller has taken them.
const IMAGES_AT_ONCE: usize = 8;

/// How long an image waits for room in memory.
const IMAGE_PATIENCE: Duration = Duration::from_secs(5);

/// Bounds and switches of all sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// A session without a call for this long ends by itself.
    pub idle_ttl: Duration,
    /// Sessions that one principal may have at a time.
    pub per_principal: usize,
    /// Sessions of the whole gateway.
    pub total: usize,
    /// The operator key `input.synthetic`: keys and points may be synthesised.
    pub synthetic_input: bool,
    /// How long a session rests after a person let go of pointer and keyboard.
    pub intervention_debounce: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            idle_ttl: Duration::from_secs(15 * 60),
            per_principal: 16,
            total: 256,
            synthetic_input: false,
            intervention_debounce: Duration::from_secs(3),
        }
    }
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sessions(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    parts: core::Parts,
    history: History,
    ended: Arc<Ended>,
    /// Room for the bytes of images on their way to callers.
    images: Arc<Semaphore>,
    settings: SessionSettings,
    entries: Mutex<Entries>,
    desktop: Mutex<Desktop>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<SessionId, Entry>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    owner: PrincipalName,
    began_unix_ms: u64,
    mailbox: mpsc::Sender<Job>,
    end: CancellationToken,
    ended: watch::Receiver<Option<EndedSession>>,
    shared: Arc<Shared>,
}

impl Sessions {
    /// A registry without sessions.
    #[must_use]
    pub fn new(
        forward: Forward,
        judge: Arc<Judge>,
        policy: StandingWatch,
        secret: RequestSecret,
        history: History,
        events: Events,
        settings: SessionSettings,
    ) -> Self {
        let parts = core::Parts {
            forward,
            events,
            judge,
            owners: Arc::new(Owners::default()),
            budget: mirror::Budget::default(),
            held: HeldButtons::default(),
            policy,
            secret,
            synthetic_input: settings.synthetic_input,
        };
        Self(Arc::new(Registry {
            parts,
            history,
            ended: Arc::default(),
            images: Arc::new(Semaphore::new(IMAGES_AT_ONCE)),
            settings,
            entries: Mutex::default(),
            desktop: Mutex::default(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Begins a session for this principal. Nothing is sent to the executor until the session's first call.
    ///
    /// # Errors
    /// A bound on sessions, the decision log takes no records, or the gateway is shutting down.
    ///
    /// # Panics
    /// Outside a tokio runtime, and when the system gives no random numbers: a guessable session id is worse than none.
    pub fn begin(&self, caller: &Caller) -> Result<SessionSummary, CallError> {
        if self.0.parts.judge.log().check().is_err() {
            return Err(CallError::Policy(Box::new(
                self.0.parts.judge.audit_unavailable(),
            )));
        }
        let id = SessionId::try_new(format!("s_{}", random_hex())).expect("the id has a prefix");
        // Held until the session is in the registry: an event is either in its beginning or reported to it.
        let desktop = self.desktop();
        let debounce = self.0.settings.intervention_debounce;
        let shared = Arc::new(Shared::new(desktop.machine(debounce, Instant::now())));
        let (mailbox, inbox) = mpsc::channel(task::MAILBOX);
        let (ended_sender, ended) = watch::channel(None);
        let entry = Entry {
            owner: caller.principal.clone(),
            began_unix_ms: shared.touched_unix_ms(),
            mailbox,
            end: CancellationToken::new(),
            ended,
            shared: shared.clone(),
        };
        let summary = self.summary(&id, &entry);
        let task = Task {
            core: core::Core::new(
                id.clone(),
                self.0.parts.clone(),
                shared.clone(),
                TextKey::new(random()),
            ),
            inbox: Inbox {
                id: id.clone(),
                mailbox: inbox,
                queue: VecDeque::new(),
                end: entry.end.clone(),
                shared,
                forward: self.0.parts.forward.clone(),
                events: self.0.parts.events.clone(),
            },
            idle_ttl: self.0.settings.idle_ttl,
            ended: ended_sender,
            owner: caller.principal.clone(),
            left: Arc::clone(&self.0.ended),
        };
        let mut entries = self.entries();
        if entries.closed {
            return Err(CallError::Cancelled);
        }
        if entries.by_id.len() >= self.0.settings.total {
            return Err(CallError::Limit(Limit::SessionsInTotal));
        }
        let own = entries
            .by_id
            .values()
            .filter(|entry| entry.owner == caller.principal)
            .count();
        if own >= self.0.settings.per_principal {
            return Err(CallError::Limit(Limit::SessionsOfPrincipal));
        }
        entries.by_id.insert(id.clone(), entry);
        self.0.parts.events.session_began(LiveSession {
            id: id.clone(),
            principal: caller.principal.clone(),
            began_unix_ms: summary.began_unix_ms,
        });
        let registry = Arc::clone(&self.0);
        self.0.tasks.spawn(task.run(move |id| {
            registry
                .entries
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .by_id
                .remove(id);
        }));
        drop(entries);
        drop(desktop);
        tracing::info!(session_id = %id, principal = %caller.principal, "session began");
        Ok(summary)
    }

    /// Ends a session: cancels what runs in it, drops its frames and images, and waits until that is done.
    ///
    /// # Errors
    /// There is no such session (any more), or it belongs to another principal.
    pub async fn end(
        &self,
        caller: &Caller,
        session: &SessionId,
    ) -> Result<EndedSession, CallError> {
        let mut entry = {
            let mut entries = self.entries();
            let entry = entries
                .by_id
                .get(session)
                .ok_or(CallError::SessionUnknown)?;
            let may_end = match caller.reach {
                Reach::All => true,
                Reach::Own | Reach::SeeAll => entry.owner == caller.principal,
            };
            if !may_end {
                return Err(CallError::SessionForeign);
            }
            entries
                .by_id
                .remove(session)
                .ok_or(CallError::SessionUnknown)?
        };
        entry
            .shared
            .end_because(if entry.owner == caller.principal {
                EndReason::Caller
            } else {
                EndReason::Operator
            });
        entry.end.cancel();
        // The task sends before it ends; a task that is gone without having sent has dropped everything.
        let ended = entry
            .ended
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|ended| *ended);
        Ok(ended.unwrap_or_default())
    }

    /// Takes note of what happened on the desktop beside the agents. Says how many sessions it concerned.
    ///
    /// # Errors
    /// When an event of one session names none or one that is not there, and when one of the whole desktop names any.
    pub fn report(
        &self,
        event: HostEvent,
        session: Option<&SessionId>,
    ) -> Result<usize, CallError> {
        let malformed = |rule| CallError::Malformed {
            field: "session_id",
            rule,
        };
        match (event.scope(), session) {
            (Scope::Desktop, Some(_)) => {
                return Err(malformed("not allowed: the event is about the desktop"));
            }
            (Scope::Session, None) => return Err(malformed("required by this event")),
            (Scope::Desktop | Scope::SessionOrAll, None)
            | (Scope::Session | Scope::SessionOrAll, Some(_)) => {}
        }
        let now = Instant::now();
        let mut desktop = self.desktop();
        desktop.saw(event, now);
        let concerned: Vec<_> = {
            let entries = self.entries();
            match session {
                Some(session) => {
                    let entry = entries.by_id.get(session);
                    vec![Arc::clone(&entry.ok_or(CallError::SessionUnknown)?.shared)]
                }
                None => entries
                    .by_id
                    .values()
                    .map(|entry| Arc::clone(&entry.shared))
                    .collect(),
            }
        };
        for shared in &concerned {
            shared.happened(event.happening(now));
        }
        tracing::info!(
            event = event.as_str(),
            sessions = concerned.len(),
            "host event"
        );
        Ok(concerned.len())
    }

    /// The caller's sessions, or every session, as the caller's reach says. Oldest first.
    #[must_use]
    pub fn list(&self, caller: &Caller) -> Vec<SessionSummary> {
        let entries = self.entries();
        let seen = entries
            .by_id
            .iter()
            .filter(|(_, entry)| match caller.reach {
                Reach::SeeAll | Reach::All => true,
                Reach::Own => entry.owner == caller.principal,
            });
        let mut summaries: Vec<_> = seen.map(|(id, entry)| self.summary(id, entry)).collect();
        summaries.sort_by(|one, other| {
            (one.began_unix_ms, one.session_id.as_str())
                .cmp(&(other.began_unix_ms, other.session_id.as_str()))
        });
        summaries
    }

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

    /// The bytes of an image, verified. Does not wait behind the session's calls.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn read_image(
        &self,
        caller: &Caller,
        session: &SessionId,
        image_id: &ImageId,
        context: CallContext,
    ) -> Result<ImageBytes, CallError> {
        let entry = self.find(caller, session)?;
        let _counted = entry.shared.enter();
        let stored = {
            let images = entry
                .shared
                .images
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            images
                .find(image_id, Instant::now())
                .ok_or(CallError::ImageUnknown)?
        };
        let (generation, info) = (stored.source.generation, stored.info.clone());
        let read = async {
            let room = Arc::clone(&self.0.images).acquire_owned();
            let room = match timeout(IMAGE_PATIENCE, room).await {
                Ok(room) => room.expect("the semaphore is never closed"),
                Err(_) => return Err(CallError::Limit(Limit::ImagesAtOnce)),
            };
            // The room goes with the reader: a caller that leaves does not stop it.
            let read = tokio::task::spawn_blocking(move || {
                image::read(&stored.source, &stored.info).map(|data| (data, room))
            })
            .await;
            match read {
                Ok(Ok((data, room))) => Ok(ImageBytes {
                    info,
                    data,
                    _room: Some(room),
                }),
                Ok(Err(image::ReadError::TooLarge)) => Err(CallError::ImageTooLarge),
                Ok(Err(image::ReadError::Violation(violation))) => {
                    let method = maka_cu_protocol::method::Method::Observe;
                    self.0
                        .parts
                        .forward
                        .report_violation(generation, method, violation);
                    Err(CallError::Protocol {
                        generation,
                        decision_id: None,
                    })
                }
                // A reader that panicked has read nothing.
                Ok(Err(image::ReadError::Unreadable)) | Err(_) => Err(CallError::ImageUnreadable),
            }
        };
        until(context.deadline, read).await
    }

    /// Begins no further session, cancels what runs, ends every session and waits for their tasks. Bounded by the
    /// executor's cancel grace and the time it may take to end a session.
    pub async fn shutdown(&self) {
        let ending: Vec<_> = {
            let mut entries = self.entries();
            entries.closed = true;
            entries
                .by_id
                .values()
                .map(|entry| {
                    entry.shared.end_because(EndReason::Shutdown);
                    entry.end.clone()
                })
                .collect()
        };
        ending.iter().for_each(CancellationToken::cancel);
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn find(&self, caller: &Caller, session: &SessionId) -> Result<Entry, CallError> {
        let entries = self.entries();
        let entry = entries
            .by_id
            .get(session)
            .ok_or(CallError::SessionUnknown)?;
        if entry.owner == caller.principal {
            Ok(entry.clone())
        } else {
            Err(CallError::SessionForeign)
        }
    }

    fn summary(&self, id: &SessionId, entry: &Entry) -> SessionSummary {
        SessionSummary {
            session_id: id.clone(),
            principal: entry.owner.clone(),
            began_unix_ms: entry.began_unix_ms,
            last_used_unix_ms: entry.shared.touched_unix_ms(),
            live_snapshots: entry
                .shared
                .live(self.0.parts.forward.generation(), Instant::now()),
            calls_in_flight: entry.shared.calls_in_flight(),
            state: entry.shared.machine().state(Instant::now()),
            idle_ttl_ms: u64::try_from(self.0.settings.idle_ttl.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn desktop(&self) -> MutexGuard<'_, Desktop> {
        self.0
            .desktop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
async fn until<T>(
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

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .expect("a system without random numbers can not name a session safely");
    bytes
}

fn random_hex() -> String {
    random::<16>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests;
