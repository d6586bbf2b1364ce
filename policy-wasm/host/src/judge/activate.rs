//! Making policy sets the active generation, after each module has answered a decision.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::{ActivateError, Generation, Judge, first_facts};
use crate::bindings::exports::maka::policy::hooks;
use crate::codes::HostCode;
use crate::combiner::Opinion;
use crate::convert;
use crate::log::ControlKind;
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
        let mut by_name = BTreeMap::new();
        for set in sets {
            let set = Arc::new(set);
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
            if by_name.insert(set.name().to_owned(), set).is_some() {
                return Err(ActivateError::NameTwice);
            }
        }
        *last = number;
        self.active.store(Some(Arc::new(Generation {
            number,
            since: Instant::now(),
            sets: by_name,
        })));
        self.metrics.reloaded(Reload::Accepted);
        self.log.control(ControlKind::PolicyActivated, None);
        Ok(number)
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
