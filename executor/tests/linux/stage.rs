//! A private desktop, the programs on it, and waiting for what they do in their own time.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use maka_cu::backend::Backend as _;
use maka_cu::backend::desktop::WindowInfo;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use maka_cu::deadline::Deadline;
use maka_cu_protocol::ids::WindowKey;
use maka_desktop::{Desktop, DesktopOptions};

/// Set in the inner run: a folder of the private desktop.
const INSIDE: &str = "MAKA_TEST_INSIDE_DIR";
/// Set in the inner run: the folder for desktop entries.
const APPLICATIONS: &str = "MAKA_TEST_APPLICATIONS";
/// A failure to appear by then is a failure; nothing here takes longer than a few seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `scenario` in a private desktop: outside it starts one and runs the test of this name again. The name is that of the
/// module and the function.
pub(crate) fn inside(test: &str, scenario: fn()) {
    inside_of(DesktopOptions::default(), test, scenario);
}

pub(crate) fn inside_of(options: DesktopOptions, test: &str, scenario: fn()) {
    if env::var_os(INSIDE).is_some() {
        return scenario();
    }
    let desktop = Desktop::start(options).unwrap();
    let output = desktop
        .command(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, desktop.dir())
        .env(APPLICATIONS, desktop.applications_dir())
        .output()
        .unwrap();
    desktop.stop();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no test is called {test}");
}

/// A folder of the private desktop.
pub(crate) fn home() -> PathBuf {
    PathBuf::from(env::var_os(INSIDE).unwrap())
}

/// The folder for desktop entries of the private desktop.
pub(crate) fn applications() -> PathBuf {
    PathBuf::from(env::var_os(APPLICATIONS).unwrap())
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures")
        .canonicalize()
        .unwrap()
}

pub(crate) fn form_path(name: &str) -> PathBuf {
    fixtures().join("forms").join(name).with_extension("py")
}

pub(crate) fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(30))
}

pub(crate) fn budget() -> WalkBudget {
    WalkBudget {
        max_elements: 1500,
        max_depth: 64,
        deadline: soon(),
    }
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
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        Self::spawn(Command::new(program).args(arguments))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.unwrap())
    }

    /// A form as a person starts it, so without what makes GTK 3 hear more.
    pub(crate) fn form(name: &str) -> Self {
        Self::spawn(
            Command::new("/usr/bin/python3")
                .arg(form_path(name))
                .env("PYTHONDONTWRITEBYTECODE", "1"),
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) fn window_of(desktop: &LinuxDesktop, title: &str) -> WindowInfo {
    eventually(title, || {
        let windows = desktop.windows(&soon()).unwrap();
        windows.into_iter().find(|window| {
            let found = window.title.as_ref().map(|title| title.as_str());
            found == Some(title) && window.on_screen
        })
    })
}

pub(crate) fn root_of(desktop: &LinuxDesktop, key: WindowKey) -> NodeRef {
    eventually("the window's accessible", || {
        // A program that is busy may not answer in time; it is asked again.
        desktop.window_root(key, &soon()).ok().flatten()
    })
}

pub(crate) fn tree_of(desktop: &LinuxDesktop, key: WindowKey) -> RawTree {
    desktop
        .walk(&root_of(desktop, key), &WalkScope::Everything, &budget())
        .unwrap()
}

pub(crate) fn node(tree: &RawTree, what: impl Fn(&RawNode) -> bool) -> &RawNode {
    tree.nodes.iter().find(|node| what(node)).unwrap()
}

pub(crate) fn titled<'t>(tree: &'t RawTree, title: &str) -> &'t RawNode {
    node(tree, |node| {
        node.title
            .as_ref()
            .is_some_and(|text| text.as_str() == title)
    })
}

pub(crate) fn read_one(desktop: &LinuxDesktop, node: &RawNode) -> Option<RawNode> {
    desktop
        .read_nodes(std::slice::from_ref(&node.node_ref), &soon())
        .unwrap()
        .remove(0)
}
