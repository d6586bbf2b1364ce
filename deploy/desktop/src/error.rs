//! Why a desktop did not start or did not stay.

use std::io;
use std::path::PathBuf;

use crate::part::PartName;
use crate::programs::{MissingProgram, install_line};

/// The reasons for which [`crate::Desktop::start`] fails. Whatever had been started is ended again before it is returned.
#[derive(Debug, thiserror::Error)]
pub enum DesktopError {
    /// Programs are not installed. The text names each and the one command that installs them.
    #[error("{}", install_line(missing))]
    MissingPrograms {
        /// Every missing program, not just the first.
        missing: Vec<MissingProgram>,
    },
    /// The folder for sockets and logs could not be made or written.
    #[error("the desktop's folder `{}` cannot be prepared", path.display())]
    Folder {
        /// The path that failed.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A Unix socket path holds at most 107 bytes, and the buses add a name of their own.
    #[error("the desktop's folder `{}` is longer than {limit} bytes; Unix sockets need a shorter path", path.display())]
    FolderTooLong {
        /// The path that was refused.
        path: PathBuf,
        /// The most bytes such a path may have.
        limit: usize,
    },
    /// Another desktop, or something else, already lives in the folder that was given.
    #[error("the folder `{}` already holds a desktop; stop that one or give another folder", path.display())]
    FolderInUse {
        /// The folder.
        path: PathBuf,
    },
    /// The system gave no random bytes for the X authority cookie.
    #[error("the system gave no random bytes for the display's access cookie")]
    Entropy {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// sway does not run as root, and neither would what it is for.
    #[error("the compositor does not run as root; start the desktop as another user")]
    CompositorAsRoot,
    /// A part could not be started at all.
    #[error("{part} could not be started")]
    Spawn {
        /// Which part.
        part: PartName,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A part ended while the desktop was starting.
    #[error("{part} ended before it was ready; it wrote: {log}")]
    Ended {
        /// Which part.
        part: PartName,
        /// The end of what the part wrote to its standard error, or `nothing`.
        log: String,
    },
    /// A part runs, but did not answer in time.
    #[error("{part} was not ready in time; it wrote: {log}")]
    NotReady {
        /// Which part.
        part: PartName,
        /// The end of what the part wrote to its standard error, or `nothing`.
        log: String,
    },
    /// A part answered with something that is not an answer.
    #[error("{part} gave an answer that is not usable")]
    BadAnswer {
        /// Which part.
        part: PartName,
    },
    /// The thread that holds the parts could not be made, or is gone.
    #[error("the thread that holds the desktop's processes is not there")]
    Keeper,
}
