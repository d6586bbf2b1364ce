//! Who calls, as the authenticated connection says: never anything from a request body.

use std::fmt;
use std::sync::Arc;

/// The configured name of a principal. Cheap to clone.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PrincipalName(Arc<str>);

impl PrincipalName {
    /// Wraps a configured name.
    #[must_use]
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(name.as_ref().into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Which sessions a caller may list and end. Every other call works on the caller's own sessions alone.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reach {
    /// Its own: role `agent`.
    Own,
    /// May see every session but end none of others: role `viewer`.
    SeeAll,
    /// May see and end every session: role `operator`.
    All,
}

/// An authenticated principal with what its role and configuration give it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub principal: PrincipalName,
    /// Name of the policy set that judges this principal (the fact `tenant`).
    pub policy_set: Arc<str>,
    /// Authority the principal was configured with, for example `global-pointer`; `admin` for role `operator`.
    pub grants: Arc<[String]>,
    /// Which sessions it may list and end.
    pub reach: Reach,
}
