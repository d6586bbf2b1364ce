//! `cargo xtask bench`: the numbers of the product beside what they are measured against, all in one run.

use std::process::Command;

use crate::workspace::{Profile, binary, build, cargo, root, run};

/// Flags of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Machine-readable lines.
    #[arg(long)]
    json: bool,
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
    )?;
    run(Command::new(binary(Profile::Release, "maka-bench"))
        .args(format)
        .current_dir(root()))
}
