//! Windows that are moved, resized, minimised and raised, each as far as its scenario lets it.

use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};

use super::*;

fn app(window_keys: &str) -> VirtualDesktop {
    desktop(&format!(
        "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"other\"\ntitle = \"Other\"\n\
         bounds = [500, 40, 200, 200]\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
         bounds = [40, 40, 400, 300]\n{window_keys}\n"
    ))
}

fn root(desktop: &VirtualDesktop) -> RawNode {
    tree(desktop, "Main").nodes.remove(0)
}

fn order(desktop: &VirtualDesktop, command: ElementCommand) -> Result<Performed, PerformError> {
    desktop.perform(&root(desktop).node_ref, &command, &soon())
}

fn move_to(x: f64, y: f64) -> ElementCommand {
    ElementCommand::MoveWindow(ScreenPoint::try_new(x, y).unwrap())
}

fn resize_to(width: f64, height: f64) -> ElementCommand {
    ElementCommand::ResizeWindow(ScreenSize::try_new(width, height).unwrap())
}

fn bounds(desktop: &VirtualDesktop) -> [f64; 4] {
    window(desktop, "Main").bounds.rounded()
}

/// Spec §12.5 row 63, as far as it is the desktop's: positions are taken as given, negative ones too (B2).
#[test]
fn a_window_goes_where_its_rule_lets_it() {
    let done = Ok(Performed::by(Path::AxAttribute));
    let refused = Err(PerformError::Refused {
        path: Path::AxAttribute,
    });
    let unknown = Err(PerformError::Unknown {
        path: Path::AxAttribute,
    });
    let still = [40.0, 40.0, 400.0, 300.0];
    let rows = [
        ("works", done, [-25.0, 2000.0, 400.0, 300.0]),
        ("fixed", Err(PerformError::NotActionable), still),
        ("clamped", done, [0.0, 500.0, 400.0, 300.0]),
        ("ignored", done, still),
        ("refused", refused, still),
        ("unknown", unknown, [-25.0, 2000.0, 400.0, 300.0]),
    ];
    for (rule, outcome, after) in rows {
        let desktop = app(&format!("move = \"{rule}\""));
        assert_eq!(order(&desktop, move_to(-25.4, 2000.0)), outcome, "{rule}");
        assert_eq!(bounds(&desktop), after, "{rule}");
    }
}

#[test]
fn a_size_stays_within_the_limits_of_the_window() {
    let desktop = app("min_size = [200, 150]\nmax_size = [900, 700]");
    let rows = [
        ([640.0, 480.0], [640.0, 480.0]),
        ([10.0, 0.0], [200.0, 150.0]),
        ([1e9, 600.0], [900.0, 600.0]),
    ];
    for ([width, height], after) in rows {
        order(&desktop, resize_to(width, height)).unwrap();
        assert_eq!(bounds(&desktop)[2..], after);
        let frame = root(&desktop).frame.unwrap();
        assert_eq!(
            [frame.width(), frame.height()],
            after,
            "the root covers the window"
        );
        let picture = desktop
            .capture_window(window(&desktop, "Main").key, &soon())
            .unwrap();
        assert_eq!(
            [f64::from(picture.width()), f64::from(picture.height())],
            after
        );
    }
    let clamped = app("resize = \"clamped\"");
    order(&clamped, resize_to(3000.0, 3000.0)).unwrap();
    assert_eq!(
        bounds(&clamped),
        [40.0, 40.0, 1240.0, 760.0],
        "as far as the display goes"
    );
    let fixed = app("resize = \"fixed\"");
    assert_eq!(
        order(&fixed, resize_to(100.0, 100.0)),
        Err(PerformError::NotActionable)
    );
}

/// C4: a minimised window is not in the list and cannot be captured; its nodes still answer, as on a real desktop.
#[test]
fn a_minimised_window_leaves_the_screen() {
    let desktop = app("");
    let (key, node) = (window(&desktop, "Main").key, root(&desktop));
    let before = desktop
        .capture_display(&DisplayId::try_new("1").unwrap(), &soon())
        .unwrap();
    order(&desktop, ElementCommand::MinimizeWindow).unwrap();
    assert!(find_window(&desktop, "Main").is_none());
    assert_eq!(
        desktop.capture_window(key, &soon()),
        Err(BackendError::WindowGone)
    );
    assert!(matches!(
        desktop.window_root(key, &soon()),
        Err(BackendError::WindowGone)
    ));
    assert!(reread(&desktop, &node).is_some());
    assert_eq!(
        desktop.frontmost_pid(&soon()),
        Ok(Some(key.pid)),
        "its application has another window"
    );
    let after = desktop
        .capture_display(&DisplayId::try_new("1").unwrap(), &soon())
        .unwrap();
    assert!(before != after, "the display shows that it is gone");
    let reach = desktop.key_reach(
        &node.node_ref,
        &KeyCommand::Type(AppText::new("a")),
        &soon(),
    );
    assert_eq!(reach, Err(BackendError::WindowGone));
    verb(&desktop, &node, ElementVerb::Raise).unwrap();
    assert_eq!(window(&desktop, "Main").key, key, "raising brings it back");
}

/// An animation: the window list shows the new place later than the order was answered.
#[test]
fn a_window_that_lags_arrives_later() {
    let desktop = app("lag_ms = 30");
    order(&desktop, move_to(100.0, 120.0)).unwrap();
    eventually("the window arrives", || {
        bounds(&desktop) == [100.0, 120.0, 400.0, 300.0]
    });
    order(&desktop, ElementCommand::MinimizeWindow).unwrap();
    eventually("the window leaves", || {
        find_window(&desktop, "Main").is_none()
    });
}

/// To raise a window puts it in front of its siblings and takes no other application's place.
#[test]
fn raising_does_not_take_the_foreground() {
    let desktop = desktop(
        "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
         bounds = [0, 0, 200, 200]\n[[apps.windows]]\nid = \"two\"\ntitle = \"Two\"\nbounds = [0, 0, 200, 200]\n\
         [[apps]]\napp_id = \"c.d\"\nname = \"C\"\nrunning = true\n[[apps.windows]]\nid = \"c\"\ntitle = \"Front\"\n\
         bounds = [0, 0, 200, 200]",
    );
    let front = desktop.frontmost_pid(&soon());
    verb(&desktop, &root(&desktop), ElementVerb::Raise).unwrap();
    let titles: Vec<_> = desktop
        .windows(&soon())
        .unwrap()
        .into_iter()
        .map(|window| window.title.unwrap().as_str().to_owned())
        .collect();
    assert_eq!(titles, ["Front", "Main", "Two"]);
    assert_eq!(desktop.frontmost_pid(&soon()), front);
}

#[test]
fn window_actions_belong_to_the_root() {
    let desktop = app_with(&control("button", 50, "title = \"B\""));
    let button = node(&desktop, "Main", maka_cu_protocol::roles::BUTTON, "B");
    for command in [
        move_to(0.0, 0.0),
        resize_to(200.0, 200.0),
        ElementCommand::MinimizeWindow,
    ] {
        let outcome = desktop.perform(&button.node_ref, &command, &soon());
        assert_eq!(outcome, Err(PerformError::NotActionable), "{command:?}");
    }
}

#[test]
fn effects_handle_windows_too() {
    let pressed = |effects: &str| {
        let button = format!("title = \"B\"\non_press = [{effects}]");
        let desktop = app_with(&control("button", 50, &button));
        press(&desktop, &tree(&desktop, "Main").nodes[1]).unwrap();
        desktop
    };
    let desktop = pressed("{ effect = \"resize_window\", size = [500, 350] }");
    assert_eq!(bounds(&desktop)[2..], [500.0, 350.0]);
    let desktop = pressed("{ effect = \"minimize_window\" }");
    assert!(find_window(&desktop, "Main").is_none());
    assert_eq!(desktop.frontmost_pid(&soon()), Ok(None));
    let desktop = pressed("{ effect = \"minimize_window\" }, { effect = \"restore_window\" }");
    assert!(find_window(&desktop, "Main").is_some());
}

/// A sheet keeps its window from being used for as long as it is open.
#[test]
fn a_sheet_blocks_its_window() {
    let sheet = "[[apps.windows]]\nid = \"sheet\"\ntitle = \"Sheet\"\nstyle = \"sheet\"\nmodal_for = \"main\"\n\
                 bounds = [100, 80, 250, 150]\n[[apps.windows.controls]]\nkind = \"button\"\ntitle = \"Done\"\n\
                 bounds = [10, 50, 90, 30]\non_press = [{ effect = \"close_window\" }]\n";
    let button = format!(
        "title = \"B\"\nfocused = true\n{}",
        logs("on_press", "pressed")
    );
    let desktop = app_with(&format!(
        "{}{}{sheet}",
        control("button", 50, &button),
        log(90)
    ));
    let b = node(&desktop, "Main", maka_cu_protocol::roles::BUTTON, "B");
    let refused = PerformError::Refused {
        path: Path::AxAction,
    };
    assert_eq!(press(&desktop, &b), Err(refused));
    let left = Gesture::Click {
        button: maka_cu_protocol::sets::MouseButton::Left,
        count: 1,
    };
    gesture(&desktop, left, 20.0, 60.0);
    assert_eq!(logged(&desktop), "nothing");
    assert_eq!(
        tree(&desktop, "Sheet").nodes[0].role,
        maka_cu_protocol::roles::SHEET
    );
    let done = node(&desktop, "Sheet", maka_cu_protocol::roles::BUTTON, "Done");
    press(&desktop, &done).unwrap();
    press(&desktop, &b).unwrap();
    assert_eq!(logged(&desktop), "pressed");
}
