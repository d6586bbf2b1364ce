//! Walks the chain of a log.

use std::path::Path;

use serde::Deserialize;

use super::lines::Lines;
use super::{LogError, LogPosition};
use crate::digest::Digest;

/// Why a log is not whole.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It cannot be read.
    #[error("the decision log cannot be verified")]
    Read(#[from] LogError),
    /// A line does not follow the one before it.
    #[error(
        "the decision log was changed: record {0} does not follow the one before it; keep the file as evidence, and move it \
         away to begin a new one"
    )]
    Broken(u64),
    /// It does not hold a position that was kept elsewhere.
    #[error(
        "the decision log was cut off or rewritten: record {0} is missing or not the one that was kept elsewhere; keep the file \
         as evidence"
    )]
    Anchor(u64),
}

#[derive(Deserialize)]
struct Link {
    seq: u64,
    #[serde(default)]
    prev: Option<String>,
}

/// Checks that every record follows the one before it, and returns where the log ends. Without a position that was kept
/// elsewhere this cannot tell that the end was cut off, or that the whole file was rewritten. A torn last line is left to
/// [`DecisionLog::open`](super::DecisionLog::open); a log that does not exist is whole.
///
/// # Errors
///
/// When the file cannot be read, and at the first record that does not follow.
pub fn verify(path: &Path) -> Result<LogPosition, VerifyError> {
    verify_from(path, None)
}

/// As [`verify`], and checks that the log still holds a position that was kept elsewhere. That finds a cut end and a
/// rewritten file, up to that position.
///
/// # Errors
///
/// As [`verify`], and when the position is not in the log.
pub fn verify_from(path: &Path, anchor: Option<LogPosition>) -> Result<LogPosition, VerifyError> {
    let position = walk(path, anchor)?;
    match anchor {
        Some(anchor) if anchor.count > position.count => Err(VerifyError::Anchor(anchor.count)),
        Some(_) | None => Ok(position),
    }
}

fn walk(path: &Path, anchor: Option<LogPosition>) -> Result<LogPosition, VerifyError> {
    let mut position = LogPosition {
        count: 0,
        head: None,
    };
    let mut lines = match Lines::open(path) {
        Ok(lines) => lines,
        Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(position);
        }
        Err(error) => return Err(error.into()),
    };
    while let Some(line) = lines.next()? {
        let expected = position.count + 1;
        let link: Link = serde_json::from_slice(line).map_err(|_| VerifyError::Broken(expected))?;
        if link.seq != expected || link.prev != position.head.map(|head| head.to_string()) {
            return Err(VerifyError::Broken(expected));
        }
        position = LogPosition {
            count: expected,
            head: Some(Digest::of(line)),
        };
        if anchor.is_some_and(|anchor| anchor.count == expected && anchor.head != position.head) {
            return Err(VerifyError::Anchor(expected));
        }
    }
    Ok(position)
}
