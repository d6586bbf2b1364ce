//! The desktop's folder: sockets, logs, the cookie, and a home for applications.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::authority::{COOKIE_BYTES, write_authority};
use crate::error::DesktopError;

/// 107 bytes of `sun_path`, less the longest name put below the folder (`/run/at-spi/bus_99999`) and a reserve for
/// what applications add (`/run/dconf/…`, `/run/gvfsd/…`).
const LONGEST_FOLDER: usize = 70;

/// Where everything of one desktop lives. Dropping it removes the folder if we chose its name.
pub(crate) struct Folder {
    root: PathBuf,
    /// Held for its drop: it removes a folder that was made here.
    _temporary: Option<TempDir>,
    cookie: [u8; COOKIE_BYTES],
}

/// Written by hand: the cookie is a secret.
impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Folder {
    pub(crate) fn prepare(dir: Option<&Path>) -> Result<Self, DesktopError> {
        let (root, temporary) = match dir {
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("maka-desktop-")
                    .tempdir()
                    .map_err(|source| DesktopError::Folder {
                        path: std::env::temp_dir(),
                        source,
                    })?;
                (temporary.path().to_path_buf(), Some(temporary))
            }
            Some(dir) => (absolute(dir)?, None),
        };
        if root.as_os_str().len() > LONGEST_FOLDER {
            return Err(DesktopError::FolderTooLong {
                path: root,
                limit: LONGEST_FOLDER,
            });
        }
        let mut cookie = [0; COOKIE_BYTES];
        getrandom::fill(&mut cookie).map_err(|error| DesktopError::Entropy {
            source: error
                .raw_os_error()
                .map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error),
        })?;
        let folder = Self {
            root,
            _temporary: temporary,
            cookie,
        };
        folder.fill()?;
        Ok(folder)
    }

    fn fill(&self) -> Result<(), DesktopError> {
        for path in [
            self.root.clone(),
            self.home(),
            self.home().join(".config"),
            self.home().join(".cache"),
            self.home().join(".local/share/applications"),
            self.runtime(),
            self.logs(),
            self.applications(),
        ] {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(&path)
                .map_err(|source| DesktopError::Folder {
                    path: path.clone(),
                    source,
                })?;
        }
        // The cookie file is created exclusively: it is also what says that a desktop lives here.
        write_authority(&self.authority(), &self.cookie).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => DesktopError::FolderInUse {
                path: self.root.clone(),
            },
            _ => DesktopError::Folder {
                path: self.authority(),
                source,
            },
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// `HOME` for applications, so that they neither read nor write the real one.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// `XDG_RUNTIME_DIR`. Being unique to this desktop it also tells which processes belong to it (see [`crate::sweep`]).
    pub(crate) fn runtime(&self) -> PathBuf {
        self.root.join("run")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("log")
    }

    /// The private folder for desktop entries; its parent is first in `XDG_DATA_DIRS`.
    pub(crate) fn applications(&self) -> PathBuf {
        self.data().join("applications")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("share")
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.root.join("Xauthority")
    }

    /// The secret that the display asks for.
    pub(crate) fn cookie(&self) -> &[u8; COOKIE_BYTES] {
        &self.cookie
    }

    pub(crate) fn bus(&self) -> PathBuf {
        self.runtime().join("bus")
    }

    /// Frees a folder that stays for the next desktop: without the cookie file it no longer counts as used.
    pub(crate) fn release(&self) {
        // Both may be gone already; what remains is found by the next `prepare`, which says so.
        drop(fs::remove_file(self.authority()));
        drop(fs::remove_file(self.bus()));
    }
}

fn absolute(dir: &Path) -> Result<PathBuf, DesktopError> {
    std::path::absolute(dir).map_err(|source| DesktopError::Folder {
        path: dir.to_path_buf(),
        source,
    })
}
