//! The program itself, from flags to exit code.

mod bench;
mod bundle;
mod check;
mod conformance;
mod decision_log;
mod examples;
mod fixtures;
mod inspect;
mod project;
mod support;
