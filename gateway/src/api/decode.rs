//! From messages to what a session is asked: every field parsed, bounded and named when it is bad.
//!
//! A decoder never stops at the first bad field; it notes each with its proto path and the executor stays
//! untouched. What the policy has to judge, such as a missing anchor, is no bad field: it is passed on as absent.

pub(crate) mod action;
pub(crate) mod dispatch;
pub(crate) mod launch;
pub(crate) mod observe;
pub(crate) mod policies;
pub(crate) mod scalar;
pub(crate) mod violations;

#[cfg(test)]
mod tests;
