//! `apps.launch` (spec §3.4, §12.5 row 60).

use serde_json::{Value, json};

use crate::desk::{self, SESSION};

fn params(app: &str, wait_ms: u64) -> Value {
    json!({ "session": SESSION, "app": app, "waitForWindowMs": wait_ms })
}

#[test]
fn a_launched_application_is_waited_for_and_stays_in_the_background() {
    let mut client = desk::start();
    let launched = client.ok("apps.launch", params("org.contract.Opens", 8000));
    assert_eq!(launched["appId"], "org.contract.Opens");
    assert_eq!(launched["foregroundTaken"], false);
    assert_eq!(launched["waited"]["reason"], "window_appeared");
    assert!(
        launched["waited"]["ms"].as_u64().unwrap() >= 100,
        "measured: {launched}"
    );
    assert_eq!(launched["windows"][0]["title"], "Opened");
    let snapshot = desk::observe(&mut client, "org.contract.Opens");
    assert_eq!(snapshot["target"]["pid"], launched["pid"]);
    let result = client.ok("dispatch.element", desk::click_params(&snapshot, "Quit"));
    assert_eq!(result["postObservationError"]["code"], "window_gone");
    assert_eq!(
        client.refused("observe", desk::app_params("org.contract.Opens")),
        "app_not_found"
    );
}

#[test]
fn a_human_name_is_allowed_here_and_nowhere_else() {
    let mut client = desk::start();
    assert_eq!(
        client.ok("apps.launch", params("Opens", 8000))["appId"],
        "org.contract.Opens"
    );
}

#[test]
fn an_application_that_takes_the_foreground_is_reported() {
    let mut client = desk::start();
    assert_eq!(
        client.ok("apps.launch", params("org.contract.Foreground", 8000))["foregroundTaken"],
        true
    );
}

#[test]
fn each_way_to_fail_has_its_code() {
    let mut client = desk::start();
    let rows = [
        ("org.contract.Nothing", "app_not_found"),
        ("Twin", "app_not_found"),
        ("org.contract.Denied", "unsupported_action"),
        ("org.contract.Refused", "dispatch_refused"),
        ("org.contract.Never", "timeout"),
    ];
    for (app, code) in rows {
        assert_eq!(
            client.refused("apps.launch", params(app, 200)),
            code,
            "{app}"
        );
    }
}

#[test]
fn one_budget_covers_process_and_window() {
    let mut client = desk::start();
    let launched = client.ok("apps.launch", params("org.contract.NoWindow", 200));
    assert_eq!(
        (&launched["windows"], &launched["waited"]["reason"]),
        (&json!([]), &json!("timeout"))
    );
    assert!(launched["waited"]["ms"].as_u64().unwrap() >= 200);
    // Without a budget nothing is waited for but the process.
    let launched = client.ok(
        "apps.launch",
        json!({ "session": SESSION, "app": "org.contract.NoWindow" }),
    );
    assert_eq!(launched["waited"]["reason"], "not_requested");
    // One that runs already is found, not doubled.
    let form = client.ok("apps.launch", params("org.contract.Form", 8000));
    assert_eq!(
        form["pid"],
        desk::observe(&mut client, "org.contract.Form")["target"]["pid"]
    );
}

#[test]
fn a_cancelled_wait_still_tells_what_was_started() {
    let mut client = desk::start();
    let id = client.send("apps.launch", params("org.contract.NoWindow", 60_000));
    client.wait_until("the process runs", |client| {
        let apps = client.ok("apps.list", json!({}))["apps"].clone();
        apps.as_array()
            .unwrap()
            .iter()
            .any(|app| app["appId"] == "org.contract.NoWindow")
    });
    client.cancel(id);
    let launched = client.wait(id)["result"].clone();
    assert_eq!(
        (&launched["ok"], &launched["waited"]["reason"]),
        (&json!(true), &json!("timeout")),
        "{launched}"
    );
}

/// A program that ends at once was started all the same: `dispatch_refused` would promise that nothing happened.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_has_ended_already_was_not_refused() {
    use maka_desktop::{Desktop, DesktopOptions};

    let desktop = Desktop::start(DesktopOptions::default()).unwrap();
    let applications = desktop.applications_dir();
    std::fs::create_dir_all(&applications).unwrap();
    let mark = desktop.dir().join("it-ran");
    let entry = format!(
        "[Desktop Entry]\nType=Application\nName=Brief\nExec=/bin/mkdir {}\n",
        mark.display()
    );
    std::fs::write(applications.join("org.maka.Brief.desktop"), entry).unwrap();
    let mut client =
        crate::client::Client::start_on(desktop.command(env!("CARGO_BIN_EXE_maka-cu")));
    desk::begin(&mut client, SESSION);
    let code = client.refused("apps.launch", params("org.maka.Brief", 20_000));
    assert_eq!(code, "timeout");
    assert!(mark.is_dir());
    desktop.stop();
}
