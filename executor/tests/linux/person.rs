//! A person at the desktop.

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::InputRoute;
use x11rb::connection::RequestConnection as _;
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

use crate::rig::{CLICK, Rig, typed};
use crate::stage::{eventually, inside, soon};

/// A person's input counts, ours does not; and what cannot be known is no "no".
#[test]
fn a_person_is_told_from_a_program() {
    inside("person::a_person_is_told_from_a_program", || {
        let rig = Rig::form("qt5");
        eventually("nobody has used this display for a while", || {
            (!rig.desktop.user_active(&soon()).unwrap()).then_some(())
        });
        let pad = rig.middle("Pad");
        for route in [InputRoute::Window, InputRoute::Global] {
            rig.point(CLICK, pad, route);
            assert_eq!(rig.desktop.user_active(&soon()), Ok(false), "{route:?}");
        }
        let pad = rig.named("Pad").node_ref;
        rig.keys(&pad, &typed("x"), InputRoute::Global);
        assert_eq!(rig.desktop.user_active(&soon()), Ok(false));

        // A button of the server's own mouse, which stands for a person's: XTEST can name a device.
        let connection = &rig.observer.0.connection;
        let input = connection
            .extension_information("XInputExtension")
            .unwrap()
            .unwrap();
        let mouse = device_named(connection, "Xvfb mouse");
        for kind in [DEVICE_BUTTON_PRESS, DEVICE_BUTTON_RELEASE] {
            let kind = input.first_event + kind;
            let sent = connection.xtest_fake_input(kind, 2, 0, rig.observer.0.root, 0, 0, mouse);
            sent.unwrap().check().unwrap();
        }
        assert_eq!(rig.desktop.user_active(&soon()), Ok(true));
        eventually("it is over", || {
            (!rig.desktop.user_active(&soon()).unwrap()).then_some(())
        });
    });
}

/// `DeviceButtonPress` and `DeviceButtonRelease` of the input extension, from its first event on.
const DEVICE_BUTTON_PRESS: u8 = 3;

const DEVICE_BUTTON_RELEASE: u8 = 4;

fn device_named(connection: &RustConnection, name: &str) -> u8 {
    use x11rb::protocol::xinput::{ConnectionExt as _, Device};
    let version = connection.xinput_xi_query_version(2, 0).unwrap();
    version.reply().unwrap();
    let devices = connection.xinput_xi_query_device(Device::ALL).unwrap();
    let devices = devices.reply().unwrap().infos;
    let device = devices.iter().find(|device| device.name == name.as_bytes());
    u8::try_from(device.unwrap().deviceid).unwrap()
}
