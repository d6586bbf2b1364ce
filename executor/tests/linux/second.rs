//! The second pointer: what is reached by it, who shares it, and what it leaves.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{Gesture, InputRoute, PointCommand, Reach};
use maka_cu::backend::linux::{LinuxDesktop, notes};
use maka_cu::backend::perform::PerformError;
use maka_cu::deadline::Deadline;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::sets::{Direction, Path};
use tokio_util::sync::CancellationToken;
use x11rb::protocol::xinput::{
    ChangeMode, ConnectionExt as _, Device, DeviceId, HierarchyChange, HierarchyChangeData,
    HierarchyChangeDataRemoveMaster,
};

use crate::rig::{CLICK, NOTHING, Observer, Rig, wheel};
use crate::stage::{Program, eventually, inside, soon, window_of};

/// Set in the run that presses and is killed; it says so when it has.
const PRESSES: &str = "MAKA_TEST_PRESSES";
const PRESSED: &str = "the button is down";

fn rig(name: &str) -> Rig {
    let desktop = LinuxDesktop::open_with_second_pointer().unwrap();
    Rig::on(desktop, vec![Program::form(name)], &format!("Form {name}"))
}

/// The devices that are called so.
fn devices(observer: &Observer, name: &str) -> Vec<DeviceId> {
    let connection = &observer.0.connection;
    let version = connection.xinput_xi_query_version(2, 2).unwrap();
    version.reply().unwrap();
    let devices = connection.xinput_xi_query_device(Device::ALL).unwrap();
    let devices = devices.reply().unwrap().infos;
    let named = devices.iter().filter(|it| it.name == name.as_bytes());
    named.map(|device| device.deviceid).collect()
}

/// The buttons that are down on the second pointer.
fn down(observer: &Observer) -> u32 {
    let [device] = devices(observer, "maka pointer")[..] else {
        panic!("there is one second pointer")
    };
    let pointer = observer
        .0
        .connection
        .xinput_xi_query_pointer(observer.0.root, device);
    let pointer = pointer.unwrap().reply().unwrap();
    pointer.buttons.first().copied().unwrap_or(0)
}

/// Left, in the buttons of a device.
const LEFT: u32 = 1 << 1;

/// Field report C1, with the second pointer: what else is reached by the devices only is reached in the background.
#[test]
fn programs_that_hear_devices_only_are_reached_in_the_background() {
    let name = "second::programs_that_hear_devices_only_are_reached_in_the_background";
    inside(name, || {
        for form in ["gtk4", "gtk3"] {
            let rig = rig(form);
            let before = rig.observer.look();
            let pad = rig.middle("Pad");
            for gesture in [CLICK, wheel(Direction::Down)] {
                assert_eq!(rig.reach(gesture, pad), Reach::Window, "{form}");
                rig.point(gesture, pad, InputRoute::Window);
                assert_eq!(rig.observer.look(), before, "{form} {gesture:?}");
            }
            rig.shows("pad wheel down");
            let from = WindowPoint::try_new(pad.x() - 60.0, pad.y()).unwrap();
            rig.point(Gesture::Drag { from }, pad, InputRoute::Window);
            rig.shows("pad drag");
            assert_eq!(rig.observer.look(), before, "{form}");
            assert_eq!(rig.observer.held(), NOTHING, "{form}");
            assert_eq!(down(&rig.observer), 0, "{form}");
            assert_eq!(rig.desktop.user_active(&soon()), Ok(false), "{form}");
        }
    });
}

/// There is one, whoever asks for it and however often; one that is there is taken as it is.
#[test]
fn executors_share_the_pointer_and_wait_for_each_other() {
    let name = "second::executors_share_the_pointer_and_wait_for_each_other";
    inside(name, || {
        let told = || {
            let notes = notes().into_iter();
            let mut about = notes.filter(|note| note.name == "second pointer");
            about.next().unwrap().found
        };
        assert!(told().starts_with("supported, and off"), "{}", told());
        drop(LinuxDesktop::open().unwrap());
        let observer = Observer::connect();
        assert!(devices(&observer, "maka pointer").is_empty(), "not unasked");
        let opening = || std::thread::spawn(|| LinuxDesktop::open_with_second_pointer().unwrap());
        let [other, third] = [opening(), opening()].map(|desktop| desktop.join().unwrap());
        drop(third);
        assert!(told().starts_with("on"), "{}", told());
        let rig = rig("gtk4");
        assert_eq!(devices(&rig.observer, "maka pointer").len(), 1);
        assert_eq!(devices(&rig.observer, "maka keyboard").len(), 1);
        let pad = rig.middle("Pad");
        let before = rig.observer.look();
        let command = |gesture| PointCommand { gesture, at: pad };
        let by_other =
            |gesture| other.point(rig.window, &command(gesture), InputRoute::Window, &soon());

        // What one holds is not moved, and not let go of, by another.
        rig.point(Gesture::Press, pad, InputRoute::Window);
        rig.shows("pad press 1");
        assert_eq!(down(&rig.observer), LEFT);
        let refused = Err(PerformError::Refused {
            path: Path::CgEventPid,
        });
        assert_eq!(by_other(CLICK), refused);
        assert_eq!(by_other(Gesture::Release), refused);
        // Nor by one that starts meanwhile.
        drop(LinuxDesktop::open_with_second_pointer().unwrap());
        assert_eq!(down(&rig.observer), LEFT);
        rig.point(Gesture::Release, pad, InputRoute::Window);
        rig.shows("pad release 1");
        assert_eq!(down(&rig.observer), 0);

        // Side by side, each gesture is whole.
        std::thread::scope(|scope| {
            let clicks = || {
                for _ in 0..5 {
                    assert!(by_other(CLICK).is_ok());
                }
            };
            let clicking = scope.spawn(clicks);
            for _ in 0..5 {
                rig.point(wheel(Direction::Down), pad, InputRoute::Window);
            }
            clicking.join().unwrap();
        });
        assert_eq!(down(&rig.observer), 0);
        assert_eq!(rig.observer.look(), before);
        // It outlives them all.
        let observer = rig.observer;
        drop((rig.desktop, other));
        assert_eq!(devices(&observer, "maka pointer").len(), 1);
    });
}

/// Field reports D1, D2 and D4: whatever becomes of the request, the window or the executor, the button goes up.
#[test]
fn a_button_of_the_second_pointer_goes_up() {
    inside("second::a_button_of_the_second_pointer_goes_up", || {
        let rig = rig("gtk4");
        let before = rig.observer.look();
        let pad = rig.middle("Pad");

        // Cancelled while it is down.
        let cancel = CancellationToken::new();
        let deadline = Deadline::cancellable(Duration::from_secs(30), cancel.clone());
        let from = WindowPoint::try_new(pad.x() - 60.0, pad.y()).unwrap();
        let command = PointCommand {
            gesture: Gesture::Drag { from },
            at: pad,
        };
        let done = std::thread::scope(|scope| {
            let drag = scope.spawn(|| {
                rig.desktop
                    .point(rig.window, &command, InputRoute::Window, &deadline)
            });
            rig.shows("pad press 1");
            cancel.cancel();
            drag.join().unwrap()
        });
        // Or it was through before this thread had seen the press.
        let unknown = PerformError::Unknown {
            path: Path::CgEventPid,
        };
        assert!(done.is_ok() || done == Err(unknown), "{done:?}");
        assert_eq!(down(&rig.observer), 0);

        // Held by a request whose executor ends.
        rig.point(Gesture::Press, pad, InputRoute::Window);
        assert_eq!(down(&rig.observer), LEFT);
        let Rig {
            desktop,
            observer,
            window,
            programs,
            ..
        } = rig;
        drop(desktop);
        assert_eq!(down(&observer), 0);
        assert_eq!(observer.look(), before);

        // Held in a window that goes.
        let desktop = LinuxDesktop::open_with_second_pointer().unwrap();
        let gesture = |gesture| {
            let command = PointCommand { gesture, at: pad };
            desktop.point(window, &command, InputRoute::Window, &soon())
        };
        gesture(Gesture::Press).unwrap();
        assert_eq!(down(&observer), LEFT);
        drop(programs);
        eventually("the window is gone", || {
            let windows = desktop.windows(&soon()).unwrap();
            windows.iter().all(|it| it.key != window).then_some(())
        });
        gesture(Gesture::Release).unwrap();
        assert_eq!(down(&observer), 0);
        // Nothing is kept from the next window.
        let form = Program::form("gtk4");
        let key = window_of(&desktop, "Form gtk4").key;
        let rig = Rig::over(desktop, observer, key);
        eventually("its point can be reached", || {
            (rig.reach(CLICK, pad) == Reach::Window).then_some(())
        });
        rig.point(CLICK, rig.middle("Pad"), InputRoute::Window);
        rig.shows("pad release 1");
        drop(form);
    });
}

/// Field report D2: a killed executor leaves nothing that is grabbed or frozen, and what it held goes up with the next.
#[test]
fn a_killed_executor_leaves_the_pointer_to_the_next() {
    if env::var_os(PRESSES).is_some() {
        let rig = rig("gtk4");
        rig.point(Gesture::Press, rig.middle("Pad"), InputRoute::Window);
        println!("{PRESSED}");
        // Until it is killed.
        loop {
            std::thread::park();
        }
    }
    let name = "second::a_killed_executor_leaves_the_pointer_to_the_next";
    inside(name, || {
        let name = "second::a_killed_executor_leaves_the_pointer_to_the_next";
        let mut executor = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads", "1"])
            .env(PRESSES, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(executor.stdout.take().unwrap()).lines();
        let pressed = lines
            .map_while(Result::ok)
            .any(|line| line.ends_with(PRESSED));
        assert!(pressed, "it ended before it pressed");
        let observer = Observer::connect();
        assert_eq!(down(&observer), LEFT);
        executor.kill().unwrap();
        executor.wait().unwrap();

        let desktop = LinuxDesktop::open_with_second_pointer().unwrap();
        assert_eq!(down(&observer), 0);
        // The programs that it had started live on.
        let window = window_of(&desktop, "Form gtk4").key;
        let rig = Rig::over(desktop, observer, window);
        let before = rig.observer.look();
        rig.shows("pad release 1");
        rig.point(
            wheel(Direction::Down),
            rig.middle("Pad"),
            InputRoute::Window,
        );
        rig.shows("pad wheel down");
        assert_eq!(rig.observer.look(), before);
        assert_eq!(rig.observer.held(), NOTHING);
    });
}

/// Where somebody took the pointer away, nothing is sent: it would be the person's pointer that moves.
#[test]
fn without_the_pointer_nothing_is_sent() {
    inside("second::without_the_pointer_nothing_is_sent", || {
        // GTK 4 would end.
        let rig = rig("gtk3");
        let before = rig.observer.look();
        let pad = rig.middle("Pad");
        assert_eq!(rig.reach(CLICK, pad), Reach::Window);
        let [device] = devices(&rig.observer, "maka pointer")[..] else {
            panic!("there is one second pointer")
        };
        let away = HierarchyChange {
            len: 3,
            data: HierarchyChangeData::RemoveMaster(HierarchyChangeDataRemoveMaster {
                deviceid: device,
                return_mode: ChangeMode::FLOAT,
                return_pointer: 0,
                return_keyboard: 0,
            }),
        };
        let changed = rig
            .observer
            .0
            .connection
            .xinput_xi_change_hierarchy(&[away]);
        changed.unwrap().check().unwrap();
        assert_eq!(rig.reach(CLICK, pad), Reach::GlobalOnly);
        // Also for whoever asked before it went.
        let command = PointCommand {
            gesture: CLICK,
            at: pad,
        };
        let done = rig
            .desktop
            .point(rig.window, &command, InputRoute::Window, &soon());
        let refused = PerformError::Refused {
            path: Path::CgEventPid,
        };
        assert_eq!(done, Err(refused));
        assert_eq!(rig.observer.look(), before);
        // The next executor makes it anew.
        drop(LinuxDesktop::open_with_second_pointer().unwrap());
        assert_eq!(devices(&rig.observer, "maka pointer").len(), 1);
    });
}
