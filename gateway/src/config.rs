//! The configuration: one TOML file, read once, parsed into types that cannot hold a bad value.
//!
//! Nothing else in the gateway reads files, flags or the environment for settings. An unknown key, a missing
//! one and a bad value are all refused with the file, the line and the key, and with what to write instead.
//! Environment and arguments of the executor and settings of policies are never quoted: they may be secrets.
//! `deploy/gateway.toml` documents every key.

pub mod approval;
pub mod displays;
pub mod error;
pub mod executor;
pub mod listen;
pub mod policy;
pub mod principals;
pub mod session;
pub mod telemetry;
pub mod value;

use std::{fs, path::Path, path::PathBuf};

use maka_policy_host::capture::CaptureKey;
use serde::{Deserialize, Deserializer, de};

pub use self::error::ConfigError;
use self::{
    approval::ApprovalConfig,
    displays::DisplayConfig,
    executor::ExecutorConfig,
    listen::ListenConfig,
    policy::{ModuleFile, PolicyConfig},
    principals::Principals,
    session::SessionConfig,
    telemetry::TelemetryConfig,
    value::{AbsolutePath, Bounded},
};

/// A configuration file larger than this is refused unread.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the gateway keeps its own files: the executor's pinned copy, images, the decision log, the address file.
    pub state_dir: AbsolutePath,
    /// Development mode: reflection answers without credentials. Nothing else changes.
    #[serde(default)]
    pub dev: bool,
    /// The operator's key for actions that move the system pointer. Sent in the handshake.
    #[serde(default)]
    pub allow_global_pointer: bool,
    /// The operator's key for synthetic keys and points.
    #[serde(default)]
    pub input: InputConfig,
    /// Where to listen. Absent: the Unix socket in `state_dir` and `127.0.0.1:50051`.
    #[serde(default)]
    pub listen: ListenConfig,
    /// Who may call.
    #[serde(default)]
    pub principals: Principals,
    /// The executor. Absent: none is started and every call about the desktop is refused.
    pub executor: Option<ExecutorConfig>,
    /// The policy set. Absent: nothing is active and every call about the desktop is refused as `policy_absent`.
    pub policy: Option<PolicyConfig>,
    /// The decision log.
    #[serde(default)]
    pub audit: AuditConfig,
    /// Sessions and their bounds.
    #[serde(default)]
    pub session: SessionConfig,
    /// Approvals.
    #[serde(default)]
    pub approval: ApprovalConfig,
    /// The displays, where the executor cannot tell. Empty: as its snapshots say.
    #[serde(default)]
    pub displays: Vec<DisplayConfig>,
    /// What the gateway writes to stderr.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
}

/// Section `[input]`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputConfig {
    /// Whether keys and points may be synthesised. Off unless this desktop exists for agents.
    #[serde(default)]
    pub synthetic: bool,
}

/// Section `[audit]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// The decision log. Absent: `decisions.jsonl` in `state_dir`.
    pub path: Option<AbsolutePath>,
    /// When records reach the disk.
    pub fsync: Fsync,
    /// A file of this size is full: it gets another name, and the log goes on in a new one.
    pub max_file_bytes: Bounded<65_536, 1_073_741_824>,
    /// The public key that captures of facts are encrypted to. Absent: there are no captures.
    #[serde(deserialize_with = "capture_key")]
    pub capture_key: Option<CaptureKey>,
    /// Full files that stay; older ones are removed. Absent: all stay, and the disk may fill up, which refuses everything.
    pub keep_files: Option<Bounded<1, 100_000>>,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            path: None,
            fsync: Fsync::default(),
            max_file_bytes: Bounded::constant(64 * 1024 * 1024),
            capture_key: None,
            keep_files: None,
        }
    }
}

fn capture_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CaptureKey>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

/// When the decision log is synced. A record always survives the gateway's own death; this is about power loss.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Fsync {
    /// Within 50 ms.
    #[default]
    Batch,
    /// Before the action is forwarded.
    Each,
    /// When the system pleases.
    Never,
}

impl Config {
    /// Reads and checks `path`.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read or holds anything that is not understood.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable {
            file: path.to_owned(),
            source,
        };
        let length = fs::metadata(path).map_err(unreadable)?.len();
        if length > MAX_FILE_BYTES {
            return Err(ConfigError::TooLarge {
                file: path.to_owned(),
                max_bytes: MAX_FILE_BYTES,
            });
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(path, &text)
    }

    /// Checks `text`, which came from `file`.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with the line and the key.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let config: Self =
            toml::from_str(text).map_err(|error| ConfigError::invalid(file, text, &error))?;
        config.check_sets(file, text)?;
        Ok(config)
    }

    /// Every principal is judged by a set that there is, and what has to be signed is.
    fn check_sets(&self, file: &Path, text: &str) -> Result<(), ConfigError> {
        let names: Vec<&str> = match &self.policy {
            Some(policy) => policy.set_names().collect(),
            None => vec![policy::DEFAULT_SET],
        };
        for principal in &self.principals.0 {
            if let Some(set) = &principal.policy_set
                && !names.contains(&set.as_str())
            {
                return Err(ConfigError::misfit(
                    file,
                    text,
                    "policy_set",
                    "no policy set has this name; write it under `[[policy.sets]]`, or leave the key out for `default`",
                ));
            }
        }
        let Some(policy) = &self.policy else {
            return Ok(());
        };
        for name in policy.set_names() {
            for module in policy
                .set(name)
                .into_iter()
                .flat_map(|(modules, _)| modules)
            {
                match module.source {
                    ModuleFile::Component { .. } if policy.require_signature => {
                        return Err(ConfigError::misfit(
                            file,
                            text,
                            "require_signature",
                            "a module is named by `path`, which has no signature; write `bundle`",
                        ));
                    }
                    ModuleFile::Bundle { .. } if policy.signers.0.is_empty() => {
                        return Err(ConfigError::misfit(
                            file,
                            text,
                            "bundle",
                            "no signer is named whose bundles are taken; write `[[policy.signers]]`",
                        ));
                    }
                    ModuleFile::Component { .. } | ModuleFile::Bundle { .. } => {}
                }
            }
        }
        Ok(())
    }

    /// The decision log's file.
    #[must_use]
    pub fn audit_path(&self) -> PathBuf {
        match &self.audit.path {
            Some(path) => path.as_path().to_owned(),
            None => self.state_dir.as_path().join("decisions.jsonl"),
        }
    }

    /// The executor's image directory.
    #[must_use]
    pub fn image_dir(&self) -> PathBuf {
        match self
            .executor
            .as_ref()
            .and_then(|executor| executor.image_dir.as_ref())
        {
            Some(path) => path.as_path().to_owned(),
            None => self.state_dir.as_path().join("images"),
        }
    }

    /// The Unix socket, when one is served.
    #[must_use]
    pub fn socket_path(&self) -> Option<PathBuf> {
        match &self.listen {
            ListenConfig::Default => Some(self.state_dir.as_path().join("maka-gateway.sock")),
            ListenConfig::Named { unix, .. } => unix.as_ref().map(|path| path.as_path().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
