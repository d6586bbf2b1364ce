//! Builds a policy: finds a compiler for `wasm32-unknown-unknown`, calls it, and makes a component of what it gives. A
//! project in another language makes its component itself, and gets its manifest here.
//!
//! It is used by `maka-policy build`, for the project of an author, and by `cargo xtask policy`, for the components that
//! are part of the product. It deliberately runs nothing that it built and judges no manifest: that is
//! `maka-policy-host`'s.
//!
//! **Invariant:** nothing leaks between this build and the one around it. The compiler is started without the variables
//! of the cargo that may run this program, and what it makes holds no folder of this machine.

pub mod compiler;
pub mod component;
pub mod error;
pub mod javascript;
mod process;
pub mod project;

pub use compiler::{Compiler, Job};
pub use error::BuildError;
pub use javascript::JavaScript;
pub use project::Project;
