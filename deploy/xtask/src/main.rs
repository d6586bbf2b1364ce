//! The project's commands: `cargo xtask serve` and `cargo xtask test` are the two of the README.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands talk to a person on a terminal"
)]

mod bench;
mod demo;
mod dev_config;
mod javascript;
mod packages;
mod policy;
mod serve;
mod soak;
mod test;
mod tools;
mod tutorial;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build, run and check maka-gateway.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the gateway and the executor, and serve on 127.0.0.1:50051 until Ctrl-C.
    Serve(serve::Arguments),
    /// Install what the tests need, then run all of them. Words after `--` filter by name.
    Test {
        /// Passed to every test binary.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// A tour in ten seconds: allow, deny, stale, duplicate, cancel, crash and recovery.
    Demo(demo::Arguments),
    /// Print the product's numbers beside what they are measured against.
    Bench(bench::Arguments),
    /// The long form of the tests: storms, kills, races, leaks, fuzzing.
    Soak(soak::Arguments),
    /// Rebuild the shipped policy components from source.
    Policy(policy::Arguments),
    /// Walk the tutorial of the policies word for word, from an empty folder to a denial in a gateway.
    Tutorial(tutorial::Arguments),
    /// Make, build and test a policy in JavaScript. Needs npm and its registry.
    Javascript(javascript::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Test { arguments } => test::test(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Demo(arguments) => demo::demo(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Bench(arguments) => bench::bench(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Soak(arguments) => soak::soak(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Policy(arguments) => policy::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Javascript(arguments) => {
            javascript::javascript(&arguments).map(|()| ExitCode::SUCCESS)
        }
        Command::Tutorial(arguments) => tutorial::tutorial(&arguments).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
