//! The engine: runs one hook of one policy in a fresh instance and under limits.
//!
//! Three limits end a policy that does not end by itself: fuel, which counts what it executes and is the same on every
//! machine; wall time, for the rest; and memory. Starting an [`Engine`] proves that each of them works, because a limit
//! that was forgotten looks exactly like one that is never reached.
//!
//! **Invariant:** an instance is used for one call and dropped, whatever the call did.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wasmtime::{
    Config, InstanceAllocationStrategy, PoolingAllocationConfig, ResourceLimiter, Store, Trap,
};

use crate::bindings::{Policy, PolicyPre};
use crate::codes::HostCode;
use crate::limits::{self, LimitError, Limits};

/// An engine that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A limit is outside its range.
    #[error("the policy limits are not accepted")]
    Limit(#[from] LimitError),
    /// wasmtime refuses the configuration, or has no room for the pool.
    #[error("the WebAssembly engine does not start")]
    Start(#[source] wasmtime::Error),
    /// The clock that interrupts policies has no thread.
    #[error("the clock of the WebAssembly engine does not start")]
    Clock(#[source] std::io::Error),
    /// A limit does not hold on this machine.
    #[error("the WebAssembly engine does not enforce its {0} limit")]
    Unenforced(&'static str),
}

/// A shared handle to the engine. The clock ends with the last one.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    engine: wasmtime::Engine,
    limits: Limits,
    places: Places,
    _clock: Clock,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("limits", &self.inner.limits)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts an engine and proves that its limits hold. Takes some 10 ms.
    ///
    /// # Errors
    ///
    /// When a limit is out of range, when there is no room for the pool or no thread for the clock, and when a limit does
    /// not hold.
    pub fn new(limits: Limits) -> Result<Self, EngineError> {
        limits.check()?;
        let engine = wasmtime::Engine::new(&config(&limits)).map_err(EngineError::Start)?;
        let clock = Clock::start(engine.clone(), Duration::from_millis(limits.tick_ms))
            .map_err(EngineError::Clock)?;
        let places = Places::new(limits.places());
        let engine = Self {
            inner: Arc::new(Inner {
                engine,
                limits,
                places,
                _clock: clock,
            }),
        };
        engine.prove_limits()?;
        Ok(engine)
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.engine
    }

    /// Takes a place in the pool, or nothing when none gets free in time.
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        self.inner
            .places
            .take(Duration::from_millis(self.inner.limits.pool_wait_ms))
    }

    /// Runs one call in a fresh instance.
    pub(crate) fn run<R>(
        &self,
        pre: &PolicyPre<Guard>,
        caps: Caps,
        call: impl FnOnce(&Policy, &mut Store<Guard>) -> wasmtime::Result<R>,
    ) -> Ran<R> {
        let started = Instant::now();
        let mut store = match self.store(caps) {
            Ok(store) => store,
            Err(_) => {
                return Ran {
                    result: Err(HostCode::PolicyInternal),
                    fuel: 0,
                    memory_bytes: 0,
                    elapsed: started.elapsed(),
                };
            }
        };
        let result = match pre.instantiate(&mut store) {
            Ok(policy) => call(&policy, &mut store)
                .map_err(|error| fault(&store, &error, HostCode::PolicyBadOutput)),
            Err(error) => Err(fault(&store, &error, HostCode::PolicyBusy)),
        };
        let fuel = caps.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
        Ran {
            result,
            fuel,
            memory_bytes: store.data().used,
            elapsed: started.elapsed(),
        }
    }

    fn store(&self, caps: Caps) -> wasmtime::Result<Store<Guard>> {
        let memory = usize::try_from(caps.memory_bytes).unwrap_or(usize::MAX);
        let mut store = Store::new(
            &self.inner.engine,
            Guard {
                memory,
                used: 0,
                refused: false,
            },
        );
        store.limiter(|guard| guard);
        store.set_fuel(caps.fuel)?;
        store.set_epoch_deadline(caps.ticks);
        store.epoch_deadline_trap();
        store.set_hostcall_fuel(caps.output_bytes);
        Ok(store)
    }

    /// Proves again that the limits hold, as [`new`](Self::new) did.
    ///
    /// # Errors
    ///
    /// When one does not.
    pub fn prove(&self) -> Result<(), EngineError> {
        self.prove_limits()
    }

    /// Runs two tiny modules that never end by themselves and one that wants all memory there is.
    fn prove_limits(&self) -> Result<(), EngineError> {
        let forever = Duration::from_secs(3600);
        let limits = self.limits();
        let patient = Caps {
            fuel: u64::MAX,
            ticks: 2,
            memory_bytes: limits.memory_bytes,
            output_bytes: 0,
        };
        let rows: [(&str, &[u8], Caps, HostCode); 3] = [
            (
                "fuel",
                ENDLESS,
                Caps {
                    fuel: 100_000,
                    ticks: limits.ticks(forever),
                    ..patient
                },
                HostCode::PolicyFuel,
            ),
            ("time", ENDLESS, patient, HostCode::PolicyTimeout),
            (
                "memory",
                GREEDY,
                Caps {
                    fuel: 100_000,
                    ticks: limits.ticks(forever),
                    ..patient
                },
                HostCode::PolicyMemory,
            ),
        ];
        for (name, module, caps, expected) in rows {
            let module =
                wasmtime::Module::new(&self.inner.engine, module).map_err(EngineError::Start)?;
            let mut store = self.store(caps).map_err(EngineError::Start)?;
            let instance =
                wasmtime::Instance::new(&mut store, &module, &[]).map_err(EngineError::Start)?;
            let run = instance
                .get_typed_func::<(), ()>(&mut store, "f")
                .map_err(EngineError::Start)?;
            match run.call(&mut store, ()) {
                Err(error) if fault(&store, &error, HostCode::PolicyInternal) == expected => {}
                Err(_) | Ok(()) => return Err(EngineError::Unenforced(name)),
            }
        }
        Ok(())
    }
}

/// `(module (func (export "f") (loop (br 0))))`
const ENDLESS: &[u8] = &[
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // magic, version
    1, 4, 1, 0x60, 0, 0, // types: () -> ()
    3, 2, 1, 0, // functions
    7, 5, 1, 1, b'f', 0, 0, // exports
    10, 9, 1, 7, 0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b, // code: loop br 0 end end
];

/// `(module (memory 0) (func (export "f") (loop (drop (memory.grow (i32.const 1))) (br 0))))`
const GREEDY: &[u8] = &[
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // magic, version
    1, 4, 1, 0x60, 0, 0, // types: () -> ()
    3, 2, 1, 0, // functions
    5, 3, 1, 0, 0, // memories: no minimum but zero
    7, 5, 1, 1, b'f', 0, 0, // exports
    10, 14, 1, 12, 0, 0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0, 0x0b, 0x0b, // code
];

/// What one call may use up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    pub(crate) fuel: u64,
    pub(crate) ticks: u64,
    pub(crate) memory_bytes: u64,
    /// What the host copies out of the instance.
    pub(crate) output_bytes: usize,
}

/// What one call did.
#[derive(Debug)]
pub(crate) struct Ran<R> {
    pub(crate) result: Result<R, HostCode>,
    pub(crate) fuel: u64,
    /// Linear memory of the instance at its end; memory never shrinks.
    pub(crate) memory_bytes: usize,
    pub(crate) elapsed: Duration,
}

/// Refuses growth beyond the limits, and remembers that it did: a guest that is refused memory traps, and the reason
/// should be the memory and not the trap.
#[derive(Debug)]
pub(crate) struct Guard {
    memory: usize,
    used: usize,
    refused: bool,
}

impl Guard {
    fn grant(&mut self, granted: bool) -> wasmtime::Result<bool> {
        if granted {
            return Ok(true);
        }
        self.refused = true;
        Err(wasmtime::Error::msg("growth refused"))
    }
}

impl ResourceLimiter for Guard {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = desired <= self.memory;
        if granted {
            self.used += desired.saturating_sub(current);
        }
        self.grant(granted)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grant(desired <= limits::TABLE_ELEMENTS)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused = true;
        Err(error)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused = true;
        Err(error)
    }

    fn instances(&self) -> usize {
        limits::CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        limits::TABLES
    }

    fn memories(&self) -> usize {
        limits::MEMORIES
    }
}

/// Which code a failed call gets. `otherwise` is for errors that are neither a trap nor a refused growth: no room on
/// instantiation, a value that is not in the contract afterwards.
fn fault(store: &Store<Guard>, error: &wasmtime::Error, otherwise: HostCode) -> HostCode {
    if store.data().refused {
        return HostCode::PolicyMemory;
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => HostCode::PolicyFuel,
        Some(Trap::Interrupt) => HostCode::PolicyTimeout,
        // Every other trap is one kind to a caller, and wasmtime may add more of them.
        Some(_) => HostCode::PolicyTrap,
        None => otherwise,
    }
}

fn config(limits: &Limits) -> Config {
    let places = limits.places() + limits::SPARE_INSTANCES;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(places)
        .total_core_instances(places * limits::CORE_INSTANCES as u32)
        .total_memories(places * limits::MEMORIES as u32)
        .total_tables(places * limits::TABLES as u32)
        .max_core_instances_per_component(limits::CORE_INSTANCES as u32)
        .max_memories_per_component(limits::MEMORIES as u32)
        .max_tables_per_component(limits::TABLES as u32)
        .table_elements(limits::TABLE_ELEMENTS)
        // What one policy gets is up to its operator; the pool has to have room for the most.
        .max_memory_size(usize::try_from(limits::MAX_MEMORY_BYTES).unwrap_or(usize::MAX))
        // Measured: more than the working set of a small policy makes every call slower.
        .linear_memory_keep_resident(256 << 10);
    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(limits::WASM_STACK)
        .cranelift_nan_canonicalization(true)
        .wasm_component_model(true)
        .concurrency_support(false)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Disable);
    config
}

/// The clock: a thread that advances the epoch until it is told to stop.
struct Clock {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Clock {
    fn start(engine: wasmtime::Engine, tick: Duration) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("maka-policy-clock".to_owned())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(tick) {
                    engine.increment_epoch();
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked, and a destructor has nobody to tell.
            drop(thread.join());
        }
    }
}

/// The places in the pool. A decision holds one for all modules of its set, which run one after another.
struct Places {
    free: Mutex<u32>,
    freed: Condvar,
}

/// A place in the pool, given back on drop.
pub(crate) struct Place<'a>(&'a Places);

impl Places {
    fn new(places: u32) -> Self {
        Self {
            free: Mutex::new(places),
            freed: Condvar::new(),
        }
    }

    fn take(&self, patience: Duration) -> Option<Place<'_>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut free, _) = self
            .freed
            .wait_timeout_while(free, patience, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        if *free == 0 {
            return None;
        }
        *free -= 1;
        Some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K3: the clock runs from the first moment, ends with the engine, and an engine whose limits do not hold does not
    /// start.
    #[test]
    fn starting_proves_the_limits() {
        let engine = Engine::new(Limits::default()).unwrap();
        let second = engine.clone();
        drop(engine);
        second.prove_limits().unwrap();
    }

    #[test]
    fn places_are_bounded_and_come_back() {
        let places = Places::new(2);
        let (first, second) = (places.take(Duration::ZERO), places.take(Duration::ZERO));
        assert!(first.is_some() && second.is_some());
        assert!(places.take(Duration::from_millis(1)).is_none());
        drop(first);
        assert!(places.take(Duration::ZERO).is_some());
    }
}
