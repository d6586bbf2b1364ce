//! The image directory, as far as it is ours.
//!
//! The executor writes nowhere else, never follows or replaces a file that is there already, and deletes only files that
//! it wrote itself. A file lives as long as its [`StoredImage`]; the budget may delete the oldest earlier, and a reader
//! then gets an error instead of a wrong picture (spec §4.8).

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

/// Why a picture could not be kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It alone is larger than the budget.
    #[error("the picture of {bytes} bytes is larger than the budget of {budget_bytes} bytes")]
    OverBudget {
        /// Its size.
        bytes: u64,
        /// `limits.imageDirBudgetBytes`.
        budget_bytes: u64,
    },
    /// It was deleted for the budget before it was complete.
    #[error("the picture was deleted for the budget while it was written")]
    Evicted,
    /// The file could not be written.
    #[error("the picture could not be written")]
    Write(#[source] io::Error),
}

/// Why a directory cannot be the image directory.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The path is relative.
    #[error("the image directory is not an absolute path")]
    Relative,
    /// It is missing, is no directory, or cannot be written.
    #[error("the image directory cannot be used")]
    Unusable(#[source] io::Error),
}

/// Owner of the executor's files in `imageDir`. Cloning shares it.
#[derive(Debug, Clone)]
pub struct ImageStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    prefix: String,
    budget_bytes: u64,
    files: Mutex<Files>,
}

/// Our files by number, which is also their age.
#[derive(Debug, Default)]
struct Files {
    next: u64,
    sizes: BTreeMap<u64, u64>,
    total_bytes: u64,
}

impl Files {
    /// Takes a file out of the table, if it is there.
    fn remove(&mut self, number: u64) {
        self.total_bytes -= self.sizes.remove(&number).unwrap_or(0);
    }
}

/// One file; dropping it deletes the file.
#[derive(Debug)]
pub struct StoredImage {
    store: ImageStore,
    number: u64,
    path: PathBuf,
}

impl ImageStore {
    /// Takes `directory`, checked by writing and deleting a probe file. `prefix` starts every file name and must be
    /// unique to this process.
    ///
    /// # Errors
    /// [`OpenError`] when the directory cannot be used.
    pub fn open(directory: &Path, prefix: &str, budget_bytes: u64) -> Result<Self, OpenError> {
        if !directory.is_absolute() {
            return Err(OpenError::Relative);
        }
        if !fs::metadata(directory)
            .map_err(OpenError::Unusable)?
            .is_dir()
        {
            return Err(OpenError::Unusable(io::ErrorKind::NotADirectory.into()));
        }
        let probe = directory.join(format!("{prefix}-probe"));
        create_new(&probe)
            .and_then(|_| fs::remove_file(&probe))
            .map_err(OpenError::Unusable)?;
        Ok(Self {
            shared: Arc::new(Shared {
                directory: directory.to_owned(),
                prefix: prefix.to_owned(),
                budget_bytes,
                files: Mutex::default(),
            }),
        })
    }

    /// Writes one file, deleting our oldest ones when the budget demands it.
    ///
    /// # Errors
    /// [`StoreError`]; nothing of a failed write stays behind.
    pub fn write(&self, bytes: &[u8]) -> Result<StoredImage, StoreError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let number = self.reserve(size)?;
        self.fill(number, bytes)
    }

    /// Writes the file that was reserved under this number, which others may evict at any moment.
    fn fill(&self, number: u64, bytes: &[u8]) -> Result<StoredImage, StoreError> {
        let path = self.path(number);
        let mut file = match create_new(&path) {
            Ok(file) => file,
            Err(error) => {
                // What stands there is not ours: give the bytes back, leave the file alone.
                self.files().remove(number);
                return Err(StoreError::Write(error));
            }
        };
        // From here on every way out deletes what was written.
        let image = StoredImage {
            store: self.clone(),
            number,
            path,
        };
        file.write_all(bytes).map_err(StoreError::Write)?;
        // Evicted before it was created, it was not there to be deleted; evicted later, it is gone and no picture any more.
        if image.exists() {
            Ok(image)
        } else {
            Err(StoreError::Evicted)
        }
    }

    /// Counts a file of `size` bytes before it is written, so that two writers cannot both use the last of the budget.
    fn reserve(&self, size: u64) -> Result<u64, StoreError> {
        if size > self.shared.budget_bytes {
            return Err(StoreError::OverBudget {
                bytes: size,
                budget_bytes: self.shared.budget_bytes,
            });
        }
        let mut files = self.files();
        while files.total_bytes.saturating_add(size) > self.shared.budget_bytes {
            let Some((oldest, freed)) = files.sizes.pop_first() else {
                break;
            };
            files.total_bytes -= freed;
            remove(&self.path(oldest));
            tracing::debug!(
                number = oldest,
                bytes = freed,
                "picture deleted for the budget"
            );
        }
        let number = files.next;
        files.next += 1;
        files.sizes.insert(number, size);
        files.total_bytes += size;
        Ok(number)
    }

    fn forget(&self, number: u64, path: &Path) {
        self.files().remove(number);
        // Also when the budget took it out of the table already: that may have been before the file was there. It is ours,
        // since we created it, and its name is never used again.
        remove(path);
    }

    fn path(&self, number: u64) -> PathBuf {
        self.shared
            .directory
            .join(format!("{}-{number}.png", self.shared.prefix))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        // Every section leaves the table consistent, so a panic elsewhere does not make it unusable.
        self.shared
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredImage {
    /// Where it is: absolute, inside the image directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is still ours, i.e. was not deleted for the budget.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.store.files().sizes.contains_key(&self.number)
    }
}

impl Drop for StoredImage {
    fn drop(&mut self) {
        self.store.forget(self.number, &self.path);
    }
}

fn create_new(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        // The host may have purged the directory; then the purpose is served.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(kind = ?error.kind(), "a picture could not be deleted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_lives_as_long_as_its_handle() {
        let directory = tempfile::tempdir().unwrap();
        let store = ImageStore::open(directory.path(), "n", 100).unwrap();
        let image = store.write(b"abc").unwrap();
        assert_eq!(fs::read(image.path()).unwrap(), b"abc");
        drop(image);
        assert_eq!(names(directory.path()), 0);
    }

    #[test]
    fn the_budget_takes_the_oldest_first() {
        let directory = tempfile::tempdir().unwrap();
        let store = ImageStore::open(directory.path(), "n", 10).unwrap();
        let first = store.write(&[0; 4]).unwrap();
        let second = store.write(&[0; 4]).unwrap();
        let third = store.write(&[0; 4]).unwrap();
        assert!(!first.path().exists() && second.path().exists() && third.path().exists());
        let Err(StoreError::OverBudget {
            bytes: 11,
            budget_bytes: 10,
        }) = store.write(&[0; 11])
        else {
            panic!("a picture larger than the budget is refused")
        };
        assert!(second.path().exists(), "a hopeless write deletes nothing");
    }

    /// Two writers at the limit: the budget takes the file of the slower one before it is there.
    #[test]
    fn a_file_that_is_evicted_before_it_exists_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let store = ImageStore::open(directory.path(), "n", 10).unwrap();
        let slow = store.reserve(6).unwrap();
        let fast = store.write(&[0; 6]).unwrap();
        let Err(StoreError::Evicted) = store.fill(slow, &[0; 6]) else {
            panic!("a picture that is not counted is not handed out")
        };
        assert!(fast.path().exists());
        assert_eq!((names(directory.path()), store.files().total_bytes), (1, 6));
        drop(fast);
        assert_eq!((names(directory.path()), store.files().total_bytes), (0, 0));
    }

    #[test]
    fn a_foreign_file_is_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let store = ImageStore::open(directory.path(), "n", 100).unwrap();
        fs::write(directory.path().join("n-0.png"), b"foreign").unwrap();
        let Err(StoreError::Write(_)) = store.write(b"abc") else {
            panic!("an existing file is not overwritten")
        };
        assert_eq!(
            fs::read(directory.path().join("n-0.png")).unwrap(),
            b"foreign"
        );
    }

    #[test]
    fn a_directory_must_be_absolute_existing_and_writable() {
        assert!(matches!(
            ImageStore::open(Path::new("images"), "n", 1),
            Err(OpenError::Relative)
        ));
        assert!(matches!(
            ImageStore::open(Path::new("/does/not/exist"), "n", 1),
            Err(OpenError::Unusable(_))
        ));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(
            ImageStore::open(file.path(), "n", 1),
            Err(OpenError::Unusable(_))
        ));
    }
}
