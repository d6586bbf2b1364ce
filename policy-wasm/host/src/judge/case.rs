//! One call on its way through: its facts as the policies see them, and what is known about it beside them.

use std::sync::Arc;
use std::time::Instant;

use super::{Generation, Judge};
use crate::call::ExecutorCall;
use crate::digest::Digest;
use crate::facts::{Dispatch, DispatchFacts, Head};
use crate::fingerprint::Fingerprint;
use crate::id::DecisionId;
use crate::log::now_unix_ms;
use crate::measure::{Measure, NotFinite};
use crate::set::PolicySet;

/// The longest id a caller can send: longer ones are malformed, and would fill the log.
pub(super) const MAX_ID: usize = 256;

/// One call on its way through.
pub(super) struct Case<'a> {
    pub(super) id: DecisionId,
    pub(super) started: Instant,
    pub(super) generation: Option<Arc<Generation>>,
    pub(super) set: Option<Arc<PolicySet>>,
    pub(super) fingerprint: Fingerprint,
    pub(super) facts: Dispatch,
    pub(super) measured: Result<(u64, Digest), NotFinite>,
    pub(super) given: &'a DispatchFacts,
}

/// Without a grant that is not of this action, used or over.
fn binding(head: Head) -> Head {
    let approval = head.approval.clone().filter(|_| head.is_approved());
    Head { approval, ..head }
}

impl<'a> Case<'a> {
    pub(super) fn open(judge: &Judge, given: &'a DispatchFacts, call: &ExecutorCall) -> Self {
        let started = Instant::now();
        let now_unix_ms = now_unix_ms();
        let id = judge.ids.next(now_unix_ms);
        let generation = judge.active.load_full();
        let set = generation
            .as_ref()
            .and_then(|generation| generation.sets.get(&given.caller.tenant))
            .cloned();
        let fingerprint = Fingerprint::of(
            given,
            call,
            set.as_ref().map_or(Digest::of(b""), |set| set.digest()),
        );
        let facts = Dispatch {
            // Policies check the grant themselves; one that forgets to must not be a way around it.
            head: binding(Head {
                decision_id: id.as_str().to_owned(),
                now_unix_ms,
                policy_generation: generation
                    .as_ref()
                    .map_or(0, |generation| generation.number),
                tool_call_id: given.tool_call_id.clone(),
                method: call.method().to_owned(),
                fingerprint: fingerprint.to_string(),
                caller: given.caller.clone(),
                authority: given.authority.clone(),
                meter: given.meter,
                approval: given.approval.clone(),
            }),
            action: given.action.clone(),
            claim: given.claim.clone(),
            snapshot: given.snapshot.clone(),
            element: given.element.clone(),
            focus: given.focus.clone(),
        };
        let mut measure = Measure::default();
        let measured = measure.dispatch(&facts).map(|()| measure.finish());
        Self {
            id,
            started,
            generation,
            set,
            fingerprint,
            facts,
            measured,
            given,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.generation
            .as_ref()
            .map_or(0, |generation| generation.number)
    }

    /// Whether the action that spent the snapshot is this very action.
    pub(super) fn is_repeated(&self) -> bool {
        self.given.spent_fingerprint == Some(self.fingerprint)
    }

    pub(super) fn ids_are_sane(&self) -> bool {
        let head = &self.facts.head;
        let ids = [
            &head.tool_call_id,
            &head.caller.tenant,
            &head.caller.orchestrator,
            &head.caller.session,
            &head.caller.turn,
            &self.facts.claim.snapshot_id,
        ];
        ids.iter()
            .all(|id| id.len() <= MAX_ID && !id.chars().any(char::is_control))
    }
}
