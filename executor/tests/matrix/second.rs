//! The gestures of the pointer where the executor may use a second one: the same rows with other cells.

use maka_cu_protocol::sets::Path;

use crate::input;
use crate::table::{Cell, Cover, Row, Toolkit, clean};

/// Those that it makes a difference for.
pub(crate) const TOOLKITS: [Toolkit; 4] =
    [Toolkit::Gtk3, Toolkit::Gtk4, Toolkit::Qt5, Toolkit::Qt6];

const UNNOTICED: Cell = clean(Path::CgEventPid);

pub(crate) fn rows() -> Vec<Row> {
    let with_second = |row: &Row| match row.name {
        // These take the person's pointer whatever there is beside it.
        "move the pointer" | "drag from outside of the window" => *row,
        name if name.starts_with("wheel") => Row {
            cells: |_, cover| unless_covered(cover),
            ..*row
        },
        _ => Row {
            cells: press,
            ..*row
        },
    };
    input::POINTS.iter().map(with_second).collect()
}

/// Qt is sent its presses, which arrive in a covered window as well.
fn press(toolkit: Toolkit, cover: Cover) -> Cell {
    match toolkit {
        Toolkit::Gtk3 | Toolkit::Gtk4 => unless_covered(cover),
        Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => UNNOTICED,
    }
}

/// A pointer is over what lies on top.
const fn unless_covered(cover: Cover) -> Cell {
    match cover {
        Cover::Uncovered => UNNOTICED,
        Cover::Covered => Cell::NeedsGlobal,
    }
}
