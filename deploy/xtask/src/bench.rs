//! `cargo xtask bench`: the numbers of the product beside what they are measured against, all in one run.

use std::process::Command;

use clap::ValueEnum;

use crate::workspace::{Profile, binary, build, cargo, root, run};

/// Flags of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Machine-readable lines.
    #[arg(long)]
    json: bool,
    /// Only these parts; without any, all of them.
    #[arg(value_enum)]
    parts: Vec<Part>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The floor policy's decision alone.
    Decision,
    /// Cold start and memory.
    Footprint,
    /// Dispatch against the sum of its parts.
    Dispatch,
    /// Many sessions at once.
    Load,
    /// A killed executor, a dropped call.
    Recovery,
    /// Large trees and pictures.
    Delivery,
    /// Snapshots of the embedded desktop and of real programs.
    Snapshot,
    /// The Linux back end by itself: against pyatspi, a picture, memory.
    Executor,
}

impl Part {
    /// Its name in `maka-bench`; the decision is a bench of its own.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Decision => None,
            Self::Footprint => Some("footprint"),
            Self::Dispatch => Some("dispatch"),
            Self::Load => Some("load"),
            Self::Recovery => Some("recovery"),
            Self::Delivery => Some("delivery"),
            Self::Snapshot => Some("snapshot"),
            Self::Executor => Some("executor"),
        }
    }
}

/// # Errors
/// When a build fails or a measurement cannot be made.
pub(crate) fn bench(arguments: &Arguments) -> anyhow::Result<()> {
    build(
        Profile::Release,
        &[
            "maka-gateway",
            "maka-cu",
            "maka-desktop",
            "integration-tests",
        ],
    )?;
    let format: &[&str] = if arguments.json { &["--json"] } else { &[] };
    let parts = &arguments.parts;
    let words: Vec<_> = parts.iter().filter_map(|part| part.word()).collect();
    if parts.is_empty() || parts.contains(&Part::Decision) {
        decision(format)?;
    }
    if !parts.is_empty() && words.is_empty() {
        return Ok(());
    }
    run(Command::new(binary(Profile::Release, "maka-bench"))
        .args(format)
        .args(words)
        .current_dir(root()))
}

fn decision(format: &[&str]) -> anyhow::Result<()> {
    cargo(
        [
            "bench",
            "--locked",
            "--package",
            "maka-policy-host",
            "--bench",
            "decision",
            "--",
        ]
        .iter()
        .chain(format),
    )
}
