//! The examples, run as they stand, over the scriptable executor and over the virtual desktop.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::trace::soon;

#[path = "../../examples/bound_click.rs"]
#[expect(dead_code, reason = "a test calls `run` rather than `main`")]
mod bound_click;
#[path = "../../examples/cancelled_scroll.rs"]
#[expect(dead_code, reason = "a test calls `run` rather than `main`")]
mod cancelled_scroll;
#[path = "../../examples/capabilities.rs"]
#[expect(dead_code, reason = "a test calls `run` rather than `main`")]
mod capabilities;

/// A program of the workspace, built into the folder above the one of the running test.
fn program(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let path = this.ancestors().nth(2).unwrap().join(name);
    assert!(
        path.is_file(),
        "`{}` is not built; run `cargo build --workspace --bins` with the same profile first",
        path.display()
    );
    path
}

/// Arguments of the scriptable executor for this script.
fn scripted(home: &TempDir, script: &Value) -> Vec<OsString> {
    let path = home.path().join("script.json");
    let text = script
        .to_string()
        .replace("$HOME", home.path().to_str().unwrap());
    fs::write(&path, text).unwrap();
    vec!["--script".into(), path.into()]
}

fn virtual_desktop() -> Vec<OsString> {
    vec!["--back-end".into(), "virtual".into()]
}

#[tokio::test]
async fn capabilities_are_printed() {
    for (name, executable, arguments) in [
        ("fake-executor 1.0.0", "fake-executor", Vec::new()),
        ("maka-cu ", "maka-cu", virtual_desktop()),
    ] {
        let mut out = Vec::new();
        let run = capabilities::run(program(executable), arguments, &mut out);
        soon(run).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(name), "{text}");
        assert!(text.contains("generation 1\n"), "{text}");
        assert!(text.contains("\nelements: click "), "{text}");
        assert!(text.contains("at most 1500 elements"), "{text}");
    }
    let mut out = Vec::new();
    let run = capabilities::run("/no/such/executor".into(), Vec::new(), &mut out);
    soon(run).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("Install the executor"),
        "the remedy is said: {text}"
    );
}

#[tokio::test]
async fn a_bound_click_is_done() {
    for (app, executable, arguments) in [
        ("org.example.Notes", "fake-executor", Vec::new()),
        ("org.maka.Settings", "maka-cu", virtual_desktop()),
    ] {
        let mut out = Vec::new();
        let run = bound_click::run(app, program(executable), arguments, &mut out);
        soon(run).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(": ok by ax_action, effect "), "{app}: {text}");
    }
    let mut out = Vec::new();
    let missing = bound_click::run(
        "org.example.Absent",
        program("fake-executor"),
        Vec::new(),
        &mut out,
    );
    let error = soon(missing).await.unwrap_err();
    assert_eq!(error.to_string(), "refused with `app_not_found`");
}

/// The second look goes on until the scroll was cancelled, so it is the cancel and no clock that ends the wait.
#[tokio::test]
async fn a_queued_scroll_is_cancelled() {
    let home = tempfile::tempdir().unwrap();
    let script = json!({ "rules": [
        { "method": "observe", "nth": 2, "steps": [{ "wait_for_file": "$HOME/go" }, "default"] },
        { "method": "dispatch.element", "steps": ["wait_for_cancel", { "refuse": "aborted" }, { "touch": "$HOME/go" }] },
    ] });
    let arguments = scripted(&home, &script);
    let mut out = Vec::new();
    let run = cancelled_scroll::run(
        "org.example.Notes",
        program("fake-executor"),
        arguments,
        &mut out,
    );
    soon(run).await.unwrap();
    let expected = "the scroll ended in code `aborted`\nthe slow call was answered\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
