//! `list-apps`, `snapshot` and `doctor`: what a person at a terminal gets, on the embedded desktop and on a real one.

use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use maka_cu_protocol::json::Json as _;
use maka_cu_protocol::snapshot::Snapshot;
use serde_json::Value;

const DESKTOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract/desktop.toml");
const FORM: &str = "org.contract.Form";

/// Runs a command on the contract desktop.
fn run(arguments: &[&str]) -> Output {
    run_on(Path::new(DESKTOP), arguments)
}

fn run_on(scenario: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_maka-cu"))
        .args(arguments)
        .args(["--back-end", "virtual", "--desktop"])
        .arg(scenario)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

/// The status, and what stderr says; stdout must be empty.
fn trouble(output: &Output) -> (Option<i32>, String) {
    assert!(output.stdout.is_empty());
    (
        output.status.code(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

#[test]
fn the_list_has_every_application_with_its_windows() {
    let listed = json(&run(&["list-apps", "--json"]));
    let apps = listed["apps"].as_array().unwrap();
    let form = apps.iter().find(|app| app["appId"] == FORM).unwrap();
    assert_eq!(form["windows"][0]["title"], "Form");
    assert_eq!(form["windows"][0]["pid"], form["pid"]);
    let shown = text(&run(&["list-apps"]));
    let window = format!("window {}  \"Form\"", form["windows"][0]["windowId"]);
    assert!(shown.contains(FORM) && shown.contains(&window), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colors in a pipe");
    let colored = text(&run(&["list-apps", "--color", "always"]));
    assert!(colored.contains('\u{1b}'));
}

#[test]
fn a_window_is_shown_as_an_agent_sees_it() {
    let snapshot = json(&run(&["snapshot", FORM, "--json"]));
    let snapshot = Snapshot::read(&snapshot).unwrap();
    let tree = text(&run(&["snapshot", FORM]));
    for element in &snapshot.elements {
        let number = element.stable_id.unwrap().to_string();
        let role = element.role.as_str().strip_prefix("AX").unwrap();
        let line = tree
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{number} ")));
        assert!(
            line.is_some_and(|line| line.contains(role)),
            "{number}: {tree}"
        );
    }
    let entry = tree
        .lines()
        .find(|line| line.contains("\"Entry\""))
        .unwrap();
    assert!(
        entry.contains("= \"old\"") && entry.contains("200×30 at 20,80"),
        "{entry}"
    );
    // By the name that it shows, in any case, and by the window.
    assert!(text(&run(&["snapshot", "fORM"])).starts_with("\"Form\""));
    let window = snapshot.target.window_id.to_string();
    assert!(text(&run(&["snapshot", "--window", &window])).starts_with("\"Form\""));
    let menus = text(&run(&["snapshot", "org.contract.Menus", "--menu"]));
    assert!(
        menus.contains("Menu\n") && menus.contains("\"Print\""),
        "{menus}"
    );
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let (status, said) = trouble(&run(&["snapshot", "org.contract.Nothing"]));
    assert_eq!(status, Some(66));
    assert!(
        said.contains("org.contract.Nothing") && said.contains("list-apps"),
        "{said}"
    );
    assert_eq!(
        trouble(&run(&["snapshot", "--window", "4000000"])).0,
        Some(66)
    );
    let image = ["snapshot", FORM, "--image", "/does/not/exist/form.png"];
    assert_eq!(trouble(&run(&image)).0, Some(73));
    let wrong = [
        &["snapshot"][..],
        &["snapshot", FORM, "--window", "1"],
        &["snapshot", FORM, "--marks"],
        &["snapshot", FORM, "--tree", "--json"],
        &["list-apps", "extra"],
    ];
    for arguments in wrong {
        assert_eq!(trouble(&run(arguments)).0, Some(64), "{arguments:?}");
    }
    let missing = run_on(Path::new("/does/not/exist.toml"), &["list-apps"]);
    assert_eq!(trouble(&missing).0, Some(69));
}

#[test]
fn a_missing_permission_is_named() {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let desktop = include_str!("desktop.toml");
    let without = |permission: &str| {
        let head = format!("[permissions]\n{permission} = false\n");
        std::fs::write(scenario.path(), head + desktop).unwrap();
    };
    without("accessibility");
    let (status, said) = trouble(&run_on(scenario.path(), &["snapshot", FORM]));
    assert_eq!(status, Some(77));
    assert!(said.contains("grant accessibility"), "{said}");
    let examined = run_on(scenario.path(), &["doctor"]);
    assert_eq!(examined.status.code(), Some(1));
    let report = String::from_utf8(examined.stdout).unwrap();
    assert!(report.contains("FAIL accessibility permission"), "{report}");
    without("screen_recording");
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("form.png");
    let arguments = ["snapshot", FORM, "--image", image.to_str().unwrap()];
    let (status, said) = trouble(&run_on(scenario.path(), &arguments));
    assert_eq!(status, Some(77));
    assert!(said.contains("--image"), "{said}");
    assert!(!image.exists());
    text(&run_on(scenario.path(), &["snapshot", FORM]));
}

fn decode(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = std::fs::read(path).unwrap();
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    (info.width, info.height, pixels)
}

#[test]
fn a_picture_is_the_window_and_its_marks_are_drawn_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, marked] = ["plain.png", "marked.png"].map(|name| folder.path().join(name));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let quiet = run(&["snapshot", FORM, "--image", &path(&plain)]);
    assert_eq!(text(&quiet), "", "the picture is all that was asked for");
    let with_tree = [
        "snapshot",
        FORM,
        "--image",
        &path(&marked),
        "--marks",
        "--tree",
    ];
    assert!(text(&run(&with_tree)).contains("\"Entry\""));
    let (plain, marked) = (decode(&plain), decode(&marked));
    assert_eq!((plain.0, plain.1), (600, 600));
    assert_eq!((marked.0, marked.1), (600, 600));
    let differs = plain
        .2
        .iter()
        .zip(&marked.2)
        .filter(|(plain, marked)| plain != marked)
        .count();
    assert!(differs > 2_000, "boxes and numbers: {differs}");
    assert!(differs < plain.2.len() / 3, "and the window under them");
}

#[test]
fn the_other_windows_of_an_application_are_named() {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let window = |id: &str| {
        format!(
            "[[apps.windows]]\nid = \"{id}\"\ntitle = \"The {id}\"\nbounds = [0, 0, 200, 200]\n\n"
        )
    };
    let desktop = format!(
        "[[displays]]\nid = \"1\"\nsize = [800, 600]\n\n[[apps]]\napp_id = \"org.two\"\nname = \"Two\"\n\
         running = true\n\n{}{}",
        window("first"),
        window("second")
    );
    std::fs::write(scenario.path(), desktop).unwrap();
    let front = text(&run_on(scenario.path(), &["snapshot", "two"]));
    let (_, other) = front.split_once("also: --window ").unwrap();
    let (window_id, title) = other.trim_end().split_once("  ").unwrap();
    let shown = text(&run_on(
        scenario.path(),
        &["snapshot", "--window", window_id],
    ));
    assert!(shown.starts_with(title), "{shown}");
}

/// What an application writes does not reach the terminal as a command.
#[test]
fn a_hostile_title_is_harmless() {
    let scenario = tempfile::NamedTempFile::new().unwrap();
    let hostile = "\\u001b]0;owned\\u0007\\nFAIL all is lost\\u202e";
    let desktop = format!(
        "[[displays]]\nid = \"1\"\nsize = [800, 600]\n\n[[apps]]\napp_id = \"org.hostile\"\nname = \"{hostile}\"\n\
         running = true\n\n[[apps.windows]]\nid = \"main\"\ntitle = \"{hostile}\"\nbounds = [0, 0, 300, 300]\n\n\
         [[apps.windows.controls]]\nkind = \"label\"\ntitle = \"{hostile}\"\nbounds = [10, 50, 200, 20]\n"
    );
    std::fs::write(scenario.path(), desktop).unwrap();
    for arguments in [&["list-apps"][..], &["snapshot", "org.hostile"]] {
        let shown = text(&run_on(scenario.path(), arguments));
        assert!(shown.contains("\\u{1b}]0;owned"), "{shown}");
        let harmful = |char: char| char != '\n' && (char.is_control() || char == '\u{202e}');
        assert!(!shown.contains(harmful), "{shown:?}");
        assert!(
            !shown.lines().any(|line| line.starts_with("FAIL")),
            "{shown}"
        );
    }
}

#[test]
fn help_teaches() {
    for command in ["host", "doctor", "list-apps", "snapshot"] {
        let output = Command::new(env!("CARGO_BIN_EXE_maka-cu"))
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = text(&output);
        assert!(
            help.contains("Exit status:") && help.contains("--back-end"),
            "{help}"
        );
    }
    let output = Command::new(env!("CARGO_BIN_EXE_maka-cu"))
        .arg("--help")
        .output()
        .unwrap();
    let help = text(&output);
    assert!(
        help.contains("maka-cu snapshot org.example.Notes"),
        "{help}"
    );
    assert!(
        help.lines().all(|line| line.chars().count() <= 100),
        "fits a terminal: {help}"
    );
}

/// The same commands on a real desktop.
#[cfg(target_os = "linux")]
#[test]
fn a_real_desktop_is_listed_and_examined() {
    use maka_desktop::{Desktop, DesktopOptions};

    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = desktop.command(env!("CARGO_BIN_EXE_maka-cu"));
        command.args(arguments).output().unwrap()
    };
    assert!(json(&run(&["list-apps", "--json"]))["apps"].is_array());
    let report = json(&run(&["doctor", "--json"]));
    assert_eq!(
        (&report["ok"], &report["backEnd"]),
        (&true.into(), &"linux".into()),
        "{report}"
    );
    let actions = report["abilities"]["capabilities"]["elementActions"]
        .as_array()
        .unwrap();
    assert!(actions.contains(&"click".into()), "{report}");
    let notes = report["notes"].as_array().unwrap();
    let quiet = |note: &&Value| note.get("advice").is_none();
    assert_eq!(notes.iter().filter(quiet).count(), notes.len(), "{report}");
    let (status, said) = trouble(&run(&["snapshot", "org.example.Nothing"]));
    assert_eq!(status, Some(66));
    assert!(said.contains("list-apps"), "{said}");

    let mut dialog = desktop
        .command("zenity")
        .args(["--entry", "--title=Question", "--text=What is your name?"])
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + crate::client::PATIENCE;
    let window = loop {
        let listed = json(&run(&["list-apps", "--json"]));
        let mut windows = listed["apps"].as_array().unwrap().iter().flat_map(|app| {
            let own = app["windows"].as_array().unwrap();
            own.iter().filter(|window| window["title"] == "Question")
        });
        if let Some(window) = windows.next() {
            break window["windowId"].to_string();
        }
        assert!(
            std::time::Instant::now() < deadline,
            "the dialog does not appear: {listed}"
        );
    };
    let picture = desktop.dir().join("marked.png");
    let arguments = [
        "snapshot",
        "--window",
        &window,
        "--tree",
        "--image",
        picture.to_str().unwrap(),
        "--marks",
    ];
    // A toolkit may still be laying its dialog out.
    let tree = loop {
        let output = run(&arguments);
        let tree = String::from_utf8(output.stdout).unwrap();
        if tree.contains("TextField") && tree.contains("\"OK\"") {
            break tree;
        }
        assert!(std::time::Instant::now() < deadline, "{tree}");
    };
    assert!(
        tree.starts_with("\"Question\"") && tree.contains("[press]"),
        "{tree}"
    );
    let (width, height, pixels) = decode(&picture);
    assert!(width > 100 && height > 50 && pixels.iter().any(|byte| *byte != pixels[0]));
    dialog.kill().unwrap();
    dialog.wait().unwrap();
    desktop.stop();
}
