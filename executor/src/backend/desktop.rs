//! Facts about a desktop: displays, windows, applications, permissions.

use maka_cu_protocol::geometry::ScreenRect;
use maka_cu_protocol::ids::{AppId, DisplayId, WindowKey};
use maka_cu_protocol::sets::ScreenRecordingProbe;
use maka_cu_protocol::text::AppText;

/// One window of the live window list.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowInfo {
    /// Owning process and window id. The window id is unique on the desktop at any one time.
    pub key: WindowKey,
    /// The owning application, spelled as in [`RunningApp::app_id`].
    pub app_id: AppId,
    /// Its display name.
    pub app_name: Option<AppText>,
    /// The window's title; `None` when it has none.
    pub title: Option<AppText>,
    /// Outer bounds in screen logical points; `element.frame` of the root covers the same area.
    pub bounds: ScreenRect,
    /// Whether the corner of `bounds` is where the window is. Where no desktop tells, it is the origin, and only the size
    /// means something.
    pub is_placed: bool,
    /// 0 for ordinary application windows; other values for docks, desktops, menus and the like.
    pub layer: i64,
    /// Stacking position, larger is nearer to the viewer.
    pub z_index: i64,
    /// Whether it is mapped and not minimised.
    pub on_screen: bool,
    /// The display that shows most of it.
    pub display_id: Option<DisplayId>,
}

/// One running application process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningApp {
    /// The platform's stable application id, else `pid:<n>`.
    pub app_id: AppId,
    /// The process.
    pub pid: u32,
    /// Its display name.
    pub name: Option<AppText>,
}

/// The start time of a process in a unit of the back end's choice; only equality is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessStart(pub u64);

/// Whether a permission check may show a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionPrompt {
    /// Look only.
    Never,
    /// Ask the person for a missing accessibility grant.
    Ask,
}

/// What the operating system allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    /// Other applications' controls can be read and operated.
    pub accessibility: bool,
    /// Other applications' pixels can be read.
    pub screen_recording: bool,
    /// How `screen_recording` is known.
    pub screen_recording_probe: ScreenRecordingProbe,
}
