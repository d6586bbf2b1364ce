//! Images: which ones a session may fetch, and for how long.
//!
//! What an image file is held to before a byte of it is believed is the business of [`maka_cu_host::frame`].

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use maka_cu_host::frame::{self, Frame, FrameError, Geometry, Uniformity, geometry};
use maka_cu_protocol::geometry::ScreenRect;
use maka_cu_protocol::ids::SnapshotId;
use maka_cu_protocol::image::ImageRef;
use maka_cu_protocol::sets::ImageFormat;
use tokio::time::Instant;

use super::answer::{ImageId, ImageInfo};
use super::conditions::PixelRect;
use super::paint::paint;

/// Above this an image travels only by `ReadImage` (proto, `Image`).
pub const INLINE_MAX_BYTES: u64 = 2 * 1024 * 1024;

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

/// Where the bytes of an image are, and what the executor said they are.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) image_dir: PathBuf,
    pub(crate) image: ImageRef,
    pub(crate) generation: u64,
    /// Parts that are painted over before any byte is shown.
    pub(crate) paint: Arc<[PixelRect]>,
}

impl Stored {
    /// Names an image of an answer. The name says nothing about the file and cannot be guessed. Nobody can fetch the
    /// image before [`Images::add`], which comes after the answer was released.
    /// `shows` is the window it is of, when it is of one.
    pub(crate) fn new(
        source: Source,
        snapshot: Option<(SnapshotId, ScreenRect)>,
        expires: Instant,
    ) -> Self {
        let image = &source.image;
        let size_mismatch = snapshot
            .as_ref()
            .is_some_and(|(_, bounds)| geometry(image, *bounds) == Geometry::Inconsistent);
        let info = ImageInfo {
            image_id: ImageId(format!("img_{}", super::random_hex())),
            format: image.format,
            width_px: image.width_px,
            height_px: image.height_px,
            byte_length: image.byte_length,
            sha256: image.sha256,
            scale: image.scale,
            uniform: None,
            size_mismatch,
        };
        Self {
            info,
            source,
            snapshot: snapshot.map(|(id, _)| id),
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

/// Reads an image, verifies it, and paints over what is kept back. Blocks: for a thread that may.
pub(crate) fn read(source: &Source) -> Result<Frame, FrameError> {
    let frame = frame::read(&source.image_dir, &source.image)?;
    if source.paint.is_empty() {
        return Ok(frame);
    }
    let painted = match frame.format {
        ImageFormat::Png => paint(&frame.bytes, &source.paint),
        // Nothing here decodes one, so none of it may be shown.
        ImageFormat::Jpeg => None,
    };
    Ok(Frame {
        bytes: painted.ok_or(FrameError::Unreadable)?,
        format: ImageFormat::Png,
        // It was judged with what is painted over now.
        uniformity: Uniformity::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::ids::Digest;

    use super::*;

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
            image: image.clone(),
            generation: 1,
            paint: Arc::new([]),
        };
        let frame = SnapshotId::try_new("snap").unwrap();
        let bounds = ScreenRect::try_new(0.0, 0.0, 1.0, 1.0).unwrap();
        let framed = Stored::new(source(), Some((frame, bounds)), later);
        let screen = Stored::new(source(), None, later);
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
            images.add(Stored::new(source(), None, later));
        }
        assert_eq!(images.oldest_first.len(), IMAGES_MAX);
        assert!(images.find(&screen, now).is_none());
    }
}
