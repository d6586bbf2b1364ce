//! `cargo xtask test`: the second README command. Installs what the real tests need, builds the binaries that
//! the tests start, then runs everything.

use std::{env, process::Command};

use crate::{
    packages, tools,
    workspace::{build_for_tests, root, run},
};

/// Arguments after `--` go to every test binary, for example a name to filter by.
///
/// # Errors
/// When something cannot be installed or built, or a test fails.
pub(crate) fn test(arguments: &[String]) -> anyhow::Result<()> {
    packages::ensure()?;
    tools::ensure()?;
    // The tests start these as processes of their own, so they have to be there first.
    build_for_tests()?;
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(program)
        .args(["test", "--locked", "--workspace", "--"])
        .args(arguments)
        .env("MAKA_TEST_TOOLS", tools::folder())
        .current_dir(root()))
}
