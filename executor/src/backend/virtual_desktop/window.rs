//! Windows and the processes that own them: the window list, the process table, one window's pixels.

use std::sync::Arc;

use maka_cu_protocol::ids::{AppId, DisplayId, WindowKey};
use maka_cu_protocol::text::AppText;

use super::state::{LiveWindow, Process, World};
use super::{VirtualDesktop, display, in_time, render};
use crate::backend::bitmap::Bitmap;
use crate::backend::desktop::{RunningApp, WindowInfo};
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// The window list, front to back; what is minimised is not in it.
pub(super) fn list(world: &World) -> Vec<WindowInfo> {
    let shown = world.shown_windows().count();
    world
        .shown_windows()
        .zip((1..=shown).rev())
        .map(|(window, z_index)| info(world, window, z_index))
        .collect()
}

/// A process of the process table in the protocol's terms.
pub(super) fn running_app(world: &World, process: &Process) -> RunningApp {
    RunningApp {
        app_id: app_id(world, process.pid),
        pid: process.pid,
        name: world
            .app_of(process.pid)
            .map(|app| AppText::new(app.name.as_str())),
    }
}

/// Paints one window from its own state, whatever lies over it.
pub(super) fn capture(
    desktop: &VirtualDesktop,
    key: WindowKey,
    deadline: &Deadline,
) -> Result<Bitmap, BackendError> {
    in_time(deadline)?;
    let (window, scale) = {
        let world = desktop.world();
        display::allowed(&world)?;
        let window = world
            .window(key.pid, key.window_id)
            .ok_or(BackendError::WindowGone)?;
        let display =
            display::showing(world.displays(), window.bounds).or_else(|| world.displays().first());
        (
            Arc::clone(window),
            display.map_or(1, |display| display.scale),
        )
    };
    let pixmap = render::window(&window, scale, desktop.now());
    display::bitmap(&pixmap.ok_or(BackendError::CaptureFailed)?)
}

fn info(world: &World, window: &LiveWindow, z_index: usize) -> WindowInfo {
    let display = display::showing(world.displays(), window.bounds);
    WindowInfo {
        key: WindowKey {
            pid: window.pid,
            window_id: window.window_id,
        },
        app_id: app_id(world, window.pid),
        app_name: world
            .app_of(window.pid)
            .map(|app| AppText::new(app.name.as_str())),
        title: (!window.title.is_empty()).then(|| AppText::new(window.title.as_str())),
        bounds: display::screen_rect(window.bounds),
        is_placed: true,
        layer: i64::from(window.layer),
        z_index: i64::try_from(z_index).expect("the number of windows is bounded"),
        on_screen: true,
        display_id: display.and_then(|display| DisplayId::try_new(display.id.as_str()).ok()),
    }
}

fn app_id(world: &World, pid: u32) -> AppId {
    let known = world
        .app_of(pid)
        .and_then(|app| AppId::try_new(app.app_id.as_str()).ok());
    known.unwrap_or_else(|| AppId::of_pid(pid))
}
