//! What a caller may choose about a desktop.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Choices for one desktop. [`Default`] is what the tests and the container use.
#[derive(Clone, Debug)]
pub struct DesktopOptions {
    /// Size of the one screen, 24 bits deep.
    pub size: ScreenSize,
    /// Which window manager runs. Without one there is no window list, which some tests want to see. A compositor manages
    /// its windows itself, and none is started beside it.
    pub window_manager: Option<WindowManager>,
    /// A Wayland compositor in the place of X server and window manager.
    pub compositor: Option<Compositor>,
    /// Where sockets, logs and the applications' home live. `None` makes a private folder below the system's temporary
    /// folder and removes it at the end; a folder given here is created when missing and stays.
    pub dir: Option<PathBuf>,
    /// How long all parts together may take to become ready. A loaded two-core machine needs about one second.
    pub start_timeout: Duration,
}

impl Default for DesktopOptions {
    fn default() -> Self {
        Self {
            size: ScreenSize {
                width: 1280,
                height: 800,
            },
            window_manager: Some(WindowManager::Openbox),
            compositor: None,
            dir: None,
            start_timeout: Duration::from_secs(30),
        }
    }
}

/// The window managers that a desktop can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowManager {
    /// Small, and composites nothing: what is covered is not painted.
    Openbox,
    /// The one of Xfce, which composites.
    Xfwm4,
}

impl WindowManager {
    /// Every one of them.
    pub const ALL: [Self; 2] = [Self::Openbox, Self::Xfwm4];

    /// The name of its program, which is also that of its Debian package.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Openbox => "openbox",
            Self::Xfwm4 => "xfwm4",
        }
    }

    /// Neither is to look for a session manager, which does not exist here.
    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Self::Openbox => "--sm-disable",
            Self::Xfwm4 => "--sm-client-disable",
        }
    }
}

impl fmt::Display for WindowManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WindowManager {
    type Err = WindowManagerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |manager: &Self| manager.as_str() == text;
        Self::ALL.into_iter().find(named).ok_or(WindowManagerError)
    }
}

/// The name of no window manager that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a window manager is `openbox` or `xfwm4`")]
pub struct WindowManagerError;

/// The Wayland compositors that a desktop can have. Not as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compositor {
    /// sway.
    Sway,
    /// sway with an X server inside, for programs that know no Wayland.
    SwayWithXwayland,
}

impl Compositor {
    /// Every one of them.
    pub const ALL: [Self; 2] = [Self::Sway, Self::SwayWithXwayland];

    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sway => "sway",
            Self::SwayWithXwayland => "sway-xwayland",
        }
    }
}

impl fmt::Display for Compositor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Compositor {
    type Err = CompositorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |compositor: &Self| compositor.as_str() == text;
        Self::ALL.into_iter().find(named).ok_or(CompositorError)
    }
}

/// The name of no compositor that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a compositor is `sway` or `sway-xwayland`")]
pub struct CompositorError;

/// Width and height of the screen in pixels, each from 64 to 16384.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    width: u16,
    height: u16,
}

impl ScreenSize {
    const MIN: u16 = 64;
    const MAX: u16 = 16384;

    /// Checks both numbers.
    ///
    /// # Errors
    /// When one of them is outside 64 to 16384.
    pub fn try_new(width: u16, height: u16) -> Result<Self, ScreenSizeError> {
        let range = Self::MIN..=Self::MAX;
        if range.contains(&width) && range.contains(&height) {
            Ok(Self { width, height })
        } else {
            Err(ScreenSizeError)
        }
    }

    /// Pixels across.
    #[must_use]
    pub fn width(self) -> u16 {
        self.width
    }

    /// Pixels down.
    #[must_use]
    pub fn height(self) -> u16 {
        self.height
    }
}

impl fmt::Display for ScreenSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for ScreenSize {
    type Err = ScreenSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (width, height) = text.split_once('x').ok_or(ScreenSizeError)?;
        let width = width.parse().map_err(|_| ScreenSizeError)?;
        let height = height.parse().map_err(|_| ScreenSizeError)?;
        Self::try_new(width, height)
    }
}

/// A screen size that is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a screen size is written as WIDTHxHEIGHT, each from 64 to 16384 pixels, such as 1280x800")]
pub struct ScreenSizeError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_managers_are_named_exactly() {
        for manager in WindowManager::ALL {
            assert_eq!(manager.as_str().parse(), Ok(manager));
        }
        for compositor in Compositor::ALL {
            assert_eq!(compositor.as_str().parse(), Ok(compositor));
        }
        assert_eq!("weston".parse::<Compositor>(), Err(CompositorError));
        for text in ["", "Openbox", "none", "xfwm"] {
            assert_eq!(
                text.parse::<WindowManager>(),
                Err(WindowManagerError),
                "{text}"
            );
        }
    }

    #[test]
    fn screen_sizes_are_parsed_strictly() {
        let rows: &[(&str, Option<(u16, u16)>)] = &[
            ("1280x800", Some((1280, 800))),
            ("64x16384", Some((64, 16384))),
            ("63x800", None),
            ("1280x16385", None),
            ("1280X800", None),
            ("1280", None),
            ("x", None),
            ("-1x800", None),
            ("1280x800x24", None),
        ];
        for (text, expected) in rows {
            let parsed = text
                .parse::<ScreenSize>()
                .ok()
                .map(|size| (size.width(), size.height()));
            assert_eq!(parsed, *expected, "{text}");
        }
    }
}
