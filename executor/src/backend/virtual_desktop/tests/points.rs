//! Gestures at points: what lies there gets them.

use maka_cu_protocol::action::Pages;
use maka_cu_protocol::roles;
use maka_cu_protocol::sets::{Direction, MouseButton};

use super::*;

const LEFT: Gesture = Gesture::Click {
    button: MouseButton::Left,
    count: 1,
};

const fn clicks(count: u8) -> Gesture {
    Gesture::Click {
        button: MouseButton::Left,
        count,
    }
}

fn buttons() -> VirtualDesktop {
    app_with(&format!(
        "{}{}{}{}{}",
        control(
            "button",
            50,
            &format!("title = \"B\"\n{}", logs("on_press", "pressed"))
        ),
        control("check_box", 90, "title = \"Box\""),
        control("slider", 130, "label = \"Slider\"\nnumber = 0.0"),
        control(
            "text_field",
            170,
            "label = \"Field\"\nvalue = \"one two three\"\nid = \"f\""
        ),
        log(210),
    ))
}

fn selected(desktop: &VirtualDesktop) -> Option<String> {
    let field = node(desktop, "Main", roles::TEXT_FIELD, "Field");
    let selected = desktop.selected_text(&field.node_ref, &soon()).unwrap();
    selected.map(|text| text.as_str().to_owned())
}

#[test]
fn a_click_goes_to_what_lies_under_it() {
    let desktop = buttons();
    gesture(&desktop, LEFT, 20.0, 60.0);
    assert_eq!(logged(&desktop), "pressed");
    gesture(&desktop, LEFT, 20.0, 100.0);
    let box_of = |desktop: &VirtualDesktop| node(desktop, "Main", roles::CHECK_BOX, "Box").selected;
    assert_eq!(box_of(&desktop), Some(true));
    gesture(&desktop, clicks(2), 20.0, 100.0);
    assert_eq!(box_of(&desktop), Some(true), "each click of two turns it");
    gesture(&desktop, LEFT, 300.0, 250.0);
    gesture(&desktop, LEFT, 9.9, 100.0);
    assert_eq!(box_of(&desktop), Some(true), "beside it is not on it");
    for button in [MouseButton::Right, MouseButton::Middle] {
        gesture(&desktop, Gesture::Click { button, count: 1 }, 20.0, 100.0);
        assert_eq!(box_of(&desktop), Some(true), "{button:?}");
    }
}

#[test]
fn clicks_in_a_text_set_the_caret_and_select() {
    let desktop = buttons();
    gesture(&desktop, clicks(2), 52.0, 185.0);
    assert_eq!(selected(&desktop).as_deref(), Some("two"));
    let field = node(&desktop, "Main", roles::TEXT_FIELD, "Field");
    assert!(field.focused, "a click gives it the focus");
    gesture(&desktop, clicks(3), 52.0, 185.0);
    assert_eq!(selected(&desktop).as_deref(), Some("one two three"));
    gesture(&desktop, LEFT, 21.0, 185.0);
    assert_eq!(selected(&desktop), None);
    let typed = KeyCommand::Type(AppText::new("0 "));
    desktop
        .keys(&field.node_ref, &typed, InputRoute::Window, &soon())
        .unwrap();
    let field = node(&desktop, "Main", roles::TEXT_FIELD, "Field");
    assert_eq!(value(&field), Some("0 one two three"));
}

#[test]
fn a_drag_selects_text_moves_a_knob_and_a_window() {
    let desktop = buttons();
    let from = |x: f64, y: f64| Gesture::Drag { from: at(x, y) };
    gesture(&desktop, from(20.0, 185.0), 209.0, 185.0);
    assert_eq!(selected(&desktop).as_deref(), Some("one two three"));
    gesture(&desktop, from(20.0, 145.0), 110.0, 400.0 - 255.0);
    let slider = node(&desktop, "Main", roles::SLIDER, "Slider");
    assert_eq!(value(&slider), Some("50"));
    gesture(&desktop, from(20.0, 60.0), 30.0, 70.0);
    assert_eq!(
        logged(&desktop),
        "pressed",
        "down and up over the same button"
    );
    gesture(&desktop, from(100.0, 10.0), 160.0, 5.0);
    assert_eq!(
        window(&desktop, "Main").bounds.rounded(),
        [100.0, 35.0, 400.0, 300.0]
    );
}

/// D4: a button that is down shows, and coming up elsewhere presses nothing.
#[test]
fn a_button_is_held_until_it_is_released() {
    let desktop = buttons();
    let picture = |desktop: &VirtualDesktop| {
        desktop
            .capture_window(window(desktop, "Main").key, &soon())
            .unwrap()
    };
    let before = picture(&desktop);
    gesture(&desktop, Gesture::Press, 20.0, 60.0);
    assert!(picture(&desktop) != before);
    assert_eq!(logged(&desktop), "nothing", "only the release presses");
    gesture(&desktop, Gesture::Release, 350.0, 60.0);
    assert!(picture(&desktop) == before);
    assert_eq!(logged(&desktop), "nothing");
    gesture(&desktop, Gesture::Release, 20.0, 60.0);
    assert_eq!(logged(&desktop), "nothing", "a release alone is nothing");
    gesture(&desktop, Gesture::Press, 20.0, 60.0);
    gesture(&desktop, Gesture::Release, 20.0, 60.0);
    assert_eq!(logged(&desktop), "pressed");
}

#[test]
fn the_close_button_closes() {
    let desktop = buttons();
    gesture(&desktop, LEFT, 380.0, 19.0);
    assert!(find_window(&desktop, "Main").is_none());
}

/// Spec §12.5 row 54: only a system-wide event moves the pointer, and what needs one says so.
#[test]
fn only_global_input_moves_the_pointer() {
    let desktop = buttons();
    let key = window(&desktop, "Main").key;
    let reach = |gesture: Gesture| {
        let command = PointCommand {
            gesture,
            at: at(20.0, 60.0),
        };
        desktop.point_reach(key, &command, &soon())
    };
    let outside = Gesture::Drag {
        from: at(-1.0, 60.0),
    };
    let inside = Gesture::Drag {
        from: at(0.0, 60.0),
    };
    assert_eq!(reach(Gesture::Move), Ok(Reach::GlobalOnly));
    assert_eq!(reach(outside), Ok(Reach::GlobalOnly));
    assert_eq!(reach(inside), Ok(Reach::Window));
    assert_eq!(reach(LEFT), Ok(Reach::Window));

    let send = |gesture: Gesture, route: InputRoute| {
        let command = PointCommand {
            gesture,
            at: at(20.0, 60.0),
        };
        desktop.point(key, &command, route, &soon())
    };
    assert_eq!(
        send(Gesture::Move, InputRoute::Window),
        Err(PerformError::NotActionable)
    );
    send(LEFT, InputRoute::Window).unwrap();
    assert_eq!(desktop.world().pointer(), (0, 0));
    let moved = send(Gesture::Move, InputRoute::Global);
    assert_eq!(moved, Ok(Performed::by(Path::CgEventGlobal)));
    assert_eq!(desktop.world().pointer(), (60, 100));
}

/// System-wide input is what a person's hand does: it goes to the window on top, and brings that to the front.
#[test]
fn global_input_goes_to_the_window_on_top() {
    let desktop = desktop(&format!(
        "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\ntitle = \"Main\"\n\
         bounds = [0, 0, 300, 300]\n{}{}[[apps]]\napp_id = \"c.d\"\nname = \"C\"\nrunning = true\n[[apps.windows]]\n\
         id = \"c\"\ntitle = \"Front\"\nbounds = [0, 0, 300, 100]",
        control(
            "button",
            50,
            &format!("title = \"B\"\n{}", logs("on_press", "pressed"))
        ),
        log(120),
    ));
    let key = window(&desktop, "Main").key;
    let front = desktop.frontmost_pid(&soon()).unwrap();
    assert_ne!(front, Some(key.pid));
    let click = |y: f64, route: InputRoute| {
        let command = PointCommand {
            gesture: LEFT,
            at: at(20.0, y),
        };
        desktop.point(key, &command, route, &soon()).unwrap();
    };
    click(60.0, InputRoute::Global);
    assert_eq!(logged(&desktop), "nothing", "another window lies there");
    click(60.0, InputRoute::Window);
    assert_eq!(
        logged(&desktop),
        "pressed",
        "events for this window do not care"
    );
    assert_eq!(desktop.frontmost_pid(&soon()).unwrap(), front);
    click(200.0, InputRoute::Global);
    assert_eq!(desktop.frontmost_pid(&soon()), Ok(Some(key.pid)));
    assert_eq!(desktop.windows(&soon()).unwrap()[0].key, key);
}

#[test]
fn a_window_says_how_input_reaches_it() {
    let rows = [
        ("background", Reach::Window),
        ("global_only", Reach::GlobalOnly),
        ("never", Reach::Never),
    ];
    for (input, reach) in rows {
        let desktop = desktop(&format!(
            "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\n\
             title = \"Main\"\nbounds = [0, 0, 300, 300]\ninput = \"{input}\"\n{}",
            control("text_field", 50, "label = \"F\"\nfocused = true")
        ));
        let key = window(&desktop, "Main").key;
        let command = PointCommand {
            gesture: LEFT,
            at: at(20.0, 60.0),
        };
        assert_eq!(desktop.point_reach(key, &command, &soon()), Ok(reach));
        let field = node(&desktop, "Main", roles::TEXT_FIELD, "F");
        let text = KeyCommand::Type(AppText::new("x"));
        assert_eq!(
            desktop.key_reach(&field.node_ref, &text, &soon()),
            Ok(reach)
        );
        let by_window = desktop.keys(&field.node_ref, &text, InputRoute::Window, &soon());
        assert_eq!(by_window.is_ok(), reach == Reach::Window, "{input}");
        let globally = desktop.keys(&field.node_ref, &text, InputRoute::Global, &soon());
        assert_eq!(globally.is_ok(), reach != Reach::Never, "{input}");
    }
}

#[test]
fn the_pointer_over_a_control_can_set_something_off() {
    let hint = format!("title = \"B\"\n{}", logs("on_hover", "a hint"));
    let desktop = app_with(&format!("{}{}", control("button", 50, &hint), log(90)));
    let key = window(&desktop, "Main").key;
    let command = PointCommand {
        gesture: Gesture::Move,
        at: at(20.0, 60.0),
    };
    desktop
        .point(key, &command, InputRoute::Global, &soon())
        .unwrap();
    assert_eq!(logged(&desktop), "a hint");
}

#[test]
fn a_person_at_work_is_noticed() {
    let calm = buttons();
    assert_eq!(calm.user_active(&soon()), Ok(false));
    gesture(&calm, LEFT, 20.0, 60.0);
    assert_eq!(
        calm.user_active(&soon()),
        Ok(false),
        "what we do does not count"
    );
    let busy = desktop("user_active = true\n[[apps]]\napp_id = \"a.b\"\nname = \"A\"");
    assert_eq!(busy.user_active(&soon()), Ok(true));
    let touched = app_with(&control(
        "button",
        50,
        "title = \"B\"\non_press = [{ effect = \"user_input\" }]",
    ));
    press(&touched, &tree(&touched, "Main").nodes[1]).unwrap();
    assert_eq!(touched.user_active(&soon()), Ok(true));
    eventually("the person rests", || {
        touched.user_active(&soon()) == Ok(false)
    });
}

#[test]
fn the_wheel_scrolls_what_lies_under_it() {
    let desktop = app_with(
        "[[apps.windows.controls]]\nkind = \"list\"\nid = \"list\"\ngenerated_rows = 30\nbounds = [10, 50, 200, 138]\n",
    );
    let wheel = |direction: Direction, pages: f64| {
        let pages = Pages::new(pages).unwrap();
        gesture(&desktop, Gesture::Scroll { direction, pages }, 50.0, 100.0);
        node(&desktop, "Main", roles::ROW, "Row 1")
            .frame
            .unwrap()
            .y()
    };
    let top = node(&desktop, "Main", roles::ROW, "Row 1")
        .frame
        .unwrap()
        .y();
    assert_eq!(wheel(Direction::Down, 1.0), top - 5.0 * 26.0);
    assert_eq!(wheel(Direction::Up, 0.2), top - 4.0 * 26.0);
    assert_eq!(wheel(Direction::Left, 1.0), top - 4.0 * 26.0);
    assert_eq!(
        wheel(Direction::Down, 100.0),
        top - 25.0 * 26.0,
        "to its end"
    );
}
