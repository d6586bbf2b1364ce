//! The supervisor's state as others see it.

use std::path::PathBuf;
use std::sync::Arc;

use maka_cu_protocol::handshake::Handshake;
use maka_cu_protocol::sets::ServiceState;

use crate::failure::LastFailure;
use crate::options::ExecutableDigest;

/// A consistent picture of the service.
#[derive(Debug, Clone)]
#[doc(alias = "snapshot")]
pub struct Status {
    /// What the service is doing.
    pub state: ServiceState,
    /// Number of the current or last child; 0 before the first. It only grows.
    pub generation: u64,
    /// Starts since the last stable life.
    #[doc(alias = "restartAttempts")]
    pub restart_attempts: u32,
    /// What was negotiated, while the executor is ready.
    pub executor: Option<Arc<Negotiated>>,
    /// The executable of the current or last child.
    pub pin: Option<Pin>,
    /// The last failure, until an executor is ready again and stays so.
    pub last_failure: Option<Arc<LastFailure>>,
}

impl Status {
    pub(crate) fn initial() -> Self {
        Self {
            state: ServiceState::Idle,
            generation: 0,
            restart_attempts: 0,
            executor: None,
            pin: None,
            last_failure: None,
        }
    }

    /// Whether nothing a watcher could see differs.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let failure = |status: &Self| status.last_failure.as_ref().map(Arc::as_ptr);
        self.state == other.state
            && self.generation == other.generation
            && self.restart_attempts == other.restart_attempts
            && self.pin == other.pin
            && failure(self) == failure(other)
    }
}

/// What was agreed on with one generation.
#[derive(Debug, Clone)]
#[doc(alias = "negotiated")]
pub struct Negotiated {
    /// The generation it holds for.
    pub generation: u64,
    /// Process id of the child, as the operating system gave it.
    pub pid: u32,
    /// The executor's own words: identity, capabilities, limits.
    pub handshake: Handshake,
    /// The image folder as it was told to the executor: absolute, without symbolic links.
    pub image_dir: PathBuf,
}

/// Which file really runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// SHA-256 of the file.
    pub digest: ExecutableDigest,
    /// How it is kept from being swapped.
    pub kind: PinKind,
    /// Whether a digest was configured, which it then equals.
    pub pinned: bool,
}

/// How the running file is kept from being swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinKind {
    /// A private copy runs, hashed while it was made.
    PrivateCopy,
    /// The file runs where it lies, inside a signed macOS bundle whose owner and mode were checked.
    InPlace,
}

impl PinKind {
    /// `private_copy` or `in_place`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrivateCopy => "private_copy",
            Self::InPlace => "in_place",
        }
    }
}
