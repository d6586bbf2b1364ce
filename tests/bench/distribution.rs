//! Samples, their percentiles, and how they are printed.

use std::time::Duration;

use serde_json::json;

/// Durations of one operation.
#[derive(Debug, Default)]
pub(crate) struct Distribution(Vec<Duration>);

impl Distribution {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The sample below which `percent` of the samples lie; zero when there are none.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted
            .get((sorted.len() * percent / 100).min(last))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

impl FromIterator<Duration> for Distribution {
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

/// Prints lines for people, or JSON lines.
#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
}

impl Report {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// A distribution of times.
    pub(crate) fn times(&mut self, name: &str, samples: &Distribution) {
        let (p50, p99) = (
            samples.median().as_secs_f64() * 1e3,
            samples.percentile(99).as_secs_f64() * 1e3,
        );
        if self.json {
            println!(
                "{}",
                json!({"name": name, "p50_ms": p50, "p99_ms": p99, "samples": samples.0.len()})
            );
        } else {
            println!(
                "{name:<52} p50 {p50:>9.3} ms   p99 {p99:>9.3} ms   n {}",
                samples.0.len()
            );
        }
    }

    /// One number with its unit and the bar it is held against.
    pub(crate) fn value(&mut self, name: &str, value: f64, unit: &str, bar: &str) {
        if self.json {
            println!(
                "{}",
                json!({"name": name, "value": value, "unit": unit, "bar": bar})
            );
        } else {
            println!("{name:<52} {value:>13.2} {unit:<4} bar {bar}");
        }
    }

    /// Something that could not be measured here, and why.
    pub(crate) fn left_out(&mut self, name: &str, why: &str) {
        if self.json {
            println!("{}", json!({"name": name, "left_out": why}));
        } else {
            println!("{name:<52} left out: {why}");
        }
    }
}
