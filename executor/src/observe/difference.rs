//! What changed since the base (spec §4.9): a rendering hint, made from a [`Lineage`].
//!
//! Of elements that are gone, the topmost are listed, at their place in the base, and all of their numbers are in the
//! ranges. Of elements that are new, every one is listed, since a reader has to show every one.

use std::collections::HashSet;

use maka_cu_protocol::difference::{Change, Changed, Difference, StableIdRange};
use maka_cu_protocol::element::Element;
use maka_cu_protocol::sets::{ChangeKind, Presentation};

use super::lineage::{BaseNode, Lineage, ROOT};

/// Steps that the paths of one difference may have, all together. A tree can be so deep that naming places in it is
/// longer than the tree itself; then the whole tree says it shortest.
const STEPS: usize = 256 << 10;

/// The difference between the base and what is sent, which are the first elements of the traced tree; `None` without base.
pub(super) fn difference(lineage: &Lineage, sent: &[Element]) -> Option<Difference> {
    let base = lineage.base.as_deref()?;
    let current = &lineage.nodes[..sent.len().min(lineage.nodes.len())];
    let kept: HashSet<u32> = current.iter().filter_map(|node| node.origin).collect();
    let gone = |at: &usize| !kept.contains(&super::lineage::index(*at));
    let removed: Vec<usize> = (0..base.nodes.len()).filter(gone).collect();
    // The parent of what is gone is there still, or its own entry says it.
    let topmost = |at: &&usize| {
        let parent = base.nodes[**at].parent;
        parent == ROOT || kept.contains(&parent)
    };
    let inserted = current
        .iter()
        .zip(sent)
        .enumerate()
        .filter_map(|(at, (node, element))| {
            let changed = match node.origin {
                None => Changed::Inserted(element.token.clone()),
                Some(origin) if base.nodes[origin as usize].content != lineage.content(element) => {
                    Changed::Updated(element.token.clone())
                }
                Some(_) => return None,
            };
            Some((at, changed))
        });
    let inserted: Vec<_> = inserted.collect();
    let removed_stable_id_ranges = ranges(&removed, &base.nodes);
    let old_places = Places::of(base.nodes.iter().map(|node| node.parent));
    let new_places = Places::of(current.iter().map(|node| node.parent));
    let topmost: Vec<usize> = removed.iter().filter(topmost).copied().collect();
    let lines = topmost.len() + inserted.len() + removed_stable_id_ranges.len();
    let steps = topmost
        .iter()
        .map(|at| old_places.depth(*at))
        .sum::<usize>()
        + inserted
            .iter()
            .map(|(at, _)| new_places.depth(*at))
            .sum::<usize>();
    let presentation = match lines {
        0 => Presentation::NoChange,
        lines if lines > sent.len() || steps > STEPS => Presentation::Full,
        _ => Presentation::Difference,
    };
    let mut changes = Vec::new();
    if presentation == Presentation::Difference {
        changes.extend(topmost.into_iter().map(|at| Change {
            path: old_places.path(at),
            stable_id: base.nodes[at].stable_id,
            changed: Changed::Removed,
        }));
        changes.extend(inserted.into_iter().map(|(at, changed)| Change {
            path: new_places.path(at),
            stable_id: current[at].stable_id,
            changed,
        }));
        changes.sort_by(|a, b| (&a.path, rank(a.kind())).cmp(&(&b.path, rank(b.kind()))));
    }
    Some(Difference {
        base_snapshot_id: base.snapshot_id.clone(),
        presentation,
        changes,
        removed_stable_id_ranges,
    })
}

const fn rank(kind: ChangeKind) -> u8 {
    match kind {
        ChangeKind::Remove => 0,
        ChangeKind::Insert => 1,
        ChangeKind::Update => 2,
    }
}

/// The numbers of these elements as inclusive ranges, without a number that none of them has.
fn ranges(removed: &[usize], nodes: &[BaseNode]) -> Vec<StableIdRange> {
    let mut numbers: Vec<u64> = removed.iter().map(|at| nodes[*at].stable_id).collect();
    numbers.sort_unstable();
    let mut ranges: Vec<StableIdRange> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end.checked_add(1) == Some(number) => last.end = number,
            Some(_) | None => ranges.push(StableIdRange {
                start: number,
                end: number,
            }),
        }
    }
    ranges
}

/// Where each node of a tree stands among those that were sent.
struct Places(Vec<Place>);

#[derive(Clone, Copy)]
struct Place {
    parent: u32,
    /// Position among the children of the parent.
    position: u32,
    /// Steps of the path.
    depth: u32,
}

impl Places {
    /// From the parents, in depth-first order.
    fn of(parents: impl ExactSizeIterator<Item = u32>) -> Self {
        let mut seen = vec![0_u32; parents.len()];
        let mut places: Vec<Place> = Vec::with_capacity(parents.len());
        for parent in parents {
            let (position, depth) = match places.get(parent as usize) {
                None => (0, 1),
                Some(above) => {
                    let next = &mut seen[parent as usize];
                    *next += 1;
                    (*next - 1, above.depth + 1)
                }
            };
            places.push(Place {
                parent,
                position,
                depth,
            });
        }
        Self(places)
    }

    fn depth(&self, at: usize) -> usize {
        self.0[at].depth as usize
    }

    fn path(&self, at: usize) -> Vec<u32> {
        let mut path = Vec::with_capacity(self.depth(at));
        let mut place = self.0.get(at);
        while let Some(here) = place {
            path.push(here.position);
            place = self.0.get(here.parent as usize);
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests;
