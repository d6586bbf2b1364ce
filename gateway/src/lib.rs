//! The gateway: gRPC in, judged actions out.
//!
//! A call enters at [`api`], which knows who calls and what the message says; [`session`] owns what was seen and
//! in which order things happen; `policy` turns that into facts; `maka-policy-host` judges them and hands out the
//! permit without which [`forward`], the only owner of the executor, sends nothing. What happens on the way is told to
//! [`events`], which decides nothing. [`serve`] ties them together.
//!
//! `api` calls `session`; `session` calls `policy` and `forward`; those two know nothing of gRPC, and of each
//! other only permits.

pub mod api;
pub mod principal;

pub mod approval;
pub mod error;
pub mod events;
pub mod session;

pub mod forward;
mod policy;

pub mod plane;

pub mod captures;
pub mod config;
pub mod decisions;
pub mod doctor;
pub mod health;
pub mod listen;
pub mod probe;
pub mod serve;
pub mod state_dir;
pub mod telemetry;
