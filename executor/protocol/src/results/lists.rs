//! `window.list` (§3.2) and `apps.list` (§3.3).

use serde_json::Value;

use crate::{
    geometry::ScreenRect,
    ids::{AppId, DisplayId, WindowKey},
    json::{Json, Violation, record},
    results::Answer,
    text::AppText,
};

record! {
    /// A window. The host needs the first group and ignores what it cannot use of the second.
    pub struct WindowEntry {
        /// Process id.
        pub pid: u32 = "pid";
        /// Window id.
        pub window_id: u32 = "windowId";
        /// Application identity.
        pub app_id: AppId = "appId";
        /// Window layer; ordinary windows are on 0.
        pub layer: i64 = "layer";
        /// Stacking position; strictly falling along the list.
        pub z_index: i64 = "zIndex";
        /// Whether it is on the screen.
        pub on_screen: bool = "onScreen";
        /// Display name of the application.
        pub app_name: Option<AppText> = "appName", lenient;
        /// Window title.
        pub title: Option<AppText> = "title", lenient;
        /// Where it is.
        pub bounds: Option<ScreenRect> = "bounds", lenient;
        /// The display it is on.
        pub display_id: Option<DisplayId> = "displayId", lenient;
    }
}

impl WindowEntry {
    /// The window's key.
    #[must_use]
    pub const fn window(&self) -> WindowKey {
        WindowKey {
            pid: self.pid,
            window_id: self.window_id,
        }
    }
}

record! {
    /// `window.list`: front to back. A malformed entry spoils the list; none is skipped.
    pub struct WindowList {
        /// The windows.
        pub windows: Vec<WindowEntry> = "windows";
    }
}

record! {
    /// A running application.
    #[derive(Eq)]
    pub struct AppEntry {
        /// Application identity.
        pub app_id: AppId = "appId";
        /// Process id.
        pub pid: u32 = "pid";
        /// Windows on layer 0.
        pub window_count: u32 = "windowCount";
        /// Display name.
        pub name: Option<AppText> = "name";
        /// `true` in every list of what runs now.
        pub running: Option<bool> = "running", lenient;
    }
}

record! {
    /// `apps.list`: what runs now.
    #[derive(Eq)]
    pub struct AppList {
        /// The applications.
        pub apps: Vec<AppEntry> = "apps";
    }
}

/// Reads the result of `window.list`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_window_list(result: &Value) -> Result<Answer<WindowList>, Violation> {
    Answer::read(result)
}

/// Reads the result of `apps.list`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_app_list(result: &Value) -> Result<Answer<AppList>, Violation> {
    Answer::read(result)
}
