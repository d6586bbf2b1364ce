//! Random choices that a seed brings back: today, in a year, and in another process.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014), written out because a seed in a failure report must still lead to the same run after
//! every update of a crate. Good enough to mix faults and calls; not for secrets.

use std::time::Duration;

/// A generator.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence that belongs to these numbers together, whatever was drawn elsewhere: which fault the n-th request of the
    /// m-th process meets must not depend on who asked first.
    #[must_use]
    pub fn of(parts: &[u64]) -> Self {
        let mut mixed = Self(0);
        for part in parts {
            mixed = Self(mixed.next() ^ part);
        }
        Self(mixed.next())
    }

    /// The next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless sequence of numbers, never iterated over"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// One of these, which must not be none.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(list.len() as u64)).expect("below a length");
        &list[index]
    }

    /// A length of time from `from` up to, and without, `to` milliseconds.
    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}
