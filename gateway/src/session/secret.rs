//! The key under which requests are hashed before they are written to the decision log.
//!
//! The log must be able to tell a repeated request from another one after a restart, and must not hold what a person
//! typed. A plain hash of a short text can be guessed; a keyed one cannot without the key, which stays in the state
//! folder, readable by the gateway's user alone.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use maka_policy_host::digest::Digest;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// See the module.
#[derive(Clone)]
pub struct RequestSecret([u8; 32]);

/// The key cannot be had.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The file could not be read or made.
    #[error("the request key `{}` could not be read or made", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there and is no key.
    #[error("the request key `{}` does not hold 32 bytes; remove it to have a new one made", path.display())]
    Length {
        /// The file.
        path: PathBuf,
    },
    /// Others can have read or written it.
    #[error("the request key `{}` is no file of this user alone (mode 0600); remove it to have a new one made", path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoEntropy,
}

impl RequestSecret {
    /// A key that lives as long as the process.
    ///
    /// # Errors
    /// [`SecretError::NoEntropy`].
    pub fn random() -> Result<Self, SecretError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| SecretError::NoEntropy)?;
        Ok(Self(key))
    }

    /// The key in this file; made with mode 0600 when there is none.
    ///
    /// # Errors
    /// When the file cannot be read or made, is open to others, or holds something else than 32 bytes.
    pub fn load_or_create(path: &Path) -> Result<Self, SecretError> {
        let failed = |source| SecretError::Io {
            path: path.to_owned(),
            source,
        };
        // A pipe in its place must not hold us up.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits())
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Self::random()?;
                key.write(path).map_err(failed)?;
                return Ok(key);
            }
            Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => {
                return Err(SecretError::Unsafe {
                    path: path.to_owned(),
                });
            }
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        let is_private = metadata.is_file()
            && metadata.uid() == geteuid().as_raw()
            && metadata.mode() & 0o077 == 0;
        if !is_private {
            return Err(SecretError::Unsafe {
                path: path.to_owned(),
            });
        }
        let mut bytes = Vec::with_capacity(33);
        file.take(33).read_to_end(&mut bytes).map_err(failed)?;
        let key = bytes.try_into().map_err(|_| SecretError::Length {
            path: path.to_owned(),
        })?;
        Ok(Self(key))
    }

    /// Writes the key so that after a crash there is a whole one or none. The folder is ours alone while we run.
    fn write(&self, path: &Path) -> io::Result<()> {
        let fresh = path.with_extension("new");
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(&self.0)?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    /// The keyed digest of these bytes. Hashed twice, so that a digest of a text says nothing about longer texts.
    pub(crate) fn digest(&self, bytes: &[u8]) -> Digest {
        let inner = Sha256::new()
            .chain_update(self.0)
            .chain_update(bytes)
            .finalize();
        Digest::from_bytes(
            Sha256::new()
                .chain_update(self.0)
                .chain_update(inner)
                .finalize()
                .into(),
        )
    }
}

impl fmt::Debug for RequestSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("request.key");
        let made = RequestSecret::load_or_create(&path).unwrap();
        let read = RequestSecret::load_or_create(&path).unwrap();
        assert_eq!(made.digest(b"x"), read.digest(b"x"));
        assert_ne!(
            made.digest(b"x"),
            RequestSecret::random().unwrap().digest(b"x")
        );
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        std::fs::write(&path, b"short").unwrap();
        assert!(matches!(
            RequestSecret::load_or_create(&path),
            Err(SecretError::Length { .. })
        ));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = |path: &Path| {
            matches!(
                RequestSecret::load_or_create(path),
                Err(SecretError::Unsafe { .. })
            )
        };
        assert!(refused(&path), "others may read it");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(refused(&link), "a link is not followed");
        // What a crash left behind is no key and no obstacle.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(path.with_extension("new"), b"half").unwrap();
        RequestSecret::load_or_create(&path).unwrap();
        assert!(!path.with_extension("new").exists());
    }
}
