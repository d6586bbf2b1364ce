//! Which displays a screenshot shows, and where in it (spec 10.1).
//!
//! Owns one question: given what a platform says about its displays and the size of one picture, which displays can be *proved* to
//! be in that picture? It never guesses. What cannot be proved is left out, and an empty answer means that no coordinate may be
//! taken from the picture; elements can still be acted on. It reads no display and moves nothing.

use maka_cu_protocol::geometry::{ImageRect, ScreenPoint, ScreenRect};
use maka_cu_protocol::ids::DisplayId;
use maka_cu_protocol::snapshot::DisplayInfo;

/// One attached display, as a platform describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Display {
    /// Its name. Names are compared as text.
    pub id: DisplayId,
    /// Where it is, in screen logical points; negative origins are legal.
    pub bounds: ScreenRect,
    /// Pixels per logical point.
    pub scale_factor: f64,
}

/// The size of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelSize {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// The displays that a screenshot of this size shows, in the order given, each with its place in the picture.
///
/// A display's extent in pixels is its extent in points times its scale factor, rounded to the nearest whole pixel.
///
/// 1. The primary display is found by its name. Without exactly one display of that name there is nothing to start from: `[]`.
/// 2. When all scale factors are equal and the box around all displays, in pixels, has exactly the picture's size, the picture
///    shows all of them.
/// 3. Otherwise, when the primary display alone has exactly the picture's size, the picture shows that one, from edge to edge.
/// 4. Otherwise it cannot be said what the picture shows: `[]`.
///
/// Descriptions that contradict themselves (two displays of one name, an extent or a scale factor that is not positive) never
/// reach rule 2, and as the primary display not rule 3 either.
#[must_use]
#[doc(alias = "resolveCuaDisplaySnapshots")]
pub fn resolve_display_snapshots(
    displays: &[Display],
    primary_display_id: &DisplayId,
    screenshot: PixelSize,
) -> Vec<DisplayInfo> {
    let mut named = displays
        .iter()
        .filter(|display| display.id == *primary_display_id);
    let (Some(primary), None) = (named.next(), named.next()) else {
        return Vec::new();
    };
    atlas(displays, primary.scale_factor, screenshot)
        .or_else(|| alone(primary, screenshot))
        .unwrap_or_default()
}

/// Whether a point lies on one of these displays. Desktops have gaps between their displays, and windows that are put away
/// report places on none of them; a coordinate there reaches nothing.
#[must_use]
pub fn is_on_a_display(displays: &[DisplayInfo], point: ScreenPoint) -> bool {
    displays
        .iter()
        .any(|display| display.logical_bounds.contains(point))
}

/// All displays, each at its place, if their common box has the picture's size.
fn atlas(displays: &[Display], scale: f64, screenshot: PixelSize) -> Option<Vec<DisplayInfo>> {
    // Exact comparison: factors that differ by little still put every pixel somewhere else.
    let alike = |display: &Display| display.scale_factor == scale && is_sound(display);
    if !displays.iter().all(alike) || has_duplicates(displays) {
        return None;
    }
    let edge = |of: fn(ScreenRect) -> f64, pick: fn(f64, f64) -> f64| {
        displays
            .iter()
            .map(|display| of(display.bounds))
            .reduce(pick)
    };
    let (left, top) = (
        edge(ScreenRect::x, f64::min)?,
        edge(ScreenRect::y, f64::min)?,
    );
    let right = edge(|bounds| bounds.x() + bounds.width(), f64::max)?;
    let bottom = edge(|bounds| bounds.y() + bounds.height(), f64::max)?;
    if !is_size(right - left, bottom - top, scale, screenshot) {
        return None;
    }
    displays
        .iter()
        .map(|display| {
            let bounds = display.bounds;
            let place = ImageRect::try_new(
                (bounds.x() - left) * scale,
                (bounds.y() - top) * scale,
                bounds.width() * scale,
                bounds.height() * scale,
            );
            Some(info(display, place.ok()?))
        })
        .collect()
}

/// The primary display alone, if it has the picture's size.
fn alone(primary: &Display, screenshot: PixelSize) -> Option<Vec<DisplayInfo>> {
    let bounds = primary.bounds;
    let fits = is_sound(primary)
        && is_size(
            bounds.width(),
            bounds.height(),
            primary.scale_factor,
            screenshot,
        );
    let whole = ImageRect::try_new(
        0.0,
        0.0,
        f64::from(screenshot.width),
        f64::from(screenshot.height),
    );
    fits.then(|| whole.map(|place| vec![info(primary, place)]).ok())
        .flatten()
}

fn info(display: &Display, source_bounds_px: ImageRect) -> DisplayInfo {
    DisplayInfo {
        display_id: display.id.clone(),
        logical_bounds: display.bounds,
        source_bounds_px,
        scale_factor: display.scale_factor,
    }
}

/// Whether an extent in points has, at this scale, the picture's size.
fn is_size(width: f64, height: f64, scale: f64, screenshot: PixelSize) -> bool {
    (width * scale).round() == f64::from(screenshot.width)
        && (height * scale).round() == f64::from(screenshot.height)
}

/// Whether the description can be true of a display at all.
fn is_sound(display: &Display) -> bool {
    let positive = |number: f64| number.is_finite() && number > 0.0;
    positive(display.scale_factor)
        && positive(display.bounds.width())
        && positive(display.bounds.height())
}

fn has_duplicates(displays: &[Display]) -> bool {
    displays.iter().enumerate().any(|(index, display)| {
        displays[..index]
            .iter()
            .any(|earlier| earlier.id == display.id)
    })
}

#[cfg(test)]
mod tests;
