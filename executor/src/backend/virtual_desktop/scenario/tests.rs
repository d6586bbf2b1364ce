//! Scenarios that hold together and scenarios that do not.

use proptest::prelude::*;

use super::*;

fn check_refused(name: &str, text: &str, line: usize, mentions: &[&str]) {
    let Err(error) = Scenario::parse(text) else {
        panic!("{name}: this scenario is accepted")
    };
    let said = format!("example.toml:{error}");
    assert_eq!(error.line, line, "{name}: {said}");
    for mention in mentions {
        assert!(
            said.contains(mention),
            "{name}: `{said}` does not mention `{mention}`"
        );
    }
}

/// One application with one window, whose controls stand from line 9 on.
fn with_controls(controls: &str) -> String {
    format!(
        "[[apps]]\napp_id = \"org.example.App\"\nname = \"App\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\n\
         title = \"Main\"\nbounds = [0, 0, 300, 200]\n{controls}"
    )
}

fn control(body: &str) -> String {
    with_controls(&format!("[[apps.windows.controls]]\n{body}"))
}

#[test]
fn the_built_in_scenario_holds_together_and_fits_its_display() {
    let scenario = Scenario::built_in();
    let display = scenario.displays[0].bounds;
    assert_eq!((display.width, display.height), (1280, 800));
    for window in &scenario.windows {
        assert!(
            display.contains_rect(window.bounds),
            "{} lies outside the display",
            window.id
        );
    }
    let ids: Vec<_> = scenario
        .apps
        .iter()
        .map(|app| app.app_id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "org.maka.Settings",
            "org.maka.Tips",
            "org.maka.Notes",
            "org.maka.TestEntry",
            "org.maka.Archive"
        ]
    );
}

#[test]
fn every_mistake_is_named_with_line_field_and_what_to_write() {
    let apps = "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\n";
    let rows: Vec<(&str, String, usize, &[&str])> = vec![
        ("no TOML", "apps = [".into(), 1, &["unclosed array"]),
        ("nothing at all", String::new(), 1, &["apps"]),
        (
            "no application",
            "apps = []".into(),
            1,
            &["apps", "write 1 to 64"],
        ),
        (
            "an unknown key",
            format!("{apps}colour = 1"),
            4,
            &["unknown field", "`colour`", "accent"],
        ),
        (
            "a wrong type",
            format!("{apps}running = \"yes\""),
            4,
            &["`running`", "boolean"],
        ),
        (
            "a color by name",
            format!("{apps}accent = \"red\""),
            4,
            &["apps.accent", "#rrggbb"],
        ),
        (
            "an empty id",
            "[[apps]]\napp_id = \"\"\nname = \"A\"".into(),
            2,
            &["apps.app_id"],
        ),
        (
            "an id of the `pid:` form",
            "[[apps]]\napp_id = \"pid:7\"\nname = \"A\"".into(),
            2,
            &["apps.app_id"],
        ),
        (
            "an id used twice",
            format!("{apps}{apps}"),
            5,
            &["apps.app_id", "another application"],
        ),
        (
            "a nameless application",
            "[[apps]]\napp_id = \"a.b\"\nname = \"\"".into(),
            2,
            &["apps.name"],
        ),
        (
            "a scale of 3",
            format!("{apps}[[displays]]\nid = \"1\"\nsize = [800, 600]\nscale = 3"),
            5,
            &["displays.scale", "1 or 2"],
        ),
        (
            "a tiny display",
            format!("{apps}[[displays]]\nid = \"1\"\nsize = [8, 600]"),
            5,
            &["displays.size"],
        ),
        (
            "a main display off the origin",
            format!("{apps}[[displays]]\nid = \"1\"\nsize = [800, 600]\norigin = [1, 0]"),
            5,
            &["displays.origin"],
        ),
        (
            "a display on another one",
            format!(
                "{apps}[[displays]]\nid = \"1\"\nsize = [800, 600]\n[[displays]]\nid = \"2\"\nsize = [800, 600]\norigin = [799, 0]"
            ),
            8,
            &["displays.origin", "beside"],
        ),
        (
            "an unknown kind",
            control("kind = \"knob\""),
            10,
            &["unknown variant", "slider"],
        ),
        (
            "a control without bounds",
            control("kind = \"button\"\ntitle = \"B\""),
            10,
            &["main/controls[0].bounds", "needs"],
        ),
        (
            "a button without a title",
            control("kind = \"button\"\nbounds = [0, 40, 80, 30]"),
            10,
            &["title", "needs"],
        ),
        (
            "a control in the title bar",
            control("kind = \"list\"\nid = \"l\"\nbounds = [0, 10, 80, 30]"),
            10,
            &["main/l.bounds", "[0, 38, 300, 162]"],
        ),
        (
            "a control of no size",
            control("kind = \"list\"\nbounds = [0, 40, 0, 30]"),
            10,
            &["bounds"],
        ),
        (
            "a key of another kind",
            control("kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\nvalue = \"v\""),
            10,
            &["main/controls[0].value", "remove it"],
        ),
        (
            "a container that is not there",
            control("kind = \"list\"\nin = \"box\"\nbounds = [0, 40, 80, 30]"),
            10,
            &["main/controls[0].in", "written above"],
        ),
        (
            "an item outside a menu",
            control("kind = \"menu_item\"\ntitle = \"Save\""),
            10,
            &["in", "`menu`"],
        ),
        (
            "a selected row that is not there",
            control("kind = \"list\"\nrows = [\"a\"]\nselected = 1\nbounds = [0, 40, 80, 30]"),
            10,
            &["selected"],
        ),
        (
            "a slider outside its range",
            control("kind = \"slider\"\nnumber = 101.0\nbounds = [0, 40, 80, 30]"),
            10,
            &["number"],
        ),
        (
            "an unknown effect",
            control(
                "kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"explode\" }]",
            ),
            13,
            &["unknown variant", "set_text"],
        ),
        (
            "an effect without its text",
            control(
                "kind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"set_text\", target = \"b\" }]",
            ),
            14,
            &["text"],
        ),
        (
            "an effect on nothing",
            control(
                "kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"remove\", target = \"c\" }]",
            ),
            13,
            &["target", "window/control"],
        ),
        (
            "a toggled button",
            control(
                "kind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"toggle\", target = \"b\" }]",
            ),
            14,
            &["check_box"],
        ),
        (
            "a hole without a control",
            control(
                "kind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"set_text\", target = \"b\", text = \"{c}\" }]",
            ),
            14,
            &["text", "{{"],
        ),
        (
            "a delay beyond ten minutes",
            control(
                "kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"noop\", delay_ms = 600001 }]",
            ),
            13,
            &["delay_ms"],
        ),
        (
            "a step on a wall clock",
            format!("step_ms = 5\n{apps}"),
            1,
            &["step_ms", "stepped"],
        ),
        (
            "a step of nothing",
            format!("time = \"stepped\"\nstep_ms = 0\n{apps}"),
            2,
            &["step_ms", "1 to 600000"],
        ),
        (
            "an action that does not exist",
            format!("{apps}[offers]\nkeys = [\"type\", \"sing\"]"),
            5,
            &["offers.keys", "`type`, `key`"],
        ),
        (
            "a rule that does not exist",
            with_controls("move = \"sometimes\""),
            9,
            &["`move`", "clamped"],
        ),
        (
            "sizes out of order",
            with_controls("min_size = [500, 100]\nmax_size = [400, 400]"),
            6,
            &["windows.main.min_size", "max_size"],
        ),
        (
            "a clamped minimising",
            with_controls("minimize = \"clamped\""),
            6,
            &["windows.main.minimize", "`fixed`"],
        ),
        (
            "a window that blocks itself",
            with_controls("modal_for = \"main\""),
            6,
            &["windows.main.modal_for", "another window"],
        ),
        (
            "a shortcut without its modifier",
            control("kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\nshortcut = \"s\""),
            10,
            &["shortcut", "command+"],
        ),
        (
            "a button of two parts",
            control(
                "kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\ndefault = true\ncancel = true",
            ),
            10,
            &["cancel", "not both"],
        ),
        (
            "a pop-up button without choices",
            control("kind = \"pop_up_button\"\nbounds = [0, 40, 80, 30]"),
            10,
            &["choices", "needs"],
        ),
        (
            "a choice that is not there",
            control(
                "kind = \"pop_up_button\"\nbounds = [0, 40, 80, 30]\nchoices = [\"a\"]\nchosen = 1",
            ),
            10,
            &["choices", "1 to 24"],
        ),
        (
            "more than all of it",
            control("kind = \"progress\"\nbounds = [0, 40, 80, 30]\npercent = 101"),
            10,
            &["percent", "0 to 100"],
        ),
        (
            "a menu of nothing",
            control("kind = \"context_menu\"\nin = \"list\""),
            10,
            &["in", "belongs to"],
        ),
        (
            "a focus on a label",
            control(
                "kind = \"label\"\nid = \"l\"\ntitle = \"L\"\nbounds = [0, 40, 80, 30]\nfocused = true",
            ),
            10,
            &["main/l.focused", "remove it"],
        ),
        (
            "a seed without a tree",
            control("kind = \"group\"\nbounds = [0, 40, 80, 30]\nseed = 1"),
            10,
            &["seed", "remove it"],
        ),
        (
            "a behavior without its name",
            control(
                "kind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"set_behavior\", target = \"b\" }]",
            ),
            14,
            &["behavior", "`set_behavior`"],
        ),
        (
            "a size without a resize",
            control(
                "kind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\non_press = [{ effect = \"noop\", size = [100, 100] }]",
            ),
            14,
            &["size", "`resize_window`"],
        ),
        (
            "an event without a target",
            format!("{apps}[[events]]\neffect = \"close_window\""),
            5,
            &["target"],
        ),
    ];
    for (name, text, line, mentions) in rows {
        check_refused(name, &text, line, mentions);
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.toml");
    let Err(error) = Scenario::read(&absent) else {
        panic!("an absent file is read")
    };
    assert!(error.to_string().contains("absent.toml"));
    let large = folder.path().join("large.toml");
    std::fs::write(
        &large,
        "#".repeat(usize::try_from(MAX_SCENARIO_BYTES).unwrap() + 1),
    )
    .unwrap();
    assert!(matches!(
        Scenario::read(&large),
        Err(ScenarioError::TooLarge { .. })
    ));
}

#[test]
fn a_template_has_holes_and_braces() {
    let text = control(
        "kind = \"button\"\nid = \"b\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\n\
         on_press = [{ effect = \"set_text\", target = \"b\", text = \"{{{b}}} and {main/b}\" }]",
    );
    let Ok(scenario) = Scenario::parse(&text) else {
        panic!("this scenario is refused")
    };
    let Change::SetText(_, Template(parts)) = &scenario.windows[0].controls[0].on_press[0].change
    else {
        panic!("this is a text change");
    };
    let id = ControlId {
        window: 0,
        control: 0,
    };
    let expected = [
        TemplatePart::Text("{".into()),
        TemplatePart::Control(id),
        TemplatePart::Text("} and ".into()),
        TemplatePart::Control(id),
    ];
    assert!(parts.iter().eq(&expected));
}

proptest! {
    /// No text, however broken, does more than fail.
    #[test]
    fn no_text_panics_the_reader(text in "(?s).{0,200}") {
        drop(Scenario::parse(&text));
    }

    /// Damage anywhere in a scenario is an error or another scenario, never a panic.
    #[test]
    fn no_damage_panics_the_reader(at in 0..DEFAULT.len(), with in any::<char>()) {
        let mut damaged: Vec<char> = DEFAULT.chars().collect();
        damaged[at] = with;
        drop(Scenario::parse(&damaged.into_iter().collect::<String>()));
    }
}

/// The example of the reference is a scenario, and every name that the reader knows is in it.
#[test]
fn the_reference_tells_the_truth() {
    let reference = include_str!("../../../../../docs/virtual-desktop.md");
    let example = reference
        .split("```")
        .find_map(|part| part.strip_prefix("toml\n"))
        .unwrap();
    if let Err(error) = Scenario::parse(example) {
        panic!("{error}");
    }
    let known = |list: &str| {
        let names = list.split_once("expected one of ").unwrap().1;
        names
            .split(['`', ',', ' '])
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let button = |keys: &str| {
        control(&format!(
            "kind = \"button\"\ntitle = \"B\"\nbounds = [0, 40, 80, 30]\n{keys}"
        ))
    };
    let asked = [
        "knob = 1".to_owned(),
        "[offers]\nknob = 1".to_owned(),
        "[[apps]]\nknob = 1".to_owned(),
        with_controls("knob = 1"),
        with_controls("style = \"knob\""),
        with_controls("move = \"knob\""),
        with_controls("input = \"knob\""),
        control("kind = \"knob\""),
        button("knob = 1"),
        button("press = \"knob\""),
        button("focus = \"knob\""),
        button("on_press = [{ effect = \"explode\" }]"),
        button("on_press = [{ effect = \"noop\", knob = 1 }]"),
    ];
    for text in asked {
        let Err(error) = Scenario::parse(&text) else {
            panic!("this scenario is accepted")
        };
        for name in known(&error.to_string()) {
            assert!(
                reference.contains(&format!("`{name}`"))
                    || reference.contains(&format!("{name} = ")),
                "the reference does not mention `{name}`"
            );
        }
    }
}

/// The same seed gives the same tree, another one another.
#[test]
fn a_generated_tree_depends_on_its_seed_alone() {
    let tree = |seed: u64| {
        let text = control(&format!(
            "kind = \"group\"\nbounds = [0, 40, 200, 100]\ngenerated_nodes = 500\nseed = {seed}"
        ));
        Scenario::parse(&text).unwrap_or_else(|mistake| panic!("{mistake}"))
    };
    assert!(tree(1) == tree(1));
    assert!(tree(1) != tree(2));
    assert_eq!(tree(7).windows[0].controls.len(), 501);
}
