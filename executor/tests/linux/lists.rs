//! The lists of windows, programs and displays, under window managers and without one.

use maka_cu::backend::Backend as _;
use maka_cu::backend::desktop::PermissionPrompt;
use maka_cu::backend::error::BackendError;
use maka_cu::backend::linux::{LinuxDesktop, diagnose};
use maka_cu::backend::perform::{ElementCommand, PerformError};
use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::sets::ScreenRecordingProbe;
use maka_desktop::DesktopOptions;
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt as _, PropMode, StackMode,
};
use x11rb::wrapper::ConnectionExt as _;

use crate::stage::{Program, eventually, inside, inside_of, root_of, soon, window_of};

#[test]
fn lists_agree_with_each_other() {
    inside("lists::lists_agree_with_each_other", || {
        let _one = Program::start("zenity", &["--info", "--title=One", "--text=one"]);
        let desktop = LinuxDesktop::open().unwrap();
        let one = window_of(&desktop, "One");
        let _two = Program::start("zenity", &["--info", "--title=Two", "--text=two"]);
        let two = window_of(&desktop, "Two");
        let windows = desktop.windows(&soon()).unwrap();
        assert!(
            windows
                .windows(2)
                .all(|pair| pair[0].z_index > pair[1].z_index)
        );
        assert!(
            windows
                .iter()
                .all(|window| window.layer == 0 && window.on_screen)
        );
        // No entry names zenity, so each is known by its number, never by its class.
        assert_eq!(one.app_id.as_str(), format!("pid:{}", one.key.pid));
        assert_ne!(one.app_id, two.app_id);
        let apps = desktop.applications(&soon()).unwrap();
        for window in [&one, &two] {
            assert_eq!(
                apps.iter()
                    .filter(|app| app.app_id == window.app_id)
                    .count(),
                1
            );
        }
        eventually("the newer window is active", || {
            (desktop.frontmost_pid(&soon()).unwrap() == Some(two.key.pid)).then_some(())
        });
        let displays = desktop.displays(&soon()).unwrap();
        assert_eq!(displays.len(), 1);
        assert_eq!(
            (
                displays[0].logical_bounds.width(),
                displays[0].logical_bounds.height()
            ),
            (1280.0, 800.0)
        );
        assert_eq!(one.display_id.as_ref(), Some(&displays[0].display_id));
        let permissions = desktop
            .permissions(PermissionPrompt::Never, &soon())
            .unwrap();
        assert!(permissions.accessibility && permissions.screen_recording);
        assert_eq!(
            permissions.screen_recording_probe,
            ScreenRecordingProbe::CaptureSucceeded
        );
        assert!(!desktop.screen_locked(&soon()).unwrap());
        assert!(
            diagnose().iter().all(|finding| finding.ok),
            "{:?}",
            diagnose()
        );
        // Names of processes that the window list had just told are told no longer once they are gone.
        let start = desktop.process_start(one.key.pid).unwrap();
        assert_eq!(desktop.process_start(one.key.pid), Some(start));
        drop(_one);
        eventually("the window is gone", || {
            desktop
                .windows(&soon())
                .unwrap()
                .iter()
                .all(|window| window.key != one.key)
                .then_some(())
        });
        assert_eq!(desktop.process_start(one.key.pid), None);
        assert_eq!(
            desktop.capture_window(one.key, &soon()).unwrap_err(),
            BackendError::WindowGone
        );
        let stranger = WindowKey {
            pid: std::process::id(),
            window_id: two.key.window_id,
        };
        assert_eq!(
            desktop.window_root(stranger, &soon()).unwrap_err(),
            BackendError::WindowGone
        );
    });
}

/// xfwm4 tells the stacking order from the second window on; the first is there before.
#[test]
fn windows_are_listed_before_their_order_is_told() {
    let name = "lists::windows_are_listed_before_their_order_is_told";
    let options = DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    };
    inside_of(options, name, || {
        let _one = Program::start("xev", &["-name", "One", "-geometry", "100x100+50+60"]);
        let _two = Program::start("xev", &["-name", "Two", "-geometry", "100x100+90+90"]);
        let desktop = LinuxDesktop::open().unwrap();
        let one = window_of(&desktop, "One").key.window_id;
        let two = window_of(&desktop, "Two").key.window_id;
        let (connection, screen) = x11rb::connect(None).unwrap();
        let root = connection.setup().roots[screen].root;
        let atom = connection.intern_atom(false, b"_NET_CLIENT_LIST").unwrap();
        let atom = atom.reply().unwrap().atom;
        let listed = || -> Vec<u32> {
            let windows = desktop.windows(&soon()).unwrap();
            windows.iter().map(|window| window.key.window_id).collect()
        };
        // What a manager has just begun to manage may be gone already.
        let told = [one, root - 1, two];
        connection
            .change_property32(PropMode::REPLACE, root, atom, AtomEnum::WINDOW, &told)
            .unwrap();
        for (top, expected) in [(one, [one, two]), (two, [two, one])] {
            let raise = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
            let raised = connection.configure_window(top, &raise).unwrap();
            raised.check().unwrap();
            assert_eq!(listed(), expected);
        }
        let told = [two];
        connection
            .change_property32(PropMode::REPLACE, root, atom, AtomEnum::WINDOW, &told)
            .unwrap()
            .check()
            .unwrap();
        assert_eq!(listed(), [two]);
    });
}

/// Without a manager nobody takes the requests, and a window is not moved behind the back of one that may come.
#[test]
fn without_a_window_manager_windows_are_not_arranged() {
    let name = "lists::without_a_window_manager_windows_are_not_arranged";
    let options = DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    };
    inside_of(options, name, || {
        let _program = Program::start("xev", &["-name", "Plain", "-geometry", "320x200+50+60"]);
        let desktop = LinuxDesktop::open().unwrap();
        let window = window_of(&desktop, "Plain");
        let root = root_of(&desktop, window.key);
        let commands = [
            ElementCommand::MoveWindow(ScreenPoint::try_new(5.0, 5.0).unwrap()),
            ElementCommand::ResizeWindow(ScreenSize::try_new(50.0, 50.0).unwrap()),
            ElementCommand::MinimizeWindow,
        ];
        for command in commands {
            let done = desktop.perform(&root, &command, &soon());
            assert_eq!(done, Err(PerformError::NotActionable), "{command:?}");
        }
        assert_eq!(window_of(&desktop, "Plain").bounds, window.bounds);
    });
}
