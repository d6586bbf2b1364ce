//! Displays: what they are and what they show.

use std::sync::Arc;

use maka_cu_protocol::geometry::{ImageRect, ScreenRect};
use maka_cu_protocol::ids::DisplayId;
use maka_cu_protocol::sets::Permission;
use maka_cu_protocol::snapshot::DisplayInfo;
use tiny_skia::Pixmap;

use super::rect::Rect;
use super::scenario::DisplaySpec;
use super::state::World;
use super::{VirtualDesktop, in_time, render};
use crate::backend::bitmap::{Bitmap, PixelLayout};
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// A display in the protocol's terms.
pub(super) fn info(spec: &DisplaySpec) -> DisplayInfo {
    let scale = f64::from(spec.scale);
    let bounds = screen_rect(spec.bounds);
    let pixels = ImageRect::try_new(
        bounds.x() * scale,
        bounds.y() * scale,
        bounds.width() * scale,
        bounds.height() * scale,
    );
    DisplayInfo {
        display_id: DisplayId::try_new(spec.id.as_str())
            .expect("a scenario's display ids are not empty"),
        logical_bounds: bounds,
        source_bounds_px: pixels.expect("whole numbers are finite"),
        scale_factor: scale,
    }
}

/// The display that shows most of a rectangle; the first of those that show as much.
pub(super) fn showing(displays: &[DisplaySpec], bounds: Rect) -> Option<&DisplaySpec> {
    let visible = displays
        .iter()
        .rev()
        .filter(|display| display.bounds.overlap(bounds) > 0);
    visible.max_by_key(|display| display.bounds.overlap(bounds))
}

/// Paints a display with all windows on it.
pub(super) fn capture(
    desktop: &VirtualDesktop,
    display: &DisplayId,
    deadline: &Deadline,
) -> Result<Bitmap, BackendError> {
    in_time(deadline)?;
    let (spec, windows, foreground) = {
        let world = desktop.world();
        allowed(&world)?;
        let spec = world
            .displays()
            .iter()
            .find(|spec| spec.id == display.as_str());
        let spec = spec.ok_or(BackendError::CaptureFailed)?.clone();
        let windows: Vec<_> = world.shown_windows().map(Arc::clone).collect();
        (spec, windows, foreground(&world))
    };
    let pixmap = render::display(&spec, &windows, foreground.as_ref(), desktop.now());
    bitmap(&pixmap.ok_or(BackendError::CaptureFailed)?)
}

/// Whether pixels may be read at all.
pub(super) fn allowed(world: &World) -> Result<(), BackendError> {
    if world.locked() {
        return Err(BackendError::ScreenLocked);
    }
    if !world.scenario().screen_recording {
        return Err(BackendError::PermissionMissing(Permission::ScreenRecording));
    }
    Ok(())
}

/// Painted pixels as the portable code takes them; everything painted is opaque.
pub(super) fn bitmap(pixmap: &Pixmap) -> Result<Bitmap, BackendError> {
    let mut rgb = Vec::with_capacity(pixmap.pixels().len() * PixelLayout::Rgb8.bytes());
    for pixel in pixmap.data().chunks_exact(4) {
        rgb.extend_from_slice(&pixel[..3]);
    }
    Bitmap::try_new(pixmap.width(), pixmap.height(), PixelLayout::Rgb8, rgb)
        .ok_or(BackendError::CaptureFailed)
}

/// Whole screen points in the protocol's terms.
pub(super) fn screen_rect(rect: Rect) -> ScreenRect {
    let [x, y, width, height] = [rect.x, rect.y, rect.width, rect.height].map(f64::from);
    ScreenRect::try_new(x, y, width, height).expect("whole numbers are finite")
}

fn foreground(world: &World) -> Option<render::Foreground> {
    let pid = world.frontmost()?;
    let window = world
        .shown_windows()
        .find(|window| window.pid == pid && window.layer == 0);
    Some(render::Foreground {
        name: world.app_of(pid)?.name.clone(),
        window: window.map(Arc::clone),
    })
}
