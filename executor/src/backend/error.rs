//! Why a back end could not answer, as a closed set that maps one to one onto domain codes.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::sets::Permission;
use thiserror::Error;

/// A back end's refusal. No variant carries text: what is worth telling a person is logged where it happens, without
/// application text, and the wire carries one fixed sentence per code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BackendError {
    /// The window does not exist (any more).
    #[error("the window is gone")]
    WindowGone,
    /// No application answers to the given name.
    #[error("no application answers to that name")]
    AppNotFound,
    /// Several applications answer to the given name; none was chosen.
    #[error("several applications answer to that name")]
    Ambiguous,
    /// The operating system withholds a permission.
    #[error("a permission of the operating system is missing")]
    PermissionMissing(Permission),
    /// The screen is locked.
    #[error("the screen is locked")]
    ScreenLocked,
    /// The window server or the accessibility service did not give an answer that can be used.
    #[error("the desktop could not be read")]
    CaptureFailed,
    /// The deadline came first.
    #[error("the desktop did not answer in time")]
    Timeout,
    /// The system or the application said no; nothing happened.
    #[error("the system refused")]
    Refused,
    /// This back end cannot do that at all.
    #[error("the back end cannot do that")]
    Unsupported,
}

impl BackendError {
    /// The domain code that tells this on the wire.
    #[must_use]
    pub const fn code(self) -> DomainCode {
        match self {
            Self::WindowGone => DomainCode::WindowGone,
            Self::AppNotFound | Self::Ambiguous => DomainCode::AppNotFound,
            Self::PermissionMissing(_) => DomainCode::PermissionMissing,
            Self::ScreenLocked => DomainCode::ScreenLocked,
            Self::CaptureFailed => DomainCode::CaptureFailed,
            Self::Timeout => DomainCode::Timeout,
            Self::Refused => DomainCode::DispatchRefused,
            Self::Unsupported => DomainCode::UnsupportedAction,
        }
    }
}
