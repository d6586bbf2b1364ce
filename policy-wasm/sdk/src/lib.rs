//! What the author of a policy in Rust writes against.
//!
//! A policy is three things: a `manifest.json` with its rules and refusals, a type that implements [`Policy`] and a trait
//! for every hook it wants ([`AdmitDispatch`], [`AdmitCdp`], [`ReviewResult`]), and one line that exports it:
//!
//! ```ignore
//! use maka_policy_sdk::prelude::*;
//!
//! struct NoLaunch;
//!
//! impl Policy for NoLaunch {
//!     type Settings = NoSettings;
//! }
//!
//! impl AdmitDispatch for NoLaunch {
//!     fn admit_dispatch(_: &NoSettings, facts: &Dispatch) -> Verdict {
//!         judge(|trail| {
//!             let launches = matches!(known(&facts.action)?, Known::Launch(_));
//!             trail.require(rule!("launch.none"), !launches, code!("no_launch"))
//!         })
//!     }
//! }
//!
//! policy!(NoLaunch: admit_dispatch);
//! ```
//!
//! The macros read the manifest while compiling: a rule or a code that it does not have, and a hook that it does not
//! declare, is a compile error.
//!
//! Rules are ordinary functions over ordinary values, so `cargo test` runs them on the author's machine; `testing` has
//! facts to begin with. The crate makes no decision of its own, with one exception: an action that is newer than the
//! contract is refused by [`facts::known`]. It has no clock, no files and no random numbers, because a policy has none.

#![deny(missing_docs)]

#[doc(hidden)]
pub mod bindings;
pub mod export;
pub mod facts;
pub mod manifest;
pub mod policy;
pub mod settings;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod verdict;

pub use bindings::exports::maka::policy::hooks as contract;
pub use policy::{AdmitCdp, AdmitDispatch, Policy, ReviewResult};

/// What a policy usually needs.
pub mod prelude {
    pub use crate::contract::{
        Action, Cdp, Dispatch, ElementRow, Head, Obligation, Path, Review, ReviewVerdict, Subject,
        Tier, UrlFact, Verdict,
    };
    pub use crate::facts::{Known, known, spelled};
    pub use crate::policy::{AdmitCdp, AdmitDispatch, Policy, ReviewResult};
    pub use crate::settings::{Misfit, NoSettings};
    pub use crate::verdict::{Refusal, ReviewTrail, Trail, judge, review};
    pub use crate::{code, policy, rule};
    pub use serde::Deserialize;
}
