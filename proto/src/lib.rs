//! The public gRPC contract, `maka.gateway.v1`: messages, clients, servers and the descriptor set.
//!
//! Generated from `maka/gateway/v1/*.proto` at build time; the comments there are the documentation.
//! This crate holds nothing else, apart from `Debug` for messages that carry application text or typed
//! text: they print no text, so that no log line can.

pub mod redact;

/// Messages, clients and servers of the package `maka.gateway.v1`.
#[expect(
    missing_docs,
    clippy::all,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub mod v1 {
    tonic::include_proto!("maka.gateway.v1");
}

/// The encoded `FileDescriptorSet` of the package, for server reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/maka_gateway_v1.bin"));
