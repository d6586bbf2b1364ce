//! The generated side of the contract: nothing here is written by hand, and only [`convert`](crate::convert),
//! [`module`](crate::module), [`engine`](crate::engine) and [`capture`](crate::capture) look at it.

wasmtime::component::bindgen!({
    path: "../wit",
    world: "policy",
    // The form of facts in captures, so that they too have one source.
    additional_derives: [serde::Serialize, serde::Deserialize],
});
