//! What a policy answers, as plain Rust types.

/// A condition on an allow. It can only narrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obligation {
    /// A kind of the host's closed table.
    pub kind: String,
    /// Its argument, empty where the kind takes none.
    pub arg: String,
}

/// The answer of an admit hook. There is no arm for "no opinion".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead, under these conditions.
    Allow(Vec<Obligation>),
    /// No, for the reason with this code.
    Deny(String),
    /// Only with a person's approval, for the reason with this code.
    RequireApproval(String),
}

/// An answer with the rules that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub decision: Decision,
    /// Indexes into the rule table, in firing order. A refusal names the one rule that refused; an allow names every
    /// rule that applied and held.
    pub rules: Vec<u16>,
}

/// The answer of the review hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The caller may have it, under these conditions.
    Release(Vec<Obligation>),
    /// The caller learns that it was executed, and nothing else.
    Withhold(String),
    /// As withheld, and the session takes no further action until an operator clears it.
    Quarantine(String),
}

/// A review with the rules that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewVerdict {
    /// The answer.
    pub disposition: Disposition,
    /// As in [`Verdict`].
    pub rules: Vec<u16>,
}
