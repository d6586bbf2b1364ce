//! Judges calls and answers.
//!
//! A call goes through every policy of its caller's set, all of them, so that the record explains fully and the time it
//! takes does not tell which rule fired. The verdicts are combined, the decision is recorded, and only then is there a
//! [`Permit`]. An answer goes through the same set before it is released.
//!
//! Everything here is synchronous and bounded by the budget of one decision, so that the task that owns a session can
//! call it directly.
//!
//! **Invariant:** every way through this file that is not an allow of every policy and a written record ends in a
//! [`Refusal`], a panic included.

mod activate;
mod case;
mod monitor;
mod reason;
mod review;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use maka_floor::Denial;

use crate::call::ExecutorCall;
use crate::capture::{self, CaptureRunning, Kept, Taken, Tap};
use crate::codes::{DenyCode, HostCode, Refusal};
use crate::combiner::{self, Combined, Opinion};
use crate::convert;
use crate::digest::Digest;
use crate::engine::{Engine, Place};
use crate::facts::{Approving, Dispatch, DispatchFacts};
use crate::fingerprint::Fingerprint;
use crate::id::{IdSource, NoEntropy};
use crate::log::{
    AuditUnavailable, Decision, DecisionLog, DecisionRecord, FactsRow, ModuleRow, PolicyRow,
    now_unix_ms,
};
use crate::measure::NotFinite;
use crate::metrics::Metrics;
use crate::module::{Mode, Module, Said};
use crate::obligation::{Obligation, ObligationKind};
use crate::permit::{Permit, Receipt};
use crate::set::PolicySet;

use case::Case;
use monitor::{Asked, Job, Monitor};
use reason::{Reason, class_of};

pub use review::{Answer, Released, Review};

/// What the surroundings of the judge can do.
#[derive(Debug, Clone, Default)]
pub struct JudgeOptions {
    /// The obligations that can be carried out; an allow under any other is refused. `mark-sensitive` concerns the log
    /// alone and is always carried out.
    pub enforceable: Vec<ObligationKind>,
}

/// The conditions of an allow cannot be met for this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmet;

/// What becomes of a call under the conditions of its allow: nothing when it stays as it is, or the narrower form of it
/// that the conditions ask for. Asked before the decision is recorded.
pub type Under<'a> = &'a dyn Fn(&[Obligation]) -> Result<Option<ExecutorCall>, Unmet>;

/// Why a generation does not become active. What was active stays active.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    /// There has to be at least one set.
    #[error("a policy generation needs at least one set")]
    Empty,
    /// Two sets have one name.
    #[error("two policy sets have the same name")]
    NameTwice,
    /// Its first decision failed.
    #[error("the new policy generation fails its first decision: {}", DenyCode::Host(*.0).as_str())]
    FirstDecision(HostCode),
    /// The change cannot be recorded, and one that is not recorded does not happen.
    #[error("the decision log takes no record of the change")]
    Unrecorded,
    /// There is no thread for its monitors.
    #[error("no thread can be started for modules in monitor mode")]
    Monitor(#[source] std::io::Error),
}

/// What is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveInfo {
    /// Counts activations from 1.
    pub generation: u64,
    /// The digest of the floor.
    pub floor: Digest,
    /// The sets by name.
    pub sets: Vec<SetInfo>,
}

/// One active set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetInfo {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
    /// Its modules, the floor first.
    pub modules: Vec<ModuleInfo>,
}

/// One module of an active set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its component.
    pub digest: Digest,
    /// Whether its answers count.
    pub mode: Mode,
}

#[derive(Debug)]
struct Generation {
    number: u64,
    since: Instant,
    sets: BTreeMap<String, Arc<PolicySet>>,
}

/// Judges calls and answers. Shared by reference.
#[derive(Debug)]
pub struct Judge {
    engine: Engine,
    log: Arc<DecisionLog>,
    options: JudgeOptions,
    ids: IdSource,
    active: ArcSwapOption<Generation>,
    activating: Mutex<u64>,
    monitor: OnceLock<Monitor>,
    faults: AtomicU64,
    metrics: Arc<Metrics>,
    tap: ArcSwapOption<Tap>,
    is_captured: AtomicBool,
}

/// The verdict on a call, before it is recorded.
struct Judged<'a> {
    decision: Decision,
    outcome: Result<Vec<Obligation>, Reason>,
    /// The form of the call that its conditions ask for, where that is another one.
    narrowed: Option<ExecutorCall>,
    modules: Vec<ModuleRow<'a>>,
    rules: Vec<Vec<u16>>,
    /// What each module said, while there is a capture.
    kept: Vec<Kept>,
}

impl Judged<'_> {
    /// No module was asked, or none could answer.
    fn unheard(reason: impl Into<Reason>) -> Self {
        Self {
            decision: Decision::Error,
            outcome: Err(reason.into()),
            narrowed: None,
            modules: Vec::new(),
            rules: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl Judge {
    /// A judge with nothing active: every call is refused until [`activate`](Self::activate).
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers for decision ids.
    pub fn try_new(
        engine: Engine,
        log: Arc<DecisionLog>,
        options: JudgeOptions,
    ) -> Result<Self, NoEntropy> {
        Ok(Self {
            engine,
            log,
            options,
            ids: IdSource::try_new()?,
            active: ArcSwapOption::empty(),
            activating: Mutex::new(0),
            monitor: OnceLock::new(),
            faults: AtomicU64::new(0),
            metrics: Arc::default(),
            tap: ArcSwapOption::empty(),
            is_captured: AtomicBool::new(false),
        })
    }

    /// The number of the active generation; zero when there is none.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.active
            .load()
            .as_ref()
            .map_or(0, |generation| generation.number)
    }

    /// How long the generation has been active; nothing when there is none.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let active = self.active.load();
        active.as_ref().map(|generation| generation.since.elapsed())
    }

    /// What is active.
    #[must_use]
    pub fn active(&self) -> Option<ActiveInfo> {
        let generation = self.active.load_full()?;
        let sets = generation.sets.values().map(|set| SetInfo {
            name: set.name().to_owned(),
            digest: set.digest(),
            modules: set
                .modules()
                .iter()
                .map(|module| ModuleInfo {
                    name: module.name().to_owned(),
                    version: module.manifest().version.clone(),
                    digest: module.digest(),
                    mode: module.mode(),
                })
                .collect(),
        });
        Some(ActiveInfo {
            generation: generation.number,
            floor: crate::prebuilt::floor_digest(),
            sets: sets.collect(),
        })
    }

    /// The decision log.
    #[must_use]
    pub fn log(&self) -> &DecisionLog {
        &self.log
    }

    /// How often a policy or the engine failed since the start; each time something was refused or withheld.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Judges an executor call.
    ///
    /// # Errors
    ///
    /// The refusal, which is already recorded, unless it says that it could not be.
    pub fn admit_dispatch(
        &self,
        facts: &DispatchFacts,
        call: ExecutorCall,
    ) -> Result<Permit<ExecutorCall>, Refusal> {
        self.admit_dispatch_under(facts, call, &|_| Ok(None))
    }

    /// As [`admit_dispatch`](Self::admit_dispatch), for whoever can say for each call whether the conditions of an allow
    /// can be met, and which narrower call they make of it.
    ///
    /// # Errors
    ///
    /// The refusal, which is already recorded, unless it says that it could not be.
    pub fn admit_dispatch_under(
        &self,
        facts: &DispatchFacts,
        call: ExecutorCall,
        under: Under<'_>,
    ) -> Result<Permit<ExecutorCall>, Refusal> {
        let case = Case::open(self, facts, &call);
        // A clone of its own, because the rows of the record borrow names from it while the case is consumed.
        let set = case.set.clone();
        let mut judged = self.guarded(|| self.judge(&case, set.as_deref(), under));
        let narrowed = judged.narrowed.take();
        let watched = case.set.clone().filter(|set| monitor::watches(set));
        let job = watched.map(|set| Job {
            id: case.id.clone(),
            generation: case.number(),
            set,
            asked: Asked::Dispatch(Box::new(case.facts.clone())),
        });
        let taken = self.taken(&case, &mut judged);
        let concluded = self.conclude(case, judged);
        self.watch(job);
        self.offer(taken, if concluded.is_ok() { "allow" } else { "deny" });
        concluded.map(|receipt| Permit::issue(narrowed.unwrap_or(call), receipt))
    }

    /// The fingerprint of a call as it would be judged now, and the number of the generation that would judge it: what an
    /// approval is bound to.
    #[must_use]
    pub fn identify(&self, facts: &DispatchFacts, call: &ExecutorCall) -> (Fingerprint, u64) {
        let generation = self.active.load();
        let set = generation
            .as_ref()
            .and_then(|generation| generation.sets.get(&facts.caller.tenant));
        let set = set.map_or(Digest::of(b""), |set| set.digest());
        let number = generation.as_ref().map_or(0, |it| it.number);
        (Fingerprint::of(facts, call, set), number)
    }

    /// Records and returns the refusal of a call whose facts changed twice between judging and sending.
    #[must_use]
    pub fn facts_changed(&self, facts: &DispatchFacts, call: &ExecutorCall) -> Refusal {
        let case = Case::open(self, facts, call);
        let id = case.id.clone();
        let number = case.number();
        match self.conclude(case, Judged::unheard(HostCode::FactsChanged)) {
            Err(refusal) => refusal,
            // A refusal goes in, so a refusal comes out.
            Ok(_) => Reason::from(HostCode::PolicyInternal).into_refusal(id, number),
        }
    }

    /// The refusal of what may not begin while the log takes no records. It has an id although no record holds it.
    #[must_use]
    pub fn audit_unavailable(&self) -> Refusal {
        let id = self.ids.next(now_unix_ms());
        tracing::error!(decision_id = %id, "refused: the decision log takes no records");
        Reason::from(HostCode::AuditUnavailable).into_refusal(id, self.generation())
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn place(&self) -> Option<Place<'_>> {
        let asked = Instant::now();
        let place = self.engine.place();
        self.metrics.waited(asked.elapsed());
        place
    }

    /// Hands a decision to the monitors, now that it is made.
    fn watch(&self, job: Option<Job>) {
        if let (Some(job), Some(monitor)) = (job, self.monitor.get()) {
            monitor.push(job);
        }
    }

    /// Lets a capture see the decisions from now on.
    pub(crate) fn tap(&self, tap: Tap) -> Result<(), CaptureRunning> {
        if self.is_captured.swap(true, Ordering::AcqRel) {
            return Err(CaptureRunning);
        }
        self.tap.store(Some(Arc::new(tap)));
        Ok(())
    }

    /// The capture sees no further decision.
    pub(crate) fn untap(&self) {
        self.tap.store(None);
    }

    /// As [`untap`](Self::untap), and another capture may begin.
    pub(crate) fn tap_free(&self) {
        self.untap();
        self.is_captured.store(false, Ordering::Release);
    }

    /// Copies what was said, when a capture wants it.
    fn kept<O>(&self, said: &[Said<O>], keep: impl Fn(&Said<O>) -> Kept) -> Vec<Kept> {
        match &*self.tap.load() {
            Some(_) => said.iter().map(keep).collect(),
            None => Vec::new(),
        }
    }

    fn taken(&self, case: &Case<'_>, judged: &mut Judged<'_>) -> Option<Taken> {
        // Facts that have no text form were judged by nobody.
        if self.tap.load().is_none() || case.measured.is_err() {
            return None;
        }
        Some(Taken {
            id: case.id.as_str().to_owned(),
            generation: case.number(),
            set: Arc::clone(case.set.as_ref()?),
            asked: capture::Asked::Dispatch {
                facts: Box::new(case.facts.clone()),
                is_repeated: case.is_repeated(),
            },
            said: std::mem::take(&mut judged.kept),
            effective: "",
        })
    }

    fn offer(&self, taken: Option<Taken>, effective: &'static str) {
        if let (Some(taken), Some(tap)) = (taken, &*self.tap.load()) {
            if tap.is_over() {
                self.untap();
            } else {
                tap.offer(Taken { effective, ..taken });
            }
        }
    }

    fn budget(&self) -> Duration {
        self.engine.limits().total_budget()
    }

    /// Runs a judgement; a panic in it is a refusal.
    fn guarded<'a>(&self, judgement: impl FnOnce() -> Judged<'a>) -> Judged<'a> {
        catch_unwind(AssertUnwindSafe(judgement)).unwrap_or_else(|_| {
            tracing::error!("judging a call panicked; the call is refused");
            self.faults.fetch_add(1, Ordering::Relaxed);
            Judged::unheard(HostCode::PolicyInternal)
        })
    }

    /// Asks every policy of the set and combines what they say.
    fn judge<'a>(
        &self,
        case: &Case<'_>,
        set: Option<&'a PolicySet>,
        under: Under<'_>,
    ) -> Judged<'a> {
        let Some(set) = set else {
            return Judged::unheard(HostCode::PolicyAbsent);
        };
        match case.measured {
            Err(NotFinite) => return Judged::unheard(HostCode::FactsInvalid),
            Ok((bytes, _)) if bytes > self.engine.limits().facts_bytes => {
                return Judged::unheard(DenyCode::Floor(Denial::FactsTooLarge));
            }
            Ok(_) => {}
        }
        if !case.ids_are_sane() {
            return Judged::unheard(HostCode::FactsInvalid);
        }
        let Some(_place) = self.place() else {
            return Judged::unheard(HostCode::PolicyBusy);
        };
        let facts = convert::dispatch(&case.facts);
        let said = self.ask(set, case.started, |module, left| match module.mode() {
            Mode::Enforce => module.admit_dispatch(&self.engine, &facts, left),
            // Asked when the answer is fixed; its place is kept, so that rules stay with their modules.
            Mode::Monitor => Said::unasked(Opinion::Allow(Vec::new())),
        });
        let opinions: Vec<_> = enforcing(set, &said)
            .map(|(_, said)| said.opinion.clone())
            .collect();
        let (decision, outcome) = self.settle(case, set, combiner::combine(&opinions));
        // Before it is recorded: a condition that cannot be met is a refusal, and its record says so.
        let (outcome, narrowed) = match outcome {
            Ok(obligations) => match under(&obligations) {
                Ok(narrowed) => (Ok(obligations), narrowed),
                Err(Unmet) => (Err(HostCode::ObligationFailed.into()), None),
            },
            Err(reason) => (Err(reason), None),
        };
        let modules = set.modules().iter().zip(&said);
        Judged {
            decision,
            outcome,
            narrowed,
            modules: modules
                .filter(|(module, _)| module.mode() == Mode::Enforce)
                .map(|(module, said)| opinion_row(module, said))
                .collect(),
            kept: self.kept(&said, Kept::admit),
            rules: said.into_iter().map(|said| said.rules).collect(),
        }
    }

    /// Asks the modules one after another within what is left of the budget.
    fn ask<O>(
        &self,
        set: &PolicySet,
        started: Instant,
        ask: impl Fn(&Module, Duration) -> Said<O>,
    ) -> Vec<Said<O>> {
        set.modules()
            .iter()
            .map(|module| ask(module, self.budget().saturating_sub(started.elapsed())))
            .collect()
    }

    /// Turns the combined verdict into what is done.
    fn settle(
        &self,
        case: &Case<'_>,
        set: &PolicySet,
        combined: Combined,
    ) -> (Decision, Result<Vec<Obligation>, Reason>) {
        match combined {
            Combined::Allow(obligations) => {
                let possible = obligations
                    .iter()
                    .all(|obligation| self.can(obligation.kind()));
                let outcome = if possible {
                    Ok(obligations)
                } else {
                    Err(HostCode::ObligationFailed.into())
                };
                (Decision::Allow, outcome)
            }
            Combined::Deny { by, code } => {
                let module = enforcing_modules(set).nth(by);
                let reason = match module {
                    // The floor cannot see which action spent the snapshot; see `DispatchFacts::spent_fingerprint`.
                    Some(module)
                        if module.is_floor()
                            && code == Denial::SnapshotSpent.code()
                            && case.is_repeated() =>
                    {
                        HostCode::DuplicateAction.into()
                    }
                    Some(module) => Reason::given_by(module, &code),
                    None => HostCode::PolicyInternal.into(),
                };
                (Decision::Deny, Err(reason))
            }
            Combined::RequireApproval { asking } => {
                let asks = asking.iter().filter_map(|(by, code)| {
                    enforcing_modules(set)
                        .nth(*by)
                        .map(|module| (module, code.as_str()))
                });
                let reason = match case.given.approving {
                    Approving::Possible => Reason::asking(asks),
                    Approving::Unavailable => HostCode::ApprovalUnavailable.into(),
                    Approving::Rejected => HostCode::ApprovalRejected.into(),
                    Approving::Full => HostCode::ApprovalsPending.into(),
                };
                (Decision::RequireApproval, Err(reason))
            }
            Combined::Fault(code) => {
                self.faults.fetch_add(1, Ordering::Relaxed);
                (Decision::Error, Err(code.into()))
            }
        }
    }

    fn can(&self, kind: ObligationKind) -> bool {
        kind == ObligationKind::MarkSensitive || self.options.enforceable.contains(&kind)
    }

    /// Records the decision, and only then lets it count.
    fn conclude(&self, case: Case<'_>, judged: Judged<'_>) -> Result<Receipt, Refusal> {
        let Judged {
            decision,
            outcome,
            narrowed: _,
            modules,
            rules: admitted_rules,
            kept: _,
        } = judged;
        let facts = case.given;
        let number = case.number();
        let obligations = outcome.as_ref().map_or(&[][..], Vec::as_slice);
        let sensitive = obligations.contains(&Obligation::MarkSensitive);
        let set_digest = case.set.as_ref().map(|set| set.digest().to_string());
        let head = &case.facts.head;
        let short = |text: &'_ str| text.len() <= case::MAX_ID;
        let record = DecisionRecord {
            id: case.id.as_str(),
            unix_ms: head.now_unix_ms,
            hook: "admit-dispatch",
            tenant: &head.caller.tenant,
            orchestrator: &head.caller.orchestrator,
            session: &head.caller.session,
            // Ids that are too long were refused for it, and are not kept either.
            turn: if short(&head.caller.turn) {
                &head.caller.turn
            } else {
                ""
            },
            tool_call: if short(&head.tool_call_id) {
                &head.tool_call_id
            } else {
                ""
            },
            method: &head.method,
            fingerprint: Some(case.fingerprint.to_string()),
            request: facts.request,
            policy: PolicyRow {
                generation: number,
                set: set_digest.as_deref(),
            },
            facts: FactsRow {
                snapshot: if short(&case.facts.claim.snapshot_id) {
                    &case.facts.claim.snapshot_id
                } else {
                    ""
                },
                state: (!case.facts.claim.snapshot_id.is_empty())
                    .then(|| case.facts.snapshot.state.as_str()),
                epoch: case
                    .facts
                    .snapshot
                    .target
                    .as_ref()
                    .map(|_| case.facts.snapshot.epoch),
                app: case
                    .facts
                    .snapshot
                    .target
                    .as_ref()
                    .filter(|_| !sensitive)
                    .map(|target| target.app_id.as_str()),
                tier: case.facts.claim.tier.map(maka_floor::facts::Tier::as_str),
                path: case.facts.claim.path.map(maka_floor::facts::Path::as_str),
                outcome: None,
                bytes: case.measured.ok().map(|(bytes, _)| bytes),
                hash: case.measured.ok().map(|(_, hash)| hash.to_string()),
            },
            modules,
            decision,
            effective: if outcome.is_ok() {
                Decision::Allow
            } else {
                Decision::Deny
            },
            code: outcome.as_ref().err().map(Reason::code),
            class: outcome
                .as_ref()
                .err()
                .map(|reason| class_of(reason).as_str()),
            obligations: obligations
                .iter()
                .map(|obligation| obligation.kind().as_str())
                .collect(),
            approval: head.approval.as_ref().map(|grant| grant.id.as_str()),
            us: micros(case.started.elapsed()),
        };
        let recorded = self.log.decision(&record);
        self.metrics
            .decided(&record, case.started.elapsed(), recorded.is_ok());
        drop(record);
        let outcome = match (outcome, recorded) {
            (outcome, Ok(())) => outcome,
            // There is no decision without a record, so there is not even another refusal.
            (_, Err(AuditUnavailable)) => {
                tracing::error!(decision_id = %case.id, "refused: the decision log takes no records");
                Err(HostCode::AuditUnavailable.into())
            }
        };
        match (outcome, case.set) {
            (Ok(obligations), Some(set)) => Ok(Receipt {
                head: case.facts.head,
                decision_id: case.id,
                fingerprint: case.fingerprint,
                generation: number,
                set,
                admitted_rules,
                obligations,
                row_version: facts.row_version,
            }),
            (Ok(_), None) => {
                Err(Reason::from(HostCode::PolicyAbsent).into_refusal(case.id, number))
            }
            (Err(reason), _) => Err(reason.into_refusal(case.id, number)),
        }
    }
}

/// The enforcing modules of a set with what they said.
fn enforcing<'a, O>(
    set: &'a PolicySet,
    said: &'a [Said<O>],
) -> impl Iterator<Item = (&'a Module, &'a Said<O>)> {
    set.modules()
        .iter()
        .zip(said)
        .filter(|(module, _)| module.mode() == Mode::Enforce)
}

fn enforcing_modules(set: &PolicySet) -> impl Iterator<Item = &Module> {
    set.modules()
        .iter()
        .filter(|module| module.mode() == Mode::Enforce)
}

fn opinion_row<'a>(module: &'a Module, said: &Said<Opinion>) -> ModuleRow<'a> {
    let (decision, code) = match &said.opinion {
        Opinion::Allow(_) => (Decision::Allow, None),
        Opinion::Deny(code) => (Decision::Deny, Some(code.clone())),
        Opinion::RequireApproval(code) => (Decision::RequireApproval, Some(code.clone())),
        Opinion::Fault(code) => (
            Decision::Error,
            Some(DenyCode::Host(*code).as_str().to_owned()),
        ),
    };
    module_row(module, said, decision, code)
}

fn module_row<'a, O>(
    module: &'a Module,
    said: &Said<O>,
    decision: Decision,
    code: Option<String>,
) -> ModuleRow<'a> {
    let table = &module.manifest().rules;
    ModuleRow {
        name: module.name(),
        digest: module.digest().to_string(),
        mode: module.mode().as_str(),
        decision: decision.as_str(),
        code,
        rules: said
            .rules
            .iter()
            .filter_map(|rule| table.get(usize::from(*rule)))
            .map(|rule| rule.id.as_str())
            .collect(),
        fuel: said.fuel,
        us: micros(said.elapsed),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Facts of an ordinary call under a new generation.
fn first_facts(tenant: &str, generation: u64) -> Dispatch {
    let mut facts = crate::module::sample();
    facts.head.policy_generation = generation;
    tenant.clone_into(&mut facts.head.caller.tenant);
    facts
}
