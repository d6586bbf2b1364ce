//! A form of one toolkit on a private desktop: starting it, finding its controls, reading its log.

use std::env;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use maka_cu::backend::Backend;
use maka_cu::backend::desktop::WindowInfo;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::{ElementCommand, PerformError, Performed};
use maka_cu::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use maka_cu::deadline::Deadline;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenRect};
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::roles;

use crate::sides::Sides;
use crate::table::{Cover, Outcome, Setup, Toolkit};
use crate::watch::Watch;

/// A failure to appear by then is a failure; the slowest program here takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many events a form's log shows.
pub(crate) const SHOWN: usize = 12;

pub(crate) fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(20))
}

pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What a control is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Find {
    /// By its name, in the window.
    Named(&'static str),
    /// By its name, in the window's menu bar.
    InMenu(&'static str),
}

/// One form with the windows around it.
pub(crate) struct Form {
    pub(crate) desktop: LinuxDesktop,
    pub(crate) toolkit: Toolkit,
    pub(crate) key: WindowKey,
    watch: Watch,
    /// Where the window was when the rows began.
    pub(crate) bounds: ScreenRect,
    _programs: Vec<Program>,
}

/// What the form has shown so far.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) count: usize,
    /// The last ones, oldest first.
    pub(crate) events: Vec<String>,
}

impl Form {
    /// Starts the form, puts it in the upper left corner and another window in front.
    pub(crate) fn start(toolkit: Toolkit, cover: Cover, setup: Setup) -> Self {
        let desktop = match setup {
            Setup::Usual => LinuxDesktop::open(),
            Setup::SecondPointer => LinuxDesktop::open_with_second_pointer(),
        };
        let desktop = desktop.unwrap();
        let mut programs = vec![start(toolkit, setup)];
        let title = format!("Form {}", toolkit.as_str());
        let key = window_of(&desktop, &title).key;
        let root = eventually("the form's accessible", || {
            // A program that is busy may not answer in time; it is asked again.
            desktop.window_root(key, &soon()).ok().flatten()
        });
        let place = ScreenPoint::try_new(20.0, 30.0).unwrap();
        desktop
            .perform(&root, &ElementCommand::MoveWindow(place), &soon())
            .unwrap();
        let (script, front) = match cover {
            Cover::Uncovered => (fixtures().join("forms/bystander.py"), "Bystander"),
            Cover::Covered => (fixtures().join("gtk/cover.py"), "Cover"),
        };
        programs.push(spawn(&mut python(&script)));
        let front = window_of(&desktop, front).key;
        let watch = Watch::connect();
        eventually("the window in front is active", || {
            let sides = Sides::now(&desktop, &watch);
            let windows = desktop.windows(&soon()).unwrap();
            (sides.active == front.window_id && windows[0].key == front).then_some(())
        });
        let bounds = eventually("the form is where it was put", || {
            let bounds = window_of(&desktop, &title).bounds;
            ((bounds.x(), bounds.y()) == (place.x(), place.y())).then_some(bounds)
        });
        let form = Self {
            desktop,
            toolkit,
            key,
            watch,
            bounds,
            _programs: programs,
        };
        eventually("the form shows its log", || form.try_log());
        form
    }

    pub(crate) fn sides(&self) -> Sides {
        Sides::now(&self.desktop, &self.watch)
    }

    /// As it is listed now; `None` when it is not.
    pub(crate) fn window(&self) -> Option<WindowInfo> {
        let windows = self.desktop.windows(&soon()).unwrap();
        windows.into_iter().find(|window| window.key == self.key)
    }

    pub(crate) fn tree(&self) -> RawTree {
        let root = eventually("the form's accessible", || {
            // A program that is busy may not answer in time; it is asked again.
            self.desktop.window_root(self.key, &soon()).ok().flatten()
        });
        self.whole(&root)
    }

    fn menu(&self) -> Option<RawTree> {
        let root = self.tree().nodes.remove(0).node_ref;
        let bar = eventually("an answer about the menu bar", || {
            self.desktop.menu_bar(&root, &soon()).ok()
        })?;
        Some(self.whole(&bar))
    }

    /// A tree that misses nothing: of a busy program a part may be left out, and told to be.
    fn whole(&self, root: &NodeRef) -> RawTree {
        eventually("a whole tree", || {
            let tree = self
                .desktop
                .walk(root, &WalkScope::Everything, &budget())
                .ok()?;
            (!tree.truncated_elements).then_some(tree)
        })
    }

    pub(crate) fn find(&self, find: Find) -> Option<RawNode> {
        let (tree, name) = match find {
            Find::Named(name) => (self.tree(), name),
            Find::InMenu(name) => (self.menu()?, name),
        };
        // The text inside a control is called like the control.
        tree.nodes.into_iter().find(|node| {
            let title = node.title.as_ref().map(|title| title.as_str());
            title == Some(name) && node.role != roles::STATIC_TEXT
        })
    }

    /// Performs a command on a control. What is not advertised is asked for nevertheless: the answer must be no.
    pub(crate) fn perform(&self, find: Find, command: &ElementCommand) -> Outcome {
        let Some(node) = self.find(find) else {
            return Outcome::NoControl;
        };
        let promised = self.desktop.mechanism(&node.node_ref, command, &soon());
        let done = self.desktop.perform(&node.node_ref, command, &soon());
        // A caller who accepts one mechanism only was told which it would be.
        if let Ok(performed) = &done {
            assert_eq!(promised, Ok(Some(performed.path)), "{find:?} {command:?}");
        }
        if let ElementCommand::Perform(verb) = command
            && !node.actions.contains(verb)
        {
            assert_eq!(done, Err(PerformError::NotActionable), "{find:?} {verb}");
        }
        if matches!(command, ElementCommand::SetValue(_)) && !node.value_settable {
            assert_eq!(done, Err(PerformError::NotActionable), "{find:?}");
        }
        outcome(done)
    }

    pub(crate) fn log(&self) -> Log {
        eventually("the form shows its log", || self.try_log())
    }

    fn try_log(&self) -> Option<Log> {
        let tree = self.tree();
        let mut titles = tree.nodes.iter().filter_map(|node| node.title.as_ref());
        let text = titles.find_map(|title| title.as_str().strip_prefix("log "))?;
        let (count, events) = text.split_once(':')?;
        let events = events.trim();
        Some(Log {
            count: count.parse().ok()?,
            events: events.split(" | ").map(str::to_owned).collect(),
        })
    }

    /// What was shown since then, oldest first.
    pub(crate) fn events_since(&self, before: &Log) -> Vec<String> {
        let now = self.log();
        let new = now.count - before.count;
        let skipped = now.events.len().saturating_sub(new);
        if new == 0 {
            Vec::new()
        } else {
            now.events[skipped..].to_vec()
        }
    }
}

pub(crate) fn outcome(done: Result<Performed, PerformError>) -> Outcome {
    match done {
        Ok(done) => Outcome::Done(done.path),
        Err(PerformError::NotActionable) => Outcome::Declined,
        // A machine that is too busy for the measurement is no fact about the toolkit.
        Err(PerformError::TimedOut) => panic!("the program did not answer in time"),
        Err(PerformError::Refused { path }) => Outcome::Refused(path),
        Err(PerformError::Unknown { path }) => Outcome::Unknown(path),
    }
}

fn budget() -> WalkBudget {
    WalkBudget {
        max_elements: 1500,
        max_depth: 64,
        deadline: soon(),
    }
}

fn window_of(desktop: &LinuxDesktop, title: &str) -> WindowInfo {
    eventually(title, || {
        let windows = desktop.windows(&soon()).unwrap();
        windows.into_iter().find(|window| {
            let named = window
                .title
                .as_ref()
                .is_some_and(|text| text.as_str() == title);
            named && window.on_screen
        })
    })
}

fn fixtures() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

fn start(toolkit: Toolkit, setup: Setup) -> Program {
    let forms = fixtures().join("forms");
    match toolkit {
        Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => {
            let mut command = python(&forms.join(toolkit.as_str()).with_extension("py"));
            match setup {
                // The only way in which sent points reach GTK 3; what the executor launches has it too.
                Setup::Usual => command.env("GDK_CORE_DEVICE_EVENTS", "1"),
                Setup::SecondPointer => &mut command,
            };
            spawn(&mut command)
        }
        Toolkit::Chromium => {
            let profile = PathBuf::from(env::var_os("HOME").unwrap()).join("chromium");
            let page = forms.join("form.html").canonicalize().unwrap();
            let mut command = Command::new("chromium");
            command
                .args([
                    "--force-renderer-accessibility",
                    "--no-sandbox",
                    // A container's shared memory may be too small for it.
                    "--disable-dev-shm-usage",
                    "--disable-gpu",
                    "--no-first-run",
                    "--password-store=basic",
                    "--window-size=500,760",
                ])
                .arg(format!("--user-data-dir={}", profile.display()))
                .arg(format!("--app=file://{}", page.display()));
            spawn(&mut command)
        }
    }
}

/// The interpreter of the system, which the toolkits' packages belong to.
fn python(script: &FilePath) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn spawn(command: &mut Command) -> Program {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Program(child.unwrap_or_else(|error| panic!("{:?}: {error}", command.get_program())))
}
