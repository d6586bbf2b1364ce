//! What can be asked for, and the help that says so.

use clap::{Args, Parser, Subcommand};

use crate::reference::Reference;
use crate::workbench::LoadOptions;

const EXIT_CODES: &str = "A policy is named by its file, or as prebuilt:maka-floor, prebuilt:allow-all or prebuilt:deny-all.

Exit codes: 0 passed, 1 a case failed, 2 bad input (a policy that is refused, a fixture with a mistake, a wrong flag),
3 coverage under the minimum.";

/// Look at, check, run, test and measure a policy, the way a gateway would judge with it.
#[derive(Debug, Parser)]
#[command(name = "maka-policy", version, after_help = EXIT_CODES)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print what a policy says about itself: rules, refusals with their sentences, settings with defaults, limits.
    Inspect(InspectArguments),
    /// Say whether a gateway would load a policy, and what to write instead where it would not.
    Check(CheckArguments),
}

/// What `inspect` takes.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// The policy.
    pub policy: Reference,
    /// Print one JSON object (maka.policy.inspect/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The policy.
    pub policy: Reference,
    /// Print one JSON object (maka.policy.check/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}
