//! What must not change while a program is operated, asked of the X server on a connection of its own.

use maka_cu::backend::Backend;
use maka_cu::backend::linux::LinuxDesktop;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};
use x11rb::rust_connection::RustConnection;

use crate::form::soon;
use crate::table::Side;

/// The desktop's state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    pointer: (i16, i16),
    pub(crate) active: Option<u32>,
    /// Front to back.
    stacking: Vec<u32>,
    focus: u32,
}

impl Sides {
    pub(crate) fn now(desktop: &LinuxDesktop, screen: &Screen) -> Self {
        let pointer = screen.connection.query_pointer(screen.root).unwrap();
        let pointer = pointer.reply().unwrap();
        let active = screen.connection.get_property(
            false,
            screen.root,
            screen.active,
            AtomEnum::WINDOW,
            0,
            1,
        );
        let active = active.unwrap().reply().unwrap();
        let focus = screen
            .connection
            .get_input_focus()
            .unwrap()
            .reply()
            .unwrap();
        let windows = desktop.windows(&soon()).unwrap();
        Self {
            pointer: (pointer.root_x, pointer.root_y),
            active: active.value32().and_then(|mut values| values.next()),
            stacking: windows.iter().map(|window| window.key.window_id).collect(),
            focus: focus.focus,
        }
    }

    /// What differs from an earlier moment. Windows that were opened or closed do not change the order of the others.
    pub(crate) fn since(&self, before: &Self) -> Vec<Side> {
        let common = |one: &Self, other: &Self| -> Vec<u32> {
            let stays = |id: &&u32| other.stacking.contains(id);
            one.stacking.iter().filter(stays).copied().collect()
        };
        [
            (Side::Pointer, self.pointer != before.pointer),
            (Side::Active, self.active != before.active),
            (Side::Stacking, common(self, before) != common(before, self)),
            (Side::Focus, self.focus != before.focus),
        ]
        .into_iter()
        .filter_map(|(side, changed)| changed.then_some(side))
        .collect()
    }
}

/// A connection that only looks.
pub(crate) struct Screen {
    connection: RustConnection,
    root: u32,
    active: u32,
}

impl Screen {
    pub(crate) fn connect() -> Self {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let root = x11rb::connection::Connection::setup(&connection).roots[screen].root;
        let active = connection
            .intern_atom(false, b"_NET_ACTIVE_WINDOW")
            .unwrap();
        let active = active.reply().unwrap().atom;
        Self {
            connection,
            root,
            active,
        }
    }
}

#[test]
fn what_changed_is_told() {
    let before = Sides {
        pointer: (1, 2),
        active: Some(5),
        stacking: vec![5, 6, 7],
        focus: 5,
    };
    let moved = Sides {
        pointer: (1, 3),
        ..before.clone()
    };
    let raised = Sides {
        active: Some(7),
        stacking: vec![7, 5, 6],
        focus: 7,
        ..before.clone()
    };
    let opened = Sides {
        stacking: vec![8, 5, 6],
        ..before.clone()
    };
    let rows: [(&Sides, &[Side]); 4] = [
        (&before, &[]),
        (&moved, &[Side::Pointer]),
        (&raised, &[Side::Active, Side::Stacking, Side::Focus]),
        (&opened, &[]),
    ];
    for (now, expected) in rows {
        assert_eq!(now.since(&before), expected, "{now:?}");
    }
}
