//! Rebuilds the policy components that are committed in `policy-wasm/prebuilt`, or checks that they are what the source
//! gives.
//!
//! The encoder that makes a component of a core module takes longer to compile than the rest of this program, and nobody
//! who only wants to serve or test needs it. It is therefore behind the feature `policy`, and the command starts itself
//! again with that feature.

#[cfg(feature = "policy")]
mod rebuild;

/// What `cargo xtask policy` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail when a committed component is not what the source gives.
    #[arg(long)]
    check: bool,
}

/// Rebuilds or checks.
///
/// # Errors
/// When there is no compiler for WebAssembly, when the source does not compile, and when a check fails.
#[cfg(feature = "policy")]
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.check {
        rebuild::check()
    } else {
        rebuild::write()
    }
}

/// Starts this program again with the encoder.
///
/// # Errors
/// When the command fails.
#[cfg(not(feature = "policy"))]
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut words = vec![
        "run",
        "--quiet",
        "--locked",
        "--package",
        "xtask",
        "--features",
        "policy",
        "--",
        "policy",
    ];
    if arguments.check {
        words.push("--check");
    }
    crate::workspace::cargo(words)
}
