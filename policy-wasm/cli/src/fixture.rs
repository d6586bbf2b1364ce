//! Fixtures on disk: files and folders of them.
//!
//! What is in a file is `maka-policy-host`'s to read, because a gateway reads the fixtures of a bundle as well; here is only
//! where the files are, and which case of one is meant.

use std::path::{Path, PathBuf};

use maka_policy_host::fixture::{self, Case, FILE_BYTES};
use maka_policy_host::manifest::RuleRow;

use crate::error::InputError;
use crate::reference::read_file;

/// The most fixture files of one run.
const MAX_FILES: usize = 4_096;
/// The endings that fixture files have.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads the cases of one file. Rules are named by the ids of this policy.
///
/// # Errors
///
/// When the file cannot be read, and at the first mistake in it.
pub fn read(file: &Path, rules: &[RuleRow]) -> Result<Vec<Case>, InputError> {
    let bytes = read_file(file, FILE_BYTES)?;
    fixture::read(file, &bytes, rules).map_err(InputError::Fixture)
}

/// Reads the cases of files and of folders, in the order of their names.
///
/// # Errors
///
/// When a file cannot be read, is no fixture, or has a mistake; when there is no case at all.
pub fn read_all(paths: &[PathBuf], rules: &[RuleRow]) -> Result<Vec<Case>, InputError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(folder(path)?);
        } else {
            files.push(path.clone());
        }
    }
    let mut cases = Vec::new();
    for file in &files {
        cases.extend(read(file, rules)?);
    }
    if cases.is_empty() {
        return Err(InputError::NoFixtures {
            path: paths.first().cloned().unwrap_or_default(),
        });
    }
    Ok(cases)
}

/// The case with this name, or the only one there is.
///
/// # Errors
///
/// When there is no such case, or several and no name.
pub fn choose(file: &Path, mut cases: Vec<Case>, name: Option<&str>) -> Result<Case, InputError> {
    let at = match name {
        Some(name) => cases.iter().position(|case| case.name == name),
        None => (cases.len() == 1).then_some(0),
    };
    match at {
        Some(at) => Ok(cases.swap_remove(at)),
        None => Err(InputError::WhichCase {
            path: file.to_owned(),
            names: cases
                .iter()
                .map(|case| format!("{:?}", case.name))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// The fixture files of a folder, sorted. Anything else in it is a mistake, so that no misnamed file is skipped in silence.
///
/// # Errors
///
/// When the folder cannot be read, or has another file in it.
pub fn folder(path: &Path) -> Result<Vec<PathBuf>, InputError> {
    let failed = |source| InputError::Read {
        path: path.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.file_name().is_some_and(|name| name == "README.md") {
            continue;
        }
        let ending = file.extension().and_then(|ending| ending.to_str());
        if !ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            return Err(InputError::NotFixture { path: file });
        }
        files.push(file);
        if files.len() > MAX_FILES {
            return Err(failed(std::io::Error::other("it has too many files")));
        }
    }
    files.sort();
    Ok(files)
}
