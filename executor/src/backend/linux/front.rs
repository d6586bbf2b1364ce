//! Input for everybody: a window is brought to the front, the core pointer and keyboard are operated through XTEST, and then
//! pointer and active window are put back.
//!
//! Used only where the host allowed it. Everything here looks before it acts: a press goes where the window was seen under
//! the point, a key where it was seen to have the focus, and what a person has moved meanwhile is left where it is.

use std::time::{Duration, Instant};

use maka_cu_protocol::geometry::WindowPoint;
use x11rb::connection::Connection as _;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ClientMessageEvent, ConnectionExt as _, EventMask,
    MOTION_NOTIFY_EVENT, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::bracket::{LET_GO, gone};
use super::display::{Display, Screen, unreadable};
use super::hand::{Button, Hand};
use super::sent::pixel;
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// A window manager acts within some milliseconds; one that has not by then does not mean to.
const COMES_FORWARD_WITHIN: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(15);
/// Programs see the pointer where it was used for this long before it goes back.
const LINGER: Duration = Duration::from_millis(60);
/// A focus without keys is forgotten after this long.
const FORWARD_FOR: Duration = Duration::from_secs(10);
/// `_NET_ACTIVE_WINDOW`: the request comes from a tool of the user, not from the program itself.
const FROM_A_TOOL: u32 = 2;

/// What was so before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// The window that came forward.
    pub(super) window: Window,
    pub(super) active: Option<Window>,
    pub(super) pointer: (i16, i16),
    at: Instant,
}

impl Before {
    /// A window stays forward between a focus and the keys that it is for; what was before is worth restoring that long.
    pub(super) fn still_counts_for(&self, window: Window) -> bool {
        self.window == window && self.at.elapsed() < FORWARD_FOR
    }

    #[cfg(test)]
    pub(super) fn of(window: Window) -> Self {
        Self {
            window,
            active: None,
            pointer: (0, 0),
            at: Instant::now(),
        }
    }
}

/// What there is now, with nothing brought forward.
pub(super) fn look(
    display: &Display,
    window: Window,
    deadline: &Deadline,
) -> Result<Before, BackendError> {
    display.ask(deadline, move |screen| {
        Ok(Before {
            window,
            active: screen.active_window().map_err(unreadable)?,
            pointer: screen.pointer().map_err(unreadable)?,
            at: Instant::now(),
        })
    })
}

/// Brings the window forward and waits until it is there.
///
/// # Errors
/// [`BackendError::Refused`] when it does not come; then what there was is put back.
pub(super) fn bring(
    display: &Display,
    window: Window,
    deadline: &Deadline,
) -> Result<Before, BackendError> {
    let before = look(display, window, deadline)?;
    display.ask(deadline, move |screen| {
        if screen.is_forward(window).map_err(unreadable)? {
            return Ok(());
        }
        screen.activate(window, before.active).map_err(gone)
    })?;
    let patience = deadline.at_most(COMES_FORWARD_WITHIN);
    loop {
        let there = display.ask(deadline, move |screen| {
            screen.is_forward(window).map_err(unreadable)
        });
        match there {
            Ok(true) => return Ok(before),
            Ok(false) if !patience.is_over() => patience.pause(LOOK),
            Ok(false) => {
                give_back(display, before, None);
                return Err(BackendError::Refused);
            }
            Err(error) => {
                give_back(display, before, None);
                return Err(error);
            }
        }
    }
}

/// Puts back what there was: the pointer when it still is at `left_at`, and the active window unless a person has chosen
/// another. Waits a moment for the window manager, so that whoever looks next sees it done.
pub(super) fn give_back(display: &Display, before: Before, left_at: Option<(i16, i16)>) {
    let patience = Deadline::within(LET_GO);
    let asked = display.ask(&patience, move |screen| {
        if left_at.is_some() && left_at == Some(screen.pointer().map_err(unreadable)?) {
            screen
                .fake(MOTION_NOTIFY_EVENT, 0, before.pointer)
                .map_err(unreadable)?;
        }
        let active = screen.active_window().map_err(unreadable)?;
        let Some(previous) = before.active.filter(|previous| *previous != before.window) else {
            return Ok(None);
        };
        let ours = active.is_none_or(|active| screen.is_same_client(active, before.window));
        if !ours || active == Some(previous) {
            return Ok(None);
        }
        match screen.activate(previous, active) {
            Ok(()) => Ok(Some(previous)),
            // It has gone meanwhile.
            Err(ReplyError::X11Error(_)) => Ok(None),
            Err(error @ ReplyError::ConnectionError(_)) => Err(unreadable(error)),
        }
    });
    match asked {
        Ok(None) => {}
        Ok(Some(previous)) => {
            while !patience.is_over() {
                let active = display.ask(&patience, |screen| {
                    screen.active_window().map_err(unreadable)
                });
                if active != Ok(Some(previous)) {
                    patience.pause(LOOK);
                } else {
                    return;
                }
            }
        }
        Err(_) => tracing::warn!("pointer and active window could not be put back"),
    }
}

/// The real pointer, over one window.
pub(super) struct RealHand<'d> {
    display: &'d Display,
    top: Window,
    /// Where it was put last.
    at: Option<(i16, i16)>,
    /// With a button down the pointer may leave the window.
    down: bool,
}

impl<'d> RealHand<'d> {
    pub(super) const fn new(display: &'d Display, top: Window, down: bool) -> Self {
        Self {
            display,
            top,
            at: None,
            down,
        }
    }

    /// Where it was put last; stays there for a moment, for programs that ask for the pointer late.
    pub(super) fn rest(&self, deadline: &Deadline) -> Option<(i16, i16)> {
        deadline.pause(LINGER);
        self.at
    }
}

impl Hand for RealHand<'_> {
    fn place(&mut self, at: WindowPoint, deadline: &Deadline) -> Result<(), BackendError> {
        let (top, (x, y), down) = (self.top, pixel(at), self.down);
        let patience = deadline.at_most(COMES_FORWARD_WITHIN);
        loop {
            let placed = self.display.ask(deadline, move |screen| {
                let there = screen
                    .connection
                    .translate_coordinates(top, screen.root, x, y)
                    .map_err(unreadable)?
                    .reply()
                    .map_err(gone)?;
                let at = (there.dst_x, there.dst_y);
                if !down && !screen.is_under(top, at).map_err(unreadable)? {
                    return Ok(None);
                }
                screen
                    .fake(MOTION_NOTIFY_EVENT, 0, at)
                    .map_err(unreadable)?;
                Ok(Some(at))
            })?;
            if placed.is_some() {
                self.at = placed;
                return Ok(());
            }
            // It has come forward, but may not have been raised yet. Something that stays above it is a refusal.
            if patience.is_over() {
                return Err(BackendError::Refused);
            }
            patience.pause(LOOK);
        }
    }

    fn press(&mut self, button: Button, deadline: &Deadline) -> Result<(), BackendError> {
        self.down = true;
        self.display.ask(deadline, move |screen| {
            screen
                .fake(BUTTON_PRESS_EVENT, button.number(), (0, 0))
                .map_err(unreadable)
        })
    }

    fn release(&mut self, button: Button) -> Result<(), BackendError> {
        self.display.ask(&Deadline::within(LET_GO), move |screen| {
            screen
                .fake(BUTTON_RELEASE_EVENT, button.number(), (0, 0))
                .map_err(unreadable)
        })?;
        self.down = false;
        Ok(())
    }
}

impl Screen {
    /// Operates the core devices. `at` counts for motion only.
    pub(super) fn fake(&self, kind: u8, detail: u8, at: (i16, i16)) -> Result<(), ReplyError> {
        self.connection
            .xtest_fake_input(kind, detail, 0, self.root, at.0, at.1, 0)?
            .check()
    }

    /// The window is the active one and has the focus, where it takes one.
    fn is_forward(&self, window: Window) -> Result<bool, ReplyError> {
        Ok(self.has_focus(window)? || self.active_window()? == Some(window))
    }

    /// Asks the window manager to make the window the active one.
    fn activate(&self, window: Window, active: Option<Window>) -> Result<(), ReplyError> {
        // An error for a window that is gone: the message itself goes to the root, which never is.
        self.connection.get_window_attributes(window)?.reply()?;
        let data = [FROM_A_TOOL, self.now()?, active.unwrap_or(0), 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atoms._NET_ACTIVE_WINDOW, data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection
            .send_event(false, self.root, mask, message)?
            .check()
    }

    /// Where the core pointer is.
    pub(super) fn pointer(&self) -> Result<(i16, i16), ReplyError> {
        let pointer = self.connection.query_pointer(self.root)?.reply()?;
        Ok((pointer.root_x, pointer.root_y))
    }

    /// Whether a press there goes to the window, or to a pop-up of its program.
    pub(super) fn is_under(&self, window: Window, at: (i16, i16)) -> Result<bool, ReplyError> {
        let Some((deepest, ..)) = self.deepest(self.root, at)? else {
            return Ok(false);
        };
        Ok(self.is_inside(deepest, window)?
            || (deepest != self.root && self.is_same_client(deepest, window)))
    }

    /// Whether one program made both windows: its part of an id is the same.
    fn is_same_client(&self, one: Window, other: Window) -> bool {
        let of_client = !self.connection.setup().resource_id_mask;
        one & of_client == other & of_client
    }
}
