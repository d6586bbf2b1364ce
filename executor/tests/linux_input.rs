//! Pointer and keyboard input for everybody, and what lies between two requests: real programs on a private desktop.
//!
//! Input for one window is measured by `matrix`, toolkit by toolkit. Here it is the way that moves the pointer and brings
//! windows forward: that it arrives, that everything is put back, that nothing stays down, and that it is told from a person.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of a test fail the test")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use maka_cu::backend::Backend;
use maka_cu::backend::desktop::WindowInfo;
use maka_cu::backend::input::{Gesture, InputRoute, KeyCommand, PointCommand, Reach};
use maka_cu::backend::launch::LaunchProgress;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::{PerformError, Performed};
use maka_cu::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use maka_cu::deadline::Deadline;
use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::keys::{Key, Printable};
use maka_cu_protocol::sets::{Direction, Modifier, MouseButton, Path as Via};
use maka_desktop::{Desktop, DesktopOptions};
use tokio_util::sync::CancellationToken;
use x11rb::connection::{Connection as _, RequestConnection as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

/// Set in the inner run.
const INSIDE: &str = "MAKA_TEST_INPUT_DIR";
const APPLICATIONS: &str = "MAKA_TEST_APPLICATIONS";
/// A failure to appear by then is a failure; nothing here takes longer than a few seconds.
const PATIENCE: Duration = Duration::from_secs(40);

/// Runs `scenario` in a private desktop: outside it starts one and runs the test of this name again.
fn inside(test: &str, scenario: fn()) {
    if env::var_os(INSIDE).is_some() {
        return scenario();
    }
    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
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

fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(20))
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
    fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.unwrap())
    }

    /// A form as a person starts it, so without what makes GTK 3 hear more.
    fn form(name: &str) -> Self {
        Self::start(
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

fn form_path(name: &str) -> PathBuf {
    fixtures().join("forms").join(name).with_extension("py")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures")
        .canonicalize()
        .unwrap()
}

/// What is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Surroundings {
    pointer: (i16, i16),
    active: u32,
    top: u32,
    focus: u32,
}

/// A connection that only looks, but for one test.
struct Observer {
    connection: RustConnection,
    root: u32,
}

impl Observer {
    fn connect() -> Self {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let root = connection.setup().roots[screen].root;
        Self { connection, root }
    }

    fn windows(&self, name: &str) -> Vec<u32> {
        let connection = &self.connection;
        let atom = connection.intern_atom(false, name.as_bytes()).unwrap();
        let atom = atom.reply().unwrap().atom;
        let property = connection.get_property(false, self.root, atom, AtomEnum::WINDOW, 0, 1000);
        let property = property.unwrap().reply().unwrap();
        property.value32().into_iter().flatten().collect()
    }

    fn look(&self) -> Surroundings {
        let pointer = self.connection.query_pointer(self.root).unwrap();
        let pointer = pointer.reply().unwrap();
        let first = |windows: Vec<u32>| windows.first().copied().unwrap_or(0);
        let last = |windows: Vec<u32>| windows.last().copied().unwrap_or(0);
        Surroundings {
            pointer: (pointer.root_x, pointer.root_y),
            active: first(self.windows("_NET_ACTIVE_WINDOW")),
            top: last(self.windows("_NET_CLIENT_LIST_STACKING")),
            focus: self.focused_client(),
        }
    }

    /// The client window that has the keyboard. A GTK program gives it on to a child of its window, in its own time after
    /// the window manager gave it to the window: that is the program's business, and no difference.
    fn focused_client(&self) -> u32 {
        let clients = self.windows("_NET_CLIENT_LIST");
        let focus = self.connection.get_input_focus().unwrap().reply().unwrap();
        let mut window = focus.focus;
        // The root's children are nobody's: 0 and 1 are "none" and "pointer root".
        while window > 1 && !clients.contains(&window) {
            let Ok(tree) = self.connection.query_tree(window).unwrap().reply() else {
                return focus.focus;
            };
            window = tree.parent;
        }
        if window > 1 { window } else { focus.focus }
    }

    /// Modifiers and buttons that are down, and whether any key is.
    fn held(&self) -> (u16, bool) {
        let pointer = self.connection.query_pointer(self.root).unwrap();
        let keys = self
            .connection
            .query_keymap()
            .unwrap()
            .reply()
            .unwrap()
            .keys;
        let any_key = keys.iter().any(|byte| *byte != 0);
        (pointer.reply().unwrap().mask.into(), any_key)
    }
}

/// Nothing is down.
const NOTHING: (u16, bool) = (0, false);
/// The left button, in a state.
const LEFT_BUTTON: u16 = 0x100;

/// A program in the background of a window that somebody works in.
struct Rig {
    desktop: LinuxDesktop,
    observer: Observer,
    window: WindowKey,
    root: NodeRef,
    programs: Vec<Program>,
}

impl Rig {
    fn form(name: &str) -> Self {
        Self::new(vec![Program::form(name)], &format!("Form {name}"))
    }

    fn new(mut programs: Vec<Program>, title: &str) -> Self {
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, title).key;
        programs.push(Program::form("bystander"));
        let busy = window_of(&desktop, "Bystander").key.window_id;
        let observer = Observer::connect();
        eventually("the other window is worked in", || {
            let now = observer.look();
            (now.active == busy && now.top == busy && now.focus == busy).then_some(())
        });
        let mut rig = Self::over(desktop, observer, window);
        rig.programs = programs;
        rig
    }

    /// Over programs that the test has started.
    fn over(desktop: LinuxDesktop, observer: Observer, window: WindowKey) -> Self {
        let root = eventually("the window's accessible", || {
            desktop.window_root(window, &soon()).unwrap()
        });
        Self {
            desktop,
            observer,
            window,
            root,
            programs: Vec::new(),
        }
    }

    /// Read from the window on: a program may join the accessibility bus after its window is there.
    fn tree(&self) -> RawTree {
        let root = eventually("the window's accessible", || {
            // A program that is busy may not answer in time; it is asked again.
            self.desktop
                .window_root(self.window, &soon())
                .ok()
                .flatten()
        });
        let budget = WalkBudget {
            max_elements: 1500,
            max_depth: 64,
            deadline: soon(),
        };
        let walked = self.desktop.walk(&root, &WalkScope::Everything, &budget);
        walked.unwrap()
    }

    fn named(&self, name: &str) -> RawNode {
        eventually(name, || {
            let is_named = |node: &RawNode| {
                let title = node.title.as_ref().map(|title| title.as_str());
                title == Some(name) && node.frame.is_some()
            };
            self.tree().nodes.into_iter().find(is_named)
        })
    }

    fn middle(&self, name: &str) -> WindowPoint {
        let frame = self.named(name).frame.unwrap();
        let (x, y) = (
            frame.x() + frame.width() / 2.0,
            frame.y() + frame.height() / 2.0,
        );
        WindowPoint::try_new(x, y).unwrap()
    }

    fn reach(&self, gesture: Gesture, at: WindowPoint) -> Reach {
        let command = PointCommand { gesture, at };
        let reach = self.desktop.point_reach(self.window, &command, &soon());
        reach.unwrap()
    }

    fn point(&self, gesture: Gesture, at: WindowPoint, route: InputRoute) {
        let command = PointCommand { gesture, at };
        let done = self.desktop.point(self.window, &command, route, &soon());
        assert_eq!(done, Ok(Performed::by(route.path())), "{gesture:?}");
    }

    fn keys(&self, node: &NodeRef, command: &KeyCommand, route: InputRoute) {
        let done = self.desktop.keys(node, command, route, &soon());
        assert_eq!(done, Ok(Performed::by(route.path())), "{command:?}");
    }

    /// Waits for an event that the form has shown last, or before last.
    fn shows(&self, event: &str) {
        eventually(event, || {
            let tree = self.tree();
            let titles = tree.nodes.iter().filter_map(|node| node.title.as_ref());
            let log = titles
                .filter_map(|title| title.as_str().strip_prefix("log "))
                .next()?;
            log.split([':', '|'])
                .any(|shown| shown.trim() == event)
                .then_some(())
        });
    }
}

fn window_of(desktop: &LinuxDesktop, title: &str) -> WindowInfo {
    eventually(title, || {
        let windows = desktop.windows(&soon()).unwrap();
        windows.into_iter().find(|window| {
            let found = window.title.as_ref().map(|title| title.as_str());
            found == Some(title) && window.on_screen
        })
    })
}

fn home() -> PathBuf {
    PathBuf::from(env::var_os(INSIDE).unwrap())
}

const CLICK: Gesture = Gesture::Click {
    button: MouseButton::Left,
    count: 1,
};

fn wheel(direction: Direction) -> Gesture {
    Gesture::Scroll {
        direction,
        pages: Pages::new(0.2).unwrap(),
    }
}

fn typed(text: &str) -> KeyCommand {
    KeyCommand::Type(text.into())
}

fn chord(key: char, modifiers: &[Modifier]) -> KeyCommand {
    KeyCommand::Chord {
        key: Key::Printable(Printable::new(key).unwrap()),
        modifiers: modifiers.iter().copied().collect(),
    }
}

/// Field report C1: what cannot reach the window alone says so, and by the way for everybody all is as before afterwards.
#[test]
fn what_hears_nothing_is_reached_by_the_devices_and_all_is_put_back() {
    let name = "what_hears_nothing_is_reached_by_the_devices_and_all_is_put_back";
    inside(name, || {
        for form in ["gtk4", "gtk3"] {
            let rig = Rig::form(form);
            let before = rig.observer.look();
            let pad = rig.middle("Pad");
            assert_eq!(rig.reach(CLICK, pad), Reach::GlobalOnly, "{form}");
            rig.point(CLICK, pad, InputRoute::Global);
            rig.shows("pad release 1");
            rig.point(wheel(Direction::Down), pad, InputRoute::Global);
            rig.shows("pad wheel down");
            let from = WindowPoint::try_new(pad.x() - 60.0, pad.y()).unwrap();
            rig.point(Gesture::Drag { from }, pad, InputRoute::Global);
            rig.shows("pad drag");
            assert_eq!(rig.observer.look(), before, "{form}");
            assert_eq!(rig.observer.held(), NOTHING, "{form}");

            let entry = rig.named("Entry");
            let text = typed("Q@é".trim_end_matches('é'));
            let reach = rig.desktop.key_reach(&entry.node_ref, &text, &soon());
            assert_eq!(reach, Ok(Reach::GlobalOnly), "{form}");
            if form == "gtk3" {
                let focused = rig
                    .desktop
                    .focus(&entry.node_ref, InputRoute::Global, &soon());
                assert_eq!(focused, Ok(true));
            } else {
                rig.point(CLICK, rig.middle("Entry"), InputRoute::Global);
            }
            rig.keys(
                &entry.node_ref,
                &chord('a', &[Modifier::Control]),
                InputRoute::Global,
            );
            rig.keys(&entry.node_ref, &text, InputRoute::Global);
            rig.shows("entry Q@");
            assert_eq!(rig.observer.look(), before, "{form}");
            assert_eq!(rig.observer.held(), NOTHING, "{form}");
        }
    });
}

/// The honest negative: a program of no toolkit. Field report E5: lines arrive in order.
#[test]
fn a_terminal_is_typed_into_by_the_keyboard_only() {
    inside("a_terminal_is_typed_into_by_the_keyboard_only", || {
        let written = home().join("written.txt");
        let script = format!("cat > {}; echo done >> {0}", written.display());
        let terminal = Program::start(
            Command::new("xterm").args(["-T", "Terminal", "-e", "sh", "-c", &script]),
        );
        let rig = Rig::new(vec![terminal], "Terminal");
        let before = rig.observer.look();
        let inside = WindowPoint::try_new(20.0, 20.0).unwrap();
        assert_eq!(rig.reach(CLICK, inside), Reach::GlobalOnly);
        let lines = typed("Echo `this` \"twice\"\r\n\ttab & $HOME\nlast\r");
        let reach = rig.desktop.key_reach(&rig.root, &lines, &soon());
        assert_eq!(reach, Ok(Reach::GlobalOnly));
        // It has no element to focus; its window is what gets the keys.
        let focused = |route| rig.desktop.focus(&rig.root, route, &soon());
        assert_eq!(focused(InputRoute::Window), Ok(false));
        assert_eq!(focused(InputRoute::Global), Ok(true));
        rig.keys(&rig.root, &lines, InputRoute::Global);
        rig.keys(
            &rig.root,
            &chord('d', &[Modifier::Control]),
            InputRoute::Global,
        );
        let text = eventually("the program has ended", || {
            let text = fs::read_to_string(&written).ok()?;
            text.ends_with("done\n").then_some(text)
        });
        assert_eq!(text, "Echo `this` \"twice\"\n\ttab & $HOME\nlast\ndone\n");
        assert_eq!(rig.observer.look(), before);
        assert_eq!(rig.observer.held(), NOTHING);
    });
}

/// Field reports D1 and D4: a gesture that is given up while the button is down lets go of it and is told as unknown.
#[test]
fn a_cancelled_drag_lets_go_of_the_button() {
    inside("a_cancelled_drag_lets_go_of_the_button", || {
        let rig = Rig::form("qt5");
        let before = rig.observer.look();
        let to = rig.middle("Pad");
        let from = WindowPoint::try_new(to.x() - 60.0, to.y()).unwrap();
        let command = PointCommand {
            gesture: Gesture::Drag { from },
            at: to,
        };
        for route in [InputRoute::Window, InputRoute::Global] {
            let cancel = CancellationToken::new();
            let deadline = Deadline::cancellable(Duration::from_secs(20), cancel.clone());
            let done = std::thread::scope(|scope| {
                let drag =
                    scope.spawn(|| rig.desktop.point(rig.window, &command, route, &deadline));
                // The first step of the drag itself.
                rig.shows("pad press 1");
                cancel.cancel();
                drag.join().unwrap()
            });
            rig.shows("pad release 1");
            if done.is_ok() {
                // It was through before this thread had seen the press: nothing was cancelled, and nothing is to be said.
                continue;
            }
            assert_eq!(done, Err(PerformError::Unknown { path: route.path() }));
            assert_eq!(rig.observer.held(), NOTHING, "{route:?}");
            assert_eq!(rig.observer.look(), before, "{route:?}");
        }
    });
}

/// Field reports D2 and D4: a real button is let go of although the window that it was pressed in is gone.
#[test]
fn a_held_button_outlives_its_window_and_is_released() {
    inside("a_held_button_outlives_its_window_and_is_released", || {
        let mut rig = Rig::form("qt5");
        let pad = rig.middle("Pad");
        rig.point(Gesture::Press, pad, InputRoute::Global);
        assert_eq!(rig.observer.held().0, LEFT_BUTTON);
        rig.programs.clear();
        let gone = rig.window;
        eventually("the window is gone", || {
            let windows = rig.desktop.windows(&soon()).unwrap();
            let there = windows.iter().any(|window| window.key == gone);
            (!there).then_some(())
        });
        rig.point(Gesture::Release, pad, InputRoute::Global);
        assert_eq!(rig.observer.held(), NOTHING);
    });
}

/// Spec §3.8: a drag that starts beside its window takes the real pointer, and works.
#[test]
fn a_drag_may_begin_beside_its_window() {
    inside("a_drag_may_begin_beside_its_window", || {
        let rig = Rig::form("qt5");
        let before = rig.observer.look();
        let pad = rig.middle("Pad");
        let from = WindowPoint::try_new(-4.0, pad.y()).unwrap();
        rig.point(Gesture::Drag { from }, pad, InputRoute::Global);
        assert_eq!(rig.observer.held(), NOTHING);
        assert_eq!(rig.observer.look(), before);
    });
}

/// Field report D2: a button that a request left down goes up with the back end, if nobody released it before.
#[test]
fn a_held_button_goes_up_in_the_end() {
    inside("a_held_button_goes_up_in_the_end", || {
        let rig = Rig::form("qt6");
        let before = rig.observer.look();
        let (pad, push) = (rig.middle("Pad"), rig.middle("Push"));

        // Pressed, moved and released in three requests: a drag. Only then are pointer and active window put back.
        rig.point(Gesture::Press, pad, InputRoute::Global);
        assert_eq!(rig.observer.held().0, LEFT_BUTTON);
        let near = WindowPoint::try_new(pad.x() + 20.0, pad.y()).unwrap();
        rig.point(Gesture::Move, near, InputRoute::Global);
        rig.shows("pad drag");
        assert_eq!(rig.reach(Gesture::Release, near), Reach::GlobalOnly);
        // Nothing else is done with the pointer meanwhile.
        let command = PointCommand {
            gesture: CLICK,
            at: push,
        };
        let done = rig
            .desktop
            .point(rig.window, &command, InputRoute::Global, &soon());
        assert_eq!(
            done,
            Err(PerformError::Refused {
                path: Via::CgEventGlobal
            })
        );
        rig.point(Gesture::Release, near, InputRoute::Global);
        rig.shows("pad release 1");
        assert_eq!(rig.observer.held(), NOTHING);
        assert_eq!(rig.observer.look(), before);

        // Left down: another executor sees that it is, and how it can be released.
        rig.point(Gesture::Press, pad, InputRoute::Global);
        let other = LinuxDesktop::open().unwrap();
        let command = PointCommand {
            gesture: Gesture::Release,
            at: pad,
        };
        let reach = other.point_reach(rig.window, &command, &soon());
        assert_eq!(reach, Ok(Reach::GlobalOnly));
        drop(rig.desktop);
        assert_eq!(rig.observer.held(), NOTHING);
        let reach = other.point_reach(rig.window, &command, &soon());
        assert_eq!(reach, Ok(Reach::Window));
    });
}

/// A person's input counts, ours does not; and what cannot be known is no "no".
#[test]
fn a_person_is_told_from_a_program() {
    inside("a_person_is_told_from_a_program", || {
        let rig = Rig::form("qt5");
        eventually("nobody has used this display for a while", || {
            (!rig.desktop.user_active(&soon()).unwrap()).then_some(())
        });
        let pad = rig.middle("Pad");
        for route in [InputRoute::Window, InputRoute::Global] {
            rig.point(CLICK, pad, route);
            assert_eq!(rig.desktop.user_active(&soon()), Ok(false), "{route:?}");
        }
        let pad = rig.named("Pad").node_ref;
        rig.keys(&pad, &typed("x"), InputRoute::Global);
        assert_eq!(rig.desktop.user_active(&soon()), Ok(false));

        // A button of the server's own mouse, which stands for a person's: XTEST can name a device.
        let connection = &rig.observer.connection;
        let input = connection
            .extension_information("XInputExtension")
            .unwrap()
            .unwrap();
        let mouse = device_named(connection, "Xvfb mouse");
        for kind in [DEVICE_BUTTON_PRESS, DEVICE_BUTTON_RELEASE] {
            let kind = input.first_event + kind;
            let sent = connection.xtest_fake_input(kind, 2, 0, rig.observer.root, 0, 0, mouse);
            sent.unwrap().check().unwrap();
        }
        assert_eq!(rig.desktop.user_active(&soon()), Ok(true));
        eventually("it is over", || {
            (!rig.desktop.user_active(&soon()).unwrap()).then_some(())
        });
    });
}

/// `DeviceButtonPress` and `DeviceButtonRelease` of the input extension, from its first event on.
const DEVICE_BUTTON_PRESS: u8 = 3;
const DEVICE_BUTTON_RELEASE: u8 = 4;

fn device_named(connection: &RustConnection, name: &str) -> u8 {
    use x11rb::protocol::xinput::{ConnectionExt as _, Device};
    let version = connection.xinput_xi_query_version(2, 0).unwrap();
    version.reply().unwrap();
    let devices = connection.xinput_xi_query_device(Device::ALL).unwrap();
    let devices = devices.reply().unwrap().infos;
    let device = devices.iter().find(|device| device.name == name.as_bytes());
    u8::try_from(device.unwrap().deviceid).unwrap()
}

/// Field reports E1 and E2: what the layout has is typed right, also by its third level; what it has not is not begun.
#[test]
fn text_is_typed_on_the_layout_as_it_is() {
    inside("text_is_typed_on_the_layout_as_it_is", || {
        let set = Command::new("setxkbmap").arg("de").status().unwrap();
        assert!(set.success());
        let rig = Rig::form("qt6");
        let entry = rig.named("Entry").node_ref;
        for (route, text) in [
            (InputRoute::Window, "Zyß@€ÄÖü{|~"),
            (InputRoute::Global, "zY§Ü°µ\\"),
        ] {
            let focused = rig.desktop.focus(&entry, route, &soon());
            assert_eq!(focused, Ok(true), "{route:?}");
            rig.keys(&entry, &chord('a', &[Modifier::Control]), route);
            if route == InputRoute::Global {
                // The chord has put the window back.
                assert_eq!(rig.desktop.focus(&entry, route, &soon()), Ok(true));
            }
            rig.keys(&entry, &typed(text), route);
            eventually("the text", || {
                let nodes = rig
                    .desktop
                    .read_nodes(std::slice::from_ref(&entry), &soon());
                let value = nodes.unwrap().remove(0).unwrap().value;
                (value.unwrap().as_str() == text).then_some(())
            });
        }
        let before = rig.named("Entry").value;
        for text in ["aé", "a漢", "👨\u{200d}👩", "a\u{301}", "\u{1b}"] {
            let reach = rig.desktop.key_reach(&entry, &typed(text), &soon());
            assert_eq!(reach, Ok(Reach::Never), "{text:?}");
            let done = rig
                .desktop
                .keys(&entry, &typed(text), InputRoute::Window, &soon());
            assert_eq!(
                done,
                Err(PerformError::Refused {
                    path: Via::CgEventPid
                }),
                "{text:?}"
            );
        }
        assert_eq!(rig.named("Entry").value, before);
        assert_eq!(rig.observer.held(), NOTHING);
        let function = chord('a', &[Modifier::Fn]);
        assert_eq!(
            rig.desktop.key_reach(&entry, &function, &soon()),
            Ok(Reach::Never)
        );
    });
}

/// What the executor launches can be reached where the same program, started by a person, cannot.
#[test]
fn a_launched_gtk3_program_is_reached_in_the_background() {
    inside(
        "a_launched_gtk3_program_is_reached_in_the_background",
        || {
            let applications = PathBuf::from(env::var_os(APPLICATIONS).unwrap());
            let entry = format!(
                "[Desktop Entry]\nType=Application\nName=The form\nExec=/usr/bin/python3 -B {}\n",
                form_path("gtk3").display()
            );
            fs::write(applications.join("org.example.Form.desktop"), entry).unwrap();
            let desktop = LinuxDesktop::open().unwrap();
            let ticket = desktop.launch("The form", &soon()).unwrap();
            eventually("a window of the launched program", || {
                match desktop.launch_progress(&ticket, &soon()).unwrap() {
                    LaunchProgress::Running { windows, .. } => windows.into_iter().next(),
                    LaunchProgress::Starting => None,
                    LaunchProgress::Exited => panic!("it ended"),
                }
            });
            let rig = Rig::new(Vec::new(), "Form gtk3");
            let before = rig.observer.look();
            let push = rig.middle("Push");
            assert_eq!(rig.reach(CLICK, push), Reach::Window);
            rig.point(CLICK, push, InputRoute::Window);
            rig.shows("click button");
            assert_eq!(rig.observer.look(), before);
        },
    );
}

/// Chromium rests while nothing of its window can be seen, and would take a click later, when nobody expects it any more. A
/// window that was observed is never told that it is hidden, since its pixels are kept.
#[test]
fn hidden_chromium_takes_clicks_once_it_was_observed() {
    inside("hidden_chromium_takes_clicks_once_it_was_observed", || {
        // Chromium looks once, when it starts, whether anybody reads.
        let enabled = Command::new("dbus-send")
            .args([
                "--session",
                "--print-reply",
                "--dest=org.a11y.Bus",
                "/org/a11y/bus",
            ])
            .args([
                "org.freedesktop.DBus.Properties.Set",
                "string:org.a11y.Status",
            ])
            .args(["string:IsEnabled", "variant:boolean:true"])
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(enabled.success());
        let page = fixtures().join("forms/form.html");
        let _page = Program::start(
            Command::new("chromium")
                .args(["--no-sandbox", "--disable-gpu", "--no-first-run"])
                .arg("--disable-dev-shm-usage")
                .args(["--password-store=basic", "--force-renderer-accessibility"])
                .args(["--window-size=500,760", "--window-position=20,20"])
                .arg(format!(
                    "--user-data-dir={}",
                    home().join("profile").display()
                ))
                .arg(format!("--app=file://{}", page.display())),
        );
        let desktop = LinuxDesktop::open().unwrap();
        // Only listed, not observed.
        let key = window_of(&desktop, "Form chromium").key;
        let _cover =
            Program::start(Command::new("/usr/bin/python3").arg(fixtures().join("gtk/cover.py")));
        let cover = window_of(&desktop, "Cover").key.window_id;
        let observer = Observer::connect();
        eventually("it is covered", || {
            let now = observer.look();
            (now.active == cover && now.top == cover && now.focus == cover).then_some(())
        });
        let middle = WindowPoint::try_new(250.0, 300.0).unwrap();
        let command = PointCommand {
            gesture: CLICK,
            at: middle,
        };
        eventually("the page is on the bus, and hidden", || {
            let reach = desktop.point_reach(key, &command, &soon()).unwrap();
            (reach == Reach::GlobalOnly).then_some(())
        });
        let rig = Rig::over(desktop, observer, key);
        let before = rig.observer.look();
        let pad = rig.middle("Pad");
        assert_eq!(rig.reach(CLICK, pad), Reach::Window);
        rig.point(CLICK, pad, InputRoute::Window);
        rig.shows("pad release 1");
        assert_eq!(rig.observer.look(), before);
    });
}
