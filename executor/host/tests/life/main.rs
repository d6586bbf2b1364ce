//! The service through its public interface, over children scripted in the shell: the state machine and the start table row by row,
//! what is refused unsent, races, and the examples.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test: its helpers may fail loudly too"
)]

mod child;
mod disposal;
mod examples;
mod methods;
mod races;
mod starts;
mod states;
mod trace;
