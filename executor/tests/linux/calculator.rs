//! A GTK 4 program as people have it: a GtkApplication that draws its own title bar and, where the window manager knows of
//! such things, its own shadow.

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{InputRoute, Reach};
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::{ElementCommand, Performed};
use maka_cu::backend::tree::RawNode;
use maka_cu_protocol::sets::{ElementVerb, Path};
use maka_desktop::{DesktopOptions, WindowManager};

use crate::rig::{CLICK, Rig, middle_of};
use crate::stage::{Program, eventually, inside_of, soon, tree_of, window_of};

const OPENBOX: &str = "calculator::sums_are_done_by_elements_and_at_points_under_openbox";
const XFWM4: &str = "calculator::sums_are_done_by_elements_and_at_points_under_xfwm4";

#[test]
fn sums_are_done_by_elements_and_at_points_under_openbox() {
    inside_of(under(WindowManager::Openbox), OPENBOX, sums);
}

#[test]
fn sums_are_done_by_elements_and_at_points_under_xfwm4() {
    inside_of(under(WindowManager::Xfwm4), XFWM4, sums);
}

fn under(manager: WindowManager) -> DesktopOptions {
    DesktopOptions {
        window_manager: Some(manager),
        ..DesktopOptions::default()
    }
}

fn sums() {
    let desktop = LinuxDesktop::open_with_second_pointer().unwrap();
    let programs = vec![Program::start("gnome-calculator", &[])];
    let window = window_of(&desktop, "Calculator").key;
    // It joins the accessibility bus in its own time, a second or more after its window is there.
    eventually("the calculator has a tree", || {
        (tree_of(&desktop, window).nodes.len() > 20).then_some(())
    });
    let rig = Rig::on(desktop, programs, "Calculator");
    let before = rig.observer.look();
    let key = |name: &str| {
        eventually(name, || {
            let is_it = |node: &RawNode| {
                let title = node.title.as_ref().map_or("", |title| title.as_str());
                title.split(' ').next() == Some(name) && node.actions.contains(&ElementVerb::Press)
            };
            rig.tree().nodes.into_iter().find(is_it)
        })
    };
    let shows = |result: &str| {
        eventually(result, || {
            let tree = rig.tree();
            let mut values = tree.nodes.iter().filter_map(|node| node.value.as_ref());
            values
                .any(|value| value.as_str().trim() == result)
                .then_some(())
        });
    };
    for name in ["2", "+", "3", "="] {
        let press = ElementCommand::Perform(ElementVerb::Press);
        let done = rig.desktop.perform(&key(name).node_ref, &press, &soon());
        assert_eq!(done, Ok(Performed::by(Path::AxAction)), "{name}");
    }
    shows("5");
    // The same again where the buttons are seen: a frame that forgot the shadow would be of another button.
    for name in ["×", "7", "="] {
        let frame = key(name).frame.unwrap();
        let at = middle_of(frame);
        assert_eq!(rig.reach(CLICK, at), Reach::Window, "{name}");
        rig.point(CLICK, at, InputRoute::Window);
    }
    shows("35");
    assert_eq!(rig.observer.look(), before);
}
