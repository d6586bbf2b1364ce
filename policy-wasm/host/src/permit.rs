//! The permit: the one thing that lets a call be forwarded.
//!
//! A [`Permit`] is made in one place, after the verdicts were combined to an allow and the decision was recorded. It can
//! be neither copied nor made anywhere else:
//!
//! ```compile_fail
//! fn twice<T>(permit: maka_policy_host::permit::Permit<T>) {
//!     let _second = permit.clone();
//! }
//! ```
//!
//! Whoever forwards gives it back and gets the call, unless what was judged is not what is there now.

use std::sync::Arc;

use crate::facts::Head;
use crate::fingerprint::Fingerprint;
use crate::id::DecisionId;
use crate::obligation::Obligation;
use crate::set::PolicySet;

/// An admitted call that has not been forwarded yet.
#[derive(Debug)]
#[must_use = "a permit that is dropped is an action that was admitted and not carried out: record it as cancelled"]
pub struct Permit<T> {
    call: T,
    receipt: Receipt,
}

/// What the holder of a permit knows about the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recheck {
    /// The policy generation that is active now.
    pub policy_generation: u64,
    /// The executor generation that is running now.
    pub executor_generation: u64,
    /// The version of the mirror row now.
    pub row_version: u64,
}

/// What changed between judging and sending. The call has to be judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// Another policy is active.
    #[error("another policy generation is active than the one that admitted the call")]
    PolicyGeneration,
    /// Another executor is running.
    #[error("another executor generation is running than the one the call was admitted for")]
    ExecutorGeneration,
    /// The mirror row has changed.
    #[error("the snapshot changed after the call was admitted")]
    RowVersion,
}

/// What remains of a permit when its call has been taken out: everything a review and an outcome record need.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub(crate) head: Head,
    pub(crate) decision_id: DecisionId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) generation: u64,
    pub(crate) set: Arc<PolicySet>,
    /// The rules each module of the set reported, in the order of the set.
    pub(crate) admitted_rules: Vec<Vec<u16>>,
    pub(crate) obligations: Vec<Obligation>,
    pub(crate) row_version: u64,
}

impl<T> Permit<T> {
    /// The one constructor. Only the judge calls it, after combiner and log have agreed.
    pub(crate) fn issue(call: T, receipt: Receipt) -> Self {
        Self { call, receipt }
    }

    /// The receipt, before the call is taken out: to record a cancelled call, which was never forwarded.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Gives the permit up for the call, unless the world is not the one that was judged.
    ///
    /// # Errors
    ///
    /// What changed. The permit is gone in either case: a stale call is judged again, not retried.
    pub fn redeem(self, now: Recheck) -> Result<(T, Receipt), Stale> {
        if now.policy_generation != self.receipt.generation {
            return Err(Stale::PolicyGeneration);
        }
        if now.executor_generation != self.receipt.head.authority.generation {
            return Err(Stale::ExecutorGeneration);
        }
        if now.row_version != self.receipt.row_version {
            return Err(Stale::RowVersion);
        }
        Ok((self.call, self.receipt))
    }
}

impl Receipt {
    /// The decision that admitted the call.
    #[must_use]
    pub fn decision_id(&self) -> &DecisionId {
        &self.decision_id
    }

    /// The fingerprint of the action: what the mirror keeps with a spent row.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The policy generation that admitted the call.
    #[must_use]
    pub fn policy_generation(&self) -> u64 {
        self.generation
    }

    /// The conditions of the allow; all of them are ones that the judge was told can be carried out.
    #[must_use]
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// The id of the approval that the policies were shown. It has to be used up before the call is sent.
    #[must_use]
    pub fn approval(&self) -> Option<&str> {
        self.head.approval.as_ref().map(|grant| grant.id.as_str())
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.head.caller.session
    }

    /// The caller's idempotency key.
    #[must_use]
    pub fn tool_call_id(&self) -> &str {
        &self.head.tool_call_id
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.head.method
    }
}
