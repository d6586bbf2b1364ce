//! What programs are told of the screen that they draw on.

use crate::folder::Folder;

/// The screen of a running desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// An X server by its number.
    X(u32),
    /// A Wayland compositor.
    Wayland {
        /// The name of its socket in the runtime folder.
        socket: String,
        /// The display of the X server inside it.
        x_display: Option<String>,
    },
}

impl Screen {
    /// What it is called: the X display, else the compositor's socket.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::X(number) => format!(":{number}"),
            Self::Wayland { socket, .. } => socket.clone(),
        }
    }

    /// The variables that lead a program to it.
    pub(crate) fn environment(&self, folder: &Folder) -> Vec<(&'static str, String)> {
        match self {
            Self::X(_) => vec![
                ("DISPLAY", self.name()),
                (
                    "XAUTHORITY",
                    folder.authority().to_string_lossy().into_owned(),
                ),
                ("XDG_SESSION_TYPE", "x11".to_owned()),
            ],
            Self::Wayland { socket, x_display } => {
                let mut variables = vec![
                    ("WAYLAND_DISPLAY", socket.clone()),
                    ("XDG_SESSION_TYPE", "wayland".to_owned()),
                ];
                variables.extend(x_display.clone().map(|display| ("DISPLAY", display)));
                variables
            }
        }
    }
}
