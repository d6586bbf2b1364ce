//! `cargo xtask soak`: the long form of what every change runs shortened, in parts that can be run alone.
//!
//! Owns which tests belong to a part and how long they run; the tests themselves live in the suite and read two variables
//! (`MAKA_SOAK_MINUTES`, `MAKA_SOAK_SEED`). They run unoptimised: the checks for overflow and the debug assertions are worth more here
//! than speed.

use std::{
    env,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use clap::ValueEnum;

use crate::workspace::{build_for_tests, root, run};

/// Cases that a property test makes in one go of the fuzzing part, where the test does not fix a number.
const CASES: &str = "10000";

/// Flags of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to run; left out: every part, one after another.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Say what the parts are, and run nothing.
    #[arg(long)]
    list: bool,
    /// Where random choices begin. Left out: another seed every time, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// How long one part runs at most, in minutes; a part that has done its number of rounds ends earlier.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: u32,
}

/// Something that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Eight sessions against an executor that misbehaves at random, storm after storm.
    Chaos,
    /// The executor is killed under load, 2,000 times.
    KillStorm,
    /// Cancels that race the answer, up to 20,000 rounds.
    CancelRace,
    /// 2,000 cycles of observe and dispatch with pictures in one session: memory, descriptors, files.
    Leak,
    /// The property tests of the protocol, the pending calls and the mirror, with fresh cases until the time is over.
    Fuzz,
    /// Policies change 200 times under eight callers, good and bad ones in turn.
    Reload,
    /// What works in which toolkit on X11, every toolkit under every window manager, until the time is over.
    Matrix,
}

impl Part {
    const ALL: [Self; 7] = [
        Self::Chaos,
        Self::KillStorm,
        Self::CancelRace,
        Self::Leak,
        Self::Fuzz,
        Self::Reload,
        Self::Matrix,
    ];

    /// Its tests by name; the harness takes a test when one of these is the name, or for [`Part::Fuzz`] a part of it.
    const fn tests(self) -> &'static [&'static str] {
        match self {
            Self::Chaos => &["chaos::a_storm_keeps_the_laws"],
            Self::KillStorm => &["chaos::kill_storm::a_killed_executor_is_replaced_every_time"],
            Self::CancelRace => &["chaos::cancel_race::a_cancel_that_races_the_answer_ends_once"],
            Self::Leak => &["chaos::leak::cycles_leave_nothing_behind"],
            Self::Fuzz => &[
                "laws::",
                "lines::",
                "pending::",
                "mirror::",
                "session::tests",
            ],
            Self::Reload => {
                &["policies::chaos::every_verdict_is_of_the_generation_that_its_record_names"]
            }
            Self::Matrix => &[],
        }
    }
}

/// # Errors
/// When the build fails or a test of a part does; the seed is in the text.
pub(crate) fn soak(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.list {
        list();
        return Ok(());
    }
    let parts: &[Part] = if arguments.parts.is_empty() {
        &Part::ALL
    } else {
        &arguments.parts
    };
    let seed = match arguments.seed {
        Some(seed) => seed,
        // Short enough to be read out.
        None => getrandom::u32()
            .context("the system gives no random numbers")?
            .into(),
    };
    build_for_tests()?;
    for part in parts {
        let name = name(*part);
        println!(
            "soak {name}: at most {} minutes, seed {seed}",
            arguments.minutes
        );
        let started = Instant::now();
        run_part(*part, seed, arguments.minutes).with_context(|| {
            format!(
                "{name} failed; `cargo xtask soak {name} --seed {seed} --minutes {}` repeats it",
                arguments.minutes
            )
        })?;
        println!(
            "soak {name}: passed in {:.1} minutes",
            started.elapsed().as_secs_f64() / 60.0
        );
    }
    Ok(())
}

fn list() {
    for part in Part::ALL {
        let value = part.to_possible_value().expect("no part is hidden");
        let help = value
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        println!("{:<12} {help}", value.get_name());
    }
}

fn name(part: Part) -> String {
    let value = part.to_possible_value().expect("no part is hidden");
    value.get_name().to_owned()
}

fn run_part(part: Part, seed: u64, minutes: u32) -> anyhow::Result<()> {
    match part {
        Part::Chaos | Part::KillStorm | Part::CancelRace | Part::Leak | Part::Reload => {
            let mut command = tests();
            command
                .args(part.tests())
                .args(["--exact", "--nocapture"])
                .env("MAKA_SOAK_MINUTES", minutes.to_string())
                .env("MAKA_SOAK_SEED", seed.to_string());
            run(&mut command)
        }
        Part::Fuzz => fuzz(seed, minutes),
        Part::Matrix => matrix(minutes),
    }
}

/// One round takes about ten minutes; another one begins as long as there is time.
fn matrix(minutes: u32) -> anyhow::Result<()> {
    let length = Duration::from_secs(u64::from(minutes) * 60);
    let started = Instant::now();
    while started.elapsed() < length {
        run(tests_of("matrix").env("MAKA_MATRIX_ALL", "1"))?;
    }
    Ok(())
}

/// A property test ends when it has made its cases, so it is run again with another seed until the time is over.
fn fuzz(seed: u64, minutes: u32) -> anyhow::Result<()> {
    let length = Duration::from_secs(u64::from(minutes) * 60);
    let started = Instant::now();
    for round in 0_u64.. {
        let seed = seed.wrapping_add(round);
        let mut command = tests();
        command
            .args(Part::Fuzz.tests())
            // Whole desktops take minutes for so many cases, and are nobody's input.
            .args(["--skip", "backend::"])
            .env("PROPTEST_CASES", CASES)
            .env("PROPTEST_RNG_SEED", seed.to_string());
        if let Err(error) = run(&mut command) {
            bail!("round {round} with PROPTEST_RNG_SEED={seed}: {error:#}");
        }
        // A program that answers at random on a real accessibility bus.
        let mut command = tests();
        command
            .arg("linux::babble::")
            .env("MAKA_SOAK_SEED", seed.to_string());
        if let Err(error) = run(&mut command) {
            bail!("round {round} with MAKA_SOAK_SEED={seed}: {error:#}");
        }
        let elapsed = started.elapsed();
        println!(
            "soak fuzz: {} rounds in {:.0} s",
            round + 1,
            elapsed.as_secs_f64()
        );
        if elapsed >= length {
            break;
        }
    }
    Ok(())
}

/// `cargo test` over the workspace, up to the words for the harness. The same selection of packages and targets as in
/// [`build_for_tests`], or nearly: another one would unify features differently and compile half of it again.
fn tests() -> Command {
    tests_of("suite")
}

fn tests_of(target: &str) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(["test", "--quiet", "--locked", "--workspace"]);
    if target == "suite" {
        command.arg("--lib");
    }
    command.args(["--test", target, "--"]).current_dir(root());
    command
}
