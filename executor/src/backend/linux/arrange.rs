//! Moving, resizing and minimising windows, by request to the window manager (EWMH 1.5, ICCCM 4.1.4).
//!
//! A window is never configured behind the manager's back: it would move its frame to where it thinks the window is. What the
//! manager says that it does not do is not attempted. What it makes of a request, the portable code reads back.

use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::sets::Path;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, Gravity,
};

use super::LinuxDesktop;
use super::display::{Screen, unreadable};
use super::listing::main_area;
use super::node::LinuxNode;
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::deadline::Deadline;

/// Source indication of requests on behalf of a person, as pagers make them. Requests of applications may be ignored.
const FROM_A_PAGER: u32 = 2 << 12;
const HAS_X: u32 = 1 << 8;
const HAS_Y: u32 = 1 << 9;
const HAS_WIDTH: u32 = 1 << 10;
const HAS_HEIGHT: u32 = 1 << 11;
/// `IconicState` of `WM_CHANGE_STATE`.
const ICONIC: u32 = 3;
/// Atoms of one list that are read.
const MOST_ATOMS: u32 = 1024;

/// What to ask of the window manager, in root pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// The client area's top left corner.
    Move { x: i32, y: i32 },
    /// The client area's size.
    Resize { width: u32, height: u32 },
    /// Off the screen.
    Minimize,
}

impl LinuxDesktop {
    /// Carries out a window action on a root; `None` when the command is not one.
    pub(super) fn arrange(
        &self,
        node: &LinuxNode,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Option<Result<Performed, PerformError>> {
        let wanted = match command {
            ElementCommand::MoveWindow(point) => Wanted::Place(*point),
            ElementCommand::ResizeWindow(size) => Wanted::Size(*size),
            ElementCommand::MinimizeWindow => Wanted::Minimized,
            ElementCommand::Perform(_)
            | ElementCommand::SetValue(_)
            | ElementCommand::SelectText(_)
            | ElementCommand::Scroll { .. } => return None,
        };
        Some(self.request(node, wanted, deadline))
    }

    fn request(
        &self,
        node: &LinuxNode,
        wanted: Wanted,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        let path = Path::AxAttribute;
        let id = match node {
            LinuxNode::Window(context) => context.window,
            LinuxNode::Accessible(node) if node.parent.is_none() && !node.in_menu => {
                node.context.window
            }
            LinuxNode::Accessible(_) => return Err(PerformError::NotActionable),
        };
        let arrangement = self.display.ask(deadline, move |screen| {
            if screen.window(id).map_err(unreadable)?.is_none() {
                return Ok(None);
            }
            let main = main_area(&screen.monitors().map_err(unreadable)?);
            let Some(arrangement) = wanted.in_root(main.x, main.y) else {
                return Ok(None);
            };
            let allowed = screen.allows(id, arrangement).map_err(unreadable)?;
            Ok(allowed.then_some(arrangement))
        });
        // So far only questions were asked.
        let arrangement = match arrangement {
            Ok(Some(arrangement)) if !deadline.is_over() => arrangement,
            Ok(_) | Err(_) => return Err(PerformError::NotActionable),
        };
        let sent = self.display.ask(deadline, move |screen| {
            screen.send(id, arrangement).map_err(unreadable)
        });
        match sent {
            Ok(()) => Ok(Performed::by(path)),
            Err(error) => {
                tracing::debug!(%error, "a request to the window manager may not have been sent");
                Err(PerformError::Unknown { path })
            }
        }
    }
}

/// A window action in the protocol's coordinates.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Place(ScreenPoint),
    Size(ScreenSize),
    Minimized,
}

impl Wanted {
    /// In pixels of the root window, where the main monitor begins at `left`, `top`. `None` for what X cannot express: its
    /// coordinates have 16 bits, and a larger number would come out as quite another place. X has no empty windows, so the
    /// smallest size is one pixel.
    fn in_root(self, left: i32, top: i32) -> Option<Arrangement> {
        let coordinate = |value: f64, origin: i32| {
            let value = value.round() + f64::from(origin);
            let range = f64::from(i16::MIN)..=f64::from(i16::MAX);
            range.contains(&value).then_some(value as i32)
        };
        let extent = |value: f64| {
            let value = value.round().max(1.0);
            (value <= f64::from(i16::MAX)).then_some(value as u32)
        };
        Some(match self {
            Self::Place(point) => Arrangement::Move {
                x: coordinate(point.x(), left)?,
                y: coordinate(point.y(), top)?,
            },
            Self::Size(size) => Arrangement::Resize {
                width: extent(size.width())?,
                height: extent(size.height())?,
            },
            Self::Minimized => Arrangement::Minimize,
        })
    }
}

impl Screen {
    /// Whether the window manager says that it does this to this window. One that does not tell about single windows is
    /// believed about all of them.
    fn allows(&self, id: u32, arrangement: Arrangement) -> Result<bool, ReplyError> {
        let atoms = &self.atoms;
        let managed = self.atoms_of(self.root, atoms._NET_SUPPORTED)?;
        let allowed = self.atoms_of(id, atoms._NET_WM_ALLOWED_ACTIONS)?;
        let (request, action) = match arrangement {
            Arrangement::Move { .. } => (atoms._NET_MOVERESIZE_WINDOW, atoms._NET_WM_ACTION_MOVE),
            Arrangement::Resize { .. } => {
                (atoms._NET_MOVERESIZE_WINDOW, atoms._NET_WM_ACTION_RESIZE)
            }
            // The request is of the ICCCM, which every manager follows: that there is one is all to be known.
            Arrangement::Minimize => (
                atoms._NET_SUPPORTING_WM_CHECK,
                atoms._NET_WM_ACTION_MINIMIZE,
            ),
        };
        Ok(managed.contains(&request) && (allowed.is_empty() || allowed.contains(&action)))
    }

    fn atoms_of(&self, window: u32, property: u32) -> Result<Vec<u32>, ReplyError> {
        let reply = self
            .connection
            .get_property(false, window, property, AtomEnum::ATOM, 0, MOST_ATOMS)?
            .reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }

    /// Asks the window manager, and makes sure that the server has passed it on.
    fn send(&self, id: u32, arrangement: Arrangement) -> Result<(), ReplyError> {
        let (kind, data) = message(arrangement);
        let kind = match kind {
            Kind::MoveResize => self.atoms._NET_MOVERESIZE_WINDOW,
            Kind::ChangeState => self.atoms.WM_CHANGE_STATE,
        };
        let event = ClientMessageEvent::new(32, id, kind, data);
        let to_the_manager = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection
            .send_event(false, self.root, to_the_manager, event)?
            .check()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    MoveResize,
    ChangeState,
}

/// The request. Static gravity, so that the numbers are those of the client area, which is what windows are listed by.
fn message(arrangement: Arrangement) -> (Kind, [u32; 5]) {
    let flags = |fields| FROM_A_PAGER | fields | u32::from(Gravity::STATIC);
    match arrangement {
        Arrangement::Move { x, y } => (
            Kind::MoveResize,
            [
                flags(HAS_X | HAS_Y),
                x.cast_unsigned(),
                y.cast_unsigned(),
                0,
                0,
            ],
        ),
        Arrangement::Resize { width, height } => (
            Kind::MoveResize,
            [flags(HAS_WIDTH | HAS_HEIGHT), 0, 0, width, height],
        ),
        Arrangement::Minimize => (Kind::ChangeState, [ICONIC, 0, 0, 0, 0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_specification() {
        let rows = [
            (
                Arrangement::Move { x: -5, y: 7 },
                (Kind::MoveResize, [0x230a, u32::MAX - 4, 7, 0, 0]),
            ),
            (
                Arrangement::Resize {
                    width: 300,
                    height: 200,
                },
                (Kind::MoveResize, [0x2c0a, 0, 0, 300, 200]),
            ),
            (Arrangement::Minimize, (Kind::ChangeState, [3, 0, 0, 0, 0])),
        ];
        for (arrangement, expected) in rows {
            assert_eq!(message(arrangement), expected, "{arrangement:?}");
        }
    }

    /// B2: displays left of and above the main one have negative coordinates, which are as good as others.
    #[test]
    fn places_are_counted_from_the_main_monitor() {
        let place = |x, y| Wanted::Place(ScreenPoint::try_new(x, y).unwrap()).in_root(1920, 0);
        assert_eq!(
            place(-1200.4, -30.0),
            Some(Arrangement::Move { x: 720, y: -30 })
        );
        assert_eq!(place(1e9, 0.0), None);
        assert_eq!(place(0.0, -40_000.0), None);
        let size = |width, height| {
            Wanted::Size(ScreenSize::try_new(width, height).unwrap()).in_root(1920, 0)
        };
        assert_eq!(
            size(0.0, 99.5),
            Some(Arrangement::Resize {
                width: 1,
                height: 100
            })
        );
        assert_eq!(size(1e9, 1.0), None);
    }
}
