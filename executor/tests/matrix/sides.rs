//! What must not change while a program is operated, asked of the X server on a connection of its own.

use maka_cu::backend::Backend as _;
use maka_cu::backend::linux::LinuxDesktop;

use crate::form::soon;
use crate::table::Side;
use crate::watch::Watch;

/// The desktop's state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    pointer: (i16, i16),
    pub(crate) active: u32,
    /// Front to back.
    stacking: Vec<u32>,
    /// The window whose program has it.
    focus: u32,
}

impl Sides {
    pub(crate) fn now(desktop: &LinuxDesktop, watch: &Watch) -> Self {
        let windows = desktop.windows(&soon()).unwrap();
        Self {
            pointer: watch.pointer(),
            active: watch.active(),
            stacking: windows.iter().map(|window| window.key.window_id).collect(),
            focus: watch.focused_client(),
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

#[test]
fn what_changed_is_told() {
    let before = Sides {
        pointer: (1, 2),
        active: 5,
        stacking: vec![5, 6, 7],
        focus: 5,
    };
    let moved = Sides {
        pointer: (1, 3),
        ..before.clone()
    };
    let raised = Sides {
        active: 7,
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
