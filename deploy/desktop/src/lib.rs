//! Starts one private Linux desktop: Xvfb and a window manager, or a Wayland compositor, with a D-Bus session bus and the
//! AT-SPI bus.
//!
//! Owns the life of those processes and nothing else: it does not start applications (see [`Desktop::command`] for an
//! environment to start them in) and it knows nothing of the executor or the gateway that use it.
//!
//! Invariants:
//! - [`Desktop::start`] returns only when every part answers: the X server has told its display number, the session bus
//!   its address, the accessibility bus answers a call, and the window manager has announced itself. Nothing waits by
//!   sleeping for a guessed time.
//! - After [`Desktop::stop`], or a drop, no process of the desktop is left, applications that were started in it
//!   included. If the program that holds the [`Desktop`] is killed, the kernel ends the parts, and with them every
//!   program that needs the display.
//! - Only holders of the private X authority cookie can connect to the display, and only this user to the buses and to a
//!   compositor. The X server inside a compositor is the exception: the compositor gives it no cookie.
#![cfg(target_os = "linux")]

mod authority;
mod child;
mod compositor;
mod desktop;
mod error;
mod folder;
mod keeper;
mod options;
mod part;
mod programs;
mod ready;
mod screen;
mod sweep;

pub use desktop::Desktop;
pub use error::DesktopError;
pub use options::{
    Compositor, CompositorError, DesktopOptions, ScreenSize, ScreenSizeError, WindowManager,
    WindowManagerError,
};
pub use part::PartName;
pub use programs::{MissingProgram, REQUIRED_PACKAGES};
