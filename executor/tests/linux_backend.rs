//! The X11 back end on a real desktop with real GTK 3 programs.
//!
//! The back end takes the desktop of its environment, as the executor does, so each test starts a private desktop and
//! runs itself again inside it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of a test fail the test")]

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use maka_cu::backend::Backend;
use maka_cu::backend::bitmap::Bitmap;
use maka_cu::backend::desktop::{PermissionPrompt, WindowInfo};
use maka_cu::backend::error::BackendError;
use maka_cu::backend::launch::LaunchProgress;
use maka_cu::backend::linux::{LinuxDesktop, diagnose};
use maka_cu::backend::perform::{ElementCommand, PerformError};
use maka_cu::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use maka_cu::deadline::Deadline;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::sets::{ElementVerb, Path, ScreenRecordingProbe};
use maka_cu_protocol::text::AppText;
use maka_desktop::{Desktop, DesktopOptions};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt as _, PropMode, StackMode,
};
use x11rb::wrapper::ConnectionExt as _;

/// Set in the inner run: the folder for desktop entries of the private desktop.
const INSIDE: &str = "MAKA_TEST_APPLICATIONS";
/// A failure to appear by then is a failure; nothing here takes longer than a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `scenario` in a private desktop: outside it starts one and runs the test of this name again.
fn inside(test: &str, scenario: fn()) {
    inside_of(DesktopOptions::default(), test, scenario);
}

fn inside_of(options: DesktopOptions, test: &str, scenario: fn()) {
    if env::var_os(INSIDE).is_some() {
        return scenario();
    }
    let desktop = Desktop::start(options).unwrap();
    let output = desktop
        .command(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, desktop.applications_dir())
        .output()
        .unwrap();
    desktop.stop();
    let text = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&text)
    );
    assert!(
        String::from_utf8_lossy(&text).contains("1 passed"),
        "no test is called {test}"
    );
}

fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(30))
}

fn budget() -> WalkBudget {
    WalkBudget {
        max_elements: 1500,
        max_depth: 64,
        deadline: soon(),
    }
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
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

impl Program {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
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

fn root_of(desktop: &LinuxDesktop, key: WindowKey) -> NodeRef {
    eventually("the window's accessible", || {
        // A program that is busy may not answer in time; it is asked again.
        desktop.window_root(key, &soon()).ok().flatten()
    })
}

fn tree_of(desktop: &LinuxDesktop, key: WindowKey) -> RawTree {
    desktop
        .walk(&root_of(desktop, key), &WalkScope::Everything, &budget())
        .unwrap()
}

fn node(tree: &RawTree, what: impl Fn(&RawNode) -> bool) -> &RawNode {
    tree.nodes.iter().find(|node| what(node)).unwrap()
}

fn titled<'t>(tree: &'t RawTree, title: &str) -> &'t RawNode {
    node(tree, |node| {
        node.title
            .as_ref()
            .is_some_and(|text| text.as_str() == title)
    })
}

fn read_one(desktop: &LinuxDesktop, node: &RawNode) -> Option<RawNode> {
    desktop
        .read_nodes(std::slice::from_ref(&node.node_ref), &soon())
        .unwrap()
        .remove(0)
}

/// What a digest is made of, so that two readings can be compared.
fn identity(node: &RawNode) -> impl PartialEq + std::fmt::Debug + use<> {
    let text = |text: &Option<AppText>| text.as_ref().map(|text| text.as_str().to_owned());
    (
        (
            format!("{:?}", node.role),
            format!("{:?}", node.subrole),
            text(&node.ax_identifier),
        ),
        (text(&node.title), text(&node.label), text(&node.value)),
        (
            node.frame
                .map(|frame| frame.rounded().map(|side| side as i64)),
            node.actions.clone(),
        ),
        (format!("{:?}", node.ancestor_roles), node.sibling_index),
    )
}

#[test]
fn a_real_dialog_is_launched_filled_in_and_confirmed() {
    inside("a_real_dialog_is_launched_filled_in_and_confirmed", || {
        let applications = PathBuf::from(env::var_os(INSIDE).unwrap());
        let answer = applications.join("answer.txt");
        let entry = format!(
            "[Desktop Entry]\nType=Application\nName=Ask for a name\n\
             Exec=sh -c \"zenity --entry --title=Ask --text=Name > {}\"\n",
            answer.display()
        );
        fs::write(applications.join("org.example.Ask.desktop"), entry).unwrap();
        let _active = Program::start("zenity", &["--info", "--title=Active", "--text=busy"]);
        let desktop = LinuxDesktop::open().unwrap();
        let active = window_of(&desktop, "Active").key.pid;
        eventually("a window is active", || {
            (desktop.frontmost_pid(&soon()).unwrap() == Some(active)).then_some(())
        });
        let ticket = desktop.launch("Ask for a name", &soon()).unwrap();
        let (app, window) = eventually("a window of the launched program", || {
            match desktop.launch_progress(&ticket, &soon()).unwrap() {
                LaunchProgress::Running { app, windows } => {
                    windows.into_iter().next().map(|window| (app, window))
                }
                LaunchProgress::Starting => None,
                LaunchProgress::Exited => panic!("it ended"),
            }
        });
        assert_eq!(app.app_id.as_str(), "org.example.Ask");
        assert_eq!(window.app_id, app.app_id);
        // openbox gives a new window the focus whenever nobody is typing; what counts is that this is told, live.
        let front = desktop.frontmost_pid(&soon()).unwrap();
        assert!(front == Some(active) || front == Some(app.pid), "{front:?}");
        let listed = desktop.applications(&soon()).unwrap();
        assert!(listed.contains(&app), "{listed:?}");

        let tree = tree_of(&desktop, window.key);
        assert!(!tree.truncated_elements && !tree.truncated_depth);
        let entry = node(&tree, |node| node.value_settable);
        assert_eq!(entry.value.as_ref().unwrap().as_str(), "");
        let text = "Grüße 漢字 😀 \"quoted\"";
        let done = desktop
            .perform(
                &entry.node_ref,
                &ElementCommand::SetValue(text.into()),
                &soon(),
            )
            .unwrap();
        assert_eq!(done.path, Path::AxAttribute);
        assert_eq!(
            read_one(&desktop, entry).unwrap().value.unwrap().as_str(),
            text
        );

        let ok = titled(&tree, "OK");
        assert!(ok.enabled && ok.actions.contains(&ElementVerb::Press) && ok.frame.is_some());
        let done = desktop.perform(
            &ok.node_ref,
            &ElementCommand::Perform(ElementVerb::Press),
            &soon(),
        );
        assert_eq!(done.unwrap().path, Path::AxAction);
        eventually("the program has ended", || {
            matches!(
                desktop.launch_progress(&ticket, &soon()).unwrap(),
                LaunchProgress::Exited
            )
            .then_some(())
        });
        assert_eq!(fs::read_to_string(&answer).unwrap(), format!("{text}\n"));

        // What is gone is told as gone.
        assert!(read_one(&desktop, ok).is_none());
        let again = desktop.perform(
            &ok.node_ref,
            &ElementCommand::Perform(ElementVerb::Press),
            &soon(),
        );
        assert_eq!(again, Err(PerformError::NotActionable));
        assert_eq!(
            desktop.window_root(window.key, &soon()).unwrap_err(),
            BackendError::WindowGone
        );
        assert_eq!(desktop.process_start(window.key.pid), None);
    });
}

#[test]
fn nodes_read_again_are_what_the_walk_said() {
    inside("nodes_read_again_are_what_the_walk_said", || {
        let _program = Program::start(
            "zenity",
            &[
                "--forms",
                "--title=Form",
                "--add-entry=First",
                "--add-password=Second",
                "--add-calendar=Third",
            ],
        );
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Form");
        let tree = tree_of(&desktop, window.key);
        assert!(tree.nodes.len() > 10, "{} nodes", tree.nodes.len());
        for round in ["all at once", "again"] {
            let references: Vec<NodeRef> = tree
                .nodes
                .iter()
                .map(|node| node.node_ref.clone())
                .collect();
            let read = desktop.read_nodes(&references, &soon()).unwrap();
            for (walked, read) in tree.nodes.iter().zip(read) {
                assert_eq!(identity(walked), identity(&read.unwrap()), "{round}");
            }
        }
        for walked in &tree.nodes {
            assert_eq!(
                identity(walked),
                identity(&read_one(&desktop, walked).unwrap()),
                "one by one"
            );
        }
        // A second walk, for which the application's own list is filled, says the same.
        let second = tree_of(&desktop, window.key);
        let identities = |tree: &RawTree| tree.nodes.iter().map(identity).collect::<Vec<_>>();
        assert_eq!(identities(&tree), identities(&second));

        // The characters of a password are never read, also not what we wrote ourselves.
        let secret = node(&tree, |node| node.secure);
        assert!(secret.value_settable && secret.value.is_none());
        desktop
            .perform(
                &secret.node_ref,
                &ElementCommand::SetValue("hunter2".into()),
                &soon(),
            )
            .unwrap();
        assert!(read_one(&desktop, secret).unwrap().value.is_none());

        // Order, links and frames.
        assert!(tree.nodes[0].parent.is_none() && tree.nodes[0].depth == 0);
        let whole = tree.nodes[0].frame.unwrap();
        assert_eq!(
            (whole.width(), whole.height()),
            (window.bounds.width(), window.bounds.height())
        );
        for (index, node) in tree.nodes.iter().enumerate().skip(1) {
            let parent = node.parent.unwrap();
            assert!(parent < index);
            assert_eq!(node.depth, tree.nodes[parent].depth + 1);
        }
    });
}

#[test]
fn budgets_cut_and_say_so() {
    inside("budgets_cut_and_say_so", || {
        let _program = Program::start("zenity", &["--calendar", "--title=Day"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Day");
        let root = root_of(&desktop, window.key);
        let walk = |max_elements, max_depth, within| {
            let budget = WalkBudget {
                max_elements,
                max_depth,
                deadline: Deadline::within(within),
            };
            desktop
                .walk(&root, &WalkScope::Everything, &budget)
                .unwrap()
        };
        let few = walk(3, 64, PATIENCE);
        assert_eq!(
            (few.nodes.len(), few.truncated_elements, few.truncated_depth),
            (3, true, false)
        );
        let flat = walk(1500, 2, PATIENCE);
        assert!(flat.truncated_depth && !flat.truncated_elements);
        assert!(flat.nodes.iter().all(|node| node.depth < 2));
        let spent = walk(1500, 64, Duration::ZERO);
        assert!(!spent.nodes.is_empty());
    });
}

#[test]
fn a_covered_window_is_captured_whole() {
    inside("a_covered_window_is_captured_whole", || {
        let _below = Program::start(
            "zenity",
            &["--question", "--title=Below", "--text=Is it seen?"],
        );
        let desktop = LinuxDesktop::open().unwrap();
        let below = window_of(&desktop, "Below");
        let _above = Program::start(
            "zenity",
            &[
                "--text-info",
                "--title=Above",
                "--width=1200",
                "--height=760",
            ],
        );
        let above = window_of(&desktop, "Above");
        eventually("the second window covers the first", || {
            let windows = desktop.windows(&soon()).unwrap();
            (windows[0].key == above.key && windows[0].on_screen).then_some(())
        });
        // The first capture ever of a window that is covered already: the case that used to be blank.
        let first = desktop.capture_window(below.key, &soon()).unwrap();
        assert_eq!(
            (f64::from(first.width()), f64::from(first.height())),
            (below.bounds.width(), below.bounds.height())
        );
        assert!(colors(&first) > 20, "{} colors", colors(&first));
        // Uncovered, the screen itself shows the same pixels.
        drop(_above);
        eventually("the cover is gone", || {
            desktop
                .windows(&soon())
                .unwrap()
                .iter()
                .all(|window| window.key != above.key)
                .then_some(())
        });
        let displays = desktop.displays(&soon()).unwrap();
        eventually("the uncovered window looks as it was captured", || {
            let screen = desktop
                .capture_display(&displays[0].display_id, &soon())
                .unwrap();
            let now = desktop.capture_window(below.key, &soon()).unwrap();
            let bounds = below.bounds;
            let shown = screen
                .crop(
                    bounds.x() as u32,
                    bounds.y() as u32,
                    bounds.width() as u32,
                    bounds.height() as u32,
                )
                .unwrap();
            // The dialog regains the focus and draws its default button anew, so a few pixels may differ from then.
            (shown == now && difference(&first, &now) < 0.2).then_some(())
        });
    });
}

fn colors(bitmap: &Bitmap) -> usize {
    bitmap
        .pixels()
        .chunks_exact(3)
        .map(<[u8]>::to_vec)
        .collect::<HashSet<_>>()
        .len()
}

fn difference(left: &Bitmap, right: &Bitmap) -> f64 {
    let pairs = left
        .pixels()
        .chunks_exact(3)
        .zip(right.pixels().chunks_exact(3));
    let other = pairs.filter(|(left, right)| left != right).count();
    other as f64 / (f64::from(left.width()) * f64::from(left.height()))
}

#[test]
fn lists_agree_with_each_other() {
    inside("lists_agree_with_each_other", || {
        let _one = Program::start("zenity", &["--info", "--title=One", "--text=one"]);
        let desktop = LinuxDesktop::open().unwrap();
        let one = window_of(&desktop, "One");
        let _two = Program::start("zenity", &["--info", "--title=Two", "--text=two"]);
        let two = window_of(&desktop, "Two");
        let windows = desktop.windows(&soon()).unwrap();
        assert!(
            windows
                .windows(2)
                .all(|pair| pair[0].z_index > pair[1].z_index)
        );
        assert!(
            windows
                .iter()
                .all(|window| window.layer == 0 && window.on_screen)
        );
        // No entry names zenity, so each is known by its number, never by its class.
        assert_eq!(one.app_id.as_str(), format!("pid:{}", one.key.pid));
        assert_ne!(one.app_id, two.app_id);
        let apps = desktop.applications(&soon()).unwrap();
        for window in [&one, &two] {
            assert_eq!(
                apps.iter()
                    .filter(|app| app.app_id == window.app_id)
                    .count(),
                1
            );
        }
        eventually("the newer window is active", || {
            (desktop.frontmost_pid(&soon()).unwrap() == Some(two.key.pid)).then_some(())
        });
        let displays = desktop.displays(&soon()).unwrap();
        assert_eq!(displays.len(), 1);
        assert_eq!(
            (
                displays[0].logical_bounds.width(),
                displays[0].logical_bounds.height()
            ),
            (1280.0, 800.0)
        );
        assert_eq!(one.display_id.as_ref(), Some(&displays[0].display_id));
        let permissions = desktop
            .permissions(PermissionPrompt::Never, &soon())
            .unwrap();
        assert!(permissions.accessibility && permissions.screen_recording);
        assert_eq!(
            permissions.screen_recording_probe,
            ScreenRecordingProbe::CaptureSucceeded
        );
        assert!(!desktop.screen_locked(&soon()).unwrap());
        assert!(
            diagnose().iter().all(|finding| finding.ok),
            "{:?}",
            diagnose()
        );
        // Names of processes that the window list had just told are told no longer once they are gone.
        let start = desktop.process_start(one.key.pid).unwrap();
        assert_eq!(desktop.process_start(one.key.pid), Some(start));
        drop(_one);
        eventually("the window is gone", || {
            desktop
                .windows(&soon())
                .unwrap()
                .iter()
                .all(|window| window.key != one.key)
                .then_some(())
        });
        assert_eq!(desktop.process_start(one.key.pid), None);
        assert_eq!(
            desktop.capture_window(one.key, &soon()).unwrap_err(),
            BackendError::WindowGone
        );
        let stranger = WindowKey {
            pid: std::process::id(),
            window_id: two.key.window_id,
        };
        assert_eq!(
            desktop.window_root(stranger, &soon()).unwrap_err(),
            BackendError::WindowGone
        );
    });
}

#[test]
fn a_launch_says_why_it_cannot() {
    inside("a_launch_says_why_it_cannot", || {
        let applications = PathBuf::from(env::var_os(INSIDE).unwrap());
        let write = |id: &str, lines: &str| {
            let text = format!("[Desktop Entry]\nType=Application\n{lines}\n");
            fs::write(applications.join(format!("{id}.desktop")), text).unwrap();
        };
        write("twin.a", "Name=Twin\nExec=true");
        write("twin.b", "Name=Twin\nExec=true");
        write("absent", "Name=Absent\nExec=no-such-program-anywhere");
        write("org.keepassxc.KeePassXC", "Name=Secrets\nExec=true");
        write("term", "Name=Term\nExec=true\nTerminal=true");
        write("short", "Name=Short\nExec=true");
        let desktop = LinuxDesktop::open().unwrap();
        let rows = [
            ("nothing of that name", BackendError::AppNotFound),
            ("Twin", BackendError::Ambiguous),
            ("Absent", BackendError::AppNotFound),
            ("Secrets", BackendError::Unsupported),
            ("Term", BackendError::Unsupported),
        ];
        for (name, expected) in rows {
            assert_eq!(
                desktop.launch(name, &soon()).unwrap_err(),
                expected,
                "{name}"
            );
        }
        let ticket = desktop.launch("short", &soon()).unwrap();
        eventually("it is known to have ended", || {
            matches!(
                desktop.launch_progress(&ticket, &soon()).unwrap(),
                LaunchProgress::Exited
            )
            .then_some(())
        });
        // An entry written a moment ago counts: the catalog is not of the start.
        write("late", "Name=Late\nExec=true");
        desktop.launch("Late", &soon()).unwrap();
    });
}

#[test]
fn without_a_display_or_a_bus_the_refusal_says_what_to_do() {
    if env::var_os("MAKA_TEST_REFUSAL").is_some() {
        let refusal = LinuxDesktop::open().unwrap_err();
        assert!(refusal.remedy.contains("maka-desktop run --"), "{refusal}");
        assert!(
            diagnose()
                .iter()
                .any(|finding| !finding.ok && finding.remedy.is_some())
        );
        return;
    }
    let desktop = Desktop::start(DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    })
    .unwrap();
    let inner = |change: &dyn Fn(&mut Command)| {
        let mut command = desktop.command(env::current_exe().unwrap());
        command.args([
            "--exact",
            "without_a_display_or_a_bus_the_refusal_says_what_to_do",
        ]);
        change(command.env("MAKA_TEST_REFUSAL", "1"));
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    };
    inner(&|command| {
        command.env_remove("DISPLAY");
    });
    inner(&|command| {
        command.env("DISPLAY", ":65000");
    });
    inner(&|command| {
        command.env("XAUTHORITY", "/dev/null");
    });
}

#[test]
fn a_window_without_a_tree_is_one_node() {
    inside("a_window_without_a_tree_is_one_node", || {
        // A plain X program: it never talks to the accessibility bus.
        let _program = Program::start("xev", &["-name", "Plain", "-geometry", "320x200+50+60"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Plain");
        let tree = tree_of(&desktop, window.key);
        assert_eq!(tree.nodes.len(), 1);
        let root = &tree.nodes[0];
        assert_eq!(root.title.as_ref().unwrap().as_str(), "Plain");
        assert_eq!(root.frame.unwrap().width(), window.bounds.width());
        assert!(root.actions.is_empty() && !root.value_settable);
        assert_eq!(identity(root), identity(&read_one(&desktop, root).unwrap()));
        let press = ElementCommand::Perform(ElementVerb::Press);
        assert_eq!(
            desktop.perform(&root.node_ref, &press, &soon()),
            Err(PerformError::NotActionable)
        );
        assert!(desktop.capture_window(window.key, &soon()).is_ok());
        let root = root_of(&desktop, window.key);
        assert!(desktop.menu_bar(&root, &soon()).unwrap().is_none());
        assert!(desktop.selected_text(&root, &soon()).unwrap().is_none());

        // It is a window all the same. What is listed becomes what was asked for, the manager's frame notwithstanding.
        let listed = |what: &str, is_so: &dyn Fn(&WindowInfo) -> bool| {
            eventually(what, || {
                let windows = desktop.windows(&soon()).unwrap();
                let found = windows.into_iter().find(|it| it.key == window.key).unwrap();
                is_so(&found).then_some(())
            });
        };
        let ask = |command: ElementCommand| {
            let done = desktop.perform(&root, &command, &soon());
            assert_eq!(done.unwrap().path, Path::AxAttribute, "{command:?}");
        };
        let place = ScreenPoint::try_new(-40.0, 321.0).unwrap();
        ask(ElementCommand::MoveWindow(place));
        listed("it was moved", &|it| {
            (it.bounds.x(), it.bounds.y()) == (place.x(), place.y())
                && it.bounds.width() == window.bounds.width()
        });
        let size = ScreenSize::try_new(401.0, 99.0).unwrap();
        ask(ElementCommand::ResizeWindow(size));
        listed("it was resized", &|it| {
            (it.bounds.width(), it.bounds.height()) == (size.width(), size.height())
                && (it.bounds.x(), it.bounds.y()) == (place.x(), place.y())
        });
        ask(ElementCommand::MinimizeWindow);
        listed("it was minimised", &|it| !it.on_screen);
        // C4: it has no pixels, and that is said.
        assert_eq!(
            desktop.capture_window(window.key, &soon()).unwrap_err(),
            BackendError::CaptureFailed
        );
        // Numbers that X cannot express are not made into others.
        let far = ElementCommand::MoveWindow(ScreenPoint::try_new(70_000.0, 0.0).unwrap());
        assert_eq!(
            desktop.perform(&root, &far, &soon()),
            Err(PerformError::NotActionable)
        );
    });
}

/// Without a manager nobody takes the requests, and a window is not moved behind the back of one that may come.
#[test]
fn without_a_window_manager_windows_are_not_arranged() {
    let name = "without_a_window_manager_windows_are_not_arranged";
    let options = DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    };
    inside_of(options, name, || {
        let _program = Program::start("xev", &["-name", "Plain", "-geometry", "320x200+50+60"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Plain");
        let root = root_of(&desktop, window.key);
        let commands = [
            ElementCommand::MoveWindow(ScreenPoint::try_new(5.0, 5.0).unwrap()),
            ElementCommand::ResizeWindow(ScreenSize::try_new(50.0, 50.0).unwrap()),
            ElementCommand::MinimizeWindow,
        ];
        for command in commands {
            let done = desktop.perform(&root, &command, &soon());
            assert_eq!(done, Err(PerformError::NotActionable), "{command:?}");
        }
        assert_eq!(window_of(&desktop, "Plain").bounds, window.bounds);
    });
}

/// xfwm4 tells the stacking order from the second window on; the first is there before.
#[test]
fn windows_are_listed_before_their_order_is_told() {
    let name = "windows_are_listed_before_their_order_is_told";
    let options = DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    };
    inside_of(options, name, || {
        let _one = Program::start("xev", &["-name", "One", "-geometry", "100x100+50+60"]);
        let _two = Program::start("xev", &["-name", "Two", "-geometry", "100x100+90+90"]);
        let desktop = LinuxDesktop::open().unwrap();
        let one = window_of(&desktop, "One").key.window_id;
        let two = window_of(&desktop, "Two").key.window_id;
        let (connection, screen) = x11rb::connect(None).unwrap();
        let root = connection.setup().roots[screen].root;
        let atom = connection.intern_atom(false, b"_NET_CLIENT_LIST").unwrap();
        let atom = atom.reply().unwrap().atom;
        let listed = || -> Vec<u32> {
            let windows = desktop.windows(&soon()).unwrap();
            windows.iter().map(|window| window.key.window_id).collect()
        };
        // What a manager has just begun to manage may be gone already.
        let told = [one, root - 1, two];
        connection
            .change_property32(PropMode::REPLACE, root, atom, AtomEnum::WINDOW, &told)
            .unwrap();
        for (top, expected) in [(one, [one, two]), (two, [two, one])] {
            let raise = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
            let raised = connection.configure_window(top, &raise).unwrap();
            raised.check().unwrap();
            assert_eq!(listed(), expected);
        }
        let told = [two];
        connection
            .change_property32(PropMode::REPLACE, root, atom, AtomEnum::WINDOW, &told)
            .unwrap()
            .check()
            .unwrap();
        assert_eq!(listed(), [two]);
    });
}

/// F1: a stopped program costs its own callers their time limit and nobody else anything.
#[test]
fn a_hung_program_is_given_up_and_others_still_answer() {
    inside("a_hung_program_is_given_up_and_others_still_answer", || {
        let hung = Program::start("zenity", &["--entry", "--title=Hung"]);
        let _well = Program::start("zenity", &["--entry", "--title=Well"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Hung");
        let other = window_of(&desktop, "Well");
        let tree = tree_of(&desktop, window.key);
        let ok = titled(&tree, "OK");
        let signal = |name: &str| {
            let pid = hung.0.id().to_string();
            assert!(
                Command::new("kill")
                    .args([name, &pid])
                    .status()
                    .unwrap()
                    .success()
            );
        };
        signal("-STOP");
        let root = tree.nodes[0].node_ref.clone();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let walked = desktop.walk(&root, &WalkScope::Everything, &budget());
                assert_eq!(walked.unwrap_err(), BackendError::Timeout);
                let read = desktop.read_nodes(std::slice::from_ref(&ok.node_ref), &soon());
                assert_eq!(read.unwrap_err(), BackendError::Timeout);
                let located = desktop.window_root(window.key, &soon());
                assert_eq!(located.unwrap_err(), BackendError::Timeout);
            });
            let mut walks = 0;
            while !waiting.is_finished() {
                assert!(tree_of(&desktop, other.key).nodes.len() > 5);
                walks += 1;
            }
            assert!(walks > 0);
            waiting.join().unwrap();
        });
        signal("-CONT");
        // It was never lost, only silent.
        eventually("it answers again", || read_one(&desktop, ok));
    });
}

#[test]
fn rows_of_a_list_can_be_pressed() {
    inside("rows_of_a_list_can_be_pressed", || {
        let _program = Program::start(
            "zenity",
            &[
                "--list",
                "--title=Pick",
                "--column=Fruit",
                "apple",
                "pear",
                "plum",
                "cherry",
            ],
        );
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Pick");
        let tree = tree_of(&desktop, window.key);
        let pear = titled(&tree, "pear");
        assert!(
            pear.actions.contains(&ElementVerb::Press),
            "{:?}",
            pear.actions
        );
        assert_eq!(pear.selected, Some(false));
    });
}
