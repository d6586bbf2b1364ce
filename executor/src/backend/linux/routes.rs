//! Which input reaches which window without anybody noticing elsewhere: the measured truth, as a table.
//!
//! It depends on what a program is drawn with, since each toolkit listens to the X server in its own way. What was not seen to
//! work in a real program is [`Reach::GlobalOnly`] here, however likely it is.

use maka_cu_protocol::ids::WindowKey;

use super::LinuxDesktop;
use super::bus::CallError;
use super::display::{Area, Screen, unreadable};
use super::frame::Toolkit;
use super::process::was_given;
use super::services::no_bus;
use super::toplevels;
use super::window::XWindow;
use crate::backend::error::BackendError;
use crate::backend::input::{Gesture, Reach};
use crate::deadline::Deadline;

/// With it in its environment, whatever its value, a GTK 3 program listens to the events of the core protocol and not only to
/// those of the input extension, which cannot be sent to one window.
pub(super) const CORE_EVENTS_VARIABLE: &str = "GDK_CORE_DEVICE_EVENTS";

/// Pieces of a window that are kept apart while what covers it is taken away. A window in more pieces counts as hidden.
const MOST_PIECES: usize = 4096;

/// What listens for input behind a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    Qt,
    Chromium,
    /// GTK 3, started so that it takes core events.
    Gtk3Core,
    /// GTK 4, and GTK 3 that was started in any other way: it takes what comes from a device.
    GtkDevices,
    /// Every program that is not known.
    Other,
}

impl Listener {
    /// Of a toolkit as its program names it.
    pub(super) const fn of_keys(toolkit: Toolkit) -> Self {
        match toolkit {
            Toolkit::Qt => Self::Qt,
            Toolkit::Chromium => Self::Chromium,
            // GTK 3 takes sent keys now and then only, so how it was started does not matter here.
            Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::ScreenBased => Self::Other,
        }
    }

    /// Whether a gesture sent to a window of this kind arrives there, in full and with no other effect.
    pub(super) const fn hears(self, gesture: &Gesture) -> bool {
        match (self, gesture) {
            // There is no pointer in the window for it to stay at.
            (_, Gesture::Move) | (Self::GtkDevices | Self::Other, _) => false,
            (
                Self::Gtk3Core,
                Gesture::Click { .. }
                | Gesture::Press
                | Gesture::Release
                | Gesture::Drag { .. }
                | Gesture::Scroll { .. },
            ) => true,
            (
                Self::Chromium,
                Gesture::Click { .. }
                | Gesture::Press
                | Gesture::Release
                | Gesture::Drag { .. }
                | Gesture::Scroll { .. },
            ) => true,
            (
                Self::Qt,
                Gesture::Click { .. } | Gesture::Press | Gesture::Release | Gesture::Drag { .. },
            ) => true,
            // Qt reads the wheel from the input extension alone.
            (Self::Qt, Gesture::Scroll { .. }) => false,
        }
    }

    /// Whether a gesture of the second pointer arrives in full and with no other effect. Qt raises its window at a press, by
    /// whatever pointer; of the others nothing was measured, or what is sent is as good.
    pub(super) const fn hears_second(self, gesture: &Gesture) -> bool {
        match (self, gesture) {
            (
                Self::GtkDevices,
                Gesture::Click { .. }
                | Gesture::Press
                | Gesture::Release
                | Gesture::Drag { .. }
                | Gesture::Scroll { .. },
            )
            | (Self::Qt, Gesture::Scroll { .. }) => true,
            (Self::GtkDevices, Gesture::Move)
            | (
                Self::Qt,
                Gesture::Move
                | Gesture::Click { .. }
                | Gesture::Press
                | Gesture::Release
                | Gesture::Drag { .. },
            )
            | (Self::Chromium | Self::Gtk3Core | Self::Other, _) => false,
        }
    }

    /// Whether keys sent to such a window arrive.
    pub(super) const fn hears_keys(self) -> bool {
        match self {
            Self::Qt | Self::Chromium => true,
            Self::Gtk3Core | Self::GtkDevices | Self::Other => false,
        }
    }

    /// Whether a press has to wait until the window shows that it believes in its focus. Qt takes the two in from different
    /// queues, and a press that overtakes the focus makes it ask for the real one.
    pub(super) const fn believes_slowly(self) -> bool {
        match self {
            Self::Qt => true,
            Self::Chromium | Self::Gtk3Core | Self::GtkDevices | Self::Other => false,
        }
    }

    /// Whether input for a window of which nothing can be seen is held back until something can.
    pub(super) const fn sleeps_when_hidden(self) -> bool {
        match self {
            Self::Chromium => true,
            Self::Qt | Self::Gtk3Core | Self::GtkDevices | Self::Other => false,
        }
    }
}

/// What the server offers for input at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Means {
    /// Events with the server's own time can be made for one window.
    pub(super) window: bool,
    /// Devices can be operated for everybody.
    pub(super) global: bool,
}

impl Means {
    /// How input gets there, when the window hears what it is sent.
    pub(super) const fn reach(self, heard: bool) -> Reach {
        match self {
            Self { window: true, .. } if heard => Reach::Window,
            Self { global: true, .. } => Reach::GlobalOnly,
            Self { .. } => Reach::Never,
        }
    }
}

impl Screen {
    /// What this server offers.
    pub(super) const fn means(&self) -> Means {
        let here = !self.extensions.xwayland;
        Means {
            window: here && self.clock.is_some(),
            global: here && self.extensions.xtest,
        }
    }

    /// Whether no part of `windows[place]` can be seen, so that its program is told to rest. One whose pixels we keep is never
    /// told so, which is every window that was observed. Pop-ups of no window manager are not counted as covers.
    pub(super) fn is_hidden(
        &self,
        windows: &[XWindow],
        place: usize,
    ) -> Result<bool, BackendError> {
        if self.extensions.composite && self.redirected.contains_key(&windows[place].id) {
            return Ok(false);
        }
        let screen = self.frame(self.root).map_err(unreadable)?;
        let Some(screen) = screen else {
            return Err(BackendError::CaptureFailed);
        };
        let mut covers = Vec::new();
        for above in windows[place + 1..].iter().filter(|above| above.on_screen) {
            // With the frame that the window manager draws around it.
            covers.extend(self.frame(above.id).map_err(unreadable)?);
        }
        Ok(is_covered(windows[place].area, screen, &covers))
    }
}

impl LinuxDesktop {
    /// What listens for pointer events behind a window.
    pub(super) fn listener(
        &self,
        key: WindowKey,
        deadline: &Deadline,
    ) -> Result<Listener, BackendError> {
        let bus = self.services.bus(deadline)?;
        let toolkit = toplevels::toolkit(&self.services.accessibility, &bus, key.pid);
        let toolkit = match self.services.within(deadline, toolkit)? {
            // It does not answer now and never did. What cannot be known is sent nothing.
            Err(CallError::Timeout) => return Ok(Listener::Other),
            toolkit => toolkit.map_err(no_bus)?,
        };
        Ok(match toolkit {
            Some(Toolkit::Qt) => Listener::Qt,
            Some(Toolkit::Chromium) => Listener::Chromium,
            Some(Toolkit::Gtk3) if was_given(key.pid, CORE_EVENTS_VARIABLE) => Listener::Gtk3Core,
            Some(Toolkit::Gtk3 | Toolkit::Gtk4) => Listener::GtkDevices,
            Some(Toolkit::ScreenBased) | None => Listener::Other,
        })
    }
}

/// Whether nothing of `window` is left on the screen when the covers are taken away from it.
fn is_covered(window: Area, screen: Area, covers: &[Area]) -> bool {
    let mut pieces: Vec<Area> = intersection(window, screen).into_iter().collect();
    for cover in covers {
        pieces = pieces
            .iter()
            .flat_map(|piece| without(*piece, *cover))
            .collect();
        if pieces.len() > MOST_PIECES {
            return true;
        }
    }
    pieces.is_empty()
}

/// Left, top, right and bottom edge.
fn edges(area: Area) -> [i64; 4] {
    let (x, y) = (i64::from(area.x), i64::from(area.y));
    [x, y, x + i64::from(area.width), y + i64::from(area.height)]
}

fn between([left, top, right, bottom]: [i64; 4]) -> Option<Area> {
    let length = |from: i64, to: i64| u32::try_from(to - from).ok().filter(|length| *length > 0);
    Some(Area {
        x: i32::try_from(left).ok()?,
        y: i32::try_from(top).ok()?,
        width: length(left, right)?,
        height: length(top, bottom)?,
    })
}

fn intersection(one: Area, other: Area) -> Option<Area> {
    let ([l, t, r, b], [ol, ot, or, ob]) = (edges(one), edges(other));
    between([l.max(ol), t.max(ot), r.min(or), b.min(ob)])
}

/// What is left of `area`: what lies above, below, left and right of the part that is covered.
fn without(area: Area, cover: Area) -> Vec<Area> {
    let Some(covered) = intersection(area, cover) else {
        return vec![area];
    };
    let ([l, t, r, b], [cl, ct, cr, cb]) = (edges(area), edges(covered));
    [
        [l, t, r, ct],
        [l, cb, r, b],
        [l, ct, cl, cb],
        [cr, ct, r, cb],
    ]
    .into_iter()
    .filter_map(between)
    .collect()
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::action::Pages;
    use maka_cu_protocol::geometry::WindowPoint;
    use maka_cu_protocol::sets::{Direction, MouseButton};

    use super::*;

    const fn area(x: i32, y: i32, width: u32, height: u32) -> Area {
        Area {
            x,
            y,
            width,
            height,
        }
    }

    #[test]
    fn the_table_of_gestures() {
        let from = WindowPoint::try_new(1.0, 1.0).unwrap();
        let gestures = [
            Gesture::Move,
            Gesture::Click {
                button: MouseButton::Left,
                count: 1,
            },
            Gesture::Press,
            Gesture::Release,
            Gesture::Drag { from },
            Gesture::Scroll {
                direction: Direction::Down,
                pages: Pages::ONE,
            },
        ];
        let rows = [
            (Listener::Qt, [false, true, true, true, true, false]),
            (Listener::Chromium, [false, true, true, true, true, true]),
            (Listener::Gtk3Core, [false, true, true, true, true, true]),
            (Listener::GtkDevices, [false; 6]),
            (Listener::Other, [false; 6]),
        ];
        for (listener, heard) in rows {
            for (gesture, heard) in gestures.iter().zip(heard) {
                assert_eq!(listener.hears(gesture), heard, "{listener:?} {gesture:?}");
            }
        }
        let by_the_second_pointer = [
            (Listener::Qt, [false, false, false, false, false, true]),
            (Listener::Chromium, [false; 6]),
            (Listener::Gtk3Core, [false; 6]),
            (Listener::GtkDevices, [false, true, true, true, true, true]),
            (Listener::Other, [false; 6]),
        ];
        for (listener, heard) in by_the_second_pointer {
            for (gesture, heard) in gestures.iter().zip(heard) {
                let found = listener.hears_second(gesture);
                assert_eq!(found, heard, "{listener:?} {gesture:?}");
                assert!(!(found && listener.hears(gesture)), "one way is enough");
            }
        }
    }

    #[test]
    fn what_is_not_heard_needs_everybodys_devices() {
        let rows = [
            (true, true, true, Reach::Window),
            (true, true, false, Reach::GlobalOnly),
            (false, true, true, Reach::GlobalOnly),
            (true, false, true, Reach::Window),
            (true, false, false, Reach::Never),
            (false, false, true, Reach::Never),
        ];
        for (window, global, heard, expected) in rows {
            assert_eq!(Means { window, global }.reach(heard), expected);
        }
    }

    #[test]
    fn a_window_is_hidden_when_nothing_of_it_is_left() {
        let screen = area(0, 0, 100, 100);
        let window = area(10, 10, 50, 50);
        let rows: [(&str, &[Area], bool); 6] = [
            ("nothing above", &[], false),
            ("all of it", &[area(0, 0, 100, 100)], true),
            ("all but a column", &[area(0, 0, 59, 100)], false),
            (
                "two halves",
                &[area(10, 10, 25, 50), area(35, 0, 40, 70)],
                true,
            ),
            (
                "a hole is left",
                &[
                    area(10, 10, 50, 20),
                    area(10, 31, 50, 40),
                    area(0, 0, 100, 29),
                ],
                false,
            ),
            ("beside it", &[area(60, 10, 10, 50)], false),
        ];
        for (name, covers, hidden) in rows {
            assert_eq!(is_covered(window, screen, covers), hidden, "{name}");
        }
        assert!(
            is_covered(area(200, 0, 50, 50), screen, &[]),
            "off the screen"
        );
        let edge = area(i32::MAX, i32::MAX, u32::MAX, u32::MAX);
        assert!(is_covered(edge, screen, &[edge]));
    }
}
