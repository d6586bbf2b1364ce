//! Trees of real programs: read again, cut, missing, and pressed in.

use std::time::Duration;

use maka_cu::backend::Backend as _;
use maka_cu::backend::desktop::WindowInfo;
use maka_cu::backend::error::BackendError;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::{ElementCommand, PerformError};
use maka_cu::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use maka_cu::deadline::Deadline;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::sets::{ElementVerb, Path};
use maka_cu_protocol::text::AppText;

use crate::stage::{
    PATIENCE, Program, eventually, inside, node, read_one, root_of, soon, titled, tree_of,
    window_of,
};

#[test]
fn nodes_read_again_are_what_the_walk_said() {
    inside("trees::nodes_read_again_are_what_the_walk_said", || {
        let _program = Program::start(
            "zenity",
            &[
                "--forms",
                "--title=Form",
                "--add-entry=First",
                "--add-password=Second",
                "--add-calendar=Third",
            ],
        );
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Form");
        let tree = tree_of(&desktop, window.key);
        assert!(tree.nodes.len() > 10, "{} nodes", tree.nodes.len());
        for round in ["all at once", "again"] {
            let references: Vec<NodeRef> = tree
                .nodes
                .iter()
                .map(|node| node.node_ref.clone())
                .collect();
            let read = desktop.read_nodes(&references, &soon()).unwrap();
            for (walked, read) in tree.nodes.iter().zip(read) {
                assert_eq!(identity(walked), identity(&read.unwrap()), "{round}");
            }
        }
        for walked in &tree.nodes {
            assert_eq!(
                identity(walked),
                identity(&read_one(&desktop, walked).unwrap()),
                "one by one"
            );
        }
        // A second walk, for which the application's own list is filled, says the same.
        let second = tree_of(&desktop, window.key);
        let identities = |tree: &RawTree| tree.nodes.iter().map(identity).collect::<Vec<_>>();
        assert_eq!(identities(&tree), identities(&second));

        // The characters of a password are never read, also not what we wrote ourselves.
        let secret = node(&tree, |node| node.secure);
        assert!(secret.value_settable && secret.value.is_none());
        desktop
            .perform(
                &secret.node_ref,
                &ElementCommand::SetValue("hunter2".into()),
                &soon(),
            )
            .unwrap();
        assert!(read_one(&desktop, secret).unwrap().value.is_none());

        // Order, links and frames.
        assert!(tree.nodes[0].parent.is_none() && tree.nodes[0].depth == 0);
        let whole = tree.nodes[0].frame.unwrap();
        assert_eq!(
            (whole.width(), whole.height()),
            (window.bounds.width(), window.bounds.height())
        );
        for (index, node) in tree.nodes.iter().enumerate().skip(1) {
            let parent = node.parent.unwrap();
            assert!(parent < index);
            assert_eq!(node.depth, tree.nodes[parent].depth + 1);
        }
    });
}

#[test]
fn budgets_cut_and_say_so() {
    inside("trees::budgets_cut_and_say_so", || {
        let _program = Program::start("zenity", &["--calendar", "--title=Day"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Day");
        let root = root_of(&desktop, window.key);
        let walk = |max_elements, max_depth, within| {
            let budget = WalkBudget {
                max_elements,
                max_depth,
                deadline: Deadline::within(within),
            };
            desktop
                .walk(&root, &WalkScope::Everything, &budget)
                .unwrap()
        };
        let few = walk(3, 64, PATIENCE);
        assert_eq!(
            (few.nodes.len(), few.truncated_elements, few.truncated_depth),
            (3, true, false)
        );
        let flat = walk(1500, 2, PATIENCE);
        assert!(flat.truncated_depth && !flat.truncated_elements);
        assert!(flat.nodes.iter().all(|node| node.depth < 2));
        let spent = walk(1500, 64, Duration::ZERO);
        assert!(!spent.nodes.is_empty());
    });
}

#[test]
fn a_window_without_a_tree_is_one_node() {
    inside("trees::a_window_without_a_tree_is_one_node", || {
        // A plain X program: it never talks to the accessibility bus.
        let _program = Program::start("xev", &["-name", "Plain", "-geometry", "320x200+50+60"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Plain");
        let tree = tree_of(&desktop, window.key);
        assert_eq!(tree.nodes.len(), 1);
        let root = &tree.nodes[0];
        assert_eq!(root.title.as_ref().unwrap().as_str(), "Plain");
        assert_eq!(root.frame.unwrap().width(), window.bounds.width());
        assert!(root.actions.is_empty() && !root.value_settable);
        assert_eq!(identity(root), identity(&read_one(&desktop, root).unwrap()));
        let press = ElementCommand::Perform(ElementVerb::Press);
        assert_eq!(
            desktop.perform(&root.node_ref, &press, &soon()),
            Err(PerformError::NotActionable)
        );
        assert!(desktop.capture_window(window.key, &soon()).is_ok());
        let root = root_of(&desktop, window.key);
        assert!(desktop.menu_bar(&root, &soon()).unwrap().is_none());
        assert!(desktop.selected_text(&root, &soon()).unwrap().is_none());

        // It is a window all the same. What is listed becomes what was asked for, the manager's frame notwithstanding.
        let listed = |what: &str, is_so: &dyn Fn(&WindowInfo) -> bool| {
            eventually(what, || {
                let windows = desktop.windows(&soon()).unwrap();
                let found = windows.into_iter().find(|it| it.key == window.key).unwrap();
                is_so(&found).then_some(())
            });
        };
        let ask = |command: ElementCommand| {
            let done = desktop.perform(&root, &command, &soon());
            assert_eq!(done.unwrap().path, Path::AxAttribute, "{command:?}");
        };
        let place = ScreenPoint::try_new(-40.0, 321.0).unwrap();
        ask(ElementCommand::MoveWindow(place));
        listed("it was moved", &|it| {
            (it.bounds.x(), it.bounds.y()) == (place.x(), place.y())
                && it.bounds.width() == window.bounds.width()
        });
        let size = ScreenSize::try_new(401.0, 99.0).unwrap();
        ask(ElementCommand::ResizeWindow(size));
        listed("it was resized", &|it| {
            (it.bounds.width(), it.bounds.height()) == (size.width(), size.height())
                && (it.bounds.x(), it.bounds.y()) == (place.x(), place.y())
        });
        ask(ElementCommand::MinimizeWindow);
        listed("it was minimised", &|it| !it.on_screen);
        // C4: it has no pixels, and that is said.
        assert_eq!(
            desktop.capture_window(window.key, &soon()).unwrap_err(),
            BackendError::CaptureFailed
        );
        // Numbers that X cannot express are not made into others.
        let far = ElementCommand::MoveWindow(ScreenPoint::try_new(70_000.0, 0.0).unwrap());
        assert_eq!(
            desktop.perform(&root, &far, &soon()),
            Err(PerformError::NotActionable)
        );
    });
}

#[test]
fn rows_of_a_list_can_be_pressed() {
    inside("trees::rows_of_a_list_can_be_pressed", || {
        let _program = Program::start(
            "zenity",
            &[
                "--list",
                "--title=Pick",
                "--column=Fruit",
                "apple",
                "pear",
                "plum",
                "cherry",
            ],
        );
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Pick");
        let tree = tree_of(&desktop, window.key);
        let pear = titled(&tree, "pear");
        assert!(
            pear.actions.contains(&ElementVerb::Press),
            "{:?}",
            pear.actions
        );
        assert_eq!(pear.selected, Some(false));
    });
}

/// What a digest is made of, so that two readings can be compared.
fn identity(node: &RawNode) -> impl PartialEq + std::fmt::Debug + use<> {
    let text = |text: &Option<AppText>| text.as_ref().map(|text| text.as_str().to_owned());
    (
        (
            format!("{:?}", node.role),
            format!("{:?}", node.subrole),
            text(&node.ax_identifier),
        ),
        (text(&node.title), text(&node.label), text(&node.value)),
        (
            node.frame
                .map(|frame| frame.rounded().map(|side| side as i64)),
            node.actions.clone(),
        ),
        (format!("{:?}", node.ancestor_roles), node.sibling_index),
    )
}
