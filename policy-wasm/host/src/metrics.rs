//! What is counted and timed of decisions (spec 1.10), for a page of metrics.
//!
//! INVARIANT: label values come from closed tables only: hooks, words, built-in codes, and the codes and names in the manifests of
//! policies that an operator loaded. Nothing of a caller, a request or an application is ever a label.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::codes::{DenyCode, HostCode};
use crate::judge::Judge;
use crate::log::{Decision, DecisionRecord, ModuleRow};
use crate::module::Mode;

/// Upper bounds of the histograms of times, in seconds.
const SECONDS: [f64; 14] = [
    10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 1.0,
];

/// Upper bounds of the histogram of fuel.
const STEPS: [f64; 9] = [1e4, 2e4, 5e4, 1e5, 2e5, 1e6, 5e6, 2e7, 2e8];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SaidLabels {
    hook: &'static str,
    decision: &'static str,
    /// Empty for an allow.
    code: String,
    mode: &'static str,
    module: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EffectiveLabels {
    hook: &'static str,
    effective: &'static str,
    /// Empty for an allow.
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    hook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FuelLabels {
    hook: &'static str,
    module: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    kind: &'static str,
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    result: &'static str,
}

/// How an attempt to make a generation active ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reload {
    /// It is active.
    Accepted,
    /// What was active stays active.
    Refused,
}

/// The counts of one judge.
#[derive(Debug)]
pub(crate) struct Metrics {
    said: Family<SaidLabels, Counter>,
    effective: Family<EffectiveLabels, Counter>,
    duration: Family<HookLabels, Histogram, fn() -> Histogram>,
    fuel: Family<FuelLabels, Histogram, fn() -> Histogram>,
    errors: Family<ErrorLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    pool_wait: Histogram,
    unlogged: Counter,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn steps() -> Histogram {
    Histogram::new(STEPS)
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            said: Family::default(),
            effective: Family::default(),
            duration: Family::new_with_constructor(seconds),
            fuel: Family::new_with_constructor(steps),
            errors: Family::default(),
            reloads: Family::default(),
            pool_wait: seconds(),
            unlogged: Counter::default(),
        }
    }
}

impl Metrics {
    /// A decision was made; `is_logged` says whether the log took it.
    pub(crate) fn decided(&self, record: &DecisionRecord<'_>, took: Duration, is_logged: bool) {
        let hook = record.hook;
        let is_explained = self.said(hook, &record.modules);
        if !is_explained && let Some(kind) = record.code.and_then(kind_of) {
            self.fault(kind, Mode::Enforce.as_str());
        }
        let effective = EffectiveLabels {
            hook,
            effective: record.effective.as_str(),
            code: record.code.unwrap_or_default().to_owned(),
        };
        self.effective.get_or_create(&effective).inc();
        let duration = self.duration.get_or_create(&HookLabels { hook });
        duration.observe(took.as_secs_f64());
        if !is_logged {
            self.unlogged.inc();
        }
    }

    /// Modules have answered. Says whether an enforcing one of them failed.
    pub(crate) fn said(&self, hook: &'static str, modules: &[ModuleRow<'_>]) -> bool {
        let mut is_fault = false;
        for module in modules {
            let code = module.code.clone().unwrap_or_default();
            if module.decision == Decision::Error.as_str()
                && let Some(kind) = kind_of(&code)
            {
                is_fault |= module.mode == Mode::Enforce.as_str();
                self.fault(kind, module.mode);
            }
            let fuel = FuelLabels {
                hook,
                module: module.name.to_owned(),
            };
            self.fuel.get_or_create(&fuel).observe(to_f64(module.fuel));
            let said = SaidLabels {
                hook,
                decision: module.decision,
                code,
                mode: module.mode,
                module: module.name.to_owned(),
            };
            self.said.get_or_create(&said).inc();
        }
        is_fault
    }

    /// A decision waited so long for its place.
    pub(crate) fn waited(&self, waited: Duration) {
        self.pool_wait.observe(waited.as_secs_f64());
    }

    /// A generation was to become active.
    pub(crate) fn reloaded(&self, reload: Reload) {
        let result = match reload {
            Reload::Accepted => "accepted",
            Reload::Refused => "refused",
        };
        self.reloads.get_or_create(&ReloadLabels { result }).inc();
    }

    fn fault(&self, kind: &'static str, mode: &'static str) {
        self.errors.get_or_create(&ErrorLabels { kind, mode }).inc();
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(
            "policy_decisions",
            "What each policy said about calls and answers",
            self.said.clone(),
        );
        registry.register(
            "policy_effective",
            "What became of calls and answers",
            self.effective.clone(),
        );
        registry.register(
            "policy_duration_seconds",
            "Time that a whole decision took, its record included",
            self.duration.clone(),
        );
        registry.register(
            "policy_fuel",
            "Computing steps that one policy used for one decision",
            self.fuel.clone(),
        );
        registry.register(
            "policy_engine_errors",
            "Faults of policies and of the engine; in mode enforce each refused or withheld something",
            self.errors.clone(),
        );
        registry.register(
            "policy_reload",
            "Attempts to make a policy generation active",
            self.reloads.clone(),
        );
        registry.register(
            "policy_pool_wait_seconds",
            "Time that a decision waited for a free place",
            self.pool_wait.clone(),
        );
        registry.register(
            "decisions_unlogged",
            "Decisions that the log did not take; each refused or withheld something",
            self.unlogged.clone(),
        );
    }
}

/// Puts everything that is counted of this judge into a registry.
pub fn register(judge: &Arc<Judge>, registry: &mut Registry) {
    judge.metrics().register(registry);
    registry.register_collector(Box::new(Standing(Arc::clone(judge))));
}

/// What is asked for when the page is read.
#[derive(Debug)]
struct Standing(Arc<Judge>);

impl Collector for Standing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let age = self.0.age().unwrap_or_default().as_secs_f64();
        let gauges: [(&str, &str, &dyn EncodeMetric); 5] = [
            (
                "policy_generation",
                "The active policy generation; 0: none",
                &ConstGauge::new(to_f64(self.0.generation())),
            ),
            (
                "policy_generation_age_seconds",
                "Time since the policy generation became active",
                &ConstGauge::new(age),
            ),
            (
                "decision_log_records",
                "Records of the decision log",
                &ConstCounter::new(self.0.log().position().count),
            ),
            (
                "policy_unmonitored",
                "Decisions that the monitors of their set were not asked about",
                &ConstCounter::new(self.0.unmonitored()),
            ),
            (
                "decision_log_lost",
                "Outcomes and control records that the log did not take",
                &ConstCounter::new(self.0.log().unlogged()),
            ),
        ];
        for (name, help, metric) in gauges {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        Ok(())
    }
}

/// The words of `policy_engine_errors_total{kind}` (spec 1.12).
const fn kind(code: HostCode) -> Option<&'static str> {
    match code {
        HostCode::PolicyAbsent => Some("absent"),
        HostCode::FactsInvalid => Some("facts"),
        HostCode::FactsChanged => Some("race"),
        HostCode::PolicyTrap => Some("trap"),
        HostCode::PolicyFuel => Some("fuel"),
        HostCode::PolicyTimeout => Some("timeout"),
        HostCode::PolicyMemory => Some("memory"),
        HostCode::PolicyBusy => Some("busy"),
        HostCode::PolicyBadOutput => Some("output"),
        HostCode::PolicyInternal => Some("internal"),
        HostCode::ObligationFailed | HostCode::ObligationConflict => Some("obligation"),
        HostCode::ExecutorUntrusted => Some("executor"),
        // Counted by `decisions_unlogged_total`.
        HostCode::AuditUnavailable => None,
        // Ends of calls in which nothing failed.
        HostCode::DuplicateAction
        | HostCode::ApprovalUnavailable
        | HostCode::ApprovalRejected
        | HostCode::ApprovalsPending => None,
    }
}

fn kind_of(code: &str) -> Option<&'static str> {
    match DenyCode::parse(code)? {
        DenyCode::Host(code) => kind(code),
        DenyCode::Floor(_) => None,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric above 2^53 may lose its last digit"
)]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every fault of the engine has a kind, and no rule has.
    #[test]
    fn kinds_are_those_of_the_failure_table() {
        let kinds: BTreeSet<_> = DenyCode::all()
            .filter_map(|code| kind_of(code.as_str()))
            .collect();
        let expected = [
            "absent",
            "busy",
            "executor",
            "facts",
            "fuel",
            "internal",
            "memory",
            "obligation",
            "output",
            "race",
            "timeout",
            "trap",
        ];
        assert!(kinds.into_iter().eq(expected));
        assert_eq!(kind_of("acme.closed"), None);
    }
}
