//! A program that does not answer.

use std::process::Command;

use maka_cu::backend::Backend as _;
use maka_cu::backend::error::BackendError;
use maka_cu::backend::input::{InputRoute, PointCommand, Reach};
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::{ElementCommand, Performed};
use maka_cu::backend::tree::{RawNode, WalkScope};
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::sets::{ElementVerb, Path};

use crate::rig::CLICK;
use crate::stage::{
    Program, budget, eventually, fixtures, inside, read_one, soon, titled, tree_of, window_of,
};

/// F1: a stopped program costs its own callers their time limit and nobody else anything.
#[test]
fn a_hung_program_is_given_up_and_others_still_answer() {
    inside(
        "hung::a_hung_program_is_given_up_and_others_still_answer",
        || {
            let hung = Program::start("zenity", &["--entry", "--title=Hung"]);
            let _well = Program::start("zenity", &["--entry", "--title=Well"]);
            let desktop = LinuxDesktop::open().unwrap();
            let window = window_of(&desktop, "Hung");
            let other = window_of(&desktop, "Well");
            let tree = tree_of(&desktop, window.key);
            let ok = titled(&tree, "OK");
            let signal = |name: &str| {
                let pid = hung.0.id().to_string();
                assert!(
                    Command::new("kill")
                        .args([name, &pid])
                        .status()
                        .unwrap()
                        .success()
                );
            };
            signal("-STOP");
            let root = tree.nodes[0].node_ref.clone();
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let walked = desktop.walk(&root, &WalkScope::Everything, &budget());
                    assert_eq!(walked.unwrap_err(), BackendError::Timeout);
                    let read = desktop.read_nodes(std::slice::from_ref(&ok.node_ref), &soon());
                    assert_eq!(read.unwrap_err(), BackendError::Timeout);
                    // What is known of it without its answer is told, and that there is more.
                    let silent = tree_of(&desktop, window.key);
                    assert!(silent.truncated_elements && silent.nodes.len() == 1);
                });
                let mut walks = 0;
                while !waiting.is_finished() {
                    assert!(tree_of(&desktop, other.key).nodes.len() > 5);
                    walks += 1;
                }
                assert!(walks > 0);
                waiting.join().unwrap();
            });
            signal("-CONT");
            // It was never lost, only silent.
            eventually("it answers again", || read_one(&desktop, ok));
        },
    );
}

/// A GTK 3 handler that waits inside itself for a dialog, when it was called through the accessibility bus, keeps its program
/// from answering there. The dialog can be seen and answered at a point nevertheless, and then all is as before.
#[test]
fn a_dialog_that_silences_its_program_is_answered_at_a_point() {
    let name = "hung::a_dialog_that_silences_its_program_is_answered_at_a_point";
    inside(name, || {
        // As the executor starts programs, so that points reach it.
        let _program = Program::spawn(
            Command::new("/usr/bin/python3")
                .arg(fixtures().join("gtk/asks.py"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("GDK_CORE_DEVICE_EVENTS", "1"),
        );
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Asks");
        let tree = tree_of(&desktop, window.key);
        let press = ElementCommand::Perform(ElementVerb::Press);
        // It is told that it was pressed before its handler runs.
        let ask = &titled(&tree, "Ask").node_ref;
        let done = desktop.perform(ask, &press, &soon());
        assert_eq!(done, Ok(Performed::by(Path::AxAction)));
        let dialog = window_of(&desktop, "Question");
        for (key, title) in [(dialog.key, "Question"), (window.key, "Asks")] {
            let tree = tree_of(&desktop, key);
            assert_eq!(tree.nodes.len(), 1, "{title}");
            assert!(tree.truncated_elements, "{title}: there is more in it");
            let root = &tree.nodes[0];
            assert_eq!(root.title.as_ref().unwrap().as_str(), title);
            assert!(root.frame.is_some() && root.actions.is_empty(), "{title}");
            // It stands for the window, and is found again.
            assert_eq!(read_one(&desktop, root).unwrap().frame, root.frame);
            let menu = desktop.menu_bar(&root.node_ref, &soon());
            assert!(menu.is_err(), "nobody says that there is none");
        }
        let (width, height) = (dialog.bounds.width(), dialog.bounds.height());
        let command = PointCommand {
            gesture: CLICK,
            at: WindowPoint::try_new(width - 30.0, height - 20.0).unwrap(),
        };
        let reach = desktop.point_reach(dialog.key, &command, &soon());
        assert_eq!(reach, Ok(Reach::Window));
        let done = desktop.point(dialog.key, &command, InputRoute::Window, &soon());
        assert_eq!(done, Ok(Performed::by(Path::CgEventPid)));
        eventually("the program answers again", || {
            let tree = tree_of(&desktop, window.key);
            let shows = |node: &RawNode| {
                let title = node.title.as_ref().map(|title| title.as_str());
                title == Some("Answered True")
            };
            tree.nodes.iter().any(shows).then_some(())
        });
    });
}
