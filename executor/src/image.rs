//! Pictures on disk: encoding, naming, budget and deletion.

pub mod encode;
pub mod store;
