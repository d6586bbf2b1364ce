//! The Debian packages that the real tests need: a display server, a compositor, a bus, accessibility, two window managers,
//! and programs of every toolkit. Installs them when it may, else says what to install.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::workspace::run;

/// What the desktop tests run (spec linux-desktop §1), and Python for the client tests.
const PACKAGES: [&str; 25] = [
    "at-spi2-core",
    "chromium",
    "dbus",
    "featherpad",
    "fonts-dejavu-core",
    "gir1.2-gtk-3.0",
    "gir1.2-gtk-4.0",
    "gnome-calculator",
    "mousepad",
    "openbox",
    "python3-gi",
    "python3-pyatspi",
    "python3-pyqt5",
    "python3-pyqt6",
    "python3-venv",
    "qt6-wayland",
    "qtwayland5",
    "sway",
    "x11-utils",
    "xauth",
    "xfwm4",
    "xterm",
    "xvfb",
    "xwayland",
    "zenity",
];

/// Sees to it that the packages are there.
///
/// # Errors
/// When some are missing and cannot be installed from here: the text is the command to run.
pub(crate) fn ensure() -> anyhow::Result<()> {
    if cfg!(not(target_os = "linux")) {
        println!("system packages: none needed; the tests of the Linux desktop are not built here");
        return Ok(());
    }
    let missing: Vec<&str> = PACKAGES
        .into_iter()
        .filter(|name| !installed(name))
        .collect();
    if missing.is_empty() {
        println!("system packages: all there");
        return Ok(());
    }
    let install = format!(
        "apt-get install --no-install-recommends {}",
        missing.join(" ")
    );
    if !nix::unistd::geteuid().is_root() || !apt_is_there() {
        bail!(
            "the tests drive a real desktop and need programs that are not installed; run: {install}"
        );
    }
    println!("system packages: {install}");
    run(Command::new("apt-get")
        .args(["update", "-q"])
        .stdout(Stdio::null()))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}

/// `dpkg-query` knows the package as installed. Where there is no dpkg nothing counts as installed.
fn installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}

fn apt_is_there() -> bool {
    Command::new("apt-get")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
