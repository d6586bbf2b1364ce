//! The longest common subsequence of two lists: which siblings of a tree are the same ones as before.
//!
//! Exact as long as an allowance of table cells lasts, which covers two trees of two thousand elements whatever their shape.
//! Beyond it a list is matched greedily, in linear time and memory: what comes out is still a common subsequence, only
//! perhaps not the longest, so numbers are lost and never mixed up.

use std::collections::HashMap;

/// Table cells that one comparison of two trees may use, all its lists together; one byte each.
pub(super) const CELLS: usize = 4 << 20;

/// Pairs of positions in `old` and `new` that hold equal entries, both rising. Takes what it uses from the allowance.
pub(super) fn common(old: &[u64], new: &[u64], allowance: &mut usize) -> Vec<(usize, usize)> {
    let same = |(old, new): &(&u64, &u64)| old == new;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(same)
        .count();
    let old_middle = &old_rest[..old_rest.len() - tail];
    let new_middle = &new_rest[..new_rest.len() - tail];
    let cells = old_middle.len().saturating_mul(new_middle.len());
    let middle = match allowance.checked_sub(cells) {
        Some(left) => {
            *allowance = left;
            longest(old_middle, new_middle)
        }
        None => greedy(old_middle, new_middle),
    };
    let mut pairs: Vec<_> = (0..head).map(|at| (at, at)).collect();
    pairs.extend(middle.into_iter().map(|(o, n)| (o + head, n + head)));
    pairs.extend(
        (0..tail)
            .rev()
            .map(|back| (old.len() - 1 - back, new.len() - 1 - back)),
    );
    pairs
}

/// How the longest subsequence goes on from a cell.
#[derive(Clone, Copy)]
enum Step {
    Pair,
    SkipOld,
    SkipNew,
}

fn longest(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let width = new.len();
    let mut steps = vec![Step::SkipNew; old.len() * width];
    // Lengths for the ends of both lists, filled from the back: the walk then goes forward.
    let mut below = vec![0_u32; width + 1];
    let mut row = vec![0_u32; width + 1];
    for (o, entry) in old.iter().enumerate().rev() {
        for n in (0..width).rev() {
            let (length, step) = if *entry == new[n] {
                (below[n + 1] + 1, Step::Pair)
            } else if below[n] >= row[n + 1] {
                (below[n], Step::SkipOld)
            } else {
                (row[n + 1], Step::SkipNew)
            };
            row[n] = length;
            steps[o * width + n] = step;
        }
        std::mem::swap(&mut below, &mut row);
    }
    let mut pairs = Vec::new();
    let (mut o, mut n) = (0, 0);
    while o < old.len() && n < width {
        match steps[o * width + n] {
            Step::Pair => {
                pairs.push((o, n));
                o += 1;
                n += 1;
            }
            Step::SkipOld => o += 1,
            Step::SkipNew => n += 1,
        }
    }
    pairs
}

/// Each new entry takes the first equal old one after the last that was taken.
fn greedy(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, entry) in old.iter().enumerate() {
        places.entry(*entry).or_default().push(at);
    }
    let mut pairs = Vec::new();
    let mut from = 0;
    for (n, entry) in new.iter().enumerate() {
        let Some(places) = places.get(entry) else {
            continue;
        };
        if let Some(o) = places.get(places.partition_point(|place| *place < from)) {
            pairs.push((*o, n));
            from = o + 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length_by_definition(old: &[u64], new: &[u64]) -> usize {
        match (old, new) {
            ([], _) | (_, []) => 0,
            ([o, old_rest @ ..], [n, new_rest @ ..]) if o == n => {
                1 + length_by_definition(old_rest, new_rest)
            }
            ([_, old_rest @ ..], [_, new_rest @ ..]) => {
                length_by_definition(old_rest, new).max(length_by_definition(old, new_rest))
            }
        }
    }

    fn is_common(old: &[u64], new: &[u64], pairs: &[(usize, usize)]) -> bool {
        pairs.iter().all(|(o, n)| old[*o] == new[*n])
            && pairs
                .windows(2)
                .all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1)
    }

    proptest! {
        #[test]
        fn it_is_common_and_with_an_allowance_the_longest(
            old in prop::collection::vec(0_u64..4, 0..10),
            new in prop::collection::vec(0_u64..4, 0..10),
        ) {
            let exact = common(&old, &new, &mut CELLS.clone());
            prop_assert!(is_common(&old, &new, &exact));
            prop_assert_eq!(exact.len(), length_by_definition(&old, &new));
            let quick = common(&old, &new, &mut 0);
            prop_assert!(is_common(&old, &new, &quick));
        }
    }

    #[test]
    fn the_allowance_is_used_up_by_what_differs_only() {
        let old: Vec<u64> = (0..1500).collect();
        let mut new = old.clone();
        new[700] = 9_999;
        let mut allowance = 10;
        assert_eq!(common(&old, &new, &mut allowance).len(), 1499);
        assert_eq!(allowance, 9);
        // Two lists that share nothing at their ends need more than what is left, and still keep what they can.
        new[0] = 8_888;
        new[1499] = 7_777;
        assert_eq!(common(&old, &new, &mut allowance).len(), 1497);
        assert_eq!(allowance, 9);
    }
}
