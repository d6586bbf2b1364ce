//! Programs that are started, and the one that is filled in.

use std::fs;

use maka_cu::backend::Backend as _;
use maka_cu::backend::error::BackendError;
use maka_cu::backend::launch::LaunchProgress;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::{ElementCommand, PerformError};
use maka_cu_protocol::sets::{ElementVerb, Path};

use crate::stage::{
    Program, applications, eventually, inside, node, read_one, soon, titled, tree_of, window_of,
};

#[test]
fn a_real_dialog_is_launched_filled_in_and_confirmed() {
    inside(
        "launches::a_real_dialog_is_launched_filled_in_and_confirmed",
        || {
            let applications = applications();
            let answer = applications.join("answer.txt");
            let entry = format!(
                "[Desktop Entry]\nType=Application\nName=Ask for a name\n\
             Exec=sh -c \"zenity --entry --title=Ask --text=Name > {}\"\n",
                answer.display()
            );
            fs::write(applications.join("org.example.Ask.desktop"), entry).unwrap();
            let _active = Program::start("zenity", &["--info", "--title=Active", "--text=busy"]);
            let desktop = LinuxDesktop::open().unwrap();
            let active = window_of(&desktop, "Active").key.pid;
            eventually("a window is active", || {
                (desktop.frontmost_pid(&soon()).unwrap() == Some(active)).then_some(())
            });
            let ticket = desktop.launch("Ask for a name", &soon()).unwrap();
            let (app, window) = eventually("a window of the launched program", || {
                match desktop.launch_progress(&ticket, &soon()).unwrap() {
                    LaunchProgress::Running { app, windows } => {
                        windows.into_iter().next().map(|window| (app, window))
                    }
                    LaunchProgress::Starting => None,
                    LaunchProgress::Exited => panic!("it ended"),
                }
            });
            assert_eq!(app.app_id.as_str(), "org.example.Ask");
            assert_eq!(window.app_id, app.app_id);
            // openbox gives a new window the focus whenever nobody is typing; what counts is that this is told, live.
            let front = desktop.frontmost_pid(&soon()).unwrap();
            assert!(front == Some(active) || front == Some(app.pid), "{front:?}");
            let listed = desktop.applications(&soon()).unwrap();
            assert!(listed.contains(&app), "{listed:?}");

            let tree = tree_of(&desktop, window.key);
            assert!(!tree.truncated_elements && !tree.truncated_depth);
            let entry = node(&tree, |node| node.value_settable);
            assert_eq!(entry.value.as_ref().unwrap().as_str(), "");
            let text = "Grüße 漢字 😀 \"quoted\"";
            let done = desktop
                .perform(
                    &entry.node_ref,
                    &ElementCommand::SetValue(text.into()),
                    &soon(),
                )
                .unwrap();
            assert_eq!(done.path, Path::AxAttribute);
            assert_eq!(
                read_one(&desktop, entry).unwrap().value.unwrap().as_str(),
                text
            );

            let ok = titled(&tree, "OK");
            assert!(ok.enabled && ok.actions.contains(&ElementVerb::Press) && ok.frame.is_some());
            let done = desktop.perform(
                &ok.node_ref,
                &ElementCommand::Perform(ElementVerb::Press),
                &soon(),
            );
            assert_eq!(done.unwrap().path, Path::AxAction);
            eventually("the program has ended", || {
                matches!(
                    desktop.launch_progress(&ticket, &soon()).unwrap(),
                    LaunchProgress::Exited
                )
                .then_some(())
            });
            assert_eq!(fs::read_to_string(&answer).unwrap(), format!("{text}\n"));

            // What is gone is told as gone.
            assert!(read_one(&desktop, ok).is_none());
            let again = desktop.perform(
                &ok.node_ref,
                &ElementCommand::Perform(ElementVerb::Press),
                &soon(),
            );
            assert_eq!(again, Err(PerformError::NotActionable));
            assert_eq!(
                desktop.window_root(window.key, &soon()).unwrap_err(),
                BackendError::WindowGone
            );
            assert_eq!(desktop.process_start(window.key.pid), None);
        },
    );
}

#[test]
fn a_launch_says_why_it_cannot() {
    inside("launches::a_launch_says_why_it_cannot", || {
        let applications = applications();
        let write = |id: &str, lines: &str| {
            let text = format!("[Desktop Entry]\nType=Application\n{lines}\n");
            fs::write(applications.join(format!("{id}.desktop")), text).unwrap();
        };
        write("twin.a", "Name=Twin\nExec=true");
        write("twin.b", "Name=Twin\nExec=true");
        write("absent", "Name=Absent\nExec=no-such-program-anywhere");
        write("org.keepassxc.KeePassXC", "Name=Secrets\nExec=true");
        write("term", "Name=Term\nExec=true\nTerminal=true");
        write("short", "Name=Short\nExec=true");
        let desktop = LinuxDesktop::open().unwrap();
        let rows = [
            ("nothing of that name", BackendError::AppNotFound),
            ("Twin", BackendError::Ambiguous),
            ("Absent", BackendError::AppNotFound),
            ("Secrets", BackendError::Unsupported),
            ("Term", BackendError::Unsupported),
        ];
        for (name, expected) in rows {
            assert_eq!(
                desktop.launch(name, &soon()).unwrap_err(),
                expected,
                "{name}"
            );
        }
        let ticket = desktop.launch("short", &soon()).unwrap();
        eventually("it is known to have ended", || {
            matches!(
                desktop.launch_progress(&ticket, &soon()).unwrap(),
                LaunchProgress::Exited
            )
            .then_some(())
        });
        // An entry written a moment ago counts: the catalog is not of the start.
        write("late", "Name=Late\nExec=true");
        desktop.launch("Late", &soon()).unwrap();
    });
}
