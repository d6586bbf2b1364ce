//! Faults on demand: controls that decline, ignore, hang or vanish.

use maka_cu_protocol::roles;

use super::*;

const KINDS: [&str; 6] = [
    "works", "ignored", "refused", "unknown", "hangs", "vanishes",
];

fn brief() -> Deadline {
    Deadline::within(Duration::from_millis(20))
}

/// A control and whether it survives and changed, for each behavior in the order of [`KINDS`].
fn check(
    key: &str,
    path: Path,
    act: impl Fn(&VirtualDesktop, &RawNode) -> Result<Performed, PerformError>,
    changed: impl Fn(&RawNode) -> bool,
) {
    let outcomes = [
        Ok(Performed::by(path)),
        Ok(Performed::by(path)),
        Err(PerformError::Refused { path }),
        Err(PerformError::Unknown { path }),
        Err(PerformError::Unknown { path }),
        Err(PerformError::NotActionable),
    ];
    for (behavior, outcome) in KINDS.into_iter().zip(outcomes) {
        let keys =
            format!("label = \"F\"\nvalue = \"old\"\nfocused = true\n{key} = \"{behavior}\"");
        let desktop = app_with(&control("text_field", 50, &keys));
        let field = node(&desktop, "Main", roles::TEXT_FIELD, "F");
        assert_eq!(act(&desktop, &field), outcome, "{key} {behavior}");
        let after = reread(&desktop, &field);
        assert_eq!(after.is_none(), behavior == "vanishes", "{key} {behavior}");
        let happens = ["works", "unknown"].contains(&behavior);
        assert_eq!(
            after.is_some_and(|node| changed(&node)),
            happens,
            "{key} {behavior}"
        );
    }
}

/// A6: a control that hangs or vanishes gives a typed answer, and the desktop goes on.
#[test]
fn writes_and_keys_go_as_the_scenario_says() {
    let set = ElementCommand::SetValue(AppText::new("new"));
    check(
        "write",
        Path::AxAttribute,
        |desktop, field| desktop.perform(&field.node_ref, &set, &brief()),
        |field| value(field) == Some("new"),
    );
    let text = KeyCommand::Type(AppText::new("!"));
    check(
        "keys",
        Path::CgEventPid,
        |desktop, field| desktop.keys(&field.node_ref, &text, InputRoute::Window, &brief()),
        |field| value(field) == Some("old!"),
    );
}

#[test]
fn a_control_that_hangs_takes_the_time_it_is_given() {
    let desktop = app_with(&control("button", 50, "title = \"B\"\npress = \"hangs\""));
    let button = node(&desktop, "Main", roles::BUTTON, "B");
    let deadline = brief();
    let press = ElementCommand::Perform(ElementVerb::Press);
    let outcome = desktop.perform(&button.node_ref, &press, &deadline);
    assert!(deadline.is_over(), "it answered before the time was up");
    assert_eq!(
        outcome,
        Err(PerformError::Unknown {
            path: Path::AxAction
        })
    );
    assert!(reread(&desktop, &button).is_some());
}

/// An event is never answered: what a control declines looks like a click beside it.
#[test]
fn a_click_on_a_control_that_declines_does_nothing() {
    for behavior in ["ignored", "refused", "hangs", "vanishes"] {
        let keys = format!(
            "title = \"B\"\npress = \"{behavior}\"\n{}",
            logs("on_press", "pressed")
        );
        let desktop = app_with(&format!("{}{}", control("button", 50, &keys), log(90)));
        let left = Gesture::Click {
            button: maka_cu_protocol::sets::MouseButton::Left,
            count: 1,
        };
        gesture(&desktop, left, 20.0, 60.0);
        assert_eq!(logged(&desktop), "nothing", "{behavior}");
    }
}

#[test]
fn a_fault_can_start_and_end_while_the_desktop_runs() {
    let fault = |title: &str, behavior: &str| {
        format!(
            "title = \"{title}\"\non_press = [{{ effect = \"set_behavior\", target = \"b\", behavior = \"{behavior}\" }}]"
        )
    };
    let desktop = app_with(&format!(
        "{}{}{}{}",
        control(
            "button",
            50,
            &format!("id = \"b\"\ntitle = \"B\"\n{}", logs("on_press", "pressed"))
        ),
        control("button", 90, &fault("Break", "refused")),
        control("button", 130, &fault("Mend", "works")),
        log(170)
    ));
    let press_named = |name: &str| press(&desktop, &node(&desktop, "Main", roles::BUTTON, name));
    press_named("Break").unwrap();
    assert!(press_named("B").is_err());
    assert_eq!(logged(&desktop), "nothing");
    press_named("Mend").unwrap();
    press_named("B").unwrap();
    assert_eq!(logged(&desktop), "pressed");
}

#[test]
fn a_field_that_is_full_takes_no_more() {
    let desktop = app_with(&control(
        "text_field",
        50,
        "label = \"F\"\nvalue = \"abc\"\nfocused = true\nmax_chars = 5",
    ));
    let field = node(&desktop, "Main", roles::TEXT_FIELD, "F");
    let text = KeyCommand::Type(AppText::new("defg"));
    desktop
        .keys(&field.node_ref, &text, InputRoute::Window, &soon())
        .unwrap();
    assert_eq!(value(&reread(&desktop, &field).unwrap()), Some("abcde"));
}

#[test]
fn steps_of_a_slider_are_exact() {
    let desktop = app_with(&control(
        "slider",
        50,
        "label = \"S\"\nnumber = 10.0\nstep = 2.5",
    ));
    let slider = node(&desktop, "Main", roles::SLIDER, "S");
    assert_eq!(
        slider.actions,
        [ElementVerb::Increment, ElementVerb::Decrement]
    );
    verb(&desktop, &slider, ElementVerb::Increment).unwrap();
    assert_eq!(value(&reread(&desktop, &slider).unwrap()), Some("12.5"));
    verb(&desktop, &slider, ElementVerb::Decrement).unwrap();
    verb(&desktop, &slider, ElementVerb::Decrement).unwrap();
    assert_eq!(value(&reread(&desktop, &slider).unwrap()), Some("7.5"));
}
