//! What a desktop needs, looked at one by one: for `doctor`, and for the refusal to start without it.

use std::env;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};

use super::accessibility::{Accessibility, Addresses};
use super::compositor::{self, Compositor};
use super::display::Screen;
use crate::backend::doctor::{Finding, StartRefusal};

/// A server that does not let us in by then is stopped or unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const START_DISPLAY: &str =
    "set DISPLAY and XAUTHORITY to a running X server, or run inside `maka-desktop run --`";
const START_BUS: &str = "install dbus and at-spi2-core, and start inside a D-Bus session: `maka-desktop run --` or `dbus-run-session --`";

/// Connects to the X server, or says why that is not possible.
pub(super) fn connect() -> Result<Screen, StartRefusal> {
    let refusal = |missing: &str| StartRefusal {
        missing: missing.to_owned(),
        remedy: START_DISPLAY.to_owned(),
    };
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("DISPLAY") {
        // Said plainly, since it looks like a desktop to whoever sits at it.
        return Err(if compositor::is_named() {
            StartRefusal {
                missing: "there is a Wayland compositor and no X display: a program there can neither picture nor \
                          address the windows of others"
                    .to_owned(),
                remedy: "use `--back-end wayland`, which operates controls and needs neither, log in to an X11 session, \
                         or start a private desktop with `maka-desktop run --`"
                    .to_owned(),
            }
        } else {
            refusal("there is no X display: DISPLAY is not set")
        });
    }
    // Room for the one answer: the thread never waits for a caller that gave up. A stopped server keeps the thread.
    let (sender, receiver) = sync_channel(1);
    let connecting = thread::Builder::new()
        .name("x11-connect".to_owned())
        .spawn(move || {
            // Nobody listens after the time-out.
            drop(sender.send(Screen::connect()));
        });
    if connecting.is_err() {
        return Err(refusal("no thread could be made for the X connection"));
    }
    match receiver.recv_timeout(CONNECT_TIMEOUT) {
        Ok(Ok(screen)) => Ok(screen),
        Ok(Err(_)) => Err(refusal("the X display that DISPLAY names cannot be opened")),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(refusal("the X display that DISPLAY names does not answer"))
        }
    }
}

/// Where the accessibility bus may be.
pub(super) fn addresses(screen: Option<&Screen>) -> Addresses {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    Addresses {
        environment: variable("AT_SPI_BUS_ADDRESS"),
        display: screen.and_then(bus_property),
        session_bus: session_bus_address(),
    }
}

/// The session bus of this environment.
pub(super) fn session_bus_address() -> Option<String> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    variable("DBUS_SESSION_BUS_ADDRESS").or_else(|| {
        let socket = std::path::PathBuf::from(variable("XDG_RUNTIME_DIR")?).join("bus");
        socket
            .exists()
            .then(|| format!("unix:path={}", socket.display()))
    })
}

/// The refusal when the accessibility bus is not there.
pub(super) fn no_accessibility() -> StartRefusal {
    StartRefusal {
        missing: "the accessibility bus is not reachable".to_owned(),
        remedy: START_BUS.to_owned(),
    }
}

pub(super) fn no_thread() -> StartRefusal {
    StartRefusal {
        missing: "no thread could be made for the X connection".to_owned(),
        remedy: "raise the limit of processes of this user".to_owned(),
    }
}

/// The runtime for bus calls: one thread beside the caller's.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, StartRefusal> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("at-spi")
        .enable_io()
        .enable_time()
        .build()
        .map_err(|_| StartRefusal {
            missing: "no thread could be made for the accessibility bus".to_owned(),
            remedy: "raise the limit of processes of this user".to_owned(),
        })
}

/// Looks at everything, also at what comes after something that is missing.
pub(super) fn diagnose() -> Vec<Finding> {
    let screen = connect();
    let mut findings = vec![match &screen {
        Ok(_) => fine("X display", "connected"),
        Err(refusal) => missing("X display", &refusal.missing, &refusal.remedy),
    }];
    if let Ok(screen) = &screen {
        findings.extend(display_findings(screen));
    }
    findings.extend(bus_findings(screen.as_ref().ok()));
    findings
}

/// Likewise of a Wayland desktop.
pub(super) fn diagnose_wayland() -> Vec<Finding> {
    let mut findings = vec![match Compositor::connect() {
        Ok(_) => fine("Wayland compositor", "connected"),
        Err(refusal) => missing("Wayland compositor", &refusal.missing, &refusal.remedy),
    }];
    findings.extend(bus_findings(None));
    findings
}

fn bus_findings(screen: Option<&Screen>) -> [Finding; 2] {
    let session = match session_bus_address() {
        Some(_) => fine("session bus", "an address is set"),
        None => missing("session bus", "there is no address for it", START_BUS),
    };
    [session, accessibility_finding(screen)]
}

fn display_findings(screen: &Screen) -> Vec<Finding> {
    let extension = |name: &'static str, there: bool, without: &str| match there {
        true => fine(name, "present"),
        false => missing(
            name,
            without,
            "use an X server that has this extension, such as Xvfb or Xorg",
        ),
    };
    let found = screen.extensions;
    let managed = screen
        .connection
        .get_property(
            false,
            screen.root,
            screen.atoms._NET_SUPPORTING_WM_CHECK,
            AtomEnum::WINDOW,
            0,
            1,
        )
        .is_ok_and(|cookie| cookie.reply().is_ok_and(|property| property.value_len > 0));
    vec![
        extension(
            "Composite extension",
            found.composite,
            "absent: windows cannot be captured",
        ),
        extension(
            "Damage extension",
            found.damage,
            "absent: the first capture of a covered window may be blank",
        ),
        extension(
            "RandR extension",
            found.randr,
            "absent or older than 1.5: all monitors count as one",
        ),
        extension(
            "X-Resource extension",
            found.res,
            "absent or older than 1.2: window owners are the clients' word",
        ),
        extension(
            "SYNC extension",
            screen.clock.is_some(),
            "absent: no input for one window, and none at all beside a person",
        ),
        extension(
            "XInput extension",
            found.xinput,
            "absent or older than 2.0: no input beside a person",
        ),
        extension(
            "XTEST extension",
            found.xtest,
            "absent: no input by pointer and keyboard",
        ),
        if managed {
            fine("window manager", "present")
        } else {
            missing(
                "window manager",
                "none: no window is ever active",
                "start one, such as openbox",
            )
        },
    ]
}

fn accessibility_finding(screen: Option<&Screen>) -> Finding {
    let accessibility = Accessibility::new(addresses(screen));
    let answers = match runtime() {
        Ok(runtime) => {
            let answers = runtime.block_on(accessibility.answers());
            // The connection's tasks end with it; nothing is waited for.
            runtime.shutdown_background();
            answers
        }
        Err(_) => false,
    };
    if answers {
        fine("accessibility bus", "the registry answers")
    } else {
        missing(
            "accessibility bus",
            "the registry does not answer",
            START_BUS,
        )
    }
}

fn bus_property(screen: &Screen) -> Option<String> {
    let atom = screen
        .connection
        .intern_atom(true, b"AT_SPI_BUS")
        .ok()?
        .reply()
        .ok()?
        .atom;
    if atom == x11rb::NONE {
        return None;
    }
    let property = screen
        .connection
        .get_property(false, screen.root, atom, AtomEnum::STRING, 0, 256)
        .ok()?
        .reply()
        .ok()?;
    String::from_utf8(property.value)
        .ok()
        .filter(|address| !address.is_empty())
}

fn fine(name: &'static str, found: &str) -> Finding {
    Finding {
        name,
        ok: true,
        found: found.to_owned(),
        remedy: None,
    }
}

fn missing(name: &'static str, found: &str, remedy: &str) -> Finding {
    Finding {
        name,
        ok: false,
        found: found.to_owned(),
        remedy: Some(remedy.to_owned()),
    }
}
