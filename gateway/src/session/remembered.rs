//! A memory of an id that takes no more room than it must, since there are tens of thousands of them in a long session.

use maka_cu_protocol::ids::Digest;

/// The first 128 bits of an id's SHA-256: enough to tell ids of one gateway apart, in the same few bytes however long the id is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Remembered([u8; 16]);

impl Remembered {
    pub(super) fn new(id: &str) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&Digest::of(id.as_bytes()).as_bytes()[..16]);
        Self(hash)
    }
}
