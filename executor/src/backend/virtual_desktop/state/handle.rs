//! What is done to a window as a whole: its place, size, visibility and order.

use std::sync::Arc;
use std::time::Instant;

use super::{ActionRefusal, LiveWindow, World};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{Change, WindowRule};

/// A window's new place, size or visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Its corner comes to lie here, on the screen.
    Move(i32, i32),
    /// It gets this width and height.
    Resize(i32, i32),
    /// It leaves the screen.
    Minimize,
}

/// Farthest place on the screen, in points: far beyond any display, far below overflow.
const FARTHEST: i32 = 32_768;

impl World {
    /// Moves, resizes or minimises a window, as far as its rules allow.
    ///
    /// # Errors
    ///
    /// See [`ActionRefusal`].
    pub(crate) fn handle(
        &mut self,
        window_id: u32,
        handling: Handling,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let window = self.live(window_id).ok_or(ActionRefusal::NotActionable)?;
        let rule = match handling {
            Handling::Move(..) => window.rules.moving,
            Handling::Resize(..) => window.rules.resizing,
            Handling::Minimize => window.rules.minimizing,
        };
        match rule {
            WindowRule::Fixed => return Err(ActionRefusal::NotActionable),
            WindowRule::Refused => return Err(ActionRefusal::Refused),
            WindowRule::Ignored => return Ok(()),
            WindowRule::Works | WindowRule::Clamped | WindowRule::Unknown => {}
        }
        let clamped = rule == WindowRule::Clamped;
        let bounds = window.bounds;
        let screen = super::super::display::showing(self.displays(), bounds)
            .or_else(|| self.displays().first())
            .map_or(bounds, |display| display.bounds);
        let (spec, pid, lag) = (window.spec, window.pid, window.rules.lag);
        let change = match handling {
            Handling::Move(x, y) => {
                let mut to = Rect::new(near(x), near(y), bounds.width, bounds.height);
                if clamped {
                    to = inside(to, screen);
                }
                Change::MoveWindow(spec, to.x, to.y)
            }
            Handling::Resize(width, height) => {
                let [min, max] = [window.rules.min_size, window.rules.max_size];
                let mut size = [width.clamp(min[0], max[0]), height.clamp(min[1], max[1])];
                if clamped {
                    size[0] = size[0].min((screen.right() - bounds.x).max(min[0]));
                    size[1] = size[1].min((screen.bottom() - bounds.y).max(min[1]));
                }
                Change::ResizeWindow(spec, size[0], size[1])
            }
            Handling::Minimize => Change::MinimizeWindow(spec),
        };
        self.schedule_change(Some(pid), lag, change, now);
        match rule {
            WindowRule::Unknown => Err(ActionRefusal::Unknown),
            WindowRule::Works
            | WindowRule::Fixed
            | WindowRule::Clamped
            | WindowRule::Ignored
            | WindowRule::Refused => Ok(()),
        }
    }

    /// Puts a window in front of the other windows of its application. The application stays where it is, unless the
    /// window was minimised.
    pub(super) fn raise_in_app(&mut self, window_id: u32) {
        let Some(index) = self.index_of(window_id) else {
            return;
        };
        let mut window = self.windows.remove(index);
        Arc::make_mut(&mut window).minimized = false;
        let is_sibling =
            |other: &Arc<LiveWindow>| other.pid == window.pid && other.layer == window.layer;
        let first = self.windows.iter().position(is_sibling).unwrap_or(index);
        self.windows.insert(first.min(index), window);
        self.settle_foreground();
    }

    /// As [`World::activate`], by id.
    pub(crate) fn activate_id(&mut self, window_id: u32) {
        if let Some(index) = self.index_of(window_id) {
            self.activate(index);
        }
    }

    /// Closes a window, as its own button does.
    pub(super) fn close(&mut self, window_id: u32) {
        self.windows.retain(|window| window.window_id != window_id);
        self.settle_foreground();
    }

    fn index_of(&self, window_id: u32) -> Option<usize> {
        self.windows
            .iter()
            .position(|window| window.window_id == window_id)
    }
}

fn near(coordinate: i32) -> i32 {
    coordinate.clamp(-FARTHEST, FARTHEST)
}

/// A rectangle moved so that it lies inside another one, or at its upper left corner when it is larger.
fn inside(rect: Rect, area: Rect) -> Rect {
    let x = rect.x.min(area.right() - rect.width).max(area.x);
    let y = rect.y.min(area.bottom() - rect.height).max(area.y);
    Rect::new(x, y, rect.width, rect.height)
}
