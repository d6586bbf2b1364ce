//! Judging one executor call: facts in, permit out, and the permit redeemed at once.

use maka_cu_protocol::ids::SnapshotId;
use maka_cu_protocol::method::Method;
use maka_policy_host::call::ExecutorCall;
use maka_policy_host::codes::{Refusal, RefusalKind};
use maka_policy_host::digest::Digest;
use maka_policy_host::facts::{
    Action, Approving, Claim, DispatchFacts, ElementRow, Path, SnapshotRow, SnapshotState,
};
use maka_policy_host::fingerprint::Fingerprint;
use maka_policy_host::judge::Unmet;
use maka_policy_host::obligation::Obligation;
use maka_policy_host::permit::{Permit, Receipt, Recheck};
use serde_json::Value;
use tokio::time::Instant;

use super::{Context, Core, wanted};
use crate::approval::{Approval, Moment, Standing};
use crate::error::{ApprovalRequired, CallError};
use crate::policy;
use crate::session::conditions;

/// What is asked of the policy. Has no `Debug`: its params can hold typed text.
pub(super) struct Ask<'a> {
    pub(super) tool_call_id: &'a str,
    pub(super) method: Method,
    pub(super) params: &'a Value,
    pub(super) action: Action,
    pub(super) claim: Claim,
    /// The quoted snapshot, for methods that quote one.
    pub(super) quoted: Option<&'a SnapshotId>,
    /// Whether the quoted token is a focus token.
    pub(super) is_focus: bool,
    /// Whether a person may be asked to approve.
    pub(super) may_ask: bool,
    pub(super) request: Option<Digest>,
    /// The narrower call that takes these paths alone; nothing when it does so anyway.
    pub(super) narrow: Narrow<'a>,
}

/// See [`Ask::narrow`].
pub(super) type Narrow<'a> = &'a (dyn Fn(&[Path]) -> Result<Option<ExecutorCall>, Unmet> + Sync);

/// A call that takes no path at all takes none that it must not.
fn without_path(_: &[Path]) -> Result<Option<ExecutorCall>, Unmet> {
    Ok(None)
}

impl<'a> Ask<'a> {
    /// A method that only reads.
    pub(super) fn read(method: Method, params: &'a Value) -> Self {
        Self {
            tool_call_id: "",
            method,
            params,
            action: Action::Observe(method.as_str().to_owned()),
            claim: Claim::default(),
            quoted: None,
            is_focus: false,
            may_ask: true,
            request: None,
            narrow: &without_path,
        }
    }

    /// The canonical call: what is judged and what is sent.
    fn call(&self) -> Result<ExecutorCall, CallError> {
        ExecutorCall::new(self.method.as_str(), self.params).map_err(|_| CallError::Malformed {
            field: "action",
            rule: "nested too deep",
        })
    }
}

/// What the mirror says about a quoted snapshot.
struct Recorded {
    row: SnapshotRow,
    version: u64,
    spent_by: Option<Fingerprint>,
    element: Option<ElementRow>,
}

impl Core {
    /// Has the call judged.
    ///
    /// # Errors
    /// The refusal, which is counted.
    pub(super) fn judge(
        &mut self,
        context: Context<'_>,
        ask: &Ask<'_>,
    ) -> Result<Permit<ExecutorCall>, CallError> {
        let mut facts = self.facts(context, ask);
        let call = ask.call()?;
        let moment = self.moment(facts.row_version);
        let (judge, approvals) = (&self.parts.judge, &self.parts.approvals);
        let asker = &context.caller.principal;
        let (standing, approving) =
            approvals.standing(&moment, asker, || judge.identify(&facts, &call));
        facts.approving = approving;
        if let Standing::Granted(grant) = standing {
            facts.approval = Some(grant);
        }
        let under = |obligations: &[Obligation]| {
            if !obligations.iter().all(|it| conditions::can(ask.method, it)) {
                return Err(Unmet);
            }
            match conditions::only_paths(obligations) {
                Some(paths) => (ask.narrow)(paths),
                None => Ok(None),
            }
        };
        let refusal = match judge.admit_dispatch_under(&facts, call, &under) {
            Ok(permit) => return Ok(permit),
            Err(refusal) => refusal,
        };
        self.meter.denied(context.turn);
        if refusal.kind != RefusalKind::ApprovalRequired {
            return Err(CallError::Policy(Box::new(refusal)));
        }
        let approval = if ask.may_ask {
            self.ask_a_person(&facts, &ask.call()?, &moment, &refusal)
        } else {
            None
        };
        Err(CallError::ApprovalRequired(Box::new(ApprovalRequired {
            refusal,
            approval,
        })))
    }

    /// Puts a refused call before a person; nothing when other policies are active by now, which may not ask.
    fn ask_a_person(
        &self,
        facts: &DispatchFacts,
        call: &ExecutorCall,
        moment: &Moment,
        refusal: &Refusal,
    ) -> Option<Approval> {
        let (fingerprint, generation) = self.parts.judge.identify(facts, call);
        if generation != refusal.generation {
            return None;
        }
        let wanted = wanted::wanted(self.id.clone(), facts, call.method(), refusal, fingerprint);
        self.parts.approvals.ask(moment, generation, wanted)
    }

    /// What an approval is bound to, beside the action itself.
    fn moment(&self, row_version: u64) -> Moment {
        Moment {
            session: self.id.clone(),
            row_version,
            burials: self.shared.machine().burials(),
            executor_generation: self.generation,
        }
    }

    /// Uses a permit, judging once more when the world changed between judging and sending.
    ///
    /// # Errors
    /// The refusal of the second judgement, or `facts_changed`.
    pub(super) fn redeem<T>(
        &mut self,
        context: Context<'_>,
        ask: &Ask<'_>,
        permit: Permit<ExecutorCall>,
        mut send: impl FnMut(
            &Core,
            Permit<ExecutorCall>,
            Recheck,
        ) -> Result<T, maka_policy_host::permit::Stale>,
    ) -> Result<T, CallError> {
        let stale = match self.use_once(ask, permit, &mut send) {
            Ok(sent) => return Ok(sent),
            Err(stale) => stale,
        };
        self.log_not_forwarded(&stale);
        let prepared_for = self.generation;
        if let Some(negotiated) = self.parts.forward.negotiated() {
            self.adopt(&negotiated);
        }
        if self.generation != prepared_for && ask.quoted.is_none() {
            // The call was made ready for an executor that is gone: its limits, its image folder, its knowledge of this
            // session. What quotes a frame is refused for the frame; the rest would be sent, and its answer taken for one
            // of the old generation.
            return Err(CallError::Starting {
                generation: self.generation,
            });
        }
        let permit = self.judge(context, ask)?;
        let stale = match self.use_once(ask, permit, &mut send) {
            Ok(sent) => return Ok(sent),
            Err(stale) => stale,
        };
        self.log_not_forwarded(&stale);
        let facts = self.facts(context, ask);
        let refusal = self.parts.judge.facts_changed(&facts, &ask.call()?);
        Err(self.refuse(context, refusal))
    }

    /// Uses a permit; what it was for comes back when it is stale, so that its allow does not stay without an outcome.
    fn use_once<T>(
        &mut self,
        ask: &Ask<'_>,
        permit: Permit<ExecutorCall>,
        send: &mut impl FnMut(
            &Core,
            Permit<ExecutorCall>,
            Recheck,
        ) -> Result<T, maka_policy_host::permit::Stale>,
    ) -> Result<T, Box<Receipt>> {
        let now = self.recheck(ask);
        let receipt = Box::new(permit.receipt().clone());
        // Before anything is sent, and for good, whatever comes of the sending. Who used it up first is let through.
        if let Some(approval) = receipt.approval() {
            let moment = Moment {
                executor_generation: now.executor_generation,
                ..self.moment(now.row_version)
            };
            let (fingerprint, policy) = (receipt.fingerprint(), now.policy_generation);
            let approvals = &self.parts.approvals;
            if !approvals.consume(approval, &moment, fingerprint, policy) {
                return Err(receipt);
            }
        }
        send(self, permit, now).map_err(|_| receipt)
    }

    fn refuse(&mut self, context: Context<'_>, refusal: Refusal) -> CallError {
        self.meter.denied(context.turn);
        CallError::Policy(Box::new(refusal))
    }

    fn recheck(&mut self, ask: &Ask<'_>) -> Recheck {
        Recheck {
            policy_generation: self.parts.judge.generation(),
            executor_generation: self.parts.forward.generation(),
            row_version: self.recorded(ask).version,
        }
    }

    fn facts(&mut self, context: Context<'_>, ask: &Ask<'_>) -> DispatchFacts {
        let forward = &self.parts.forward;
        let authority = policy::authority(
            self.generation,
            forward.allows_global_pointer(),
            self.parts.synthetic_input,
        );
        let recorded = self.recorded(ask);
        let (element, focus) = if ask.is_focus {
            (None, recorded.element)
        } else {
            (recorded.element, None)
        };
        DispatchFacts {
            tool_call_id: ask.tool_call_id.to_owned(),
            caller: policy::caller(context.caller, self.id.as_str(), context.turn),
            authority,
            meter: self
                .meter
                .facts(context.turn, self.shared.calls_in_flight(), Instant::now()),
            approval: None,
            approving: Approving::Unavailable,
            action: ask.action.clone(),
            claim: ask.claim.clone(),
            snapshot: recorded.row,
            element,
            focus,
            spent_fingerprint: recorded.spent_by,
            row_version: recorded.version,
            request: ask.request,
        }
    }

    /// The recorded side of the quoted snapshot. An id of another session arrives with its owner, so that a policy can
    /// tell it from one that never was.
    fn recorded(&mut self, ask: &Ask<'_>) -> Recorded {
        let nothing = |row| Recorded {
            row,
            version: 0,
            spent_by: None,
            element: None,
        };
        let Some(id) = ask.quoted else {
            return nothing(SnapshotRow::never_seen(""));
        };
        if let Some(look) = self.mirror.look(id, Instant::now()) {
            let token = ask.claim.element_token.as_deref();
            let element = token.and_then(|token| self.mirror.element(id, token));
            return Recorded {
                row: look.row,
                version: look.version,
                spent_by: look.spent_by,
                element,
            };
        }
        let never_seen = SnapshotRow::never_seen(id.as_str());
        match self.parts.owners.owner(id) {
            Some((owner, generation)) if *owner != self.id => nothing(SnapshotRow {
                state: if generation == self.generation {
                    SnapshotState::Live
                } else {
                    SnapshotState::OtherGeneration
                },
                owner_session: owner.as_str().to_owned(),
                generation,
                ..never_seen
            }),
            Some(_) | None => nothing(never_seen),
        }
    }
}
