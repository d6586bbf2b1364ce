//! Numbers that stay with the elements of one window from snapshot to snapshot (spec §4.3).
//!
//! A snapshot leaves a [`Base`] behind: what is needed to recognise its elements again and to tell whether they changed,
//! as two keyed hashes an element. No text is kept. The next snapshot of the window is traced against it ([`Lineage`]):
//! the roots are the same element, and below two elements that are the same, children are matched in order by role,
//! subrole, identifier, title and label.
//!
//! INVARIANT: within one chain a number is given out once. Snapshots that were taken side by side share the counter.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use maka_cu_protocol::element::Element;
use maka_cu_protocol::geometry::WindowRect;
use maka_cu_protocol::ids::SnapshotId;

use super::common::{CELLS, common};
use crate::backend::tree::RawNode;

/// What a snapshot leaves for its successor: some 32 bytes an element.
#[derive(Debug)]
pub struct Base {
    pub(super) snapshot_id: SnapshotId,
    taken: Instant,
    pub(super) nodes: Vec<BaseNode>,
    chain: Chain,
}

/// One element of a base. The list is in depth-first order.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseNode {
    pub(super) stable_id: u64,
    /// Hash of what it is matched by.
    likeness: u64,
    /// Hash of its wire fields.
    pub(super) content: u64,
    /// Index of the parent; [`ROOT`] for the root.
    pub(super) parent: u32,
}

/// The parent of a root.
pub(super) const ROOT: u32 = u32::MAX;

/// What all snapshots of a chain share.
#[derive(Debug, Clone)]
struct Chain {
    /// Keyed at random, so that no application can choose texts that collide.
    hasher: RandomState,
    next: Arc<AtomicU64>,
}

/// The elements of one walked tree with their numbers.
#[derive(Debug)]
pub struct Lineage {
    chain: Chain,
    pub(super) base: Option<Arc<Base>>,
    pub(super) nodes: Vec<Traced>,
}

/// One element of a traced tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traced {
    pub(super) stable_id: u64,
    likeness: u64,
    pub(super) parent: u32,
    /// Which element of the base it is.
    pub(super) origin: Option<u32>,
}

impl Base {
    /// When its snapshot was taken.
    #[must_use]
    pub const fn taken(&self) -> Instant {
        self.taken
    }

    /// Its snapshot.
    #[must_use]
    pub const fn snapshot_id(&self) -> &SnapshotId {
        &self.snapshot_id
    }
}

impl Lineage {
    /// Numbers a tree: elements that are in the base keep their number, the others get new ones in depth-first order.
    #[must_use]
    pub fn trace(base: Option<Arc<Base>>, nodes: &[RawNode]) -> Self {
        let chain = base.as_ref().map_or_else(
            || Chain {
                hasher: RandomState::new(),
                next: Arc::new(AtomicU64::new(0)),
            },
            |base| base.chain.clone(),
        );
        let mut nodes: Vec<_> = nodes
            .iter()
            .map(|node| Traced {
                stable_id: 0,
                likeness: likeness(&chain.hasher, node),
                parent: node.parent.map_or(ROOT, index),
                origin: None,
            })
            .collect();
        if let Some(base) = &base {
            find_origins(&base.nodes, &mut nodes);
        }
        let fresh = nodes.iter().filter(|node| node.origin.is_none()).count() as u64;
        let mut next = chain.next.fetch_add(fresh, Ordering::Relaxed);
        for node in &mut nodes {
            node.stable_id = match (node.origin, &base) {
                (Some(origin), Some(base)) => base.nodes[origin as usize].stable_id,
                (Some(_) | None, _) => {
                    next += 1;
                    next - 1
                }
            };
        }
        Self { chain, base, nodes }
    }

    /// The number of an element.
    #[must_use]
    pub fn stable_id(&self, index: usize) -> Option<u64> {
        Some(self.nodes.get(index)?.stable_id)
    }

    /// What the next snapshot is traced against, when these elements, the first of the tree, are what was sent.
    #[must_use]
    pub fn leave(self, snapshot_id: SnapshotId, taken: Instant, sent: &[Element]) -> Base {
        let nodes = self
            .nodes
            .iter()
            .zip(sent)
            .map(|(node, element)| BaseNode {
                stable_id: node.stable_id,
                likeness: node.likeness,
                content: self.content(element),
                parent: node.parent,
            })
            .collect();
        Base {
            snapshot_id,
            taken,
            nodes,
            chain: self.chain,
        }
    }

    /// Hash of the wire fields in which an element can be updated: all but token, parent, depth, number and digest.
    pub(super) fn content(&self, element: &Element) -> u64 {
        // Taken apart so that a new field has to be thought about here.
        let Element {
            token: _,
            stable_id: _,
            parent_token: _,
            depth: _,
            digest: _,
            role,
            subrole,
            ax_identifier,
            title,
            label,
            value,
            placeholder,
            enabled,
            focused,
            selected,
            frame,
            actions,
            truncated,
        } = element;
        let texts = (subrole, ax_identifier, title, label, value, placeholder);
        let states = (enabled, focused, selected, frame.map(bits));
        self.chain
            .hasher
            .hash_one((role.as_str(), texts, states, actions, truncated))
    }
}

/// What an element is matched by: its untruncated texts, so that another text bound does not make it another element.
fn likeness(hasher: &RandomState, node: &RawNode) -> u64 {
    let mut state = hasher.build_hasher();
    (&node.role, &node.subrole, &node.ax_identifier).hash(&mut state);
    (&node.title, &node.label).hash(&mut state);
    state.finish()
}

fn bits(frame: WindowRect) -> [u64; 4] {
    // Adding zero makes the two zeros one.
    [frame.x(), frame.y(), frame.width(), frame.height()].map(|number| (number + 0.0).to_bits())
}

/// Finds the element of the base that each element is. A loop and not a recursion: trees can be deep.
fn find_origins(old: &[BaseNode], new: &mut [Traced]) {
    if old.is_empty() || new.is_empty() {
        return;
    }
    let old_children = Children::of(old.iter().map(|node| node.parent));
    let new_children = Children::of(new.iter().map(|node| node.parent));
    let mut allowance = CELLS;
    let mut same = vec![(0_u32, 0_u32)];
    while let Some((o, n)) = same.pop() {
        new[n as usize].origin = Some(o);
        let (olds, news) = (old_children.at(o), new_children.at(n));
        let old_likeness: Vec<_> = olds.iter().map(|at| old[*at as usize].likeness).collect();
        let new_likeness: Vec<_> = news.iter().map(|at| new[*at as usize].likeness).collect();
        let pairs = common(&old_likeness, &new_likeness, &mut allowance);
        same.extend(pairs.into_iter().map(|(o, n)| (olds[o], news[n])));
    }
}

/// The children of every node, in order.
#[derive(Debug)]
pub(super) struct Children {
    /// Where the children of each node begin in the list; one entry more than there are nodes.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Children {
    /// From the parents, in depth-first order.
    pub(super) fn of(parents: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0; parents.len() + 1];
        for parent in parents.clone().filter(|parent| *parent != ROOT) {
            starts[parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut free = starts.clone();
        let mut list = vec![0; starts.last().copied().unwrap_or(0) as usize];
        for (child, parent) in parents.enumerate().filter(|(_, parent)| *parent != ROOT) {
            let place = &mut free[parent as usize];
            list[*place as usize] = index(child);
            *place += 1;
        }
        Self { starts, list }
    }

    /// The children of one node.
    pub(super) fn at(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.list[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// A position as it is kept. No tree comes near the bound, which `maxResponseBytes` alone rules out.
pub(super) fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(ROOT - 1)
}
