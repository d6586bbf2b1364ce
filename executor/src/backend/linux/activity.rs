//! Whether a person is using pointer or keyboard, by the clocks that the server keeps for each device.
//!
//! The clocks for all input together (`IDLETIME`, the screen saver's) also run from zero after XTEST input, ours included.
//! Those of single devices tell a person from a program: XTEST input comes from two devices of its own for each pair of
//! pointer and keyboard, named so by the server. What is sent to one window alone comes from no device at all.

use std::time::Duration;

use x11rb::CURRENT_TIME;
use x11rb::errors::ReplyError;
use x11rb::protocol::sync::{self, ConnectionExt as _, Counter};
use x11rb::protocol::xinput::{ConnectionExt as _, Device, DeviceType};
use x11rb::protocol::xproto::Timestamp;
use x11rb::rust_connection::RustConnection;

use super::LinuxDesktop;
use super::display::{Screen, has, unreadable};
use crate::backend::RECENT_INPUT;
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// The system counter (SYNC) that is the server's clock in milliseconds.
const CLOCK: &[u8] = b"SERVERTIME";
/// Start of the names of the system counters for the idle time of one device; the rest is its number.
const DEVICE_IDLE: &str = "DEVICEIDLETIME ";
/// Part of the name of each device through which XTEST input comes.
const SYNTHETIC: &[u8] = b"XTEST";

/// See [`crate::backend::Backend::user_active`].
pub(super) fn user_active(
    desktop: &LinuxDesktop,
    deadline: &Deadline,
) -> Result<bool, BackendError> {
    let idle = desktop.display.ask(deadline, |screen| screen.idle())?;
    Ok(idle < RECENT_INPUT)
}

/// Makes SYNC ready and finds the server's clock.
pub(super) fn clock(connection: &RustConnection) -> Option<Counter> {
    if !has(connection, sync::X11_EXTENSION_NAME) {
        return None;
    }
    connection.sync_initialize(3, 1).ok()?.reply().ok()?;
    let counters = connection.sync_list_system_counters().ok()?.reply().ok()?;
    let clock = counters
        .counters
        .iter()
        .find(|counter| counter.name == CLOCK)?;
    Some(clock.counter)
}

impl Screen {
    /// What the server would write into an event now as its time.
    pub(super) fn now(&self) -> Result<Timestamp, ReplyError> {
        let Some(clock) = self.clock else {
            return Ok(CURRENT_TIME);
        };
        // Times in events are the low half.
        Ok(self
            .connection
            .sync_query_counter(clock)?
            .reply()?
            .counter_value
            .lo)
    }

    /// For how long no device that a person holds has sent anything.
    fn idle(&self) -> Result<Duration, BackendError> {
        if !self.extensions.xinput || self.clock.is_none() {
            return Err(BackendError::CaptureFailed);
        }
        let connection = &self.connection;
        let devices = connection
            .xinput_xi_query_device(Device::ALL)
            .map_err(unreadable)?;
        let counters = connection.sync_list_system_counters().map_err(unreadable)?;
        let devices = devices.reply().map_err(unreadable)?.infos;
        let counters = counters.reply().map_err(unreadable)?.counters;
        let mut idle = None;
        for device in devices {
            let name = format!("{DEVICE_IDLE}{}", device.deviceid);
            if !is_held_by_a_person(device.type_, &device.name) {
                continue;
            }
            // A device whose clock cannot be read might be in use.
            let counter = counters
                .iter()
                .find(|counter| counter.name == name.as_bytes())
                .ok_or(BackendError::CaptureFailed)?;
            let value = connection
                .sync_query_counter(counter.counter)
                .map_err(unreadable)?
                .reply()
                .map_err(unreadable)?
                .counter_value;
            let milliseconds =
                u64::try_from(i64::from(value.hi) << 32).unwrap_or(0) | u64::from(value.lo);
            let device_idle = Duration::from_millis(milliseconds);
            idle = Some(idle.map_or(device_idle, |idle: Duration| idle.min(device_idle)));
        }
        idle.ok_or(BackendError::CaptureFailed)
    }
}

/// Master devices only repeat what the others send.
fn is_held_by_a_person(kind: DeviceType, name: &[u8]) -> bool {
    let master = [DeviceType::MASTER_POINTER, DeviceType::MASTER_KEYBOARD].contains(&kind);
    let synthetic = name.windows(SYNTHETIC.len()).any(|part| part == SYNTHETIC);
    !master && !synthetic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_person_holds_counts() {
        let rows = [
            (DeviceType::MASTER_POINTER, "Virtual core pointer", false),
            (DeviceType::MASTER_KEYBOARD, "Virtual core keyboard", false),
            (
                DeviceType::SLAVE_POINTER,
                "Virtual core XTEST pointer",
                false,
            ),
            (DeviceType::SLAVE_KEYBOARD, "maka XTEST keyboard", false),
            (DeviceType::SLAVE_POINTER, "Xvfb mouse", true),
            (
                DeviceType::SLAVE_KEYBOARD,
                "AT Translated Set 2 keyboard",
                true,
            ),
            (DeviceType::FLOATING_SLAVE, "Tablet", true),
            (DeviceType::SLAVE_POINTER, "", true),
        ];
        for (kind, name, expected) in rows {
            assert_eq!(
                is_held_by_a_person(kind, name.as_bytes()),
                expected,
                "{name}"
            );
        }
    }
}
