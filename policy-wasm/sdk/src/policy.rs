//! What a policy implements.
//!
//! There is one trait for every hook, because a hook that is declared and not written should not compile: a default
//! that allows would be an allow which nobody wrote.

use crate::contract::{Cdp, Dispatch, Review, ReviewVerdict, Verdict};
use crate::settings::Misfit;

/// A policy.
pub trait Policy {
    /// What the operator can set. [`NoSettings`](crate::settings::NoSettings) where there is nothing to set.
    ///
    /// Write defaults into both the type (`#[serde(default)]`) and the schema of the manifest: the schema is what an
    /// operator reads, and does not fill anything in.
    type Settings: serde::de::DeserializeOwned;

    /// Checks what a schema cannot say, once per load. A policy that is never asked with these settings refuses them
    /// here.
    ///
    /// # Errors
    ///
    /// The first place that does not make sense.
    fn check(_settings: &Self::Settings) -> Result<(), Misfit> {
        Ok(())
    }
}

/// A policy that is asked before every executor call that a caller chose, reads included.
pub trait AdmitDispatch: Policy {
    /// Judges the call.
    fn admit_dispatch(settings: &Self::Settings, facts: &Dispatch) -> Verdict;
}

/// A policy that is asked before every browser command, and before the inner command of a wrapper.
pub trait AdmitCdp: Policy {
    /// Judges the command.
    fn admit_cdp(settings: &Self::Settings, facts: &Cdp) -> Verdict;
}

/// A policy that is asked before an answer or a browser event is released.
pub trait ReviewResult: Policy {
    /// Judges the answer.
    fn review_result(settings: &Self::Settings, facts: &Review) -> ReviewVerdict;
}
