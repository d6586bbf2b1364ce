//! Why a call is refused: a built-in code, or one of a policy with its own sentence.

use crate::codes::{Class, DenyCode, HostCode, Refusal, RefusalKind};
use crate::id::DecisionId;
use crate::module::Module;

/// Why a call is refused.
pub(super) struct Reason {
    code: DenyCodeOrOwn,
    kind: RefusalKind,
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
    pub(super) fn given_by(module: &Module, code: &str, kind: Option<RefusalKind>) -> Self {
        match DenyCode::parse(code) {
            Some(built_in) => Self {
                kind: kind.unwrap_or(built_in.kind()),
                code: DenyCodeOrOwn::BuiltIn(built_in),
            },
            None => Self {
                kind: kind.unwrap_or(RefusalKind::Denied),
                code: DenyCodeOrOwn::Own {
                    module: module.clone(),
                    code: code.to_owned(),
                },
            },
        }
    }

    pub(super) fn into_refusal(self, decision_id: DecisionId, generation: u64) -> Refusal {
        let (code, sentence, class, retry) = match self.code {
            DenyCodeOrOwn::BuiltIn(code) => (
                code.as_str().to_owned(),
                code.sentence().to_owned(),
                code.class(),
                code.retry(),
            ),
            DenyCodeOrOwn::Own { module, code } => match module.manifest().denial(&code) {
                Some(row) => (
                    row.code.clone(),
                    row.sentence.clone(),
                    Class::Rule,
                    row.retry,
                ),
                None => {
                    // Codes are checked when the verdict is read, so this cannot be reached; refusing is right anyway.
                    let bad = DenyCode::Host(HostCode::PolicyBadOutput);
                    (
                        bad.as_str().to_owned(),
                        bad.sentence().to_owned(),
                        bad.class(),
                        bad.retry(),
                    )
                }
            },
        };
        let class = match self.kind {
            RefusalKind::ApprovalRequired => Class::Approval,
            RefusalKind::InvalidFacts
            | RefusalKind::StaleFacts
            | RefusalKind::Denied
            | RefusalKind::Overloaded => class,
        };
        Refusal {
            code,
            sentence,
            class,
            retry,
            kind: self.kind,
            decision_id,
            generation,
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
