//! Colors and measures of the virtual desktop's look: light, flat, one accent color for each application.

use crate::backend::virtual_desktop::scenario::Color;

/// Radius of a window's corners where it lies on the wallpaper, in points.
pub(super) const WINDOW_RADIUS: f32 = 10.0;
/// Radius of the corners of fields and buttons, in points.
pub(super) const CONTROL_RADIUS: f32 = 6.0;

pub(super) const WALLPAPER_TOP: Color = Color::rgb(0x2f, 0x4b, 0x7c);
pub(super) const WALLPAPER_BOTTOM: Color = Color::rgb(0x86, 0x9f, 0xc4);
pub(super) const TOP_BAR: Color = Color::rgb(0x12, 0x1a, 0x2b);
pub(super) const TOP_BAR_TEXT: Color = Color::rgb(0xf2, 0xf5, 0xfa);

pub(super) const WINDOW: Color = Color::rgb(0xfb, 0xfb, 0xfd);
pub(super) const WINDOW_EDGE: Color = Color::rgb(0xc3, 0xc8, 0xd2);
pub(super) const TITLE_BAR: Color = Color::rgb(0xee, 0xf0, 0xf4);
pub(super) const TITLE: Color = Color::rgb(0x25, 0x2b, 0x37);
pub(super) const CLOSE: Color = Color::rgb(0xdd, 0xe1, 0xe8);
pub(super) const CLOSE_GLYPH: Color = Color::rgb(0x55, 0x5e, 0x6e);

pub(super) const LINE: Color = Color::rgb(0xd8, 0xdc, 0xe4);
pub(super) const PANEL: Color = Color::rgb(0xf2, 0xf4, 0xf8);
pub(super) const FIELD: Color = Color::rgb(0xff, 0xff, 0xff);
pub(super) const FIELD_EDGE: Color = Color::rgb(0xbf, 0xc6, 0xd2);
pub(super) const TEXT: Color = Color::rgb(0x20, 0x26, 0x31);
pub(super) const QUIET_TEXT: Color = Color::rgb(0x6a, 0x73, 0x83);
pub(super) const FAINT_TEXT: Color = Color::rgb(0xa3, 0xaa, 0xb7);
pub(super) const DISABLED: Color = Color::rgb(0xec, 0xee, 0xf2);
pub(super) const TRACK: Color = Color::rgb(0xd3, 0xd8, 0xe1);
pub(super) const WHITE: Color = Color::rgb(0xff, 0xff, 0xff);
