//! A second pointer on the display, beside the person's own: for windows whose programs listen to the input extension alone,
//! which cannot be sent to one of them.
//!
//! It is a master device that the server keeps until it ends. It is made once and never removed: GTK 4 ends when a device that
//! it uses goes. Every executor of a display shares the one, and [`SecondPointer::take`] sees to it that one gesture at a time is
//! made with it. Whoever looks at the screen sees a second cursor, so it is made only where the operator asked for it.
//!
//! Invariants:
//! - Nothing moves the person's pointer: where the second one is gone, nothing is sent.
//! - A button that somebody left down, as an executor that was killed, is let go of by the next to take the pointer.

use std::time::Duration;

use x11rb::protocol::xinput::{
    ConnectionExt as _, Device, DeviceId, DeviceType, GrabMode22, GrabOwner, GrabType,
    HierarchyChange, HierarchyChangeData, HierarchyChangeDataAddMaster, XIEventMask,
};
use x11rb::protocol::xproto::{BUTTON_RELEASE_EVENT, GrabMode};
use x11rb::{CURRENT_TIME, NONE};

use super::bracket::LET_GO;
use super::display::{Display, Screen, unreadable};
use super::doctor;
use crate::backend::doctor::{Note, StartRefusal};
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// What the pair of pointer and keyboard is called; the server adds what each part is.
const NAME: &str = "maka";
/// What the server calls the pointer of the pair.
const POINTER_NAME: &[u8] = b"maka pointer";
/// Time to find or make it.
const MADE_WITHIN: Duration = Duration::from_secs(5);
/// Another executor's gesture is over by then, unless it holds a button.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);
/// How often it is asked for meanwhile.
const LOOK: Duration = Duration::from_millis(15);
/// No device has as many buttons. A grab of this one fires never and can be held by one client only: the server has no other
/// way of saying "mine, or nobody's" that ends with the client.
const TOKEN_BUTTON: u32 = 250;

/// The second pointer, and the connection that operates it.
#[derive(Debug)]
pub(super) struct SecondPointer {
    /// A connection of its own: XTEST moves the pointer of whoever asks.
    pub(super) display: Display,
    device: DeviceId,
}

impl SecondPointer {
    /// Finds the second pointer of the display, or makes it.
    ///
    /// # Errors
    /// When the server has no such thing.
    pub(super) fn open() -> Result<Self, StartRefusal> {
        let screen = doctor::connect()?;
        if !screen.may_have_second_pointer() {
            return Err(unsupported());
        }
        let display = Display::start(screen).map_err(|_| doctor::no_thread())?;
        let deadline = Deadline::within(MADE_WITHIN);
        let wait = || (!deadline.is_over()).then(|| deadline.pause(LOOK));
        let device = loop {
            // Only the holder of the token makes one, so that two who start together do not make two.
            let found = display.ask(&deadline, |screen| {
                if let Some(device) = screen.second_pointer()? {
                    return Ok(Some(device));
                }
                if screen.take_token()? {
                    let made = screen.make_second_pointer();
                    screen.give_token_back();
                    return made.map(Some);
                }
                Ok(None)
            });
            match found {
                Ok(Some(device)) => break device,
                Ok(None) if wait().is_some() => {}
                Ok(None) | Err(_) => return Err(unsupported()),
            }
        };
        let second = Self { display, device };
        let prepared = second.display.ask(&deadline, move |screen| {
            let own = screen.connection.xinput_xi_set_client_pointer(NONE, device);
            own.map_err(unreadable)?.check().map_err(unreadable)?;
            // What a killed executor left down goes up; what a living one holds is held by the token.
            if screen.take_token()? {
                let let_go = screen.let_go_of_all(device);
                screen.give_token_back();
                let_go?;
            }
            Ok(())
        });
        prepared.map_err(|_| unsupported())?;
        Ok(second)
    }

    /// Its number, for as long as it is there.
    pub(super) const fn device(&self) -> DeviceId {
        self.device
    }

    /// Waits until nobody else uses it.
    ///
    /// # Errors
    /// [`BackendError::Refused`] when somebody does until the time is over.
    pub(super) fn take(&self, deadline: &Deadline) -> Result<(), BackendError> {
        let patience = deadline.at_most(TAKEN_WITHIN);
        let taken = self.try_until(&patience);
        if taken.is_err() {
            // A question that was given up may still be answered, and then nobody would know that it was taken.
            self.give_back();
        }
        taken
    }

    fn try_until(&self, patience: &Deadline) -> Result<(), BackendError> {
        let device = self.device;
        loop {
            let taken = self.display.ask(patience, move |screen| {
                if !screen.take_token()? {
                    return Ok(false);
                }
                screen.let_go_of_all(device)?;
                Ok(true)
            })?;
            if taken {
                return Ok(());
            }
            if patience.is_over() {
                return Err(BackendError::Refused);
            }
            patience.pause(LOOK);
        }
    }

    pub(super) fn give_back(&self) {
        let given = self.display.ask(&Deadline::within(LET_GO), |screen| {
            screen.give_token_back();
            Ok(())
        });
        if given.is_err() {
            tracing::warn!("the second pointer could not be given back");
        }
    }
}

/// What is known of it from here, for a person who thinks about switching it on.
pub(super) fn note(screen: &Screen) -> Note {
    // None of it is in anybody's way, so there is nothing to advise.
    let note = |found: &str| Note {
        name: "second pointer",
        found: found.to_owned(),
        advice: None,
    };
    if !screen.may_have_second_pointer() {
        return note(
            "not supported here: it takes XInput 2.2, XTEST, and a server that is not Xwayland",
        );
    }
    let managed = screen.shields().unwrap_or(false);
    match (screen.second_pointer(), managed) {
        (Err(_), _) => note("not known"),
        (_, false) => note(
            "supported by the server, not under this window manager: it was measured with openbox and xfwm4",
        ),
        (Ok(Some(_)), true) => note("on: an executor of this display has made it"),
        (Ok(None), true) => note(
            "supported, and off: `maka-cu host --second-pointer` reaches points of GTK 4 windows, and of GTK 3 windows that \
             were not started from here, in the background; it draws a second cursor, which stays until the X server ends",
        ),
    }
}

fn unsupported() -> StartRefusal {
    StartRefusal {
        missing: "this X server gives no second pointer: it takes XInput 2.2, XTEST, and a server that is not Xwayland"
            .to_owned(),
        remedy: "leave out `--second-pointer`".to_owned(),
    }
}

impl Screen {
    /// Whether the server can have one that acts for one window. A Wayland compositor's devices are its own.
    fn may_have_second_pointer(&self) -> bool {
        let found = self.extensions;
        // Without the clock it cannot be told whether a person is there, and then nothing is ever sent.
        found.xtest && found.xinput_2_2 && !found.xwayland && self.clock.is_some()
    }

    /// The device of that name; of several, the one that everybody finds.
    pub(super) fn second_pointer(&self) -> Result<Option<DeviceId>, BackendError> {
        let devices = self
            .connection
            .xinput_xi_query_device(Device::ALL_MASTER)
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        Ok(devices
            .infos
            .iter()
            .filter(|device| {
                device.type_ == DeviceType::MASTER_POINTER && device.name == POINTER_NAME
            })
            .map(|device| device.deviceid)
            .min())
    }

    fn make_second_pointer(&self) -> Result<DeviceId, BackendError> {
        let name = NAME.as_bytes().to_vec();
        // In units of four bytes: the two of the kind and this length, the three fields, the name.
        let units = 2 + name.len().div_ceil(4);
        let change = HierarchyChange {
            len: u16::try_from(units).expect("the name is short"),
            data: HierarchyChangeData::AddMaster(HierarchyChangeDataAddMaster {
                send_core: true,
                enable: true,
                name,
            }),
        };
        self.connection
            .xinput_xi_change_hierarchy(&[change])
            .map_err(unreadable)?
            .check()
            .map_err(unreadable)?;
        tracing::info!("a second pointer was made");
        self.second_pointer()?.ok_or(BackendError::CaptureFailed)
    }

    /// Takes what one client of the display can have at a time.
    fn take_token(&self) -> Result<bool, BackendError> {
        let grab = self
            .connection
            .xinput_xi_passive_grab_device(
                CURRENT_TIME,
                self.root,
                NONE,
                TOKEN_BUTTON,
                Device::ALL_MASTER,
                GrabType::BUTTON,
                GrabMode22::ASYNC,
                GrabMode::ASYNC,
                GrabOwner::NO_OWNER,
                &[XIEventMask::BUTTON_PRESS.into()],
                &[0],
            )
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        // It answers with what could not be had.
        Ok(grab.modifiers.is_empty())
    }

    fn give_token_back(&self) {
        let given = self.connection.xinput_xi_passive_ungrab_device(
            self.root,
            TOKEN_BUTTON,
            Device::ALL_MASTER,
            GrabType::BUTTON,
            &[0],
        );
        if !given.is_ok_and(|given| given.check().is_ok()) {
            tracing::warn!("the token of the second pointer could not be given back");
        }
    }

    /// Whether what is faked on this connection comes from the device.
    pub(super) fn operates(&self, device: DeviceId) -> Result<bool, BackendError> {
        let pointer = self
            .connection
            .xinput_xi_get_client_pointer(NONE)
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        Ok(pointer.set && pointer.deviceid == device)
    }

    /// Lets go of every button that is down on the device.
    fn let_go_of_all(&self, device: DeviceId) -> Result<(), BackendError> {
        if !self.operates(device)? {
            return Err(BackendError::Refused);
        }
        let pointer = self
            .connection
            .xinput_xi_query_pointer(self.root, device)
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        for (word, buttons) in (0_u32..).zip(pointer.buttons) {
            for bit in (0..32).filter(|bit| buttons & (1 << bit) != 0) {
                let Ok(button) = u8::try_from(word * 32 + bit) else {
                    continue;
                };
                self.fake(BUTTON_RELEASE_EVENT, button, (0, 0))
                    .map_err(unreadable)?;
                tracing::warn!(button, "a button was down on the second pointer");
            }
        }
        Ok(())
    }
}
