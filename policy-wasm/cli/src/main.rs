//! Flags, output, exit code. Everything else is in the library.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use maka_policy::command_line::CommandLine;
use maka_policy::report::Exit;

fn main() -> ExitCode {
    let exit = match CommandLine::try_parse() {
        Ok(command_line) => {
            let report = maka_policy::run(&command_line);
            let written = io::stdout()
                .write_all(report.out.as_bytes())
                .and_then(|()| io::stdout().flush());
            // Nothing can be done when even the reason has nowhere to go.
            drop(io::stderr().write_all(report.err.as_bytes()));
            match written {
                Ok(()) => report.exit,
                // A reader that went away has not seen that everything passed.
                Err(_) => Exit::BadInput,
            }
        }
        Err(error) => {
            drop(error.print());
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Passed,
                _ => Exit::BadInput,
            }
        }
    };
    ExitCode::from(exit.status())
}
