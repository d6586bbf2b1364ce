//! The truth table of the X11 back end, measured with one form per toolkit and compared with what is written down.
//!
//! Each toolkit has a test of its own. It starts a private desktop, runs itself again inside it, and does every row of the
//! table twice: with the form in view and with a full-screen window above it. A cell holds when the back end says what the
//! table says, the program shows the effect, and pointer, active window, stacking and focus are as before, or changed as the
//! table says (C1: input that was to stay in the background and did not). The gestures are done again with the second pointer,
//! by rows of their own. The same data makes `docs/linux-matrix.md`.
//!
//! Nearly all of it runs under openbox; under xfwm4 a sample does, and the rest where `MAKA_MATRIX_ALL` is set, as
//! `cargo xtask soak matrix` does.
//!
//! A toolkit that is not installed fails its test, unless `MAKA_TEST_WITHOUT` lists it by name.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of a test fail the test")]
#![expect(
    clippy::print_stdout,
    reason = "the measured table is what a failing test shows"
)]

mod document;
mod element;
mod form;
mod input;
mod second;
mod sides;
mod table;
#[path = "../linux/watch.rs"]
mod watch;

use std::env;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use maka_desktop::{Desktop, DesktopOptions, WindowManager};

use crate::form::{Form, eventually, soon};
use crate::table::{Cell, Cover, Effect, Outcome, Row, Setup, Toolkit};

use maka_cu::backend::Backend as _;

/// Set in the inner run.
const INSIDE: &str = "MAKA_TEST_INSIDE";
const WITHOUT: &str = "MAKA_TEST_WITHOUT";
/// Set for the long form: every toolkit under every window manager, in every setup.
const ALL: &str = "MAKA_MATRIX_ALL";
/// One desktop at a time: five at once measure the machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn gtk3() {
    measure("gtk3", Toolkit::Gtk3, WindowManager::Openbox, Setup::Usual);
}

#[test]
fn gtk4() {
    measure("gtk4", Toolkit::Gtk4, WindowManager::Openbox, Setup::Usual);
}

#[test]
fn qt5() {
    measure("qt5", Toolkit::Qt5, WindowManager::Openbox, Setup::Usual);
}

#[test]
fn qt6() {
    measure("qt6", Toolkit::Qt6, WindowManager::Openbox, Setup::Usual);
}

#[test]
fn chromium() {
    measure(
        "chromium",
        Toolkit::Chromium,
        WindowManager::Openbox,
        Setup::Usual,
    );
}

#[test]
fn gtk3_xfwm4() {
    measure(
        "gtk3_xfwm4",
        Toolkit::Gtk3,
        WindowManager::Xfwm4,
        Setup::Usual,
    );
}

#[test]
fn gtk4_xfwm4() {
    in_the_long_form(
        "gtk4_xfwm4",
        Toolkit::Gtk4,
        WindowManager::Xfwm4,
        Setup::Usual,
    );
}

#[test]
fn qt5_xfwm4() {
    in_the_long_form(
        "qt5_xfwm4",
        Toolkit::Qt5,
        WindowManager::Xfwm4,
        Setup::Usual,
    );
}

#[test]
fn qt6_xfwm4() {
    in_the_long_form(
        "qt6_xfwm4",
        Toolkit::Qt6,
        WindowManager::Xfwm4,
        Setup::Usual,
    );
}

#[test]
fn chromium_xfwm4() {
    in_the_long_form(
        "chromium_xfwm4",
        Toolkit::Chromium,
        WindowManager::Xfwm4,
        Setup::Usual,
    );
}

#[test]
fn second_pointer_gtk3() {
    in_the_long_form(
        "second_pointer_gtk3",
        Toolkit::Gtk3,
        WindowManager::Openbox,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_gtk4() {
    measure(
        "second_pointer_gtk4",
        Toolkit::Gtk4,
        WindowManager::Openbox,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_qt6() {
    measure(
        "second_pointer_qt6",
        Toolkit::Qt6,
        WindowManager::Openbox,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_gtk4_xfwm4() {
    in_the_long_form(
        "second_pointer_gtk4_xfwm4",
        Toolkit::Gtk4,
        WindowManager::Xfwm4,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_qt5() {
    in_the_long_form(
        "second_pointer_qt5",
        Toolkit::Qt5,
        WindowManager::Openbox,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_gtk3_xfwm4() {
    measure(
        "second_pointer_gtk3_xfwm4",
        Toolkit::Gtk3,
        WindowManager::Xfwm4,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_qt5_xfwm4() {
    in_the_long_form(
        "second_pointer_qt5_xfwm4",
        Toolkit::Qt5,
        WindowManager::Xfwm4,
        Setup::SecondPointer,
    );
}

#[test]
fn second_pointer_qt6_xfwm4() {
    in_the_long_form(
        "second_pointer_qt6_xfwm4",
        Toolkit::Qt6,
        WindowManager::Xfwm4,
        Setup::SecondPointer,
    );
}

fn in_the_long_form(test: &str, toolkit: Toolkit, manager: WindowManager, setup: Setup) {
    if env::var_os(ALL).is_none() && env::var_os(INSIDE).is_none() {
        println!("{test} is left out: it belongs to the long form, `cargo xtask soak matrix`");
        return;
    }
    measure(test, toolkit, manager, setup);
}

/// Runs the rows in a private desktop: outside it starts one and runs the test of this name again.
fn measure(test: &str, toolkit: Toolkit, manager: WindowManager, setup: Setup) {
    if env::var_os(INSIDE).is_some() {
        return inside(toolkit, setup);
    }
    let without = env::var(WITHOUT).unwrap_or_default();
    if without
        .split_whitespace()
        .any(|name| name == toolkit.as_str())
    {
        println!("{test} is left out, as {WITHOUT} says");
        return;
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let options = DesktopOptions {
        window_manager: Some(manager),
        ..DesktopOptions::default()
    };
    let desktop = Desktop::start(options).unwrap();
    let output = desktop
        .command(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    desktop.stop();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    println!("{text}");
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no test is called {test}");
}

fn inside(toolkit: Toolkit, setup: Setup) {
    let mut wrong = Vec::new();
    for cover in Cover::ALL {
        let form = Form::start(toolkit, cover, setup);
        let mut quiet: Option<(&str, form::Log)> = None;
        for row in setup.rows() {
            // A row without effect is believed when nothing came of it by the time of the next one.
            if let Some((name, log)) = quiet.take() {
                let late = form.events_since(&log);
                if !late.is_empty() {
                    wrong.push(format!(
                        "{} {cover:?} {name}: came late: {late:?}",
                        toolkit.as_str()
                    ));
                }
            }
            let expected = (row.cells)(toolkit, cover);
            let found = look(&form, &row, &expected);
            if !matches!(expected, Cell::Works { .. }) {
                quiet = Some((row.name, form.log()));
            }
            let line = format!("{:<9} {cover:?} {}: {found}", toolkit.as_str(), row.name);
            println!("{line}");
            if found != expected.to_string() {
                wrong.push(format!("{line}, expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Does a row once and says what came of it, in the words of a cell or in others when it fits none.
fn look(form: &Form, row: &Row, expected: &Cell) -> String {
    let before = form.sides();
    let log = form.log();
    let outcome = attempt(form, row, expected);
    let effect = match (outcome, expected) {
        // Only what should be seen is waited for.
        (Outcome::Done(_), Cell::Works { .. }) => seen(form, row.effect, &log),
        (Outcome::Done(_), _)
        | (
            Outcome::Declined
            | Outcome::NeedsGlobal
            | Outcome::Refused(_)
            | Outcome::Unknown(_)
            | Outcome::NoControl,
            _,
        ) => false,
    };
    let events = form.events_since(&log);
    let sides = form.sides().since(&before);
    let cell = match outcome {
        Outcome::Done(path) if effect => Cell::Works { path, sides },
        Outcome::Done(path) => Cell::Accepted(path),
        Outcome::Declined => Cell::Declined,
        Outcome::NeedsGlobal => Cell::NeedsGlobal,
        Outcome::Refused(path) => Cell::Refused(path),
        Outcome::Unknown(path) => Cell::Unknown(path),
        Outcome::NoControl => Cell::NoControl,
    };
    match (&cell, events.as_slice()) {
        (Cell::Works { .. }, _) | (_, []) => cell.to_string(),
        (
            Cell::Accepted(_)
            | Cell::Declined
            | Cell::NeedsGlobal
            | Cell::Refused(_)
            | Cell::Unknown(_)
            | Cell::NoControl,
            events,
        ) => format!("{cell}, but {events:?}"),
    }
}

/// Runs a row. Where it should work, a no is not taken for an answer at once: a busy program may have left a question
/// unanswered, and a no promises that nothing was attempted.
fn attempt(form: &Form, row: &Row, expected: &Cell) -> Outcome {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let outcome = (row.run)(form);
        let again = outcome == Outcome::Declined && matches!(expected, Cell::Works { .. });
        if !again || Instant::now() > give_up {
            return outcome;
        }
    }
}

/// Waits until the effect is there. `false` when it never comes.
fn seen(form: &Form, effect: Effect, log: &form::Log) -> bool {
    let shows = |start: &str| {
        let events = form.events_since(log);
        events.iter().any(|event| event.starts_with(start))
    };
    let is_there = || match effect {
        Effect::Event(start) => shows(start),
        Effect::EventOf(start) => shows(start(form.toolkit)),
        Effect::Events(expected) => {
            let count = form.log().count - log.count;
            let mut events = form.events_since(log);
            events.dedup();
            let expected = expected(form.toolkit);
            if count > form::SHOWN {
                expected.ends_with(&events.iter().map(String::as_str).collect::<Vec<_>>())
            } else {
                events == expected
            }
        }
        Effect::Selected(name, text) => form
            .find(form::Find::Named(name))
            .and_then(|node| form.desktop.selected_text(&node.node_ref, &soon()).ok()?)
            .is_some_and(|selected| selected.as_str() == text),
        Effect::Window(is_so) => is_so(form),
    };
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("the effect", || is_there().then_some(()));
    }));
    looked.is_ok()
}

#[test]
fn the_document_is_the_table() {
    document::check();
}
