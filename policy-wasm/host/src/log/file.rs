//! One file of the log: opened, locked, written line by line.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use super::record::{self, Chain};
use super::{AuditUnavailable, LogError, LogPosition, MAX_LINE, Opened, names};
use crate::digest::Digest;

/// The file that is written to, and what is known of it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Number of its first record; of the next one while it has none.
    pub(super) first: u64,
    pub(super) bytes: u64,
    /// Before it has so many bytes, nobody tries to begin another file.
    pub(super) rotate_at: u64,
    pub(super) position: LogPosition,
    /// The last record was refused, for example by a full disk; the next may be taken.
    pub(super) refused: bool,
    /// Its file is not where it was, or shorter than what was written: what is appended would be lost.
    pub(super) displaced: bool,
    pub(super) broken: bool,
}

impl Drop for State {
    fn drop(&mut self) {
        // Closing would do, were it not for a child that another thread is just starting: until its `exec` it holds a
        // copy of the descriptor, and the lock with it. When this fails, closing still unlocks.
        drop(self.file.unlock());
    }
}

impl State {
    /// Opens a file to continue it, or begins one. Where a change of files was interrupted, it is finished first.
    pub(super) fn open(path: &Path) -> Result<(Self, Opened), LogError> {
        let is_new = !path.exists();
        if is_new {
            names::finish(path)?;
        }
        if path.is_symlink() {
            return Err(LogError::NotOurs);
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(LogError::io("opened"))?;
        let metadata = file.metadata().map_err(LogError::io("read"))?;
        let kind = metadata.file_type();
        if !kind.is_file() || kind.is_fifo() || metadata.nlink() != 1 {
            return Err(LogError::NotOurs);
        }
        lock(&file)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            // Fails when the file belongs to someone else, which is the answer that is wanted.
            file.set_permissions(std::fs::Permissions::from_mode(0o600))
                .map_err(|_| LogError::NotOurs)?;
        }
        if is_new {
            // The name has to survive a power failure as well as the content.
            names::sync_folder(path).map_err(LogError::io("synced"))?;
        } else {
            names::clear(path)?;
        }
        let (position, bytes) = tail(&file, metadata.len())?;
        let torn_bytes = metadata.len() - bytes;
        if torn_bytes > 0 {
            file.set_len(bytes).map_err(LogError::io("written"))?;
        }
        let first = match first(&file)? {
            Some(first) => first,
            // A file that follows others has a record from its very beginning.
            None if !names::archives(path)?.is_empty() => return Err(LogError::Missing),
            None => 1,
        };
        let opened = Opened {
            records: position.count + 1 - first,
            torn_bytes,
        };
        Ok((
            Self {
                path: path.to_owned(),
                file,
                first,
                bytes,
                rotate_at: 0,
                position,
                refused: false,
                displaced: false,
                broken: false,
            },
            opened,
        ))
    }

    /// Whether the path still names the file that is written to, whole.
    pub(super) fn is_in_place(&self) -> bool {
        let (Ok(named), Ok(own)) = (std::fs::symlink_metadata(&self.path), self.file.metadata())
        else {
            return false;
        };
        (named.dev(), named.ino()) == (own.dev(), own.ino()) && own.len() == self.bytes
    }

    pub(super) fn chain(&self) -> Chain {
        Chain {
            seq: self.position.count + 1,
            prev: self.position.head,
        }
    }

    /// Writes one line with one call. What was written in part is cut off again.
    pub(super) fn write(&mut self, line: &[u8]) -> Result<(), AuditUnavailable> {
        if line.len() > MAX_LINE {
            return Err(AuditUnavailable);
        }
        let written = loop {
            match self.file.write(line) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::error!(%error, path = %self.path.display(), "the decision log cannot be written; the call is refused");
                    break 0;
                }
                Ok(written) => break written,
            }
        };
        if written == line.len() {
            self.bytes += line.len() as u64;
            let text = &line[..line.len() - 1];
            self.position = LogPosition {
                count: self.position.count + 1,
                head: Some(Digest::of(text)),
            };
            return Ok(());
        }
        if written > 0 && self.file.set_len(self.bytes).is_err() {
            // A half line stays, and anything written after it would be lost with it.
            self.broken = true;
        }
        Err(AuditUnavailable)
    }
}

/// Takes the lock that keeps a second writer out.
pub(super) fn lock(file: &File) -> Result<(), LogError> {
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => LogError::InUse,
        std::fs::TryLockError::Error(source) => LogError::Io {
            doing: "locked",
            source,
        },
    })
}

/// The number of the first record of a file, if it has a finished one.
pub(super) fn first(mut file: &File) -> Result<Option<u64>, LogError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))
        .map_err(LogError::io("read"))?;
    file.take(MAX_LINE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(LogError::io("read"))?;
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => record::seq(&bytes[..end])
            .map(Some)
            .ok_or(LogError::Corrupt),
        None => Ok(None),
    }
}

/// The position of a log from its last line, and where that line ends.
pub(super) fn tail(mut file: &File, length: u64) -> Result<(LogPosition, u64), LogError> {
    // The last full line and at most one torn one lie within twice the longest line.
    let start = length.saturating_sub(2 * MAX_LINE as u64);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))
        .map_err(LogError::io("read"))?;
    file.take(2 * MAX_LINE as u64)
        .read_to_end(&mut bytes)
        .map_err(LogError::io("read"))?;
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        // No finished record: an empty log, or one whose very first record was torn. More than that is no log.
        return if start == 0 && bytes.len() <= MAX_LINE {
            Ok((
                LogPosition {
                    count: 0,
                    head: None,
                },
                0,
            ))
        } else {
            Err(LogError::Corrupt)
        };
    };
    let begin = bytes[..end]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let line = &bytes[begin..end];
    let count = record::seq(line).ok_or(LogError::Corrupt)?;
    Ok((
        LogPosition {
            count,
            head: Some(Digest::of(line)),
        },
        start + end as u64 + 1,
    ))
}
