//! What is visible of a session from outside its task, in short critical sections and atomics.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::core::unix_ms;
use super::image::Images;
use super::state::{Happening, Machine, SessionState};
use crate::events::what::EndReason;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) images: Mutex<Images>,
    live: Mutex<Live>,
    touched: Mutex<Instant>,
    touched_unix_ms: AtomicU64,
    calls: AtomicU32,
    machine: Mutex<Machine>,
    /// A person stopped the session, or a page of it is blocked: what runs is cancelled.
    pub(crate) stopped: CancellationToken,
    /// The generation whose executor knows this session; 0 for none.
    begun: AtomicU64,
    /// The generation that the last observation was of; 0 for none.
    observed: AtomicU64,
    /// A policy closed the session for actions.
    quarantined: AtomicBool,
    /// The session's task has ended.
    over: AtomicBool,
    end_reason: OnceLock<EndReason>,
}

#[derive(Debug, Default)]
struct Live {
    generation: u64,
    expires: Vec<Instant>,
}

/// Counts one call as long as it is queued or under way.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Shared>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

impl Shared {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            images: Mutex::default(),
            live: Mutex::default(),
            touched: Mutex::new(Instant::now()),
            touched_unix_ms: AtomicU64::new(unix_ms()),
            calls: AtomicU32::new(0),
            machine: Mutex::new(machine),
            stopped: CancellationToken::new(),
            begun: AtomicU64::new(0),
            observed: AtomicU64::new(0),
            quarantined: AtomicBool::new(false),
            over: AtomicBool::new(false),
            end_reason: OnceLock::new(),
        }
    }

    /// Something happened to the session. A state that nothing leads out of also cancels what runs. Returns the state.
    pub(crate) fn happened(&self, what: Happening) -> SessionState {
        let now = Instant::now();
        let state = {
            let mut machine = self.machine();
            machine.happened(what, now);
            machine.state(now)
        };
        if state.is_final() {
            self.stopped.cancel();
        }
        state
    }

    /// The status of the session. For one short look at a time.
    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The generation whose executor knows this session; 0 for none.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// The executor of this generation knows the session now; 0: none does.
    pub(crate) fn set_begun(&self, generation: u64) {
        self.begun.store(generation, Ordering::Release);
    }

    /// The generation that the last observation was of; 0 for none.
    pub(crate) fn observed(&self) -> u64 {
        self.observed.load(Ordering::Acquire)
    }

    /// An observation is about to be good.
    pub(crate) fn set_observed(&self, generation: u64) {
        self.observed.store(generation, Ordering::Release);
    }

    /// Whether a policy closed the session for actions.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantined.load(Ordering::Acquire)
    }

    /// A policy closes the session for actions, or an operator opens it.
    pub(crate) fn set_quarantined(&self, quarantined: bool) {
        self.quarantined.store(quarantined, Ordering::Release);
    }

    /// The session's task has ended: nobody else will end it at the executor.
    pub(crate) fn set_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether it has.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Somebody ends the session. The first one who does is remembered.
    pub(crate) fn end_because(&self, reason: EndReason) {
        self.end_reason.get_or_init(|| reason);
    }

    /// Why the session ends; when nobody ended it, nobody used it.
    pub(crate) fn end_reason(&self) -> EndReason {
        self.end_reason.get().copied().unwrap_or(EndReason::Idle)
    }

    /// A call names the session.
    pub(crate) fn touch(&self) {
        *self.touched.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.touched_unix_ms.store(unix_ms(), Ordering::Relaxed);
    }

    pub(crate) fn enter(self: &Arc<Self>) -> InFlight {
        self.touch();
        self.calls.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    pub(crate) fn touched(&self) -> Instant {
        *self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn touched_unix_ms(&self) -> u64 {
        self.touched_unix_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn calls_in_flight(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn set_live(&self, generation: u64, expires: Vec<Instant>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Live {
            generation,
            expires,
        };
    }

    /// Frames that may be quoted now, if `generation` is the one that runs.
    pub(crate) fn live(&self, generation: u64, now: Instant) -> u32 {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.generation != generation {
            return 0;
        }
        let count = live
            .expires
            .iter()
            .filter(|expires| **expires > now)
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
