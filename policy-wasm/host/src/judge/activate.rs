//! Making policy sets the active generation, after each module has answered a decision.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::monitor::{self, Monitor};
use super::{ActivateError, Generation, Judge, first_facts};
use crate::bindings::exports::maka::policy::hooks;
use crate::codes::HostCode;
use crate::combiner::Opinion;
use crate::convert;
use crate::log::{AuditUnavailable, ControlKind, ReloadRecord, ReloadResult, ReloadSet, Trigger};
use crate::metrics::Reload;
use crate::module::{Mode, Module};
use crate::set::PolicySet;

/// How often a policy may be late with its first decision.
const FIRST_TRIES: u32 = 10;

impl Judge {
    /// Makes these sets the active generation, all at once, after each of them has answered a decision. Calls that are
    /// being judged finish on the generation they began with.
    ///
    /// # Errors
    ///
    /// When there is no set, two have one name, or one fails its decision. What was active stays active.
    pub fn activate(&self, sets: Vec<PolicySet>) -> Result<u64, ActivateError> {
        let mut last = self
            .activating
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if sets.is_empty() {
            return Err(ActivateError::Empty);
        }
        let number = *last + 1;
        let sets = self.answering(sets.into_iter().map(Arc::new), number)?;
        *last = number;
        self.swap(number, sets);
        self.log.control(ControlKind::PolicyActivated, None);
        Ok(number)
    }

    /// As [`activate`](Self::activate), for a gateway that runs: the change is recorded before it counts, with what
    /// becomes active and which modules stop to enforce. Without any set everything is refused from then on.
    ///
    /// # Errors
    ///
    /// As [`activate`](Self::activate), and when the log takes no record. What was active stays active.
    pub fn reload(
        &self,
        sets: Vec<Arc<PolicySet>>,
        trigger: Trigger<'_>,
    ) -> Result<u64, ActivateError> {
        let mut last = self
            .activating
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let number = *last + 1;
        let sets = self.answering(sets.into_iter(), number)?;
        let before = self.active.load_full();
        let demoted = before
            .iter()
            .flat_map(|generation| generation.sets.values())
            .filter_map(|old| sets.get(old.name()).map(|new| (old, new)))
            .flat_map(|(old, new)| demoted(old, new))
            .collect();
        let result = if sets.is_empty() {
            ReloadResult::Deactivated
        } else {
            ReloadResult::Activated
        };
        self.log
            .reload(&ReloadRecord {
                result,
                trigger,
                generation: number,
                refusal: None,
                demoted,
                sets: sets.values().map(|set| ReloadSet::of(set)).collect(),
            })
            .map_err(|AuditUnavailable| ActivateError::Unrecorded)?;
        *last = number;
        self.swap(number, sets);
        Ok(number)
    }

    fn swap(&self, number: u64, sets: BTreeMap<String, Arc<PolicySet>>) {
        self.active.store(Some(Arc::new(Generation {
            number,
            since: Instant::now(),
            sets,
        })));
        self.metrics.reloaded(Reload::Accepted);
    }

    /// Records that a candidate was refused, with a word for why and the place at fault. What runs goes on.
    pub fn reload_refused(
        &self,
        trigger: Trigger<'_>,
        code: &'static str,
        module: Option<&str>,
        place: &str,
    ) {
        self.metrics.reloaded(Reload::Refused);
        let recorded = self.log.reload(&ReloadRecord {
            result: ReloadResult::Refused,
            trigger,
            generation: self.generation(),
            refusal: Some((code, module, place)),
            demoted: Vec::new(),
            sets: Vec::new(),
        });
        if recorded == Err(AuditUnavailable) {
            tracing::error!(code, "a refused policy could not be recorded");
        }
    }

    /// The active sets.
    #[must_use]
    pub fn active_sets(&self) -> Vec<Arc<PolicySet>> {
        self.active
            .load()
            .iter()
            .flat_map(|generation| generation.sets.values().cloned())
            .collect()
    }

    /// Decisions that the monitors of their set were not asked about, because too many waited, or whose record was lost.
    #[must_use]
    pub fn unmonitored(&self) -> u64 {
        self.monitor.get().map_or(0, Monitor::dropped)
    }

    /// The sets by name, each after one decision of every enforcing module.
    fn answering(
        &self,
        sets: impl Iterator<Item = Arc<PolicySet>>,
        number: u64,
    ) -> Result<BTreeMap<String, Arc<PolicySet>>, ActivateError> {
        let mut by_name = BTreeMap::new();
        for set in sets {
            let facts = convert::dispatch(&first_facts(set.name(), number));
            for module in set
                .modules()
                .iter()
                .filter(|module| module.mode() == Mode::Enforce)
            {
                if let Some(code) = self.first_fault(module, &facts) {
                    return Err(ActivateError::FirstDecision(code));
                }
            }
            if monitor::watches(&set) && self.monitor.get().is_none() {
                let monitor = Monitor::start(
                    self.engine.clone(),
                    Arc::clone(&self.log),
                    Arc::clone(&self.metrics),
                )
                .map_err(ActivateError::Monitor)?;
                // Activations take turns, so nobody else has set it meanwhile.
                drop(self.monitor.set(monitor));
            }
            if by_name.insert(set.name().to_owned(), set).is_some() {
                return Err(ActivateError::NameTwice);
            }
        }
        Ok(by_name)
    }

    /// What is wrong with a module's first decision. One that is late is asked for again: a machine that is busy, for
    /// example with starting everything else, says nothing about a policy.
    fn first_fault(&self, module: &Module, facts: &hooks::Dispatch) -> Option<HostCode> {
        let mut tries = 0;
        loop {
            tries += 1;
            let said = module.admit_dispatch(&self.engine, facts, self.budget());
            match said.opinion {
                Opinion::Fault(HostCode::PolicyTimeout) if tries < FIRST_TRIES => {}
                Opinion::Fault(code) => return Some(code),
                Opinion::Allow(_) | Opinion::Deny(_) | Opinion::RequireApproval(_) => return None,
            }
        }
    }
}

/// The modules that enforced in one set and do not in the next.
fn demoted<'a>(old: &'a PolicySet, new: &'a PolicySet) -> impl Iterator<Item = String> + 'a {
    let in_mode = |set: &'a PolicySet, wanted: Mode| {
        set.modules()
            .iter()
            .filter(move |module| module.mode() == wanted)
            .map(Module::name)
    };
    in_mode(old, Mode::Enforce)
        .filter(move |name| in_mode(new, Mode::Monitor).any(|other| other == *name))
        .map(move |name| format!("{}/{name}", new.name()))
}
