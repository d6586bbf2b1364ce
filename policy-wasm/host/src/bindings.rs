//! The generated side of the contract: nothing here is written by hand, and only [`convert`](crate::convert),
//! [`module`](crate::module) and [`engine`](crate::engine) look at it.

wasmtime::component::bindgen!({ path: "../wit", world: "policy" });
