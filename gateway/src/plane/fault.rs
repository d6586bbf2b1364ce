//! Why policies are not as somebody wants them: one closed set of codes, each a row of the error table.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use maka_policy_host::bundle::BundleError;
use maka_policy_host::judge::ActivateError;
use maka_policy_host::module::LoadError;
use maka_policy_host::proof::ProofError;

/// What kind of refusal it is: the reason that a caller branches on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FaultCode {
    /// No set of the configuration has this name.
    SetUnknown,
    /// No policy of this digest is built in, loaded or configured.
    PolicyUnknown,
    /// The generation is not the one that the caller has seen.
    GenerationChanged,
    /// Another change or question is under way.
    ChangeRunning,
    /// The store is full, and everything in it is in use.
    StoreFull,
    /// The store cannot be read or written.
    StoreUnusable,
    /// What was sent is not what its header says.
    UploadMismatch,
    /// The candidate is refused; the detail says why.
    Refused,
    /// The decision log takes no record, so there is no change.
    Unrecorded,
    /// The fixture to be asked about is not understood.
    FixtureUnusable,
}

impl FaultCode {
    /// Every code.
    pub const ALL: [Self; 10] = [
        Self::SetUnknown,
        Self::PolicyUnknown,
        Self::GenerationChanged,
        Self::ChangeRunning,
        Self::StoreFull,
        Self::StoreUnusable,
        Self::UploadMismatch,
        Self::Refused,
        Self::Unrecorded,
        Self::FixtureUnusable,
    ];

    /// The closed reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SetUnknown => "policy_set_unknown",
            Self::PolicyUnknown => "policy_unknown",
            Self::GenerationChanged => "policy_generation_changed",
            Self::ChangeRunning => "policy_change_running",
            Self::StoreFull => "policy_store_full",
            Self::StoreUnusable => "policy_store_unusable",
            Self::UploadMismatch => "policy_upload_mismatch",
            Self::Refused => "policy_refused",
            Self::Unrecorded => "policy_change_unrecorded",
            Self::FixtureUnusable => "policy_fixture_unusable",
        }
    }

    /// The fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::SetUnknown => {
                "no policy set has this name, or it is not active; List and GetGeneration name them"
            }
            Self::PolicyUnknown => "no policy has this digest; load it, or see List",
            Self::GenerationChanged => {
                "another generation is active than the expected one; look at GetGeneration and decide again"
            }
            Self::ChangeRunning => "another change of policies is under way; try again later",
            Self::StoreFull => "the store of policies is full and all of it is in use",
            Self::StoreUnusable => {
                "the store of policies in the state folder cannot be used; an operator has to look at the log"
            }
            Self::UploadMismatch => {
                "what was sent is not what its header says; send the header, then the whole file"
            }
            Self::Refused => {
                "the policies are refused and what is active stays active; code, module and place say why"
            }
            Self::Unrecorded => {
                "the change cannot be recorded, so nothing was changed; an operator has to look at the decision log"
            }
            Self::FixtureUnusable => {
                "the fixture is not understood; it needs one case, and place says where it is wrong"
            }
        }
    }
}

/// Every word for why a candidate is refused, with what it means. `docs/clients.md` prints the table.
pub const DETAILS: [(&str, &str); 39] = [
    (
        "active_file",
        "the file of what calls made active is not what this gateway wrote",
    ),
    (
        "bundle_form",
        "the file is neither a component nor a bundle as `maka-policy sign` writes it",
    ),
    (
        "bundle_manifest",
        "the manifest in the bundle is missing, or not the one in the component",
    ),
    ("compile", "the component does not compile"),
    ("compile_thread", "no thread can be started to compile on"),
    (
        "compile_time",
        "the component takes longer to compile than the limit",
    ),
    (
        "configuration",
        "the configuration is not understood; the gateway's log has line and key",
    ),
    (
        "corpus",
        "the module fails on a call of the floor's corpus: it traps, does not end, or answers outside its contract",
    ),
    (
        "engine_self_test",
        "the engine does not end what does not end by itself",
    ),
    (
        "exports",
        "the component does not export exactly the hooks of `maka:policy@1`",
    ),
    (
        "fact_not_granted",
        "the policy asks for a fact that it was not granted",
    ),
    ("first_decision", "the policy fails its first decision"),
    (
        "fixture_failed",
        "the policy does not do what a fixture of its bundle expects",
    ),
    ("fixture_unusable", "a fixture of the bundle cannot be run"),
    (
        "fixtures_digest",
        "the fixtures of the bundle are not those that the manifest names",
    ),
    (
        "floor_corpus",
        "the floor does not decide its own corpus as it should: do not trust this machine or this build",
    ),
    ("imports", "the component imports something"),
    (
        "internal",
        "proving the candidate failed inside the gateway",
    ),
    (
        "limits",
        "the policy asks for more fuel or memory than it was given",
    ),
    ("manifest_field", "a field of the manifest is not accepted"),
    ("manifest_json", "the manifest is not well formed"),
    ("manifest_missing", "the component has no manifest"),
    ("manifest_twice", "the component has more than one manifest"),
    (
        "monitor_thread",
        "no thread can be started for modules in monitor mode",
    ),
    (
        "name",
        "the policy is not the one that the configuration names",
    ),
    (
        "name_twice",
        "a set names one policy twice, or the floor, which is always there",
    ),
    ("not_component", "the file is not a WebAssembly component"),
    ("pin", "the file is not the one of this digest"),
    ("prepare", "the policy fails to prepare"),
    (
        "set_gone",
        "a call made a set what it is, and the configuration has it no more",
    ),
    ("settings", "the settings are not accepted, at this place"),
    (
        "settings_schema",
        "the settings schema of the policy is not understood",
    ),
    ("signature", "the signature is not good for these contents"),
    (
        "signer_unknown",
        "the bundle is not signed by one of the configured signers",
    ),
    ("too_large", "the file is larger than the limit"),
    ("too_many", "the set has more modules than the limit"),
    ("unreadable", "the file of the policy cannot be read"),
    (
        "unsigned",
        "only signed bundles are taken here (`policy.require_signature`)",
    ),
    ("world", "the hooks have other types than `maka:policy@1`"),
];

/// A refusal. What is active stays active.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind.
    pub code: FaultCode,
    /// For a refused candidate: a stable word for why.
    pub detail: Option<&'static str>,
    /// The module at fault, by name.
    pub module: Option<String>,
    /// A JSON pointer into settings or manifest, or file and line of a fixture; empty where there is none.
    pub place: String,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Fault {
    /// Where and why alone, for somebody who asked about a file and runs no gateway.
    #[must_use]
    pub fn plainly(&self) -> String {
        let module = self.module.as_ref();
        let place = Some(&self.place).filter(|place| !place.is_empty());
        let mut parts: Vec<_> = module
            .map(|module| format!("module `{module}`"))
            .into_iter()
            .chain(place.map(|place| format!("at `{place}`")))
            .collect();
        parts.push(match (self.source(), self.detail) {
            (Some(cause), None) => crate::telemetry::Chain(cause).to_string(),
            (Some(cause), Some(word)) => format!("{} ({word})", crate::telemetry::Chain(cause)),
            (None, Some(word)) => word.to_owned(),
            (None, None) => self.code.sentence().to_owned(),
        });
        parts.join(": ")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code.sentence())?;
        if let Some(detail) = self.detail {
            write!(formatter, ": {detail}")?;
        }
        if let Some(module) = &self.module {
            write!(formatter, ", module `{module}`")?;
        }
        if !self.place.is_empty() {
            write!(formatter, ", at `{}`", self.place)?;
        }
        Ok(())
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause
            .as_deref()
            .map(|cause| cause as &(dyn Error + 'static))
    }
}

impl From<FaultCode> for Fault {
    fn from(code: FaultCode) -> Self {
        Self {
            code,
            detail: None,
            module: None,
            place: String::new(),
            cause: None,
        }
    }
}

impl Fault {
    /// A candidate that is refused for `detail`.
    pub(crate) fn refused(detail: &'static str) -> Self {
        debug_assert!(
            DETAILS.iter().any(|(word, _)| *word == detail),
            "`{detail}` is in no table"
        );
        Self {
            detail: Some(detail),
            ..FaultCode::Refused.into()
        }
    }

    /// With the error behind it, for logs and for whoever reads a failed start.
    pub(crate) fn because(self, cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            cause: Some(Arc::new(cause)),
            ..self
        }
    }

    /// With the module it is about.
    pub(crate) fn of(self, module: &str) -> Self {
        Self {
            module: Some(module.to_owned()),
            ..self
        }
    }

    /// With the place it is about.
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            ..self
        }
    }
}

impl From<LoadError> for Fault {
    fn from(error: LoadError) -> Self {
        Self::refused(error.code())
            .at(error.pointer())
            .because(error)
    }
}

impl From<ProofError> for Fault {
    fn from(error: ProofError) -> Self {
        let fault = Self::refused(error.code()).at(error.place());
        let fault = match error.module() {
            Some(module) => fault.of(module),
            None => fault,
        };
        fault.because(error)
    }
}

impl From<BundleError> for Fault {
    fn from(error: BundleError) -> Self {
        let detail = match error {
            BundleError::Form | BundleError::Name => "bundle_form",
            BundleError::TooLarge => "too_large",
            BundleError::NoManifest | BundleError::Manifest => "bundle_manifest",
            BundleError::Fixtures => "fixtures_digest",
            BundleError::Untrusted => "signer_unknown",
            BundleError::Signature => "signature",
        };
        Self::refused(detail).because(error)
    }
}

impl From<ActivateError> for Fault {
    fn from(error: ActivateError) -> Self {
        let fault = match error {
            ActivateError::Unrecorded => FaultCode::Unrecorded.into(),
            ActivateError::FirstDecision(_) => Self::refused("first_decision"),
            ActivateError::Empty | ActivateError::NameTwice => Self::refused("name_twice"),
            ActivateError::Monitor(_) => Self::refused("monitor_thread"),
        };
        fault.because(error)
    }
}
