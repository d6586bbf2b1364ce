//! Shared pieces of the end-to-end tests: binaries, gateway processes, clients, desktops.
//!
//! Nothing here links the gateway or wasmtime: the tests drive real processes, as users do.

pub mod binaries;
pub mod client;
#[cfg(target_os = "linux")]
pub mod desktop;
pub mod events;
pub mod fake;
pub mod gateway;
pub mod policy;
pub mod process;
pub mod raw;
pub mod seeded;
pub mod soak;
pub mod tools;
