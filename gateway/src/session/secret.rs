//! The key under which requests are hashed before they are written to the decision log.
//!
//! The log must be able to tell a repeated request from another one after a restart, and must not hold what a person
//! typed. A plain hash of a short text can be guessed; a keyed one cannot without the key, which stays in the state
//! folder, readable by the gateway's user alone.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use maka_policy_host::digest::Digest;
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
    /// When the file cannot be read or made, or holds something else than 32 bytes.
    pub fn load_or_create(path: &Path) -> Result<Self, SecretError> {
        let failed = |source| SecretError::Io {
            path: path.to_owned(),
            source,
        };
        let file = match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
        {
            Ok(mut file) => {
                let key = Self::random()?;
                file.write_all(&key.0)
                    .and_then(|()| file.sync_all())
                    .map_err(failed)?;
                return Ok(key);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                File::open(path).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::with_capacity(33);
        file.take(33).read_to_end(&mut bytes).map_err(failed)?;
        let key = bytes.try_into().map_err(|_| SecretError::Length {
            path: path.to_owned(),
        })?;
        Ok(Self(key))
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
    }
}
