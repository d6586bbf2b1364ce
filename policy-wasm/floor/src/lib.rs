//! The floor policy: the rules that no configuration can remove.
//!
//! It owns four questions. Does a demanded path belong to its tier? May this caller move the global pointer? Is the
//! action bound to something that was really seen, that is still the same, and that nobody has acted on yet? Does a
//! browser command stay with pages of its own session? It deliberately knows nothing of rates, applications, schedules
//! or content: those are for policies that an operator adds, and an added policy can only narrow what the floor allows.
//!
//! The rules are pure functions over [`facts`], the plain form of the records in `wit/policy.wit`. They are compiled
//! twice from this one source: natively, for tests that compare, and as the component that the gateway really runs.
//! The crate has no dependency, so that both builds are the same code.
//!
//! **Invariant:** a fact that is missing, unknown or contradictory is a refusal, never an allow.

mod admit;
mod cdp;
pub mod denials;
pub mod facts;
pub mod manifest;
pub mod review;
pub mod rules;
pub mod settings;
pub mod verdict;

pub use admit::admit_dispatch;
pub use cdp::admit_cdp;
pub use denials::Denial;
pub use review::review_result;
pub use rules::Rule;
pub use settings::{GlobalPointer, Settings, SettingsError};
pub use verdict::{Decision, Disposition, Obligation, ReviewVerdict, Verdict};

/// The grant that lets a caller move the global pointer, where the handshake allows it at all.
pub const GRANT_GLOBAL_POINTER: &str = "global-pointer";

/// The grant that lets a caller write into a password field.
pub const GRANT_SECURE_FIELD: &str = "secure-field";
