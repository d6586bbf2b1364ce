//! A hand that has the second pointer, over one window.
//!
//! A press would make the window manager raise and activate the window, as any press does that it waits for at the window. The
//! shield is a grab of the same press that comes before the manager's: it hands the press on to the program, and the server does
//! not ask the manager any more.
//!
//! Invariant: the shield is taken away in the same breath as it was put up, whatever happens in between; and with the connection,
//! when this process ends. A press that is held back is handed on in any case, so the pointer never stays frozen.

use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::ids::WindowKey;
use x11rb::errors::ReplyError;
use x11rb::protocol::xinput::{
    ConnectionExt as _, DeviceId, EventMode, GrabMode22, GrabOwner, GrabType, XIEventMask,
};
use x11rb::protocol::xproto::{
    AtomEnum, BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, GrabMode,
    MOTION_NOTIFY_EVENT, Window,
};
use x11rb::{CURRENT_TIME, NONE};

use super::bracket::{LET_GO, gone};
use super::display::{Display, Screen, unreadable};
use super::hand::{Button, Hand};
use super::master::SecondPointer;
use super::sent::pixel;
use crate::backend::error::BackendError;
use crate::backend::input::PointCommand;
use crate::deadline::Deadline;

/// `XIAnyModifier`.
const ANY_MODIFIER: u32 = 1 << 31;
/// Window managers under which the shield was measured. Where one waits for presses elsewhere, the shield would come too late.
const MEASURED_MANAGERS: [&str; 2] = ["Openbox", "Xfwm4"];

/// Whether the second pointer can begin a gesture there unnoticed: it still exists, under a window manager that the shield
/// holds off, with nothing above the points. Where a drag ends counts as well, so that it ends in what was seen.
pub(super) fn is_open_for_second(
    display: &Display,
    second: &SecondPointer,
    key: WindowKey,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<bool, BackendError> {
    let (at, from) = (command.at, command.gesture.start());
    let device = second.device();
    display.ask(deadline, move |screen| {
        if screen.second_pointer()? != Some(device) || !screen.shields().map_err(unreadable)? {
            return Ok(false);
        }
        for at in std::iter::once(at).chain(from) {
            if !screen.is_open_at(key.window_id, at)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// The second pointer, over one window.
#[derive(Debug)]
pub(super) struct SecondHand<'s> {
    second: &'s SecondPointer,
    top: Window,
    /// With a button down the pointer may leave the window.
    down: bool,
    /// Whether nobody else may use the pointer after this hand.
    keep: bool,
}

impl<'s> SecondHand<'s> {
    /// Waits for the pointer. Nothing is sent yet.
    ///
    /// # Errors
    /// [`BackendError::Refused`] when somebody else uses it.
    pub(super) fn new(
        second: &'s SecondPointer,
        top: Window,
        deadline: &Deadline,
    ) -> Result<Self, BackendError> {
        second.take(deadline)?;
        Ok(Self {
            second,
            top,
            down: false,
            keep: false,
        })
    }

    /// The hand that another request left with the left button down.
    pub(super) const fn resume(second: &'s SecondPointer, top: Window) -> Self {
        Self {
            second,
            top,
            down: true,
            keep: false,
        }
    }

    /// Ends without giving the pointer back: a button is down.
    pub(super) fn leave_down(mut self) {
        self.keep = true;
    }

    fn ask<T: Send + 'static>(
        &self,
        deadline: &Deadline,
        question: impl FnOnce(&mut Screen) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let device = self.second.device();
        self.second.display.ask(deadline, move |screen| {
            // Without it, XTEST would move the person's pointer.
            if !screen.operates(device)? {
                return Err(BackendError::Refused);
            }
            question(screen)
        })
    }
}

impl Drop for SecondHand<'_> {
    fn drop(&mut self) {
        if !self.keep {
            self.second.give_back();
        }
    }
}

impl Hand for SecondHand<'_> {
    fn place(&mut self, at: WindowPoint, deadline: &Deadline) -> Result<(), BackendError> {
        let (top, at, down) = (self.top, pixel(at), self.down);
        self.ask(deadline, move |screen| {
            let there = screen.on_root(top, at)?;
            if !down && !screen.is_under(top, there).map_err(unreadable)? {
                return Err(BackendError::Refused);
            }
            screen
                .fake(MOTION_NOTIFY_EVENT, 0, there)
                .map_err(unreadable)
        })
    }

    fn press(&mut self, button: Button, deadline: &Deadline) -> Result<(), BackendError> {
        self.down = true;
        let (top, device) = (self.top, self.second.device());
        self.ask(deadline, move |screen| {
            screen.press_shielded(device, top, button)
        })
    }

    fn release(&mut self, button: Button) -> Result<(), BackendError> {
        self.ask(&Deadline::within(LET_GO), move |screen| {
            screen
                .fake(BUTTON_RELEASE_EVENT, button.number(), (0, 0))
                .map_err(unreadable)
        })?;
        self.down = false;
        Ok(())
    }
}

impl Screen {
    /// Whether the window manager is one whose presses the shield is known to come before.
    pub(super) fn shields(&self) -> Result<bool, ReplyError> {
        let atoms = &self.atoms;
        let manager = self
            .connection
            .get_property(
                false,
                self.root,
                atoms._NET_SUPPORTING_WM_CHECK,
                AtomEnum::WINDOW,
                0,
                1,
            )?
            .reply()?;
        let Some(manager) = manager.value32().and_then(|mut values| values.next()) else {
            return Ok(false);
        };
        let name = self
            .connection
            .get_property(false, manager, atoms._NET_WM_NAME, atoms.UTF8_STRING, 0, 16)?
            .reply();
        let name = match name {
            Ok(name) => name.value,
            // A manager that left its window's number behind.
            Err(ReplyError::X11Error(_)) => return Ok(false),
            Err(error @ ReplyError::ConnectionError(_)) => return Err(error),
        };
        Ok(MEASURED_MANAGERS
            .iter()
            .any(|measured| measured.as_bytes() == name))
    }

    /// Whether a gesture that starts at these points of `top` would begin in it: that nothing lies above them.
    fn is_open_at(&self, top: Window, at: WindowPoint) -> Result<bool, BackendError> {
        let there = self.on_root(top, pixel(at))?;
        self.is_under(top, there).map_err(unreadable)
    }

    fn on_root(&self, top: Window, (x, y): (i16, i16)) -> Result<(i16, i16), BackendError> {
        let there = self.connection.translate_coordinates(top, self.root, x, y);
        let there = there.map_err(unreadable)?.reply().map_err(gone)?;
        Ok((there.dst_x, there.dst_y))
    }

    /// Presses a button where the pointer is, past the window manager.
    fn press_shielded(
        &self,
        device: DeviceId,
        top: Window,
        button: Button,
    ) -> Result<(), BackendError> {
        let number = u32::from(button.number());
        let shield = self
            .connection
            .xinput_xi_passive_grab_device(
                CURRENT_TIME,
                top,
                NONE,
                number,
                device,
                GrabType::BUTTON,
                GrabMode22::SYNC,
                GrabMode::ASYNC,
                GrabOwner::NO_OWNER,
                &[XIEventMask::BUTTON_PRESS.into()],
                &[ANY_MODIFIER],
            )
            .map_err(unreadable)?
            .reply()
            .map_err(gone)?;
        if !shield.modifiers.is_empty() {
            // Some program waits for this very press of this device.
            return Err(BackendError::Refused);
        }
        let pressed = self.fake(BUTTON_PRESS_EVENT, button.number(), (0, 0));
        // The press has been dealt with when its answer is here. Held back or not, it is handed on; where the program had
        // grabbed the pointer, as for a menu that is open, it got it at once and there was nothing to hold.
        let handed_on = self.hand_on(device);
        let taken_away = self
            .connection
            .xinput_xi_passive_ungrab_device(top, number, device, GrabType::BUTTON, &[ANY_MODIFIER])
            .map_err(unreadable)
            .and_then(|taken| match taken.check() {
                Ok(()) => Ok(()),
                // It went with its window.
                Err(ReplyError::X11Error(_)) => Ok(()),
                Err(error) => Err(unreadable(error)),
            });
        pressed.map_err(unreadable)?;
        handed_on?;
        taken_away
    }

    /// Gives a press that the shield holds back to the window, as if there were no shield.
    fn hand_on(&self, device: DeviceId) -> Result<(), BackendError> {
        self.connection
            .xinput_xi_allow_events(CURRENT_TIME, device, EventMode::REPLAY_DEVICE, 0, NONE)
            .map_err(unreadable)?
            .check()
            .map_err(unreadable)
    }
}
