//! `cargo xtask javascript`: a policy in JavaScript from an empty folder to its fixtures, as an author makes one; and, when
//! asked, the conformance fixtures against the reference policy in JavaScript.
//!
//! It needs npm and its registry, which the tests do without. The component carries an engine, so its limits are given on
//! the command line, as the operator of a gateway would configure them.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::bail;

use crate::workspace::{Profile, binary, build, root, run, target_dir};

/// What `cargo xtask javascript` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Use the programs that the tests use, instead of optimised ones.
    #[arg(long)]
    debug: bool,
    /// Build the reference policy, too, and run the conformance fixtures.
    #[arg(long)]
    conformance: bool,
}

/// The limits that `maka-policy new` prints for a project in JavaScript.
const LIMITS: [&str; 6] = [
    "--max-module-mib",
    "16",
    "--max-memory-mib",
    "32",
    "--max-fuel",
    "100000000",
];

/// The most fuel that there is: to notice an endless recursion takes the engine more than any honest call.
const CONFORMANCE_LIMITS: [&str; 6] = [
    "--max-module-mib",
    "16",
    "--max-memory-mib",
    "32",
    "--max-fuel",
    "200000000",
];

/// Makes, builds and tests.
///
/// # Errors
/// When there is no npm and none can be installed, and when a command fails.
pub(crate) fn javascript(arguments: &Arguments) -> anyhow::Result<()> {
    ensure_npm()?;
    let profile = Profile::from_debug_flag(arguments.debug);
    build(profile, &["maka-policy"])?;
    let folder = target_dir().join("javascript");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;

    let began = Instant::now();
    let project = folder.join("my-policy");
    policy(
        profile,
        &folder,
        &["new", "my-policy", "--language", "javascript"],
    )?;
    policy(profile, &project, &["build"])?;
    println!("javascript: built after {} s", began.elapsed().as_secs());
    let test = ["test", "my-policy.wasm", "fixtures"];
    let strict = ["--coverage", "--min", "100", "--mutate"];
    policy(profile, &project, &[&test[..], &strict, &LIMITS].concat())?;
    println!("javascript: tested after {} s", began.elapsed().as_secs());

    if arguments.conformance {
        let project = root().join("policy-wasm/conformance/javascript");
        policy(profile, &project, &["build"])?;
        let test = ["test", "conformance.wasm", "../fixtures"];
        let strict = ["--coverage", "--min", "100"];
        let words = [&test[..], &strict, &CONFORMANCE_LIMITS].concat();
        policy(profile, &project, &words)?;
        println!("javascript: conforms after {} s", began.elapsed().as_secs());
    }
    Ok(())
}

fn policy(profile: Profile, folder: &Path, words: &[&str]) -> anyhow::Result<()> {
    run(Command::new(binary(profile, "maka-policy"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null()))
}

/// Sees to it that there is npm: installs it where that is possible, else says what to install.
fn ensure_npm() -> anyhow::Result<()> {
    let starts = |program: &str| {
        Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if starts("npm") {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() || !starts("apt-get") {
        bail!(
            "a policy in JavaScript needs npm, which is not installed; install Node.js 20 or newer with npm"
        );
    }
    run(Command::new("apt-get")
        .args(["update", "-q"])
        .stdout(Stdio::null()))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(["nodejs", "npm"])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}
