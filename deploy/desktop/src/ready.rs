//! Questions that tell whether a part is ready.
//!
//! D-Bus is asked through `dbus-send`, which belongs to the packages that are needed anyway: four calls in the life of a
//! desktop do not justify a D-Bus library in a crate that containers and tests link.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt, CreateWindowAux, PropMode, WindowClass};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::part::output_before;

/// The longest any single D-Bus question may take; the probe is repeated until the start deadline.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// One session bus, asked from outside.
#[derive(Debug)]
pub(crate) struct BusQuestions<'a> {
    pub(crate) dbus_send: &'a Path,
    pub(crate) address: &'a str,
}

impl BusQuestions<'_> {
    /// Whether some process owns the name of the accessibility bus. Asking the bus itself, and not the name, keeps it
    /// from starting a second launcher by activation.
    pub(crate) fn accessibility_bus_is_owned(&self) -> Option<()> {
        let answer = self.call(
            "org.freedesktop.DBus",
            "/org/freedesktop/DBus",
            &["org.freedesktop.DBus.NameHasOwner", "string:org.a11y.Bus"],
        )?;
        answer.contains("true").then_some(())
    }

    /// The address of the accessibility bus; the launcher answers only once that bus accepts connections.
    pub(crate) fn accessibility_bus_address(&self) -> Option<String> {
        let answer = self.call(
            "org.a11y.Bus",
            "/org/a11y/bus",
            &["org.a11y.Bus.GetAddress"],
        )?;
        let address = answer.trim();
        address.starts_with("unix:").then(|| address.to_owned())
    }

    /// Tells toolkits that a reader is present. Chromium only looks once, at its start, so this belongs to the start of
    /// the desktop and not to the executor.
    pub(crate) fn enable_accessibility(&self) -> Option<()> {
        self.call(
            "org.a11y.Bus",
            "/org/a11y/bus",
            &[
                "org.freedesktop.DBus.Properties.Set",
                "string:org.a11y.Status",
                "string:IsEnabled",
                "variant:boolean:true",
            ],
        )
        .map(drop)
    }

    fn call(&self, destination: &str, path: &str, method: &[&str]) -> Option<String> {
        let mut command = Command::new(self.dbus_send);
        command
            .arg(format!("--bus={}", self.address))
            .arg("--print-reply=literal")
            .arg(format!("--reply-timeout={}", CALL_TIMEOUT.as_millis()))
            .arg(format!("--dest={destination}"))
            .arg(path)
            .args(method);
        output_before(command, Instant::now() + CALL_TIMEOUT * 2)
    }
}

/// A probe window that is not managed after this time was overlooked: a new one is tried.
const OVERLOOKED: Duration = Duration::from_millis(100);
/// `NormalState` of `WM_STATE` (ICCCM 4.1.3.1).
const NORMAL_STATE: u32 = 1;
/// `WM_HINTS` (ICCCM 4.1.2.4) with one thing in it: this window never takes the focus.
const NO_FOCUS: [u32; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 0];

/// One connection to the display, held while the window manager starts.
#[derive(Debug)]
pub(crate) struct DisplayQuestions {
    connection: RustConnection,
    root: u32,
    supporting_wm_check: u32,
    client_list: u32,
    wm_state: u32,
    /// The window that waits to be managed, and since when.
    probe: Option<(u32, Instant)>,
}

impl DisplayQuestions {
    /// Connects with the private cookie. The environment is not consulted, so several desktops can start side by side
    /// in one process.
    pub(crate) fn connect(number: u32, cookie: &[u8]) -> Option<Self> {
        let display = format!(":{number}");
        let parsed =
            x11rb::reexports::x11rb_protocol::parse_display::parse_display(Some(&display)).ok()?;
        let address = parsed.connect_instruction().next()?;
        let (stream, _) = x11rb::rust_connection::DefaultStream::connect(&address).ok()?;
        let connection = RustConnection::connect_to_stream_with_auth_info(
            stream,
            0,
            b"MIT-MAGIC-COOKIE-1".to_vec(),
            cookie.to_vec(),
        )
        .ok()?;
        let root = connection.setup().roots.first()?.root;
        let atom = |name: &[u8]| Some(connection.intern_atom(false, name).ok()?.reply().ok()?.atom);
        let supporting_wm_check = atom(b"_NET_SUPPORTING_WM_CHECK")?;
        let client_list = atom(b"_NET_CLIENT_LIST")?;
        let wm_state = atom(b"WM_STATE")?;
        Some(Self {
            connection,
            root,
            supporting_wm_check,
            client_list,
            wm_state,
            probe: None,
        })
    }

    /// Whether a window manager has announced itself (EWMH, `_NET_SUPPORTING_WM_CHECK`: root names a window which
    /// names itself). The second half tells a living announcement from one that a dead manager left behind.
    pub(crate) fn window_manager_is_there(&self) -> Option<()> {
        let named = self.check_window(self.root)?;
        (self.check_window(named)? == named).then_some(())
    }

    /// Whether the window manager takes windows into its care, shown on a window of our own.
    ///
    /// openbox announces itself before it listens: a window that is mapped in between is overlooked for good, by it and
    /// by everybody who reads its window list.
    pub(crate) fn windows_are_managed(&mut self) -> Option<()> {
        let Some((window, since)) = self.probe else {
            self.probe = Some((self.map_probe()?, Instant::now()));
            return None;
        };
        let state = self.property(window, self.wm_state, AtomEnum::ANY.into());
        let managed = state.is_some_and(|values| values.first() == Some(&NORMAL_STATE));
        if managed || since.elapsed() >= OVERLOOKED {
            self.connection.destroy_window(window).ok()?.check().ok()?;
            self.probe = None;
        }
        managed.then_some(())
    }

    /// Whether no window is managed: the probe has left no trace.
    pub(crate) fn no_window_is_managed(&self) -> Option<()> {
        // xfwm4 has no list while there is nothing to be listed.
        let windows = self.property(self.root, self.client_list, AtomEnum::WINDOW.into());
        windows
            .is_none_or(|windows| windows.is_empty())
            .then_some(())
    }

    fn map_probe(&self) -> Option<u32> {
        let window = self.connection.generate_id().ok()?;
        let (depth, visual) = (x11rb::COPY_DEPTH_FROM_PARENT, x11rb::COPY_FROM_PARENT);
        let class = WindowClass::INPUT_OUTPUT;
        let nothing = CreateWindowAux::new();
        self.connection
            .create_window(
                depth, window, self.root, 0, 0, 1, 1, 0, class, visual, &nothing,
            )
            .ok()?;
        let hints = AtomEnum::WM_HINTS;
        self.connection
            .change_property32(PropMode::REPLACE, window, hints, hints, &NO_FOCUS)
            .ok()?;
        self.connection.map_window(window).ok()?.check().ok()?;
        Some(window)
    }

    fn check_window(&self, window: u32) -> Option<u32> {
        self.property(window, self.supporting_wm_check, AtomEnum::WINDOW.into())?
            .first()
            .copied()
    }

    fn property(&self, window: u32, name: u32, kind: u32) -> Option<Vec<u32>> {
        let reply = self
            .connection
            .get_property(false, window, name, kind, 0, 64)
            .ok()?
            .reply()
            .ok()?;
        Some(reply.value32()?.collect())
    }
}
