//! Which request meets which fault.
//!
//! Drawn from the seed, the number of the process and the number of the request in it, and from nothing else: two runs in which
//! requests arrive in the same order meet the same faults, and one more request in a process changes nothing for the next process.

use std::sync::atomic::{AtomicU64, Ordering};

use integration_tests::seeded::Seeded;
use maka_cu_protocol::method::Method;

use crate::fault::Fault;
use crate::script::StormScript;

/// A storm over one process.
#[derive(Debug)]
pub(crate) struct Storm {
    script: StormScript,
    process: u64,
    requests: AtomicU64,
}

impl Storm {
    pub(crate) fn new(script: StormScript, process: u64) -> Self {
        Self {
            script,
            process,
            requests: AtomicU64::new(0),
        }
    }

    /// What the next request meets; nothing once the storm is over.
    pub(crate) fn draw(&self, method: &str) -> Option<Fault> {
        let nth = self.requests.fetch_add(1, Ordering::Relaxed);
        if self.script.until.exists() {
            return None;
        }
        let mut seeded = Seeded::of(&[self.script.seed, self.process, nth]);
        if !seeded.chance(self.script.permille) {
            return None;
        }
        let faults = self.script.faults.as_deref().unwrap_or(Fault::ALL);
        let fault = *seeded.pick(faults);
        match method {
            _ if method == Method::HostHello.as_str() => fault.spares_the_start().then_some(fault),
            _ if fault.is_about_an_action() && !method.starts_with("dispatch.") => {
                Some(Fault::Malformed)
            }
            _ => Some(fault),
        }
    }
}
