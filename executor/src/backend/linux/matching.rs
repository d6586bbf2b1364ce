//! Which accessible belongs to which window, when one process has several of each. Pure.

use super::display::Area;
use super::frame::Extents;

/// The window manager's frame makes an accessible this much larger than the X window, at most.
const FRAME_WIDTH: u32 = 24;
const FRAME_HEIGHT: u32 = 64;

/// A window on the X side.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowSide<'t> {
    pub(super) title: &'t str,
    pub(super) area: Area,
}

/// A top-level accessible.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessibleSide<'t> {
    pub(super) name: &'t str,
    /// In screen coordinates; not trusted for its position, which GTK 4 gets wrong.
    pub(super) extents: Option<Extents>,
}

/// How well a pair fits, best first in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    points: u8,
}

fn fit(window: WindowSide<'_>, accessible: AccessibleSide<'_>) -> Fit {
    let near = |left: i32, right: u32, slack: u32| {
        i64::from(left).abs_diff(i64::from(right)) <= u64::from(slack)
    };
    let near_at = |left: i32, right: i32, slack: u32| {
        i64::from(left).abs_diff(i64::from(right)) <= u64::from(slack)
    };
    let mut points = 0;
    if let Some(extents) = accessible.extents {
        let same_size = near(extents.width, window.area.width, FRAME_WIDTH)
            && near(extents.height, window.area.height, FRAME_HEIGHT);
        let same_place = near_at(extents.x, window.area.x, FRAME_WIDTH)
            && near_at(extents.y, window.area.y, FRAME_HEIGHT);
        points += if same_size { 2 } else { 0 };
        points += if same_size && same_place { 2 } else { 0 };
    }
    if !window.title.is_empty() && window.title == accessible.name {
        points += 3;
    }
    Fit { points }
}

/// The accessible of `windows[wanted]`, or `None` when nothing fits or two fit alike: acting on the wrong window is worse
/// than not acting.
pub(super) fn choose(
    windows: &[WindowSide<'_>],
    wanted: usize,
    accessibles: &[AccessibleSide<'_>],
) -> Option<usize> {
    let window = *windows.get(wanted)?;
    // One of each: they belong together, however odd the toolkit's numbers are.
    if let ([_], [_]) = (windows, accessibles) {
        return Some(0);
    }
    let fits: Vec<Fit> = accessibles
        .iter()
        .map(|accessible| fit(window, *accessible))
        .collect();
    let best = *fits.iter().max()?;
    if best == Fit::default() {
        return None;
    }
    let mut of_best = fits
        .iter()
        .enumerate()
        .filter(|(_, fit)| **fit == best)
        .map(|(index, _)| index);
    let (Some(index), None) = (of_best.next(), of_best.next()) else {
        return None;
    };
    // Another window that fits it as well makes the choice a guess.
    let rival = windows
        .iter()
        .enumerate()
        .any(|(other, window)| other != wanted && fit(*window, accessibles[index]) >= best);
    (!rival).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn window(title: &str, x: i32, y: i32, width: u32, height: u32) -> WindowSide<'_> {
        WindowSide {
            title,
            area: Area {
                x,
                y,
                width,
                height,
            },
        }
    }

    const fn accessible(name: &str, x: i32, y: i32, width: i32, height: i32) -> AccessibleSide<'_> {
        AccessibleSide {
            name,
            extents: Some(Extents {
                x,
                y,
                width,
                height,
            }),
        }
    }

    #[test]
    fn pairs_are_found_or_refused() {
        let main = window("Notes", 101, 120, 800, 600);
        let ask = window("Ask", 301, 220, 200, 120);
        let twin = window("Notes", 501, 120, 800, 600);
        let main_a = accessible("Notes", 100, 100, 802, 625);
        let twin_a = accessible("Notes", 500, 100, 802, 625);
        let ask_a = accessible("Ask", 300, 200, 202, 145);
        let popup = accessible("", 0, 0, 1, 1);
        let check = |what: &str, windows: &[_], wanted, accessibles: &[_], expected| {
            assert_eq!(choose(windows, wanted, accessibles), expected, "{what}");
        };
        check("only one of each", &[main], 0, &[popup], Some(0));
        check("by title", &[main, ask], 1, &[main_a, ask_a], Some(1));
        check(
            "pop-ups are not windows",
            &[main],
            0,
            &[popup, main_a],
            Some(1),
        );
        check(
            "same title, by place",
            &[main, twin],
            1,
            &[main_a, twin_a],
            Some(1),
        );
        check(
            "same in everything",
            &[main, main],
            0,
            &[main_a, main_a],
            None,
        );
        check(
            "one accessible for two alike",
            &[main, main],
            0,
            &[main_a],
            None,
        );
        check(
            "the other window's accessible",
            &[main, ask],
            1,
            &[main_a],
            None,
        );
        check("nothing there", &[main], 0, &[], None);
        check("no such window", &[main], 1, &[main_a], None);
    }
}
