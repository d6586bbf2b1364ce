//! Whether another window covers a point (spec §3.6.2).

use maka_cu_protocol::geometry::{ScreenPoint, ScreenRect};
use maka_cu_protocol::sets::OcclusionPolicy;
use maka_cu_protocol::snapshot::DisplayInfo;

use crate::backend::desktop::WindowInfo;

/// The windows that lie above `target` and can cover it, front to back: layer 0, on screen, in a known place, not the
/// desktop surface.
pub fn above<'a>(
    target: &'a WindowInfo,
    windows: &'a [WindowInfo],
    displays: &'a [DisplayInfo],
) -> impl Iterator<Item = &'a WindowInfo> {
    windows.iter().filter(move |window| {
        window.key != target.key
            && window.layer == 0
            && window.on_screen
            && window.is_placed
            && window.z_index > target.z_index
            && !is_desktop_surface(window, displays)
    })
}

/// Whether a window above `target` covers `point`, as far as the policy cares.
#[must_use]
pub fn is_covered(
    point: ScreenPoint,
    target: &WindowInfo,
    windows: &[WindowInfo],
    displays: &[DisplayInfo],
    policy: OcclusionPolicy,
) -> bool {
    let counts = |window: &WindowInfo| match policy {
        OcclusionPolicy::SameApp => window.key.pid == target.key.pid,
        OcclusionPolicy::Any => true,
        OcclusionPolicy::None => false,
    };
    above(target, windows, displays).any(|window| counts(window) && window.bounds.contains(point))
}

/// A window without a title that fills a display: the surface that carries icons or a dock, not something that hides.
fn is_desktop_surface(window: &WindowInfo, displays: &[DisplayInfo]) -> bool {
    let untitled = window.title.as_ref().is_none_or(|title| title.is_empty());
    untitled
        && displays
            .iter()
            .any(|display| fills(window.bounds, display.logical_bounds))
}

fn fills(window: ScreenRect, display: ScreenRect) -> bool {
    window.x() <= display.x()
        && window.y() <= display.y()
        && window.x() + window.width() >= display.x() + display.width()
        && window.y() + window.height() >= display.y() + display.height()
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::geometry::ImageRect;
    use maka_cu_protocol::ids::{AppId, DisplayId, WindowKey};
    use maka_cu_protocol::text::AppText;

    use super::*;

    fn rect(x: f64, y: f64, width: f64, height: f64) -> ScreenRect {
        ScreenRect::try_new(x, y, width, height).unwrap()
    }

    fn window(pid: u32, z_index: i64, title: &str, bounds: ScreenRect) -> WindowInfo {
        WindowInfo {
            key: WindowKey {
                pid,
                window_id: u32::try_from(z_index).unwrap(),
            },
            app_id: AppId::of_pid(pid),
            app_name: None,
            title: Some(AppText::new(title)),
            bounds,
            is_placed: true,
            layer: 0,
            z_index,
            on_screen: true,
            display_id: None,
        }
    }

    #[test]
    fn the_policy_decides_whose_windows_count() {
        let displays = [DisplayInfo {
            display_id: DisplayId::try_new("1").unwrap(),
            logical_bounds: rect(0.0, 0.0, 100.0, 100.0),
            source_bounds_px: ImageRect::try_new(0.0, 0.0, 100.0, 100.0).unwrap(),
            scale_factor: 1.0,
        }];
        let target = window(1, 5, "target", rect(10.0, 10.0, 50.0, 50.0));
        let own = window(1, 6, "own sheet", rect(10.0, 10.0, 10.0, 10.0));
        let other = window(2, 7, "other", rect(30.0, 10.0, 10.0, 10.0));
        let below = window(2, 4, "below", rect(10.0, 10.0, 50.0, 50.0));
        let surface = window(3, 9, "", rect(0.0, 0.0, 100.0, 100.0));
        let mut hidden = window(2, 8, "hidden", rect(10.0, 10.0, 50.0, 50.0));
        hidden.on_screen = false;
        let mut dock = window(4, 10, "dock", rect(0.0, 0.0, 100.0, 100.0));
        dock.layer = 20;
        let mut somewhere = window(1, 11, "of Wayland", rect(0.0, 0.0, 100.0, 100.0));
        somewhere.is_placed = false;
        let windows = [
            somewhere,
            dock,
            surface,
            hidden,
            other,
            own,
            target.clone(),
            below,
        ];
        let covered = |x, y, policy| {
            is_covered(
                ScreenPoint::try_new(x, y).unwrap(),
                &target,
                &windows,
                &displays,
                policy,
            )
        };
        use OcclusionPolicy::{Any, None, SameApp};
        let rows = [
            ("free", 50.0, 50.0, [false, false, false]),
            ("own window", 15.0, 15.0, [true, true, false]),
            ("other application", 35.0, 15.0, [false, true, false]),
            ("right edge is outside", 40.0, 15.0, [false, false, false]),
            ("left edge is inside", 30.0, 15.0, [false, true, false]),
        ];
        for (name, x, y, expected) in rows {
            assert_eq!(
                [SameApp, Any, None].map(|policy| covered(x, y, policy)),
                expected,
                "{name}"
            );
        }
        assert_eq!(above(&target, &windows, &displays).count(), 2);
    }
}
