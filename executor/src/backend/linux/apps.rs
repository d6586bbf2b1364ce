//! Applications: which process is which, and starting them.
//!
//! The one naming rule (design of the project, "Linux names"): a process has the id of the desktop entry it was launched
//! from by us, or of the only entry that names its program, unless that program merely carries others; else `pid:<n>`.
//! `WM_CLASS` is never used: any program can write any class.

use std::collections::{HashMap, HashSet};
use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use maka_cu_protocol::ids::AppId;
use maka_cu_protocol::text::AppText;

use super::catalog::{Application, Catalog, Reading, is_carrier};
use super::process::{Process, executable, process, processes};
use super::routes;
use crate::backend::desktop::{ProcessStart, RunningApp, WindowInfo};
use crate::backend::error::BackendError;
use crate::backend::launch::LaunchProgress;

/// Programs that hold other programs' secrets are not for agents to open. By entry id, lower case.
const NOT_LAUNCHED: [&str; 9] = [
    "1password",
    "bitwarden",
    "com.bitwarden.desktop",
    "keepassxc",
    "org.gnome.seahorse.application",
    "org.gnome.world.secrets",
    "org.kde.kwalletmanager5",
    "org.keepassxc.keepassxc",
    "org.kde.kwalletmanager",
];

/// Launch numbers of this process, for startup ids.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// What is remembered between calls: parsed entries, and what we started.
#[derive(Debug, Default)]
pub(super) struct Apps {
    reading: Mutex<Reading>,
    launched: Mutex<Vec<Launched>>,
}

/// A process that we started. It leads a session of its own, by which its descendants are known.
#[derive(Debug)]
struct Launched {
    pid: u32,
    start: ProcessStart,
    app_id: String,
    name: String,
    /// Until it is reaped.
    child: Option<Child>,
}

impl Launched {
    fn holds(&self, process: &Process) -> bool {
        process.session == self.pid && process.start.0 >= self.start.0
    }
}

/// What [`Apps::launch`] started.
#[derive(Debug)]
pub(super) struct Launch {
    pid: u32,
    start: ProcessStart,
    executable: Option<PathBuf>,
    /// Windows that were there before, to tell an old one from one opened by an instance that was running already.
    before: HashSet<u32>,
}

/// Answers for one call: the catalog is read once.
#[derive(Debug)]
pub(super) struct Identities {
    catalog: Catalog,
    /// Session leaders that we started, with id and name.
    launched: Vec<(u32, ProcessStart, String, String)>,
}

impl Identities {
    /// The application that the process is, when it has an identity beyond its number.
    fn identity(&self, process: &Process) -> Option<(String, String)> {
        let launched = self
            .launched
            .iter()
            .find(|(pid, start, ..)| process.session == *pid && process.start.0 >= start.0)
            .map(|(_, _, id, name)| (id.clone(), name.clone()));
        launched.or_else(|| {
            let application = self.catalog.app_of(&executable(process.pid)?)?;
            Some((application.id.clone(), application.name().to_owned()))
        })
    }

    /// The application as every list spells it.
    pub(super) fn app(&self, process: &Process) -> RunningApp {
        let (id, name) = match self.identity(process) {
            Some((id, name)) => (AppId::try_new(id).ok(), name),
            None => (None, process.name.clone()),
        };
        RunningApp {
            app_id: id.unwrap_or_else(|| AppId::of_pid(process.pid)),
            pid: process.pid,
            name: (!name.is_empty()).then(|| AppText::new(name)),
        }
    }

    /// The application of a pid; one that has just ended keeps its number as its name.
    pub(super) fn app_of_pid(&self, pid: u32) -> RunningApp {
        match process(pid) {
            Some(process) => self.app(&process),
            None => RunningApp {
                app_id: AppId::of_pid(pid),
                pid,
                name: None,
            },
        }
    }
}

impl Apps {
    /// Reads what identifies processes now.
    pub(super) fn identities(&self) -> Identities {
        let catalog = lock(&self.reading).catalog();
        let launched = self.living();
        let launched = launched
            .iter()
            .map(|one| (one.pid, one.start, one.app_id.clone(), one.name.clone()))
            .collect();
        Identities { catalog, launched }
    }

    /// The running applications: owners of windows, and processes with an identity of their own.
    pub(super) fn running(&self, window_owners: &HashSet<u32>) -> Vec<RunningApp> {
        let identities = self.identities();
        let all = processes();
        let by_pid: HashMap<u32, &Process> =
            all.iter().map(|process| (process.pid, process)).collect();
        all.iter()
            .filter(|process| {
                window_owners.contains(&process.pid)
                    || (identities.identity(process).is_some()
                        && is_first_of_its_kind(process, &by_pid))
            })
            .map(|process| identities.app(process))
            .collect()
    }

    /// Starts the application of this id or name. `windows` are those of now.
    pub(super) fn launch(
        &self,
        name: &str,
        windows: &[WindowInfo],
    ) -> Result<Launch, BackendError> {
        let catalog = lock(&self.reading).catalog();
        let application = match catalog.named(name)[..] {
            [] => return Err(BackendError::AppNotFound),
            [application] => application,
            [..] => return Err(BackendError::Ambiguous),
        };
        // A program for a terminal would run without anybody seeing it.
        if NOT_LAUNCHED.contains(&application.id.to_ascii_lowercase().as_str())
            || application.entry.terminal
        {
            return Err(BackendError::Unsupported);
        }
        let executable = application
            .executable
            .clone()
            .ok_or(BackendError::AppNotFound)?;
        let child = spawn(application, &executable).map_err(|error| {
            tracing::warn!(kind = ?error.kind(), "an application could not be started");
            BackendError::Refused
        })?;
        let pid = child.id();
        let start = process(pid).map_or(ProcessStart(0), |process| process.start);
        lock(&self.launched).push(Launched {
            pid,
            start,
            app_id: application.id.clone(),
            name: application.name().to_owned(),
            child: Some(child),
        });
        tracing::info!(pid, "an application was started");
        Ok(Launch {
            pid,
            start,
            executable: Some(executable).filter(|path| !is_carrier(path)),
            before: windows.iter().map(|window| window.key.window_id).collect(),
        })
    }

    /// How far a launch has come, judged by the process table and the windows of now.
    pub(super) fn progress(&self, launch: &Launch, windows: &[WindowInfo]) -> LaunchProgress {
        let identities = self.identities();
        let all = processes();
        let members: Vec<&Process> = all
            .iter()
            .filter(|process| belongs_to(process, launch, &all))
            .collect();
        // A window that is listed before it is shown has no pixels yet: an observe that follows the launch at once would
        // find nothing to capture.
        let ordinary = || {
            windows
                .iter()
                .filter(|window| window.layer == 0 && window.on_screen)
        };
        let own: Vec<WindowInfo> = ordinary()
            .filter(|window| members.iter().any(|member| member.pid == window.key.pid))
            .cloned()
            .collect();
        let leader = members
            .iter()
            .find(|member| member.pid == launch.pid)
            .or(members.first());
        if let Some(pid) = own
            .first()
            .map(|window| window.key.pid)
            .or(leader.map(|leader| leader.pid))
        {
            let own = own
                .into_iter()
                .filter(|window| window.key.pid == pid)
                .collect();
            return LaunchProgress::Running {
                app: identities.app_of_pid(pid),
                windows: own,
            };
        }
        // It ended. Single-instance programs do that after they have asked the instance that was there for a window.
        let Some(program) = &launch.executable else {
            return LaunchProgress::Exited;
        };
        let same = |pid: u32| executable(pid).as_ref() == Some(program);
        let new: Vec<WindowInfo> = ordinary()
            .filter(|window| !launch.before.contains(&window.key.window_id) && same(window.key.pid))
            .cloned()
            .collect();
        let heir = new.first().map(|window| window.key.pid);
        let heir = heir.or_else(|| {
            all.iter()
                .find(|process| same(process.pid))
                .map(|process| process.pid)
        });
        match heir {
            Some(pid) => LaunchProgress::Running {
                app: identities.app_of_pid(pid),
                windows: new,
            },
            None => LaunchProgress::Exited,
        }
    }

    /// What we started and still runs, in whole or in part. Reaps what has ended.
    fn living(&self) -> MutexGuard<'_, Vec<Launched>> {
        let mut launched = lock(&self.launched);
        for one in launched.iter_mut() {
            // An error means that there is no such child any more.
            if one
                .child
                .as_mut()
                .is_some_and(|child| child.try_wait().map_or(true, |status| status.is_some()))
            {
                one.child = None;
            }
        }
        if launched.iter().any(|one| one.child.is_none()) {
            // The kernel does not give a number away while a session still bears it, so an empty session is over.
            let all = processes();
            launched
                .retain(|one| one.child.is_some() || all.iter().any(|process| one.holds(process)));
        }
        launched
    }
}

/// Helpers of one program share its file; only the one that no process of the same file started is listed.
fn is_first_of_its_kind(process: &Process, all: &HashMap<u32, &Process>) -> bool {
    let Some(parent) = all.get(&process.parent) else {
        return true;
    };
    let same_session = parent.session == process.session && parent.pid != process.pid;
    !(same_session && parent.session == parent.pid
        || executable(parent.pid) == executable(process.pid))
}

fn belongs_to(process: &Process, launch: &Launch, all: &[Process]) -> bool {
    if process.start.0 < launch.start.0 {
        return false;
    }
    if process.session == launch.pid {
        return true;
    }
    // A descendant that made a session of its own. The way up is short; a loop in a table read piecemeal must end.
    let mut pid = process.pid;
    for _ in 0..64 {
        match all.iter().find(|one| one.pid == pid) {
            Some(one) if one.parent == launch.pid => return true,
            Some(one) if one.parent > 1 => pid = one.parent,
            Some(_) | None => return false,
        }
    }
    false
}

/// Starts the program in a session of its own, with nothing attached: it outlives the executor, and signals for the
/// executor's group do not reach it.
fn spawn(application: &Application, executable: &std::path::Path) -> io::Result<Child> {
    let words = application
        .entry
        .command(&application.path.to_string_lossy());
    let (_, arguments) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let mut command = Command::new(executable);
    command
        .args(arguments)
        // A startup id with an old time tells toolkit and window manager that no person asked for this just now
        // (Startup Notification Protocol); GDK takes 0 for "unknown", so it is 1. Managers that prevent focus stealing
        // then leave the focus alone; openbox does only while the person is typing. The truth is read afterwards.
        .env(
            "DESKTOP_STARTUP_ID",
            format!("maka-cu-{}-{number}_TIME1", std::process::id()),
        )
        // GTK 3 then listens to events of the core protocol too, the only ones that one window alone can be sent.
        .env(routes::CORE_EVENTS_VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(arg0) = words.first() {
        command.arg0(arg0);
    }
    let home = env::var_os("HOME").map(PathBuf::from);
    let folder = application
        .entry
        .folder
        .as_ref()
        .map(PathBuf::from)
        .or(home);
    if let Some(folder) = folder.filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
    let lead_session = || nix::unistd::setsid().map(drop).map_err(io::Error::from);
    #[expect(
        unsafe_code,
        reason = "the standard library offers no other hook between fork and exec"
    )]
    // SAFETY: the closure runs in the forked child and makes one system call, setsid, which is async-signal-safe. It
    // neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(lead_session);
    }
    command.spawn()
}

/// A panic elsewhere leaves whole values behind: each is changed in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
