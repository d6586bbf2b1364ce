//! The table of approvals: pure, with the present handed in.
//!
//! Each line is bound to one action of one session at one moment. Lines end; what ended is kept until it was told. At most
//! [`PENDING_MAX`] lines of one session exist at a time, rejected ones included, so that a session cannot wear a person
//! out by asking again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::ids::SessionId;
use maka_policy_host::facts::Grant;
use maka_policy_host::fingerprint::Fingerprint;
use tokio::time::Instant;

use super::{
    Approval, ApprovalEnd, ApprovalId, ApprovalState, PrincipalName, Resolution, Wanted, grant,
};
use crate::error::ApprovalError;

/// Lines that one session may have at a time: waiting, approved and not used, or lately rejected.
pub const PENDING_MAX: usize = 4;

/// The present, as far as lines depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) at: Instant,
    pub(super) unix_ms: u64,
    pub(super) policy_generation: u64,
    pub(super) executor_generation: u64,
}

/// What a line is bound to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Binding {
    pub(super) session: SessionId,
    pub(super) fingerprint: Fingerprint,
    /// The version of the quoted snapshot's row.
    pub(super) row_version: u64,
    /// How often something had happened that made every frame of the session worthless.
    pub(super) burials: u64,
    pub(super) executor_generation: u64,
    pub(super) policy_generation: u64,
}

/// What became of approvals since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Asked for.
    pub asked: u64,
    /// Approved.
    pub approved: u64,
    /// Rejected, or taken back.
    pub rejected: u64,
    /// Used by the action they were for.
    pub used: u64,
    /// Over because their time was up.
    pub expired: u64,
    /// Over because what they were for had changed.
    pub dropped: u64,
}

/// How an action stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    /// Nobody was asked.
    Nothing,
    /// Somebody was asked and has not said anything.
    Waiting(ApprovalId),
    /// It may go ahead, once.
    Granted(Grant),
    /// Somebody said no.
    Rejected,
    /// Nobody was asked, and nobody can be.
    Full,
}

#[derive(Debug)]
struct Line {
    binding: Binding,
    wanted: Arc<Wanted>,
    state: ApprovalState,
    asked_unix_ms: u64,
    expires: Instant,
    expires_unix_ms: u64,
    lifetime: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Book {
    lines: BTreeMap<ApprovalId, Line>,
    ended: Vec<(Approval, ApprovalEnd)>,
    counts: Counts,
}

impl Book {
    /// Ends what the present has ended.
    pub(super) fn sweep(&mut self, now: &Now) {
        self.end_where(|line| {
            if line.expires <= now.at {
                Some(ApprovalEnd::Expired)
            } else if line.binding.policy_generation != now.policy_generation {
                Some(ApprovalEnd::PolicyChanged)
            } else if line.binding.executor_generation != now.executor_generation {
                Some(ApprovalEnd::ExecutorChanged)
            } else {
                None
            }
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn is_empty_for(&self, session: &SessionId) -> bool {
        self.of(session) == 0
    }

    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    /// Every line, oldest first.
    pub(super) fn list(&self) -> Vec<Approval> {
        self.lines.iter().map(|(id, line)| line.shown(id)).collect()
    }

    pub(super) fn find(&self, id: &ApprovalId) -> Option<Approval> {
        self.lines.get(id).map(|line| line.shown(id))
    }

    /// How the action of this binding stands. A line of the same action at another moment is over.
    pub(super) fn standing(&mut self, binding: &Binding, now: &Now) -> Standing {
        self.sweep(now);
        self.end_where(|line| line.moved(binding));
        match self.line_of(binding) {
            Some((id, line)) => match &line.state {
                ApprovalState::Waiting => Standing::Waiting(id.clone()),
                ApprovalState::Approved(by) => {
                    Standing::Granted(grant(id, by, binding.fingerprint, line.expires_unix_ms))
                }
                ApprovalState::Rejected(_) => Standing::Rejected,
            },
            None if self.of(&binding.session) >= PENDING_MAX => Standing::Full,
            None => Standing::Nothing,
        }
    }

    /// Asks for an action, unless that was asked already; says whether it is new. Nothing when there is no room, or when
    /// what the decision was made on is over by now.
    pub(super) fn ask(
        &mut self,
        binding: Binding,
        wanted: Wanted,
        now: &Now,
        lifetime: Duration,
    ) -> Option<(Approval, bool)> {
        match self.standing(&binding, now) {
            Standing::Nothing => {}
            Standing::Waiting(id) => return self.find(&id).map(|approval| (approval, false)),
            Standing::Granted(grant) => {
                let id = ApprovalId::new(grant.id);
                return self.find(&id).map(|approval| (approval, false));
            }
            Standing::Rejected | Standing::Full => return None,
        }
        if binding.policy_generation != now.policy_generation
            || binding.executor_generation != now.executor_generation
        {
            return None;
        }
        let id = ApprovalId::new(&wanted.decision_id);
        let line = Line {
            binding,
            wanted: Arc::new(wanted),
            state: ApprovalState::Waiting,
            asked_unix_ms: now.unix_ms,
            expires: now.at + lifetime,
            expires_unix_ms: now.unix_ms.saturating_add(millis(lifetime)),
            lifetime,
        };
        let approval = line.shown(&id);
        self.lines.insert(id, line);
        self.counts.asked += 1;
        Some((approval, true))
    }

    /// Whether this can be said of this line now.
    pub(super) fn may_resolve(
        &self,
        id: &ApprovalId,
        resolution: Resolution,
    ) -> Result<(), ApprovalError> {
        let line = self.lines.get(id).ok_or(ApprovalError::Unknown)?;
        match (&line.state, resolution) {
            (ApprovalState::Waiting, Resolution::Approve | Resolution::Reject)
            | (ApprovalState::Approved(_), Resolution::Reject) => Ok(()),
            (ApprovalState::Approved(_), Resolution::Approve)
            | (ApprovalState::Rejected(_), Resolution::Approve | Resolution::Reject) => {
                Err(ApprovalError::Settled)
            }
        }
    }

    /// Decides. The time of what was decided begins anew: a grant lives, and a rejection is remembered, from here on.
    pub(super) fn resolve(
        &mut self,
        id: &ApprovalId,
        by: &PrincipalName,
        resolution: Resolution,
        now: &Now,
    ) -> Result<Approval, ApprovalError> {
        self.sweep(now);
        self.may_resolve(id, resolution)?;
        let line = self.lines.get_mut(id).ok_or(ApprovalError::Unknown)?;
        line.state = match resolution {
            Resolution::Approve => {
                self.counts.approved += 1;
                ApprovalState::Approved(by.clone())
            }
            Resolution::Reject => {
                self.counts.rejected += 1;
                ApprovalState::Rejected(by.clone())
            }
        };
        line.expires = now.at + line.lifetime;
        line.expires_unix_ms = now.unix_ms.saturating_add(millis(line.lifetime));
        Ok(line.shown(id))
    }

    /// Uses a grant up. Says whether there was one for exactly this.
    pub(super) fn consume(&mut self, id: &ApprovalId, binding: &Binding, now: &Now) -> bool {
        self.sweep(now);
        self.end_where(|line| line.moved(binding));
        let is_granted = self.lines.get(id).is_some_and(|line| {
            line.binding == *binding && matches!(line.state, ApprovalState::Approved(_))
        });
        if is_granted {
            self.end(id, ApprovalEnd::Used);
        }
        is_granted
    }

    pub(super) fn drop_session(&mut self, session: &SessionId, why: ApprovalEnd) {
        self.end_where(|line| (line.binding.session == *session).then_some(why));
    }

    /// Ends the lines of a session whose quoted row is not what it was.
    pub(super) fn follow_rows(
        &mut self,
        session: &SessionId,
        mut version: impl FnMut(&str) -> Option<u64>,
    ) {
        self.end_where(|line| {
            let quotes = line.binding.session == *session && !line.wanted.snapshot_id.is_empty();
            let moved =
                quotes && version(&line.wanted.snapshot_id) != Some(line.binding.row_version);
            moved.then_some(ApprovalEnd::SnapshotChanged)
        });
    }

    /// What ended since this was asked last.
    pub(super) fn take_ended(&mut self) -> Vec<(Approval, ApprovalEnd)> {
        std::mem::take(&mut self.ended)
    }

    fn of(&self, session: &SessionId) -> usize {
        let lines = self.lines.values();
        lines
            .filter(|line| line.binding.session == *session)
            .count()
    }

    fn line_of(&self, binding: &Binding) -> Option<(&ApprovalId, &Line)> {
        self.lines.iter().find(|(_, line)| line.binding == *binding)
    }

    fn end_where(&mut self, mut why: impl FnMut(&Line) -> Option<ApprovalEnd>) {
        let over: Vec<_> = self
            .lines
            .iter()
            .filter_map(|(id, line)| why(line).map(|why| (id.clone(), why)))
            .collect();
        for (id, why) in over {
            self.end(&id, why);
        }
    }

    fn end(&mut self, id: &ApprovalId, why: ApprovalEnd) {
        let Some(line) = self.lines.remove(id) else {
            return;
        };
        match why {
            ApprovalEnd::Used => self.counts.used += 1,
            ApprovalEnd::Expired => self.counts.expired += 1,
            ApprovalEnd::PolicyChanged
            | ApprovalEnd::ExecutorChanged
            | ApprovalEnd::SnapshotChanged
            | ApprovalEnd::Intervened
            | ApprovalEnd::SessionEnded => self.counts.dropped += 1,
        }
        self.ended.push((line.shown(id), why));
    }
}

impl Line {
    /// Why this line is over, if it is of this action at another moment.
    fn moved(&self, binding: &Binding) -> Option<ApprovalEnd> {
        let is_of_it = self.binding.session == binding.session
            && self.binding.fingerprint == binding.fingerprint;
        if !is_of_it {
            None
        } else if self.binding.burials != binding.burials {
            Some(ApprovalEnd::Intervened)
        } else if self.binding.executor_generation != binding.executor_generation {
            Some(ApprovalEnd::ExecutorChanged)
        } else if self.binding.policy_generation != binding.policy_generation {
            Some(ApprovalEnd::PolicyChanged)
        } else if self.binding.row_version != binding.row_version {
            Some(ApprovalEnd::SnapshotChanged)
        } else {
            None
        }
    }

    fn shown(&self, id: &ApprovalId) -> Approval {
        Approval {
            id: id.clone(),
            wanted: Arc::clone(&self.wanted),
            state: self.state.clone(),
            asked_unix_ms: self.asked_unix_ms,
            expires_unix_ms: self.expires_unix_ms,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
