//! Why there is no executor, and what a person can do about it.
//!
//! Every failure has a closed token, a fixed sentence and a remedy. Paths named here come from the operator's own configuration;
//! nothing the executor said is quoted, except by [`LastFailure::stderr`], which has to be asked for.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use maka_cu_protocol::sets::{LifecycleCode, ReleaseReason};
use thiserror::Error;

use crate::error::Breach;
use crate::options::ExecutableDigest;
use crate::process::ExitCause;
use crate::stderr_tail::StderrExcerpt;

/// Why a start failed, or why a started executor was lost.
#[derive(Debug, Error)]
pub enum StartFailure {
    /// No file at the configured path.
    #[error("there is no executor at `{}`", path.display())]
    BinaryMissing {
        /// The configured path.
        path: PathBuf,
    },
    /// The path names something that is not a regular file.
    #[error("the executor `{}` is not a regular file", path.display())]
    NotRegular {
        /// The configured path, resolved.
        path: PathBuf,
    },
    /// The file exists, and the permission to execute it does not.
    #[error("the executor `{}` may not be executed", path.display())]
    NotExecutable {
        /// The configured path, resolved.
        path: PathBuf,
    },
    /// The file is executable by permission only; the system could not run its content.
    #[error("the executor `{}` is no program for this system", path.display())]
    WrongFormat {
        /// The configured path, resolved.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("the executor `{}` could not be read", path.display())]
    Unreadable {
        /// The configured path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not the pinned one.
    #[error("the executor has the digest `{actual}`, but `{expected}` is pinned")]
    WrongDigest {
        /// The pinned digest.
        expected: ExecutableDigest,
        /// The digest of the file that is there.
        actual: ExecutableDigest,
    },
    /// An executable inside a signed bundle that others could replace.
    #[error("the executor `{}` can be changed by others", path.display())]
    UnsafeInPlace {
        /// The configured path, resolved.
        path: PathBuf,
    },
    /// The system found the program, but not the interpreter or loader it names.
    #[error("the executor could not be executed: its interpreter or loader is missing")]
    MissingInterpreter,
    /// The file system of the state folder does not execute programs.
    #[error("programs may not be executed from the state folder `{}`", path.display())]
    StateDirNoexec {
        /// The state folder.
        path: PathBuf,
    },
    /// The state folder belongs to, or can be written by, somebody else.
    #[error("the state folder `{}` can be changed by others", path.display())]
    StateDirUnsafe {
        /// The folder in question.
        path: PathBuf,
    },
    /// The private copy could not be made.
    #[error("the private copy of the executor could not be made in `{}`", path.display())]
    StateDir {
        /// The folder or file in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The image folder is given by a relative path.
    #[error("the image folder `{}` is not an absolute path", path.display())]
    ImageDirRelative {
        /// The configured path.
        path: PathBuf,
    },
    /// The image folder holds files that are not ours.
    #[error("the image folder `{}` is not ours: it is neither empty nor marked", path.display())]
    ImageDirForeign {
        /// The configured path.
        path: PathBuf,
    },
    /// Another host uses the image folder.
    #[error("another process uses the image folder `{}`", path.display())]
    ImageDirInUse {
        /// The configured path.
        path: PathBuf,
    },
    /// The image folder could not be prepared.
    #[error("the image folder `{}` could not be prepared", path.display())]
    ImageDir {
        /// The configured path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to make the process.
    #[error("the executor could not be executed")]
    Spawn {
        /// What the system said.
        source: io::Error,
    },
    /// The executor speaks another protocol version.
    #[error("the executor does not speak the protocol version of this host")]
    VersionMismatch,
    /// The executor refused the handshake without saying that the version is the reason.
    #[error("the executor refused the handshake")]
    HandshakeRefused,
    /// The handshake broke the protocol.
    #[error("the executor's handshake broke the protocol")]
    HandshakeViolation {
        /// How.
        #[source]
        breach: Breach,
    },
    /// The handshake was answered by a JSON-RPC error.
    #[error("the executor answered the handshake with JSON-RPC error {code}")]
    HandshakeRpc {
        /// The error's number.
        code: i64,
    },
    /// The handshake was not answered in time.
    #[error("the executor did not answer the handshake in time")]
    HelloTimeout,
    /// The process ended before it answered the handshake.
    #[error("the executor ended before the handshake, by {exit}")]
    ExitedEarly {
        /// How it ended.
        exit: ExitCause,
    },
    /// The process ended, or was ended, after a good handshake.
    #[error("the executor was lost after the handshake: {}{}", lost_because(*reason), by(*exit))]
    Lost {
        /// Why its generation was released.
        reason: ReleaseReason,
        /// How it ended, when it did so by itself.
        exit: Option<ExitCause>,
    },
}

fn by(exit: Option<ExitCause>) -> String {
    exit.map_or_else(String::new, |exit| format!(", by {exit}"))
}

fn lost_because(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::ChildExit => "it ended",
        ReleaseReason::RequestTimeout => "it did not answer a request in time",
        ReleaseReason::ProtocolViolation => "it broke the protocol",
        ReleaseReason::SessionCleared
        | ReleaseReason::RestartExhausted
        | ReleaseReason::Disposed => "the host ended it",
    }
}

/// What a failure means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// Nothing was spawned and nothing will change by itself.
    Fatal,
    /// The executor is another one than this host was built for; starting it again changes nothing.
    Mismatch,
    /// Tried again while attempts are left.
    Retryable,
}

impl StartFailure {
    /// Whether another attempt may help.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::BinaryMissing { .. }
            | Self::NotRegular { .. }
            | Self::NotExecutable { .. }
            | Self::WrongFormat { .. }
            | Self::Unreadable { .. }
            | Self::WrongDigest { .. }
            | Self::UnsafeInPlace { .. }
            | Self::StateDirNoexec { .. }
            | Self::StateDirUnsafe { .. }
            | Self::StateDir { .. }
            | Self::ImageDirRelative { .. }
            | Self::ImageDirForeign { .. }
            | Self::ImageDir { .. } => FailureClass::Fatal,
            Self::VersionMismatch | Self::HandshakeRefused | Self::HandshakeViolation { .. } => {
                FailureClass::Mismatch
            }
            // Whoever uses the folder may be on its way out, as in a replacement by a newer release.
            Self::ImageDirInUse { .. }
            | Self::MissingInterpreter
            | Self::Spawn { .. }
            | Self::HandshakeRpc { .. }
            | Self::HelloTimeout
            | Self::ExitedEarly { .. }
            | Self::Lost { .. } => FailureClass::Retryable,
        }
    }

    /// The code a caller gets for it.
    #[must_use]
    pub const fn code(&self) -> LifecycleCode {
        // A wrong digest is fatal like any unusable file, but it is another executor that is there, not none.
        if let Self::WrongDigest { .. } = self {
            return LifecycleCode::ServiceMismatch;
        }
        match self.class() {
            FailureClass::Mismatch => LifecycleCode::ServiceMismatch,
            FailureClass::Fatal | FailureClass::Retryable => LifecycleCode::ServiceUnavailable,
        }
    }

    /// How the process ended, when that is what went wrong.
    #[must_use]
    pub const fn exit(&self) -> Option<ExitCause> {
        match self {
            Self::ExitedEarly { exit } => Some(*exit),
            Self::Lost { exit, .. } => *exit,
            Self::BinaryMissing { .. }
            | Self::NotRegular { .. }
            | Self::NotExecutable { .. }
            | Self::WrongFormat { .. }
            | Self::Unreadable { .. }
            | Self::WrongDigest { .. }
            | Self::UnsafeInPlace { .. }
            | Self::MissingInterpreter
            | Self::StateDirNoexec { .. }
            | Self::StateDirUnsafe { .. }
            | Self::StateDir { .. }
            | Self::ImageDirRelative { .. }
            | Self::ImageDirForeign { .. }
            | Self::ImageDirInUse { .. }
            | Self::ImageDir { .. }
            | Self::Spawn { .. }
            | Self::VersionMismatch
            | Self::HandshakeRefused
            | Self::HandshakeViolation { .. }
            | Self::HandshakeRpc { .. }
            | Self::HelloTimeout => None,
        }
    }

    /// A closed token for logs, metrics and error details.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::BinaryMissing { .. } => "binary_missing",
            Self::NotRegular { .. } => "binary_not_regular",
            Self::NotExecutable { .. } => "binary_not_executable",
            Self::WrongFormat { .. } => "binary_wrong_format",
            Self::Unreadable { .. } => "binary_unreadable",
            Self::WrongDigest { .. } => "wrong_digest",
            Self::UnsafeInPlace { .. } => "binary_unsafe",
            Self::MissingInterpreter => "missing_interpreter",
            Self::StateDirNoexec { .. } => "state_dir_noexec",
            Self::StateDirUnsafe { .. } => "state_dir_unsafe",
            Self::StateDir { .. } => "state_dir_unusable",
            Self::ImageDirRelative { .. } => "image_dir_relative",
            Self::ImageDirForeign { .. } => "image_dir_foreign",
            Self::ImageDirInUse { .. } => "image_dir_in_use",
            Self::ImageDir { .. } => "image_dir_unusable",
            Self::Spawn { .. } => "spawn_failed",
            Self::VersionMismatch => "version_mismatch",
            Self::HandshakeRefused => "handshake_refused",
            Self::HandshakeViolation { .. } => "handshake_violation",
            Self::HandshakeRpc { .. } => "handshake_rpc_error",
            Self::HelloTimeout => "handshake_timeout",
            Self::ExitedEarly { .. } => "exited_early",
            Self::Lost { .. } => "lost",
        }
    }

    /// What a person can do about it, in one fixed sentence.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::BinaryMissing { .. } => "Install the executor or correct the configured path.",
            Self::NotRegular { .. } => "Let the configured path name the executable file itself.",
            Self::NotExecutable { .. } => "Make the file executable for this user (chmod u+x).",
            Self::WrongFormat { .. } => {
                "Install the executor built for this operating system and processor."
            }
            Self::Unreadable { .. } => {
                "Let this user read the file and the folders that lead to it."
            }
            Self::WrongDigest { .. } => {
                "Install the pinned build, or pin the digest of the one that is there after checking it."
            }
            Self::UnsafeInPlace { .. } => {
                "Let the bundle and its folders belong to root or this user and be writable by nobody else."
            }
            Self::MissingInterpreter => {
                "Install the interpreter or loader that the executable names in its first bytes."
            }
            Self::StateDirNoexec { .. } => {
                "Put the state folder on a file system that is mounted without noexec."
            }
            Self::StateDirUnsafe { .. } => {
                "Let the state folder belong to this user and be writable by nobody else."
            }
            Self::StateDir { .. } => "Make room in the state folder and let this user write to it.",
            Self::ImageDirRelative { .. } => "Configure the image folder by an absolute path.",
            Self::ImageDirForeign { .. } => {
                "Choose an empty folder; this one holds files that are not ours and would be deleted."
            }
            Self::ImageDirInUse { .. } => {
                "Stop the other gateway, or give each one an image folder of its own."
            }
            Self::ImageDir { .. } => {
                "Make room for the image folder and let this user write to it."
            }
            Self::Spawn { .. } => "Check the limits on processes, memory and open files.",
            Self::VersionMismatch => "Install an executor of the same release as this host.",
            Self::HandshakeRefused
            | Self::HandshakeViolation { .. }
            | Self::HandshakeRpc { .. } => {
                "Install an executor of the same release as this host, and report the mismatch."
            }
            Self::HelloTimeout => {
                "Run the executor's doctor command; the desktop or its accessibility bus may hang."
            }
            Self::ExitedEarly { .. } => {
                "Run the executor's doctor command; its own messages say what is missing."
            }
            Self::Lost { .. } => {
                "Look at the executor's own messages and restart it when the cause is gone."
            }
        }
    }
}

/// The failure that is remembered until an executor is ready again.
#[derive(Debug)]
pub struct LastFailure {
    /// What failed.
    pub failure: StartFailure,
    stderr: StderrExcerpt,
}

impl LastFailure {
    pub(crate) fn new(failure: StartFailure, stderr: StderrExcerpt) -> Self {
        Self { failure, stderr }
    }

    /// What a person can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        self.failure.remedy()
    }

    /// The last 400 characters the executor wrote to stderr. Untrusted, possibly private: for the operator's eyes only.
    #[must_use]
    pub const fn stderr(&self) -> &StderrExcerpt {
        &self.stderr
    }
}

impl fmt::Display for LastFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.failure, f)
    }
}

impl StdError for LastFailure {
    /// The failure's own text is shown by this type already, so the chain goes on below it.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.failure.source()
    }
}
