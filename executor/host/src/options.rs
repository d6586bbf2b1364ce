//! What a supervised executor is, and how long anything may take.
//!
//! Plain data with defaults. Paths are judged when a start uses them, not here: a binary that is missing now may be there at
//! the next attempt.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use maka_cu_protocol::method::PROTOCOL;
use thiserror::Error;

use crate::environment::ChildEnvironment;

/// Everything a [`MakaCuService`](crate::MakaCuService) needs to know.
///
/// [`Options::new`] fills the defaults named at each field.
#[derive(Debug, Clone)]
#[doc(alias = "MakaCuServiceOptions")]
pub struct Options {
    /// The executor's executable. Symbolic links are resolved once per start.
    #[doc(alias = "binaryPath")]
    pub binary_path: PathBuf,
    /// When given, an executable with any other SHA-256 is never started. Default: none.
    #[doc(alias = "expectedBinarySha256")]
    pub expected_digest: Option<ExecutableDigest>,
    /// Folder of ours; the private copy that really runs lives in `executors/<sha256>/maka-cu` below it.
    pub state_dir: PathBuf,
    /// Arguments after the mandatory `host`. Default: none.
    pub executor_args: Vec<OsString>,
    /// Absolute path of the folder the executor writes images to. It is emptied at every start and removed by
    /// [`dispose`](crate::MakaCuService::dispose), and therefore accepted only when missing, empty or marked as ours.
    #[doc(alias = "imageDir")]
    pub image_dir: PathBuf,
    /// Name told to the executor; identification only. Default: `maka`.
    pub host_name: String,
    /// Version told to the executor; identification only.
    #[doc(alias = "hostVersion")]
    pub host_version: String,
    /// Protocol asked for; a seam for tests. Default: [`PROTOCOL`].
    #[doc(alias = "protocolVersion")]
    pub protocol_version: String,
    /// The child's whole environment. Default: the allow-list of [`ChildEnvironment::from_host`].
    #[doc(alias = "childEnv")]
    pub environment: ChildEnvironment,
    /// Whether the executor may move the system cursor. Sent in the handshake. Default: no.
    #[doc(alias = "allowGlobalPointer")]
    pub allow_global_pointer: bool,
    /// Least time a request gets when its caller names no deadline. Default: 20 s.
    #[doc(alias = "timeoutMs")]
    pub timeout: Duration,
    /// Time the executor has to answer `host.hello`. Default: 10 s.
    #[doc(alias = "handshakeTimeoutMs")]
    pub handshake_timeout: Duration,
    /// Time a cancelled request has before the executor is killed. Default: 2 s.
    pub cancel_grace: Duration,
    /// Time between SIGTERM and SIGKILL until a handshake names its own. Default: 3 s.
    pub shutdown_grace: Duration,
    /// Who starts a lost executor again. Default: [`RestartPolicy::Eager`].
    pub restart: RestartPolicy,
    /// Starts allowed until one of them lives for [`Options::stable_after`]. Default: 3.
    #[doc(alias = "maxRestartAttempts")]
    pub max_restart_attempts: u32,
    /// Pause after the first failed start, doubled after each further one. Default: 50 ms.
    #[doc(alias = "restartBackoffMs")]
    pub restart_backoff: Duration,
    /// Life after which the attempts are full again. Default: 60 s.
    pub stable_after: Duration,
}

impl Options {
    /// Options with every default.
    pub fn new(
        binary_path: impl Into<PathBuf>,
        state_dir: impl Into<PathBuf>,
        image_dir: impl Into<PathBuf>,
        host_version: impl Into<String>,
    ) -> Self {
        Self {
            binary_path: binary_path.into(),
            expected_digest: None,
            state_dir: state_dir.into(),
            executor_args: Vec::new(),
            image_dir: image_dir.into(),
            host_name: "maka".to_owned(),
            host_version: host_version.into(),
            protocol_version: PROTOCOL.to_owned(),
            environment: ChildEnvironment::from_host([]),
            allow_global_pointer: false,
            timeout: Duration::from_secs(20),
            handshake_timeout: Duration::from_secs(10),
            cancel_grace: Duration::from_secs(2),
            shutdown_grace: Duration::from_secs(3),
            restart: RestartPolicy::Eager,
            max_restart_attempts: 3,
            restart_backoff: Duration::from_millis(50),
            stable_after: Duration::from_secs(60),
        }
    }
}

/// Who starts a lost executor again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestartPolicy {
    /// The supervisor, by itself, while attempts are left: a readiness probe must not have to call to see readiness.
    #[default]
    Eager,
    /// The next call.
    OnDemand,
}

/// SHA-256 of an executable: 64 lower-case hexadecimal digits, without a prefix.
///
/// The one bare hash of the system, because operators paste it from `sha256sum`; hashes on the wire carry `sha256:`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExecutableDigest([u8; 32]);

impl ExecutableDigest {
    /// The digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for ExecutableDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn hex_value(digit: u8) -> Result<u8, DigestError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(DigestError),
    }
}

impl fmt::Display for ExecutableDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ExecutableDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no [`ExecutableDigest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an executable digest is 64 lower-case hexadecimal digits without a prefix")]
pub struct DigestError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_64_lower_case_digits() {
        let good = "0123456789abcdef".repeat(4);
        assert_eq!(good.parse::<ExecutableDigest>().unwrap().to_string(), good);
        for bad in [
            "",
            "00",
            &good.to_uppercase(),
            &format!("sha256:{good}"),
            &good[1..],
            &format!("{good}0"),
            &"g".repeat(64),
        ] {
            assert_eq!(bad.parse::<ExecutableDigest>(), Err(DigestError), "{bad}");
        }
    }
}
