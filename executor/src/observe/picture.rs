//! Pictures of windows and displays, on disk and as references (spec §4.8).

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::ScreenRect;
use maka_cu_protocol::ids::Digest;
use maka_cu_protocol::image::{AbsolutePath, ImageRef};
use maka_cu_protocol::sets::{CaptureScope, ImageFormat};
use maka_cu_protocol::snapshot::DisplayInfo;

use crate::backend::bitmap::Bitmap;
use crate::backend::desktop::WindowInfo;
use crate::deadline::Deadline;
use crate::executor::{Executor, Fault};
use crate::image::encode;
use crate::image::store::StoredImage;

/// A picture that was written.
#[derive(Debug)]
pub struct Picture {
    /// For the wire.
    pub reference: ImageRef,
    /// Owner of the file.
    pub file: StoredImage,
}

/// A picture of a window, as the session's scope wants it.
///
/// `window`: the window's own content, also where it is covered. `desktop`: the part of the display that the window
/// occupies, with whatever lies above it; the window must lie wholly on one display then, since a picture has no padding.
///
/// # Errors
/// `capture_failed`, `image_write_failed`, `permission_missing`, `window_gone`, `timeout`.
pub fn of_window(
    executor: &Executor,
    scope: CaptureScope,
    window: &WindowInfo,
    displays: &[DisplayInfo],
    deadline: &Deadline,
) -> Result<Picture, Fault> {
    let bitmap = match scope {
        CaptureScope::Window => executor.backend().capture_window(window.key, deadline)?,
        CaptureScope::Desktop => {
            let display = displays
                .iter()
                .find(|display| encloses(display.logical_bounds, window.bounds))
                .ok_or(DomainCode::CaptureFailed)?;
            let screen = executor
                .backend()
                .capture_display(&display.display_id, deadline)?;
            part(&screen, display, window.bounds).ok_or(DomainCode::CaptureFailed)?
        }
    };
    write(executor, &bitmap, window.bounds.width())
}

/// Encodes and stores a bitmap that shows `logical_width` points of the screen.
///
/// # Errors
/// `capture_failed` when it cannot be encoded, `image_write_failed` when it cannot be stored.
pub fn write(executor: &Executor, bitmap: &Bitmap, logical_width: f64) -> Result<Picture, Fault> {
    let bytes = encode::png(bitmap).map_err(|error| {
        tracing::warn!(%error, "a picture could not be encoded");
        DomainCode::CaptureFailed
    })?;
    let file = executor.host().images.write(&bytes).map_err(|error| {
        tracing::warn!(%error, bytes = bytes.len(), "a picture could not be stored");
        DomainCode::ImageWriteFailed
    })?;
    let path = AbsolutePath::of_path(file.path()).map_err(|error| {
        tracing::warn!(%error, "a picture has a path that cannot be sent");
        DomainCode::ImageWriteFailed
    })?;
    let reference = ImageRef {
        path,
        format: ImageFormat::Png,
        width_px: bitmap.width(),
        height_px: bitmap.height(),
        byte_length: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        sha256: Digest::of(&bytes),
        // A window without width has no scale; zero says so, and no point of it can be acted on.
        scale: if logical_width > 0.0 {
            f64::from(bitmap.width()) / logical_width
        } else {
            0.0
        },
    };
    Ok(Picture { reference, file })
}

fn encloses(outer: ScreenRect, inner: ScreenRect) -> bool {
    inner.x() >= outer.x()
        && inner.y() >= outer.y()
        && inner.x() + inner.width() <= outer.x() + outer.width()
        && inner.y() + inner.height() <= outer.y() + outer.height()
}

/// The pixels of a display's picture that show `area`.
fn part(screen: &Bitmap, display: &DisplayInfo, area: ScreenRect) -> Option<Bitmap> {
    let scale = f64::from(screen.width()) / display.logical_bounds.width();
    let left = pixel((area.x() - display.logical_bounds.x()) * scale)?;
    let top = pixel((area.y() - display.logical_bounds.y()) * scale)?;
    screen.crop(
        left,
        top,
        pixel(area.width() * scale)?,
        pixel(area.height() * scale)?,
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number in range"
)]
fn pixel(position: f64) -> Option<u32> {
    let rounded = position.round();
    (0.0..=f64::from(u32::MAX))
        .contains(&rounded)
        .then_some(rounded as u32)
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::geometry::ImageRect;
    use maka_cu_protocol::ids::DisplayId;

    use super::*;
    use crate::backend::bitmap::PixelLayout;

    #[test]
    fn a_part_of_a_scaled_display_is_cut_at_pixels() {
        let display = DisplayInfo {
            display_id: DisplayId::try_new("2").unwrap(),
            logical_bounds: ScreenRect::try_new(-2.0, 0.0, 2.0, 2.0).unwrap(),
            source_bounds_px: ImageRect::try_new(0.0, 0.0, 4.0, 4.0).unwrap(),
            scale_factor: 2.0,
        };
        let screen = Bitmap::try_new(4, 4, PixelLayout::Rgb8, (0..48).collect()).unwrap();
        let area = ScreenRect::try_new(-1.0, 1.0, 1.0, 1.0).unwrap();
        assert!(encloses(display.logical_bounds, area));
        let cut = part(&screen, &display, area).unwrap();
        assert_eq!(
            (cut.width(), cut.height(), cut.pixels()[0]),
            (2, 2, 2 * 12 + 2 * 3)
        );
        assert!(!encloses(
            display.logical_bounds,
            ScreenRect::try_new(-1.0, 1.0, 1.5, 1.0).unwrap()
        ));
    }
}
