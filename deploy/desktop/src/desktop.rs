//! The handle to a running desktop.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use crate::child::with_empty_signal_mask;
use crate::error::DesktopError;
use crate::folder::Folder;
use crate::keeper::{self, Shared, Started};
use crate::options::DesktopOptions;
use crate::part::PartName;
use crate::programs::Programs;
use crate::screen::Screen;

/// Variables that would lead an application out of the desktop or switch its accessibility off.
const REMOVED: &[&str] = &[
    "AT_SPI_BUS_ADDRESS",
    "DBUS_STARTER_ADDRESS",
    "DBUS_STARTER_BUS_TYPE",
    "DESKTOP_STARTUP_ID",
    "DISPLAY",
    "GTK_MODULES",
    "NO_AT_BRIDGE",
    "SESSION_MANAGER",
    "SWAYSOCK",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "XAUTHORITY",
];

/// A private desktop. It lives until [`Desktop::stop`] or until it is dropped.
///
/// ```no_run
/// use maka_desktop::{Desktop, DesktopOptions};
///
/// let desktop = Desktop::start(DesktopOptions::default())?;
/// let status = desktop.command("xprop").arg("-root").status().unwrap();
/// assert!(status.success());
/// desktop.stop();
/// # Ok::<(), maka_desktop::DesktopError>(())
/// ```
#[derive(Debug)]
pub struct Desktop {
    shared: Arc<Shared>,
    started: Started,
    keeper: Option<JoinHandle<()>>,
    /// Dropping it tells the keeper to end the desktop.
    stop: Option<SyncSender<()>>,
}

impl Desktop {
    /// Starts a desktop and returns when every part of it answers. Blocks for about a second; async callers use a
    /// blocking thread.
    ///
    /// # Errors
    /// When programs are missing, the folder is not usable, or a part does not become ready in time. Nothing is left
    /// running then.
    pub fn start(options: DesktopOptions) -> Result<Self, DesktopError> {
        let programs = Programs::find(&options)?;
        let folder = Folder::prepare(options.dir.as_deref())?;
        let shared = Arc::new(Shared {
            folder,
            lost: OnceLock::new(),
        });
        // Room for the one report, so that the keeper never waits for a caller. Nothing is ever sent on `stop`.
        let (report, reported) = mpsc::sync_channel(1);
        let (stop, stopped) = mpsc::sync_channel(1);
        let for_keeper = Arc::clone(&shared);
        let keeper = thread::Builder::new()
            .name("desktop-keeper".into())
            .spawn(move || keeper::keep(&for_keeper, &options, &programs, &report, &stopped))
            .map_err(|_| DesktopError::Keeper)?;
        match reported.recv() {
            Ok(Ok(started)) => Ok(Self {
                shared,
                started,
                keeper: Some(keeper),
                stop: Some(stop),
            }),
            Ok(Err(error)) => {
                // The keeper ends what it had started before it returns; its result is the error at hand.
                drop(keeper.join());
                Err(error)
            }
            Err(_) => Err(DesktopError::Keeper),
        }
    }

    /// The environment in which programs find this desktop. Use [`Desktop::command`] where possible: it also removes
    /// variables that would lead a program elsewhere.
    #[must_use]
    pub fn env(&self) -> Vec<(String, String)> {
        environment(&self.shared.folder, &self.started.screen)
    }

    /// Names of variables that a program inside the desktop must not inherit, those of [`Desktop::env`] left out.
    #[must_use]
    pub fn removed_env(&self) -> Vec<&'static str> {
        let set = self.env();
        let is_set = |name: &str| set.iter().any(|(set, _)| set == name);
        REMOVED
            .iter()
            .copied()
            .filter(|name| !is_set(name))
            .collect()
    }

    /// A command that runs inside the desktop: the caller's environment with [`Desktop::env`] on top, and no signal
    /// blocked.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        apply(&mut command, &self.shared.folder, &self.started.screen);
        command
    }

    /// The X display, such as `:7`, or the name of the compositor's socket, such as `wayland-1`.
    #[must_use]
    pub fn display(&self) -> String {
        self.started.screen.name()
    }

    /// The address of the accessibility bus.
    #[must_use]
    pub fn accessibility_bus(&self) -> &str {
        &self.started.accessibility_bus
    }

    /// The desktop's folder. It goes at the end unless the caller chose it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.shared.folder.root()
    }

    /// A folder for desktop entries (`NAME.desktop`) that only this desktop sees.
    #[must_use]
    pub fn applications_dir(&self) -> PathBuf {
        self.shared.folder.applications()
    }

    /// The part that ended by itself, if one did. The whole desktop has then ended or is about to.
    #[must_use]
    pub fn lost_part(&self) -> Option<PartName> {
        self.shared.lost.get().copied()
    }

    /// Ends every process of the desktop, applications included, and returns when they are gone.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            // A panic of the keeper has dropped, and so ended, its parts; there is nothing left to end here.
            drop(keeper.join());
        }
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn apply(command: &mut Command, folder: &Folder, screen: &Screen) {
    for name in REMOVED {
        command.env_remove(name);
    }
    command.envs(environment(folder, screen));
    with_empty_signal_mask(command);
}

fn environment(folder: &Folder, screen: &Screen) -> Vec<(String, String)> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let data_dirs = std::env::var("XDG_DATA_DIRS")
        .ok()
        .filter(|dirs| !dirs.is_empty());
    let data_dirs = data_dirs
        .as_deref()
        .unwrap_or("/usr/local/share:/usr/share");
    let common = [
        ("XDG_RUNTIME_DIR", text(folder.runtime())),
        (
            "DBUS_SESSION_BUS_ADDRESS",
            format!("unix:path={}", folder.bus().display()),
        ),
        ("HOME", text(folder.home())),
        ("XDG_CONFIG_HOME", text(folder.home().join(".config"))),
        ("XDG_CACHE_HOME", text(folder.home().join(".cache"))),
        ("XDG_DATA_HOME", text(folder.home().join(".local/share"))),
        (
            "XDG_DATA_DIRS",
            format!("{}:{data_dirs}", folder.data().display()),
        ),
        // No settings daemon runs here, and the user's settings are none of this desktop's business.
        ("GSETTINGS_BACKEND", "memory".to_owned()),
        // Qt builds its tree only when told that somebody reads it.
        ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1".to_owned()),
    ];
    let variables = screen.environment(folder).into_iter().chain(common);
    variables
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
