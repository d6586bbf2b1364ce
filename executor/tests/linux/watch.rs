//! What is asked of the X server on a connection that only looks. Shared by the test crates of this package.

use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};
use x11rb::rust_connection::RustConnection;

/// A connection that only looks.
pub(crate) struct Watch {
    pub(crate) connection: RustConnection,
    pub(crate) root: u32,
}

impl Watch {
    pub(crate) fn connect() -> Self {
        let (connection, screen) = x11rb::connect(None).unwrap();
        let root = x11rb::connection::Connection::setup(&connection).roots[screen].root;
        Self { connection, root }
    }

    /// Where the person's pointer is.
    pub(crate) fn pointer(&self) -> (i16, i16) {
        let pointer = self.connection.query_pointer(self.root).unwrap();
        let pointer = pointer.reply().unwrap();
        (pointer.root_x, pointer.root_y)
    }

    /// The windows in a property of the root.
    pub(crate) fn windows(&self, name: &str) -> Vec<u32> {
        let connection = &self.connection;
        let atom = connection.intern_atom(false, name.as_bytes()).unwrap();
        let atom = atom.reply().unwrap().atom;
        let property = connection.get_property(false, self.root, atom, AtomEnum::WINDOW, 0, 1000);
        let property = property.unwrap().reply().unwrap();
        property.value32().into_iter().flatten().collect()
    }

    /// The window that the window manager calls active; 0 when none is.
    pub(crate) fn active(&self) -> u32 {
        self.windows("_NET_ACTIVE_WINDOW")
            .first()
            .copied()
            .unwrap_or(0)
    }

    /// The client window that has the keyboard. A GTK program gives it on to a child of its window, in its own time after
    /// the window manager gave it to the window: that is the program's business, and no difference.
    pub(crate) fn focused_client(&self) -> u32 {
        let clients = self.windows("_NET_CLIENT_LIST");
        let focus = self.connection.get_input_focus().unwrap().reply().unwrap();
        let mut window = focus.focus;
        // The root's children are nobody's: 0 and 1 are "none" and "pointer root".
        while window > 1 && !clients.contains(&window) {
            let Ok(tree) = self.connection.query_tree(window).unwrap().reply() else {
                return focus.focus;
            };
            window = tree.parent;
        }
        if window > 1 { window } else { focus.focus }
    }
}
