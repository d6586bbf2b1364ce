//! Reviews an answer before it is released, under the generation that admitted its call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::monitor::{self, Asked, Job};
use super::{Judge, Reason, class_of, enforcing, enforcing_modules, micros, module_row};
use crate::bindings::exports::maka::policy::hooks as wit;
use crate::capture::{self, Kept, Taken};
use crate::codes::{DenyCode, HostCode, Refusal};
use crate::combiner::{self, CombinedReview, ReviewOpinion};
use crate::convert;
use crate::facts::{DispatchResult, Effect, Outcome, Path, SnapshotRow, Subject, Tier};
use crate::log::{
    AuditUnavailable, Decision, DecisionRecord, FactsRow, ModuleRow, PolicyRow, now_unix_ms,
};
use crate::module::{Mode, Module, Said};
use crate::obligation::Obligation;
use crate::permit::Receipt;

/// An answer of the executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To a dispatch. `arm_ok` is the arm of the envelope it came in, which has to go with the outcome.
    Dispatch {
        /// What the executor reported.
        result: DispatchResult,
        /// It came in the arm for success.
        arm_ok: bool,
    },
    /// To a call that changes nothing, or launches an application.
    Read {
        /// It was no refusal.
        ok: bool,
        /// The snapshot that came with it.
        fresh: Option<SnapshotRow>,
    },
}

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Released {
    /// The caller gets it.
    Release,
    /// The caller learns the outcome and nothing else.
    Withhold,
    /// And the session takes no further action until an operator clears it.
    Quarantine,
}

/// The review of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// What becomes of it.
    pub disposition: Released,
    /// Why it is kept back; absent when it is released.
    pub refusal: Option<Refusal>,
    /// The conditions of the release; all of them can be carried out.
    pub obligations: Vec<Obligation>,
}

/// A review before it is recorded.
struct Reviewed<'a> {
    released: Released,
    decision: Decision,
    outcome: Result<Vec<Obligation>, Reason>,
    modules: Vec<ModuleRow<'a>>,
    kept: Vec<Kept>,
}

impl Reviewed<'_> {
    fn withheld(code: HostCode) -> Self {
        Self {
            released: Released::Withhold,
            decision: Decision::Error,
            outcome: Err(code.into()),
            modules: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl Judge {
    /// Reviews the answer to an admitted call. Whatever goes wrong, the answer is withheld.
    #[must_use]
    pub fn review(&self, receipt: &Receipt, answer: Answer) -> Review {
        self.review_under(receipt, answer, &|_| true)
    }

    /// As [`review`](Self::review), for whoever can say for each answer whether a condition of its release can be met.
    #[must_use]
    pub fn review_under(
        &self,
        receipt: &Receipt,
        answer: Answer,
        can: &dyn Fn(&Obligation) -> bool,
    ) -> Review {
        let started = Instant::now();
        let id = self.ids.next(now_unix_ms());
        let (result, honest) = as_result(answer);
        let outcome = result.outcome;
        let subject = Subject::Dispatch(result);
        let reviewed = catch_unwind(AssertUnwindSafe(|| {
            if honest {
                self.review_subject(receipt, &subject, started, can)
            } else {
                // The contract has no field for the arm, so the host judges this one fact itself.
                Reviewed {
                    released: Released::Quarantine,
                    decision: Decision::Quarantine,
                    outcome: Err(HostCode::ExecutorUntrusted.into()),
                    modules: Vec::new(),
                    kept: Vec::new(),
                }
            }
        }))
        .unwrap_or_else(|_| {
            tracing::error!("reviewing an answer panicked; the answer is withheld");
            Reviewed::withheld(HostCode::PolicyInternal)
        });
        let Reviewed {
            released,
            decision,
            outcome: given,
            modules,
            kept,
        } = reviewed;
        let effective = match released {
            Released::Release => Decision::Release,
            Released::Withhold => Decision::Withhold,
            Released::Quarantine => Decision::Quarantine,
        };
        let head = &receipt.head;
        let set = receipt.set.digest().to_string();
        let record = DecisionRecord {
            id: id.as_str(),
            unix_ms: now_unix_ms(),
            hook: "review-result",
            tenant: &head.caller.tenant,
            orchestrator: &head.caller.orchestrator,
            session: &head.caller.session,
            turn: &head.caller.turn,
            tool_call: &head.tool_call_id,
            method: &head.method,
            fingerprint: Some(head.fingerprint.clone()),
            request: None,
            policy: PolicyRow {
                generation: receipt.generation,
                set: Some(&set),
            },
            facts: FactsRow {
                outcome: Some(outcome.as_str()),
                ..FactsRow::default()
            },
            modules,
            decision,
            effective,
            code: given.as_ref().err().map(Reason::code),
            class: given.as_ref().err().map(|reason| class_of(reason).as_str()),
            obligations: given
                .iter()
                .flatten()
                .map(|obligation| obligation.kind().as_str())
                .collect(),
            approval: None,
            us: micros(started.elapsed()),
        };
        let recorded = self.log.decision(&record);
        self.metrics
            .decided(&record, started.elapsed(), recorded.is_ok());
        drop(record);
        let watched = monitor::watches(&receipt.set).then(|| Job {
            id: id.clone(),
            generation: receipt.generation,
            set: Arc::clone(&receipt.set),
            asked: Asked::Review(Box::new(receipt.head.clone()), Box::new(subject.clone())),
        });
        self.watch(watched);
        let is_tapped = self.tap.load().is_some();
        let taken = is_tapped.then(|| Taken {
            id: id.as_str().to_owned(),
            generation: receipt.generation,
            set: Arc::clone(&receipt.set),
            asked: capture::Asked::Review {
                head: Box::new(receipt.head.clone()),
                admitted_rules: receipt.admitted_rules.clone(),
                subject: Box::new(subject.clone()),
            },
            said: kept,
            effective: "",
        });
        self.offer(taken, effective.as_str());
        let (released, given) = match (recorded, released) {
            (Ok(()), released) => (released, given),
            // A quarantine stays one when it cannot be recorded.
            (Err(AuditUnavailable), Released::Quarantine) => (Released::Quarantine, given),
            (Err(AuditUnavailable), Released::Release | Released::Withhold) => {
                (Released::Withhold, Err(HostCode::AuditUnavailable.into()))
            }
        };
        match given {
            Ok(obligations) => Review {
                disposition: released,
                refusal: None,
                obligations,
            },
            Err(reason) => Review {
                disposition: released,
                refusal: Some(reason.into_refusal(id, receipt.generation)),
                obligations: Vec::new(),
            },
        }
    }

    fn review_subject<'a>(
        &self,
        receipt: &'a Receipt,
        subject: &Subject,
        started: Instant,
        can: &dyn Fn(&Obligation) -> bool,
    ) -> Reviewed<'a> {
        let Some(_place) = self.place() else {
            return Reviewed::withheld(HostCode::PolicyBusy);
        };
        let set = &*receipt.set;
        let head = convert::head(&receipt.head);
        let subject = convert::subject(subject);
        let said: Vec<Said<ReviewOpinion>> = set
            .modules()
            .iter()
            .enumerate()
            .map(|(at, module)| {
                let facts = wit::Review {
                    head: head.clone(),
                    admitted_rules: receipt.admitted_rules.get(at).cloned().unwrap_or_default(),
                    subject: subject.clone(),
                };
                match module.mode() {
                    Mode::Enforce => module.review(
                        &self.engine,
                        &facts,
                        self.budget().saturating_sub(started.elapsed()),
                    ),
                    Mode::Monitor => Said::unasked(ReviewOpinion::Release(Vec::new())),
                }
            })
            .collect();
        let opinions: Vec<_> = enforcing(set, &said)
            .map(|(_, said)| said.opinion.clone())
            .collect();
        let modules = set
            .modules()
            .iter()
            .zip(&said)
            .filter(|(module, _)| module.mode() == Mode::Enforce)
            .map(|(module, said)| review_row(module, said))
            .collect();
        let by = |at: usize, code: &str| match enforcing_modules(set).nth(at) {
            Some(module) => Reason::given_by(module, code),
            None => HostCode::PolicyInternal.into(),
        };
        let (released, decision, outcome) = match combiner::combine_reviews(&opinions) {
            CombinedReview::Release(obligations) => {
                if obligations
                    .iter()
                    .all(|obligation| self.can(obligation.kind()) && can(obligation))
                {
                    (Released::Release, Decision::Release, Ok(obligations))
                } else {
                    (
                        Released::Withhold,
                        Decision::Release,
                        Err(HostCode::ObligationFailed.into()),
                    )
                }
            }
            CombinedReview::Withhold { by: at, code } => {
                (Released::Withhold, Decision::Withhold, Err(by(at, &code)))
            }
            CombinedReview::Quarantine { by: at, code } => (
                Released::Quarantine,
                Decision::Quarantine,
                Err(by(at, &code)),
            ),
            CombinedReview::Fault(code) => {
                self.faults.fetch_add(1, Ordering::Relaxed);
                (Released::Withhold, Decision::Error, Err(code.into()))
            }
        };
        Reviewed {
            released,
            decision,
            outcome,
            modules,
            kept: self.kept(&said, Kept::review),
        }
    }
}

/// The answer in the form of the contract, and whether its arm goes with its outcome.
fn as_result(answer: Answer) -> (DispatchResult, bool) {
    match answer {
        Answer::Dispatch { result, arm_ok } => {
            let honest = arm_ok == (result.outcome == Outcome::Ok);
            (result, honest)
        }
        // A read dispatches nothing, which has a form in the contract: no path, and an effect that cannot be verified.
        Answer::Read { ok, fresh } => (
            DispatchResult {
                outcome: if ok { Outcome::Ok } else { Outcome::Refused },
                tier: Tier::Ax,
                path: Path::None,
                effect: Effect::Unverifiable,
                verification: "none".to_owned(),
                observed_change: false,
                would_require: None,
                fresh,
                now_secure: false,
            },
            true,
        ),
    }
}

pub(super) fn review_row<'a>(module: &'a Module, said: &Said<ReviewOpinion>) -> ModuleRow<'a> {
    let (decision, code) = match &said.opinion {
        ReviewOpinion::Release(_) => (Decision::Release, None),
        ReviewOpinion::Withhold(code) => (Decision::Withhold, Some(code.clone())),
        ReviewOpinion::Quarantine(code) => (Decision::Quarantine, Some(code.clone())),
        ReviewOpinion::Fault(code) => (
            Decision::Error,
            Some(DenyCode::Host(*code).as_str().to_owned()),
        ),
    };
    module_row(module, said, decision, code)
}
