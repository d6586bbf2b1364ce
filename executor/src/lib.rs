//! `maka-cu`, the computer-use executor: `maka.cu/2` over stdin and stdout, one desktop behind it.
//!
//! The binary is a thin shell around this library. Nothing else links it: the gateway and this crate meet only over the
//! child's pipes.
//!
//! Reading order: [`server`] takes lines, [`call`] parses them, [`executor`] runs them with [`observe`], [`dispatch`] and [`generic`],
//! [`session`] and [`snapshot`] hold what was observed, [`backend`] is the desktop. [`cli`] and [`doctor`] show the same to
//! a person.
//!
//! # Invariants
//! - While a host is served, stdout carries protocol messages only; whatever a person should read goes to stderr.
//! - Application text is in the fields that the protocol names and nowhere else: not in errors, not in logs.
//! - Exactly one answer per request that was read, in every life phase.
//! - Every wait has a deadline, every queue a bound, every file an owner that deletes it.
#![deny(clippy::print_stdout)]

pub mod cli;
pub mod command_line;
pub mod doctor;
pub mod exit;
pub mod host;

pub mod server;

pub mod call;
pub mod executor;
pub mod limits;
pub mod reply;

pub mod dispatch;
pub mod generic;
pub mod launch;
pub mod lists;
pub mod observe;
pub mod screen;

pub mod image;
pub mod session;
pub mod snapshot;

pub mod backend;
pub mod deadline;

use command_line::{Command, CommandLine};
use exit::Exit;

/// Does what the command line asks for.
#[must_use]
pub fn run(command_line: CommandLine) -> Exit {
    let desktop = match &command_line.command {
        Command::Host(options) => &options.desktop,
        Command::Doctor(options) => &options.desktop,
        Command::ListApps(options) => &options.desktop,
        Command::Snapshot(options) => &options.desktop,
    };
    if let Err(misused) = desktop.check() {
        host::say(&misused);
        return Exit::Usage;
    }
    match command_line.command {
        Command::Host(options) => host::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::ListApps(options) => cli::list_apps::run(&options),
        Command::Snapshot(options) => cli::snapshot::run(&options),
    }
}
