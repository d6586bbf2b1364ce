//! Buttons that stay down, and how they go up.

use std::time::Duration;

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{Gesture, InputRoute, PointCommand, Reach};
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::PerformError;
use maka_cu::deadline::Deadline;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::sets::Path;
use tokio_util::sync::CancellationToken;

use crate::rig::{CLICK, LEFT_BUTTON, NOTHING, Rig};
use crate::stage::{eventually, inside, soon};

/// Field reports D1 and D4: a gesture that is given up while the button is down lets go of it and is told as unknown.
#[test]
fn a_cancelled_drag_lets_go_of_the_button() {
    inside("held::a_cancelled_drag_lets_go_of_the_button", || {
        let rig = Rig::form("qt5");
        let before = rig.observer.look();
        let to = rig.middle("Pad");
        let from = WindowPoint::try_new(to.x() - 60.0, to.y()).unwrap();
        let command = PointCommand {
            gesture: Gesture::Drag { from },
            at: to,
        };
        for route in [InputRoute::Window, InputRoute::Global] {
            let cancel = CancellationToken::new();
            let deadline = Deadline::cancellable(Duration::from_secs(20), cancel.clone());
            let done = std::thread::scope(|scope| {
                let drag =
                    scope.spawn(|| rig.desktop.point(rig.window, &command, route, &deadline));
                // The first step of the drag itself.
                rig.shows("pad press 1");
                cancel.cancel();
                drag.join().unwrap()
            });
            rig.shows("pad release 1");
            if done.is_ok() {
                // It was through before this thread had seen the press: nothing was cancelled, and nothing is to be said.
                continue;
            }
            assert_eq!(done, Err(PerformError::Unknown { path: route.path() }));
            assert_eq!(rig.observer.held(), NOTHING, "{route:?}");
            assert_eq!(rig.observer.look(), before, "{route:?}");
        }
    });
}

/// Field reports D2 and D4: a real button is let go of although the window that it was pressed in is gone.
#[test]
fn a_held_button_outlives_its_window_and_is_released() {
    inside(
        "held::a_held_button_outlives_its_window_and_is_released",
        || {
            let mut rig = Rig::form("qt5");
            let pad = rig.middle("Pad");
            rig.point(Gesture::Press, pad, InputRoute::Global);
            assert_eq!(rig.observer.held().0, LEFT_BUTTON);
            rig.programs.clear();
            let gone = rig.window;
            eventually("the window is gone", || {
                let windows = rig.desktop.windows(&soon()).unwrap();
                let there = windows.iter().any(|window| window.key == gone);
                (!there).then_some(())
            });
            rig.point(Gesture::Release, pad, InputRoute::Global);
            assert_eq!(rig.observer.held(), NOTHING);
        },
    );
}

/// Spec §3.8: a drag that starts beside its window takes the real pointer, and works.
#[test]
fn a_drag_may_begin_beside_its_window() {
    inside("held::a_drag_may_begin_beside_its_window", || {
        let rig = Rig::form("qt5");
        let before = rig.observer.look();
        let pad = rig.middle("Pad");
        let from = WindowPoint::try_new(-4.0, pad.y()).unwrap();
        rig.point(Gesture::Drag { from }, pad, InputRoute::Global);
        assert_eq!(rig.observer.held(), NOTHING);
        assert_eq!(rig.observer.look(), before);
    });
}

/// Field report D2: a button that a request left down goes up with the back end, if nobody released it before.
#[test]
fn a_held_button_goes_up_in_the_end() {
    inside("held::a_held_button_goes_up_in_the_end", || {
        let rig = Rig::form("qt6");
        let before = rig.observer.look();
        let (pad, push) = (rig.middle("Pad"), rig.middle("Push"));

        // Pressed, moved and released in three requests: a drag. Only then are pointer and active window put back.
        rig.point(Gesture::Press, pad, InputRoute::Global);
        assert_eq!(rig.observer.held().0, LEFT_BUTTON);
        let near = WindowPoint::try_new(pad.x() + 20.0, pad.y()).unwrap();
        rig.point(Gesture::Move, near, InputRoute::Global);
        rig.shows("pad drag");
        assert_eq!(rig.reach(Gesture::Release, near), Reach::GlobalOnly);
        // Nothing else is done with the pointer meanwhile.
        let command = PointCommand {
            gesture: CLICK,
            at: push,
        };
        let done = rig
            .desktop
            .point(rig.window, &command, InputRoute::Global, &soon());
        assert_eq!(
            done,
            Err(PerformError::Refused {
                path: Path::CgEventGlobal
            })
        );
        rig.point(Gesture::Release, near, InputRoute::Global);
        rig.shows("pad release 1");
        assert_eq!(rig.observer.held(), NOTHING);
        assert_eq!(rig.observer.look(), before);

        // Left down: another executor sees that it is, and how it can be released.
        rig.point(Gesture::Press, pad, InputRoute::Global);
        let other = LinuxDesktop::open().unwrap();
        let command = PointCommand {
            gesture: Gesture::Release,
            at: pad,
        };
        let reach = other.point_reach(rig.window, &command, &soon());
        assert_eq!(reach, Ok(Reach::GlobalOnly));
        drop(rig.desktop);
        assert_eq!(rig.observer.held(), NOTHING);
        let reach = other.point_reach(rig.window, &command, &soon());
        assert_eq!(reach, Ok(Reach::Window));
    });
}
