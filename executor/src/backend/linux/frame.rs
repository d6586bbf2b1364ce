//! Where an element lies in its window: the toolkits do not agree on what they report. Pure arithmetic.

use maka_cu_protocol::geometry::WindowRect;

use super::display::Area;

/// Which rules the coordinates of an application follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toolkit {
    Gtk3,
    Gtk4,
    Chromium,
    /// Qt 5 and 6.
    Qt,
    /// Everything that is not known: screen coordinates are the oldest and best-kept promise of AT-SPI.
    ScreenBased,
}

impl Toolkit {
    /// From `Application.ToolkitName` and `Application.Version`.
    pub(super) fn recognise(name: &str, version: &str) -> Self {
        match (
            name.to_ascii_lowercase().as_str(),
            version.split('.').next(),
        ) {
            ("gtk", Some("4")) => Self::Gtk4,
            ("gtk" | "gail", _) => Self::Gtk3,
            ("chromium" | "electron", _) => Self::Chromium,
            ("qt", _) => Self::Qt,
            _ => Self::ScreenBased,
        }
    }

    /// One of the two GTK generations.
    pub(super) const fn is_gtk(self) -> bool {
        match self {
            Self::Gtk3 | Self::Gtk4 => true,
            Self::Chromium | Self::Qt | Self::ScreenBased => false,
        }
    }

    /// The argument of `Component.GetExtents`: 0 for the screen, 1 for the window.
    pub(super) const fn coordinate_type(self) -> u32 {
        match self {
            Self::Gtk3 | Self::Gtk4 | Self::Chromium => 1,
            Self::Qt | Self::ScreenBased => 0,
        }
    }
}

/// A rectangle as `Component.GetExtents` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

impl Extents {
    /// Toolkits answer `i32::MIN` or an empty size for what is not laid out.
    const fn exists(self) -> bool {
        self.x != i32::MIN && self.y != i32::MIN && self.width > 0 && self.height > 0
    }
}

/// How extents of one window become window points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placement {
    toolkit: Toolkit,
    offset: (f64, f64),
    size: (f64, f64),
}

impl Placement {
    /// `window` is the X client area in root pixels; `frame_extents` its `_GTK_FRAME_EXTENTS` (left, right, top,
    /// bottom); `root` the extents of the window's accessible in window coordinates.
    pub(super) fn new(
        toolkit: Toolkit,
        window: Area,
        frame_extents: Option<[u32; 4]>,
        root: Option<Extents>,
    ) -> Self {
        let offset = match toolkit {
            Toolkit::Gtk3 | Toolkit::Chromium => (0.0, 0.0),
            Toolkit::Qt | Toolkit::ScreenBased => (-f64::from(window.x), -f64::from(window.y)),
            // GTK 4 counts from inside its shadow. Window managers without support for it leave the property out,
            // and a border remains that is the same on all sides.
            Toolkit::Gtk4 => match (frame_extents, root) {
                (Some([left, _, top, _]), _) => (left.into(), top.into()),
                (None, Some(root)) if root.exists() => (
                    ((f64::from(window.width) - f64::from(root.width)) / 2.0).max(0.0),
                    ((f64::from(window.height) - f64::from(root.height)) / 2.0).max(0.0),
                ),
                (None, _) => (0.0, 0.0),
            },
        };
        Self {
            toolkit,
            offset,
            size: (window.width.into(), window.height.into()),
        }
    }

    /// In a window of which only its accessible is known: everything is counted from the corner of the root, whatever the
    /// toolkit counts from. Without extents nothing in the window has a place.
    pub(super) fn of_root(toolkit: Toolkit, root: Option<Extents>) -> Self {
        let root = root.filter(|root| root.exists());
        Self {
            toolkit,
            offset: root.map_or((0.0, 0.0), |root| (-f64::from(root.x), -f64::from(root.y))),
            size: root.map_or((0.0, 0.0), |root| (root.width.into(), root.height.into())),
        }
    }

    /// The argument of `Component.GetExtents` that [`Placement::frame`] expects.
    pub(super) const fn coordinate_type(self) -> u32 {
        self.toolkit.coordinate_type()
    }

    /// The frame of an element, `None` when it is not laid out, or scrolled out of the window: GTK 4 and Qt call such an
    /// element showing, GTK 3 and Chromium do not.
    pub(super) fn frame(self, extents: Extents) -> Option<WindowRect> {
        if !extents.exists() {
            return None;
        }
        let (x, y) = (
            f64::from(extents.x) + self.offset.0,
            f64::from(extents.y) + self.offset.1,
        );
        let (width, height) = (f64::from(extents.width), f64::from(extents.height));
        let (across, down) = self.size;
        let in_window = x < across && y < down && x + width > 0.0 && y + height > 0.0;
        in_window
            .then(|| WindowRect::try_new(x, y, width, height).ok())
            .flatten()
    }

    /// The frame of the window itself. Not what the accessible says: in GTK 3 that spans the window manager's frame.
    pub(super) fn whole(self) -> WindowRect {
        WindowRect::try_new(0.0, 0.0, self.size.0, self.size.1)
            .expect("sizes of windows are finite")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn extents(x: i32, y: i32, width: i32, height: i32) -> Extents {
        Extents {
            x,
            y,
            width,
            height,
        }
    }

    #[test]
    fn toolkits_are_recognised() {
        let rows = [
            ("gtk", "3.24.38", Toolkit::Gtk3),
            ("GTK", "4.8.3", Toolkit::Gtk4),
            ("Qt", "5.15.8", Toolkit::Qt),
            ("Chromium", "156.0", Toolkit::Chromium),
            ("Gecko", "128", Toolkit::ScreenBased),
            ("", "", Toolkit::ScreenBased),
        ];
        for (name, version, expected) in rows {
            assert_eq!(
                Toolkit::recognise(name, version),
                expected,
                "{name} {version}"
            );
        }
    }

    #[test]
    fn a_window_that_only_its_accessible_tells_of_counts_from_its_root() {
        let rows = [
            (
                Some(extents(0, 0, 400, 300)),
                extents(10, 20, 30, 40),
                Some((10.0, 20.0)),
            ),
            (
                Some(extents(26, 23, 400, 300)),
                extents(36, 43, 30, 40),
                Some((10.0, 20.0)),
            ),
            (
                Some(extents(0, 0, 400, 300)),
                extents(10, 300, 30, 40),
                None,
            ),
            (
                Some(extents(i32::MIN, i32::MIN, 0, 0)),
                extents(10, 20, 30, 40),
                None,
            ),
            (None, extents(10, 20, 30, 40), None),
        ];
        for (root, element, expected) in rows {
            let placement = Placement::of_root(Toolkit::Gtk3, root);
            let frame = placement.frame(element);
            let corner = frame.map(|frame| (frame.x(), frame.y()));
            assert_eq!(corner, expected, "{root:?} {element:?}");
        }
    }

    #[test]
    fn frames_by_toolkit() {
        let window = Area {
            x: 544,
            y: 360,
            width: 482,
            height: 620,
        };
        let shadow = Some([61, 61, 55, 67]);
        let root = Some(extents(0, 0, 360, 498));
        let element = extents(10, 20, 30, 40);
        let rows = [
            (Toolkit::Gtk3, None, None, element, Some((10.0, 20.0))),
            (Toolkit::Chromium, None, None, element, Some((10.0, 20.0))),
            (Toolkit::Gtk4, shadow, root, element, Some((71.0, 75.0))),
            (Toolkit::Gtk4, None, root, element, Some((71.0, 81.0))),
            (Toolkit::Gtk4, None, None, element, Some((10.0, 20.0))),
            (
                Toolkit::Qt,
                None,
                None,
                extents(554, 380, 30, 40),
                Some((10.0, 20.0)),
            ),
            (
                Toolkit::ScreenBased,
                None,
                None,
                extents(554, 380, 30, 40),
                Some((10.0, 20.0)),
            ),
            (
                Toolkit::Qt,
                None,
                None,
                extents(554, 380, 30, 40),
                Some((10.0, 20.0)),
            ),
            (
                Toolkit::Gtk3,
                None,
                None,
                extents(i32::MIN, i32::MIN, 0, 0),
                None,
            ),
            (Toolkit::Gtk3, None, None, extents(0, 0, 0, 5), None),
            (Toolkit::Gtk4, None, root, extents(17, 560, 30, 40), None),
            (
                Toolkit::Gtk4,
                None,
                root,
                extents(17, 530, 30, 40),
                Some((78.0, 591.0)),
            ),
            (Toolkit::Qt, None, None, extents(500, 380, 44, 40), None),
            (
                Toolkit::Qt,
                None,
                None,
                extents(500, 380, 45, 40),
                Some((-44.0, 20.0)),
            ),
            (Toolkit::Gtk3, None, None, extents(0, 0, -1, 5), None),
        ];
        for (toolkit, frame_extents, root, extents, expected) in rows {
            let frame = Placement::new(toolkit, window, frame_extents, root).frame(extents);
            assert_eq!(
                frame.map(|frame| (frame.x(), frame.y())),
                expected,
                "{toolkit:?} {extents:?}"
            );
        }
    }
}
