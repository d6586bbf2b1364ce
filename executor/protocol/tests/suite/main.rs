//! The protocol's laws, matrices and fixtures, against the public interface.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test: its helpers may fail loudly too"
)]

mod answers;
mod combinations;
mod fixtures;
mod generic;
mod laws;
mod lines;
mod matrix;
mod params;
mod samples;
mod sets;
mod strategies;
