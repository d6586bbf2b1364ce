//! `maka.cu/2`: the wire contract between a host and a computer-use executor, for both ends.
//!
//! Owns every type that crosses the pipe, one strict reader and one writer for each, the line codec, the closed sets, the
//! key chords and the digest form. It does no I/O, knows no runtime, no policy and no platform. The executor reads
//! [`params`] and writes [`results`]; the host writes params and reads results; both sides of a type sit in one file.
//!
//! # Invariants
//! - A reader never invents a value: a missing, mistyped or out-of-set field is an error that names the field and never
//!   repeats what was there.
//! - Nothing absent is written as `null`.
//! - Application text is held as [`text::AppText`], which no log line can show by accident.
//! - No input can panic a reader: nesting is bounded by the JSON parser (128 levels), lines by [`codec::LineCodec`].
//!
//! # Example
//! ```
//! use maka_cu_protocol::{json::Reason, params::ObserveParams, rpc::Incoming};
//!
//! let line = br#"{"jsonrpc":"2.0","id":7,"method":"observe","params":{"session":"s-1","target":{"kind":"app"}}}"#;
//! let Incoming::Request(request) = Incoming::parse(line) else { panic!("it is a request") };
//! let error = ObserveParams::from_value(&request.params).unwrap_err();
//! assert_eq!((error.field(), error.reason()), ("target.app", Reason::Missing));
//! ```

// A wire crate: a number that silently changes on its way is a wrong click or a wrong process.
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

pub mod json;

pub mod domain;
pub mod method;
pub mod sets;

pub mod geometry;
pub mod ids;
pub mod text;

pub mod chord;
pub mod keys;
pub mod roles;

pub mod codec;
pub mod rpc;

pub mod action;
mod wire;

pub mod handshake;
pub mod params;

pub mod difference;
pub mod digest;
pub mod element;
pub mod image;
pub mod menu;
pub mod snapshot;

pub mod generic;
pub mod refusal;
pub mod results;
