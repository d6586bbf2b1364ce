//! Trusting an image file the executor wrote (spec 4.8, 10.3).
//!
//! Owns the way from an [`ImageRef`] in an answer to bytes that may be shown: which file is opened, how much of it is read, and what
//! has to be true of it. Nothing the executor says about an image is believed: the path is walked without following a link, only a
//! regular file is read, and length, hash, format and size have to be those of the answer. It keeps no image and deletes none.
//!
//! Three different things can be wrong, and they stay apart:
//! - The file is gone or too large: no picture ([`FrameError::Unreadable`], [`FrameError::TooLarge`]), and nobody's fault.
//! - The file is not what was said: the protocol is broken ([`FrameError::Violation`] names the field). Hand it to
//!   [`report_violation`](crate::MakaCuService::report_violation), which ends the executor.
//! - The picture is true and of little use: it is of one color ([`Frame::uniform`]), or its size does not fit the window
//!   ([`geometry`]). That is a flag. Elements can still be acted on.

mod budget;
mod open;
mod sniff;
mod uniform;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use maka_cu_protocol::geometry::ScreenRect;
use maka_cu_protocol::ids::Digest;
use maka_cu_protocol::image::ImageRef;
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::sets::ImageFormat;
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::displays::PixelSize;

pub use budget::{COMPRESS_ABOVE_BYTES, Compressed, Compressor, FRAME_MAX_BYTES, SOURCE_MAX_BYTES};

/// A picture that is what the executor said.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// The encoded bytes.
    pub bytes: Vec<u8>,
    /// How they are encoded: as announced, unless a compressor chose another way.
    pub format: ImageFormat,
    /// Whether there is anything to see.
    pub uniformity: Uniformity,
}

impl Frame {
    /// Whether the picture is known to be of one color. What could not be judged is not.
    #[must_use]
    pub fn uniform(&self) -> bool {
        self.uniformity == Uniformity::Uniform
    }
}

impl std::fmt::Debug for Frame {
    /// Leaves the picture out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame")
            .field("length", &self.bytes.len())
            .field("format", &self.format)
            .field("uniformity", &self.uniformity)
            .finish()
    }
}

/// Whether a picture shows anything. A minimised window, a locked screen or a window of the wrong kind in front gives a picture
/// that is valid and empty (field reports C4, C7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Uniformity {
    /// At least 99.5 % of the pixels are of one color.
    Uniform,
    /// They are not.
    Varied,
    /// It could not be judged: the picture is a JPEG, has more than 2²⁶ pixels or a side above 65 536, or could not be decoded.
    Unknown,
}

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The file is gone, or the system does not let it be read.
    #[error("the image cannot be read")]
    Unreadable,
    /// Larger than the frame budget; it was not delivered. Observing without an image still works.
    #[error("the image is larger than the frame budget")]
    TooLarge,
    /// The file is not what the executor said it is.
    #[error("the image is not what the executor said it is")]
    Violation(#[source] Violation),
}

/// Reads an image and verifies it. Blocks, and may decode up to 2²⁶ pixels: for a thread that may; [`load`] finds one.
///
/// # Errors
/// See [`FrameError`].
pub fn read(image_dir: &Path, image: &ImageRef) -> Result<Frame, FrameError> {
    read_up_to(image_dir, image, FRAME_MAX_BYTES)
}

/// As [`read`], for pictures that may be made smaller first (spec 10.3).
///
/// # Errors
/// See [`FrameError`]; [`FrameError::TooLarge`] is said of what is left after compression, and unread of what is larger than
/// [`SOURCE_MAX_BYTES`].
pub fn read_compressed(
    image_dir: &Path,
    image: &ImageRef,
    compressor: &dyn Compressor,
) -> Result<Frame, FrameError> {
    let frame = read_up_to(image_dir, image, SOURCE_MAX_BYTES)?;
    budget::fit(frame, size(image), compressor)
}

/// [`read`] on a thread that may block.
///
/// # Errors
/// See [`FrameError`].
pub async fn load(image_dir: PathBuf, image: ImageRef) -> Result<Frame, FrameError> {
    spawn_blocking(move || read(&image_dir, &image))
        .await
        // A reader that panicked has read nothing.
        .unwrap_or(Err(FrameError::Unreadable))
}

fn read_up_to(image_dir: &Path, image: &ImageRef, max_bytes: u64) -> Result<Frame, FrameError> {
    if image.byte_length > max_bytes {
        return Err(FrameError::TooLarge);
    }
    let mut file = open::regular_file(image_dir, image.path.as_path())?;
    let bytes = whole(&mut file, image.byte_length)?;
    still(&file, image.byte_length)?;
    if Digest::of(&bytes) != image.sha256 {
        return Err(violation("image.sha256", Reason::Mismatch));
    }
    if sniff::format(&bytes) != Some(image.format) {
        return Err(violation("image.format", Reason::Mismatch));
    }
    // A header without a size is none of this format.
    let seen = sniff::size(&bytes, image.format)
        .ok_or_else(|| violation("image.format", Reason::Mismatch))?;
    if seen.width != image.width_px {
        return Err(violation("image.widthPx", Reason::Mismatch));
    }
    if seen.height != image.height_px {
        return Err(violation("image.heightPx", Reason::Mismatch));
    }
    Ok(Frame {
        uniformity: uniform::judge(&bytes, image.format, seen),
        format: image.format,
        bytes,
    })
}

/// Reads what was announced. A file of another length is found out before or after its first surplus byte, and not read on.
fn whole(file: &mut File, announced: u64) -> Result<Vec<u8>, FrameError> {
    still(file, announced)?;
    let length = usize::try_from(announced).map_err(|_| FrameError::TooLarge)?;
    let mut bytes = Vec::with_capacity(length + 1);
    file.take(announced + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| FrameError::Unreadable)?;
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(violation("image.byteLength", Reason::Mismatch))
    }
}

/// The file has the announced length now: a reader asks before and after, so that one that grows or shrinks meanwhile is noticed.
fn still(file: &File, announced: u64) -> Result<(), FrameError> {
    match file.metadata() {
        Ok(metadata) if metadata.len() == announced => Ok(()),
        Ok(_) => Err(violation("image.byteLength", Reason::Mismatch)),
        Err(_) => Err(FrameError::Unreadable),
    }
}

fn violation(field: &str, reason: Reason) -> FrameError {
    FrameError::Violation(Violation::of(field, reason))
}

fn size(image: &ImageRef) -> PixelSize {
    PixelSize {
        width: image.width_px,
        height: image.height_px,
    }
}

/// Whether pixels of a picture can be turned into places on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// The picture's size is that of the window at the announced scale.
    Consistent,
    /// It is not. Which pixel is which place is not known: no coordinate of this picture may be acted on.
    Inconsistent,
}

/// Compares a picture's size with the window or display it shows (field report B1).
///
/// The scale is measured as width in pixels per width in points (spec 4.8), so the width may differ from `width · scale` by one
/// pixel, for a window whose edges lie between pixels. Half a pixel of error in that measure is carried to the height, stretched by
/// the ratio of the sides: the height may differ by one pixel and half of that ratio.
#[must_use]
pub fn geometry(image: &ImageRef, bounds: ScreenRect) -> Geometry {
    let (width, height, scale) = (bounds.width(), bounds.height(), image.scale);
    let sound = scale.is_finite() && scale > 0.0 && width > 0.0 && height > 0.0;
    let off_by = |pixels: u32, extent: f64| (f64::from(pixels) - extent * scale).abs();
    let fits = sound
        && off_by(image.width_px, width) <= 1.0
        && off_by(image.height_px, height) <= 1.0 + height / width / 2.0;
    if fits {
        Geometry::Consistent
    } else {
        Geometry::Inconsistent
    }
}

#[cfg(test)]
mod tests;
