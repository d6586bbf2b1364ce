//! The scriptable executor of the end-to-end tests.
//!
//! Speaks `maka.cu/2` through the real protocol crate and misbehaves on demand. Without a script it is a small, truthful executor:
//! one application (`org.example.Notes`, pid 5021) with one window (318) that has a text field, a password field, a button and a
//! status line; writing the field and pressing the button change the tree, its digests and the pixels of its PNG images.
//!
//! ```text
//! fake-executor host [--script FILE] [--wire-log FILE]
//! ```
//!
//! - The **wire log** (`--wire-log`, or `log` in the script) is the witness of what arrived: one JSON object per line, appended before
//!   anything is answered. A message is logged as it came; whatever else happens is
//!   `{"event":"start"|"signal"|"end_of_input"|"helper"|"no_message"|"fault"|"reply","process":n,"detail":…}`, where `process` counts the executors
//!   that shared the log and `start` says what the process inherited.
//! - The **script** is one JSON object; its keys are the fields of [`script::Script`], its rules match by method, occurrence,
//!   process and session, and their steps are [`script::Step`] in snake case, for example
//!   `{"rules":[{"method":"observe","nth":2,"steps":["wait_for_cancel",{"refuse":"aborted"}]}]}`.
//! - A **storm** (`"storm":{"seed":7,"permille":200,"until":"FILE"}`) draws a [`fault::Fault`] or none for each request that no rule
//!   matches, from a seed, the number of the process and the number of the request. `fault` in the log names what was drawn, before
//!   it strikes; `reply` says how each dispatch and launch was answered, before the answer is written.
//! - Waiting is by event: `wait_for_file` and `touch` let a test and its executor take turns without a clock.
//!
//! Exit statuses: 0 at SIGTERM or the end of stdin, 64 for wrong arguments, 78 after a version mismatch.

mod answers;
mod executor;
mod fault;
mod picture;
mod process;
mod script;
mod storm;
mod wire_log;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use executor::Executor;
use script::Script;
use wire_log::WireLog;

/// Wrong arguments (EX_USAGE).
const EX_USAGE: u8 = 64;

fn main() -> ExitCode {
    let signals = process::hold_sigterm();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == [process::HELPER] {
        process::wait_for_ever();
    }
    let Some((script, log)) = configuration(&args) else {
        return ExitCode::from(EX_USAGE);
    };
    log.event("start", process::inheritance());
    let executor = Executor::new(script, log);
    process::watch_sigterm(signals, executor.clone());
    executor.run();
    ExitCode::SUCCESS
}

/// Script and log, or nothing when the arguments are wrong.
fn configuration(args: &[String]) -> Option<(Script, WireLog)> {
    let (host, rest) = args.split_first()?;
    if host != "host" {
        return None;
    }
    let (mut script, mut log) = (Script::default(), None);
    for pair in rest.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--script" => {
                let text = std::fs::read_to_string(value).expect("the script can be read");
                script = serde_json::from_str(&text).expect("the script is a valid script");
            }
            "--wire-log" => log = Some(PathBuf::from(value)),
            _ => return None,
        }
    }
    let log = WireLog::open(log.as_deref().or(script.log.as_deref()))
        .expect("the wire log can be opened");
    Some((script, log))
}
