//! A program that does not answer.

use std::process::Command;

use maka_cu::backend::Backend as _;
use maka_cu::backend::error::BackendError;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::tree::WalkScope;

use crate::stage::{
    Program, budget, eventually, inside, read_one, soon, titled, tree_of, window_of,
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
                    let located = desktop.window_root(window.key, &soon());
                    assert_eq!(located.unwrap_err(), BackendError::Timeout);
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
