//! Focus and keys.

use maka_cu_protocol::keys::{Key, Modifiers};
use maka_cu_protocol::sets::Modifier;

use super::*;

/// Two fields, an area, a check box, a slider, a default and a cancel button.
fn form() -> VirtualDesktop {
    let controls = [
        control(
            "text_field",
            40,
            &format!(
                "id = \"first\"\nlabel = \"First\"\nvalue = \"one two\"\nfocused = true\n{}",
                logs("on_change", "first is {first}")
            ),
        ),
        control("text_field", 72, "label = \"Second\"\nvalue = \"abc\""),
        control("secure_field", 104, "label = \"Secret\""),
        control("check_box", 136, "title = \"Box\""),
        control("slider", 168, "label = \"Slider\"\nnumber = 50.0"),
        control(
            "button",
            200,
            &format!("title = \"OK\"\ndefault = true\n{}", logs("on_press", "ok")),
        ),
        control(
            "button",
            232,
            &format!("title = \"Cancel\"\ncancel = true\n{}", logs("on_press", "cancel")),
        ),
        log(264),
        "[[apps.windows.controls]]\nkind = \"text_area\"\nlabel = \"Area\"\nvalue = \"\"\nbounds = [220, 40, 170, 90]\n"
            .to_owned(),
    ];
    app_with(&controls.concat())
}

fn field(desktop: &VirtualDesktop, label: &str) -> RawNode {
    let named = |text: &Option<AppText>| text.as_ref().is_some_and(|text| text.as_str() == label);
    let nodes = tree(desktop, "Main").nodes;
    let found = nodes
        .into_iter()
        .find(|node| named(&node.label) || named(&node.title));
    found.unwrap_or_else(|| panic!("there is no {label}"))
}

fn focused(desktop: &VirtualDesktop) -> RawNode {
    let nodes = tree(desktop, "Main").nodes;
    nodes.into_iter().find(|node| node.focused).unwrap()
}

fn name(node: &RawNode) -> String {
    let text = node.label.as_ref().or(node.title.as_ref());
    text.unwrap().as_str().to_owned()
}

fn acquire(desktop: &VirtualDesktop, label: &str) {
    let node = field(desktop, label);
    assert_eq!(
        desktop.focus(&node.node_ref, InputRoute::Window, &soon()),
        Ok(true)
    );
}

fn send(desktop: &VirtualDesktop, command: &KeyCommand) -> Result<Performed, PerformError> {
    let node = focused(desktop);
    assert_eq!(
        desktop.key_reach(&node.node_ref, command, &soon()),
        Ok(Reach::Window)
    );
    desktop.keys(&node.node_ref, command, InputRoute::Window, &soon())
}

fn type_in(desktop: &VirtualDesktop, text: &str) {
    let done = send(desktop, &KeyCommand::Type(AppText::new(text)));
    assert_eq!(done, Ok(Performed::by(Path::CgEventPid)));
}

/// Strikes `command+shift+a` and the like.
fn strike(desktop: &VirtualDesktop, chord: &str) {
    let mut words: Vec<&str> = chord.split('+').collect();
    let key = Key::parse(words.pop().unwrap()).unwrap();
    let modifiers = words.into_iter().map(|word| Modifier::parse(word).unwrap());
    let modifiers = modifiers.collect::<Modifiers>();
    send(desktop, &KeyCommand::Chord { key, modifiers }).unwrap();
}

fn selection(desktop: &VirtualDesktop, label: &str) -> Option<String> {
    let selected = desktop.selected_text(&field(desktop, label).node_ref, &soon());
    selected.unwrap().map(|text| text.as_str().to_owned())
}

#[test]
fn tab_goes_round_and_skips_what_cannot_be_used() {
    let desktop = form();
    let mut seen = Vec::new();
    for _ in 0..9 {
        seen.push(name(&focused(&desktop)));
        strike(&desktop, "Tab");
    }
    let order = [
        "First", "Second", "Secret", "Box", "Slider", "OK", "Cancel", "Area", "First",
    ];
    assert_eq!(seen, order);
    strike(&desktop, "shift+Tab");
    strike(&desktop, "shift+Tab");
    assert_eq!(name(&focused(&desktop)), "Area");
    let disabled = app_with(&format!(
        "{}{}",
        control("button", 40, "title = \"A\"\nfocused = true"),
        control("button", 80, "title = \"B\"\nenabled = false")
    ));
    strike(&disabled, "Tab");
    assert_eq!(name(&focused(&disabled)), "A");
}

/// E1: text arrives whole, and a deletion takes a whole character.
#[test]
fn text_is_typed_whole() {
    let desktop = form();
    acquire(&desktop, "Second");
    strike(&desktop, "command+a");
    type_in(&desktop, "漢字👨‍👩‍👧‍👦e\u{301}");
    assert_eq!(value(&field(&desktop, "Second")), Some("漢字👨‍👩‍👧‍👦e\u{301}"));
    strike(&desktop, "Backspace");
    strike(&desktop, "Backspace");
    assert_eq!(value(&field(&desktop, "Second")), Some("漢字"));
}

/// E5: lines and tabs come in the order in which they were typed, each doing what its key does.
#[test]
fn lines_and_tabs_keep_their_order() {
    let desktop = form();
    acquire(&desktop, "Area");
    type_in(&desktop, "ABC\nDEF\r\nGHI\tJ");
    assert_eq!(value(&field(&desktop, "Area")), Some("ABC\nDEF\nGHI\tJ"));
    acquire(&desktop, "First");
    strike(&desktop, "control+a");
    type_in(&desktop, "x\ty\n");
    assert_eq!(value(&field(&desktop, "First")), Some("x"));
    assert_eq!(value(&field(&desktop, "Second")), Some("y"));
    assert_eq!(
        logged(&desktop),
        "ok",
        "the return key pressed the default button"
    );
}

#[test]
fn return_escape_and_space_press_buttons() {
    let desktop = form();
    strike(&desktop, "Return");
    assert_eq!(logged(&desktop), "ok");
    strike(&desktop, "Escape");
    assert_eq!(logged(&desktop), "cancel");
    acquire(&desktop, "OK");
    strike(&desktop, "Space");
    assert_eq!(logged(&desktop), "ok");
    acquire(&desktop, "Box");
    strike(&desktop, "Space");
    assert_eq!(value(&field(&desktop, "Box")), Some("1"));
    type_in(&desktop, " ");
    assert_eq!(value(&field(&desktop, "Box")), Some("0"));
}

#[test]
fn chords_edit_a_text() {
    let rows: [(&[&str], &str, Option<&str>); 12] = [
        (&["Backspace"], "one tw", None),
        (&["Home", "ForwardDelete"], "ne two", None),
        (&["option+Backspace"], "one ", None),
        (&["command+Backspace"], "", None),
        (&["command+a", "Backspace"], "", None),
        (&["control+a"], "one two", Some("one two")),
        (&["shift+Left", "shift+Left"], "one two", Some("wo")),
        (&["shift+control+Left"], "one two", Some("two")),
        (&["shift+Home"], "one two", Some("one two")),
        (
            &["command+a", "command+c", "End", "command+v"],
            "one twoone two",
            None,
        ),
        (
            &["command+a", "command+x", "control+v", "control+v"],
            "one twoone two",
            None,
        ),
        (&["shift+a", "b", "option+c"], "one twoAb", None),
    ];
    for (chords, text, selected) in rows {
        let desktop = form();
        for chord in chords {
            strike(&desktop, chord);
        }
        assert_eq!(value(&field(&desktop, "First")), Some(text), "{chords:?}");
        assert_eq!(
            selection(&desktop, "First").as_deref(),
            selected,
            "{chords:?}"
        );
    }
}

#[test]
fn arrows_move_a_slider_by_its_step() {
    let desktop = form();
    acquire(&desktop, "Slider");
    for (chord, number) in [
        ("Right", "51"),
        ("Up", "52"),
        ("Left", "51"),
        ("PageDown", "41"),
        ("End", "100"),
        ("Up", "100"),
        ("Home", "0"),
    ] {
        strike(&desktop, chord);
        assert_eq!(value(&field(&desktop, "Slider")), Some(number), "{chord}");
    }
}

/// Spec §12.5 row 59: every key of the wire is taken.
#[test]
fn every_key_is_taken() {
    for key in Key::all() {
        for modifiers in [
            Modifiers::NONE,
            [Modifier::Shift].into_iter().collect(),
            [Modifier::Command, Modifier::Option].into_iter().collect(),
        ] {
            let desktop = form();
            send(&desktop, &KeyCommand::Chord { key, modifiers }).unwrap();
        }
    }
}

#[test]
fn effects_of_a_change_follow_each_run_of_keys() {
    let desktop = form();
    type_in(&desktop, "!");
    assert_eq!(logged(&desktop), "first is one two!");
    strike(&desktop, "Backspace");
    assert_eq!(logged(&desktop), "first is one two");
}

/// C2: keys go to a control that has the focus or nowhere; none is lost to a field that took the focus meanwhile.
#[test]
fn keys_reach_only_what_has_the_focus() {
    let desktop = form();
    let second = field(&desktop, "Second");
    let text = KeyCommand::Type(AppText::new("x"));
    let nowhere = desktop.keys(&second.node_ref, &text, InputRoute::Window, &soon());
    assert_eq!(nowhere, Err(PerformError::NotActionable));
    assert_eq!(value(&field(&desktop, "First")), Some("one two"));

    let stealing = app_with(&format!(
        "{}{}[[events]]\neffect = \"focus\"\ntarget = \"main/thief\"\ndelay_ms = 1",
        control("text_field", 40, "label = \"Mine\"\nfocused = true"),
        control("text_field", 80, "id = \"thief\"\nlabel = \"Thief\"")
    ));
    eventually("the focus is stolen", || {
        name(&focused(&stealing)) == "Thief"
    });
    let mine = field(&stealing, "Mine");
    let nowhere = stealing.keys(&mine.node_ref, &text, InputRoute::Window, &soon());
    assert_eq!(nowhere, Err(PerformError::NotActionable));
    assert_eq!(value(&field(&stealing, "Thief")), Some(""));
}

#[test]
fn a_text_without_a_key_is_not_sent() {
    let desktop = form();
    let node = focused(&desktop);
    let bell = KeyCommand::Type(AppText::new("a\u{7}b"));
    assert_eq!(
        desktop.key_reach(&node.node_ref, &bell, &soon()),
        Ok(Reach::Never)
    );
    let sent = desktop.keys(&node.node_ref, &bell, InputRoute::Window, &soon());
    assert_eq!(sent, Err(PerformError::NotActionable));
}

/// What a password holds is not selected out of it and not copied.
#[test]
fn a_password_is_neither_selected_nor_copied() {
    let desktop = form();
    acquire(&desktop, "Secret");
    type_in(&desktop, "hunter2");
    strike(&desktop, "command+a");
    assert_eq!(selection(&desktop, "Secret"), None);
    strike(&desktop, "command+c");
    strike(&desktop, "command+x");
    acquire(&desktop, "Second");
    strike(&desktop, "command+v");
    assert_eq!(value(&field(&desktop, "Second")), Some("abc"));
    let select =
        ElementCommand::SelectText(maka_cu_protocol::text::SomeText::new("hunter").unwrap());
    let secret = field(&desktop, "Secret");
    let outcome = desktop.perform(&secret.node_ref, &select, &soon());
    assert_eq!(outcome, Err(PerformError::NotActionable));
}

#[test]
fn a_shortcut_presses_wherever_the_focus_is() {
    let item = format!(
        "[[apps.windows.controls]]\nkind = \"menu\"\nid = \"file\"\ntitle = \"File\"\n[[apps.windows.controls]]\n\
         kind = \"menu_item\"\nin = \"file\"\ntitle = \"Save\"\nshortcut = \"command+shift+s\"\n{}",
        logs("on_press", "saved")
    );
    let help = format!(
        "title = \"Help\"\nshortcut = \"F1\"\n{}",
        logs("on_press", "helped")
    );
    let desktop = app_with(&format!(
        "{}{}{}{item}",
        control("text_field", 40, "label = \"F\"\nfocused = true"),
        control("button", 80, &help),
        log(120)
    ));
    strike(&desktop, "command+s");
    assert_eq!(logged(&desktop), "nothing");
    strike(&desktop, "shift+control+s");
    assert_eq!(logged(&desktop), "saved");
    strike(&desktop, "F1");
    assert_eq!(logged(&desktop), "helped");
    assert_eq!(value(&field(&desktop, "F")), Some(""));
}

#[test]
fn the_first_place_of_a_text_is_selected() {
    let desktop = form();
    let select = |text: &str| {
        let text = maka_cu_protocol::text::SomeText::new(text).unwrap();
        let first = field(&desktop, "First");
        desktop.perform(&first.node_ref, &ElementCommand::SelectText(text), &soon())
    };
    assert_eq!(selection(&desktop, "First"), None);
    assert_eq!(select("o"), Ok(Performed::by(Path::AxAttribute)));
    assert_eq!(selection(&desktop, "First").as_deref(), Some("o"));
    type_in(&desktop, "0");
    assert_eq!(value(&field(&desktop, "First")), Some("0ne two"));
    assert_eq!(select("three"), Err(PerformError::NotActionable));
}

#[test]
fn a_focus_goes_as_the_scenario_says() {
    let rows = [
        ("works", InputRoute::Window, Ok(true)),
        ("ignored", InputRoute::Window, Ok(false)),
        (
            "refused",
            InputRoute::Window,
            Err(PerformError::Refused {
                path: Path::AxAttribute,
            }),
        ),
        ("raises", InputRoute::Window, Ok(false)),
        ("raises", InputRoute::Global, Ok(true)),
    ];
    for (behavior, route, outcome) in rows {
        let keys = format!("label = \"F\"\nfocus = \"{behavior}\"");
        let desktop = app_with(&control("text_field", 40, &keys));
        let node = field(&desktop, "F");
        assert_eq!(
            desktop.focus(&node.node_ref, route, &soon()),
            outcome,
            "{behavior}"
        );
        assert_eq!(
            field(&desktop, "F").focused,
            outcome == Ok(true),
            "{behavior}"
        );
    }
    let label = app_with(&log(40));
    let node = field(&label, "Log");
    assert_eq!(
        label.focus(&node.node_ref, InputRoute::Window, &soon()),
        Ok(false)
    );
}

#[test]
fn focus_and_selection_can_be_seen() {
    let desktop = form();
    let picture = || {
        desktop
            .capture_window(window(&desktop, "Main").key, &soon())
            .unwrap()
    };
    let start = picture();
    strike(&desktop, "shift+Left");
    let selected = picture();
    assert!(start != selected);
    strike(&desktop, "Tab");
    assert!(selected != picture());
}
