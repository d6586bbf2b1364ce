//! What dispatch and launch share: the record of how an action ended, and what a review may do to its result.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::results::dispatch::Verification;
use maka_cu_protocol::sets::{Effect, Outcome, Path, Tier};
use maka_policy_host::call::ExecutorCall;
use maka_policy_host::codes::DenyCode;
use maka_policy_host::judge::{Released, Review};
use maka_policy_host::log::{LoggedOutcome, OutcomeRecord};
use maka_policy_host::permit::{Permit, Receipt};

use super::{Context, Core};
use crate::approval::ApprovalEnd;
use crate::error::CallError;
use crate::policy::words;

impl Core {
    /// Lets the executor know the session before an action is sent to it; if that fails, the action is not.
    pub(super) async fn begin_for(
        &mut self,
        permit: &Permit<ExecutorCall>,
    ) -> Result<(), CallError> {
        let begun = self.begin().await;
        if begun.is_err() {
            self.log_not_forwarded(permit.receipt());
        }
        begun
    }

    /// Whether the review keeps the answer back; a quarantine also closes the session for further actions.
    pub(super) fn is_withheld(&mut self, review: &Review) -> bool {
        match review.disposition {
            Released::Release => false,
            Released::Withhold => true,
            Released::Quarantine => {
                self.quarantine(review);
                true
            }
        }
    }

    /// Closes the session for further actions until an operator opens it again. When it was the executor that broke its
    /// protocol, the second time ends that executor; what a policy says with a code of its own is about the application.
    pub(super) fn quarantine(&mut self, review: &Review) {
        self.shared.set_quarantined(true);
        self.parts
            .approvals
            .drop_session(&self.id, ApprovalEnd::Intervened);
        self.parts.events.quarantine(&self.id, true);
        let code = review.refusal.as_ref().map(|refusal| refusal.code.as_str());
        let is_breach = code.is_none_or(|code| DenyCode::parse(code).is_some());
        if is_breach {
            self.parts.forward.distrust(self.generation);
        }
        tracing::error!(session_id = %self.id, generation = self.generation, code, "session quarantined");
    }

    pub(super) fn log_outcome(
        &self,
        receipt: &Receipt,
        outcome: Outcome,
        (tier, path, effect): (Tier, Path, Effect),
        verification: Option<Verification>,
        code: Option<DomainCode>,
        withheld: bool,
    ) {
        let record = OutcomeRecord {
            receipt,
            outcome: words::outcome(outcome).into(),
            tier: Some(words::tier(tier)),
            path: Some(words::path(path)),
            effect: Some(words::effect(effect)),
            verification: verification
                .map(|checked| (checked.method.as_str(), checked.observed_change)),
            code: code.map(DomainCode::as_str),
            withheld,
        };
        self.append(&record);
    }

    /// An admitted call that provably had no effect: its key stays free.
    pub(super) fn log_not_forwarded(&self, receipt: &Receipt) {
        self.append(&OutcomeRecord {
            receipt,
            outcome: LoggedOutcome::NotForwarded,
            tier: None,
            path: None,
            effect: None,
            verification: None,
            code: None,
            withheld: false,
        });
    }

    fn append(&self, record: &OutcomeRecord<'_>) {
        // The action is done and its caller gets the truth; what cannot be logged now stops the next admission.
        if self.parts.judge.log().outcome(record).is_err() {
            tracing::error!(session_id = %self.id, "an outcome could not be written to the decision log");
        }
    }
}

/// Whether a call that was given up keeps its key although nothing was sent: repeating it is then a question, not an
/// order. What a policy refused leaves its key free as ever.
pub(super) fn takes_key(context: Context<'_>, error: &CallError) -> bool {
    match error {
        CallError::Cancelled | CallError::Deadline { .. } => true,
        CallError::Policy(_) | CallError::ApprovalRequired(_) => false,
        CallError::Malformed { .. }
        | CallError::SessionUnknown
        | CallError::SessionForeign
        | CallError::SessionEnded
        | CallError::SessionQuarantined
        | CallError::Held { .. }
        | CallError::Limit(_)
        | CallError::KeyConflict
        | CallError::ImageUnknown
        | CallError::ImageUnreadable
        | CallError::ImageTooLarge
        | CallError::LogUnreadable
        | CallError::Withheld(_)
        | CallError::Approval(_)
        | CallError::Capture(_)
        | CallError::Unsupported { .. }
        | CallError::Refused { .. }
        | CallError::Policies(_)
        | CallError::NoBackend { .. }
        | CallError::Starting { .. }
        | CallError::Lifecycle { .. }
        | CallError::Rpc { .. }
        | CallError::Protocol { .. } => context.cancel.is_cancelled(),
    }
}
