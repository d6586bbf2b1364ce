//! A hand that sends its movements to one window. The user's pointer has no part in it.
//!
//! Events go to the deepest window under the point, as the server would send them, and while a button is down to the window in
//! which it was pressed. None of them climbs to the window manager: they carry no event mask and are not propagated.

use maka_cu_protocol::geometry::WindowPoint;
use x11rb::NONE;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ButtonPressEvent, ConnectionExt as _,
    ENTER_NOTIFY_EVENT, EnterNotifyEvent, MOTION_NOTIFY_EVENT, Motion, MotionNotifyEvent,
    NotifyDetail, NotifyMode, Window,
};

use super::bracket::{Bracket, LET_GO, gone};
use super::display::{Display, Screen, unreadable};
use super::hand::{Button, Hand};
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// The `same screen` and `focus` bits of an `EnterNotify` event.
const SAME_SCREEN_AND_FOCUS: u8 = 0b11;

/// Where an event happens.
#[derive(Clone, Copy, Debug)]
struct Spot {
    window: Window,
    x: i16,
    y: i16,
    root_x: i16,
    root_y: i16,
}

/// A hand for one window.
pub(super) struct SentHand<'d> {
    display: &'d Display,
    top: Window,
    /// Closed when the hand is gone.
    bracket: Bracket<'d>,
    at: (i16, i16),
    /// The window that last saw the pointer come in.
    entered: Option<Window>,
    /// Where the button went down that is down.
    grab: Option<Window>,
    buttons: u16,
}

/// What a hand leaves when a button stays down after the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grip {
    grab: Option<Window>,
    bracket_open: bool,
}

impl<'d> SentHand<'d> {
    /// Tells the window that it has the focus. Nothing else is sent yet.
    pub(super) fn new(
        display: &'d Display,
        top: Window,
        deadline: &Deadline,
    ) -> Result<Self, BackendError> {
        let bracket = Bracket::open(display, top, deadline)?;
        Ok(Self {
            display,
            top,
            bracket,
            at: (0, 0),
            entered: None,
            grab: None,
            buttons: 0,
        })
    }

    /// Whether the window was told something that it has to take in first.
    pub(super) const fn has_told(&self) -> bool {
        self.bracket.is_open()
    }

    /// The hand that another request left with the left button down.
    pub(super) const fn resume(display: &'d Display, top: Window, grip: Grip) -> Self {
        Self {
            display,
            top,
            bracket: Bracket::resume(display, top, grip.bracket_open),
            at: (0, 0),
            entered: grip.grab,
            grab: grip.grab,
            buttons: Button::LEFT.mask(),
        }
    }

    /// Ends without closing the bracket: a control that loses the focus gives up a button that is down in it.
    pub(super) fn leave_down(mut self) -> Grip {
        Grip {
            grab: self.grab,
            bracket_open: self.bracket.leave_open(),
        }
    }

    fn button(
        &mut self,
        kind: u8,
        button: Button,
        deadline: &Deadline,
    ) -> Result<Window, BackendError> {
        let (top, at, grab, state) = (self.top, self.at, self.grab, self.buttons);
        self.display.ask(deadline, move |screen| {
            let spot = screen.spot(top, at, grab)?;
            let event = ButtonPressEvent {
                response_type: kind,
                detail: button.number(),
                sequence: 0,
                time: screen.now().map_err(unreadable)?,
                root: screen.root,
                event: spot.window,
                child: NONE,
                root_x: spot.root_x,
                root_y: spot.root_y,
                event_x: spot.x,
                event_y: spot.y,
                state: state.into(),
                same_screen: true,
            };
            screen.tell(spot.window, event).map_err(gone)?;
            Ok(spot.window)
        })
    }
}

impl Hand for SentHand<'_> {
    fn place(&mut self, at: WindowPoint, deadline: &Deadline) -> Result<(), BackendError> {
        self.at = pixel(at);
        let (top, at, grab) = (self.top, self.at, self.grab);
        let (entered, state) = (self.entered, self.buttons);
        self.entered = self.display.ask(deadline, move |screen| {
            let spot = screen.spot(top, at, grab)?;
            if entered != Some(spot.window) {
                screen.tell_entered(spot, state)?;
            }
            let event = MotionNotifyEvent {
                response_type: MOTION_NOTIFY_EVENT,
                detail: Motion::NORMAL,
                sequence: 0,
                time: screen.now().map_err(unreadable)?,
                root: screen.root,
                event: spot.window,
                child: NONE,
                root_x: spot.root_x,
                root_y: spot.root_y,
                event_x: spot.x,
                event_y: spot.y,
                state: state.into(),
                same_screen: true,
            };
            screen.tell(spot.window, event).map_err(gone)?;
            Ok(Some(spot.window))
        })?;
        Ok(())
    }

    fn press(&mut self, button: Button, deadline: &Deadline) -> Result<(), BackendError> {
        let window = self.button(BUTTON_PRESS_EVENT, button, deadline)?;
        self.grab.get_or_insert(window);
        self.buttons |= button.mask();
        Ok(())
    }

    fn release(&mut self, button: Button) -> Result<(), BackendError> {
        // In the event, the button is still down.
        self.buttons |= button.mask();
        let released = self.button(BUTTON_RELEASE_EVENT, button, &Deadline::within(LET_GO));
        self.buttons &= !button.mask();
        if self.buttons == 0 {
            self.grab = None;
        }
        released.map(drop)
    }
}

/// The pixel that holds the point. One beyond what X can say is at its edge, which is in no window.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast of a float that does not fit gives the nearest that does"
)]
pub(super) fn pixel(at: WindowPoint) -> (i16, i16) {
    (at.x().floor() as i16, at.y().floor() as i16)
}

impl Screen {
    fn spot(
        &self,
        top: Window,
        at: (i16, i16),
        grab: Option<Window>,
    ) -> Result<Spot, BackendError> {
        let translate = |to: Window| {
            self.connection
                .translate_coordinates(top, to, at.0, at.1)
                .map_err(unreadable)?
                .reply()
                .map_err(gone)
        };
        let (window, x, y) = match grab {
            Some(grab) => {
                let there = translate(grab)?;
                (grab, there.dst_x, there.dst_y)
            }
            None => self
                .deepest(top, at)
                .map_err(unreadable)?
                .ok_or(BackendError::WindowGone)?,
        };
        let root = translate(self.root)?;
        Ok(Spot {
            window,
            x,
            y,
            root_x: root.dst_x,
            root_y: root.dst_y,
        })
    }

    fn tell_entered(&self, spot: Spot, state: u16) -> Result<(), BackendError> {
        let event = EnterNotifyEvent {
            response_type: ENTER_NOTIFY_EVENT,
            detail: NotifyDetail::ANCESTOR,
            sequence: 0,
            time: self.now().map_err(unreadable)?,
            root: self.root,
            event: spot.window,
            child: NONE,
            root_x: spot.root_x,
            root_y: spot.root_y,
            event_x: spot.x,
            event_y: spot.y,
            state: state.into(),
            mode: NotifyMode::NORMAL,
            same_screen_focus: SAME_SCREEN_AND_FOCUS,
        };
        self.tell(spot.window, event).map_err(gone)
    }
}
