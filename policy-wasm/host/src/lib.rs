//! Judges actions with sandboxed WebAssembly policies and hands out the permits without which nothing is forwarded.
//!
//! The crate owns the wasmtime engine and its limits, loading and checking policy components, running them, combining
//! their verdicts, the decision log, and [`permit::Permit`]. It deliberately knows nothing of gRPC, of the executor's
//! wire or of a browser: it takes facts in the contract's own types ([`facts`]) and a call it does not look into
//! ([`call::ExecutorCall`]).
//!
//! Everything here is synchronous. A judgement takes tens of microseconds and never longer than its budget
//! ([`limits::Limits::total_budget`]), so that it can run on the task that owns a session; loading a policy compiles it
//! and belongs on a blocking thread.
//!
//! **Invariants.**
//! - Every fault of a policy, of the engine and of the log is a refusal, and no switch turns one into an allow.
//! - A permit exists only after the combined verdict is an allow *and* its record is in the log.
//! - What is forwarded is the canonical text of what was judged.
//! - The floor is the first module of every set and always enforces.

mod bindings;
mod convert;
mod measure;
#[cfg(test)]
mod tests;

pub mod bundle;
pub mod call;
pub mod canonical;
pub mod capture;
pub mod codes;
pub mod combiner;
pub mod digest;
pub mod engine;
pub mod facts;
pub mod fingerprint;
pub mod fixture;
pub mod id;
pub mod judge;
pub mod key;
pub mod limits;
pub mod log;
pub mod manifest;
pub mod metrics;
pub mod module;
pub mod obligation;
pub mod outcome;
pub mod permit;
pub mod prebuilt;
pub mod proof;
pub mod schema;
pub mod set;
pub mod trial;
