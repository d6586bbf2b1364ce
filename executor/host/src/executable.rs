//! From a configured path to the one file that will run.
//!
//! The path's links are resolved once and the file is opened once; everything after that is about the descriptor. What runs is a
//! private copy, hashed while it was written, in a folder only this user can change: whoever swaps the original between the check
//! and the start changes nothing (field report H17).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use sha2::{Digest as _, Sha256};

use crate::failure::StartFailure;
use crate::options::ExecutableDigest;
use crate::status::{Pin, PinKind};

const COPY_NAME: &str = "maka-cu";
const CHUNK: usize = 256 * 1024;

/// A file that may be executed, and why it cannot be swapped.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) path: PathBuf,
    pub(crate) pin: Pin,
}

/// Resolves, checks, hashes and, outside signed bundles, copies the executable. Blocks on the disk.
pub(crate) fn prepare(
    binary: &Path,
    expected: Option<ExecutableDigest>,
    state_dir: &Path,
) -> Result<Prepared, StartFailure> {
    let (path, mut file) = open(binary)?;
    check_format(&path, &mut file)?;
    let unreadable = |source| StartFailure::Unreadable {
        path: path.clone(),
        source,
    };
    let actual = hash(&mut file).map_err(unreadable)?;
    if let Some(expected) = expected
        && expected != actual
    {
        return Err(StartFailure::WrongDigest { expected, actual });
    }
    let pin = |kind| Pin {
        digest: actual,
        kind,
        pinned: expected.is_some(),
    };
    if runs_in_place(&path) {
        check_owners(&path)?;
        return Ok(Prepared {
            pin: pin(PinKind::InPlace),
            path,
        });
    }
    file.rewind().map_err(unreadable)?;
    let copy = private_copy(&mut file, actual, state_dir)?;
    Ok(Prepared {
        path: copy,
        pin: pin(PinKind::PrivateCopy),
    })
}

/// Whether programs do not run from there.
#[cfg(target_os = "linux")]
pub(crate) fn is_noexec(path: &Path) -> bool {
    use nix::sys::statvfs::{FsFlags, statvfs};

    statvfs(path).is_ok_and(|filesystem| filesystem.flags().contains(FsFlags::ST_NOEXEC))
}

/// Other systems do not tell; a refused exec is then a failure to spawn.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_noexec(_path: &Path) -> bool {
    false
}

/// Opens the file the path leads to, without waiting for pipes or devices that pose as one.
fn open(binary: &Path) -> Result<(PathBuf, File), StartFailure> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => StartFailure::BinaryMissing {
            path: binary.to_owned(),
        },
        _ => StartFailure::Unreadable {
            path: binary.to_owned(),
            source,
        },
    };
    let path = fs::canonicalize(binary).map_err(failed)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(&path)
        .map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(StartFailure::NotRegular { path });
    }
    // The bits tell what the owner wanted; root could otherwise "execute" anything with a single bit set.
    if found.mode() & 0o111 == 0
        || nix::unistd::access(&path, nix::unistd::AccessFlags::X_OK).is_err()
    {
        return Err(StartFailure::NotExecutable { path });
    }
    Ok((path, file))
}

/// Refuses what the C library's exec would hand to a shell: text without an interpreter line.
fn check_format(path: &Path, file: &mut File) -> Result<(), StartFailure> {
    const MAGICS: [&[u8]; 6] = [
        b"\x7fELF",
        b"#!",
        b"\xcf\xfa\xed\xfe", // Mach-O, 64 bit
        b"\xca\xfe\xba\xbe", // Mach-O, universal
        b"\xca\xfe\xba\xbf", // Mach-O, universal, 64-bit offsets
        b"\xce\xfa\xed\xfe", // Mach-O, 32 bit
    ];
    let mut head = Vec::with_capacity(4);
    file.take(4)
        .read_to_end(&mut head)
        .and_then(|_| file.rewind())
        .map_err(|source| StartFailure::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    if MAGICS.iter().any(|magic| head.starts_with(magic)) {
        Ok(())
    } else {
        Err(StartFailure::WrongFormat {
            path: path.to_owned(),
        })
    }
}

fn hash(file: &mut File) -> io::Result<ExecutableDigest> {
    copy_hashed(file, &mut io::sink())
}

fn copy_hashed(from: &mut impl Read, to: &mut impl Write) -> io::Result<ExecutableDigest> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(ExecutableDigest::from_bytes(hasher.finalize().into())),
            Ok(length) => {
                hasher.update(&chunk[..length]);
                to.write_all(&chunk[..length])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Programs inside a signed bundle lose their identity, and with it their permissions, when they run from elsewhere.
fn runs_in_place(path: &Path) -> bool {
    cfg!(target_os = "macos")
        && path
            .ancestors()
            .any(|folder| folder.extension().is_some_and(|it| it == "app"))
}

/// The file and every folder above it, up to and including the bundle, belong to root or us and to nobody else.
fn check_owners(path: &Path) -> Result<(), StartFailure> {
    for step in path.ancestors() {
        let safe = fs::symlink_metadata(step).is_ok_and(|found| {
            let owner = found.uid();
            (owner == 0 || owner == nix::unistd::geteuid().as_raw()) && found.mode() & 0o022 == 0
        });
        if !safe {
            return Err(StartFailure::UnsafeInPlace {
                path: path.to_owned(),
            });
        }
        if step.extension().is_some_and(|it| it == "app") {
            break;
        }
    }
    Ok(())
}

/// `<state>/executors/<sha256>/maka-cu` with exactly the content of `digest`.
fn private_copy(
    file: &mut File,
    digest: ExecutableDigest,
    state_dir: &Path,
) -> Result<PathBuf, StartFailure> {
    let executors = state_dir.join("executors");
    let folder = executors.join(digest.to_string());
    for path in [state_dir, &executors, &folder] {
        private_folder(path)?;
    }
    if is_noexec(&folder) {
        return Err(StartFailure::StateDirNoexec {
            path: state_dir.to_owned(),
        });
    }
    let copy = folder.join(COPY_NAME);
    let failed = |source| StartFailure::StateDir {
        path: folder.clone(),
        source,
    };
    if is_intact(&copy, digest) {
        return Ok(copy);
    }
    install(file, digest, &folder, &copy).map_err(failed)?;
    Ok(copy)
}

/// An existing copy is believed only after hashing it again.
fn is_intact(copy: &Path, digest: ExecutableDigest) -> bool {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(copy);
    opened.is_ok_and(|mut file| {
        let private = file.metadata().is_ok_and(|found| {
            found.is_file()
                && found.mode() & 0o7777 == 0o500
                && found.uid() == nix::unistd::geteuid().as_raw()
        });
        private && hash(&mut file).is_ok_and(|actual| actual == digest)
    })
}

/// Writes beside the final name and renames, so that no half copy ever has the name.
fn install(
    file: &mut File,
    digest: ExecutableDigest,
    folder: &Path,
    copy: &Path,
) -> io::Result<()> {
    static SERIAL: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let draft = folder.join(format!(".draft-{}-{serial}", std::process::id()));
    let written = (|| {
        let mut to = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&draft)?;
        if copy_hashed(file, &mut to)? != digest {
            return Err(io::Error::other("the executor changed while it was copied"));
        }
        to.set_permissions(fs::Permissions::from_mode(0o500))?;
        to.sync_all()?;
        drop(to);
        fs::rename(&draft, copy)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // The failure is what counts; a draft that stays behind only costs room.
        drop(fs::remove_file(&draft));
    }
    written
}

/// Makes the folder if needed and insists that it is ours alone to change.
fn private_folder(path: &Path) -> Result<(), StartFailure> {
    let failed = |source| StartFailure::StateDir {
        path: path.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed)?;
    let found = fs::metadata(path).map_err(failed)?;
    if found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(StartFailure::StateDirUnsafe {
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Rig {
        home: tempfile::TempDir,
    }

    impl Rig {
        fn new() -> Self {
            Self {
                home: tempfile::tempdir().unwrap(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.home.path().join(name)
        }

        fn file(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
            let path = self.path(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        fn prepare(
            &self,
            binary: &Path,
            expected: Option<ExecutableDigest>,
        ) -> Result<Prepared, StartFailure> {
            prepare(binary, expected, &self.path("state"))
        }
    }

    fn digest(content: &[u8]) -> ExecutableDigest {
        ExecutableDigest::from_bytes(Sha256::digest(content).into())
    }

    const SCRIPT: &[u8] = b"#!/bin/sh\nexit 0\n";

    #[test]
    fn each_unusable_file_has_its_own_reason() {
        let rig = Rig::new();
        let folder = rig.path("folder");
        fs::create_dir(&folder).unwrap();
        let fifo = rig.path("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let rows = [
            (rig.path("absent"), "binary_missing"),
            (folder, "binary_not_regular"),
            (fifo, "binary_not_regular"),
            (rig.file("plain", SCRIPT, 0o600), "binary_not_executable"),
            (rig.file("text", b"exit 0\n", 0o700), "binary_wrong_format"),
            (rig.file("empty", b"", 0o700), "binary_wrong_format"),
        ];
        for (path, reason) in rows {
            assert_eq!(
                rig.prepare(&path, None).unwrap_err().reason(),
                reason,
                "{}",
                path.display()
            );
        }
        let good = rig.file("good", SCRIPT, 0o700);
        let failure = rig.prepare(&good, Some(digest(b"another"))).unwrap_err();
        assert_eq!(failure.reason(), "wrong_digest");
    }

    /// Field report H17: what runs is what was hashed, whatever happens to the links and their target afterwards.
    #[test]
    fn the_copy_is_private_and_survives_a_swap() {
        let rig = Rig::new();
        let target = rig.file("target v1", SCRIPT, 0o755);
        let (inner, outer) = (rig.path("inner"), rig.path("outer link"));
        std::os::unix::fs::symlink(&target, &inner).unwrap();
        std::os::unix::fs::symlink(&inner, &outer).unwrap();
        let prepared = rig.prepare(&outer, Some(digest(SCRIPT))).unwrap();
        fs::write(&target, b"#!/bin/false\n").unwrap();

        assert_eq!(
            prepared.pin,
            Pin {
                digest: digest(SCRIPT),
                kind: PinKind::PrivateCopy,
                pinned: true
            }
        );
        assert_eq!(
            prepared.path,
            rig.path("state/executors")
                .join(digest(SCRIPT).to_string())
                .join("maka-cu")
        );
        assert_eq!(fs::read(&prepared.path).unwrap(), SCRIPT);
        assert_eq!(fs::metadata(&prepared.path).unwrap().mode() & 0o7777, 0o500);
        assert_eq!(
            fs::metadata(rig.path("state/executors")).unwrap().mode() & 0o7777,
            0o700
        );
        let swapped = rig.prepare(&outer, Some(digest(SCRIPT))).unwrap_err();
        assert_eq!(swapped.reason(), "wrong_digest");
    }

    #[test]
    fn an_existing_copy_is_kept_when_intact_and_replaced_when_not() {
        let rig = Rig::new();
        let binary = rig.file("binary", SCRIPT, 0o755);
        let copy = rig.prepare(&binary, None).unwrap().path;
        let inode = fs::metadata(&copy).unwrap().ino();
        assert_eq!(rig.prepare(&binary, None).unwrap().path, copy);
        assert_eq!(fs::metadata(&copy).unwrap().ino(), inode);
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&copy, b"#!/bin/false\n").unwrap();
        rig.prepare(&binary, None).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), SCRIPT);
        let names: Vec<_> = fs::read_dir(copy.parent().unwrap())
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(names, [COPY_NAME]);
    }

    #[test]
    fn a_state_folder_that_others_can_change_is_refused() {
        let rig = Rig::new();
        let binary = rig.file("binary", SCRIPT, 0o755);
        fs::create_dir(rig.path("state")).unwrap();
        fs::set_permissions(rig.path("state"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            rig.prepare(&binary, None).unwrap_err().reason(),
            "state_dir_unsafe"
        );
    }

    #[test]
    fn owners_are_checked_up_to_the_bundle() {
        let rig = Rig::new();
        let bundle = rig.path("Maka.app");
        fs::create_dir_all(bundle.join("Contents/MacOS")).unwrap();
        let binary = rig.file("Maka.app/Contents/MacOS/maka-cu", SCRIPT, 0o755);
        check_owners(&binary).unwrap();
        fs::set_permissions(bundle.join("Contents"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(check_owners(&binary).unwrap_err().reason(), "binary_unsafe");
    }
}
