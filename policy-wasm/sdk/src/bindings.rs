//! The types of the contract, generated from `wit/policy.wit`, and nothing else.

#![allow(missing_docs, clippy::all, clippy::pedantic)] // generated

wit_bindgen::generate!({
    path: "../wit",
    world: "policy",
    pub_export_macro: true,
    export_macro_name: "__export_policy",
    additional_derives: [PartialEq],
});
