//! What happens, told to whoever watches.
//!
//! Owns the present state as events describe it (the executor's status, the sessions, the action of each) and one
//! bounded queue for each watcher. Sessions tell what they do, the supervisor's own events are taken from its stream;
//! [`Watcher`] is the other end. It knows nothing of gRPC and decides nothing: what is told here is presentation, and no
//! action waits for it, asks it or changes by it.
//!
//! INVARIANTS: telling takes one short lock, never awaits and never fails; a watcher gets its events in the order in
//! which they were told; a watcher is told of a session only if it may see it; its first message, and the
//! first after a loss, is the present state, so that it never has to guess.
//!
//! A queue that is full is emptied, and what was in it is counted: the watcher gets the present state and the count
//! instead. To drop only the oldest event would leave a slow watcher with the state it started from, hundreds of stale
//! events, and no way to know what the lost ones had changed.

mod view;
mod watcher;
pub mod what;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use maka_cu_host::event::Event as HostEvent;
use maka_cu_host::{EventStream, Status};
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::{SessionId, WindowKey};
use maka_cu_protocol::sets::{Outcome, ReleaseReason};
use tokio::task::unconstrained;

pub use watcher::{QUEUE_MAX, WATCHERS_PER_PRINCIPAL, Watcher};

use crate::approval::{Approval, ApprovalEnd, ApprovalId};
use crate::error::{CallError, Limit};
use crate::session::caller::{Caller, PrincipalName};
use crate::session::state::SessionState;
use view::View;
use watcher::Subscriber;
use what::{Action, ActionEnd, EndReason, ExecutorStatus, LiveSession, Present, What};

/// Owners of ended sessions that are remembered. A release can be heard of after the session it names has ended.
const LEFT_MAX: usize = 256;

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events(Arc<Mutex<Hub>>);

#[derive(Debug)]
struct Hub {
    /// The supervisor's events that nobody has taken yet. They are taken before anything else is told, so that what a
    /// session learned from the supervisor is never told before what the supervisor said first.
    source: Option<EventStream>,
    executor: ExecutorStatus,
    sessions: HashMap<SessionId, Known>,
    left: VecDeque<(SessionId, PrincipalName)>,
    /// What is not over; as few as the table of approvals holds.
    approvals: BTreeMap<ApprovalId, Approval>,
    subscribers: HashMap<u64, Subscriber>,
    next_id: u64,
    closed: bool,
}

#[derive(Debug)]
struct Known {
    session: LiveSession,
    action: Option<Action>,
}

impl Events {
    /// Nobody watches yet. `executor` is the supervisor's status and its events from then on; nothing when there is no
    /// back end.
    #[must_use]
    pub fn new(executor: Option<(Status, EventStream)>) -> Self {
        let (executor, source) = match executor {
            Some((status, events)) => (ExecutorStatus::from(&status), Some(events)),
            None => (ExecutorStatus::NO_BACKEND, None),
        };
        Self(Arc::new(Mutex::new(Hub {
            source,
            executor,
            sessions: HashMap::new(),
            left: VecDeque::new(),
            approvals: BTreeMap::new(),
            subscribers: HashMap::new(),
            next_id: 0,
            closed: false,
        })))
    }

    /// Passes the supervisor's events on until the supervisor is gone. `heard` is another stream of the same supervisor
    /// and only says that there is something to take.
    pub async fn follow(&self, mut heard: EventStream) {
        while heard.next().await.is_some() {
            self.with(|_| ());
        }
    }

    /// Begins to watch. With a session, only that one beside the executor.
    ///
    /// # Errors
    /// The session is not there or not the caller's to see, the principal watches too often already, or the gateway
    /// ends.
    pub fn watch(&self, caller: &Caller, session: Option<SessionId>) -> Result<Watcher, CallError> {
        let view = View::new(caller, session);
        let id = self.with(|hub| hub.subscribe(view))?;
        Ok(Watcher::new(self.clone(), id))
    }

    /// Begins to watch as somebody who is there to approve. Only for callers who may: to others it is a watch like any.
    ///
    /// # Errors
    /// As [`Events::watch`].
    pub fn watch_to_approve(
        &self,
        caller: &Caller,
        session: Option<SessionId>,
    ) -> Result<Watcher, CallError> {
        let view = View::new(caller, session).approving();
        let id = self.with(|hub| hub.subscribe(view))?;
        Ok(Watcher::new(self.clone(), id))
    }

    /// Whether somebody is there who can approve what this principal asks for in this session.
    pub(crate) fn has_approver(&self, session: &SessionId, asker: &PrincipalName) -> bool {
        self.with(|hub| {
            let mut subscribers = hub.subscribers.values();
            subscribers.any(|subscriber| subscriber.view.approves(session, asker))
        })
    }

    /// An approval is asked for, or somebody has said something to it.
    pub(crate) fn approval(&self, approval: Approval) {
        self.with(|hub| {
            hub.approvals.insert(approval.id.clone(), approval.clone());
            hub.tell(&What::Approval(Box::new(approval)));
        });
    }

    /// An approval is over.
    pub(crate) fn approval_ended(&self, approval: Approval, why: ApprovalEnd) {
        self.with(|hub| {
            hub.approvals.remove(&approval.id);
            hub.tell(&What::ApprovalEnded(Box::new(approval), why));
        });
    }

    /// A session was closed for actions, or opened again. Told when it was otherwise.
    pub(crate) fn quarantine(&self, session: &SessionId, quarantined: bool) {
        self.with(|hub| {
            let Some(known) = hub.sessions.get_mut(session) else {
                return;
            };
            if known.session.quarantined != quarantined {
                known.session.quarantined = quarantined;
                hub.tell(&What::Quarantine(session.clone(), quarantined));
            }
        });
    }

    /// Tells every watcher that the gateway is disposed of, and ends the streams.
    pub fn close(&self) {
        self.with(|hub| {
            hub.closed = true;
            hub.subscribers.values_mut().for_each(Subscriber::wake);
        });
    }

    pub(crate) fn session_began(&self, session: LiveSession) {
        self.with(|hub| {
            let known = Known {
                session: session.clone(),
                action: None,
            };
            hub.sessions.insert(session.id.clone(), known);
            hub.tell(&What::SessionBegan(session));
        });
    }

    pub(crate) fn session_ended(&self, session: &SessionId, reason: EndReason) {
        self.with(|hub| {
            hub.tell(&What::SessionEnded(session.clone(), reason));
            if let Some(known) = hub.sessions.remove(session) {
                hub.left
                    .push_back((session.clone(), known.session.principal));
                if hub.left.len() > LEFT_MAX {
                    hub.left.pop_front();
                }
            }
        });
    }

    /// What the session may do is this now. Told when it was something else.
    pub(crate) fn session_state(&self, session: &SessionId, state: SessionState) {
        self.with(|hub| {
            let Some(known) = hub.sessions.get_mut(session) else {
                return;
            };
            if known.session.state != state {
                known.session.state = state;
                hub.tell(&What::SessionState(session.clone(), state));
            }
        });
    }

    /// A button of the session may be down and cannot be let go of.
    pub(crate) fn may_be_held(&self, session: &SessionId, window: WindowKey) {
        self.with(|hub| hub.tell(&What::MayBeHeld(session.clone(), window)));
    }

    pub(crate) fn action_began(&self, action: Action) {
        self.with(|hub| {
            if let Some(known) = hub.sessions.get_mut(&action.session) {
                known.action = Some(action.clone());
            }
            hub.tell(&What::ActionBegan(action));
        });
    }

    /// The action ended. `point` is where it went, as far as its caller may know that.
    pub(crate) fn action_ended(
        &self,
        action: Action,
        outcome: Outcome,
        point: Option<ScreenPoint>,
    ) {
        self.with(|hub| {
            if let Some(known) = hub.sessions.get_mut(&action.session) {
                known.action = None;
            }
            hub.tell(&What::ActionEnded(ActionEnd::new(action, outcome, point)));
        });
    }

    /// Everything that touches the hub goes through here; what the supervisor said comes first.
    fn with<T>(&self, change: impl FnOnce(&mut Hub) -> T) -> T {
        let mut hub = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hub.take_from_source();
        change(&mut hub)
    }
}

impl Hub {
    fn take_from_source(&mut self) {
        let Some(mut source) = self.source.take() else {
            return;
        };
        // Unconstrained: a task that has used up its share of a turn would otherwise see an empty stream.
        while let Some(event) = unconstrained(source.next()).now_or_never() {
            match event {
                Some(HostEvent::Status(status)) => {
                    self.executor = ExecutorStatus::from(&status);
                    self.tell(&What::Executor(self.executor.clone()));
                }
                // The service as a whole: `disposed` says so, when everything else has ended, too.
                Some(HostEvent::Released(release))
                    if release.reason == ReleaseReason::Disposed
                        && !release.generation_released => {}
                Some(HostEvent::Released(release)) => self.tell(&What::Released(release)),
                Some(HostEvent::Lost { count }) => {
                    for subscriber in self.subscribers.values_mut() {
                        subscriber.lose(count);
                    }
                }
                None => return,
            }
        }
        self.source = Some(source);
    }

    fn tell(&mut self, what: &What) {
        let owners = Owners {
            sessions: &self.sessions,
            left: &self.left,
        };
        for subscriber in self.subscribers.values_mut() {
            if let Some(what) = subscriber.view.shape(what, &owners) {
                subscriber.push(what);
            }
        }
    }

    fn subscribe(&mut self, view: View) -> Result<u64, CallError> {
        if self.closed {
            return Err(CallError::Cancelled);
        }
        if let Some(session) = view.session() {
            let known = self.sessions.get(session);
            let owner = &known.ok_or(CallError::SessionUnknown)?.session.principal;
            if !view.may_see_sessions_of(owner) {
                return Err(CallError::SessionForeign);
            }
        }
        let of_principal = self
            .subscribers
            .values()
            .filter(|subscriber| subscriber.view.is_of(&view))
            .count();
        if of_principal >= WATCHERS_PER_PRINCIPAL {
            return Err(CallError::Limit(Limit::WatchersOfPrincipal));
        }
        let present = self.present(&view);
        let id = self.next_id;
        self.next_id += 1;
        self.subscribers.insert(id, Subscriber::new(view, present));
        Ok(id)
    }

    /// The present state, as far as this view goes.
    fn present(&self, view: &View) -> Present {
        let mut sessions: Vec<_> = self
            .sessions
            .values()
            .filter(|known| view.sees(&known.session.id, Some(&known.session.principal)))
            .collect();
        sessions.sort_by(|one, other| {
            let key = |known: &Known| (known.session.began_unix_ms, known.session.id.clone());
            key(one).cmp(&key(other))
        });
        Present {
            executor: self.executor.clone(),
            actions: sessions
                .iter()
                .filter_map(|known| known.action.clone())
                .collect(),
            sessions: sessions
                .into_iter()
                .map(|known| known.session.clone())
                .collect(),
            approvals: self
                .approvals
                .values()
                .filter(|it| view.sees(&it.wanted.session, Some(&it.wanted.principal)))
                .cloned()
                .collect(),
        }
    }
}

/// Who owns which session, now or a moment ago.
#[derive(Debug)]
struct Owners<'a> {
    sessions: &'a HashMap<SessionId, Known>,
    left: &'a VecDeque<(SessionId, PrincipalName)>,
}

impl Owners<'_> {
    fn of(&self, session: &SessionId) -> Option<&PrincipalName> {
        let live = self
            .sessions
            .get(session)
            .map(|known| &known.session.principal);
        live.or_else(|| {
            self.left
                .iter()
                .find(|(left, _)| left == session)
                .map(|(_, owner)| owner)
        })
    }
}

#[cfg(test)]
mod tests;
