//! The gateway's own memory of one session's snapshots: what each id is good for, and what it showed.
//!
//! Rows are made only from answers of the executor, never from a request. One task owns a mirror, so nothing here locks.
//! Policies see it as facts; the executor keeps its own table and checks again.
//!
//! Life of a row (design.md §5.1): *live* until an action is sent that quotes it, then *reserved*, which a policy sees
//! as `spent`. The answer settles it: spent, or live again unless it died in the meantime. A row also dies by a newer
//! snapshot of its window, by age, by number and with its executor.
//!
//! INVARIANT: a dead id never comes back to life, and no id is forgotten while the session lives: what is dropped leaves
//! a tombstone, so that the refusal names the true reason. Tombstones are bounded by [`IDS_MAX`]; when they are used up
//! the session takes no further snapshot ([`Mirror::has_room`]).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use maka_cu_protocol::domain::{DomainCode, SnapshotFate};
use maka_cu_protocol::geometry::{
    ImagePoint, ScreenPoint, ScreenRect, WindowRect, image_to_screen, window_rect_to_screen,
};
use maka_cu_protocol::ids::{Digest, SnapshotId, WindowKey};
use maka_policy_host::facts::{ElementRow, SnapshotRow, SnapshotState, Target};
use maka_policy_host::fingerprint::Fingerprint;
use tokio::time::Instant;

use super::remembered::Remembered;

/// Snapshot ids that one session remembers in its life. A tombstone takes less than two hundred bytes.
pub(crate) const IDS_MAX: usize = 32_768;

/// Targets that new tombstones may share.
const TARGETS_MAX: usize = 64;

/// Bytes that the element rows of all sessions may take together (spec policy §1.3).
pub(crate) const TOTAL_MAX_BYTES: usize = 64 * 1024 * 1024;

/// The memory that the mirrors of all sessions share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Budget {
    fn take(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) > TOTAL_MAX_BYTES
    }
}

/// A snapshot as it enters the mirror.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) id: SnapshotId,
    pub(crate) window: WindowKey,
    pub(crate) target: Option<Target>,
    pub(crate) window_digest: Digest,
    pub(crate) truncated: bool,
    /// Where the window was, in screen points.
    pub(crate) bounds: ScreenRect,
    /// Its picture, when there is one whose pixels have places.
    pub(crate) picture: Option<PictureSize>,
    /// Where the displays were, in screen points; none when the executor did not say.
    pub(crate) displays: Vec<ScreenRect>,
    /// How old it was when it arrived.
    pub(crate) age: Duration,
    /// By token; window and menu elements share one table.
    pub(crate) elements: HashMap<String, ElementRow>,
}

/// What a snapshot's picture says about points on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PictureSize {
    /// Pixels.
    pub(crate) width_px: u32,
    /// Pixels.
    pub(crate) height_px: u32,
    /// Pixels per logical point.
    pub(crate) scale: f64,
}

/// How the answer to an action leaves the row that it quoted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Settlement {
    /// The action happened, may have happened, or its answer was no valid one.
    Spent,
    /// Nothing happened, and the code says nothing about the frame.
    LiveAgain,
    /// Nothing happened, and the executor says that the frame is dead.
    Dead(SnapshotState),
}

impl Settlement {
    /// What a refusal with this code means for the quoted row.
    pub(crate) fn of_refusal(code: DomainCode) -> Self {
        match code.snapshot_fate() {
            SnapshotFate::Spent => Self::Spent,
            // Token and digest came from different frames: whatever the executor has, we know a wrong frame.
            SnapshotFate::HostDrops => Self::Dead(SnapshotState::Evicted),
            SnapshotFate::Live | SnapshotFate::NotQuoted => Self::LiveAgain,
            SnapshotFate::Dead => match code {
                DomainCode::SnapshotSpent => Self::Spent,
                DomainCode::SnapshotExpired => Self::Dead(SnapshotState::Expired),
                DomainCode::SnapshotSuperseded => Self::Dead(SnapshotState::Superseded),
                // Unknown to the executor: it lost it for a reason that we cannot see. The codes after the first two are
                // no dead snapshot's and never come here; they are named so that a new code is thought of.
                DomainCode::SnapshotUnknown
                | DomainCode::SnapshotEvicted
                | DomainCode::ElementUnknown
                | DomainCode::ElementDigestMismatch
                | DomainCode::ElementReleased
                | DomainCode::ProcessReplaced
                | DomainCode::WindowGone
                | DomainCode::AppNotFound
                | DomainCode::ElementChanged
                | DomainCode::WindowChanged
                | DomainCode::FocusChanged
                | DomainCode::WindowOccluded
                | DomainCode::ElementNotActionable
                | DomainCode::ElementDisabled
                | DomainCode::UnsupportedAction
                | DomainCode::NotImplemented
                | DomainCode::PermissionMissing
                | DomainCode::ScreenLocked
                | DomainCode::PhysicalInputActive
                | DomainCode::InvalidPoint
                | DomainCode::CaptureFailed
                | DomainCode::ResponseTooLarge
                | DomainCode::ImageWriteFailed
                | DomainCode::Timeout
                | DomainCode::DispatchRefused
                | DomainCode::OutcomeUnknown
                | DomainCode::Aborted => Self::Dead(SnapshotState::Evicted),
            },
        }
    }
}

/// What the mirror says about one id at one moment.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) row: SnapshotRow,
    pub(crate) version: u64,
    /// The action that spent or reserved the row.
    pub(crate) spent_by: Option<Fingerprint>,
}

#[derive(Debug)]
struct Tombstone {
    state: SnapshotState,
    generation: u64,
    epoch: u64,
    version: u64,
    spent_by: Option<Fingerprint>,
    /// What it showed: part of the fingerprint by which a repeated action is told from another one. Shared, since a session
    /// looks at the same few windows over and over.
    target: Option<Arc<Target>>,
    window_digest: Digest,
    truncated: bool,
}

#[derive(Debug)]
struct Row {
    new: NewRow,
    bytes: usize,
    epoch: u64,
    version: u64,
    registered: Instant,
    expires: Instant,
    hold: Hold,
}

#[derive(Debug)]
enum Hold {
    Free,
    /// An action that quotes the row was sent and has no answer yet.
    Reserved {
        by: Fingerprint,
        /// How the row died while the answer was awaited.
        died: Option<SnapshotState>,
    },
    /// A policy lets nothing follow on it: spent, though its picture may still be fetched.
    Sealed(Fingerprint),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Mirror {
    session: String,
    generation: u64,
    live_max: usize,
    ttl: Duration,
    budget: Budget,
    /// In the order of arrival: the key is the epoch, which counts up.
    rows: BTreeMap<u64, Row>,
    /// A tree, since a table of this size would double by steps of megabytes.
    tombstones: BTreeMap<Remembered, Tombstone>,
    /// Of the newest tombstones, the newest last.
    targets: VecDeque<Arc<Target>>,
    epochs: u64,
    versions: u64,
}

impl Mirror {
    pub(crate) fn new(session: String, budget: Budget) -> Self {
        Self {
            session,
            generation: 0,
            live_max: 1,
            ttl: Duration::ZERO,
            budget,
            rows: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            targets: VecDeque::new(),
            epochs: 0,
            versions: 0,
        }
    }

    /// A new executor with its own bounds: every earlier row belongs to the dead.
    pub(crate) fn begin_generation(&mut self, generation: u64, live_max: usize, ttl: Duration) {
        if generation == self.generation {
            return;
        }
        for epoch in self.rows.keys().copied().collect::<Vec<_>>() {
            self.bury(epoch, SnapshotState::OtherGeneration, None);
        }
        (self.generation, self.live_max, self.ttl) = (generation, live_max.max(1), ttl);
    }

    /// Whether another snapshot id can be remembered.
    pub(crate) fn has_room(&self) -> bool {
        self.rows.len() + self.tombstones.len() < IDS_MAX
    }

    /// Takes in a snapshot that the executor answered with. One of an id that is known already is not taken in: ids are
    /// unique, and a dead one stays dead. Says whether it was.
    pub(crate) fn insert(&mut self, new: NewRow, now: Instant) -> bool {
        self.expire(now);
        if self
            .tombstones
            .contains_key(&Remembered::new(new.id.as_str()))
            || self.find(&new.id).is_some()
            || !self.has_room()
        {
            return false;
        }
        let older = self
            .rows
            .iter()
            .filter(|(_, row)| row.new.window == new.window)
            .map(|(epoch, _)| *epoch);
        for epoch in older.collect::<Vec<_>>() {
            self.die(epoch, SnapshotState::Superseded);
        }
        // A reserved row is live to the executor, so it counts and can give way like any other.
        while self.rows.values().filter(|row| row.is_alive()).count() >= self.live_max
            || self.budget.is_over()
        {
            let oldest = self.rows.iter().find(|(_, row)| row.is_alive());
            let Some(epoch) = oldest.map(|(epoch, _)| *epoch) else {
                break;
            };
            self.die(epoch, SnapshotState::Evicted);
        }
        let bytes = new.elements.values().map(size_of_element).sum();
        self.budget.take(bytes);
        self.epochs += 1;
        let (epoch, version) = (self.epochs, self.next_version());
        let expires = now + self.ttl.saturating_sub(new.age);
        self.rows.insert(
            epoch,
            Row {
                new,
                bytes,
                epoch,
                version,
                registered: now,
                expires,
                hold: Hold::Free,
            },
        );
        true
    }

    /// Marks the row as used by an action that is about to be sent. An id that is not live stays as it is.
    pub(crate) fn reserve(&mut self, id: &SnapshotId, by: Fingerprint) {
        let version = self.next_version();
        if let Some(row) = self.find_mut(id).filter(|row| row.is_live()) {
            row.hold = Hold::Reserved { by, died: None };
            row.version = version;
        }
    }

    /// Spends a live row at once, for the call of this fingerprint. What was seen stays; nothing can be done with it.
    pub(crate) fn seal(&mut self, id: &SnapshotId, by: Fingerprint) {
        let version = self.next_version();
        if let Some(row) = self.find_mut(id).filter(|row| row.is_live()) {
            row.hold = Hold::Sealed(by);
            row.version = version;
        }
    }

    /// Settles a reservation by the answer.
    pub(crate) fn settle(&mut self, id: &SnapshotId, settlement: Settlement, now: Instant) {
        let version = self.next_version();
        let Some(row) = self.find_mut(id) else { return };
        let Hold::Reserved { by, died } = row.hold else {
            return;
        };
        row.version = version;
        let epoch = row.epoch;
        match (settlement, died) {
            (Settlement::Spent, _) => self.bury(epoch, SnapshotState::Spent, Some(by)),
            (Settlement::LiveAgain, Some(state)) | (Settlement::Dead(state), _) => {
                self.bury(epoch, state, None)
            }
            (Settlement::LiveAgain, None) => {
                row.hold = Hold::Free;
                self.expire(now);
            }
        }
    }

    /// What is known about an id. `None`: this session never had it.
    pub(crate) fn look(&mut self, id: &SnapshotId, now: Instant) -> Option<Look> {
        self.expire(now);
        if let Some(row) = self.find(id) {
            let (state, spent_by) = match &row.hold {
                Hold::Free => (SnapshotState::Live, None),
                Hold::Reserved { by, .. } | Hold::Sealed(by) => (SnapshotState::Spent, Some(*by)),
            };
            return Some(Look {
                row: SnapshotRow {
                    id: id.as_str().to_owned(),
                    state,
                    owner_session: self.session.clone(),
                    generation: self.generation,
                    epoch: row.epoch,
                    age_ms: millis(now.saturating_duration_since(row.registered) + row.new.age),
                    target: row.new.target.clone(),
                    window_digest: row.new.window_digest.to_string(),
                    truncated: row.new.truncated,
                },
                version: row.version,
                spent_by,
            });
        }
        let tombstone = self.tombstones.get(&Remembered::new(id.as_str()))?;
        let other = tombstone.generation != self.generation;
        Some(Look {
            row: SnapshotRow {
                state: if other {
                    SnapshotState::OtherGeneration
                } else {
                    tombstone.state
                },
                owner_session: self.session.clone(),
                generation: tombstone.generation,
                epoch: tombstone.epoch,
                target: tombstone.target.as_deref().cloned(),
                window_digest: tombstone.window_digest.to_string(),
                truncated: tombstone.truncated,
                ..SnapshotRow::never_seen(id.as_str())
            },
            version: tombstone.version,
            spent_by: tombstone.spent_by,
        })
    }

    /// The element behind a token of a snapshot that is still held.
    pub(crate) fn element(&self, id: &SnapshotId, token: &str) -> Option<ElementRow> {
        self.find(id)?.new.elements.get(token).cloned()
    }

    /// The process that a snapshot is of.
    pub(crate) fn pid(&self, id: &SnapshotId) -> Option<u32> {
        self.find(id).map(|row| row.new.window.pid)
    }

    /// The window that a snapshot is of.
    pub(crate) fn window(&self, id: &SnapshotId) -> Option<WindowKey> {
        self.find(id).map(|row| row.new.window)
    }

    /// Whether a snapshot can still be quoted, or is being used right now.
    pub(crate) fn holds(&self, id: &SnapshotId) -> bool {
        self.find(id).is_some()
    }

    /// The middle of an element on the screen, if it lies inside its window.
    pub(crate) fn center_of(&self, id: &SnapshotId, token: &str) -> Option<ScreenPoint> {
        let row = self.find(id)?;
        let frame = row.new.elements.get(token)?.frame?;
        let frame = WindowRect::try_new(frame.x, frame.y, frame.width, frame.height).ok()?;
        let center = window_rect_to_screen(frame, row.new.bounds)
            .ok()?
            .center()?;
        row.new.bounds.contains(center).then_some(center)
    }

    /// The screen position of a pixel of a snapshot's picture.
    pub(crate) fn screen_point(&self, id: &SnapshotId, point: ImagePoint) -> Option<ScreenPoint> {
        let row = self.find(id)?;
        image_to_screen(point, row.new.bounds, row.new.picture?.scale).ok()
    }

    /// Whether a point is a pixel of a snapshot's picture that a display shows: not one of a minimised window, of a part
    /// that lies beside the screen, or of a gap between two displays. Without a picture nobody can have chosen one.
    pub(crate) fn is_on_screen(&self, id: &SnapshotId, point: ImagePoint) -> bool {
        let Some(row) = self.find(id) else {
            return false;
        };
        let is_pixel = row.new.picture.is_some_and(|picture| {
            let within = |at: f64, size: u32| at >= 0.0 && at < f64::from(size);
            within(point.x(), picture.width_px) && within(point.y(), picture.height_px)
        });
        let displays = &row.new.displays;
        let is_shown = self.screen_point(id, point).is_some_and(|point| {
            displays.is_empty() || displays.iter().any(|display| display.contains(point))
        });
        is_pixel && is_shown
    }

    /// Something happened that no row knows of: only a new observation can be quoted.
    pub(crate) fn supersede_all(&mut self) {
        for epoch in self.rows.keys().copied().collect::<Vec<_>>() {
            self.die(epoch, SnapshotState::Superseded);
        }
    }

    /// When each live row expires.
    pub(crate) fn live(&self) -> Vec<Instant> {
        self.rows
            .values()
            .filter(|row| row.is_live())
            .map(|row| row.expires)
            .collect()
    }

    /// Lets die what is too old.
    pub(crate) fn expire(&mut self, now: Instant) {
        let over = self
            .rows
            .iter()
            .filter(|(_, row)| row.expires <= now)
            .map(|(epoch, _)| *epoch);
        for epoch in over.collect::<Vec<_>>() {
            self.die(epoch, SnapshotState::Expired);
        }
    }

    /// A row dies for a reason of its own: at once when free, at its settlement when reserved. The first reason stays.
    fn die(&mut self, epoch: u64, state: SnapshotState) {
        let version = self.next_version();
        let Some(row) = self.rows.get_mut(&epoch) else {
            return;
        };
        match &mut row.hold {
            Hold::Free => self.bury(epoch, state, None),
            Hold::Sealed(by) => {
                let by = *by;
                self.bury(epoch, SnapshotState::Spent, Some(by));
            }
            Hold::Reserved { died, .. } => {
                if died.is_none() {
                    *died = Some(state);
                    row.version = version;
                }
            }
        }
    }

    fn bury(&mut self, epoch: u64, state: SnapshotState, spent_by: Option<Fingerprint>) {
        let version = self.next_version();
        let Some(row) = self.rows.remove(&epoch) else {
            return;
        };
        self.budget.give_back(row.bytes);
        let NewRow {
            id,
            target,
            window_digest,
            truncated,
            ..
        } = row.new;
        let (generation, target) = (self.generation, target.map(|target| self.share(target)));
        let tombstone = Tombstone {
            state,
            generation,
            epoch,
            version,
            spent_by,
            target,
            window_digest,
            truncated,
        };
        self.tombstones
            .insert(Remembered::new(id.as_str()), tombstone);
    }

    /// The target as an earlier tombstone has it, if one of the newest does.
    fn share(&mut self, target: Target) -> Arc<Target> {
        if let Some(known) = self.targets.iter().rev().find(|known| ***known == target) {
            return Arc::clone(known);
        }
        if self.targets.len() >= TARGETS_MAX {
            self.targets.pop_front();
        }
        let target = Arc::new(target);
        self.targets.push_back(Arc::clone(&target));
        target
    }

    fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    fn find(&self, id: &SnapshotId) -> Option<&Row> {
        self.rows.values().find(|row| row.new.id == *id)
    }

    fn find_mut(&mut self, id: &SnapshotId) -> Option<&mut Row> {
        self.rows.values_mut().find(|row| row.new.id == *id)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.budget
            .give_back(self.rows.values().map(|row| row.bytes).sum());
    }
}

impl Row {
    /// Whether nothing has ended it yet, reserved or not.
    fn is_alive(&self) -> bool {
        match self.hold {
            Hold::Free | Hold::Sealed(_) => true,
            Hold::Reserved { died, .. } => died.is_none(),
        }
    }

    /// Whether it can be quoted.
    fn is_live(&self) -> bool {
        matches!(self.hold, Hold::Free)
    }
}

/// About what an element row takes: its texts and the fixed part.
fn size_of_element(row: &ElementRow) -> usize {
    let actions: usize = row
        .actions
        .iter()
        .map(|action| action.len() + size_of::<String>())
        .sum();
    size_of::<ElementRow>() + 2 * row.token.len() + row.digest.len() + row.role.len() + actions
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
