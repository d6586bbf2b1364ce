//! Generated trees: as large as wanted and the same for the same seed.

use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{ButtonPart, Content, ControlSpec, LabelStyle};

/// Deepest level of a generated tree below its group.
const MAX_LEVEL: usize = 24;

/// How many of the latest groups a new node may go into: what keeps a tree both wide and deep.
const OPEN_GROUPS: usize = 12;

/// Height of a node, in points.
const ROW: i32 = 24;
/// Width of a node where there is room, in points.
const WIDTH: i32 = 160;
/// How much further right each level lies, in points.
const INDENT: i32 = 8;

/// Adds `count` nodes below the group at `root`: groups, and controls of several kinds with names that are used once.
pub(super) fn tree(controls: &mut Vec<ControlSpec>, root: usize, count: usize, seed: u64) {
    let bounds = controls[root].bounds;
    let mut numbers = Numbers::new(seed);
    let mut groups = vec![(root, 0)];
    for number in 1..=count {
        let open = groups.len().min(OPEN_GROUPS);
        let (parent, level) = groups[groups.len() - 1 - numbers.below(open)];
        let name = |kind: &str| Some(format!("{kind} {number}"));
        let is_group = level < MAX_LEVEL && numbers.below(5) == 0;
        let (content, title, label) = if is_group {
            groups.push((controls.len(), level + 1));
            (Content::Group, None, None)
        } else {
            match numbers.below(5) {
                0 => (Content::Label(LabelStyle::Body), name("Label"), None),
                1 => {
                    let part = ButtonPart::Plain;
                    (Content::Button { part }, name("Button"), None)
                }
                2 => {
                    let checked = numbers.below(2) == 0;
                    (Content::CheckBox { checked }, name("Box"), None)
                }
                3 => {
                    let value = format!("Value {}", numbers.below(1_000));
                    (Content::TextField { value }, None, name("Field"))
                }
                _ => (Content::Link, name("Link"), None),
            }
        };
        let place = place(bounds, number, level);
        controls.push(ControlSpec {
            title,
            label,
            ..ControlSpec::plain(Some(parent), place, content)
        });
    }
}

/// The place of node `number`: one below the other like the rows of an outline, those beyond the lower edge below it, as on a
/// page before it is scrolled.
fn place(bounds: Rect, number: usize, level: usize) -> Rect {
    let whole = |number: usize| i32::try_from(number).unwrap_or(i32::MAX / ROW);
    let indent = (whole(level) * INDENT).min(bounds.width - 1);
    Rect::new(
        bounds.x + indent,
        bounds.y + whole(number - 1) * ROW,
        (bounds.width - indent).min(WIDTH),
        ROW,
    )
}

/// A sequence of numbers that look like chance: `SplitMix64`, by Steele, Lea and Flood (OOPSLA 2014).
struct Numbers(u64);

impl Numbers {
    const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`, which is at least 1.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(end).unwrap_or(1)).unwrap_or(0)
    }
}
