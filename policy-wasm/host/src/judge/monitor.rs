//! Modules in monitor mode: asked after the answer is fixed, on a thread of their own, and only recorded.
//!
//! What they say changes nothing and delays nothing. The queue before the thread is bounded; what finds no room in it is
//! counted and never waits, so that a slow monitor cannot slow a decision.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{opinion_row, review::review_row};
use crate::bindings::exports::maka::policy::hooks as wit;
use crate::convert;
use crate::engine::Engine;
use crate::facts::{Dispatch, Head, Subject};
use crate::id::DecisionId;
use crate::log::{DecisionLog, ModuleRow, MonitorRecord, PolicyRow};
use crate::metrics::Metrics;
use crate::module::Mode;
use crate::set::PolicySet;

/// Calls and answers that wait for the monitors.
const QUEUE: usize = 256;

/// What the monitors of a set are asked about.
pub(super) enum Asked {
    /// A call that was judged.
    Dispatch(Box<Dispatch>),
    /// An answer that was reviewed.
    Review(Box<Head>, Box<Subject>),
}

/// A decision that was made, for the monitors of its set.
pub(super) struct Job {
    pub(super) id: DecisionId,
    pub(super) generation: u64,
    pub(super) set: Arc<PolicySet>,
    pub(super) asked: Asked,
}

/// The thread that asks monitors, and the queue before it.
#[derive(Debug)]
pub(super) struct Monitor {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    dropped: Arc<AtomicU64>,
}

impl Monitor {
    pub(super) fn start(
        engine: Engine,
        log: Arc<DecisionLog>,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let unrecorded = Arc::clone(&dropped);
        let thread = std::thread::Builder::new()
            .name("maka-policy-monitor".to_owned())
            .spawn(move || watch(&engine, &log, &metrics, &waiting, &unrecorded))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            dropped,
        })
    }

    /// Hands a decision over, or counts that there was no room for it.
    pub(super) fn push(&self, job: Job) {
        let Some(jobs) = &self.jobs else { return };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Decisions that no monitor was asked about, or whose record was lost.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // What waits is still asked: a monitor's record of the last calls before an end is worth some milliseconds.
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it was reported by the hook of panics, and nothing depends on it.
            drop(thread.join());
        }
    }
}

/// Whether a set has monitors at all; most have none, and then nothing is copied for them.
pub(super) fn watches(set: &PolicySet) -> bool {
    set.modules()
        .iter()
        .any(|module| module.mode() == Mode::Monitor)
}

fn watch(
    engine: &Engine,
    log: &DecisionLog,
    metrics: &Metrics,
    jobs: &Receiver<Job>,
    dropped: &AtomicU64,
) {
    while let Ok(job) = jobs.recv() {
        let (hook, modules) = ask(engine, &job);
        metrics.said(hook, &modules);
        let set = job.set.digest().to_string();
        let recorded = log.monitor(&MonitorRecord {
            decision: job.id.as_str(),
            hook,
            policy: PolicyRow {
                generation: job.generation,
                set: Some(&set),
            },
            modules,
        });
        if recorded.is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn ask<'a>(engine: &Engine, job: &'a Job) -> (&'static str, Vec<ModuleRow<'a>>) {
    let left: Duration = engine.limits().total_budget();
    let monitors = job
        .set
        .modules()
        .iter()
        .filter(|module| module.mode() == Mode::Monitor);
    match &job.asked {
        Asked::Dispatch(facts) => {
            let facts = convert::dispatch(facts);
            let rows = monitors
                .map(|module| opinion_row(module, &module.admit_dispatch(engine, &facts, left)));
            ("admit-dispatch", rows.collect())
        }
        Asked::Review(head, subject) => {
            let facts = wit::Review {
                head: convert::head(head),
                // What a monitor named on admission was its own affair and is not carried over.
                admitted_rules: Vec::new(),
                subject: convert::subject(subject),
            };
            let rows =
                monitors.map(|module| review_row(module, &module.review(engine, &facts, left)));
            ("review-result", rows.collect())
        }
    }
}
