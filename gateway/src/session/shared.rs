//! What is visible of a session from outside its task, in short critical sections and atomics.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::core::unix_ms;
use super::image::Images;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) images: Mutex<Images>,
    live: Mutex<Live>,
    touched: Mutex<Instant>,
    touched_unix_ms: AtomicU64,
    calls: AtomicU32,
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
    pub(crate) fn new() -> Self {
        Self {
            images: Mutex::default(),
            live: Mutex::default(),
            touched: Mutex::new(Instant::now()),
            touched_unix_ms: AtomicU64::new(unix_ms()),
            calls: AtomicU32::new(0),
        }
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
