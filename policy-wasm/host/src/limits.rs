//! What a policy may use up, and what an operator may raise that to.

use std::time::Duration;

/// A limit that is outside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("policy limit `{name}` must be from {min} to {max}")]
pub struct LimitError {
    /// The field.
    pub name: &'static str,
    /// The smallest value that works.
    pub min: u64,
    /// The ceiling.
    pub max: u64,
}

/// The limits of one engine. The defaults suit policies written in Rust; the ceilings cannot be raised by configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Fuel per hook call. A typical decision takes some 13,000 units.
    pub fuel: u64,
    /// How often the clock that interrupts a policy ticks, in milliseconds.
    pub tick_ms: u64,
    /// Wall time per module and call, in milliseconds. A backstop: fuel ends a loop long before.
    pub wall_ms: u64,
    /// Wall time per decision over all modules, in milliseconds.
    pub total_ms: u64,
    /// Linear memory per instance, in bytes.
    pub memory_bytes: u64,
    /// Size of a component, in bytes.
    pub module_bytes: u64,
    /// Modules per set, the floor included.
    pub modules_per_set: u64,
    /// Time to compile one component, in milliseconds.
    pub compile_ms: u64,
    /// Size of the facts of one call, in bytes.
    pub facts_bytes: u64,
    /// Size of one verdict, in bytes.
    pub verdict_bytes: u64,
    /// Decisions that run at the same time; zero means four per processor.
    pub pool: u64,
    /// How long a decision waits for a place in the pool, in milliseconds.
    pub pool_wait_ms: u64,
}

/// The most fuel per hook call that an operator can give.
pub const MAX_FUEL: u64 = 200_000_000;
/// The most linear memory per instance that an operator can give, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 64 << 20;
/// The largest component that an operator can accept, in bytes.
pub const MAX_MODULE_BYTES: u64 = 16 << 20;
/// The most time to compile one component that an operator can give, in milliseconds.
pub const MAX_COMPILE_MS: u64 = 60_000;
/// Instances beside those of decisions: one candidate, one monitor, and what is tried out meanwhile. They never wait for
/// a place of a decision, and never take one.
pub(crate) const SPARE_INSTANCES: u32 = 4;

/// Elements per table of an instance.
pub(crate) const TABLE_ELEMENTS: usize = 10_000;
/// Core instances, memories and tables per component.
pub(crate) const CORE_INSTANCES: usize = 4;
/// Linear memories per component.
pub(crate) const MEMORIES: usize = 2;
/// Tables per component.
pub(crate) const TABLES: usize = 4;
/// The wasm stack.
pub(crate) const WASM_STACK: usize = 512 << 10;
/// Obligations per verdict.
pub(crate) const OBLIGATIONS: usize = 16;
/// Rules per verdict.
pub(crate) const RULES: usize = 64;
/// What `prepare` may return.
pub(crate) const PREPARED_BYTES: usize = 64 << 10;
/// Canonical settings of one module.
pub(crate) const SETTINGS_BYTES: usize = 64 << 10;

/// What an operator gives one policy beyond what every policy gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Facts beyond the ordinary ones, for example `typed-text`.
    pub facts: Vec<String>,
    /// Fuel per hook call, at most [`MAX_FUEL`]; absent: the limit of the engine.
    pub fuel: Option<u64>,
    /// Linear memory in bytes, at most [`MAX_MEMORY_BYTES`]; absent: the limit of the engine.
    pub memory_bytes: Option<u64>,
    /// Size of the component in bytes, at most [`MAX_MODULE_BYTES`]; absent: the limit of the engine.
    pub module_bytes: Option<u64>,
    /// Time to compile the component in milliseconds, at most [`MAX_COMPILE_MS`]; absent: the limit of the engine. A
    /// component that carries an engine of its own needs some 20 s.
    pub compile_ms: Option<u64>,
}

impl Allowance {
    pub(crate) fn compile_ms(&self, limits: &Limits) -> u64 {
        self.compile_ms
            .unwrap_or(limits.compile_ms)
            .min(MAX_COMPILE_MS)
    }

    pub(crate) fn fuel(&self, limits: &Limits) -> u64 {
        self.fuel.unwrap_or(limits.fuel).min(MAX_FUEL)
    }

    pub(crate) fn memory_bytes(&self, limits: &Limits) -> u64 {
        self.memory_bytes
            .unwrap_or(limits.memory_bytes)
            .min(MAX_MEMORY_BYTES)
    }

    pub(crate) fn module_bytes(&self, limits: &Limits) -> u64 {
        self.module_bytes
            .unwrap_or(limits.module_bytes)
            .min(MAX_MODULE_BYTES)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 20_000_000,
            tick_ms: 5,
            wall_ms: 50,
            total_ms: 100,
            memory_bytes: 16 << 20,
            module_bytes: 4 << 20,
            modules_per_set: 8,
            compile_ms: 10_000,
            facts_bytes: 256 << 10,
            verdict_bytes: 16 << 10,
            pool: 0,
            pool_wait_ms: 5,
        }
    }
}

impl Limits {
    /// Checks every limit against its range.
    ///
    /// # Errors
    ///
    /// The first one that is outside.
    pub fn check(&self) -> Result<(), LimitError> {
        let rows = [
            ("fuel", self.fuel, 100_000, MAX_FUEL),
            ("tick_ms", self.tick_ms, 1, 50),
            ("wall_ms", self.wall_ms, 1, 500),
            ("total_ms", self.total_ms, 1, 1_000),
            ("memory_bytes", self.memory_bytes, 1 << 20, MAX_MEMORY_BYTES),
            ("module_bytes", self.module_bytes, 1, MAX_MODULE_BYTES),
            ("modules_per_set", self.modules_per_set, 1, 16),
            ("compile_ms", self.compile_ms, 1, MAX_COMPILE_MS),
            ("facts_bytes", self.facts_bytes, 4 << 10, 1 << 20),
            ("verdict_bytes", self.verdict_bytes, 256, 64 << 10),
            ("pool", self.pool, 0, 1_024),
            ("pool_wait_ms", self.pool_wait_ms, 0, 1_000),
        ];
        match rows
            .into_iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value))
        {
            Some((name, _, min, max)) => Err(LimitError { name, min, max }),
            None => Ok(()),
        }
    }

    /// The whole budget of one decision.
    #[must_use]
    pub fn total_budget(&self) -> Duration {
        Duration::from_millis(self.total_ms)
    }

    /// Ticks after which a module is interrupted when it may run this long. A deadline of n ticks fires after n − 1 to n
    /// ticks, hence the one more.
    pub(crate) fn ticks(&self, remaining: Duration) -> u64 {
        let wall = Duration::from_millis(self.wall_ms).min(remaining);
        u64::try_from(wall.as_millis())
            .unwrap_or(self.wall_ms)
            .div_ceil(self.tick_ms)
            + 1
    }

    /// How many decisions run at the same time.
    pub(crate) fn places(&self) -> u32 {
        let wanted = match self.pool {
            0 => 4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64,
            n => n,
        };
        u32::try_from(wanted.min(1_024)).unwrap_or(1_024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_hold_and_ceilings_are_ceilings() {
        Limits::default().check().unwrap();
        let error = Limits {
            fuel: 200_000_001,
            ..Limits::default()
        }
        .check()
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy limit `fuel` must be from 100000 to 200000000"
        );
        assert!(
            Limits {
                total_ms: 0,
                ..Limits::default()
            }
            .check()
            .is_err()
        );
    }

    #[test]
    fn a_deadline_never_outlives_what_is_left_of_the_budget() {
        let limits = Limits::default();
        assert_eq!(limits.ticks(Duration::from_secs(9)), 11);
        assert_eq!(limits.ticks(Duration::from_millis(7)), 3);
        assert_eq!(limits.ticks(Duration::ZERO), 1);
    }
}
