//! What holds after any order of launches, presses and writes.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Something a client does; the number chooses among what is there.
#[derive(Clone, Debug)]
enum Step {
    Launch(usize),
    Press(usize),
    Write(usize, String),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<usize>().prop_map(Step::Launch),
        any::<usize>().prop_map(Step::Press),
        (any::<usize>(), ".{0,40}").prop_map(|(at, text)| Step::Write(at, text)),
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
        Step::Launch(at) => drop(desktop.launch(NAMES[at % NAMES.len()], &soon())),
        Step::Press(at) => drop(chosen(at).map(|node| press(desktop, node))),
        Step::Write(at, text) => drop(chosen(at).map(|node| write(desktop, node, &text))),
    }
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
    }
    let front = desktop.frontmost_pid(&soon()).unwrap();
    assert_eq!(front.is_some(), !windows.is_empty());
    assert!(front.is_none_or(|pid| windows.iter().any(|window| window.key.pid == pid)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Any order of actions leaves a desktop whose lists agree with each other.
    #[test]
    fn no_order_of_actions_breaks_the_desktop(steps in prop::collection::vec(step(), 0..24)) {
        let desktop = built_in();
        for step in steps {
            take(&desktop, step);
        }
        check_laws(&desktop);
    }
}
