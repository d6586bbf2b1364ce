//! The files of a log: the one that is written to, the full ones before it, and the one that is about to follow.
//!
//! `decisions.jsonl` is written to; `decisions.000000000001-000000004096.jsonl` holds the records 1 to 4096; while one file
//! follows another there is `decisions.jsonl.next`. Names sort as the records do.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::{LogError, file};

/// Digits of a number in a name.
const DIGITS: usize = 12;

/// A full file of a log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Archive {
    /// Number of its first record, as its name says.
    pub first: u64,
    /// Number of its last record, as its name says.
    pub last: u64,
    /// Where it is.
    pub path: PathBuf,
}

impl Archive {
    /// The full files of the log at `path`, oldest first.
    ///
    /// # Errors
    ///
    /// When its folder cannot be read.
    pub fn list(path: &Path) -> Result<Vec<Self>, LogError> {
        archives(path)
    }
}

/// Name before the numbers, and ending after them.
fn parts(path: &Path) -> (OsString, OsString) {
    let stem = path.file_stem().unwrap_or_default().to_owned();
    let mut ending = OsString::new();
    if let Some(extension) = path.extension() {
        ending.push(".");
        ending.push(extension);
    }
    (stem, ending)
}

fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Where the records `first` to `last` of the log at `path` go when it is full.
pub(super) fn archive(path: &Path, first: u64, last: u64) -> PathBuf {
    let (mut name, ending) = parts(path);
    name.push(format!(".{first:0DIGITS$}-{last:0DIGITS$}"));
    name.push(ending);
    path.with_file_name(name)
}

/// The file that is about to follow.
pub(super) fn next(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".next");
    path.with_file_name(name)
}

/// The full files of the log at `path`, oldest first.
pub(super) fn archives(path: &Path) -> Result<Vec<Archive>, LogError> {
    let (stem, ending) = parts(path);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder(path)).map_err(LogError::io("read"))? {
        let entry = entry.map_err(LogError::io("read"))?;
        if let Some((first, last)) = numbers(&entry.file_name(), &stem, &ending) {
            let path = entry.path();
            found.push(Archive { first, last, path });
        }
    }
    found.sort();
    Ok(found)
}

fn numbers(name: &OsStr, stem: &OsStr, ending: &OsStr) -> Option<(u64, u64)> {
    let (stem, ending) = (stem.to_str()?, ending.to_str()?);
    let numbers = name.to_str()?.strip_prefix(stem)?.strip_suffix(ending)?;
    let (first, last) = numbers.strip_prefix('.')?.split_once('-')?;
    let number = |text: &str| {
        let is_number = text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    Some((number(first)?, number(last)?))
}

/// Makes a change of names survive a power failure.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(folder(path)).and_then(|folder| folder.sync_all())
}

/// The file at `path` is not there: finishes a change of files that a death interrupted between its two renames.
pub(super) fn finish(path: &Path) -> Result<(), LogError> {
    // A folder that is not there is told by whoever opens the file.
    if !folder(path).is_dir() || archives(path)?.is_empty() {
        return Ok(());
    }
    let next = next(path);
    let file = match File::open(&next) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(LogError::Missing);
        }
        opened => opened.map_err(LogError::io("opened"))?,
    };
    // Whoever is just about to rename it holds its lock.
    file::lock(&file)?;
    fs::rename(&next, path).map_err(LogError::io("renamed"))?;
    sync_folder(path).map_err(LogError::io("synced"))
}

/// The file at `path` is there and ours: removes what an interrupted change of files has left beside it.
pub(super) fn clear(path: &Path) -> Result<(), LogError> {
    match fs::remove_file(next(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LogError::io("cleared")(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_records_are_inside() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["decisions.jsonl", "log"] {
            let path = folder.path().join(name);
            assert_eq!(archives(&path).unwrap(), []);
            for (first, last) in [(1, 9), (10, 4096), (4097, 1_000_000_000_000_000)] {
                fs::write(archive(&path, first, last), "").unwrap();
            }
            for other in ["", ".next", ".1-2", ".000000000001-00000000000x"] {
                fs::write(folder.path().join(format!("{name}{other}")), "").unwrap();
            }
            let found = archives(&path).unwrap();
            let numbers: Vec<_> = found.iter().map(|file| (file.first, file.last)).collect();
            assert_eq!(
                numbers,
                [(1, 9), (10, 4096), (4097, 1_000_000_000_000_000)],
                "{name}"
            );
        }
        assert_eq!(
            archive(Path::new("/s/decisions.jsonl"), 1, 4096),
            Path::new("/s/decisions.000000000001-000000004096.jsonl")
        );
    }
}
