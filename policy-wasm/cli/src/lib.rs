//! What the author of a policy does at a command line: look at a policy, check it, run it, test it, measure it.
//!
//! The crate owns how things are said to a person. It deliberately knows nothing of how a policy is judged: loading,
//! running, combining, fixtures and bundles are `maka-policy-host`'s, so that what an author sees is what the gateway
//! does. It forwards nothing and talks to no gateway.
//!
//! **Invariant:** a policy or a fixture that is not understood is never counted as passed.

pub mod advice;
pub mod bench;
pub mod build;
pub mod check;
pub mod command_line;
pub mod coverage;
pub mod decision_log;
pub mod error;
pub mod explain;
pub mod fixture;
pub mod inspect;
pub mod key;
pub mod mutate;
pub mod project;
pub mod reference;
pub mod replay;
pub mod report;
pub mod sign;
pub mod suite;
pub mod workbench;

use command_line::{Command, CommandLine, LogCommand};
use report::Report;

/// Carries out a command. Blocks for the time of a compilation or more.
#[must_use]
pub fn run(command_line: &CommandLine) -> Report {
    let result = match &command_line.command {
        Command::New(arguments) => project::run(arguments),
        Command::Build(arguments) => build::run(arguments),
        Command::Wrap(arguments) => build::wrap(arguments),
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Run(arguments) => explain::run(arguments),
        Command::Test(arguments) => suite::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Keygen(arguments) => sign::keygen(arguments),
        Command::Sign(arguments) => sign::sign(arguments),
        Command::Verify(arguments) => sign::verify(arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Log(LogCommand::Verify(arguments)) => decision_log::verify(arguments),
    };
    result.unwrap_or_else(|error| Report::bad_input(&error))
}
