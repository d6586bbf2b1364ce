//! What changed since an earlier snapshot of the same window (§4.9). A rendering hint: the elements are always whole.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    element::Element,
    ids::{ElementToken, SnapshotId},
    json::{Fields, Json, ObjectWriter, Reason, Violation, record},
    sets::{ChangeKind, Presentation},
};

/// What happened to a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Changed {
    /// It is gone. It has no token any more, and its path is one of the base tree.
    Removed,
    /// It is new. Its path is one of the current tree.
    Inserted(ElementToken),
    /// It has other wire fields. Its path is one of the current tree.
    Updated(ElementToken),
}

/// One entry of a difference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// 0-based sibling indexes from the root, which is `[0]`; never empty.
    pub path: Vec<u32>,
    /// The node's stable id.
    pub stable_id: u64,
    /// What happened.
    pub changed: Changed,
}

impl Change {
    /// The wire word for what happened.
    #[must_use]
    pub const fn kind(&self) -> ChangeKind {
        match self.changed {
            Changed::Removed => ChangeKind::Remove,
            Changed::Inserted(_) => ChangeKind::Insert,
            Changed::Updated(_) => ChangeKind::Update,
        }
    }

    /// The token of a node that is there.
    #[must_use]
    pub const fn token(&self) -> Option<&ElementToken> {
        match &self.changed {
            Changed::Removed => None,
            Changed::Inserted(token) | Changed::Updated(token) => Some(token),
        }
    }
}

impl Json for Change {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let kind = fields.get("kind")?;
        let path: Vec<u32> = fields.get("path")?;
        if path.is_empty() {
            return Err(Violation::of("path", Reason::Empty));
        }
        let changed = match kind {
            ChangeKind::Remove if fields.has("token") => {
                return Err(Violation::of("token", Reason::NotAllowed));
            }
            ChangeKind::Remove => Changed::Removed,
            ChangeKind::Insert => Changed::Inserted(fields.get("token")?),
            ChangeKind::Update => Changed::Updated(fields.get("token")?),
        };
        Ok(Self {
            path,
            stable_id: fields.get("stableId")?,
            changed,
        })
    }

    fn write(&self) -> Value {
        ObjectWriter::new()
            .with("kind", &self.kind())
            .with("path", &self.path)
            .with("stableId", &self.stable_id)
            .with("token", &self.token().cloned())
            .finish()
    }
}

record! {
    /// An inclusive range of stable ids that are gone.
    #[derive(Copy, Eq)]
    pub struct StableIdRange {
        /// First id.
        pub start: u64 = "start";
        /// Last id, not below the first.
        pub end: u64 = "end";
    }
    => |range| if range.start <= range.end { Ok(()) } else { Err(Violation::of("end", Reason::OutOfRange)) }
}

record! {
    /// The difference to a base snapshot.
    #[derive(Eq)]
    pub struct Difference {
        /// The snapshot compared with.
        pub base_snapshot_id: SnapshotId = "baseSnapshotId";
        /// How it is best shown.
        pub presentation: Presentation = "presentation";
        /// The entries, by path, then remove before insert before update.
        pub changes: Vec<Change> = "changes";
        /// The ids that are gone, compressed.
        pub removed_stable_id_ranges: Vec<StableIdRange> = "removedStableIdRanges";
    }
    => Difference::check_shape
}

impl Difference {
    /// The presentation and the lists must say the same.
    fn check_shape(&self) -> Result<(), Violation> {
        let (changes, ranges) = (
            !self.changes.is_empty(),
            !self.removed_stable_id_ranges.is_empty(),
        );
        let fault = match self.presentation {
            Presentation::NoChange if changes => "changes",
            Presentation::NoChange if ranges => "removedStableIdRanges",
            Presentation::Difference if !changes && !ranges => "presentation",
            Presentation::Full if changes => "changes",
            Presentation::NoChange | Presentation::Difference | Presentation::Full => return Ok(()),
        };
        Err(Violation::of(fault, Reason::Contradiction))
    }

    /// Checks the difference against the current tree: every element numbered, every named token there with that
    /// number, no removed range holding a current number.
    ///
    /// # Errors
    /// A [`Violation`] relative to the difference.
    pub fn check_against(&self, elements: &[Element]) -> Result<(), Violation> {
        let mut current = HashMap::with_capacity(elements.len());
        for element in elements {
            // An unnumbered tree cannot be compared at all: the fault is that a difference was sent.
            let stable_id = element
                .stable_id
                .ok_or(Violation::here(Reason::Contradiction))?;
            current.insert(&element.token, stable_id);
        }
        for (index, change) in self.changes.iter().enumerate() {
            let Some(token) = change.token() else {
                continue;
            };
            let fault = match current.get(token) {
                Some(stable_id) if *stable_id == change.stable_id => continue,
                Some(_) => Violation::of("stableId", Reason::Mismatch),
                None => Violation::of("token", Reason::Dangling),
            };
            return Err(fault.at_index(index).at("changes"));
        }
        let mut numbers: Vec<u64> = current.into_values().collect();
        numbers.sort_unstable();
        for (index, range) in self.removed_stable_id_ranges.iter().enumerate() {
            let first_at_or_after = numbers.partition_point(|number| *number < range.start);
            if numbers
                .get(first_at_or_after)
                .is_some_and(|number| *number <= range.end)
            {
                return Err(Violation::here(Reason::Contradiction)
                    .at_index(index)
                    .at("removedStableIdRanges"));
            }
        }
        Ok(())
    }
}
