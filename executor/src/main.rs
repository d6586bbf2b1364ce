//! Flags, stderr logging, exit code. Everything else is in the library.
#![deny(clippy::print_stdout)]

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use maka_cu::command_line::CommandLine;
use maka_cu::exit::Exit;

fn main() -> ExitCode {
    let exit = match CommandLine::try_parse() {
        Ok(command_line) => maka_cu::run(command_line),
        Err(error) => {
            // Nothing can be done when even the usage text has nowhere to go.
            drop(error.print());
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
                _ => Exit::Usage,
            }
        }
    };
    ExitCode::from(exit.status())
}
