//! A program in the background of a window that somebody works in, and what must stay as it is there.

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{Gesture, InputRoute, KeyCommand, PointCommand, Reach};
use maka_cu::backend::linux::LinuxDesktop;
use maka_cu::backend::perform::Performed;
use maka_cu::backend::tree::{NodeRef, RawNode, RawTree};
use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::{WindowPoint, WindowRect};
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::keys::{Key, Printable};
use maka_cu_protocol::sets::{Direction, Modifier, MouseButton};
use x11rb::protocol::xproto::ConnectionExt as _;

use crate::stage::{Program, eventually, root_of, soon, tree_of, window_of};
use crate::watch::Watch;

/// What is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pointer: (i16, i16),
    pub(crate) active: u32,
    pub(crate) top: u32,
    pub(crate) focus: u32,
}

/// A connection that only looks.
pub(crate) struct Observer(pub(crate) Watch);

impl Observer {
    pub(crate) fn connect() -> Self {
        Self(Watch::connect())
    }

    pub(crate) fn look(&self) -> Surroundings {
        let stacking = self.0.windows("_NET_CLIENT_LIST_STACKING");
        Surroundings {
            pointer: self.0.pointer(),
            active: self.0.active(),
            top: stacking.last().copied().unwrap_or(0),
            focus: self.0.focused_client(),
        }
    }

    /// Modifiers and buttons that are down, and whether any key is.
    pub(crate) fn held(&self) -> (u16, bool) {
        let Watch { connection, root } = &self.0;
        let pointer = connection.query_pointer(*root).unwrap();
        let keys = connection.query_keymap().unwrap().reply().unwrap().keys;
        let any_key = keys.iter().any(|byte| *byte != 0);
        (pointer.reply().unwrap().mask.into(), any_key)
    }
}

/// Nothing is down.
pub(crate) const NOTHING: (u16, bool) = (0, false);
/// The left button, in a state.
pub(crate) const LEFT_BUTTON: u16 = 0x100;

/// A program in the background of a window that somebody works in.
pub(crate) struct Rig {
    pub(crate) desktop: LinuxDesktop,
    pub(crate) observer: Observer,
    pub(crate) window: WindowKey,
    pub(crate) root: NodeRef,
    pub(crate) programs: Vec<Program>,
}

impl Rig {
    pub(crate) fn form(name: &str) -> Self {
        Self::new(vec![Program::form(name)], &format!("Form {name}"))
    }

    pub(crate) fn new(programs: Vec<Program>, title: &str) -> Self {
        Self::on(LinuxDesktop::open().unwrap(), programs, title)
    }

    /// On a desktop that the test has taken.
    pub(crate) fn on(desktop: LinuxDesktop, mut programs: Vec<Program>, title: &str) -> Self {
        let window = window_of(&desktop, title).key;
        programs.push(Program::form("bystander"));
        let busy = window_of(&desktop, "Bystander").key.window_id;
        let observer = Observer::connect();
        eventually("the other window is worked in", || {
            let now = observer.look();
            (now.active == busy && now.top == busy && now.focus == busy).then_some(())
        });
        let mut rig = Self::over(desktop, observer, window);
        rig.programs = programs;
        rig
    }

    /// Over programs that the test has started.
    pub(crate) fn over(desktop: LinuxDesktop, observer: Observer, window: WindowKey) -> Self {
        let root = root_of(&desktop, window);
        Self {
            desktop,
            observer,
            window,
            root,
            programs: Vec::new(),
        }
    }

    /// Read from the window on: a program may join the accessibility bus after its window is there.
    pub(crate) fn tree(&self) -> RawTree {
        tree_of(&self.desktop, self.window)
    }

    pub(crate) fn named(&self, name: &str) -> RawNode {
        eventually(name, || {
            let is_named = |node: &RawNode| {
                let title = node.title.as_ref().map(|title| title.as_str());
                title == Some(name) && node.frame.is_some()
            };
            self.tree().nodes.into_iter().find(is_named)
        })
    }

    pub(crate) fn middle(&self, name: &str) -> WindowPoint {
        middle_of(self.named(name).frame.unwrap())
    }

    pub(crate) fn reach(&self, gesture: Gesture, at: WindowPoint) -> Reach {
        let command = PointCommand { gesture, at };
        let reach = self.desktop.point_reach(self.window, &command, &soon());
        reach.unwrap()
    }

    pub(crate) fn point(&self, gesture: Gesture, at: WindowPoint, route: InputRoute) {
        let command = PointCommand { gesture, at };
        let done = self.desktop.point(self.window, &command, route, &soon());
        assert_eq!(done, Ok(Performed::by(route.path())), "{gesture:?}");
    }

    pub(crate) fn keys(&self, node: &NodeRef, command: &KeyCommand, route: InputRoute) {
        let done = self.desktop.keys(node, command, route, &soon());
        assert_eq!(done, Ok(Performed::by(route.path())), "{command:?}");
    }

    /// Waits for an event that the form has shown last, or before last.
    pub(crate) fn shows(&self, event: &str) {
        eventually(event, || {
            let tree = self.tree();
            let titles = tree.nodes.iter().filter_map(|node| node.title.as_ref());
            let log = titles
                .filter_map(|title| title.as_str().strip_prefix("log "))
                .next()?;
            log.split([':', '|'])
                .any(|shown| shown.trim() == event)
                .then_some(())
        });
    }
}

pub(crate) fn middle_of(frame: WindowRect) -> WindowPoint {
    let (x, y) = (
        frame.x() + frame.width() / 2.0,
        frame.y() + frame.height() / 2.0,
    );
    WindowPoint::try_new(x, y).unwrap()
}

pub(crate) const CLICK: Gesture = Gesture::Click {
    button: MouseButton::Left,
    count: 1,
};

pub(crate) fn wheel(direction: Direction) -> Gesture {
    Gesture::Scroll {
        direction,
        pages: Pages::new(0.2).unwrap(),
    }
}

pub(crate) fn typed(text: &str) -> KeyCommand {
    KeyCommand::Type(text.into())
}

pub(crate) fn chord(key: char, modifiers: &[Modifier]) -> KeyCommand {
    KeyCommand::Chord {
        key: Key::Printable(Printable::new(key).unwrap()),
        modifiers: modifiers.iter().copied().collect(),
    }
}
