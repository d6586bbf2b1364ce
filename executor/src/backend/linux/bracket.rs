//! The focus that a window is told it has while it is sent input, and the events that carry that input.
//!
//! A program that gets a click while it believes itself in the background asks the window manager to bring it to the front
//! (Qt does). So it is told first that it has the focus, and afterwards that it has it no more; the real focus stays where it
//! is. All of this is sent with an empty event mask, which goes to the client that made the window and to nobody else: with
//! the mask that belongs to the event the window manager would hear of it too, and believe it.
//!
//! Invariant: whoever was told that it has the focus is told the end of it, also after an error, a cancellation or a panic.

use std::time::Duration;

use x11rb::NONE;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    ConnectionExt as _, EventMask, FOCUS_IN_EVENT, FOCUS_OUT_EVENT, FocusInEvent, NotifyDetail,
    NotifyMode, Window,
};

use super::display::{Area, Display, Screen, unreadable};
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// What is left to be taken back gets this long, whatever happened to the request it belongs to.
pub(super) const LET_GO: Duration = Duration::from_secs(1);
/// Windows inside windows that are followed. Toolkits have two or three.
const MOST_LEVELS: usize = 32;

/// A window that believes it has the focus.
pub(super) struct Bracket<'d> {
    display: &'d Display,
    window: Window,
    /// Whether it was told so. A window that really has the focus is not.
    open: bool,
}

impl<'d> Bracket<'d> {
    /// Tells the window that it has the focus.
    pub(super) fn open(
        display: &'d Display,
        window: Window,
        deadline: &Deadline,
    ) -> Result<Self, BackendError> {
        // Open from here on: a request that is given up may still be carried out.
        let mut bracket = Self {
            display,
            window,
            open: true,
        };
        bracket.open = display.ask(deadline, move |screen| {
            if screen.has_focus(window).map_err(unreadable)? {
                return Ok(false);
            }
            screen.tell_focus(window, FOCUS_IN_EVENT).map_err(gone)?;
            Ok(true)
        })?;
        Ok(bracket)
    }

    /// Whether the window has to be told anything; one that really has the focus has not.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Takes over a bracket that another request left open.
    pub(super) const fn resume(display: &'d Display, window: Window, open: bool) -> Self {
        Self {
            display,
            window,
            open,
        }
    }

    /// Leaves it open for a later request, which is told whether there is something to close.
    pub(super) const fn leave_open(&mut self) -> bool {
        std::mem::replace(&mut self.open, false)
    }
}

impl Drop for Bracket<'_> {
    fn drop(&mut self) {
        if !self.leave_open() {
            return;
        }
        let window = self.window;
        let closed = self.display.ask(&Deadline::within(LET_GO), move |screen| {
            // It may have got the real focus meanwhile, and must then go on believing it.
            if screen.has_focus(window).map_err(unreadable)? {
                return Ok(());
            }
            screen.tell_focus(window, FOCUS_OUT_EVENT).map_err(gone)
        });
        match closed {
            // A window that is gone believes nothing.
            Ok(()) | Err(BackendError::WindowGone) => {}
            Err(_) => tracing::warn!(window, "a window could not be told that it lost the focus"),
        }
    }
}

/// A refused request about a window that was there a moment ago.
pub(super) fn gone(error: ReplyError) -> BackendError {
    match error {
        ReplyError::X11Error(_) => BackendError::WindowGone,
        ReplyError::ConnectionError(_) => unreadable(error),
    }
}

impl Screen {
    /// Sends an event to the program that made the window, and to no other.
    pub(super) fn tell<E: Into<[u8; 32]>>(
        &self,
        window: Window,
        event: E,
    ) -> Result<(), ReplyError> {
        self.connection
            .send_event(false, window, EventMask::NO_EVENT, event)?
            .check()
    }

    fn tell_focus(&self, window: Window, kind: u8) -> Result<(), ReplyError> {
        let event = FocusInEvent {
            response_type: kind,
            detail: NotifyDetail::NONLINEAR,
            sequence: 0,
            event: window,
            mode: NotifyMode::NORMAL,
        };
        self.tell(window, event)
    }

    /// Whether the window, or one inside it, really has the focus of the core keyboard.
    pub(super) fn has_focus(&self, window: Window) -> Result<bool, ReplyError> {
        let focus = self.connection.get_input_focus()?.reply()?.focus;
        self.is_inside(focus, window)
    }

    /// Whether `inner` is `outer` or lies in it.
    pub(super) fn is_inside(&self, inner: Window, outer: Window) -> Result<bool, ReplyError> {
        let mut window = inner;
        for _ in 0..MOST_LEVELS {
            if window == outer {
                return Ok(true);
            }
            // 0 is no window, 1 as a focus means whatever the pointer is over.
            if window <= 1 || window == self.root {
                return Ok(false);
            }
            window = match self.connection.query_tree(window)?.reply() {
                Ok(tree) => tree.parent,
                Err(ReplyError::X11Error(_)) => return Ok(false),
                Err(error @ ReplyError::ConnectionError(_)) => return Err(error),
            };
        }
        Ok(false)
    }

    /// The area of the window together with what is drawn around it: that of the child of the root that holds it. `None` when
    /// it is gone; of the root itself, the screen.
    pub(super) fn frame(&self, window: Window) -> Result<Option<Area>, ReplyError> {
        let mut outermost = window;
        for _ in 0..MOST_LEVELS {
            let tree = match self.connection.query_tree(outermost)?.reply() {
                Ok(tree) => tree,
                Err(ReplyError::X11Error(_)) => return Ok(None),
                Err(error @ ReplyError::ConnectionError(_)) => return Err(error),
            };
            if tree.parent == NONE || tree.parent == tree.root {
                break;
            }
            outermost = tree.parent;
        }
        match self.connection.get_geometry(outermost)?.reply() {
            Ok(geometry) => Ok(Some(Area {
                x: geometry.x.into(),
                y: geometry.y.into(),
                width: u32::from(geometry.width) + 2 * u32::from(geometry.border_width),
                height: u32::from(geometry.height) + 2 * u32::from(geometry.border_width),
            })),
            Err(ReplyError::X11Error(_)) => Ok(None),
            Err(error @ ReplyError::ConnectionError(_)) => Err(error),
        }
    }

    /// The deepest window below a point of `top`, and the point in it. `None` when `top` is gone.
    pub(super) fn deepest(
        &self,
        top: Window,
        (x, y): (i16, i16),
    ) -> Result<Option<(Window, i16, i16)>, ReplyError> {
        let mut window = top;
        for _ in 0..MOST_LEVELS {
            let there = self.connection.translate_coordinates(top, window, x, y)?;
            let there = match there.reply() {
                Ok(there) => there,
                Err(ReplyError::X11Error(_)) => return Ok(None),
                Err(error @ ReplyError::ConnectionError(_)) => return Err(error),
            };
            if there.child == NONE {
                return Ok(Some((window, there.dst_x, there.dst_y)));
            }
            window = there.child;
        }
        Ok(None)
    }
}
