//! The X11 back end on a real desktop with real programs.
//!
//! The back end takes the desktop of its environment, as the executor does, so each test starts a private desktop and runs
//! itself again inside it. What every toolkit does with every action is in the tests of `matrix`; here is what takes more than
//! one action, or a desktop of another kind.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of a test fail the test")]

mod calculator;
mod held;
mod hung;
mod launches;
mod lists;
mod person;
mod pictures;
mod refusals;
mod rig;
mod routes;
mod second;
mod stage;
mod trees;
mod typing;
mod watch;
