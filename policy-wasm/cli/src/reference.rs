//! How a policy is named on the command line: a file, or `prebuilt:` and the name of a built-in one.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use maka_policy_host::prebuilt::Prebuilt;

use crate::error::InputError;

/// The prefix of built-in names.
const BUILT_IN: &str = "prebuilt:";

/// A policy, as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A component that is part of the product.
    BuiltIn(Prebuilt),
    /// A file.
    File(PathBuf),
}

impl FromStr for Reference {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        match text.strip_prefix(BUILT_IN) {
            Some(name) => Prebuilt::parse(name)
                .map(Self::BuiltIn)
                .ok_or_else(|| InputError::NotBuiltIn { names: names() }),
            None => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn(prebuilt) => write!(f, "{BUILT_IN}{}", prebuilt.name()),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Reference {
    /// Reads the component.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or has more than `limit` bytes.
    pub fn read(&self, limit: u64) -> Result<Arc<[u8]>, InputError> {
        match self {
            Self::BuiltIn(prebuilt) => Ok(prebuilt.bytes().into()),
            Self::File(path) => read_file(path, limit).map(Arc::from),
        }
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
///
/// When it cannot be read, is no regular file, or is larger.
pub fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, InputError> {
    read_file_with_mode(path, limit).map(|(_, bytes)| bytes)
}

/// As [`read_file`], with the mode of the file that was read.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_file_with_mode(path: &Path, limit: u64) -> Result<(u32, Vec<u8>), InputError> {
    let failed = |source| InputError::Read {
        path: path.to_owned(),
        source,
    };
    // Opening a pipe would wait for a writer, for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("it is not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok((mode, bytes))
}

fn names() -> String {
    Prebuilt::ALL
        .iter()
        .map(|prebuilt| format!("`{BUILT_IN}{}`", prebuilt.name()))
        .collect::<Vec<_>>()
        .join(", ")
}
