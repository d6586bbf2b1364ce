//! What calls made active, kept over a restart in `<state>/policies/active.json`.
//!
//! A gateway that starts again judges by these sets, not by what the configuration says about them: an operator who
//! tightened a policy by a call must not find the looser one back after a crash. A file that is not understood, or names
//! something that is not there any more as it was, keeps the gateway from starting.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use maka_policy_host::{limits::Allowance, module::Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    fault::Fault,
    source,
    store::{self, unusable},
};

const SCHEMA: &str = "maka.gateway.policies/1";
const FILE: &str = "active.json";
/// Sixteen sets of sixteen modules with settings at their limit, and more.
const MAX_BYTES: u64 = 32 << 20;

/// The sets that calls made what they are.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choices {
    schema: String,
    pub(crate) sets: BTreeMap<String, Choice>,
}

/// What a call made of a set.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Choice {
    /// It judges nobody.
    Deactivated,
    /// It is this.
    Activated {
        modules: Vec<Chosen>,
        floor_settings: Value,
    },
}

impl std::fmt::Debug for Choice {
    // Settings may hold a secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Deactivated => "Deactivated",
            Self::Activated { .. } => "Activated",
        })
    }
}

/// A module of a set.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chosen {
    pub(crate) digest: String,
    pub(crate) monitor: bool,
    pub(crate) settings: Value,
    pub(crate) grant_facts: Vec<String>,
    pub(crate) max_fuel: Option<u64>,
    pub(crate) max_memory_bytes: Option<u64>,
}

impl std::fmt::Debug for Chosen {
    // Settings may hold a secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Chosen")
            .field("digest", &self.digest)
            .field("monitor", &self.monitor)
            .finish_non_exhaustive()
    }
}

impl Chosen {
    pub(crate) fn mode(&self) -> Mode {
        if self.monitor {
            Mode::Monitor
        } else {
            Mode::Enforce
        }
    }

    pub(crate) fn allowance(&self) -> Allowance {
        Allowance {
            facts: self.grant_facts.clone(),
            fuel: self.max_fuel,
            memory_bytes: self.max_memory_bytes,
            // What came by a call was taken at its size already.
            module_bytes: Some(maka_policy_host::limits::MAX_MODULE_BYTES),
            compile_ms: None,
        }
    }
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is not what this gateway wrote; put it right, or remove it to go back to the configuration", path.display())]
struct Damaged {
    path: PathBuf,
    #[source]
    source: serde_json::Error,
}

impl Choices {
    /// Reads the file; there is none before the first call.
    pub(crate) fn read(state_dir: &Path) -> Result<Self, Fault> {
        let path = path_of(state_dir);
        let text = match source::read(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(error)),
        };
        let damaged = |source| {
            let path = path.clone();
            Fault::refused("active_file").because(Damaged { path, source })
        };
        let choices: Self = serde_json::from_slice(&text).map_err(damaged)?;
        if choices.schema != SCHEMA {
            return Err(damaged(serde::de::Error::custom("unknown schema")));
        }
        Ok(choices)
    }

    /// Whether a call has left its mark in this folder.
    pub(crate) fn are_there(state_dir: &Path) -> bool {
        path_of(state_dir).exists()
    }

    /// Writes the file, or removes it when nothing is left of any call.
    pub(crate) fn write(&self, state_dir: &Path) -> Result<(), Fault> {
        let path = path_of(state_dir);
        if self.sets.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(error)),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let whole = Self {
            schema: SCHEMA.to_owned(),
            sets: self.sets.clone(),
        };
        let text = serde_json::to_vec_pretty(&whole).expect("choices hold texts and JSON only");
        store::write(&state_dir.join("policies"), &path, &text).map_err(unusable)
    }
}

fn path_of(state_dir: &Path) -> PathBuf {
    state_dir.join("policies").join(FILE)
}
