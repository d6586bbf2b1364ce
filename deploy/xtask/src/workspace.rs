//! Where the workspace and its build results lie, and how cargo is called. Runs cargo; decides nothing else.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

/// Which of cargo's two stock profiles a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Optimised: what a person runs.
    Release,
    /// The profile of the tests; links nothing that `cargo xtask test` has not linked already.
    Dev,
}

impl Profile {
    /// `--debug` on a command line chooses [`Profile::Dev`].
    pub(crate) fn from_debug_flag(debug: bool) -> Self {
        if debug { Self::Dev } else { Self::Release }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dev => "debug",
        }
    }
}

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
        .to_owned()
}

/// The target directory: `CARGO_TARGET_DIR` when it is set, else `target` below the root.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(
        || root().join("target"),
        |folder| root().join(PathBuf::from(folder)),
    )
}

/// Where a binary of the workspace lies after [`build`].
pub(crate) fn binary(profile: Profile, name: &str) -> PathBuf {
    target_dir()
        .join(profile.folder())
        .join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// Builds packages, with cargo's own progress on the terminal.
///
/// # Errors
/// When cargo cannot be started or fails.
pub(crate) fn build(profile: Profile, packages: &[&str]) -> anyhow::Result<()> {
    match profile {
        Profile::Release => {
            let mut arguments = vec!["build", "--locked", "--release"];
            for package in packages {
                arguments.extend(["--package", package]);
            }
            cargo(arguments)
        }
        Profile::Dev => build_for_tests(),
    }
}

/// Builds all that the tests need, their own programs included. Everything of the dev profile is built by this one
/// selection: another one would unify features differently and compile wasmtime a second time.
///
/// # Errors
/// When cargo cannot be started or fails.
pub(crate) fn build_for_tests() -> anyhow::Result<()> {
    cargo(["build", "--locked", "--workspace", "--bins", "--tests"])
}

/// Runs cargo in the root folder and waits for it.
///
/// # Errors
/// When cargo cannot be started or fails.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> anyhow::Result<()> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(program).args(arguments).current_dir(root()))
}

/// Runs a command and waits for it.
///
/// # Errors
/// When it cannot be started or does not succeed; the text holds the command line.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
