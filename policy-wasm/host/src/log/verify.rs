//! Walks the chain of a log.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::lines::Lines;
use super::names::Archive;
use super::record::ControlKind;
use super::{LogError, LogPosition, file, names};
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

/// What a whole log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Number of the first record; above 1 when older files are no longer here.
    pub first: u64,
    /// Its files.
    pub files: usize,
    /// Where it ends.
    pub position: LogPosition,
}

#[derive(Deserialize)]
struct Link {
    seq: u64,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    prev: Option<String>,
}

/// An empty log.
const NOTHING: LogPosition = LogPosition {
    count: 0,
    head: None,
};

/// Checks that in the current file every record follows the one before it, and the first one the last of the file before, and
/// returns where the log ends. Without a position that was kept elsewhere this cannot tell that the end was cut off, or that the
/// whole file was rewritten. A torn last line is left to [`DecisionLog::open`](super::DecisionLog::open); a log that does not
/// exist is whole.
///
/// # Errors
///
/// When the file cannot be read, and at the first record that does not follow.
pub fn verify(path: &Path) -> Result<LogPosition, VerifyError> {
    let mut chain = Links::new(None);
    if let Some(before) = archives(path)?.last() {
        let file = File::open(&before.path).map_err(LogError::io("opened"))?;
        let length = file.metadata().map_err(LogError::io("read"))?.len();
        chain.position = Some(file::tail(&file, length)?.0);
    }
    chain.walk(path)?;
    Ok(chain.end())
}

/// As [`verify`] over all files of the log, and checks that it still holds a position that was kept elsewhere. That finds a cut
/// end and a rewritten log, up to that position.
///
/// # Errors
///
/// As [`verify`], and when the position is not in the log.
pub fn verify_all(path: &Path, anchor: Option<LogPosition>) -> Result<Verified, VerifyError> {
    let mut chain = Links::new(anchor);
    let archives = archives(path)?;
    for archive in &archives {
        chain.walk(&archive.path)?;
    }
    chain.walk(path)?;
    let position = chain.end();
    match anchor {
        Some(anchor) if !chain.has_anchor => Err(VerifyError::Anchor(anchor.count)),
        Some(_) | None => Ok(Verified {
            first: chain.first,
            files: archives.len() + 1,
            position,
        }),
    }
}

fn archives(path: &Path) -> Result<Vec<Archive>, LogError> {
    match names::archives(path) {
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

/// The chain as far as it was followed.
struct Links {
    anchor: Option<LogPosition>,
    has_anchor: bool,
    /// Absent before the first file.
    position: Option<LogPosition>,
    first: u64,
}

impl Links {
    fn new(anchor: Option<LogPosition>) -> Self {
        Self {
            has_anchor: anchor == Some(NOTHING),
            anchor,
            position: None,
            first: 0,
        }
    }

    fn end(&self) -> LogPosition {
        self.position.unwrap_or(NOTHING)
    }

    fn walk(&mut self, path: &Path) -> Result<(), VerifyError> {
        let mut lines = match Lines::open(path) {
            Ok(lines) => lines,
            Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        while let Some(line) = lines.next()? {
            self.follow(line)?;
        }
        Ok(())
    }

    fn follow(&mut self, line: &[u8]) -> Result<(), VerifyError> {
        let broken = VerifyError::Broken(self.end().count + 1);
        let Ok(link) = serde_json::from_slice::<Link>(line) else {
            return Err(broken);
        };
        // Where the older files are gone, the first record says that it followed one of them.
        let is_left_over = self.position.is_none()
            && link.seq > 1
            && link.kind == ControlKind::LogRotated.as_str()
            && link.prev.is_some();
        let before = self.end();
        let follows =
            link.seq == before.count + 1 && link.prev == before.head.map(|head| head.to_string());
        if !follows && !is_left_over {
            return Err(broken);
        }
        let position = LogPosition {
            count: link.seq,
            head: Some(Digest::of(line)),
        };
        if self.first == 0 {
            self.first = link.seq;
        }
        if let Some(anchor) = self.anchor
            && anchor.count == link.seq
        {
            if anchor.head != position.head {
                return Err(VerifyError::Anchor(link.seq));
            }
            self.has_anchor = true;
        }
        self.position = Some(position);
        Ok(())
    }
}
