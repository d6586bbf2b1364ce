//! The contract suite for back ends: the real binary over its real pipes, walked along spec §12.5.
//!
//! Every test starts its own process. What a back end has to do with its desktop is described by `desktop.toml`; the tests
//! in `any_desktop` need nothing but an application with a text field and a button and run on every back end.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod actions;
mod any_desktop;
mod bindings;
mod client;
mod codes;
mod desk;
mod elements;
mod generic;
mod handshake;
mod images;
mod keys;
mod launches;
mod observing;
mod points;
#[cfg(target_os = "linux")]
mod real_forms;
mod requests;
mod shutdown;
mod snapshots;
mod terminal;
#[cfg(target_os = "linux")]
mod wayland;
