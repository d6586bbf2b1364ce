//! The desktop through the [`Backend`] trait, as the server uses it.

mod actions;
mod applications;
mod laws;
mod pixels;
mod trees;

use std::time::Duration;

use maka_cu_protocol::sets::ElementVerb;
use maka_cu_protocol::text::AppText;

use super::*;

/// A moment that every call of a test stays within; only a broken test meets it.
fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(60))
}

fn desktop(scenario: &str) -> VirtualDesktop {
    match Scenario::parse(scenario) {
        Ok(scenario) => VirtualDesktop::start(scenario),
        Err(error) => panic!("{error}"),
    }
}

fn built_in() -> VirtualDesktop {
    VirtualDesktop::start(Scenario::built_in())
}

/// A running application `org.example.App` with one window of 400 × 300 points and these controls.
fn app_with(controls: &str) -> VirtualDesktop {
    desktop(&format!(
        "[[apps]]\napp_id = \"org.example.App\"\nname = \"App\"\nrunning = true\n[[apps.windows]]\nid = \"main\"\n\
         title = \"Main\"\nbounds = [40, 40, 400, 300]\n{controls}"
    ))
}

fn window(desktop: &VirtualDesktop, title: &str) -> WindowInfo {
    find_window(desktop, title).unwrap_or_else(|| panic!("there is no window `{title}`"))
}

fn find_window(desktop: &VirtualDesktop, title: &str) -> Option<WindowInfo> {
    let windows = desktop.windows(&soon()).unwrap();
    windows.into_iter().find(|window| {
        window
            .title
            .as_ref()
            .is_some_and(|text| text.as_str() == title)
    })
}

fn budget() -> WalkBudget {
    WalkBudget {
        max_elements: 1_500,
        max_depth: 64,
        deadline: soon(),
    }
}

fn tree(desktop: &VirtualDesktop, title: &str) -> RawTree {
    let root = desktop
        .window_root(window(desktop, title).key, &soon())
        .unwrap()
        .unwrap();
    desktop
        .walk(&root, &WalkScope::Everything, &budget())
        .unwrap()
}

/// The first node with this role whose title or label is `name`.
fn node(desktop: &VirtualDesktop, title: &str, role: &str, name: &str) -> RawNode {
    let named = |text: &Option<AppText>| text.as_ref().is_some_and(|text| text.as_str() == name);
    let nodes = tree(desktop, title).nodes;
    let found = nodes
        .into_iter()
        .find(|node| node.role == role && (named(&node.title) || named(&node.label)));
    found.unwrap_or_else(|| panic!("there is no {role} `{name}` in `{title}`"))
}

fn reread(desktop: &VirtualDesktop, node: &RawNode) -> Option<RawNode> {
    desktop
        .read_nodes(std::slice::from_ref(&node.node_ref), &soon())
        .unwrap()
        .remove(0)
}

fn press(desktop: &VirtualDesktop, node: &RawNode) -> Result<Performed, PerformError> {
    desktop.perform(
        &node.node_ref,
        &ElementCommand::Perform(ElementVerb::Press),
        &soon(),
    )
}

fn write(desktop: &VirtualDesktop, node: &RawNode, text: &str) -> Result<Performed, PerformError> {
    desktop.perform(
        &node.node_ref,
        &ElementCommand::SetValue(AppText::new(text)),
        &soon(),
    )
}

fn title(node: &RawNode) -> &str {
    node.title.as_ref().map_or("", AppText::as_str)
}

fn value(node: &RawNode) -> Option<&str> {
    node.value.as_ref().map(AppText::as_str)
}

/// Waits for what an effect with a delay brings about.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = soon();
    while !holds() {
        assert!(!deadline.is_over(), "{what}: this never happened");
        std::thread::yield_now();
    }
}
