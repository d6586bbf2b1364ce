//! Test: running a test again inside a private desktop, since a connection is made to the desktop of the environment.

use std::env;

use maka_desktop::{Desktop, DesktopOptions};

/// Set in the inner run.
const INSIDE: &str = "MAKA_TEST_INSIDE";

/// Outside: starts a desktop without a window manager and runs the test of this name in it. Inside: runs `scenario`.
pub(super) fn inside(test: &str, scenario: fn()) {
    if env::var_os(INSIDE).is_some() {
        return scenario();
    }
    let desktop = Desktop::start(DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    })
    .unwrap();
    let output = desktop
        .command(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    desktop.stop();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no test is called {test}");
}
