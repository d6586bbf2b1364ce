//! The desktop through the [`Backend`] trait, as the server uses it.

mod actions;
mod applications;
mod examples;
mod faults;
mod keys;
mod laws;
mod lists;
mod menus;
mod pixels;
mod points;
mod trees;
mod windows;

use std::time::Duration;

use maka_cu_protocol::sets::{ElementVerb, Path};
use maka_cu_protocol::text::AppText;

use super::*;
use crate::backend::input::Gesture;

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

fn verb(
    desktop: &VirtualDesktop,
    node: &RawNode,
    verb: ElementVerb,
) -> Result<Performed, PerformError> {
    desktop.perform(&node.node_ref, &ElementCommand::Perform(verb), &soon())
}

/// One control of the test window, from its keys in TOML; each is 30 points high.
fn control(kind: &str, y: i32, keys: &str) -> String {
    format!("[[apps.windows.controls]]\nkind = \"{kind}\"\nbounds = [10, {y}, 200, 30]\n{keys}\n")
}

/// The label `Log` of the test window, into which effects write what happened.
fn log(y: i32) -> String {
    control(
        "label",
        y,
        "id = \"log\"\nlabel = \"Log\"\ntitle = \"nothing\"",
    )
}

/// Writes a text into [`log`] when `cause` happens.
fn logs(cause: &str, text: &str) -> String {
    format!("{cause} = [{{ effect = \"set_text\", target = \"log\", text = \"{text}\" }}]\n")
}

/// What [`log`] says.
fn logged(desktop: &VirtualDesktop) -> String {
    title(&node(
        desktop,
        "Main",
        maka_cu_protocol::roles::STATIC_TEXT,
        "Log",
    ))
    .to_owned()
}

fn at(x: f64, y: f64) -> maka_cu_protocol::geometry::WindowPoint {
    maka_cu_protocol::geometry::WindowPoint::try_new(x, y).unwrap()
}

/// A gesture in the test window by events for that window.
fn gesture(desktop: &VirtualDesktop, gesture: Gesture, x: f64, y: f64) {
    let key = window(desktop, "Main").key;
    let at = at(x, y);
    let command = PointCommand { gesture, at };
    let done = desktop.point(key, &command, InputRoute::Window, &soon());
    assert_eq!(done, Ok(Performed::by(Path::CgEventPid)), "{gesture:?}");
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
