//! Sessions: who owns them, how many there are, and the one way for a call to reach a desktop.
//!
//! Each session is one task with a bounded mailbox that owns the session's snapshots, keys and order; see `task`. This
//! file is the registry; `entry` checks the owner, hands the call to the task and waits for the answer. Neither knows of
//! gRPC.
//!
//! Dropping the future of a call cancels that call. What was sent for a dispatch or a launch is settled and kept all the
//! same, and repeating the call with the same key tells what became of it.

pub mod answer;
pub mod call;
pub mod caller;
mod conditions;
mod core;
mod ended;
mod entry;
mod held;
pub mod history;
pub mod host_event;
pub mod image;
pub(crate) mod image_reading;
pub(crate) mod image_rooms;
mod index;
mod job;
mod keys;
mod meter;
mod mirror;
mod outcome;
mod paint;
mod remembered;
mod route;
pub mod secret;
mod shared;
pub mod state;
mod task;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maka_cu_host::displays::Display;
use maka_cu_protocol::ids::SessionId;
use maka_policy_host::judge::Judge;
use maka_policy_host::log::{ControlKind, PersonRecord};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use answer::{EndedSession, SessionSummary};
use caller::{Caller, PrincipalName, Reach};
pub(crate) use core::unix_ms;
use ended::Ended;
use held::HeldButtons;
use history::History;
use host_event::Desktop;
use image_rooms::ImageRooms;
use index::Owners;
use job::Job;
use secret::RequestSecret;
use shared::Shared;
use state::Happening;
use task::{Inbox, Task};

use crate::approval::{ApprovalEnd, Approvals};
use crate::error::{ApprovalError, CallError, Limit};
use crate::events::{
    Events,
    what::{EndReason, LiveSession},
};
use crate::forward::Forward;
use crate::policy::{actions::TextKey, standing::StandingWatch};

/// Bounds and switches of all sessions.
#[derive(Clone, Debug)]
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
    /// How long an approval is waited for, and once given can be used.
    pub approval_lifetime: Duration,
    /// The displays as the operator describes them; none: as the executor's snapshots do.
    pub displays: Vec<Display>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            idle_ttl: Duration::from_secs(15 * 60),
            per_principal: 16,
            total: 256,
            synthetic_input: false,
            intervention_debounce: Duration::from_secs(3),
            approval_lifetime: Duration::from_secs(60),
            displays: Vec::new(),
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
    images: ImageRooms,
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
        let approvals = Approvals::new(
            Arc::clone(&judge),
            forward.clone(),
            events.clone(),
            settings.approval_lifetime,
        );
        let parts = core::Parts {
            forward,
            events,
            approvals,
            judge,
            owners: Arc::new(Owners::default()),
            budget: mirror::Budget::default(),
            held: HeldButtons::default(),
            displays: settings.displays.clone().into(),
            policy,
            secret,
            synthetic_input: settings.synthetic_input,
        };
        Self(Arc::new(Registry {
            parts,
            history,
            ended: Arc::default(),
            images: ImageRooms::default(),
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
            state: summary.state,
            quarantined: false,
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

    /// What people are asked to approve.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.0.parts.approvals
    }

    /// Opens a quarantined session for actions again; it has to observe first. Says whether it was closed.
    ///
    /// # Errors
    /// There is no such session, it is the caller's own, or the decision log does not take the record.
    pub fn clear_quarantine(
        &self,
        caller: &Caller,
        session: &SessionId,
    ) -> Result<bool, CallError> {
        let entry = {
            let entries = self.entries();
            entries.by_id.get(session).cloned()
        };
        let entry = entry.ok_or(CallError::SessionUnknown)?;
        if entry.owner == caller.principal {
            return Err(ApprovalError::Own.into());
        }
        if !entry.shared.is_quarantined() {
            return Ok(false);
        }
        let parts = &self.0.parts;
        let record = PersonRecord {
            kind: ControlKind::QuarantineCleared,
            session: session.as_str(),
            approval: None,
            by: Some(caller.principal.as_str()),
            why: None,
        };
        if parts.judge.log().person(record).is_err() {
            return Err(CallError::Policy(Box::new(parts.judge.audit_unavailable())));
        }
        // What was observed before is from a world that was not to be trusted.
        let state = entry.shared.happened(Happening::Intervened);
        parts
            .approvals
            .drop_session(session, ApprovalEnd::Intervened);
        entry.shared.set_quarantined(false);
        parts.events.session_state(session, state);
        parts.events.quarantine(session, false);
        tracing::warn!(session_id = %session, by = %caller.principal, "quarantine cleared");
        Ok(true)
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
            quarantined: entry.shared.is_quarantined(),
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
