//! The folder the executor writes images to: claimed, emptied and removed by its host.
//!
//! INVARIANTS: nothing is deleted from a folder that is neither empty nor marked as ours. A wrong path in a configuration must not
//! cost anybody's files. And nothing is deleted from a folder that another host uses: whoever claims it holds a lock on the marker
//! file, from the first claim to the end of the host; the kernel lets go of it when the process dies, however it dies. The marker
//! goes last, so that a deletion cut short leaves a folder we still recognise.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::failure::StartFailure;

/// Name of the file that marks an image folder as ours.
pub const MARKER: &str = ".maka-cu-images";

const MARKER_TEXT: &str =
    "This folder belongs to maka-cu-host: everything in it is deleted at every start.\n";

/// How often a claim begins again because the folder's last owner removed it in the same moment.
const RACES: usize = 16;

/// An image folder that is ours until this value goes.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Without links.
    path: PathBuf,
    marker: Flock<File>,
}

impl Claim {
    /// The folder, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A claim on a folder that is nowhere.
    #[cfg(test)]
    pub(crate) fn imaginary() -> Arc<Self> {
        let marker = tempfile::tempfile().unwrap();
        Arc::new(Self {
            path: "/nowhere/images".into(),
            marker: Flock::lock(marker, FlockArg::LockExclusiveNonblock).unwrap(),
        })
    }

    /// Deletes the folder, while it still is the one that was claimed.
    pub(crate) fn purge(&self) -> io::Result<()> {
        if !self.is_in_place()? {
            return Ok(());
        }
        empty(&self.path)?;
        ignore_missing(fs::remove_file(self.path.join(MARKER)))?;
        match fs::remove_dir(&self.path) {
            // Since the marker went it may be somebody else's.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => ignore_missing(removed),
        }
    }

    /// Whether the file that is locked is the one that lies in the folder.
    fn is_in_place(&self) -> io::Result<bool> {
        let ours = self.marker.metadata()?;
        match fs::symlink_metadata(self.path.join(MARKER)) {
            Ok(there) => Ok(there.dev() == ours.dev() && there.ino() == ours.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Takes possession of `path`: afterwards it exists, is private, and is empty but for the marker. `held` is what an earlier claim
/// of this host gave; while that still stands it is given again.
pub(crate) fn claim(path: &Path, held: Option<Arc<Claim>>) -> Result<Arc<Claim>, StartFailure> {
    if !path.is_absolute() {
        return Err(StartFailure::ImageDirRelative {
            path: path.to_owned(),
        });
    }
    match try_claim(path, held) {
        Ok(Found::Ours(claim)) => Ok(claim),
        Ok(Found::Foreign) => Err(StartFailure::ImageDirForeign {
            path: path.to_owned(),
        }),
        Ok(Found::InUse) => Err(StartFailure::ImageDirInUse {
            path: path.to_owned(),
        }),
        Err(source) => Err(StartFailure::ImageDir {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Whose a folder turned out to be.
#[derive(Debug)]
enum Found {
    Ours(Arc<Claim>),
    Foreign,
    InUse,
}

fn try_claim(path: &Path, held: Option<Arc<Claim>>) -> io::Result<Found> {
    if let Some(claim) = held
        && claim.is_in_place()?
    {
        empty(&claim.path)?;
        return Ok(Found::Ours(claim));
    }
    for _ in 0..RACES {
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
                    return Ok(Found::Foreign);
                }
            }
            Err(error) => return Err(error),
        }
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path.join(MARKER));
        let marker = match opened {
            Ok(marker) => marker,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let marker = match Flock::lock(marker, FlockArg::LockExclusiveNonblock) {
            Ok(marker) => marker,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(Found::InUse),
            Err((_, errno)) => return Err(errno.into()),
        };
        let claim = Claim {
            path: fs::canonicalize(path)?,
            marker,
        };
        // The owner before us may have removed the folder between the opening and the lock.
        if !claim.is_in_place()? {
            continue;
        }
        fs::set_permissions(&claim.path, fs::Permissions::from_mode(0o700))?;
        empty(&claim.path)?;
        if claim.marker.metadata()?.len() == 0 {
            (&*claim.marker).write_all(MARKER_TEXT.as_bytes())?;
        }
        return Ok(Found::Ours(Arc::new(claim)));
    }
    Ok(Found::InUse)
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

/// Removes everything in the folder but the marker. Links are removed, never followed.
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
    Ok(())
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
        let outcome = match claim(&path, None) {
            Ok(claimed) => {
                let claimed = claimed.path();
                let names: Vec<_> = fs::read_dir(claimed)
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name())
                    .collect();
                assert_eq!(names, [MARKER]);
                assert_eq!(fs::metadata(claimed).unwrap().mode() & 0o777, 0o700);
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
                drop(claim(path, None).unwrap());
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
            claim(Path::new("images"), None).unwrap_err().reason(),
            "image_dir_relative"
        );
    }

    #[test]
    fn links_inside_are_removed_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (path, outside) = (home.path().join("images"), home.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let claimed = claim(&path, None).unwrap();
        std::os::unix::fs::symlink(&outside, path.join("link")).unwrap();
        claimed.purge().unwrap();
        assert!(!path.exists());
        assert!(outside.join("kept").exists());
        claimed.purge().unwrap();
    }

    /// A folder belongs to one host at a time, from its first claim until the host is gone; a marker that is left behind binds
    /// nobody, and neither does one that was removed under its owner.
    #[test]
    fn one_host_owns_a_folder_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("images");
        let first = claim(&path, None).unwrap();
        fs::write(path.join("shown.png"), "x").unwrap();
        assert_eq!(claim(&path, None).unwrap_err().reason(), "image_dir_in_use");
        assert!(path.join("shown.png").exists(), "a refusal deletes nothing");
        let again = claim(&path, Some(Arc::clone(&first))).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(
            !path.join("shown.png").exists(),
            "its owner empties it at every start"
        );
        drop(again);
        assert_eq!(claim(&path, None).unwrap_err().reason(), "image_dir_in_use");
        drop(first);
        assert!(path.join(MARKER).exists());
        let second = claim(&path, None).unwrap();
        fs::remove_dir_all(&path).unwrap();
        let third = claim(&path, Some(Arc::clone(&second))).unwrap();
        assert!(!Arc::ptr_eq(&second, &third), "the folder is a new one");
        fs::write(path.join("shown.png"), "x").unwrap();
        second.purge().unwrap();
        assert!(path.join("shown.png").exists(), "only its own is purged");
        third.purge().unwrap();
        assert!(!path.exists());
    }
}
