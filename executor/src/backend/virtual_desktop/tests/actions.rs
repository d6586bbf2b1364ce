//! Presses, writes, and what they bring about.

use maka_cu_protocol::roles;

use super::*;

const BUTTON: &str = "[[apps.windows.controls]]\nkind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [10, 50, 90, 30]\n";
const LABEL: &str = "[[apps.windows.controls]]\nkind = \"label\"\nid = \"l\"\ntitle = \"L\"\nbounds = [10, 90, 200, 30]\n";
const FIELD: &str = "[[apps.windows.controls]]\nkind = \"text_field\"\nid = \"f\"\nlabel = \"F\"\nvalue = \"old\"\nbounds = [10, 130, 200, 30]\n";

fn status(desktop: &VirtualDesktop, label: &str) -> bool {
    let nodes = tree(desktop, "Main").nodes;
    nodes
        .iter()
        .any(|node| node.role == roles::STATIC_TEXT && title(node) == label)
}

#[test]
fn saving_a_note_shows_in_status_and_list() {
    let desktop = built_in();
    let field = node(&desktop, "Notes", roles::TEXT_FIELD, "Title");
    assert_eq!(value(&field), Some("Groceries"));
    assert_eq!(
        write(&desktop, &field, "Zürich 漢字"),
        Ok(Performed::by(Path::AxAttribute))
    );
    assert_eq!(
        reread(&desktop, &field).as_ref().and_then(value),
        Some("Zürich 漢字")
    );
    let save = node(&desktop, "Notes", roles::BUTTON, "Save");
    assert_eq!(press(&desktop, &save), Ok(Performed::by(Path::AxAction)));
    node(&desktop, "Notes", roles::STATIC_TEXT, "Saved: Zürich 漢字");
    let row = node(&desktop, "Notes", roles::ROW, "Zürich 漢字");
    assert_eq!(row.sibling_index, 3, "the new row is the last one");
}

#[test]
fn a_row_is_selected_in_place_of_the_other() {
    let desktop = built_in();
    let row = node(&desktop, "Notes", roles::ROW, "Travel plan");
    assert_eq!(row.selected, Some(false));
    assert_eq!(press(&desktop, &row), Ok(Performed::by(Path::AxSelect)));
    assert_eq!(reread(&desktop, &row).unwrap().selected, Some(true));
    assert_eq!(
        node(&desktop, "Notes", roles::ROW, "Groceries").selected,
        Some(false)
    );
}

#[test]
fn a_check_box_turns_and_a_slider_moves_in_steps() {
    let desktop = built_in();
    let login = node(&desktop, "Settings", roles::CHECK_BOX, "Start at login");
    assert_eq!((login.selected, value(&login)), (Some(false), Some("0")));
    press(&desktop, &login).unwrap();
    let turned = reread(&desktop, &login).unwrap();
    assert_eq!((turned.selected, value(&turned)), (Some(true), Some("1")));

    let volume = node(&desktop, "Settings", roles::SLIDER, "Volume");
    write(&desktop, &volume, "63").unwrap();
    assert_eq!(
        reread(&desktop, &volume).as_ref().and_then(value),
        Some("65")
    );
    node(
        &desktop,
        "Settings",
        roles::STATIC_TEXT,
        "Volume 65 is not applied yet",
    );
    let refused = Err(PerformError::Refused {
        path: Path::AxAttribute,
    });
    assert_eq!(write(&desktop, &volume, "loud"), refused);
}

#[test]
fn a_disabled_button_takes_a_press_and_does_nothing() {
    let desktop = built_in();
    let update = node(&desktop, "Settings", roles::BUTTON, "Install update");
    assert!(!update.enabled);
    assert!(press(&desktop, &update).is_ok());
    let apply = node(&desktop, "Settings", roles::BUTTON, "Apply");
    press(&desktop, &apply).unwrap();
    assert!(
        reread(&desktop, &update).unwrap().enabled,
        "applying enables it"
    );
    node(&desktop, "Settings", roles::STATIC_TEXT, "Applied for Ada");
}

/// What a password field holds is written and never read.
#[test]
fn a_secure_value_is_never_read() {
    let desktop = built_in();
    let password = node(&desktop, "Settings", roles::TEXT_FIELD, "Password");
    assert_eq!(password.subrole.as_deref(), Some(roles::SECURE_TEXT_FIELD));
    assert!(password.secure && password.value_settable && password.value.is_none());
    write(&desktop, &password, "hunter2").unwrap();
    assert!(reread(&desktop, &password).unwrap().value.is_none());
}

#[test]
fn what_cannot_be_pressed_or_written_says_so() {
    let desktop = built_in();
    let field = node(&desktop, "Notes", roles::TEXT_FIELD, "Title");
    let save = node(&desktop, "Notes", roles::BUTTON, "Save");
    assert_eq!(press(&desktop, &field), Err(PerformError::NotActionable));
    assert_eq!(
        write(&desktop, &save, "text"),
        Err(PerformError::NotActionable)
    );
    let menu = ElementCommand::Perform(ElementVerb::ShowMenu);
    assert_eq!(
        desktop.perform(&save.node_ref, &menu, &soon()),
        Err(PerformError::NotActionable)
    );
    let foreign = NodeRef::new("a node of another back end");
    assert_eq!(
        desktop.perform(&foreign, &menu, &soon()),
        Err(PerformError::NotActionable)
    );
}

#[test]
fn a_press_goes_as_the_scenario_says() {
    let action = Path::AxAction;
    let rows = [
        ("works", Ok(Performed::by(action)), true),
        ("ignored", Ok(Performed::by(action)), false),
        (
            "refused",
            Err(PerformError::Refused { path: action }),
            false,
        ),
        ("unknown", Err(PerformError::Unknown { path: action }), true),
    ];
    for (behavior, outcome, happens) in rows {
        let effect = "on_press = [{ effect = \"set_text\", target = \"l\", text = \"pressed\" }]\n";
        let desktop = app_with(&format!("{BUTTON}press = \"{behavior}\"\n{effect}{LABEL}"));
        let button = node(&desktop, "Main", roles::BUTTON, "B");
        assert_eq!(press(&desktop, &button), outcome, "{behavior}");
        assert_eq!(status(&desktop, "pressed"), happens, "{behavior}");
    }
}

#[test]
fn a_write_goes_as_the_scenario_says() {
    let attribute = Path::AxAttribute;
    let rows = [
        ("works", Ok(Performed::by(attribute)), "a long new value"),
        ("ignored", Ok(Performed::by(attribute)), "old"),
        ("clamped", Ok(Performed::by(attribute)), "a long n"),
        (
            "refused",
            Err(PerformError::Refused { path: attribute }),
            "old",
        ),
        (
            "unknown",
            Err(PerformError::Unknown { path: attribute }),
            "a long new value",
        ),
    ];
    for (behavior, outcome, after) in rows {
        let desktop = app_with(&format!("{FIELD}write = \"{behavior}\"\n"));
        let field = node(&desktop, "Main", roles::TEXT_FIELD, "F");
        assert_eq!(
            write(&desktop, &field, "a long new value"),
            outcome,
            "{behavior}"
        );
        assert_eq!(
            reread(&desktop, &field).as_ref().and_then(value),
            Some(after),
            "{behavior}"
        );
    }
}

#[test]
fn a_write_sets_off_on_change_with_the_new_value() {
    let effect = "on_change = [{ effect = \"set_text\", target = \"l\", text = \"now {f}\" }]\n";
    let desktop = app_with(&format!("{FIELD}{effect}{LABEL}"));
    write(
        &desktop,
        &node(&desktop, "Main", roles::TEXT_FIELD, "F"),
        "new",
    )
    .unwrap();
    assert!(status(&desktop, "now new"));
}

/// Every effect of the scenario language, each seen through the trait.
#[test]
fn effects_change_the_desktop() {
    let on_press =
        |effects: &str| app_with(&format!("{BUTTON}on_press = [{effects}]\n{LABEL}{FIELD}"));
    let pressed = |effects: &str| {
        let desktop = on_press(effects);
        let button = node(&desktop, "Main", roles::BUTTON, "B");
        press(&desktop, &button).unwrap();
        desktop
    };

    assert!(status(&pressed("{ effect = \"noop\" }"), "L"));
    assert!(status(
        &pressed("{ effect = \"set_text\", target = \"l\", text = \"{f}!\" }"),
        "old!"
    ));

    let desktop = pressed("{ effect = \"set_label\", target = \"b\", text = \"described\" }");
    assert_eq!(
        title(&node(&desktop, "Main", roles::BUTTON, "described")),
        "B"
    );

    let desktop = pressed("{ effect = \"disable\", target = \"f\" }");
    assert!(!node(&desktop, "Main", roles::TEXT_FIELD, "F").enabled);

    let desktop = pressed("{ effect = \"set_window_title\", text = \"Renamed\" }");
    assert!(find_window(&desktop, "Main").is_none());
    assert_eq!(title(&tree(&desktop, "Renamed").nodes[0]), "Renamed");

    let desktop = pressed("{ effect = \"move_window\", to = [-20, 70] }");
    let bounds = window(&desktop, "Main").bounds;
    assert_eq!(
        (bounds.x(), bounds.y(), bounds.width()),
        (-20.0, 70.0, 400.0)
    );

    let desktop = pressed("{ effect = \"close_window\" }");
    assert!(desktop.windows(&soon()).unwrap().is_empty());
    assert_eq!(
        desktop.applications(&soon()).unwrap().len(),
        1,
        "the process goes on"
    );
    assert_eq!(desktop.frontmost_pid(&soon()), Ok(None));

    let desktop = pressed("{ effect = \"close_window\" }, { effect = \"open_window\" }");
    assert_ne!(
        window(&desktop, "Main").key.window_id,
        window(&built_in(), "Settings").key.window_id
    );

    let desktop = pressed("{ effect = \"exit_app\" }");
    assert!(desktop.applications(&soon()).unwrap().is_empty());

    let desktop = pressed("{ effect = \"lock_screen\" }");
    assert_eq!(desktop.screen_locked(&soon()), Ok(true));
    let key = window(&desktop, "Main").key;
    assert_eq!(
        desktop.capture_window(key, &soon()),
        Err(BackendError::ScreenLocked)
    );
}

#[test]
fn a_removed_control_stops_answering() {
    let desktop = app_with(&format!(
        "{BUTTON}on_press = [{{ effect = \"remove\", target = \"l\" }}]\n{LABEL}"
    ));
    let label = node(&desktop, "Main", roles::STATIC_TEXT, "L");
    let button = node(&desktop, "Main", roles::BUTTON, "B");
    press(&desktop, &button).unwrap();
    assert!(reread(&desktop, &label).is_none());
    assert!(reread(&desktop, &button).is_some());
    assert!(
        tree(&desktop, "Main")
            .nodes
            .iter()
            .all(|node| title(node) != "L")
    );
    assert!(
        press(&desktop, &button).is_ok(),
        "a second removal finds nothing and does nothing"
    );
}

#[test]
fn a_delayed_effect_uses_the_text_of_its_cause() {
    let effects =
        "on_press = [{ effect = \"set_text\", target = \"l\", text = \"{f}\", delay_ms = 20 }]\n";
    let desktop = app_with(&format!("{BUTTON}{effects}{LABEL}{FIELD}"));
    let button = node(&desktop, "Main", roles::BUTTON, "B");
    press(&desktop, &button).unwrap();
    write(
        &desktop,
        &node(&desktop, "Main", roles::TEXT_FIELD, "F"),
        "new",
    )
    .unwrap();
    eventually("the label changes", || status(&desktop, "old"));
}

#[test]
fn a_restless_control_changes_by_itself() {
    let desktop = app_with(&format!("{LABEL}restless_ms = 1\n"));
    let first = tree(&desktop, "Main").nodes[1].clone();
    assert!(title(&first).starts_with("L "));
    eventually("the title changes", || {
        title(&reread(&desktop, &first).unwrap()) != title(&first)
    });
}

#[test]
fn an_event_happens_without_a_cause() {
    let desktop = desktop(
        "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
         bounds = [0, 0, 200, 200]\n[[events]]\neffect = \"close_window\"\ntarget = \"main\"\ndelay_ms = 10",
    );
    eventually("the window closes", || {
        find_window(&desktop, "Main").is_none()
    });
}
