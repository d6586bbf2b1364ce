//! Why a command could not show what was asked for, in words for a person, and the exit status that says it to a script.

use std::path::PathBuf;

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::AppId;
use maka_cu_protocol::sets::Permission;
use thiserror::Error;

use crate::backend::doctor::StartRefusal;
use crate::backend::error::BackendError;
use crate::executor::Fault;
use crate::exit::Exit;

/// See the module text. Each says what to do next.
#[derive(Debug, Error)]
pub enum Trouble {
    /// There is no desktop.
    #[error("{0}\n  `maka-cu doctor` looks at everything that is needed")]
    NoDesktop(StartRefusal),
    /// Nothing answers to the name.
    #[error("no application answers to `{wanted}`\n  `maka-cu list-apps` shows what runs")]
    NoSuchApp {
        /// What was asked for, made harmless.
        wanted: String,
    },
    /// Several applications have that name.
    #[error("several applications are called `{wanted}`; name one by its id:{}", list(.ids))]
    SeveralApps {
        /// What was asked for, made harmless.
        wanted: String,
        /// Their ids.
        ids: Vec<AppId>,
    },
    /// The application has no window.
    #[error("the application `{app}` has no window now\n  `maka-cu list-apps` shows the windows")]
    NoWindow {
        /// Its id, made harmless.
        app: String,
    },
    /// No window has that id.
    #[error("there is no window {window_id}\n  `maka-cu list-apps` shows the windows")]
    NoSuchWindow {
        /// What was asked for.
        window_id: u32,
    },
    /// The desktop refused.
    #[error("{}\n  {}", .code.sentence(), advice(*.code, *.permission))]
    Refused {
        /// Why.
        code: DomainCode,
        /// What is missing.
        permission: Option<Permission>,
    },
    /// The desktop gives no pictures.
    #[error(
        "this desktop gives no pictures\n  leave `--image` out; `maka-cu doctor` says why there are none"
    )]
    NoPictures,
    /// The file could not be written.
    #[error("the picture could not be written to {}", .path.display())]
    NotWritten {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The system gave no random numbers.
    #[error("the system gives no random numbers")]
    System,
}

impl Trouble {
    /// The status to end with.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::NoDesktop(_) | Self::NoPictures => Exit::NoDesktop,
            Self::NoSuchApp { .. }
            | Self::SeveralApps { .. }
            | Self::NoWindow { .. }
            | Self::NoSuchWindow { .. } => Exit::NoTarget,
            Self::Refused {
                code: DomainCode::PermissionMissing,
                ..
            } => Exit::NoPermission,
            Self::Refused { .. } => Exit::Refused,
            Self::NotWritten { .. } => Exit::NotWritten,
            Self::System => Exit::System,
        }
    }
}

impl From<BackendError> for Trouble {
    fn from(error: BackendError) -> Self {
        Fault::from(error).into()
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => Self::Refused {
                code: refusal.code,
                permission: refusal.detail.permission,
            },
            // Requests made here are well-formed, and their session lasts as long as the process.
            Fault::Unusable(_) => Self::Refused {
                code: DomainCode::Aborted,
                permission: None,
            },
        }
    }
}

fn list(ids: &[AppId]) -> String {
    let line = |id: &AppId| format!("\n  {}", super::plain::bare(id.as_str(), 100));
    ids.iter().map(line).collect()
}

/// What a person can do about it.
fn advice(code: DomainCode, permission: Option<Permission>) -> &'static str {
    match (code, permission) {
        (_, Some(Permission::Accessibility)) => {
            "grant accessibility to this program; `maka-cu doctor` says how"
        }
        (_, Some(Permission::ScreenRecording)) => {
            "grant screen recording to this program, or leave `--image` out"
        }
        (DomainCode::ScreenLocked, None) => "unlock the screen and try again",
        (DomainCode::ResponseTooLarge, None) => "the window has more than one message can hold",
        (DomainCode::Timeout | DomainCode::CaptureFailed, None) => {
            "try again; if it stays so, `maka-cu doctor` looks at what is between here and there"
        }
        (_, None) => "try again, or choose another window with `maka-cu list-apps`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trouble_says_what_to_do() {
        let troubles = [
            Trouble::NoDesktop(StartRefusal {
                missing: "there is no X display".to_owned(),
                remedy: "set DISPLAY".to_owned(),
            }),
            Trouble::NoSuchApp {
                wanted: "x".to_owned(),
            },
            Trouble::SeveralApps {
                wanted: "x".to_owned(),
                ids: vec![AppId::of_pid(1), AppId::of_pid(2)],
            },
            Trouble::NoSuchWindow { window_id: 3 },
            Trouble::from(BackendError::PermissionMissing(Permission::Accessibility)),
            Trouble::from(BackendError::Timeout),
            Trouble::NoPictures,
        ];
        let statuses = [69, 66, 66, 66, 77, 75, 69];
        for (trouble, status) in troubles.iter().zip(statuses) {
            let text = trouble.to_string();
            assert!(text.contains("\n  "), "{text}");
            assert_eq!(trouble.exit().status(), status, "{text}");
        }
    }
}
