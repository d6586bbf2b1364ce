//! Images: which ones a session may fetch, and reading one without trusting its path.
//!
//! A path from the executor is untrusted. It is walked step by step from the image folder with every link refused, must
//! end at a regular file, and its bytes count only when length and hash are those of the answer. What is larger than
//! [`IMAGE_MAX_BYTES`] is not read at all.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use maka_cu_protocol::ids::{Digest, SnapshotId};
use maka_cu_protocol::image::ImageRef;
use maka_cu_protocol::json::{Reason, Violation};
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use tokio::time::Instant;

use super::answer::{ImageId, ImageInfo};

/// Above this an image travels only by `ReadImage` (proto, `Image`).
pub const INLINE_MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The frame budget (spec maka-cu §10.3): a larger image is no picture but a failed capture.
pub const IMAGE_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Images that one session may fetch at a time; the oldest gives way. Frames live by tens at most.
const IMAGES_MAX: usize = 128;

/// An image that may be fetched.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) info: ImageInfo,
    pub(crate) source: Source,
    /// The frame it belongs to; nothing for a picture of a display.
    pub(crate) snapshot: Option<SnapshotId>,
    pub(crate) expires: Instant,
}

/// Where the bytes of an image are.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) image_dir: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) generation: u64,
}

impl Stored {
    /// Names an image of an answer. The name says nothing about the file and cannot be guessed. Nobody can fetch the
    /// image before [`Images::add`], which comes after the answer was released.
    pub(crate) fn new(
        image: &ImageRef,
        source: Source,
        snapshot: Option<SnapshotId>,
        expires: Instant,
    ) -> Self {
        let info = ImageInfo {
            image_id: ImageId(format!("img_{}", super::random_hex())),
            format: image.format,
            width_px: image.width_px,
            height_px: image.height_px,
            byte_length: image.byte_length,
            sha256: image.sha256,
            scale: image.scale,
        };
        Self {
            info,
            source,
            snapshot,
            expires,
        }
    }
}

/// The images of one session.
#[derive(Debug, Default)]
pub(crate) struct Images {
    oldest_first: VecDeque<Stored>,
}

impl Images {
    /// Lets an image be fetched.
    pub(crate) fn add(&mut self, image: Stored) {
        if self.oldest_first.len() >= IMAGES_MAX {
            self.oldest_first.pop_front();
        }
        self.oldest_first.push_back(image);
    }

    /// The image of this name, while it may be fetched.
    pub(crate) fn find(&self, id: &ImageId, now: Instant) -> Option<Stored> {
        self.oldest_first
            .iter()
            .find(|stored| stored.info.image_id == *id && stored.expires > now)
            .cloned()
    }

    /// Drops what expired and every image whose frame is not held any more.
    pub(crate) fn retain(&mut self, now: Instant, is_held: impl Fn(&SnapshotId) -> bool) {
        self.oldest_first
            .retain(|stored| stored.expires > now && stored.snapshot.as_ref().is_none_or(&is_held));
    }

    pub(crate) fn clear(&mut self) {
        self.oldest_first.clear();
    }
}

/// Why an image has no bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ReadError {
    /// The file is gone, or the system does not let it be read.
    Unreadable,
    /// Larger than [`IMAGE_MAX_BYTES`].
    TooLarge,
    /// The file is not what the executor said: the protocol is broken.
    Violation(Violation),
}

/// Reads an image and verifies it. Blocks: for a thread that may.
pub(crate) fn read(source: &Source, info: &ImageInfo) -> Result<Vec<u8>, ReadError> {
    if info.byte_length > IMAGE_MAX_BYTES {
        return Err(ReadError::TooLarge);
    }
    let file = open_inside(&source.image_dir, &source.path)?;
    let metadata = file.metadata().map_err(|_| ReadError::Unreadable)?;
    if !metadata.is_file() {
        return Err(violation("image.path", Reason::OutsideImageDir));
    }
    let length = usize::try_from(info.byte_length).map_err(|_| ReadError::TooLarge)?;
    let mut bytes = Vec::with_capacity(length + 1);
    // One byte more than there should be, so that a longer file is noticed and never read.
    file.take(info.byte_length + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| ReadError::Unreadable)?;
    if bytes.len() != length {
        return Err(violation("image.byteLength", Reason::Mismatch));
    }
    if Digest::of(&bytes) != info.sha256 {
        return Err(violation("image.sha256", Reason::Mismatch));
    }
    Ok(bytes)
}

fn violation(field: &str, reason: Reason) -> ReadError {
    ReadError::Violation(Violation::of(field, reason))
}

/// Opens a file below a folder, following no link below it. A pipe does not block the opening.
fn open_inside(folder: &Path, path: &Path) -> Result<File, ReadError> {
    let outside = || violation("image.path", Reason::OutsideImageDir);
    let steps = path.strip_prefix(folder).map_err(|_| outside())?;
    let mut steps = steps.components().peekable();
    let common = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let mut here = open(folder, common | OFlag::O_DIRECTORY, Mode::empty())
        .map_err(|_| ReadError::Unreadable)?;
    while let Some(step) = steps.next() {
        let Component::Normal(name) = step else {
            return Err(outside());
        };
        let kind = if steps.peek().is_some() {
            OFlag::O_DIRECTORY
        } else {
            OFlag::O_NONBLOCK | OFlag::O_NOCTTY
        };
        here = step_into(&here, Path::new(name), common | kind)?;
        if steps.peek().is_none() {
            return Ok(File::from(here));
        }
    }
    Err(outside())
}

fn step_into(here: &OwnedFd, name: &Path, flags: OFlag) -> Result<OwnedFd, ReadError> {
    openat(here, name, flags, Mode::empty()).map_err(|errno| match errno {
        // O_NOFOLLOW met a link: nothing that the executor may hand out.
        nix::errno::Errno::ELOOP | nix::errno::Errno::ENOTDIR => {
            violation("image.path", Reason::OutsideImageDir)
        }
        _ => ReadError::Unreadable,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use maka_cu_protocol::sets::ImageFormat;

    use super::*;

    fn info(bytes: &[u8]) -> ImageInfo {
        ImageInfo {
            image_id: ImageId::new("img_1"),
            format: ImageFormat::Png,
            width_px: 1,
            height_px: 1,
            byte_length: bytes.len() as u64,
            sha256: Digest::of(bytes),
            scale: 1.0,
        }
    }

    /// Containment (spec maka-cu §4.8): only a regular file, reached without a link, with the right bytes.
    #[test]
    fn only_the_announced_bytes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let dir = folder.path().canonicalize().unwrap();
        let out = outside.path().canonicalize().unwrap();
        std::fs::write(dir.join("good"), b"picture").unwrap();
        std::fs::create_dir(dir.join("sub")).unwrap();
        std::fs::write(dir.join("sub/good"), b"picture").unwrap();
        std::fs::write(out.join("secret"), b"picture").unwrap();
        symlink(out.join("secret"), dir.join("link")).unwrap();
        symlink(&out, dir.join("linked")).unwrap();
        nix::unistd::mkfifo(&dir.join("pipe"), Mode::S_IRWXU).unwrap();

        let check = |path: PathBuf, said: &[u8]| {
            read(
                &Source {
                    image_dir: dir.clone(),
                    path,
                    generation: 1,
                },
                &info(said),
            )
        };
        let broken = |field: &str, reason| Err(ReadError::Violation(Violation::of(field, reason)));
        assert_eq!(check(dir.join("good"), b"picture"), Ok(b"picture".to_vec()));
        assert_eq!(
            check(dir.join("sub/good"), b"picture"),
            Ok(b"picture".to_vec())
        );
        assert_eq!(
            check(dir.join("gone"), b"picture"),
            Err(ReadError::Unreadable)
        );
        for path in ["link", "linked/secret", "sub", "pipe", "../x", ""] {
            assert_eq!(
                check(dir.join(path), b"picture"),
                broken("image.path", Reason::OutsideImageDir),
                "{path}"
            );
        }
        assert_eq!(
            check(out.join("secret"), b"picture"),
            broken("image.path", Reason::OutsideImageDir)
        );
        assert_eq!(
            check(dir.join("good"), b"picturE"),
            broken("image.sha256", Reason::Mismatch)
        );
        for said in [&b"pictur"[..], b"picture!"] {
            assert_eq!(
                check(dir.join("good"), said),
                broken("image.byteLength", Reason::Mismatch)
            );
        }
        let huge = ImageInfo {
            byte_length: IMAGE_MAX_BYTES + 1,
            ..info(b"")
        };
        let source = Source {
            image_dir: dir.clone(),
            path: dir.join("good"),
            generation: 1,
        };
        assert_eq!(read(&source, &huge), Err(ReadError::TooLarge));
    }

    #[test]
    fn images_go_with_their_frames_and_their_time() {
        let (mut images, now) = (Images::default(), Instant::now());
        let later = now + std::time::Duration::from_secs(1);
        let image = ImageRef {
            path: maka_cu_protocol::image::AbsolutePath::try_new("/images/1").unwrap(),
            format: ImageFormat::Png,
            width_px: 1,
            height_px: 1,
            byte_length: 1,
            sha256: Digest::of(b""),
            scale: 1.0,
        };
        let source = || Source {
            image_dir: "/images".into(),
            path: "/images/1".into(),
            generation: 1,
        };
        let frame = SnapshotId::try_new("snap").unwrap();
        let framed = Stored::new(&image, source(), Some(frame), later);
        let screen = Stored::new(&image, source(), None, later);
        let ids = (framed.info.image_id.clone(), screen.info.image_id.clone());
        assert!(
            images.find(&ids.0, now).is_none(),
            "not before it is released"
        );
        assert_ne!(ids.0, ids.1);
        assert_eq!(ids.0.as_str().len(), "img_".len() + 32, "128 random bits");
        images.add(framed);
        images.add(screen);
        let (framed, screen) = ids;
        assert!(images.find(&framed, now).is_some() && images.find(&screen, now).is_some());
        assert!(images.find(&framed, later).is_none());
        images.retain(now, |_| false);
        assert!(images.find(&framed, now).is_none() && images.find(&screen, now).is_some());
        for _ in 0..=IMAGES_MAX {
            images.add(Stored::new(&image, source(), None, later));
        }
        assert_eq!(images.oldest_first.len(), IMAGES_MAX);
        assert!(images.find(&screen, now).is_none());
    }
}
