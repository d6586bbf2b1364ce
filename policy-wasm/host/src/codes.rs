//! The built-in codes: every reason for which this crate refuses, with its fixed sentence.

use maka_floor::Denial;
pub use maka_floor::denials::Retry;

use crate::id::DecisionId;

/// Which part of the machinery refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A rule of a policy.
    Rule,
    /// The facts could not be built, or changed meanwhile.
    Facts,
    /// A policy, the engine or the log failed.
    Engine,
    /// A person has to approve.
    Approval,
}

impl Class {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Facts => "facts",
            Self::Engine => "engine",
            Self::Approval => "approval",
        }
    }
}

/// What kind of answer a refusal is, for the table from refusals to gRPC statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The request cannot be turned into facts: an invalid argument.
    InvalidFacts,
    /// The facts are not those of now: a failed precondition, after a fresh snapshot.
    StaleFacts,
    /// No: permission denied.
    Denied,
    /// Not without a person: a failed precondition, after approval.
    ApprovalRequired,
    /// Not now: resource exhausted, after a pause.
    Overloaded,
}

macro_rules! host_codes {
    ($($variant:ident = $code:literal, $class:ident, $retry:ident, $kind:ident, $sentence:literal;)+) => {
        /// A reason of the host itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum HostCode { $(#[doc = $sentence] $variant),+ }

        impl HostCode {
            /// Every host code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            const fn row(self) -> (&'static str, Class, Retry, RefusalKind, &'static str) {
                match self {
                    $(Self::$variant => ($code, Class::$class, Retry::$retry, RefusalKind::$kind, $sentence)),+
                }
            }
        }
    };
}

host_codes! {
    PolicyAbsent = "policy_absent", Engine, Never, Denied, "No policy is active for this caller, so nothing is permitted. An operator has to load one.";
    FactsInvalid = "facts_invalid", Facts, Never, InvalidFacts, "The request cannot be judged because it is malformed. Correct it before sending it again.";
    FactsChanged = "facts_changed", Facts, AfterObserve, StaleFacts, "What the action is bound to changed while it was being judged. Take a new snapshot and act on that.";
    PolicyTrap = "policy_trap", Engine, Never, Denied, "A policy failed, so nothing is permitted. Repeating the call will not help; an operator has to look at the policy.";
    PolicyFuel = "policy_fuel", Engine, Never, Denied, "A policy used up its computing budget, so nothing is permitted. An operator has to look at the policy.";
    PolicyTimeout = "policy_timeout", Engine, Never, Denied, "A policy took too long, so nothing is permitted. An operator has to look at the policy.";
    PolicyMemory = "policy_memory", Engine, Never, Denied, "A policy asked for too much memory, so nothing is permitted. An operator has to look at the policy.";
    PolicyBusy = "policy_busy", Engine, AfterDelay, Overloaded, "Too many decisions are being made at once. Nothing was sent; try again after a pause.";
    PolicyBadOutput = "policy_bad_output", Engine, Never, Denied, "A policy gave an answer that is not in its contract, so nothing is permitted. An operator has to look at the policy.";
    PolicyInternal = "policy_internal", Engine, Never, Denied, "Judging the call failed inside the gateway, so nothing is permitted. An operator has to look at the gateway's log.";
    ObligationFailed = "obligation_failed", Engine, Never, Denied, "The policy allows this only under a condition that cannot be met here.";
    ObligationConflict = "obligation_conflict", Engine, Never, Denied, "Policies allow this only under conditions that contradict each other, so it cannot be done here.";
    AuditUnavailable = "audit_unavailable", Engine, Never, Denied, "The decision cannot be recorded, so nothing is permitted. An operator has to look at the decision log.";
    DuplicateAction = "duplicate_action", Rule, AfterObserve, StaleFacts, "This very action has used this snapshot already and is not repeated. Take a new snapshot to see what it did.";
    ApprovalUnavailable = "approval_unavailable", Approval, Never, Denied, "This needs a person's approval, and nobody is there to give it.";
    ApprovalRejected = "approval_rejected", Approval, Never, Denied, "A person was asked to approve this and said no. Do not ask again; report it to the user.";
    ApprovalsPending = "approvals_pending", Approval, AfterDelay, Overloaded, "This session has as many approvals open, or lately rejected, as it may. Wait until one is settled.";
    ExecutorUntrusted = "executor_untrusted", Engine, Never, Denied, "The executor broke its protocol. The answer is withheld, and an operator has to look at this session.";
}

/// A built-in code: one of the floor's, or one of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenyCode {
    /// A rule of the floor.
    Floor(Denial),
    /// The host itself.
    Host(HostCode),
}

impl DenyCode {
    /// Every built-in code.
    pub fn all() -> impl Iterator<Item = Self> {
        Denial::ALL
            .iter()
            .map(|denial| Self::Floor(*denial))
            .chain(HostCode::ALL.iter().map(|code| Self::Host(*code)))
    }

    /// The built-in code with this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::all().find(|code| code.as_str() == text)
    }

    /// The text of the code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Floor(denial) => denial.code(),
            Self::Host(code) => code.row().0,
        }
    }

    /// The fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Floor(denial) => denial.sentence(),
            Self::Host(code) => code.row().4,
        }
    }

    /// Which part refused.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::Floor(Denial::FactsTooLarge) => Class::Facts,
            Self::Floor(Denial::GlobalPointerApproval) => Class::Approval,
            Self::Floor(_) => Class::Rule,
            Self::Host(code) => code.row().1,
        }
    }

    /// When it makes sense to try again.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::Floor(denial) => denial.retry(),
            Self::Host(code) => code.row().2,
        }
    }

    /// What kind of answer it is.
    #[must_use]
    pub const fn kind(self) -> RefusalKind {
        match self {
            Self::Floor(denial) => kind_of(denial),
            Self::Host(code) => code.row().3,
        }
    }
}

impl From<Denial> for DenyCode {
    fn from(denial: Denial) -> Self {
        Self::Floor(denial)
    }
}

impl From<HostCode> for DenyCode {
    fn from(code: HostCode) -> Self {
        Self::Host(code)
    }
}

/// The binding codes are failed preconditions, whatever is not about time or place is a plain no.
const fn kind_of(denial: Denial) -> RefusalKind {
    match denial {
        Denial::AnchorMissing
        | Denial::SnapshotUnknown
        | Denial::SnapshotSpent
        | Denial::SnapshotSuperseded
        | Denial::SnapshotExpired
        | Denial::SnapshotEvicted
        | Denial::SnapshotOtherGeneration
        | Denial::SnapshotForeignSession
        | Denial::SnapshotNotOurs
        | Denial::TargetMismatch
        | Denial::WindowDigestMismatch
        | Denial::ElementUnknown
        | Denial::ElementDigestMismatch
        | Denial::ElementDisabled
        | Denial::ActionNotOffered => RefusalKind::StaleFacts,
        Denial::FactsTooLarge => RefusalKind::Overloaded,
        Denial::GlobalPointerApproval => RefusalKind::ApprovalRequired,
        Denial::ActionUnknown
        | Denial::SyntheticInputOff
        | Denial::TierPathMismatch
        | Denial::GlobalPointerForbidden
        | Denial::SecureField
        | Denial::CdpSmuggling
        | Denial::PageForeign
        | Denial::DestinationForbidden
        | Denial::OutcomeDishonest => RefusalKind::Denied,
    }
}

/// What a person is asked to approve, in the words of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The code of that policy.
    pub code: String,
    /// The fixed sentence of that code.
    pub sentence: String,
}

/// A refusal, as the caller gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A built-in code or one from the manifest of a policy.
    pub code: String,
    /// The fixed sentence of that code.
    pub sentence: String,
    /// Which part refused.
    pub class: Class,
    /// When it makes sense to try again.
    pub retry: Retry,
    /// What kind of answer it is.
    pub kind: RefusalKind,
    /// The id under which it was recorded.
    pub decision_id: DecisionId,
    /// The policy generation that decided; zero when none was active.
    pub generation: u64,
    /// What a person has to approve, one for each policy that asks; empty for every kind but
    /// [`RefusalKind::ApprovalRequired`].
    pub asks: Vec<Ask>,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Every code is spelled once, has a sentence of one safe line, and advice that fits its kind.
    #[test]
    fn the_table_is_consistent() {
        let mut seen = HashSet::new();
        for code in DenyCode::all() {
            assert!(seen.insert(code.as_str()), "{} twice", code.as_str());
            assert_eq!(DenyCode::parse(code.as_str()), Some(code));
            assert!(code.sentence().len() <= 200, "{}", code.as_str());
            assert!(
                code.sentence().bytes().all(|b| (0x20..0x7f).contains(&b)),
                "{}",
                code.as_str()
            );
            match code.kind() {
                RefusalKind::StaleFacts => {
                    assert_eq!(code.retry(), Retry::AfterObserve, "{}", code.as_str())
                }
                RefusalKind::ApprovalRequired => {
                    assert_eq!(code.retry(), Retry::AfterApproval, "{}", code.as_str())
                }
                RefusalKind::Overloaded => {
                    assert_eq!(code.retry(), Retry::AfterDelay, "{}", code.as_str())
                }
                RefusalKind::InvalidFacts | RefusalKind::Denied => {
                    assert_eq!(code.retry(), Retry::Never, "{}", code.as_str());
                }
            }
        }
    }
}
