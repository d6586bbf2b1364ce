//! `maka-cu`, the computer-use executor: `maka.cu/2` over stdin and stdout, one desktop behind it.
//!
//! The binary is a thin shell around this library. Nothing else links it: the gateway and this crate meet only over the
//! child's pipes.

pub mod deadline;

pub mod backend;
