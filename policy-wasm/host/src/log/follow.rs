//! Reads a log while it is written, across its files.
//!
//! A reader has its own file handles and holds no lock, so that the slowest of them holds up nobody. It reads only up to a
//! position that the writer gave out, and so never meets half a line.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::lines::Lines;
use super::{LogError, file, names};

/// How often a file may get another name between finding and opening it, before that is told as a failure.
const TRIES: u32 = 8;

/// One record as it is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its number.
    pub seq: u64,
    /// Its line, without the line feed.
    pub line: String,
}

/// Where a reader is. Its calls block for as long as the disk takes.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    next: u64,
    open: Option<Lines>,
}

impl Follower {
    pub(super) fn new(path: PathBuf, next: u64) -> Self {
        Self {
            path,
            next: next.max(1),
            open: None,
        }
    }

    /// Number of the record that is read next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The records up to number `until`, as many as fit into about `max_bytes`. Records that are no longer kept
    /// are passed over: the first that is returned then has a higher number than [`next`](Self::next) said.
    ///
    /// # Errors
    ///
    /// When a file cannot be read. The reader can be used again.
    pub fn read(&mut self, until: u64, max_bytes: usize) -> Result<Vec<Logged>, LogError> {
        let mut records = Vec::new();
        let mut bytes = 0;
        while self.next <= until && bytes < max_bytes {
            let opened = self.open.take();
            let was_open = opened.is_some();
            let mut lines = match opened {
                Some(lines) => lines,
                None => self.locate()?,
            };
            if self.next > until {
                self.open = Some(lines);
                break;
            }
            let Some(line) = lines.next()? else {
                // The end of a file: the next record is in the one that follows it.
                if was_open {
                    continue;
                }
                return Err(LogError::Corrupt);
            };
            let line = String::from_utf8(line.to_vec()).map_err(|_| LogError::Corrupt)?;
            bytes += line.len();
            let seq = self.next;
            records.push(Logged { seq, line });
            self.next += 1;
            self.open = Some(lines);
        }
        Ok(records)
    }

    /// Opens the file that holds the next record, or the oldest there is when that record is gone, just before it.
    fn locate(&mut self) -> Result<Lines, LogError> {
        for _ in 0..TRIES {
            let archives = names::archives(&self.path)?;
            let archive = archives.iter().find(|archive| self.next <= archive.last);
            let path = archive.map_or(&self.path, |archive| &archive.path);
            let mut lines = match Lines::open(path) {
                Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    continue;
                }
                opened => opened?,
            };
            // The name was found before the file was opened, and another file may have taken it since.
            let Some(first) = file::first(lines.file())? else {
                continue;
            };
            lines.rewind()?;
            if archive.is_none() && first > self.next && names::archives(&self.path)? != archives {
                continue;
            }
            self.next = self.next.max(first);
            for _ in first..self.next {
                if lines.next()?.is_none() {
                    return Err(LogError::Corrupt);
                }
            }
            return Ok(lines);
        }
        Err(LogError::Missing)
    }
}
