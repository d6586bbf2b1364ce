//! Windows in their order, processes, launches.

use maka_cu_protocol::roles;

use super::*;

fn titles(desktop: &VirtualDesktop) -> Vec<String> {
    let windows = desktop.windows(&soon()).unwrap();
    windows
        .iter()
        .map(|window| window.title.as_ref().unwrap().as_str().to_owned())
        .collect()
}

/// The application and windows of a launch that came to something.
fn running(desktop: &VirtualDesktop, ticket: &LaunchTicket) -> (RunningApp, Vec<WindowInfo>) {
    match desktop.launch_progress(ticket, &soon()).unwrap() {
        LaunchProgress::Running { app, windows } => (app, windows),
        other => panic!("this launch is {other:?}"),
    }
}

#[test]
fn windows_stand_front_to_back_without_ties() {
    let desktop = built_in();
    assert_eq!(titles(&desktop), ["Notes", "Tips", "Settings"]);
    let windows = desktop.windows(&soon()).unwrap();
    assert!(
        windows
            .windows(2)
            .all(|pair| pair[0].z_index > pair[1].z_index)
    );
    assert_eq!(desktop.frontmost_pid(&soon()), Ok(Some(windows[0].key.pid)));
    let apps = desktop.applications(&soon()).unwrap();
    for window in &windows {
        let app = apps.iter().find(|app| app.pid == window.key.pid).unwrap();
        assert_eq!(
            (&app.app_id, &app.name),
            (&window.app_id, &window.app_name),
            "both lists spell it alike"
        );
        assert_eq!(window.display_id.as_ref().map(DisplayId::as_str), Some("1"));
    }
    assert!(
        apps.iter()
            .all(|app| app.app_id.as_str() != "org.maka.TestEntry"),
        "it is installed and not running"
    );
}

/// A launch makes a process and a window, and takes neither the foreground nor the place in front.
#[test]
fn a_launch_stays_behind_the_foreground() {
    let desktop = built_in();
    let before = desktop.frontmost_pid(&soon()).unwrap();
    for name in ["org.maka.TestEntry", "Test Entry"] {
        let ticket = desktop.launch(name, &soon()).unwrap();
        let (app, windows) = running(&desktop, &ticket);
        assert_eq!(app.app_id.as_str(), "org.maka.TestEntry");
        assert!(desktop.process_start(app.pid).is_some());
        assert_eq!(windows.len(), 1);
        assert_eq!(windows[0].title.as_ref().unwrap().as_str(), "Question");
        assert_eq!(desktop.frontmost_pid(&soon()).unwrap(), before);
    }
    assert_eq!(
        titles(&desktop),
        ["Notes", "Question", "Question", "Tips", "Settings"]
    );
    let windows = desktop.windows(&soon()).unwrap();
    assert_ne!(
        windows[1].key.pid, windows[2].key.pid,
        "each launch is a process of its own"
    );
    assert_ne!(
        windows[1].bounds, windows[2].bounds,
        "a further instance does not hide the first"
    );
}

/// The round trip of the zenity script: launch, type, confirm; the text arrives and the process is gone.
#[test]
fn the_dialog_hands_its_text_over_and_ends() {
    let desktop = built_in();
    let ticket = desktop.launch("org.maka.TestEntry", &soon()).unwrap();
    let (app, windows) = running(&desktop, &ticket);
    let tree = tree(&desktop, "Question");
    let field = tree
        .nodes
        .iter()
        .find(|node| node.role == roles::TEXT_FIELD)
        .unwrap();
    assert!(field.focused);
    write(&desktop, field, "Grace").unwrap();
    press(&desktop, &node(&desktop, "Question", roles::BUTTON, "OK")).unwrap();
    node(&desktop, "Notes", roles::STATIC_TEXT, "Last answer: Grace");
    assert!(reread(&desktop, field).is_none());
    assert_eq!(desktop.process_start(app.pid), None);
    assert!(
        desktop
            .applications(&soon())
            .unwrap()
            .iter()
            .all(|other| other.pid != app.pid)
    );
    let gone = desktop.window_root(windows[0].key, &soon());
    assert!(matches!(gone, Err(BackendError::WindowGone)));
    assert_eq!(
        desktop.capture_window(windows[0].key, &soon()),
        Err(BackendError::WindowGone)
    );
    assert!(matches!(
        desktop.launch_progress(&ticket, &soon()),
        Ok(LaunchProgress::Exited)
    ));
}

#[test]
fn of_two_dialogs_the_pressed_one_ends() {
    let desktop = built_in();
    let first = running(&desktop, &desktop.launch("Test Entry", &soon()).unwrap()).0;
    let second = running(&desktop, &desktop.launch("Test Entry", &soon()).unwrap()).0;
    let key = desktop
        .windows(&soon())
        .unwrap()
        .into_iter()
        .find(|window| window.key.pid == first.pid)
        .unwrap()
        .key;
    let root = desktop.window_root(key, &soon()).unwrap().unwrap();
    let nodes = desktop
        .walk(&root, &WalkScope::Everything, &budget())
        .unwrap()
        .nodes;
    press(
        &desktop,
        nodes.iter().find(|node| title(node) == "Cancel").unwrap(),
    )
    .unwrap();
    assert_eq!(desktop.process_start(first.pid), None);
    assert!(desktop.process_start(second.pid).is_some());
}

#[test]
fn a_launch_comes_to_what_the_scenario_says() {
    let app = |keys: &str| {
        desktop(&format!(
            "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\n{keys}\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
             bounds = [0, 0, 200, 200]"
        ))
    };
    let refused = |keys: &str, name: &str| app(keys).launch(name, &soon()).err();
    assert_eq!(refused("", "nobody"), Some(BackendError::AppNotFound));
    assert_eq!(
        refused("", "a"),
        Some(BackendError::AppNotFound),
        "names are compared exactly"
    );
    assert_eq!(
        refused("launchable = false\nrunning = true", "A"),
        Some(BackendError::AppNotFound)
    );
    assert_eq!(
        refused("launch = \"refused\"", "A"),
        Some(BackendError::Refused)
    );
    assert_eq!(
        refused("launch = \"denied\"", "A"),
        Some(BackendError::Unsupported)
    );
    assert_eq!(
        refused("[[apps]]\napp_id = \"c.d\"\nname = \"A\"", "A"),
        Some(BackendError::Ambiguous),
        "two applications of one name"
    );

    let desktop = app("launch = \"never_registers\"");
    let ticket = desktop.launch("A", &soon()).unwrap();
    assert!(matches!(
        desktop.launch_progress(&ticket, &soon()),
        Ok(LaunchProgress::Starting)
    ));

    let desktop = app("launch = \"no_window\"");
    let ticket = desktop.launch("A", &soon()).unwrap();
    assert!(running(&desktop, &ticket).1.is_empty());

    let desktop = app("single_instance = true\nrunning = true");
    let ticket = desktop.launch("A", &soon()).unwrap();
    assert_eq!(running(&desktop, &ticket).1, [window(&desktop, "Main")]);

    let desktop = app("window_delay_ms = 30");
    let ticket = desktop.launch("A", &soon()).unwrap();
    assert!(
        desktop
            .process_start(running(&desktop, &ticket).0.pid)
            .is_some()
    );
    eventually("the window opens", || {
        running(&desktop, &ticket).1.len() == 1
    });
}

#[test]
fn an_application_that_takes_the_foreground_is_seen_to() {
    let desktop = desktop(
        "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"a\"\ntitle = \"Front\"\n\
         bounds = [0, 0, 200, 200]\n[[apps]]\napp_id = \"c.d\"\nname = \"C\"\ntakes_foreground = true\n\
         [[apps.windows]]\nid = \"c\"\ntitle = \"Pushy\"\nbounds = [0, 0, 200, 200]",
    );
    let ticket = desktop.launch("c.d", &soon()).unwrap();
    let pid = running(&desktop, &ticket).0.pid;
    assert_eq!(desktop.frontmost_pid(&soon()), Ok(Some(pid)));
    assert_eq!(titles(&desktop), ["Pushy", "Front"]);
}

#[test]
fn a_replaced_process_keeps_its_id_and_not_its_start() {
    let desktop = app_with(
        "[[apps.windows.controls]]\nkind = \"button\"\ntitle = \"B\"\nbounds = [10, 50, 90, 30]\n\
         on_press = [{ effect = \"replace_process\" }]",
    );
    let button = node(&desktop, "Main", roles::BUTTON, "B");
    let key = window(&desktop, "Main").key;
    let before = desktop.process_start(key.pid).unwrap();
    assert_eq!(
        desktop.process_start(key.pid),
        Some(before),
        "one process has one start"
    );
    press(&desktop, &button).unwrap();
    assert_eq!(window(&desktop, "Main").key, key);
    assert!(reread(&desktop, &button).is_some());
    assert_ne!(desktop.process_start(key.pid), Some(before));
}

#[test]
fn a_higher_layer_stays_in_front() {
    let desktop = desktop(
        "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"dock\"\ntitle = \"Dock\"\n\
         layer = 20\nbounds = [0, 0, 200, 200]\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
         bounds = [0, 0, 200, 200]\n[[apps.windows.controls]]\nkind = \"button\"\ntitle = \"B\"\n\
         bounds = [10, 50, 90, 30]\non_press = [{ effect = \"raise_window\" }]",
    );
    assert_eq!(titles(&desktop), ["Dock", "Main"]);
    press(&desktop, &node(&desktop, "Main", roles::BUTTON, "B")).unwrap();
    assert_eq!(titles(&desktop), ["Dock", "Main"]);
    let pid = window(&desktop, "Main").key.pid;
    assert_eq!(desktop.frontmost_pid(&soon()), Ok(Some(pid)));
}

#[test]
fn permissions_and_time_are_respected() {
    let scenario = "[permissions]\naccessibility = false\nscreen_recording = false\n[[apps]]\napp_id = \"a.b\"\n\
                    name = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
                    bounds = [0, 0, 200, 200]";
    let desktop = desktop(scenario);
    let key = window(&desktop, "Main").key;
    let permissions = desktop
        .permissions(PermissionPrompt::Never, &soon())
        .unwrap();
    assert!(!permissions.accessibility && !permissions.screen_recording);
    assert_eq!(
        permissions.screen_recording_probe,
        ScreenRecordingProbe::CaptureFailed
    );
    assert_eq!(desktop.accessibility_permitted(&soon()), Ok(false));
    assert!(matches!(
        desktop.window_root(key, &soon()),
        Err(BackendError::PermissionMissing(_))
    ));
    assert!(matches!(
        desktop.capture_window(key, &soon()),
        Err(BackendError::PermissionMissing(_))
    ));

    let over = Deadline::within(Duration::ZERO);
    assert_eq!(desktop.windows(&over), Err(BackendError::Timeout));
    assert_eq!(
        desktop.capture_window(key, &over),
        Err(BackendError::Timeout)
    );
}

/// The canary rule: what prints a desktop prints no text of it.
#[test]
fn the_debug_form_shows_no_text() {
    let shown = format!("{:?}", built_in());
    assert!(
        !shown.contains("Notes") && !shown.contains("Groceries"),
        "{shown}"
    );
}

#[test]
fn doctor_reads_the_scenario() {
    let findings = diagnose(None);
    assert!(findings.iter().all(|finding| finding.ok));
    let absent = diagnose(Some(FilePath::new("/nonexistent/scenario.toml")));
    assert!(
        absent
            .iter()
            .all(|finding| !finding.ok && finding.remedy.is_some())
    );
    let Err(refusal) = VirtualDesktop::open(Some(FilePath::new("/nonexistent/scenario.toml")))
    else {
        panic!("an absent scenario is opened");
    };
    assert!(refusal.to_string().contains("/nonexistent/scenario.toml"));
}
