//! The gateway's own folder: created private, and held by one gateway at a time.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// It cannot be created or written.
    #[error("cannot use the state folder `{}`; let this user write to it or name another one in `state_dir`", path.display())]
    Unusable {
        /// The configured path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else could change what is in it: policies, tokens, the pinned executor.
    #[error("the state folder `{}` is open to other users; make it this user's own (chown) and private (chmod 700)", path.display())]
    NotPrivate {
        /// The configured path.
        path: PathBuf,
    },
    /// Another gateway holds it.
    #[error("another gateway runs with the state folder `{}`; stop it or name another one in `state_dir`", path.display())]
    InUse {
        /// The configured path.
        path: PathBuf,
    },
}

/// The folder, held until this value goes. The kernel lets go of the lock when the process dies.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl StateDir {
    /// Creates the folder if need be, with mode 0700, and takes hold of it. One that is there has to be this user's own and
    /// writable for nobody else.
    ///
    /// # Errors
    /// [`StateDirError`].
    pub fn hold(path: &Path) -> Result<Self, StateDirError> {
        let unusable = |source| StateDirError::Unusable {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(unusable)?;
        let metadata = path.metadata().map_err(unusable)?;
        let is_own = metadata.uid() == nix::unistd::geteuid().as_raw();
        if !is_own || metadata.mode() & 0o022 != 0 {
            return Err(StateDirError::NotPrivate {
                path: path.to_owned(),
            });
        }
        // The lock file stays: removing it would let a third gateway lock a new file while the second holds the old one.
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(unusable)?;
        match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err((_, Errno::EWOULDBLOCK)) => Err(StateDirError::InUse {
                path: path.to_owned(),
            }),
            Err((_, errno)) => Err(unusable(errno.into())),
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn one_gateway_holds_a_private_folder() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let held = StateDir::hold(&path).unwrap();
        assert_eq!(
            held.path().metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(matches!(
            StateDir::hold(&path),
            Err(StateDirError::InUse { .. })
        ));
        drop(held);
        StateDir::hold(&path).unwrap();
        for mode in [0o777, 0o770, 0o702] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = StateDir::hold(&path);
            assert!(
                matches!(refused, Err(StateDirError::NotPrivate { .. })),
                "{mode:o}"
            );
        }
        let file = parent.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(
            StateDir::hold(&file),
            Err(StateDirError::Unusable { .. })
        ));
    }
}
