//! What is typed, and on which keyboard.

use std::fs;
use std::process::Command;

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{InputRoute, Reach};
use maka_cu::backend::perform::PerformError;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::sets::{Modifier, Path};

use crate::rig::{CLICK, NOTHING, Rig, chord, typed};
use crate::stage::{Program, eventually, home, inside, soon};

/// The honest negative: a program of no toolkit. Field report E5: lines arrive in order.
#[test]
fn a_terminal_is_typed_into_by_the_keyboard_only() {
    inside(
        "typing::a_terminal_is_typed_into_by_the_keyboard_only",
        || {
            let written = home().join("written.txt");
            let script = format!("cat > {}; echo done >> {0}", written.display());
            let terminal = Program::spawn(
                Command::new("xterm").args(["-T", "Terminal", "-e", "sh", "-c", &script]),
            );
            let rig = Rig::new(vec![terminal], "Terminal");
            let before = rig.observer.look();
            let inside = WindowPoint::try_new(20.0, 20.0).unwrap();
            assert_eq!(rig.reach(CLICK, inside), Reach::GlobalOnly);
            let lines = typed("Echo `this` \"twice\"\r\n\ttab & $HOME\nlast\r");
            let reach = rig.desktop.key_reach(&rig.root, &lines, &soon());
            assert_eq!(reach, Ok(Reach::GlobalOnly));
            // It has no element to focus; its window is what gets the keys.
            let focused = |route| rig.desktop.focus(&rig.root, route, &soon());
            assert_eq!(focused(InputRoute::Window), Ok(false));
            assert_eq!(focused(InputRoute::Global), Ok(true));
            rig.keys(&rig.root, &lines, InputRoute::Global);
            rig.keys(
                &rig.root,
                &chord('d', &[Modifier::Control]),
                InputRoute::Global,
            );
            let text = eventually("the program has ended", || {
                let text = fs::read_to_string(&written).ok()?;
                text.ends_with("done\n").then_some(text)
            });
            assert_eq!(text, "Echo `this` \"twice\"\n\ttab & $HOME\nlast\ndone\n");
            assert_eq!(rig.observer.look(), before);
            assert_eq!(rig.observer.held(), NOTHING);
        },
    );
}

/// Field reports E1 and E2: what the layout has is typed right, also by its third level; what it has not is not begun.
#[test]
fn text_is_typed_on_the_layout_as_it_is() {
    inside("typing::text_is_typed_on_the_layout_as_it_is", || {
        let set = Command::new("setxkbmap").arg("de").status().unwrap();
        assert!(set.success());
        let rig = Rig::form("qt6");
        let entry = rig.named("Entry").node_ref;
        for (route, text) in [
            (InputRoute::Window, "Zyß@€ÄÖü{|~"),
            (InputRoute::Global, "zY§Ü°µ\\"),
        ] {
            let focused = rig.desktop.focus(&entry, route, &soon());
            assert_eq!(focused, Ok(true), "{route:?}");
            rig.keys(&entry, &chord('a', &[Modifier::Control]), route);
            if route == InputRoute::Global {
                // The chord has put the window back.
                assert_eq!(rig.desktop.focus(&entry, route, &soon()), Ok(true));
            }
            rig.keys(&entry, &typed(text), route);
            eventually("the text", || {
                let nodes = rig
                    .desktop
                    .read_nodes(std::slice::from_ref(&entry), &soon());
                let value = nodes.unwrap().remove(0).unwrap().value;
                (value.unwrap().as_str() == text).then_some(())
            });
        }
        let before = rig.named("Entry").value;
        for text in ["aé", "a漢", "👨\u{200d}👩", "a\u{301}", "\u{1b}"] {
            let reach = rig.desktop.key_reach(&entry, &typed(text), &soon());
            assert_eq!(reach, Ok(Reach::Never), "{text:?}");
            let done = rig
                .desktop
                .keys(&entry, &typed(text), InputRoute::Window, &soon());
            assert_eq!(
                done,
                Err(PerformError::Refused {
                    path: Path::CgEventPid
                }),
                "{text:?}"
            );
        }
        assert_eq!(rig.named("Entry").value, before);
        assert_eq!(rig.observer.held(), NOTHING);
        let function = chord('a', &[Modifier::Fn]);
        assert_eq!(
            rig.desktop.key_reach(&entry, &function, &soon()),
            Ok(Reach::Never)
        );
    });
}
