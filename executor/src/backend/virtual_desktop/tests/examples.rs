//! The desktops of `executor/examples/desktops`: each is opened, looked at whole, and does what its first lines say.

use std::collections::BTreeSet;
use std::path::PathBuf;

use maka_cu_protocol::roles;
use maka_cu_protocol::sets::MouseButton;

use super::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/desktops")
}

pub(super) fn example(name: &str) -> VirtualDesktop {
    let path = folder().join(format!("{name}.toml"));
    VirtualDesktop::open(Some(&path)).unwrap_or_else(|refusal| panic!("{refusal}"))
}

pub(super) fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap()
}

/// Name, windows at the start, and nodes of all of them where none is cut.
const EXAMPLES: [(&str, usize, Option<usize>); 18] = [
    ("forms", 1, Some(20)),
    ("lists", 1, Some(519)),
    ("menus", 1, Some(6)),
    ("sheet", 1, Some(3)),
    ("secure", 1, Some(6)),
    ("slow", 1, Some(6)),
    ("dying", 1, Some(6)),
    ("restless", 2, Some(5)),
    ("displays", 2, Some(4)),
    ("tree-2000", 1, Some(2_002)),
    ("tree-20000", 1, Some(20_002)),
    ("broken-trees", 3, None),
    ("text", 1, Some(11)),
    ("faults", 1, Some(57)),
    ("windows", 7, Some(9)),
    ("stepped", 1, Some(3)),
    ("limited", 1, Some(3)),
    ("person", 1, Some(3)),
];

#[test]
fn every_example_is_known_and_told() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    let known = EXAMPLES.map(|(name, ..)| format!("{name}.toml"));
    assert_eq!(files, BTreeSet::from(known));
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for file in files {
        assert!(readme.contains(&format!("`{file}`")), "{file}");
    }
}

/// F3, F9: all of every desktop is read without a cut, or with one where its tree has no end.
#[test]
fn every_example_is_seen_whole() {
    let large = |budget: Duration| WalkBudget {
        max_elements: 100_000,
        max_depth: 100_000,
        deadline: Deadline::within(budget),
    };
    for (name, windows, expected) in EXAMPLES {
        let desktop = example(name);
        let listed = desktop.windows(&soon()).unwrap();
        assert_eq!(listed.len(), windows, "{name}");
        let mut seen = 0;
        for window in listed {
            let root = desktop.window_root(window.key, &soon()).unwrap().unwrap();
            let bar = desktop.menu_bar(&root, &soon()).unwrap();
            let budget = match expected {
                Some(_) => Duration::from_secs(60),
                None => Duration::from_millis(500),
            };
            let scope = WalkScope::Everything;
            let tree = desktop.walk(&root, &scope, &large(budget)).unwrap();
            seen += tree.nodes.len();
            if expected.is_some() {
                assert!(!tree.truncated_elements && !tree.truncated_depth, "{name}");
                let refs: Vec<_> = tree
                    .nodes
                    .iter()
                    .map(|node| node.node_ref.clone())
                    .collect();
                let again = desktop.read_nodes(&refs, &soon()).unwrap();
                for (walked, read) in tree.nodes.iter().zip(again) {
                    let read = read.unwrap();
                    assert_eq!(
                        (walked.sibling_index, &walked.ancestor_roles),
                        (read.sibling_index, &read.ancestor_roles),
                        "{name}"
                    );
                }
            }
            if let Some(bar) = bar {
                desktop.walk(&bar, &scope, &large(budget)).unwrap();
            }
            let picture = desktop.capture_window(window.key, &soon());
            match name {
                "limited" => assert!(matches!(picture, Err(BackendError::PermissionMissing(_)))),
                _ => {
                    let picture = picture.unwrap();
                    assert!(
                        picture
                            .pixels()
                            .iter()
                            .any(|byte| *byte != picture.pixels()[0])
                    );
                }
            }
        }
        for display in desktop.displays(&soon()).unwrap() {
            let picture = desktop.capture_display(&display.display_id, &soon());
            assert_eq!(picture.is_ok(), name != "limited", "{name}");
        }
        if let Some(expected) = expected {
            assert_eq!(seen, expected, "{name}");
        }
    }
}

#[test]
fn the_form_is_filled_by_keys_alone() {
    let desktop = example("forms");
    let focused = || {
        let nodes = tree(&desktop, "New contact").nodes;
        nodes.into_iter().find(|node| node.focused).unwrap()
    };
    let type_in = |text: &str| {
        let text = KeyCommand::Type(AppText::new(text));
        let node = focused().node_ref;
        desktop
            .keys(&node, &text, InputRoute::Window, &soon())
            .unwrap();
    };
    type_in("Ada Lovelace\t123456\t");
    let code = node(&desktop, "New contact", roles::TEXT_FIELD, "Code");
    assert_eq!(code.value, None);
    type_in("\n");
    let saved = "Saved Ada Lovelace, South Africa, priority 3";
    node(&desktop, "New contact", roles::STATIC_TEXT, saved);
}

#[test]
fn the_sheet_blocks_and_lets_go() {
    let desktop = example("sheet");
    let text = node(&desktop, "Letter", roles::TEXT_AREA, "Text");
    press(&desktop, &node(&desktop, "Letter", roles::BUTTON, "Close")).unwrap();
    assert!(matches!(
        write(&desktop, &text, "x"),
        Err(PerformError::Refused { .. })
    ));
    let root = tree(&desktop, "Close").nodes.remove(0);
    assert_eq!(root.actions, [ElementVerb::Raise, ElementVerb::Cancel]);
    verb(&desktop, &root, ElementVerb::Cancel).unwrap();
    write(&desktop, &text, "x").unwrap();
}

/// Everything that a stepped desktop shows depends on the calls alone.
#[test]
fn a_stepped_desktop_repeats_itself() {
    let story = || {
        let desktop = example("stepped");
        let mut seen = Vec::new();
        while let Ok(windows) = desktop.windows(&soon()) {
            let Some(window) = windows.first() else { break };
            let Ok(Some(root)) = desktop.window_root(window.key, &soon()) else {
                break;
            };
            let scope = WalkScope::Everything;
            let Ok(tree) = desktop.walk(&root, &scope, &budget()) else {
                break;
            };
            seen.push(
                tree.nodes
                    .iter()
                    .map(|node| title(node).to_owned())
                    .collect::<Vec<_>>(),
            );
        }
        seen
    };
    let first = story();
    assert_eq!(first[0], ["Countdown", "Two", "Elapsed 3"]);
    assert_eq!(first[1], ["Countdown", "One", "Elapsed 6"]);
    assert_eq!(
        first.len(),
        16,
        "it closes after five seconds of its own time"
    );
    assert_eq!(first, story());
}

/// B2, B6: windows lie and are found left of and above the main display, at the density of the display that shows most of
/// them.
#[test]
fn displays_lie_left_of_and_above_the_main_one() {
    let desktop = example("displays");
    let left = window(&desktop, "On the dense display");
    assert_eq!((left.bounds.x(), left.bounds.y()), (-900.0, -150.0));
    assert_eq!(left.display_id.as_ref().unwrap().as_str(), "dense");
    assert_eq!(
        desktop.capture_window(left.key, &soon()).unwrap().width(),
        800
    );
    let left_click = Gesture::Click {
        button: MouseButton::Left,
        count: 1,
    };
    let command = PointCommand {
        gesture: left_click,
        at: at(30.0, 70.0),
    };
    desktop
        .point(left.key, &command, InputRoute::Global, &soon())
        .unwrap();
    let moved = window(&desktop, "On the dense display");
    assert_eq!(moved.display_id.as_ref().unwrap().as_str(), "main");
    assert_eq!(
        desktop.capture_window(left.key, &soon()).unwrap().width(),
        400
    );
}

#[test]
fn a_limited_desktop_offers_what_it_says() {
    let offered = example("limited").capabilities();
    assert_eq!(offered.element_actions.len(), 2);
    assert!(offered.point_actions.is_empty() && offered.key_actions.is_empty());
    let all = example("forms").capabilities();
    assert_eq!(
        (
            all.element_actions.len(),
            all.point_actions.len(),
            all.key_actions.len()
        ),
        (8, 10, 2)
    );
}

#[test]
fn a_person_at_work_and_a_locked_screen() {
    let desktop = example("person");
    assert_eq!(desktop.user_active(&soon()), Ok(true));
    press(&desktop, &node(&desktop, "Desk", roles::BUTTON, "Lock")).unwrap();
    assert_eq!(desktop.screen_locked(&soon()), Ok(true));
}

/// What is wrong with a file is said as an editor can jump to it, with what to write instead.
#[test]
fn a_bad_file_is_refused_by_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    let rows = [
        (
            "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = \"yes\"\n",
            4,
            "`running`",
            "boolean",
        ),
        (
            "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nlaunched = true\n",
            4,
            "`launched`",
            "expected one of",
        ),
        ("[[apps]]\napp_id = \"a.b\"\n", 1, "`name`", "missing"),
        (
            "[[apps]]\napp_id = \"a.b\"\nname = \"A\"\n[[apps.windows]]\nid = \"w\"\ntitle = \"W\"\nbounds = [0, 0, 1, 1]\n",
            5,
            "`windows.w.bounds`",
            "80 to 4096",
        ),
    ];
    for (text, line, field, advice) in rows {
        std::fs::write(&path, text).unwrap();
        let Err(refusal) = VirtualDesktop::open(Some(&path)) else {
            panic!("{text} is accepted");
        };
        let said = refusal.to_string();
        let place = format!("{}:{line}: {field}: ", path.display());
        assert!(said.contains(&place) && said.contains(advice), "{said}");
    }
}
