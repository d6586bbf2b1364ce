//! Which input reaches which program, and what it leaves elsewhere.

use std::fs;
use std::process::{Command, Stdio};

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{Gesture, InputRoute, PointCommand, Reach};
use maka_cu::backend::launch::LaunchProgress;
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::sets::{Direction, Modifier};

use crate::rig::{CLICK, NOTHING, Observer, Rig, chord, typed, wheel};
use crate::stage::{
    Program, applications, eventually, fixtures, form_path, home, inside, soon, window_of,
};

/// Field report C1: what cannot reach the window alone says so, and by the way for everybody all is as before afterwards.
#[test]
fn what_hears_nothing_is_reached_by_the_devices_and_all_is_put_back() {
    let name = "routes::what_hears_nothing_is_reached_by_the_devices_and_all_is_put_back";
    inside(name, || {
        for form in ["gtk4", "gtk3"] {
            let rig = Rig::form(form);
            let before = rig.observer.look();
            let pad = rig.middle("Pad");
            assert_eq!(rig.reach(CLICK, pad), Reach::GlobalOnly, "{form}");
            rig.point(CLICK, pad, InputRoute::Global);
            rig.shows("pad release 1");
            rig.point(wheel(Direction::Down), pad, InputRoute::Global);
            rig.shows("pad wheel down");
            let from = WindowPoint::try_new(pad.x() - 60.0, pad.y()).unwrap();
            rig.point(Gesture::Drag { from }, pad, InputRoute::Global);
            rig.shows("pad drag");
            assert_eq!(rig.observer.look(), before, "{form}");
            assert_eq!(rig.observer.held(), NOTHING, "{form}");

            let entry = rig.named("Entry");
            let text = typed("Q@é".trim_end_matches('é'));
            let reach = rig.desktop.key_reach(&entry.node_ref, &text, &soon());
            assert_eq!(reach, Ok(Reach::GlobalOnly), "{form}");
            if form == "gtk3" {
                let focused = rig
                    .desktop
                    .focus(&entry.node_ref, InputRoute::Global, &soon());
                assert_eq!(focused, Ok(true));
            } else {
                rig.point(CLICK, rig.middle("Entry"), InputRoute::Global);
            }
            rig.keys(
                &entry.node_ref,
                &chord('a', &[Modifier::Control]),
                InputRoute::Global,
            );
            rig.keys(&entry.node_ref, &text, InputRoute::Global);
            rig.shows("entry Q@");
            assert_eq!(rig.observer.look(), before, "{form}");
            assert_eq!(rig.observer.held(), NOTHING, "{form}");
        }
    });
}

/// What the executor launches can be reached where the same program, started by a person, cannot.
#[test]
fn a_launched_gtk3_program_is_reached_in_the_background() {
    inside(
        "routes::a_launched_gtk3_program_is_reached_in_the_background",
        || {
            let applications = applications();
            let entry = format!(
                "[Desktop Entry]\nType=Application\nName=The form\nExec=/usr/bin/python3 -B {}\n",
                form_path("gtk3").display()
            );
            fs::write(applications.join("org.example.Form.desktop"), entry).unwrap();
            let desktop = LinuxDesktop::open().unwrap();
            let ticket = desktop.launch("The form", &soon()).unwrap();
            eventually("a window of the launched program", || {
                match desktop.launch_progress(&ticket, &soon()).unwrap() {
                    LaunchProgress::Running { windows, .. } => windows.into_iter().next(),
                    LaunchProgress::Starting => None,
                    LaunchProgress::Exited => panic!("it ended"),
                }
            });
            let rig = Rig::new(Vec::new(), "Form gtk3");
            let before = rig.observer.look();
            let push = rig.middle("Push");
            assert_eq!(rig.reach(CLICK, push), Reach::Window);
            rig.point(CLICK, push, InputRoute::Window);
            rig.shows("click button");
            assert_eq!(rig.observer.look(), before);
        },
    );
}

/// Chromium rests while nothing of its window can be seen, and would take a click later, when nobody expects it any more. A
/// window that was observed is never told that it is hidden, since its pixels are kept.
#[test]
fn hidden_chromium_takes_clicks_once_it_was_observed() {
    inside(
        "routes::hidden_chromium_takes_clicks_once_it_was_observed",
        || {
            // Chromium looks once, when it starts, whether anybody reads.
            let enabled = Command::new("dbus-send")
                .args([
                    "--session",
                    "--print-reply",
                    "--dest=org.a11y.Bus",
                    "/org/a11y/bus",
                ])
                .args([
                    "org.freedesktop.DBus.Properties.Set",
                    "string:org.a11y.Status",
                ])
                .args(["string:IsEnabled", "variant:boolean:true"])
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert!(enabled.success());
            let page = fixtures().join("forms/form.html");
            let _page = Program::spawn(
                Command::new("chromium")
                    .args(["--no-sandbox", "--disable-gpu", "--no-first-run"])
                    .arg("--disable-dev-shm-usage")
                    .args(["--password-store=basic", "--force-renderer-accessibility"])
                    .args(["--window-size=500,760", "--window-position=20,20"])
                    .arg(format!(
                        "--user-data-dir={}",
                        home().join("profile").display()
                    ))
                    .arg(format!("--app=file://{}", page.display())),
            );
            let desktop = LinuxDesktop::open().unwrap();
            // Only listed, not observed.
            let key = window_of(&desktop, "Form chromium").key;
            let _cover = Program::spawn(
                Command::new("/usr/bin/python3").arg(fixtures().join("gtk/cover.py")),
            );
            let cover = window_of(&desktop, "Cover").key.window_id;
            let observer = Observer::connect();
            eventually("it is covered", || {
                let now = observer.look();
                (now.active == cover && now.top == cover && now.focus == cover).then_some(())
            });
            let middle = WindowPoint::try_new(250.0, 300.0).unwrap();
            let command = PointCommand {
                gesture: CLICK,
                at: middle,
            };
            eventually("the page is on the bus, and hidden", || {
                let reach = desktop.point_reach(key, &command, &soon()).unwrap();
                (reach == Reach::GlobalOnly).then_some(())
            });
            let rig = Rig::over(desktop, observer, key);
            let before = rig.observer.look();
            let pad = rig.middle("Pad");
            assert_eq!(rig.reach(CLICK, pad), Reach::Window);
            rig.point(CLICK, pad, InputRoute::Window);
            rig.shows("pad release 1");
            assert_eq!(rig.observer.look(), before);
        },
    );
}
