//! The end-to-end suite: one module per user-visible behaviour, all against real processes and sockets.

mod audit;
mod canary;
mod cancel;
mod chaos;
mod clients;
mod deny_all;
mod events;
mod faults;
mod health;
mod held;
mod idempotency;
mod linux_desktop;
mod listeners;
mod malformed;
mod operator;
mod outcomes;
mod pictures;
mod points;
mod refusals;
mod roles;
mod serve;
mod shutdown;
mod startup;
mod states;
mod supervisor;
mod walk;
