//! `cargo xtask bench`: the numbers of design §8 that this build can show, each beside what it is measured
//! against, all in one run on one machine. Ratios come first; absolute times are of this machine only.
//!
//! The decision of the floor policy alone is measured by the bench `decision` of `maka-policy-host`, which the
//! same command runs before this program.

#![expect(clippy::print_stdout, reason = "the numbers are the output")]

mod dispatch;
mod distribution;
mod footprint;
mod snapshot;

use std::process::ExitCode;

use distribution::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let mut report = Report::new(std::env::args().any(|argument| argument == "--json"));
    footprint::cold_start_and_memory(&mut report).await;
    dispatch::against_its_parts(&mut report).await;
    snapshot::embedded(&mut report).await;
    snapshot::real_programs(&mut report).await;
    ExitCode::SUCCESS
}
