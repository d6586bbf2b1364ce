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
use super::display::{Area, Screen, unreadable};
use super::listing::main_area;
use super::node::LinuxNode;
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::deadline::Deadline;

/// Source indication of requests on behalf of a person, as pagers make them. Requests of applications may be ignored.
const FROM_A_PAGER: u32 = 2 << 12;
/// Position and size are all given: what is left out, managers fill in by rules of their own.
const HAS_ALL: u32 = 0xf << 8;
/// `IconicState` of `WM_CHANGE_STATE`.
const ICONIC: u32 = 3;
/// Numbers of one property that are read.
const MOST_NUMBERS: u32 = 1024;

/// What to ask of the window manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The client area belongs there, in root pixels.
    Place {
        area: Area,
        /// The manager's frame: left, right, top, bottom. `None` when it does not tell.
        frame: Option<[u32; 4]>,
    },
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
            LinuxNode::Window(context) | LinuxNode::Silent(context) => context.window,
            LinuxNode::Accessible(node) if node.parent.is_none() && !node.in_menu => {
                node.context.window
            }
            LinuxNode::Accessible(_) => return Err(PerformError::NotActionable),
        };
        let request = self.display.ask(deadline, move |screen| {
            let main = main_area(&screen.monitors().map_err(unreadable)?);
            let Some(window) = screen.window(id).map_err(unreadable)? else {
                return Ok(None);
            };
            if !screen.allows(id, wanted).map_err(unreadable)? {
                return Ok(None);
            }
            let frame = screen.frame_of(id).map_err(unreadable)?;
            Ok(wanted.request(window.area, main, frame))
        });
        // So far only questions were asked.
        let request = match request {
            Ok(Some(request)) if !deadline.is_over() => request,
            Ok(_) | Err(_) => return Err(PerformError::NotActionable),
        };
        let sent = self.display.ask(deadline, move |screen| {
            screen.send(id, request).map_err(unreadable)
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
    /// For a window whose client area is `area`, on a desktop whose main monitor is `main`. `None` for what X cannot express:
    /// its coordinates have 16 bits, and a larger number would come out as quite another place. X has no empty windows, so
    /// the smallest size is one pixel.
    fn request(self, area: Area, main: Area, frame: Option<[u32; 4]>) -> Option<Request> {
        let coordinate = |value: f64, origin: i32| {
            let value = value.round() + f64::from(origin);
            let range = f64::from(i16::MIN)..=f64::from(i16::MAX);
            range.contains(&value).then_some(value as i32)
        };
        let extent = |value: f64| {
            let value = value.round().max(1.0);
            (value <= f64::from(i16::MAX)).then_some(value as u32)
        };
        let area = match self {
            Self::Place(point) => Area {
                x: coordinate(point.x(), main.x)?,
                y: coordinate(point.y(), main.y)?,
                ..area
            },
            Self::Size(size) => Area {
                width: extent(size.width())?,
                height: extent(size.height())?,
                ..area
            },
            Self::Minimized => return Some(Request::Minimize),
        };
        Some(Request::Place { area, frame })
    }
}

impl Screen {
    /// Whether the window manager says that it does this to this window. One that does not tell about single windows is
    /// believed about all of them.
    fn allows(&self, id: u32, wanted: Wanted) -> Result<bool, ReplyError> {
        let atoms = &self.atoms;
        let supported = self.numbers(self.root, atoms._NET_SUPPORTED, AtomEnum::ATOM)?;
        let allowed = self.numbers(id, atoms._NET_WM_ALLOWED_ACTIONS, AtomEnum::ATOM)?;
        let (request, action) = match wanted {
            Wanted::Place(_) => (atoms._NET_MOVERESIZE_WINDOW, atoms._NET_WM_ACTION_MOVE),
            Wanted::Size(_) => (atoms._NET_MOVERESIZE_WINDOW, atoms._NET_WM_ACTION_RESIZE),
            // The request is of the ICCCM, which every manager follows: that there is one is all to be known.
            Wanted::Minimized => (
                atoms._NET_SUPPORTING_WM_CHECK,
                atoms._NET_WM_ACTION_MINIMIZE,
            ),
        };
        Ok(supported.contains(&request) && (allowed.is_empty() || allowed.contains(&action)))
    }

    fn frame_of(&self, id: u32) -> Result<Option<[u32; 4]>, ReplyError> {
        let frame = self.numbers(id, self.atoms._NET_FRAME_EXTENTS, AtomEnum::CARDINAL)?;
        Ok(frame.try_into().ok())
    }

    fn numbers(&self, window: u32, property: u32, kind: AtomEnum) -> Result<Vec<u32>, ReplyError> {
        let reply = self
            .connection
            .get_property(false, window, property, kind, 0, MOST_NUMBERS)?
            .reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }

    /// Asks the window manager, and makes sure that the server has passed it on.
    fn send(&self, id: u32, request: Request) -> Result<(), ReplyError> {
        let (kind, data) = message(request);
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

/// The request. Windows are listed by their client area, so that is what has to come out: the corner of the frame is asked
/// for where the frame is known. Static gravity, which means the client area, is the second choice, since managers add the
/// border to it that a window had before they took it away (openbox with xterm).
fn message(request: Request) -> (Kind, [u32; 5]) {
    let (area, gravity, left, top) = match request {
        Request::Place {
            area,
            frame: Some([left, _, top, _]),
        } => (area, Gravity::NORTH_WEST, left, top),
        Request::Place { area, frame: None } => (area, Gravity::STATIC, 0, 0),
        Request::Minimize => return (Kind::ChangeState, [ICONIC, 0, 0, 0, 0]),
    };
    let place = |client: i32, frame: u32| client.saturating_sub_unsigned(frame).cast_unsigned();
    (
        Kind::MoveResize,
        [
            FROM_A_PAGER | HAS_ALL | u32::from(gravity),
            place(area.x, left),
            place(area.y, top),
            area.width,
            area.height,
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area {
        x: 10,
        y: 20,
        width: 300,
        height: 200,
    };

    #[test]
    fn requests_are_those_of_the_specification() {
        let place = |frame| Request::Place { area: AREA, frame };
        let rows = [
            (
                place(Some([1, 1, 25, 5])),
                (Kind::MoveResize, [0x2f01, 9, u32::MAX - 4, 300, 200]),
            ),
            (place(None), (Kind::MoveResize, [0x2f0a, 10, 20, 300, 200])),
            (Request::Minimize, (Kind::ChangeState, [3, 0, 0, 0, 0])),
        ];
        for (request, expected) in rows {
            assert_eq!(message(request), expected, "{request:?}");
        }
    }

    /// B2: displays left of and above the main one have negative coordinates, which are as good as others.
    #[test]
    fn places_are_counted_from_the_main_monitor() {
        let main = Area {
            x: 1920,
            y: 0,
            width: 800,
            height: 600,
        };
        let asked = |wanted: Wanted| match wanted.request(AREA, main, None)? {
            Request::Place { area, .. } => Some((area.x, area.y, area.width, area.height)),
            Request::Minimize => None,
        };
        let place = |x, y| asked(Wanted::Place(ScreenPoint::try_new(x, y).unwrap()));
        let size = |width, height| asked(Wanted::Size(ScreenSize::try_new(width, height).unwrap()));
        assert_eq!(place(-1200.4, -30.0), Some((720, -30, 300, 200)));
        assert_eq!(place(1e9, 0.0), None);
        assert_eq!(place(0.0, -40_000.0), None);
        assert_eq!(size(0.0, 99.5), Some((10, 20, 1, 100)));
        assert_eq!(size(1e9, 1.0), None);
    }
}
