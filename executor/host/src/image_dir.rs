//! The folder the executor writes images to: claimed, emptied and removed by its host.
//!
//! INVARIANT: nothing is deleted from a folder that is neither empty nor marked as ours. A wrong path in a configuration must not
//! cost anybody's files. The marker goes last, so that a deletion cut short leaves a folder we still recognise.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::StartFailure;

/// Name of the file that marks an image folder as ours.
pub const MARKER: &str = ".maka-cu-images";

const MARKER_TEXT: &str =
    "This folder belongs to maka-cu-host: everything in it is deleted at every start.\n";

/// Takes possession of `path`: afterwards it exists, is private, and is empty but for the marker. Returns the path without links.
pub(crate) fn claim(path: &Path) -> Result<PathBuf, StartFailure> {
    if !path.is_absolute() {
        return Err(StartFailure::ImageDirRelative {
            path: path.to_owned(),
        });
    }
    match try_claim(path) {
        Ok(Some(claimed)) => Ok(claimed),
        Ok(None) => Err(StartFailure::ImageDirForeign {
            path: path.to_owned(),
        }),
        Err(source) => Err(StartFailure::ImageDir {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Deletes the folder if it is ours. A folder that is not there or not ours is left alone.
pub(crate) fn purge(path: &Path) -> io::Result<()> {
    if is_ours(path)? {
        empty(path)?;
        fs::remove_dir(path)?;
    }
    Ok(())
}

fn try_claim(path: &Path) -> io::Result<Option<PathBuf>> {
    // Parents are ordinary folders; the last component is made private from its first moment on.
    if let Some(parent) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_ours(path)? {
                return Ok(None);
            }
            empty(path)?;
        }
        Err(error) => return Err(error),
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    let mut marker = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path.join(MARKER))?;
    marker.write_all(MARKER_TEXT.as_bytes())?;
    fs::canonicalize(path).map(Some)
}

/// A real folder (no link to one) of this user that is empty or carries the marker.
fn is_ours(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() {
        return Ok(false);
    }
    if fs::read_dir(path)?.next().is_none() {
        return Ok(true);
    }
    match fs::symlink_metadata(path.join(MARKER)) {
        Ok(marker) => Ok(marker.is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes everything in the folder, the marker last. Links are removed, never followed.
fn empty(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == OsStr::new(MARKER) {
            continue;
        }
        let removed = if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
        ignore_missing(removed)?;
    }
    ignore_missing(fs::remove_file(path.join(MARKER)))
}

/// An executor that is still ending may delete a file in the same moment.
fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prepare: impl FnOnce(&Path), expected: &str) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/images");
        fs::create_dir_all(home.path().join("state")).unwrap();
        prepare(&path);
        let outcome = match claim(&path) {
            Ok(claimed) => {
                let names: Vec<_> = fs::read_dir(&claimed)
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name())
                    .collect();
                assert_eq!(names, [MARKER]);
                assert_eq!(fs::metadata(&claimed).unwrap().mode() & 0o777, 0o700);
                "claimed"
            }
            Err(failure) => failure.reason(),
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn claims_what_is_missing_empty_or_marked_and_nothing_else() {
        check(|_| {}, "claimed");
        check(|path| fs::create_dir(path).unwrap(), "claimed");
        check(
            |path| {
                claim(path).unwrap();
                fs::write(path.join("old.png"), "x").unwrap();
                fs::create_dir_all(path.join("deep/er")).unwrap();
            },
            "claimed",
        );
        check(
            |path| {
                fs::create_dir(path).unwrap();
                fs::write(path.join("thesis.txt"), "x").unwrap();
            },
            "image_dir_foreign",
        );
        check(|path| fs::write(path, "x").unwrap(), "image_dir_foreign");
        check(
            |path| {
                let elsewhere = path.with_file_name("elsewhere");
                fs::create_dir(&elsewhere).unwrap();
                std::os::unix::fs::symlink(elsewhere, path).unwrap();
            },
            "image_dir_foreign",
        );
        check(
            |path| {
                fs::create_dir_all(path.join(MARKER)).unwrap();
            },
            "image_dir_foreign",
        );
    }

    #[test]
    fn a_relative_path_is_refused() {
        assert_eq!(
            claim(Path::new("images")).unwrap_err().reason(),
            "image_dir_relative"
        );
    }

    #[test]
    fn links_inside_are_removed_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (path, outside) = (home.path().join("images"), home.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        claim(&path).unwrap();
        std::os::unix::fs::symlink(&outside, path.join("link")).unwrap();
        purge(&path).unwrap();
        assert!(!path.exists());
        assert!(outside.join("kept").exists());
        purge(&path).unwrap();
    }
}
