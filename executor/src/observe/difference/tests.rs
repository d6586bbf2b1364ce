//! Laws of numbers and differences over chains of trees, cut ones included.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use maka_cu_protocol::ids::{ElementToken, SnapshotId};
use maka_cu_protocol::json::Json as _;
use maka_cu_protocol::text::AppText;
use proptest::prelude::*;

use super::*;
use crate::backend::tree::{NodeRef, RawNode};
use crate::observe::lineage::Base;
use crate::observe::tree::convert;
use crate::snapshot::Home;

/// One node of a generated tree: how far up from the node before it its parent is, its title, its value.
type Sprout = (usize, u8, u8);

fn raw(parent: Option<usize>, title: u8, value: u8) -> RawNode {
    RawNode {
        role: "AXGroup".to_owned(),
        subrole: None,
        ax_identifier: None,
        title: Some(AppText::new(format!("title {title}"))),
        label: None,
        value: Some(AppText::new(format!("value {value}"))),
        placeholder: None,
        enabled: true,
        focused: false,
        selected: None,
        frame: None,
        actions: Vec::new(),
        value_settable: false,
        secure: false,
        ancestor_roles: Vec::new(),
        sibling_index: 0,
        parent,
        depth: 0,
        node_ref: NodeRef::new(()),
    }
}

/// A tree in depth-first order.
fn grow(sprouts: &[Sprout]) -> Vec<RawNode> {
    let mut nodes: Vec<RawNode> = vec![raw(None, 0, 0)];
    for (up, title, value) in sprouts {
        let mut parent = nodes.len() - 1;
        for _ in 0..*up {
            parent = nodes[parent].parent.unwrap_or(0);
        }
        nodes.push(raw(Some(parent), *title, *value));
    }
    nodes
}

/// A snapshot of the first `keep` nodes.
fn look(base: Option<Arc<Base>>, nodes: &[RawNode], keep: usize) -> (Lineage, Vec<Element>) {
    let lineage = Lineage::trace(base, nodes);
    let tokens: Vec<_> = (0..nodes.len())
        .map(|at| ElementToken::try_new(format!("el_{at}")).unwrap())
        .collect();
    let (mut elements, _) = convert(&nodes[..keep], &tokens, Home::Window, 500);
    for (at, element) in elements.iter_mut().enumerate() {
        element.stable_id = lineage.stable_id(at);
    }
    (lineage, elements)
}

fn leave(lineage: Lineage, elements: &[Element], n: usize) -> Arc<Base> {
    let id = SnapshotId::try_new(format!("snap_{n}")).unwrap();
    Arc::new(lineage.leave(id, Instant::now(), elements))
}

/// A tree as a reader of differences holds it.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    stable_id: u64,
    content: u64,
    children: Vec<Held>,
}

fn hold(nodes: &[(u64, u64, u32)]) -> Held {
    fn build(nodes: &[(u64, u64, u32)], at: usize) -> Held {
        let (stable_id, content, _) = nodes[at];
        let own = |(_, node): &(usize, &(u64, u64, u32))| node.2 as usize == at && node.2 != ROOT;
        let children = nodes.iter().enumerate().filter(own);
        Held {
            stable_id,
            content,
            children: children.map(|(child, _)| build(nodes, child)).collect(),
        }
    }
    build(nodes, 0)
}

fn at<'a>(root: &'a mut Held, path: &[u32]) -> &'a mut Held {
    assert_eq!(path[0], 0);
    path[1..]
        .iter()
        .fold(root, |node, step| &mut node.children[*step as usize])
}

/// What the base becomes by the changes.
fn replay(mut root: Held, changes: &[Change], contents: &HashMap<&ElementToken, u64>) -> Held {
    let removed = |change: &&Change| change.changed == Changed::Removed;
    for change in changes.iter().rev().filter(removed) {
        let (last, above) = change.path.split_last().unwrap();
        let gone = at(&mut root, above).children.remove(*last as usize);
        assert_eq!(gone.stable_id, change.stable_id);
    }
    for change in changes {
        match &change.changed {
            Changed::Removed => {}
            Changed::Inserted(token) => {
                let (last, above) = change.path.split_last().unwrap();
                let new = Held {
                    stable_id: change.stable_id,
                    content: contents[token],
                    children: Vec::new(),
                };
                at(&mut root, above).children.insert(*last as usize, new);
            }
            Changed::Updated(token) => {
                let node = at(&mut root, &change.path);
                assert_eq!(node.stable_id, change.stable_id);
                node.content = contents[token];
            }
        }
    }
    root
}

/// Every law that holds between a base and what follows it.
fn check(base: &Base, lineage: &Lineage, elements: &[Element]) -> Difference {
    let difference = difference(lineage, elements).expect("there is a base");
    // The host's own reading: shape, presentation, tokens, numbers, ranges.
    assert_eq!(
        Difference::read(&difference.write()).as_ref(),
        Ok(&difference)
    );
    assert_eq!(difference.check_against(elements), Ok(()));
    let rows = |change: &Change| (change.path.clone(), rank(change.kind()));
    assert!(difference.changes.is_sorted_by_key(rows));
    let removed: HashSet<u64> = difference
        .removed_stable_id_ranges
        .iter()
        .flat_map(|range| range.start..=range.end)
        .collect();
    let current: HashSet<u64> = elements.iter().map(|one| one.stable_id.unwrap()).collect();
    let before: HashSet<u64> = base.nodes.iter().map(|node| node.stable_id).collect();
    assert_eq!(current.len(), elements.len(), "numbers are unique");
    assert_eq!(removed, &before - &current, "what is gone is in a range");
    let largest = before.iter().max().unwrap();
    assert!((&current - &before).iter().all(|new| new > largest));
    if difference.presentation != Presentation::Full {
        let contents: HashMap<_, _> = elements
            .iter()
            .map(|element| (&element.token, lineage.content(element)))
            .collect();
        let old: Vec<_> = base
            .nodes
            .iter()
            .map(|node| (node.stable_id, node.content, node.parent))
            .collect();
        let new: Vec<_> = lineage
            .nodes
            .iter()
            .zip(elements)
            .map(|(node, element)| (node.stable_id, lineage.content(element), node.parent))
            .collect();
        assert_eq!(
            replay(hold(&old), &difference.changes, &contents),
            hold(&new)
        );
    }
    difference
}

fn sprouts() -> impl Strategy<Value = Vec<Sprout>> {
    prop::collection::vec((0_usize..4, 0_u8..3, 0_u8..2), 0..12)
}

proptest! {
    /// §4.3 and §4.9 over chains: numbers are unique, kept by what is matched, never given out twice, and the changes
    /// lead from the base to the current tree.
    #[test]
    fn a_chain_of_snapshots_keeps_its_laws(
        trees in prop::collection::vec((sprouts(), 0_usize..14), 2..6),
    ) {
        let mut base: Option<Arc<Base>> = None;
        let mut ever: HashSet<u64> = HashSet::new();
        for (n, (sprouts, keep)) in trees.iter().enumerate() {
            let nodes = grow(sprouts);
            let keep = (*keep).clamp(1, nodes.len());
            let (lineage, elements) = look(base.clone(), &nodes, keep);
            let numbers: HashSet<u64> =
                elements.iter().map(|element| element.stable_id.unwrap()).collect();
            if let Some(base) = &base {
                check(base, &lineage, &elements);
                let before: HashSet<u64> =
                    base.nodes.iter().map(|node| node.stable_id).collect();
                prop_assert!((&numbers - &before).is_disjoint(&ever), "a number came back");
            } else {
                let expected: Vec<_> = (0..keep as u64).map(Some).collect();
                let seen: Vec<_> = elements.iter().map(|element| element.stable_id).collect();
                prop_assert_eq!(seen, expected, "the first snapshot counts from 0");
            }
            ever.extend(&numbers);
            base = Some(leave(lineage, &elements, n));
        }
    }

    #[test]
    fn the_same_tree_again_is_no_change(sprouts in sprouts()) {
        let nodes = grow(&sprouts);
        let (lineage, elements) = look(None, &nodes, nodes.len());
        let base = leave(lineage, &elements, 0);
        let (lineage, again) = look(Some(base.clone()), &nodes, nodes.len());
        let difference = check(&base, &lineage, &again);
        prop_assert_eq!(difference.presentation, Presentation::NoChange);
        prop_assert!(again.iter().zip(&elements).all(|(a, b)| a.stable_id == b.stable_id));
    }
}

/// The form of the example in §4.9: a subtree that is gone is one entry and a range.
#[test]
fn each_kind_of_change_has_its_form() {
    // Root: a list (title 1) with three rows, a field (title 2), a group (title 1) at its end.
    let before = grow(&[
        (0, 1, 0),
        (0, 3, 0),
        (1, 4, 0),
        (1, 5, 0),
        (2, 2, 0),
        (1, 1, 0),
    ]);
    let (lineage, elements) = look(None, &before, before.len());
    let base = leave(lineage, &elements, 0);
    // The list and its rows are gone, the field has another value, a button stands before it.
    let after = grow(&[(0, 9, 0), (1, 2, 1), (1, 1, 0)]);
    let (lineage, elements) = look(Some(base.clone()), &after, after.len());
    let difference = check(&base, &lineage, &elements);
    let token = |at: usize| elements[at].token.clone();
    assert_eq!(difference.presentation, Presentation::Difference);
    assert_eq!(
        difference.changes,
        [
            Change {
                path: vec![0, 0],
                stable_id: 1,
                changed: Changed::Removed
            },
            Change {
                path: vec![0, 0],
                stable_id: 7,
                changed: Changed::Inserted(token(1))
            },
            Change {
                path: vec![0, 1],
                stable_id: 5,
                changed: Changed::Updated(token(2))
            },
        ]
    );
    assert_eq!(
        difference.removed_stable_id_ranges,
        [StableIdRange { start: 1, end: 4 }]
    );
    assert_eq!(elements[3].stable_id, Some(6), "the group stayed");
}

/// §4.9: more lines than the tree has.
#[test]
fn what_is_longer_than_the_tree_is_shown_as_the_tree() {
    let before = grow(&[(0, 1, 0), (1, 2, 0), (1, 1, 0), (1, 2, 0)]);
    let (lineage, elements) = look(None, &before, before.len());
    let base = leave(lineage, &elements, 0);
    let after = grow(&[(0, 8, 0)]);
    let (lineage, elements) = look(Some(base.clone()), &after, after.len());
    let difference = check(&base, &lineage, &elements);
    assert_eq!(difference.presentation, Presentation::Full);
    assert!(difference.changes.is_empty());
    assert_eq!(
        difference.removed_stable_id_ranges,
        [StableIdRange { start: 1, end: 4 }]
    );
}

/// A cut tree's missing end is gone as far as a reader can see, and numbers that it had do not come back as others.
#[test]
fn an_element_that_only_another_text_bound_cuts_is_still_the_same() {
    let nodes = grow(&[(0, 1, 0), (1, 2, 0)]);
    let (lineage, elements) = look(None, &nodes, nodes.len());
    let base = leave(lineage, &elements, 0);
    let lineage = Lineage::trace(Some(base.clone()), &nodes);
    let tokens: Vec<_> = (0..3)
        .map(|at| ElementToken::try_new(format!("el_{at}")).unwrap())
        .collect();
    let (mut cut, _) = convert(&nodes, &tokens, Home::Window, 3);
    for (at, element) in cut.iter_mut().enumerate() {
        element.stable_id = lineage.stable_id(at);
    }
    let difference = check(&base, &lineage, &cut);
    let kinds: Vec<_> = difference.changes.iter().map(Change::kind).collect();
    assert_eq!(kinds, [ChangeKind::Update; 3], "cut, not replaced");
}

/// Snapshots that are taken side by side share a base, and still no number means two elements.
#[test]
fn two_successors_of_one_base_share_no_new_number() {
    let nodes = grow(&[(0, 1, 0)]);
    let (lineage, elements) = look(None, &nodes, nodes.len());
    let base = leave(lineage, &elements, 0);
    let fresh = |title| {
        let (lineage, _) = look(Some(base.clone()), &grow(&[(0, title, 0)]), 2);
        lineage.stable_id(1)
    };
    assert_ne!(fresh(7), fresh(8));
}

/// The bound of work for the largest trees: thousands of elements that differ everywhere, flat and deep.
#[test]
fn the_largest_trees_are_compared_in_bounded_work() {
    let flat = |from: u32| -> Vec<RawNode> {
        let row = |number: u32| {
            let mut node = raw(Some(0), 0, 0);
            node.title = Some(AppText::new(number.to_string()));
            node
        };
        std::iter::once(raw(None, 0, 0))
            .chain((from..from + 1_499).map(row))
            .collect()
    };
    let (lineage, elements) = look(None, &flat(0), 1_500);
    let base = leave(lineage, &elements, 0);
    assert!(
        size_of_val(&*base.nodes) <= 1_500 * 32,
        "small enough to be kept"
    );
    let (lineage, elements) = look(Some(base.clone()), &flat(800), 1_500);
    let difference = check(&base, &lineage, &elements);
    assert_eq!(difference.presentation, Presentation::Full);
    assert_eq!(
        difference.removed_stable_id_ranges,
        [StableIdRange { start: 1, end: 800 }]
    );
    let deep: Vec<_> = (0..20_000_u32).map(|_| (0_usize, 1_u8, 0_u8)).collect();
    let mut nodes = grow(&deep);
    let (lineage, elements) = look(None, &nodes, nodes.len());
    let base = Arc::new(lineage.leave(
        SnapshotId::try_new("snap_deep").unwrap(),
        Instant::now(),
        &elements,
    ));
    for node in nodes.iter_mut().skip(1) {
        node.value = None;
    }
    let (lineage, elements) = look(Some(base), &nodes, nodes.len());
    let deep = super::difference(&lineage, &elements).unwrap();
    assert_eq!(
        deep.presentation,
        Presentation::Full,
        "paths longer than the tree"
    );
}
