//! `cargo xtask demo`: builds what the tour drives, then runs it (`tests/demo`).

use std::process::Command;

use crate::workspace::{Profile, binary, build, root, run};

/// Flags of `cargo xtask demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Use the unoptimised build of the tests.
    #[arg(long)]
    debug: bool,
}

/// # Errors
/// When the build fails, or a step of the tour did not end as it promises.
pub(crate) fn demo(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = Profile::from_debug_flag(arguments.debug);
    build(profile, &["maka-gateway", "maka-cu", "integration-tests"])?;
    run(Command::new(binary(profile, "maka-demo")).current_dir(root()))
}
