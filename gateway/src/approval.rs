//! Approvals: what a person is asked, what the person said, and the one use of it.
//!
//! Owns the table of all sessions (`book`) and tells watchers and the decision log of each change. It asks no policy and
//! sends nothing: a session asks it for the standing of an action before it has that judged, and uses a grant up before
//! it sends. An approver is whoever has an open `Events.Watch` that says so; see [`crate::events`].
//!
//! INVARIANTS: a grant lets through exactly the action that was shown, once, while nothing it was given for has changed:
//! the policies, the executor, the snapshot, what happened on the desktop, the session. Nobody approves what is asked for
//! in their own name. A grant that could not be recorded is none.

mod book;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maka_cu_protocol::ids::{SessionId, WindowKey};
use maka_policy_host::codes::Ask;
use maka_policy_host::facts::{Approving, Grant, Path, Rect, Tier};
use maka_policy_host::fingerprint::Fingerprint;
use maka_policy_host::judge::Judge;
use maka_policy_host::log::{ControlKind, PersonRecord};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub(crate) use book::Standing;
use book::{Binding, Book, Now};
pub use book::{Counts, PENDING_MAX};

use crate::error::{ApprovalError, CallError};
use crate::events::Events;
use crate::forward::Forward;
use crate::session::caller::{Caller, PrincipalName};
use crate::session::unix_ms;

/// How often it is looked whether what waits still can be approved, while something waits.
const SWEEP: Duration = Duration::from_secs(1);

/// Names an approval: the id of the decision that asked for it first.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ApprovalId(Arc<str>);

impl ApprovalId {
    /// Wraps an id.
    #[must_use]
    pub fn new(id: impl AsRef<str>) -> Self {
        Self(id.as_ref().into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where an approval stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApprovalState {
    /// Nobody has said anything.
    Waiting,
    /// This principal approved; the action was not sent yet.
    Approved(PrincipalName),
    /// This principal rejected.
    Rejected(PrincipalName),
}

/// Why an approval is over.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ApprovalEnd {
    /// The action was let through by it.
    Used,
    /// Its time was up.
    Expired,
    /// Other policies are active.
    PolicyChanged,
    /// Another executor is there, or none.
    ExecutorChanged,
    /// The snapshot that the action quotes changed or died.
    SnapshotChanged,
    /// Something happened on the desktop beside the agent.
    Intervened,
    /// Its session ended.
    SessionEnded,
}

impl ApprovalEnd {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Used,
        Self::Expired,
        Self::PolicyChanged,
        Self::ExecutorChanged,
        Self::SnapshotChanged,
        Self::Intervened,
        Self::SessionEnded,
    ];

    /// The reason in the decision log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Expired => "expired",
            Self::PolicyChanged => "policy_changed",
            Self::ExecutorChanged => "executor_changed",
            Self::SnapshotChanged => "snapshot_changed",
            Self::Intervened => "intervened",
            Self::SessionEnded => "session_ended",
        }
    }
}

/// What a person says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resolution {
    /// Go ahead, once.
    Approve,
    /// No; or no longer, when it was approved and not used.
    Reject,
}

/// What is wanted, for a person to decide on. Nothing in it is text of an application or typed text.
#[derive(Clone, PartialEq)]
pub struct Wanted {
    /// The session.
    pub session: SessionId,
    /// Who asks.
    pub principal: PrincipalName,
    /// The caller's key; empty for a read.
    pub tool_call_id: String,
    /// The model's turn; empty when the caller does not say.
    pub turn: String,
    /// The executor's method.
    pub method: &'static str,
    /// What is to be done, for example `click` or `type`.
    pub kind: String,
    /// Bytes of the text that would be typed or set.
    pub text_length: Option<u32>,
    /// The chord of a named key.
    pub key: Option<String>,
    /// The point, in pixels of the quoted snapshot's picture.
    pub point: Option<(f64, f64)>,
    /// The application to launch, as the caller named it.
    pub launch: Option<String>,
    /// The application of the quoted snapshot.
    pub app_id: String,
    /// The window of the quoted snapshot.
    pub window: Option<WindowKey>,
    /// The quoted snapshot.
    pub snapshot_id: String,
    /// Its window digest.
    pub window_digest: String,
    /// The quoted element.
    pub element: Option<WantedElement>,
    /// The demanded tier.
    pub tier: Option<Tier>,
    /// The demanded path.
    pub path: Option<Path>,
    /// What the policies say, one for each that asks.
    pub asks: Vec<Ask>,
    /// The decision that asked for it first.
    pub decision_id: String,
    /// The one action it is about.
    pub fingerprint: Fingerprint,
}

impl std::fmt::Debug for Wanted {
    /// Leaves out what is in the agent's words.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Wanted")
            .field("session", &self.session)
            .field("method", &self.method)
            .field("decision_id", &self.decision_id)
            .finish_non_exhaustive()
    }
}

/// The element that an action is about.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedElement {
    /// Its token in the quoted snapshot.
    pub token: String,
    /// Its digest.
    pub digest: String,
    /// Its role.
    pub role: String,
    /// Whether it is a field for secrets.
    pub secure: bool,
    /// Where it is in its window.
    pub frame: Option<Rect>,
}

/// An approval as it is listed and told.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// What is wanted.
    pub wanted: Arc<Wanted>,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub asked_unix_ms: u64,
    /// Until when it can be decided, or once approved be used, likewise.
    pub expires_unix_ms: u64,
}

/// What the session knows of the moment at which it asks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Moment {
    pub(crate) session: SessionId,
    pub(crate) row_version: u64,
    pub(crate) burials: u64,
    pub(crate) executor_generation: u64,
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Approvals(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    book: Mutex<Book>,
    judge: Arc<Judge>,
    forward: Forward,
    events: Events,
    lifetime: Duration,
    asked: Notify,
}

impl Approvals {
    /// Nothing is asked yet. What is asked, and what is granted, lives for `lifetime`.
    #[must_use]
    pub fn new(judge: Arc<Judge>, forward: Forward, events: Events, lifetime: Duration) -> Self {
        Self(Arc::new(Inner {
            book: Mutex::default(),
            judge,
            forward,
            events,
            lifetime,
            asked: Notify::new(),
        }))
    }

    /// What waits or is approved and not used, oldest first, and lately rejected; and the counts since the start.
    #[must_use]
    pub fn list(&self) -> (Vec<Approval>, Counts) {
        self.with(|book, _| (book.list(), book.counts()))
    }

    /// Decides. What was approved and not used can still be rejected.
    ///
    /// # Errors
    /// There is no such approval any more, it was decided already, it is the caller's own, or the decision log does not
    /// take it.
    pub fn resolve(
        &self,
        who: &Caller,
        id: &ApprovalId,
        resolution: Resolution,
    ) -> Result<Approval, CallError> {
        self.with(|book, now| {
            let known = book.find(id).ok_or(ApprovalError::Unknown)?;
            if known.wanted.principal == who.principal {
                return Err(ApprovalError::Own.into());
            }
            let session = known.wanted.session.clone();
            book.may_resolve(id, resolution)?;
            let kind = match resolution {
                Resolution::Approve => ControlKind::ApprovalGranted,
                Resolution::Reject => ControlKind::ApprovalRejected,
            };
            let recorded = self.0.judge.log().person(PersonRecord {
                kind,
                session: session.as_str(),
                approval: Some(id.as_str()),
                by: Some(who.principal.as_str()),
                why: None,
            });
            // A rejection only narrows, so it counts all the same.
            if recorded.is_err() && resolution == Resolution::Approve {
                return Err(CallError::Policy(Box::new(
                    self.0.judge.audit_unavailable(),
                )));
            }
            let approval = book.resolve(id, &who.principal, resolution, now)?;
            self.0.events.approval(approval.clone());
            Ok(approval)
        })
    }

    /// How an action stands that is about to be judged.
    pub(crate) fn standing(
        &self,
        moment: &Moment,
        asker: &PrincipalName,
        identify: impl FnOnce() -> (Fingerprint, u64),
    ) -> (Standing, Approving) {
        let standing = self.with(|book, now| {
            // The fingerprint costs a hash of everything; most sessions ask for nothing.
            if book.is_empty_for(&moment.session) {
                return Standing::Nothing;
            }
            let (fingerprint, policy_generation) = identify();
            let standing = book.standing(&binding(moment, fingerprint, policy_generation), now);
            self.tell(book);
            standing
        });
        let approving = match &standing {
            Standing::Waiting(_) | Standing::Granted(_) => Approving::Possible,
            Standing::Rejected => Approving::Rejected,
            Standing::Full => Approving::Full,
            Standing::Nothing if self.0.events.has_approver(&moment.session, asker) => {
                Approving::Possible
            }
            Standing::Nothing => Approving::Unavailable,
        };
        (standing, approving)
    }

    /// Asks, or finds what was asked already. Nothing when the session may ask for no more, which was looked at before the
    /// call was judged.
    pub(crate) fn ask(
        &self,
        moment: &Moment,
        policy_generation: u64,
        wanted: Wanted,
    ) -> Option<Approval> {
        let approval = self.with(|book, now| {
            let binding = binding(moment, wanted.fingerprint, policy_generation);
            let asked = book.ask(binding, wanted, now, self.0.lifetime);
            self.tell(book);
            let (approval, is_new) = asked?;
            if is_new {
                self.0.events.approval(approval.clone());
            }
            Some(approval)
        });
        self.0.asked.notify_one();
        approval
    }

    /// Uses a grant up for the call that is about to be sent. Says whether it was there to be used.
    pub(crate) fn consume(
        &self,
        id: &str,
        moment: &Moment,
        fingerprint: Fingerprint,
        policy_generation: u64,
    ) -> bool {
        self.with(|book, now| {
            let binding = binding(moment, fingerprint, policy_generation);
            let used = book.consume(&ApprovalId::new(id), &binding, now);
            self.tell(book);
            used
        })
    }

    /// Drops what a session asked for and was given.
    pub(crate) fn drop_session(&self, session: &SessionId, why: ApprovalEnd) {
        self.with(|book, _| {
            book.drop_session(session, why);
            self.tell(book);
        });
    }

    /// Drops what was asked on a snapshot that is not what it was. `version` tells the version of a row now.
    pub(crate) fn follow_rows(
        &self,
        session: &SessionId,
        version: impl FnMut(&str) -> Option<u64>,
    ) {
        self.with(|book, _| {
            if !book.is_empty_for(session) {
                book.follow_rows(session, version);
                self.tell(book);
            }
        });
    }

    /// Ends what is over while nobody asks, until `stop`.
    pub async fn follow(&self, stop: CancellationToken) {
        loop {
            let is_empty = self.with(|book, _| book.is_empty());
            // All are cancel-safe.
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.0.asked.notified(), if is_empty => {}
                () = sleep(SWEEP), if !is_empty => {}
            }
        }
    }

    /// Everything that touches the book goes through here; what is over is ended first.
    fn with<T>(&self, change: impl FnOnce(&mut Book, &Now) -> T) -> T {
        let now = Now {
            at: Instant::now(),
            unix_ms: unix_ms(),
            policy_generation: self.0.judge.generation(),
            executor_generation: self.0.forward.generation(),
        };
        let mut book = self.lock();
        book.sweep(&now);
        self.tell(&mut book);
        change(&mut book, &now)
    }

    /// Tells what ended since the last time, while the book is held: nobody hears of an end before its beginning.
    fn tell(&self, book: &mut Book) {
        for (approval, why) in book.take_ended() {
            if why != ApprovalEnd::Used {
                let recorded = self.0.judge.log().person(PersonRecord {
                    kind: ControlKind::ApprovalEnded,
                    session: approval.wanted.session.as_str(),
                    approval: Some(approval.id.as_str()),
                    by: None,
                    why: Some(why.as_str()),
                });
                // It lets nothing through, so it ends whether or not it can be recorded.
                if recorded.is_err() {
                    tracing::error!(
                        approval = approval.id.as_str(),
                        "the end of an approval could not be recorded"
                    );
                }
            }
            self.0.events.approval_ended(approval, why);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn binding(moment: &Moment, fingerprint: Fingerprint, policy_generation: u64) -> Binding {
    let Moment {
        session,
        row_version,
        burials,
        executor_generation,
    } = moment.clone();
    Binding {
        session,
        fingerprint,
        row_version,
        burials,
        executor_generation,
        policy_generation,
    }
}

/// The grant as policies see it.
fn grant(id: &ApprovalId, by: &PrincipalName, fingerprint: Fingerprint, expires: u64) -> Grant {
    Grant {
        id: id.as_str().to_owned(),
        granted_by: by.as_str().to_owned(),
        expires_unix_ms: expires,
        fingerprint: fingerprint.to_string(),
        unused: true,
    }
}
