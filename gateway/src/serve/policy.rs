//! From the configuration to an active policy set. Blocking: it reads files and compiles.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use maka_policy_host::{
    digest::Digest,
    engine::Engine,
    judge::{ActivateError, Judge},
    module::{LoadError, Mode, Module, ModuleSource},
    set::{Floor, PolicySet},
};

use crate::config::policy::{self, ModuleConfig, PolicyConfig};

/// Name of the one set there is; every principal is judged by it.
pub const DEFAULT_SET: &str = "default";

/// Files larger than this are refused unread, whatever the engine's own bound is.
const MAX_MODULE_BYTES: u64 = 16 * 1024 * 1024;

/// The set cannot be had. A gateway with such a configuration does not run (field report K6).
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A module's file cannot be read.
    #[error("cannot read the policy module `{name}` from `{}`", path.display())]
    Unreadable {
        /// The configured name.
        name: String,
        /// The configured path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A module is refused.
    #[error("the policy module `{name}` is refused")]
    Module {
        /// The configured name.
        name: String,
        /// Why.
        #[source]
        source: LoadError,
    },
    /// The set is refused.
    #[error("the policy set is refused")]
    Set(#[source] LoadError),
    /// The set cannot be made active.
    #[error("the policy set cannot be made active")]
    Activate(#[source] ActivateError),
}

/// Loads the floor and the configured modules.
///
/// # Errors
/// [`PolicyError`] for the first module that cannot be had exactly as configured.
pub fn load(engine: &Engine, config: &PolicyConfig) -> Result<PolicySet, PolicyError> {
    let floor = Floor::load(engine, &serde_json::json!({})).map_err(PolicyError::Set)?;
    let modules = config
        .modules
        .0
        .iter()
        .map(|module| self::module(engine, module))
        .collect::<Result<_, _>>()?;
    PolicySet::new(engine, DEFAULT_SET, &floor, modules).map_err(PolicyError::Set)
}

/// Makes the set the one that judges.
///
/// # Errors
/// [`PolicyError::Activate`].
pub fn activate(judge: &Judge, set: PolicySet) -> Result<u64, PolicyError> {
    judge.activate(vec![set]).map_err(PolicyError::Activate)
}

fn module(engine: &Engine, config: &ModuleConfig) -> Result<Module, PolicyError> {
    let name = config.name.as_str().to_owned();
    let path = config.path.as_path();
    let bytes = read(path).map_err(|source| PolicyError::Unreadable {
        name: name.clone(),
        path: path.to_owned(),
        source,
    })?;
    let source = ModuleSource {
        name: name.clone(),
        bytes: bytes.into(),
        pin: Digest::from_bytes(*config.sha256.0.as_bytes()),
        settings: config.settings.to_json(),
        mode: match config.mode {
            policy::Mode::Enforce => Mode::Enforce,
            policy::Mode::Monitor => Mode::Monitor,
        },
        allowance: maka_policy_host::limits::Allowance::default(),
    };
    Module::load(engine, source).map_err(|source| PolicyError::Module { name, source })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_MODULE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_MODULE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
