//! `cargo xtask bench`: the numbers of design §8 that this build can show, each beside what it is measured
//! against, all in one run on one machine. Ratios come first; absolute times are of this machine only.
//!
//! The decision of the floor policy alone is measured by the bench `decision` of `maka-policy-host`, which the
//! same command runs before this program.
//!
//! ```text
//! maka-bench [--json] [footprint] [dispatch] [load] [recovery] [delivery] [snapshot] [executor]
//! ```

#![expect(clippy::print_stdout, reason = "the numbers are the output")]

mod delivery;
mod dispatch;
mod distribution;
mod executor;
mod footprint;
mod load;
mod recovery;
mod snapshot;

use std::process::ExitCode;

use distribution::Report;

/// Wrong arguments (sysexits).
const EX_USAGE: u8 = 64;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let (flags, parts): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with('-'));
    let mut report = Report::new(flags.iter().any(|flag| *flag == "--json"));
    let known = [
        "footprint",
        "dispatch",
        "load",
        "recovery",
        "delivery",
        "snapshot",
        "executor",
    ];
    if let Some(unknown) = parts.iter().find(|part| !known.contains(&part.as_str())) {
        println!("no part of the bench is called {unknown}; there are {known:?}");
        return ExitCode::from(EX_USAGE);
    }
    let is_wanted = |part: &str| parts.is_empty() || parts.iter().any(|word| *word == part);
    if is_wanted("footprint") {
        footprint::cold_start_and_memory(&mut report).await;
    }
    if is_wanted("dispatch") {
        dispatch::against_its_parts(&mut report).await;
    }
    if is_wanted("load") {
        load::of_many_sessions(&mut report).await;
    }
    if is_wanted("recovery") {
        recovery::after_a_kill(&mut report).await;
        recovery::of_a_cancel(&mut report).await;
    }
    if is_wanted("delivery") {
        delivery::of_a_large_tree(&mut report).await;
        delivery::of_a_large_picture(&mut report).await;
    }
    if is_wanted("snapshot") {
        snapshot::embedded(&mut report).await;
        snapshot::real_programs(&mut report).await;
    }
    if is_wanted("executor") {
        executor::on_a_linux_desktop(&mut report).await;
    }
    ExitCode::SUCCESS
}
