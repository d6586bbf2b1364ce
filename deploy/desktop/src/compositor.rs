//! The Wayland compositor of a desktop: sway, which draws on a screen that exists in memory alone.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::child::with_empty_signal_mask;
use crate::error::DesktopError;
use crate::folder::Folder;
use crate::options::{Compositor, DesktopOptions};
use crate::part::{Part, PartName};
use crate::screen::Screen;

/// Where sway writes the display of its X server.
const X_DISPLAY: &str = "x-display";

/// Starts it and waits until it takes connections.
pub(crate) fn start(
    folder: &Folder,
    options: &DesktopOptions,
    (compositor, program): (Compositor, &Path),
    parts: &mut Vec<Part>,
    deadline: Instant,
) -> Result<Screen, DesktopError> {
    if nix::unistd::geteuid().is_root() {
        return Err(DesktopError::CompositorAsRoot);
    }
    let config = folder.root().join("sway.conf");
    fs::write(&config, configuration(compositor, options)).map_err(|source| {
        DesktopError::Folder {
            path: config.clone(),
            source,
        }
    })?;
    let mut command = Command::new(program);
    command.arg("--config").arg(config);
    // The screen is not there yet; whatever led the caller to another one is removed all the same.
    let nowhere = Screen::Wayland {
        socket: String::new(),
        x_display: None,
    };
    crate::desktop::apply(&mut command, folder, &nowhere);
    command
        .env_remove("WAYLAND_DISPLAY")
        .env("WLR_BACKENDS", "headless")
        .env("WLR_LIBINPUT_NO_DEVICES", "1")
        // No graphics card, and none is asked for.
        .env("WLR_RENDERER", "pixman");
    with_empty_signal_mask(&mut command);
    parts.push(Part::start(PartName::Compositor, command, &folder.logs())?);
    let part = parts.last_mut().expect("it was just pushed");
    let runtime = folder.runtime();
    let socket = part.wait_until(deadline, || listening_socket(&runtime))?;
    let x_display = match compositor {
        Compositor::Sway => None,
        Compositor::SwayWithXwayland => {
            let told = runtime.join(X_DISPLAY);
            Some(part.wait_until(deadline, || first_line(&told))?)
        }
    };
    Ok(Screen::Wayland { socket, x_display })
}

fn configuration(compositor: Compositor, options: &DesktopOptions) -> String {
    let xwayland = match compositor {
        Compositor::Sway => "xwayland disable".to_owned(),
        Compositor::SwayWithXwayland => {
            format!("xwayland enable\nexec printenv DISPLAY > \"$XDG_RUNTIME_DIR/{X_DISPLAY}\"")
        }
    };
    format!(
        "output * resolution {}\ndefault_border none\n{xwayland}\n",
        options.size
    )
}

/// The runtime folder is this desktop's own, so the one compositor socket in it is that of its compositor.
fn listening_socket(runtime: &Path) -> Option<String> {
    let entries = fs::read_dir(runtime).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| name.starts_with("wayland-") && !name.ends_with(".lock"))
        .find(|name| UnixStream::connect(runtime.join(name)).is_ok())
}

/// A whole line: a file is there before it is written.
fn first_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (line, _) = text.split_once('\n')?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_x_server_is_there_only_when_asked_for() {
        let options = DesktopOptions::default();
        let plain = configuration(Compositor::Sway, &options);
        assert!(plain.contains("output * resolution 1280x800\n"), "{plain}");
        assert!(plain.contains("xwayland disable\n"), "{plain}");
        let with = configuration(Compositor::SwayWithXwayland, &options);
        assert!(with.contains("xwayland enable\n"), "{with}");
    }
}
