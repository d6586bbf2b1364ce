//! A Wayland session with real programs: what works through accessibility alone, and what is refused and how.
//!
//! sway does not run as root. Where these tests do, each makes a copy of what it needs and runs itself again as nobody. A
//! machine without sway says so and passes.
#![expect(
    clippy::print_stdout,
    reason = "what is left out, and the run as nobody, are told"
)]

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use maka_desktop::{Compositor, Desktop, DesktopError, DesktopOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::{Value, json};

use crate::client::Client;
use crate::desk::{self, SESSION};

/// Set in the run as nobody: the folder with the copies.
const COPIES: &str = "MAKA_TEST_COPIES";
/// The user and group nobody.
const NOBODY: u32 = 65534;

/// A Wayland desktop, and where everything is that runs on it.
struct Stage {
    desktop: Desktop,
    executor: PathBuf,
    forms: PathBuf,
}

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Stage {
    /// A bare `maka-cu host`: nothing tells it which back end to take.
    fn client(&self) -> Client {
        let mut client = Client::start_on(self.desktop.command(&self.executor));
        desk::begin(&mut client, SESSION);
        client
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.desktop.command(&self.executor);
        command.args(arguments).output().unwrap()
    }

    /// Takes the compositor to another workspace, where none of the windows are.
    fn leave_the_workspace(&self) {
        let runtime = fs::read_dir(self.desktop.dir().join("run")).unwrap();
        let names = runtime.map(|entry| entry.unwrap().path());
        let is_socket = |path: &PathBuf| path.to_str().unwrap().contains("sway-ipc");
        let socket = names.into_iter().find(is_socket).unwrap();
        let mut command = self.desktop.command("swaymsg");
        command
            .env("SWAYSOCK", socket)
            .args(["-q", "workspace", "elsewhere"]);
        assert!(command.status().unwrap().success());
    }

    fn form(&self, toolkit: &str, backend: &str) -> Program {
        let mut command = self.desktop.command("/usr/bin/python3");
        command
            .arg(self.forms.join(toolkit).with_extension("py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("GDK_BACKEND", backend)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Program(command.spawn().unwrap())
    }
}

fn inside(test: &str, compositor: Compositor, scenario: impl FnOnce(Stage)) {
    let copies = env::var_os(COPIES).map(PathBuf::from);
    if copies.is_none() && geteuid().is_root() {
        return as_nobody(test);
    }
    let options = DesktopOptions {
        compositor: Some(compositor),
        ..DesktopOptions::default()
    };
    let desktop = match Desktop::start(options) {
        Ok(desktop) => desktop,
        Err(error @ DesktopError::MissingPrograms { .. }) => {
            println!("{test} is left out: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let built = PathBuf::from(env!("CARGO_BIN_EXE_maka-cu"));
    scenario(Stage {
        desktop,
        executor: copies
            .as_ref()
            .map_or(built, |folder| folder.join("maka-cu")),
        forms: copies.unwrap_or_else(forms),
    });
}

/// Runs the test of this name again, as a user who may run a compositor and sees nothing of ours but the copies.
fn as_nobody(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), everybody).unwrap();
    let copy = |from: &Path, name: &str| {
        fs::copy(from, folder.path().join(name)).unwrap();
    };
    copy(&env::current_exe().unwrap(), "tests");
    copy(Path::new(env!("CARGO_BIN_EXE_maka-cu")), "maka-cu");
    for script in fs::read_dir(forms()).unwrap() {
        let script = script.unwrap();
        if script.file_type().unwrap().is_file() {
            copy(&script.path(), script.file_name().to_str().unwrap());
        }
    }
    let output = Command::new(folder.path().join("tests"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .current_dir("/")
        .env(COPIES, folder.path())
        .gid(NOBODY)
        .uid(NOBODY)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{text}");
    // What is left out there is left out here.
    for line in text.lines().filter(|line| line.contains("is left out")) {
        println!("{line}");
    }
    assert!(text.contains("1 passed"), "no test is called {test}");
}

fn forms() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/forms")
}

/// The window with this title, as it is listed.
fn listed(client: &mut Client, title: &str) -> Value {
    let mut found = Value::Null;
    client.wait_until(title, |client| {
        let windows = client.ok("window.list", json!({ "session": SESSION }))["windows"].clone();
        let named = |window: &&Value| window["title"] == title && window["onScreen"] == true;
        found = windows
            .as_array()
            .unwrap()
            .iter()
            .find(named)
            .cloned()
            .unwrap_or_default();
        found.is_object()
    });
    found
}

fn observe_params(window: &Value) -> Value {
    let target = json!({ "kind": "window", "pid": window["pid"], "windowId": window["windowId"] });
    json!({ "session": SESSION, "target": target, "includeImage": true, "menu": { "scope": "bar" } })
}

/// The form, when it is laid out and a second look finds what the first one did: a compositor may still be giving it its
/// size when it is listed.
fn laid_out(client: &mut Client, window: &Value) -> Value {
    let mut snapshot = Value::Null;
    client.wait_until("the form is laid out", |client| {
        let before = snapshot["windowDigest"].take();
        snapshot = client.call("observe", observe_params(window))["snapshot"].clone();
        let elements = snapshot["elements"].as_array().into_iter().flatten();
        let is_there = |element: &Value| element["title"] == "Push" && element["frame"].is_object();
        elements.into_iter().any(is_there) && before == snapshot["windowDigest"]
    });
    snapshot
}

fn named<'s>(snapshot: &'s Value, role: &str, name: &str) -> &'s Value {
    let elements = snapshot["elements"].as_array().unwrap();
    let wanted = |element: &&Value| element["role"] == role && element["title"] == name;
    elements
        .iter()
        .find(wanted)
        .unwrap_or_else(|| panic!("no {role} is called {name}"))
}

fn act(client: &mut Client, snapshot: &Value, element: &Value, action: Value) -> Value {
    let mut params = desk::dispatch_params(SESSION, snapshot, element, action);
    // What other windows there are must not matter: none of them is known to cover anything.
    params["occlusionPolicy"] = json!("any");
    params["observeAfter"] = json!({ "includeImage": true, "settle": "quiesce" });
    client.call("dispatch.element", params)
}

/// Observes the form until it shows that this was done to it.
fn until_event(client: &mut Client, window: &Value, event: &str) -> Value {
    let mut snapshot = Value::Null;
    client.wait_until(event, |client| {
        snapshot = client.call("observe", observe_params(window))["snapshot"].clone();
        let elements = snapshot["elements"].as_array().into_iter().flatten();
        let mut titles = elements.filter_map(|element| element["title"].as_str());
        titles.find_map(|title| title.strip_prefix("event: ")) == Some(event)
    });
    snapshot
}

#[test]
fn gtk3_is_operated_through_accessibility_alone() {
    let test = "wayland::gtk3_is_operated_through_accessibility_alone";
    inside(test, Compositor::Sway, |stage| operate(&stage, "gtk3"));
}

#[test]
fn gtk4_is_operated_through_accessibility_alone() {
    let test = "wayland::gtk4_is_operated_through_accessibility_alone";
    inside(test, Compositor::Sway, |stage| operate(&stage, "gtk4"));
}

#[test]
fn qt5_is_operated_through_accessibility_alone() {
    let test = "wayland::qt5_is_operated_through_accessibility_alone";
    inside(test, Compositor::Sway, |stage| operate(&stage, "qt5"));
}

#[test]
fn qt6_is_operated_through_accessibility_alone() {
    let test = "wayland::qt6_is_operated_through_accessibility_alone";
    inside(test, Compositor::Sway, |stage| operate(&stage, "qt6"));
}

fn operate(stage: &Stage, toolkit: &str) {
    let _form = stage.form(toolkit, "wayland");
    let mut client = stage.client();
    let window = listed(&mut client, &format!("Form {toolkit}"));
    // A place is not made up.
    assert!(
        window["bounds"].is_null() && window["displayId"].is_null(),
        "{window}"
    );
    let snapshot = laid_out(&mut client, &window);
    assert_eq!(snapshot["displays"], json!([]));
    assert_eq!(snapshot["obscuringRects"], json!([]));
    // C10: the picture that was asked for is absent and says why.
    assert!(snapshot["image"].is_null());
    assert_eq!(snapshot["imageAbsence"], "not_offered");
    let root = &snapshot["elements"][0];
    assert_eq!(root["role"], "AXWindow");
    let size = |rect: &Value| (rect["width"].clone(), rect["height"].clone());
    assert_eq!(size(&root["frame"]), size(&snapshot["target"]["bounds"]));
    let bar = snapshot["menu"]["elements"].as_array().unwrap();
    assert!(bar.len() > 1, "the menu is read: {bar:?}");

    let push = named(&snapshot, "AXButton", "Push");
    let pressed = act(&mut client, &snapshot, push, json!({ "kind": "click" }));
    let [outcome, path, effect, method, _] = desk::declared(&pressed);
    assert_eq!([outcome, path, method], ["ok", "ax_action", "tree_delta"]);
    // GTK 4 acts a quarter of a second after the call, which may be after the window was found at rest.
    assert!(["confirmed", "unverifiable"].contains(&effect), "{effect}");
    assert_eq!(pressed["snapshot"]["imageAbsence"], "not_offered");
    let snapshot = until_event(&mut client, &window, "click button");

    let entry = named(&snapshot, "AXTextField", "Entry");
    let written = act(
        &mut client,
        &snapshot,
        entry,
        json!({ "kind": "set_value", "value": "Grüße" }),
    );
    assert_eq!(
        desk::declared(&written),
        ["ok", "ax_attribute", "confirmed", "value_readback", ""]
    );
    let snapshot = until_event(&mut client, &window, "entry Grüße");

    let area = named(&snapshot, "AXTextArea", "Area");
    let selected = act(
        &mut client,
        &snapshot,
        area,
        json!({ "kind": "select_text", "text": "second" }),
    );
    // GTK 4.8 leaves the call for a text area without an answer although it takes effect.
    match desk::declared(&selected) {
        ["ok", path, effect, method, ""] => {
            let expected = ["ax_attribute", "confirmed", "selection_readback"];
            assert_eq!([path, effect, method], expected);
        }
        declared => assert_eq!((toolkit, declared[0]), ("gtk4", "unknown")),
    }
    let snapshot = client.ok("observe", observe_params(&window))["snapshot"].clone();

    let row = named(&snapshot, "AXRow", "pear");
    let chosen = act(&mut client, &snapshot, row, json!({ "kind": "click" }));
    assert_eq!(desk::declared(&chosen)[0], "ok");
    let snapshot = until_event(&mut client, &window, "list pear");
    refusals(&mut client, &snapshot);
    assert_eq!(client.image_files(), 0, "no picture, of no length either");
}

/// What Wayland has no way for is not advertised and is refused, each with its own word, and the frame stays good.
fn refusals(client: &mut Client, snapshot: &Value) {
    let offered = &client.handshake["capabilities"];
    assert_eq!(
        offered["elementActions"],
        json!([
            "click",
            "set_value",
            "select_text",
            "secondary_action",
            "scroll"
        ])
    );
    for none in ["pointActions", "keyActions", "imageFormats"] {
        assert_eq!(offered[none], json!([]), "{none}");
    }
    let root = snapshot["elements"][0].clone();
    for action in [
        json!({ "kind": "move_window", "position": { "x": 1, "y": 1 } }),
        json!({ "kind": "resize_window", "size": { "width": 300, "height": 300 } }),
        json!({ "kind": "minimize_window" }),
    ] {
        let params = desk::dispatch_params(SESSION, snapshot, &root, action);
        let refused = client.call("dispatch.element", params);
        let expected = [
            "refused",
            "none",
            "unverifiable",
            "none",
            "unsupported_action",
        ];
        assert_eq!(desk::declared(&refused), expected);
    }
    let expected = [
        "refused",
        "none",
        "unverifiable",
        "none",
        "unsupported_action",
    ];
    let point = desk::point_params(snapshot, [5.0, 5.0], json!({ "kind": "left_click" }));
    let refused = client.call("dispatch.point", point);
    assert_eq!(desk::declared(&refused), expected);
    assert_eq!(refused["tier"], "coordinate-background");
    for action in [
        json!({ "kind": "type", "text": "x" }),
        json!({ "kind": "key", "key": "Return" }),
    ] {
        let refused = client.call("dispatch.key", desk::key_params(snapshot, "Entry", action));
        assert_eq!(desk::declared(&refused), expected);
        assert_eq!(refused["tier"], "coordinate-background");
    }
    let captured = client.refused("screen.capture", json!({ "session": SESSION }));
    assert_eq!(captured, "capture_failed");
    let permissions = client.ok("permissions.check", json!({ "prompt": false }));
    assert_eq!(permissions["accessibility"], true);
    assert_eq!(permissions["screenRecording"], false);
    assert_eq!(permissions["screenRecordingProbe"], "not_probed");
}

/// Launch, the lists, and what becomes of the number of a window that is gone.
#[test]
fn a_program_is_launched_and_its_windows_come_and_go() {
    let test = "wayland::a_program_is_launched_and_its_windows_come_and_go";
    inside(test, Compositor::Sway, |stage| {
        let entry = format!(
            "[Desktop Entry]\nType=Application\nName=A form\nExec=/usr/bin/python3 -B {}\n",
            stage.forms.join("gtk3.py").display()
        );
        let entries = stage.desktop.applications_dir();
        fs::write(entries.join("org.example.Form.desktop"), entry).unwrap();
        let mut client = stage.client();
        let launch = json!({ "session": SESSION, "app": "A form", "waitForWindowMs": 20_000 });
        let launched = client.ok("apps.launch", launch.clone());
        assert_eq!(launched["appId"], "org.example.Form");
        assert_eq!(
            launched["waited"]["reason"], "window_appeared",
            "{launched}"
        );
        let window = listed(&mut client, "Form gtk3");
        assert_eq!(window["pid"], launched["pid"]);
        assert_eq!(window["windowId"], launched["windows"][0]["windowId"]);
        let apps = client.ok("apps.list", json!({}))["apps"].clone();
        let ours = |app: &&Value| app["appId"] == "org.example.Form";
        let app = apps.as_array().unwrap().iter().find(ours).unwrap();
        assert_eq!(
            (&app["pid"], &app["windowCount"]),
            (&launched["pid"], &json!(1))
        );

        // Another process of ours calls it by the same number.
        let told = stage.run(&["list-apps", "--json"]);
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert!(
            told.to_string()
                .contains(&format!("\"windowId\":{}", window["windowId"])),
            "{told}"
        );

        // A program that hangs keeps its window, as it last told of it, and is not waited for without end.
        let pid = Pid::from_raw(i32::try_from(launched["pid"].as_i64().unwrap()).unwrap());
        laid_out(&mut client, &window);
        kill(pid, Signal::SIGSTOP).unwrap();
        let still = listed(&mut client, "Form gtk3");
        assert_eq!(still["windowId"], window["windowId"]);
        assert_eq!(
            client.refused("observe", observe_params(&window)),
            "timeout"
        );
        kill(pid, Signal::SIGCONT).unwrap();
        laid_out(&mut client, &window);

        kill(pid, Signal::SIGKILL).unwrap();
        client.wait_until("the window is gone", |client| {
            let answer = client.call("observe", observe_params(&window));
            answer["error"]["code"] == "window_gone"
        });
        let launched = client.ok("apps.launch", launch);
        assert_ne!(launched["windows"][0]["windowId"], window["windowId"]);
    });
}

/// What is not in view is operated all the same.
#[test]
fn windows_on_another_workspace_are_operated() {
    let test = "wayland::windows_on_another_workspace_are_operated";
    inside(test, Compositor::Sway, |stage| {
        let mut client = stage.client();
        let forms = ["gtk3", "qt6"].map(|toolkit| {
            let form = stage.form(toolkit, "wayland");
            let window = listed(&mut client, &format!("Form {toolkit}"));
            laid_out(&mut client, &window);
            (form, window)
        });
        stage.leave_the_workspace();
        for (_, window) in &forms {
            let snapshot = client.ok("observe", observe_params(window))["snapshot"].clone();
            let push = named(&snapshot, "AXButton", "Push");
            let pressed = act(&mut client, &snapshot, push, json!({ "kind": "click" }));
            assert_eq!(desk::declared(&pressed)[0], "ok");
            until_event(&mut client, window, "click button");
        }
    });
}

/// `doctor` names what there is and what there is not; whoever insists on X11 is told what to do.
#[test]
fn doctor_says_what_a_wayland_session_gives() {
    let test = "wayland::doctor_says_what_a_wayland_session_gives";
    inside(test, Compositor::Sway, |stage| {
        let output = stage.run(&["doctor"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        for line in [
            "back end: wayland\n",
            "ok   Wayland compositor: connected\n",
            "ok   accessibility bus: the registry answers\n",
            "note pictures: none: ",
            "note points and keys: none: ",
            "note places of windows: not known",
            "  actions at points: none\n",
            "  keys: none\n",
            "  pictures: none\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let output = stage.run(&["doctor", "--back-end", "linux"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("use `--back-end wayland`"), "{text}");
        let _form = stage.form("gtk3", "wayland");
        let mut client = stage.client();
        let window = listed(&mut client, "Form gtk3")["windowId"].to_string();
        let picture = stage.desktop.dir().join("picture.png");
        let picture = picture.to_str().unwrap();
        let output = stage.run(&["snapshot", "--window", &window, "--image", picture]);
        assert_eq!(output.status.code(), Some(69));
        assert!(!Path::new(picture).exists());
    });
}

/// The service ends with the session, so that whoever supervises it can tell.
#[test]
fn the_executor_ends_with_the_compositor() {
    let test = "wayland::the_executor_ends_with_the_compositor";
    inside(test, Compositor::Sway, |stage| {
        let runtime = stage.desktop.dir().join("run");
        let mut command = stage.desktop.command(&stage.executor);
        // With another runtime folder it does not count as a program of the desktop, which ends those itself.
        command
            .env("WAYLAND_DISPLAY", runtime.join(stage.desktop.display()))
            .env("XDG_RUNTIME_DIR", stage.desktop.dir());
        let mut client = Client::start_on(command);
        desk::begin(&mut client, SESSION);
        stage.desktop.stop();
        assert_eq!(client.exit_status().code(), Some(69));
    });
}

/// Through Xwayland only X programs are seen, so a bare command does not take it; whoever names it has their pictures.
#[test]
fn beside_xwayland_every_program_is_seen() {
    let test = "wayland::beside_xwayland_every_program_is_seen";
    inside(test, Compositor::SwayWithXwayland, |stage| {
        let _native = stage.form("gtk4", "wayland");
        let _of_x = stage.form("gtk3", "x11");
        let mut client = stage.client();
        for title in ["Form gtk4", "Form gtk3"] {
            let window = listed(&mut client, title);
            laid_out(&mut client, &window);
        }
        assert_eq!(client.handshake["capabilities"]["imageFormats"], json!([]));
        let told = stage.run(&["doctor", "--json"]);
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(told["backEnd"], "wayland");
        let notes = told["notes"].as_array().unwrap();
        assert!(
            notes.iter().any(|note| note["name"] == "Xwayland"),
            "{told}"
        );

        let mut command = stage.desktop.command(&stage.executor);
        command.args(["list-apps", "--json", "--back-end", "linux"]);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("Form gtk3") && !text.contains("Form gtk4"),
            "{text}"
        );
        let told = stage.run(&["doctor", "--back-end", "linux", "--json"]);
        let text = String::from_utf8(told.stdout).unwrap();
        assert!(
            text.contains("only windows of X programs are seen"),
            "{text}"
        );
    });
}
