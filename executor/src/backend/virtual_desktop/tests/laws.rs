//! What holds after any order of launches, actions, gestures and keys.

use std::collections::HashSet;

use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::keys::{Key, Modifiers};
use maka_cu_protocol::sets::{Direction, Modifier, MouseButton};
use maka_cu_protocol::text::SomeText;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Something a client does; the number chooses among what is there.
#[derive(Clone, Debug)]
enum Step {
    Launch(usize),
    Press(usize),
    Write(usize, String),
    Perform(usize, ElementVerb),
    Select(usize, String),
    Scroll(usize, Direction, f64),
    Handle(usize, f64, f64),
    Focus(usize),
    Type(usize, String),
    Chord(usize, Key, Vec<Modifier>),
    Point(usize, Gesture, f64, f64, InputRoute),
}

fn step() -> impl Strategy<Value = Step> {
    let coordinate = prop_oneof![-50.0..700.0_f64, -1e12..1e12_f64];
    let place = || (0.0..640.0_f64, 0.0..500.0_f64);
    prop_oneof![
        any::<usize>().prop_map(Step::Launch),
        any::<usize>().prop_map(Step::Press),
        (any::<usize>(), ".{0,40}").prop_map(|(at, text)| Step::Write(at, text)),
        (any::<usize>(), select(ElementVerb::ALL)).prop_map(|(at, verb)| Step::Perform(at, verb)),
        (any::<usize>(), ".{1,3}").prop_map(|(at, text)| Step::Select(at, text)),
        (any::<usize>(), select(Direction::ALL), 0.001..1e9_f64)
            .prop_map(|(at, direction, pages)| Step::Scroll(at, direction, pages)),
        (any::<usize>(), coordinate.clone(), coordinate)
            .prop_map(|(at, x, y)| Step::Handle(at, x, y)),
        any::<usize>().prop_map(Step::Focus),
        (any::<usize>(), ".{0,40}").prop_map(|(at, text)| Step::Type(at, text)),
        (
            any::<usize>(),
            select(Key::all().collect::<Vec<_>>()),
            prop::collection::vec(select(Modifier::ALL), 0..3)
        )
            .prop_map(|(at, key, modifiers)| Step::Chord(at, key, modifiers)),
        (any::<usize>(), gesture_in(place()), place(), any::<bool>()).prop_map(
            |(at, gesture, (x, y), global)| {
                let route = match global {
                    true => InputRoute::Global,
                    false => InputRoute::Window,
                };
                Step::Point(at, gesture, x, y, route)
            }
        ),
    ]
}

fn gesture_in(place: impl Strategy<Value = (f64, f64)>) -> impl Strategy<Value = Gesture> {
    prop_oneof![
        Just(Gesture::Move),
        Just(Gesture::Press),
        Just(Gesture::Release),
        (select(MouseButton::ALL), 1_u8..=3)
            .prop_map(|(button, count)| Gesture::Click { button, count }),
        place.prop_map(|(x, y)| Gesture::Drag { from: at(x, y) }),
        (select(Direction::ALL), 0.001..1e9_f64).prop_map(|(direction, pages)| Gesture::Scroll {
            direction,
            pages: Pages::new(pages).unwrap(),
        }),
    ]
}

fn every_node(desktop: &VirtualDesktop) -> Vec<RawNode> {
    let mut nodes = Vec::new();
    for window in desktop.windows(&soon()).unwrap() {
        let root = desktop.window_root(window.key, &soon()).unwrap().unwrap();
        let bar = desktop.menu_bar(&root, &soon()).unwrap();
        let roots = [Some(root), bar];
        for root in roots.into_iter().flatten() {
            nodes.extend(
                desktop
                    .walk(&root, &WalkScope::Everything, &budget())
                    .unwrap()
                    .nodes,
            );
        }
    }
    nodes
}

fn take(desktop: &VirtualDesktop, step: Step) {
    const NAMES: [&str; 5] = ["Notes", "Test Entry", "org.maka.Tips", "Settings", "nobody"];
    let nodes = every_node(desktop);
    let chosen = |at: usize| nodes.get(at.checked_rem(nodes.len()).unwrap_or(0));
    match step {
        Step::Launch(at) => whatever(desktop.launch(NAMES[at % NAMES.len()], &soon())),
        Step::Press(at) => whatever(chosen(at).map(|node| press(desktop, node))),
        Step::Write(at, text) => whatever(chosen(at).map(|node| write(desktop, node, &text))),
        Step::Perform(at, wanted) => whatever(chosen(at).map(|node| verb(desktop, node, wanted))),
        Step::Select(at, text) => {
            let text = SomeText::new(text).unwrap();
            order(desktop, chosen(at), &ElementCommand::SelectText(text));
        }
        Step::Scroll(at, direction, pages) => {
            let pages = Pages::new(pages).unwrap();
            order(
                desktop,
                chosen(at),
                &ElementCommand::Scroll { direction, pages },
            );
        }
        Step::Handle(at, x, y) => {
            let node = chosen(at);
            let size = ScreenSize::try_new(x.abs(), y.abs()).unwrap();
            let position = ScreenPoint::try_new(x, y).unwrap();
            order(desktop, node, &ElementCommand::MoveWindow(position));
            order(desktop, node, &ElementCommand::ResizeWindow(size));
            if at % 5 == 0 {
                order(desktop, node, &ElementCommand::MinimizeWindow);
            }
        }
        Step::Focus(at) => whatever(chosen(at).map(|node| {
            let held = desktop.focus(&node.node_ref, InputRoute::Window, &soon());
            let focused = reread(desktop, node).is_some_and(|node| node.focused);
            assert_eq!(held.unwrap_or(false), focused);
        })),
        Step::Type(at, text) => {
            let command = KeyCommand::Type(AppText::new(text));
            whatever(chosen(at).map(|node| keys(desktop, node, &command)));
        }
        Step::Chord(at, key, modifiers) => {
            let modifiers: Modifiers = modifiers.into_iter().collect();
            let command = KeyCommand::Chord { key, modifiers };
            whatever(chosen(at).map(|node| keys(desktop, node, &command)));
        }
        Step::Point(at, gesture, x, y, route) => {
            let windows = desktop.windows(&soon()).unwrap();
            if let Some(window) = windows.get(at.checked_rem(windows.len()).unwrap_or(0)) {
                let at = super::at(x, y);
                whatever(desktop.point(window.key, &PointCommand { gesture, at }, route, &soon()));
            }
        }
    }
}

/// What became of a step is not the law's business.
fn whatever<T>(_outcome: T) {}

fn order(desktop: &VirtualDesktop, node: Option<&RawNode>, command: &ElementCommand) {
    whatever(node.map(|node| desktop.perform(&node.node_ref, command, &soon())));
}

fn keys(
    desktop: &VirtualDesktop,
    node: &RawNode,
    command: &KeyCommand,
) -> Result<Performed, PerformError> {
    let focused = desktop.focus(&node.node_ref, InputRoute::Window, &soon())?;
    assert!(focused || !reread(desktop, node).is_some_and(|node| node.focused));
    desktop.keys(&node.node_ref, command, InputRoute::Window, &soon())
}

fn check_laws(desktop: &VirtualDesktop) {
    let windows = desktop.windows(&soon()).unwrap();
    let running: HashSet<u32> = desktop
        .applications(&soon())
        .unwrap()
        .iter()
        .map(|app| app.pid)
        .collect();
    assert!(
        windows
            .windows(2)
            .all(|pair| pair[0].z_index > pair[1].z_index)
    );
    assert!(
        windows
            .windows(2)
            .all(|pair| pair[0].layer >= pair[1].layer)
    );
    let ids: HashSet<u32> = windows.iter().map(|window| window.key.window_id).collect();
    assert_eq!(ids.len(), windows.len(), "no window id twice");
    for window in &windows {
        assert!(running.contains(&window.key.pid), "a window has a process");
        assert!(desktop.capture_window(window.key, &soon()).is_ok());
        let root = desktop.window_root(window.key, &soon()).unwrap().unwrap();
        let scope = WalkScope::Everything;
        let nodes = desktop.walk(&root, &scope, &budget()).unwrap().nodes;
        let focused = nodes.iter().filter(|node| node.focused).count();
        assert!(focused <= 1, "two controls have the focus");
        let menus = nodes
            .iter()
            .filter(|node| node.role == maka_cu_protocol::roles::MENU);
        assert!(menus.count() <= 1, "two menus are open");
    }
    for display in desktop.displays(&soon()).unwrap() {
        assert!(
            desktop
                .capture_display(&display.display_id, &soon())
                .is_ok()
        );
    }
    let front = desktop.frontmost_pid(&soon()).unwrap();
    assert_eq!(front.is_some(), !windows.is_empty());
    assert!(front.is_none_or(|pid| windows.iter().any(|window| window.key.pid == pid)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Any order of actions, gestures and keys leaves a desktop whose lists agree with each other.
    #[test]
    fn no_order_of_actions_breaks_the_desktop(
        example in select(&["", "forms", "lists", "menus", "sheet", "windows"][..]),
        steps in prop::collection::vec(step(), 0..32),
    ) {
        let desktop = match example {
            "" => built_in(),
            // Without its animation: what happens between two looks is not what the laws are about.
            "windows" => desktop(&super::examples::text("windows").replace("lag_ms = 400", "")),
            example => super::examples::example(example),
        };
        for step in steps {
            take(&desktop, step);
        }
        check_laws(&desktop);
    }
}
