//! Which programs a desktop is made of, where they are, and what installs them.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::DesktopError;
use crate::options::{Compositor, DesktopOptions, WindowManager};

/// Debian packages that together give everything a desktop here needs, fonts for its applications included.
pub const REQUIRED_PACKAGES: &[&str] = &[
    "xvfb",
    "dbus",
    "dbus-bin",
    "at-spi2-core",
    "openbox",
    "fonts-dejavu-core",
];

/// Folders outside `PATH` in which distributions put the AT-SPI launcher.
const LIBEXEC: &[&str] = &[
    "/usr/libexec",
    "/usr/libexec/at-spi2-core",
    "/usr/lib/at-spi2-core",
    "/usr/lib/at-spi2",
    "/usr/lib/x86_64-linux-gnu/at-spi2-core",
    "/usr/lib/aarch64-linux-gnu/at-spi2-core",
];

/// One program that is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    /// Its file name.
    pub program: &'static str,
    /// The Debian package that holds it.
    pub package: &'static str,
}

/// The programs, found.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) screen: ScreenPrograms,
    pub(crate) dbus_daemon: PathBuf,
    pub(crate) dbus_send: PathBuf,
    pub(crate) at_spi_bus_launcher: PathBuf,
}

/// What makes the screen.
#[derive(Debug)]
pub(crate) enum ScreenPrograms {
    /// An X server, and a window manager with the choice of it.
    X {
        xvfb: PathBuf,
        window_manager: Option<(WindowManager, PathBuf)>,
    },
    /// A compositor with the choice of it.
    Wayland(Compositor, PathBuf),
}

impl Programs {
    /// Looks for all programs before anything starts, so that one answer names everything that is missing.
    pub(crate) fn find(options: &DesktopOptions) -> Result<Self, DesktopError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = env::split_paths(&path).collect();
        let mut search = Search {
            path,
            missing: Vec::new(),
        };
        let screen = match options.compositor {
            Some(compositor) => search.compositor(compositor),
            None => search.x_server(options.window_manager),
        };
        let dbus_daemon = search.find("dbus-daemon", "dbus");
        let dbus_send = search.find("dbus-send", "dbus-bin");
        let at_spi_bus_launcher = search.find("at-spi-bus-launcher", "at-spi2-core");
        match (screen, dbus_daemon, dbus_send, at_spi_bus_launcher) {
            (Some(screen), Some(dbus_daemon), Some(dbus_send), Some(at_spi_bus_launcher)) => {
                Ok(Self {
                    screen,
                    dbus_daemon,
                    dbus_send,
                    at_spi_bus_launcher,
                })
            }
            _ => Err(DesktopError::MissingPrograms {
                missing: search.missing,
            }),
        }
    }
}

struct Search {
    path: Vec<PathBuf>,
    missing: Vec<MissingProgram>,
}

impl Search {
    fn x_server(&mut self, window_manager: Option<WindowManager>) -> Option<ScreenPrograms> {
        let xvfb = self.find("Xvfb", "xvfb");
        let window_manager = match window_manager {
            Some(manager) => {
                let found = self.find(manager.as_str(), manager.as_str());
                found.map(|path| Some((manager, path)))
            }
            None => Some(None),
        };
        Some(ScreenPrograms::X {
            xvfb: xvfb?,
            window_manager: window_manager?,
        })
    }

    fn compositor(&mut self, compositor: Compositor) -> Option<ScreenPrograms> {
        let sway = self.find("sway", "sway");
        let inside = match compositor {
            Compositor::Sway => Some(()),
            // sway finds it by itself.
            Compositor::SwayWithXwayland => self.find("Xwayland", "xwayland").map(drop),
        };
        inside?;
        Some(ScreenPrograms::Wayland(compositor, sway?))
    }

    fn find(&mut self, program: &'static str, package: &'static str) -> Option<PathBuf> {
        let folders = self
            .path
            .iter()
            .map(PathBuf::as_path)
            .chain(LIBEXEC.iter().map(Path::new));
        let found = folders
            .map(|folder| folder.join(program))
            .find(|path| is_executable(path));
        if found.is_none() {
            self.missing.push(MissingProgram { program, package });
        }
        found
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The text of [`DesktopError::MissingPrograms`].
pub(crate) fn install_line(missing: &[MissingProgram]) -> String {
    let programs: Vec<&str> = missing.iter().map(|one| one.program).collect();
    let mut packages: Vec<&str> = missing.iter().map(|one| one.package).collect();
    packages.dedup();
    format!(
        "not installed: {}; install with `apt-get install -y --no-install-recommends {}`",
        programs.join(", "),
        packages.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_lists_exactly_what_to_install() {
        let missing = [
            MissingProgram {
                program: "Xvfb",
                package: "xvfb",
            },
            MissingProgram {
                program: "openbox",
                package: "openbox",
            },
        ];
        assert_eq!(
            DesktopError::MissingPrograms {
                missing: missing.to_vec()
            }
            .to_string(),
            "not installed: Xvfb, openbox; install with `apt-get install -y --no-install-recommends xvfb openbox`"
        );
    }

    #[test]
    fn every_missing_program_is_collected() {
        let mut search = Search {
            path: vec![PathBuf::from("/nonexistent")],
            missing: Vec::new(),
        };
        assert_eq!(search.find("no-such-program-a", "a"), None);
        assert_eq!(search.find("no-such-program-b", "b"), None);
        assert_eq!(search.missing.len(), 2);
    }
}
