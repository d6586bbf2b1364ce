//! Reads a log line by line, with a bound on the line.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::path::Path;

use super::{LogError, MAX_LINE};

/// The finished lines of a log. A torn last line is not one.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        // Opening a pipe would wait for a writer, for ever and deaf to signals.
        if !fs::metadata(path)
            .map_err(LogError::io("opened"))?
            .is_file()
        {
            return Err(LogError::NotOurs);
        }
        let file = File::open(path).map_err(LogError::io("opened"))?;
        Ok(Self {
            reader: BufReader::new(file),
            line: Vec::new(),
        })
    }

    /// The file.
    pub(super) fn file(&self) -> &File {
        self.reader.get_ref()
    }

    /// Goes back to the beginning.
    pub(super) fn rewind(&mut self) -> Result<(), LogError> {
        self.reader.rewind().map_err(LogError::io("read"))
    }

    /// The next finished line, without its line feed.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, LogError> {
        self.line.clear();
        let limit = MAX_LINE as u64 + 1;
        let read = (&mut self.reader)
            .take(limit)
            .read_until(b'\n', &mut self.line)
            .map_err(LogError::io("read"))?;
        match self.line.last() {
            Some(b'\n') => Ok(Some(&self.line[..read - 1])),
            Some(_) if read as u64 == limit => Err(LogError::Corrupt),
            Some(_) | None => Ok(None),
        }
    }
}
