//! The thread that makes the parts and outlives them.
//!
//! The kernel ties a child's death signal to the thread that forked it, so all parts are made on one thread that stays
//! until the desktop ends. It also watches them: half a desktop is worse than none, so the loss of one part ends all.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::child::with_empty_signal_mask;
use crate::compositor;
use crate::error::DesktopError;
use crate::folder::Folder;
use crate::options::DesktopOptions;
use crate::part::{Part, PartName};
use crate::programs::{Programs, ScreenPrograms};
use crate::ready::{BusQuestions, DisplayQuestions};
use crate::screen::Screen;
use crate::sweep::end_inhabitants;

/// How often the parts are looked at while the desktop lives.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// What the caller learns once everything answers.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) screen: Screen,
    pub(crate) accessibility_bus: String,
}

/// What keeper and [`crate::Desktop`] share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) folder: Folder,
    /// Set once, when a part ended without being asked.
    pub(crate) lost: OnceLock<PartName>,
}

/// Starts everything, reports once, holds it until `stop` is dropped or a part is lost, and ends everything.
pub(crate) fn keep(
    shared: &Arc<Shared>,
    options: &DesktopOptions,
    programs: &Programs,
    report: &SyncSender<Result<Started, DesktopError>>,
    stop: &Receiver<()>,
) {
    let mut parts = Vec::new();
    let started = start(&shared.folder, options, programs, &mut parts);
    let running = started.is_ok();
    // A caller that is gone has dropped `stop` too, which ends the loop below.
    drop(report.send(started));
    if running {
        watch(shared, &mut parts, stop);
    }
    let pids: Vec<u32> = parts.iter().map(Part::id).collect();
    end_inhabitants(&shared.folder.runtime(), &pids);
    // Last started, first ended: the X server goes when nobody needs it any more.
    while let Some(mut part) = parts.pop() {
        part.end();
    }
    // What the buses had started by activation ends with them; whoever ignored that is ended here.
    end_inhabitants(&shared.folder.runtime(), &[]);
    shared.folder.release();
}

fn watch(shared: &Shared, parts: &mut [Part], stop: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(WATCH_INTERVAL) {
        if let Some(part) = parts
            .iter_mut()
            .find_map(|part| part.has_ended().then(|| part.name()))
        {
            // The first loss is the cause; there is no second, because this one ends the desktop.
            shared.lost.set(part).ok();
            return;
        }
    }
}

fn start(
    folder: &Folder,
    options: &DesktopOptions,
    programs: &Programs,
    parts: &mut Vec<Part>,
) -> Result<Started, DesktopError> {
    let deadline = Instant::now() + options.start_timeout;
    let (screen, window_manager) = match &programs.screen {
        ScreenPrograms::X {
            xvfb,
            window_manager,
        } => {
            let number = start_x_server(folder, options, xvfb, parts, deadline)?;
            let managed = window_manager.as_ref().map(|manager| (number, manager));
            (Screen::X(number), managed)
        }
        ScreenPrograms::Wayland(compositor, program) => {
            let chosen = (*compositor, program.as_path());
            let screen = compositor::start(folder, options, chosen, parts, deadline)?;
            (screen, None)
        }
    };
    let address = start_session_bus(folder, &screen, programs, parts, deadline)?;
    let accessibility_bus =
        start_accessibility_bus(folder, &screen, &address, programs, parts, deadline)?;
    if let Some((display_number, (manager, program))) = window_manager {
        let mut command = Command::new(program);
        command.arg(manager.flag());
        crate::desktop::apply(&mut command, folder, &screen);
        parts.push(Part::start(
            PartName::WindowManager,
            command,
            &folder.logs(),
        )?);
        let part = parts.last_mut().expect("it was just pushed");
        let connected = part.wait_until(deadline, || {
            DisplayQuestions::connect(display_number, folder.cookie())
        });
        let mut display = connected?;
        part.wait_until(deadline, || display.window_manager_is_there())?;
        part.wait_until(deadline, || display.windows_are_managed())?;
        part.wait_until(deadline, || display.no_window_is_managed())?;
    }
    Ok(Started {
        screen,
        accessibility_bus,
    })
}

fn start_x_server(
    folder: &Folder,
    options: &DesktopOptions,
    xvfb: &Path,
    parts: &mut Vec<Part>,
    deadline: Instant,
) -> Result<u32, DesktopError> {
    let mut command = Command::new(xvfb);
    // `-displayfd` picks a free number and tells it once the server accepts connections; `-noreset` keeps the server
    // when its last client leaves.
    command
        .args(["-displayfd", "1", "-screen", "0"])
        .arg(format!("{}x24", options.size))
        .args(["-nolisten", "tcp", "-noreset", "-auth"])
        .arg(folder.authority());
    with_empty_signal_mask(&mut command);
    parts.push(Part::start(PartName::XServer, command, &folder.logs())?);
    let part = parts.last_mut().expect("it was just pushed");
    let line = part.first_line(deadline)?;
    line.trim().parse().map_err(|_| DesktopError::BadAnswer {
        part: PartName::XServer,
    })
}

fn start_session_bus(
    folder: &Folder,
    screen: &Screen,
    programs: &Programs,
    parts: &mut Vec<Part>,
    deadline: Instant,
) -> Result<String, DesktopError> {
    let mut command = Command::new(&programs.dbus_daemon);
    command
        .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
        .arg(format!("--address=unix:path={}", folder.bus().display()));
    crate::desktop::apply(&mut command, folder, screen);
    parts.push(Part::start(PartName::SessionBus, command, &folder.logs())?);
    let part = parts.last_mut().expect("it was just pushed");
    part.first_line(deadline)
}

fn start_accessibility_bus(
    folder: &Folder,
    screen: &Screen,
    address: &str,
    programs: &Programs,
    parts: &mut Vec<Part>,
    deadline: Instant,
) -> Result<String, DesktopError> {
    let mut command = Command::new(&programs.at_spi_bus_launcher);
    command.arg("--launch-immediately");
    crate::desktop::apply(&mut command, folder, screen);
    parts.push(Part::start(
        PartName::AccessibilityBus,
        command,
        &folder.logs(),
    )?);
    let part = parts.last_mut().expect("it was just pushed");
    let bus = BusQuestions {
        dbus_send: &programs.dbus_send,
        address,
    };
    part.wait_until(deadline, || bus.accessibility_bus_is_owned())?;
    let accessibility_bus = part.wait_until(deadline, || bus.accessibility_bus_address())?;
    part.wait_until(deadline, || bus.enable_accessibility())?;
    Ok(accessibility_bus)
}
