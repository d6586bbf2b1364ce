//! Input that cannot be worked with.

use std::path::PathBuf;

use maka_policy_host::engine::EngineError;
use maka_policy_host::module::LoadError;

use crate::advice::Advice;

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
}

impl InputError {
    /// What to do instead, as lines to follow the error.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Refused { source, .. } => Some(Advice::of(source).lines()),
            Self::Read { .. }
            | Self::TooLarge { .. }
            | Self::NotBuiltIn { .. }
            | Self::SettingsJson { .. }
            | Self::Engine(_) => None,
        }
    }
}
