//! Linux desktops, read and operated through AT-SPI.
//!
//! Two back ends share what is below. `x11` has an X server to tell it of windows, to take pictures and to send input;
//! `wayland` has the accessibility bus alone. What both do is written once: `services` keeps the buses and the
//! applications, `reading` and `walk` read trees, and `surface` is the seam, which tells where a window is known from.
//!
//! What the toolkits are known to do wrong is written where it is dealt with: `bus` (a call that crashes Qt), `vocabulary`
//! (translated names, actions that undo), `frame` (coordinates), `capture` (blank first pictures), `choice`, `selection`,
//! `scroll` and `arrange` (actions). What works where is measured by the tests of `matrix` and told in
//! `docs/linux-matrix.md`.

mod accessibility;
mod activity;
mod apps;
mod arrange;
#[cfg(test)]
mod babble;
mod bracket;
mod bus;
mod cache;
mod capture;
mod catalog;
mod choice;
mod compositor;
mod display;
mod doctor;
mod entry;
mod focus;
mod frame;
mod front;
mod hand;
#[cfg(test)]
mod hostile;
mod input;
mod keyboard;
mod keymap;
mod keysym;
mod listing;
mod locate;
mod lock;
mod master;
mod matching;
mod node;
mod pointer;
mod process;
mod reader;
mod reading;
#[cfg(test)]
mod rerun;
mod routes;
mod scroll;
mod second;
mod selection;
mod sent;
mod services;
mod session;
mod surface;
mod toolkits;
mod toplevels;
mod vocabulary;
mod walk;
mod wayland;
mod window;
mod window_ids;
mod x11;

pub use self::wayland::WaylandDesktop;
pub use self::x11::LinuxDesktop;
use super::BackendKind;
use super::doctor::{Finding, Note};

/// The back end that drives the session of this environment: X11 where there is an X display with a screen of its own, else
/// Wayland where there is a compositor, else X11.
#[must_use]
pub fn kind_of_session() -> BackendKind {
    session::kind()
}

/// What an X11 desktop needs and whether it is there.
#[must_use]
pub fn diagnose() -> Vec<Finding> {
    doctor::diagnose()
}

/// What a Wayland desktop needs and whether it is there.
#[must_use]
pub fn diagnose_wayland() -> Vec<Finding> {
    doctor::diagnose_wayland()
}

/// What the applications of this environment were told about accessibility, and of X11 in a Wayland session what it misses.
#[must_use]
pub fn notes() -> Vec<Note> {
    let mut notes = toolkits::notes(BackendKind::Linux);
    notes.extend(doctor::connect().ok().map(|screen| master::note(&screen)));
    notes
}

/// The same, and what cannot be done on a Wayland desktop and why.
#[must_use]
pub fn notes_wayland() -> Vec<Note> {
    toolkits::notes(BackendKind::Wayland)
}
