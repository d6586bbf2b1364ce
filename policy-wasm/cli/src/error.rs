//! Input that cannot be worked with.

use std::path::PathBuf;

use maka_policy_build::BuildError;
use maka_policy_host::bundle::BundleError;
use maka_policy_host::capture::CaptureError;
use maka_policy_host::digest::Digest;
use maka_policy_host::engine::EngineError;
use maka_policy_host::fixture::FixtureError;
use maka_policy_host::log::LogError;
use maka_policy_host::module::LoadError;
use maka_policy_host::proof::ProofError;

use crate::advice::Advice;
use crate::key::KeyError;

/// Why a command cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file is too large to be what it should be.
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// A project cannot have this name.
    #[error(
        "a policy, its folder and its package have one name: a-z, 0-9 and single dashes, a letter first, at most 48 characters"
    )]
    ProjectName,
    /// A name of Rust, of its library or of this product.
    #[error("`{0}` is a name of Rust or of this product already; choose another one")]
    ProjectNameTaken(String),
    /// A folder is not the SDK.
    #[error("`{path}` is not the SDK; name the folder with the Cargo.toml of maka-policy-sdk")]
    NotSdk {
        /// The folder.
        path: PathBuf,
    },
    /// `--sdk` was given for another language.
    #[error("--sdk names an SDK for Rust; a project in JavaScript carries its own")]
    SdkOfRust,
    /// A project cannot be built.
    #[error("the policy cannot be built")]
    Build(#[from] BuildError),
    /// No built-in policy has this name.
    #[error("there is no built-in policy of this name; there are {names}")]
    NotBuiltIn {
        /// The names there are.
        names: String,
    },
    /// The settings are no JSON.
    #[error("the settings in `{path}` are not JSON")]
    SettingsJson {
        /// The file.
        path: PathBuf,
        /// Where and why not.
        #[source]
        source: serde_json::Error,
    },
    /// The engine does not start.
    #[error("policies cannot be run here")]
    Engine(#[from] EngineError),
    /// A policy is refused.
    #[error("`{policy}` is refused")]
    Refused {
        /// The policy, as it was named.
        policy: String,
        /// Why.
        #[source]
        source: Box<LoadError>,
    },
    /// A fixture has a mistake.
    #[error(transparent)]
    Fixture(FixtureError),
    /// There is no fixture to run.
    #[error("`{path}` has no fixtures; write one with the header `schema: maka.policy.fixture/1`")]
    NoFixtures {
        /// The folder.
        path: PathBuf,
    },
    /// A gateway would not take the fixtures of a bundle.
    #[error(
        "a gateway, which runs cases without settings under {{}}, would not take these fixtures"
    )]
    Unproven(#[from] ProofError),
    /// A file in a folder of fixtures is none.
    #[error(
        "`{path}` is no fixture; name fixtures *.yaml, *.yml or *.json, and keep other files elsewhere"
    )]
    NotFixture {
        /// The file.
        path: PathBuf,
    },
    /// A policy refuses the settings of a case.
    #[error("{}:{line}: the settings of this case are refused", file.display())]
    CaseSettings {
        /// The file.
        file: PathBuf,
        /// The first line of the case.
        line: usize,
        /// Why.
        #[source]
        source: Box<LoadError>,
    },
    /// A step does not say what has to come of it.
    #[error("{}:{line}: `expect` is missing; write what has to come of this call", file.display())]
    NoExpectation {
        /// The file.
        file: PathBuf,
        /// The first line of the step.
        line: usize,
    },
    /// A decision log cannot be read.
    #[error("the decision log `{path}` cannot be verified")]
    Log {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: LogError,
    },
    /// A file cannot be written.
    #[error("`{path}` cannot be written; a file that is there already is left alone")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A key cannot be used.
    #[error("the key in `{path}` cannot be used")]
    Key {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: KeyError,
    },
    /// A capture cannot be read.
    #[error("the capture `{path}` cannot be replayed")]
    Capture {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: CaptureError,
    },
    /// A set of a capture is empty.
    #[error("the capture has a set without a floor, which no gateway writes")]
    NoFloor,
    /// The component of a recorded policy is not there.
    #[error(
        "the capture was judged by {name} {version} ({digest}); name its file with --with, or other policies with --against"
    )]
    NoComponent {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// The digest of its component.
        digest: Digest,
    },
    /// A bundle is refused.
    #[error("the bundle `{path}` is refused")]
    Bundle {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: BundleError,
    },
    /// A file has several cases, and none of them was chosen.
    #[error("choose one case of `{path}` with --case NAME; there are {names}")]
    WhichCase {
        /// The file.
        path: PathBuf,
        /// Their names.
        names: String,
    },
}

impl InputError {
    /// What to do instead, as lines to follow the error.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Refused { source, .. } | Self::CaseSettings { source, .. } => {
                Some(Advice::of(source).lines())
            }
            Self::Read { .. }
            | Self::TooLarge { .. }
            | Self::ProjectName
            | Self::ProjectNameTaken(_)
            | Self::NotSdk { .. }
            | Self::SdkOfRust
            | Self::Build(_)
            | Self::NotBuiltIn { .. }
            | Self::SettingsJson { .. }
            | Self::Engine(_)
            | Self::Fixture(_)
            | Self::NoFixtures { .. }
            | Self::Unproven(_)
            | Self::NotFixture { .. }
            | Self::NoExpectation { .. }
            | Self::Log { .. }
            | Self::Write { .. }
            | Self::Key { .. }
            | Self::Bundle { .. }
            | Self::Capture { .. }
            | Self::NoFloor
            | Self::NoComponent { .. }
            | Self::WhichCase { .. } => None,
        }
    }
}
