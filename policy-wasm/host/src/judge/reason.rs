//! Why a call is refused: a built-in code, or one of a policy with its own sentence.

use crate::codes::{Ask, Class, DenyCode, HostCode, Refusal, RefusalKind, Retry};
use crate::id::DecisionId;
use crate::module::Module;

/// Why a call is refused.
pub(super) struct Reason {
    code: DenyCodeOrOwn,
    kind: RefusalKind,
    /// What a person would be asked, one for each policy that asks.
    asks: Vec<Ask>,
}

/// A built-in code, or one of a policy with its own sentence.
pub(super) enum DenyCodeOrOwn {
    BuiltIn(DenyCode),
    Own { module: Module, code: String },
}

impl From<DenyCode> for Reason {
    fn from(code: DenyCode) -> Self {
        Self {
            kind: code.kind(),
            code: DenyCodeOrOwn::BuiltIn(code),
            asks: Vec::new(),
        }
    }
}

impl From<HostCode> for Reason {
    fn from(code: HostCode) -> Self {
        DenyCode::Host(code).into()
    }
}

impl Reason {
    pub(super) fn code(&self) -> &str {
        match &self.code {
            DenyCodeOrOwn::BuiltIn(code) => code.as_str(),
            DenyCodeOrOwn::Own { code, .. } => code,
        }
    }

    /// The reason a policy gave: its own row if it has one, so that its sentence is used, else the built-in one.
    pub(super) fn given_by(module: &Module, code: &str) -> Self {
        match DenyCode::parse(code) {
            Some(built_in) => built_in.into(),
            None => Self {
                kind: RefusalKind::Denied,
                code: DenyCodeOrOwn::Own {
                    module: module.clone(),
                    code: code.to_owned(),
                },
                asks: Vec::new(),
            },
        }
    }

    /// That these policies want a person to approve, each with its code. The first one gives the code of the refusal.
    pub(super) fn asking<'a>(policies: impl Iterator<Item = (&'a Module, &'a str)>) -> Self {
        let mut reasons = policies.map(|(module, code)| Self::given_by(module, code));
        let Some(first) = reasons.next() else {
            return HostCode::PolicyInternal.into();
        };
        let mut asks = vec![first.ask()];
        asks.extend(reasons.map(|reason| reason.ask()));
        Self {
            kind: RefusalKind::ApprovalRequired,
            asks,
            ..first
        }
    }

    fn ask(&self) -> Ask {
        let (code, sentence, ..) = self.words();
        Ask { code, sentence }
    }

    fn words(&self) -> (String, String, Class, Retry) {
        let built_in = |code: DenyCode| {
            (
                code.as_str().to_owned(),
                code.sentence().to_owned(),
                code.class(),
                code.retry(),
            )
        };
        match &self.code {
            DenyCodeOrOwn::BuiltIn(code) => built_in(*code),
            DenyCodeOrOwn::Own { module, code } => match module.manifest().denial(code) {
                Some(row) => (
                    row.code.clone(),
                    row.sentence.clone(),
                    Class::Rule,
                    row.retry,
                ),
                // Codes are checked when the verdict is read, so this cannot be reached; refusing is right anyway.
                None => built_in(HostCode::PolicyBadOutput.into()),
            },
        }
    }

    pub(super) fn into_refusal(self, decision_id: DecisionId, generation: u64) -> Refusal {
        let (code, sentence, class, retry) = self.words();
        let (class, retry) = match self.kind {
            // Whatever a policy's own row says: an approval is what helps.
            RefusalKind::ApprovalRequired => (Class::Approval, Retry::AfterApproval),
            RefusalKind::InvalidFacts
            | RefusalKind::StaleFacts
            | RefusalKind::Denied
            | RefusalKind::Overloaded => (class, retry),
        };
        Refusal {
            code,
            sentence,
            class,
            retry,
            kind: self.kind,
            decision_id,
            generation,
            asks: self.asks,
        }
    }
}

pub(super) fn class_of(reason: &Reason) -> Class {
    match (&reason.code, reason.kind) {
        (_, RefusalKind::ApprovalRequired) => Class::Approval,
        (DenyCodeOrOwn::BuiltIn(code), _) => code.class(),
        (DenyCodeOrOwn::Own { .. }, _) => Class::Rule,
    }
}
