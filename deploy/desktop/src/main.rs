//! `maka-desktop`: a private desktop from the command line.
//!
//! Exit status of `run`: the command's own; 128 + n when signal n ended it; 125 the desktop did not start or was lost;
//! 126 the command cannot be executed; 127 it was not found. Of `start`: 0 after an asked-for end, 125 otherwise. 2 is
//! a usage error in both.

#[cfg(target_os = "linux")]
mod command_line;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    command_line::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    // There is nothing to start on another platform, and no one to read an explanation but the caller's status check.
    std::process::ExitCode::from(125)
}
