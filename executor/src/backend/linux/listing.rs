//! The windows and monitors of one moment, as every list tells them.

use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::text::AppText;

use super::LinuxDesktop;
use super::apps::Identities;
use super::display::{Area, Monitor};
use super::window::XWindow;
use crate::backend::desktop::WindowInfo;
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

impl LinuxDesktop {
    /// The windows, front to back.
    pub(super) fn list(
        &self,
        deadline: &Deadline,
        identities: &Identities,
    ) -> Result<Vec<WindowInfo>, BackendError> {
        let (windows, monitors) = self.screen(deadline)?;
        let main = main_area(&monitors);
        // The list comes bottom first and is told front to back.
        let mut listed: Vec<WindowInfo> = windows
            .iter()
            .zip(1_i64..)
            .filter_map(|(window, z_index)| describe(window, z_index, &monitors, main, identities))
            .collect();
        listed.reverse();
        Ok(listed)
    }
}

/// The area of the main monitor, whose corner is the origin of screen points.
pub(super) fn main_area(monitors: &[Monitor]) -> Area {
    monitors.first().map_or(
        Area {
            x: 0,
            y: 0,
            width: 0,
            height: 0,
        },
        |monitor| monitor.area,
    )
}

/// A window as the protocol lists it. One whose owner nobody knows cannot be addressed and is left out.
fn describe(
    window: &XWindow,
    z_index: i64,
    monitors: &[Monitor],
    main: Area,
    identities: &Identities,
) -> Option<WindowInfo> {
    let app = identities.app_of_pid(window.pid?);
    let shows_most = monitors
        .iter()
        .map(|monitor| (monitor.area.overlap(window.area), monitor));
    // `max_by_key` takes the last of equals; reversed, the main monitor wins.
    let display = shows_most
        .rev()
        .max_by_key(|(overlap, _)| *overlap)
        .filter(|(overlap, _)| *overlap > 0);
    Some(WindowInfo {
        key: WindowKey {
            pid: app.pid,
            window_id: window.id,
        },
        app_id: app.app_id,
        app_name: app.name,
        title: (!window.title.0.is_empty()).then(|| AppText::new(window.title.0.clone())),
        bounds: window.area.to_screen(main),
        is_placed: true,
        layer: window.layer,
        z_index,
        on_screen: window.on_screen,
        display_id: display.map(|(_, monitor)| monitor.id()),
    })
}
