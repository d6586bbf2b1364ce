//! One test, two lengths: the short form that runs with every change, and the long form of `cargo xtask soak`.
//!
//! The long form is asked for by variables, so that it is the same test that runs: `MAKA_SOAK_MINUTES` (how long) and
//! `MAKA_SOAK_SEED` (from which seed). Without them a test makes its few rounds from a fixed seed.

use std::env;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// The seed of the short form.
const SEED: u64 = 20_240_229;

/// How often the long form says how far it is.
const PROGRESS: Duration = Duration::from_secs(15);

/// The rounds of a test.
#[derive(Debug)]
pub struct Rounds {
    name: &'static str,
    short: u64,
    long: u64,
    length: Option<Duration>,
    started: Instant,
    said: Instant,
    done: u64,
}

impl Rounds {
    /// So many rounds in the short form; so many in the long form, if there is time for them.
    ///
    /// # Panics
    /// When `MAKA_SOAK_MINUTES` is no number.
    #[must_use]
    pub fn new(name: &'static str, short: u64, long: u64) -> Self {
        let length = env::var("MAKA_SOAK_MINUTES").ok().map(|minutes| {
            let minutes: f64 = minutes.parse().expect("MAKA_SOAK_MINUTES is a number");
            Duration::from_secs_f64(minutes * 60.0)
        });
        Self {
            name,
            short,
            long,
            length,
            started: Instant::now(),
            said: Instant::now(),
            done: 0,
        }
    }

    /// Whether this is the long form.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.length.is_some()
    }

    /// The number of the next round, from 0, or nothing when the test has had enough. `numbers` is asked for what to say about the
    /// rounds so far.
    pub fn next(&mut self, numbers: impl FnOnce() -> String) -> Option<u64> {
        let goes_on = self.done < self.short
            || self
                .length
                .is_some_and(|length| self.done < self.long && self.started.elapsed() < length);
        if self.length.is_some() && (!goes_on || self.said.elapsed() >= PROGRESS) {
            self.said = Instant::now();
            say(&format!(
                "{}: {} rounds in {:.0} s; {}",
                self.name,
                self.done,
                self.started.elapsed().as_secs_f64(),
                numbers()
            ));
        }
        if !goes_on {
            return None;
        }
        self.done += 1;
        Some(self.done - 1)
    }
}

/// The seed to begin with.
///
/// # Panics
/// When `MAKA_SOAK_SEED` is no number.
#[must_use]
pub fn seed() -> u64 {
    env::var("MAKA_SOAK_SEED").map_or(SEED, |seed| {
        seed.parse().expect("MAKA_SOAK_SEED is a number")
    })
}

/// Says something to whoever watches; the harness keeps it back unless the test fails or `--nocapture` is given.
pub fn say(line: &str) {
    // Nobody may be watching.
    writeln!(std::io::stderr(), "{line}").ok();
}
