//! Accessibility trees: what a walk reads, and where it stops.

use maka_cu_protocol::roles;

use super::*;

fn group(keys: &str) -> VirtualDesktop {
    app_with(&format!(
        "[[apps.windows.controls]]\nkind = \"group\"\nbounds = [10, 50, 90, 30]\n{keys}\n"
    ))
}

fn root(desktop: &VirtualDesktop, title: &str) -> NodeRef {
    desktop
        .window_root(window(desktop, title).key, &soon())
        .unwrap()
        .unwrap()
}

/// Role, title and depth of each node of `zenity --entry --title=Question --text="What is your name?"` (GTK 3), as AT-SPI
/// reports them.
#[test]
fn the_dialog_has_the_tree_of_zenity() {
    let desktop = built_in();
    desktop.launch("org.maka.TestEntry", &soon()).unwrap();
    let tree = tree(&desktop, "Question");
    let seen: Vec<_> = tree
        .nodes
        .iter()
        .map(|node| (node.depth, node.role.as_str(), title(node)))
        .collect();
    let expected = [
        (0, roles::WINDOW, "Question"),
        (1, roles::GROUP, ""),
        (2, roles::GROUP, ""),
        (3, roles::GROUP, ""),
        (4, roles::STATIC_TEXT, "What is your name?"),
        (4, roles::TEXT_FIELD, ""),
        (2, roles::GROUP, ""),
        (3, roles::GROUP, ""),
        (4, roles::BUTTON, "Cancel"),
        (4, roles::BUTTON, "OK"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(tree.nodes[0].subrole.as_deref(), Some(roles::DIALOG));
    let ok = tree.nodes.last().unwrap();
    assert_eq!(ok.sibling_index, 1);
    assert_eq!(
        ok.ancestor_roles,
        [roles::GROUP, roles::GROUP, roles::GROUP, roles::WINDOW]
    );
}

/// A node read again is the node that was walked, as far as digests go.
#[test]
fn reading_again_agrees_with_the_walk() {
    let desktop = built_in();
    for name in ["Notes", "Settings", "Tips"] {
        let tree = tree(&desktop, name);
        let refs: Vec<_> = tree
            .nodes
            .iter()
            .map(|node| node.node_ref.clone())
            .collect();
        let again = desktop.read_nodes(&refs, &soon()).unwrap();
        for (walked, read) in tree.nodes.iter().zip(again) {
            let read = read.unwrap();
            let key = |node: &RawNode| {
                let text =
                    |text: &Option<AppText>| text.as_ref().map(|text| text.as_str().to_owned());
                (
                    (
                        node.role.clone(),
                        node.subrole.clone(),
                        text(&node.ax_identifier),
                        text(&node.title),
                    ),
                    (
                        text(&node.label),
                        text(&node.value),
                        node.frame,
                        node.actions.clone(),
                    ),
                    (node.ancestor_roles.clone(), node.sibling_index),
                )
            };
            assert_eq!(key(walked), key(&read), "{name}");
        }
        assert!(!tree.truncated_elements && !tree.truncated_depth);
        let size = window(&desktop, name).bounds;
        let frame = tree.nodes[0].frame.unwrap();
        assert_eq!(
            (frame.width(), frame.height()),
            (size.width(), size.height()),
            "the root covers the window"
        );
    }
}

/// F3: a tree of 20,000 levels is cut with a mark, at the depth or at the count, and nothing overflows.
#[test]
fn a_very_deep_tree_is_cut_with_a_mark() {
    let desktop = group("nested_groups = 20000");
    let shallow = tree(&desktop, "Main");
    assert_eq!(
        (
            shallow.nodes.len(),
            shallow.truncated_depth,
            shallow.truncated_elements
        ),
        (64, true, false)
    );
    assert_eq!(shallow.nodes.last().unwrap().depth, 63);

    let wide = WalkBudget {
        max_depth: usize::MAX,
        max_elements: 100_000,
        deadline: soon(),
    };
    let whole = desktop
        .walk(&root(&desktop, "Main"), &WalkScope::Everything, &wide)
        .unwrap();
    assert_eq!(
        whole.nodes.len(),
        20_002,
        "the window, the group and those in it"
    );
    assert!(!whole.truncated_depth && !whole.truncated_elements);
    assert_eq!(whole.nodes.last().unwrap().ancestor_roles.len(), 8);
}

/// F3: a tree that contains its own root ends, and says that something was left out.
#[test]
fn a_tree_that_contains_itself_is_cut_with_a_mark() {
    let tree = tree(&group("cyclic = true"), "Main");
    assert_eq!(
        (
            tree.nodes.len(),
            tree.truncated_elements,
            tree.truncated_depth
        ),
        (2, true, false)
    );
}

#[test]
fn a_walk_stops_at_its_count() {
    let desktop = app_with(
        "[[apps.windows.controls]]\nkind = \"list\"\nbounds = [10, 50, 90, 200]\ngenerated_rows = 600\n",
    );
    let root = root(&desktop, "Main");
    for (max_elements, nodes, cut) in [
        (0, 1, true),
        (1, 1, true),
        (601, 601, true),
        (602, 602, false),
    ] {
        let budget = WalkBudget {
            max_elements,
            ..budget()
        };
        let tree = desktop
            .walk(&root, &WalkScope::Everything, &budget)
            .unwrap();
        assert_eq!(
            (tree.nodes.len(), tree.truncated_elements),
            (nodes, cut),
            "{max_elements}"
        );
    }
}

/// F1: an application that does not answer costs the walk its time and no more; the root is always there.
#[test]
fn a_slow_application_cuts_the_walk() {
    let desktop = group("slow_ms = 600000");
    let start = Instant::now();
    let brief = WalkBudget {
        deadline: Deadline::within(Duration::from_millis(30)),
        ..budget()
    };
    let group = desktop
        .walk(&root(&desktop, "Main"), &WalkScope::Everything, &brief)
        .unwrap();
    assert_eq!((group.nodes.len(), group.truncated_elements), (2, true));
    assert!(start.elapsed() < Duration::from_secs(60));

    let over = WalkBudget {
        deadline: Deadline::within(Duration::ZERO),
        ..budget()
    };
    let alone = desktop
        .walk(&root(&desktop, "Main"), &WalkScope::Everything, &over)
        .unwrap();
    assert_eq!((alone.nodes.len(), alone.truncated_elements), (1, true));

    let refs: Vec<_> = group
        .nodes
        .iter()
        .map(|node| node.node_ref.clone())
        .collect();
    let brief = Deadline::within(Duration::from_millis(30));
    let repeated = [refs.clone(), refs].concat();
    assert!(matches!(
        desktop.read_nodes(&repeated, &brief),
        Err(BackendError::Timeout)
    ));
}

#[test]
fn a_window_that_closes_stops_answering() {
    let desktop = built_in();
    let root = root(&desktop, "Tips");
    let done = node(&desktop, "Tips", roles::BUTTON, "Got it");
    press(&desktop, &done).unwrap();
    assert!(matches!(
        desktop.walk(&root, &WalkScope::Everything, &budget()),
        Err(BackendError::WindowGone)
    ));
    assert!(reread(&desktop, &done).is_none());
    assert_eq!(press(&desktop, &done), Err(PerformError::NotActionable));
}

#[test]
fn menus_open_as_far_as_the_scope_says() {
    let desktop = built_in();
    let key = window(&desktop, "Notes").key;
    let root = desktop.window_root(key, &soon()).unwrap().unwrap();
    let bar = desktop.menu_bar(&root, &soon()).unwrap().unwrap();
    let rows = [
        (WalkScope::MenuBar, vec!["", "File", "Edit"], true),
        (
            WalkScope::MenuNamed(AppText::new("Edit")),
            vec!["", "File", "Edit", "Clear"],
            false,
        ),
        (
            WalkScope::MenuNamed(AppText::new("Nothing")),
            vec!["", "File", "Edit"],
            false,
        ),
        (
            WalkScope::Everything,
            vec!["", "File", "Save", "Print", "Edit", "Clear"],
            false,
        ),
    ];
    for (scope, expected, cut) in rows {
        let tree = desktop.walk(&bar, &scope, &budget()).unwrap();
        let seen: Vec<_> = tree.nodes.iter().map(title).collect();
        assert_eq!((seen, tree.truncated_depth), (expected, cut));
        assert!(tree.nodes.iter().all(|node| node.frame.is_none()));
    }
    let all = desktop
        .walk(&bar, &WalkScope::Everything, &budget())
        .unwrap()
        .nodes;
    assert!(!all[3].enabled, "Print is disabled");
    press(&desktop, &all[2]).unwrap();
    node(&desktop, "Notes", roles::STATIC_TEXT, "Saved: Groceries");

    let settings = window(&desktop, "Settings").key;
    let settings = desktop.window_root(settings, &soon()).unwrap().unwrap();
    assert!(desktop.menu_bar(&settings, &soon()).unwrap().is_none());
    assert!(
        tree(&desktop, "Notes")
            .nodes
            .iter()
            .all(|node| node.role != roles::MENU_BAR)
    );
}
