//! Sessions and the life of their snapshots (spec §3.1, §5.1).
//!
//! A snapshot id is `snap_<process nonce>_<session number>_<n>`: `n` counts from 0 within its session, so that the fate of
//! every snapshot ever minted fits into one byte and codes stay specific for as long as the session lasts, also after a
//! million dispatches. Only an exact spelling resolves.
//!
//! INVARIANT: only a live snapshot changes its state, and the moment it stops being live its picture is deleted.
//! INVARIANT: what belongs to a session goes with it; an id that was ended and begun again shares nothing with before.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::{SessionId, SnapshotId, WindowKey};
use maka_cu_protocol::sets::CaptureScope;
use thiserror::Error;

use crate::image::store::StoredImage;
use crate::observe::lineage::Base;
use crate::snapshot::Snapshot;

/// How many sessions may be live at one time.
pub const MAX_SESSIONS: usize = 1024;

/// How many windows of a session have a base at one time, live snapshots or not; the oldest goes beyond it. More than
/// `snapshotsPerSession`, since the snapshot that an action used up is still what its window is compared with.
pub const MAX_BASES: usize = 32;

/// How many ended sessions are remembered, so that a generic method does not begin one of them again by itself.
pub const ENDED_REMEMBERED: usize = 16_384;

/// Why a session cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BeginError {
    /// The id is live.
    #[error("the session id is live")]
    Live,
    /// [`MAX_SESSIONS`] are live.
    #[error("too many sessions are live")]
    TooMany,
}

/// The session is not there (any more).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the session was never begun or has ended")]
pub struct SessionGone;

/// Why a generic method has no session to work in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AdoptError {
    /// It has ended, or so many have that nobody can tell any more.
    #[error(transparent)]
    Gone(#[from] SessionGone),
    /// It cannot begin.
    #[error(transparent)]
    Begin(#[from] BeginError),
}

/// Several live snapshots show windows of the process, so that none of them is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("several live snapshots are of that process")]
pub struct SeveralLive;

/// What [`Sessions::end`] dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Released {
    /// Live snapshots.
    pub snapshots: u32,
    /// Image files, those of screen captures included.
    pub images: u32,
}

/// One begun session, as held by a request in flight. Stays harmless after the session has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionHandle {
    id: SessionId,
    number: u64,
    /// How pictures of this session are taken.
    pub scope: CaptureScope,
}

/// What a session keeps of an observation.
#[derive(Debug, Clone)]
pub struct Kept {
    /// What a dispatch is bound to.
    pub snapshot: Arc<Snapshot>,
    /// What the next observation of the window is compared with.
    pub base: Arc<Base>,
}

/// Bounds from the advertised limits.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotLimits {
    /// `snapshotsPerSession`.
    pub per_session: usize,
    /// `snapshotTtlMs`.
    pub ttl: Duration,
}

/// Every live session.
#[derive(Debug)]
pub struct Sessions {
    prefix: String,
    limits: SnapshotLimits,
    begun: u64,
    sessions: HashMap<SessionId, Session>,
    /// Hashes of the ids that have ended, since an id may be long.
    ended: HashSet<u64>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Session {
    number: u64,
    scope: CaptureScope,
    /// What became of snapshot `n`.
    fates: Vec<Fate>,
    /// The live ones by `n`, oldest first.
    live: BTreeMap<usize, Arc<Snapshot>>,
    /// What the next snapshot of a window is compared with: its newest one, unless that was evicted or is too old.
    bases: HashMap<WindowKey, Arc<Base>>,
    captures: Vec<(Instant, StoredImage)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its id was handed out, the snapshot not (yet) registered.
    Reserved,
    Live,
    Spent,
    Superseded,
    Expired,
    Evicted,
}

impl Sessions {
    /// No session yet. `nonce` is random and unique to this process.
    #[must_use]
    pub fn new(nonce: &str, limits: SnapshotLimits) -> Self {
        Self {
            prefix: format!("snap_{nonce}"),
            limits,
            begun: 0,
            sessions: HashMap::new(),
            ended: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Begins a session.
    ///
    /// # Errors
    /// [`BeginError`]; a live session of that id stays as it is.
    pub fn begin(&mut self, id: SessionId, scope: CaptureScope) -> Result<(), BeginError> {
        if self.sessions.contains_key(&id) {
            return Err(BeginError::Live);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(BeginError::TooMany);
        }
        let session = Session {
            number: self.begun,
            scope,
            fates: Vec::new(),
            live: BTreeMap::new(),
            bases: HashMap::new(),
            captures: Vec::new(),
        };
        self.begun += 1;
        // One of a full memory is not forgotten: that memory says that it cannot tell.
        if self.ended.len() < ENDED_REMEMBERED {
            self.ended.remove(&self.hasher.hash_one(&id));
        }
        self.sessions.insert(id, session);
        Ok(())
    }

    /// The live session of that id, or a new one with [`CaptureScope::Window`] when the id was never seen (spec §9.1). One
    /// that was ended has to be begun again by its host.
    ///
    /// # Errors
    /// [`AdoptError`].
    pub fn adopt(&mut self, id: &SessionId) -> Result<SessionHandle, AdoptError> {
        if let Ok(handle) = self.find(id) {
            return Ok(handle);
        }
        let may_have_ended =
            self.ended.len() >= ENDED_REMEMBERED || self.ended.contains(&self.hasher.hash_one(id));
        if may_have_ended {
            return Err(SessionGone.into());
        }
        self.begin(id.clone(), CaptureScope::Window)?;
        Ok(self.find(id)?)
    }

    /// The only live snapshot of a window of this process in the session, if there is one.
    ///
    /// # Errors
    /// [`SeveralLive`].
    pub fn only_live_of(
        &mut self,
        handle: &SessionHandle,
        pid: u32,
        now: Instant,
    ) -> Result<Option<SnapshotId>, SeveralLive> {
        let ttl = self.limits.ttl;
        let Ok(session) = self.session(handle) else {
            return Ok(None);
        };
        session.expire(now, ttl);
        let mut own = session
            .live
            .values()
            .filter(|snapshot| snapshot.window.pid == pid);
        match (own.next(), own.next()) {
            (only, None) => Ok(only.map(|snapshot| snapshot.id.clone())),
            (_, Some(_)) => Err(SeveralLive),
        }
    }

    /// Ends a session and deletes its pictures; an unknown id releases nothing.
    pub fn end(&mut self, id: &SessionId) -> Released {
        let Some(session) = self.sessions.remove(id) else {
            return Released::default();
        };
        if self.ended.len() < ENDED_REMEMBERED {
            self.ended.insert(self.hasher.hash_one(id));
        }
        let mut images = session
            .captures
            .iter()
            .filter(|(_, image)| image.exists())
            .count();
        for snapshot in session.live.values() {
            images += usize::from(snapshot.drop_image());
        }
        Released {
            snapshots: count(session.live.len()),
            images: count(images),
        }
    }

    /// Ends every session, at shutdown.
    pub fn end_all(&mut self) {
        let ids: Vec<_> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.end(&id);
        }
    }

    /// The live session of that id.
    ///
    /// # Errors
    /// [`SessionGone`].
    pub fn find(&self, id: &SessionId) -> Result<SessionHandle, SessionGone> {
        let session = self.sessions.get(id).ok_or(SessionGone)?;
        Ok(SessionHandle {
            id: id.clone(),
            number: session.number,
            scope: session.scope,
        })
    }

    /// Whether the session that the handle was found for has not ended.
    #[must_use]
    pub fn is_live(&self, handle: &SessionHandle) -> bool {
        let session = self.sessions.get(&handle.id);
        session.is_some_and(|session| session.number == handle.number)
    }

    /// The live snapshot of that id, or why it cannot be used. Expiry is evaluated here, so the sweep may be late.
    ///
    /// # Errors
    /// One of the five `snapshot_*` codes; `snapshot_unknown` also when the session has ended.
    pub fn resolve(
        &mut self,
        handle: &SessionHandle,
        id: &SnapshotId,
        now: Instant,
    ) -> Result<Arc<Snapshot>, DomainCode> {
        let n = self
            .number_of(handle, id)
            .ok_or(DomainCode::SnapshotUnknown)?;
        let ttl = self.limits.ttl;
        let session = self
            .session(handle)
            .map_err(|SessionGone| DomainCode::SnapshotUnknown)?;
        session.expire(now, ttl);
        match session.fates.get(n) {
            None | Some(Fate::Reserved) => Err(DomainCode::SnapshotUnknown),
            Some(Fate::Spent) => Err(DomainCode::SnapshotSpent),
            Some(Fate::Superseded) => Err(DomainCode::SnapshotSuperseded),
            Some(Fate::Expired) => Err(DomainCode::SnapshotExpired),
            Some(Fate::Evicted) => Err(DomainCode::SnapshotEvicted),
            Some(Fate::Live) => session
                .live
                .get(&n)
                .cloned()
                .ok_or(DomainCode::SnapshotUnknown),
        }
    }

    /// The window of a live snapshot, to choose a lane; changes nothing.
    #[must_use]
    pub fn window_of(&self, session: &SessionId, id: &SnapshotId) -> Option<WindowKey> {
        let handle = self.find(session).ok()?;
        let n = self.number_of(&handle, id)?;
        Some(self.sessions.get(session)?.live.get(&n)?.window)
    }

    /// The window of the only live snapshot of a process, to choose a lane; changes nothing.
    #[must_use]
    pub fn only_window_of(&self, session: &SessionId, pid: u32) -> Option<WindowKey> {
        let live = self.sessions.get(session)?.live.values();
        let mut windows = live
            .map(|snapshot| snapshot.window)
            .filter(|key| key.pid == pid);
        windows.next().filter(|_| windows.next().is_none())
    }

    /// Hands out the next snapshot id of a session. It resolves to nothing until [`Sessions::register`].
    ///
    /// # Errors
    /// [`SessionGone`].
    pub fn reserve(&mut self, handle: &SessionHandle) -> Result<SnapshotId, SessionGone> {
        let session = self.session(handle)?;
        let n = session.fates.len();
        session.fates.push(Fate::Reserved);
        Ok(self.spell(handle, n))
    }

    /// Makes a snapshot live: supersedes the one of the same window, evicts the oldest beyond the limit.
    ///
    /// # Errors
    /// [`SessionGone`] when the session ended meanwhile; the snapshot's picture is deleted then.
    pub fn register(
        &mut self,
        handle: &SessionHandle,
        Kept { snapshot, base }: Kept,
    ) -> Result<(), SessionGone> {
        let n = self.number_of(handle, &snapshot.id);
        let limit = self.limits.per_session;
        let (Ok(session), Some(n)) = (self.session(handle), n) else {
            snapshot.drop_image();
            return Err(SessionGone);
        };
        let same_window =
            |(n, other): (&usize, &Arc<Snapshot>)| (other.window == snapshot.window).then_some(*n);
        let superseded: Vec<usize> = session.live.iter().filter_map(same_window).collect();
        for old in superseded {
            session.retire(old, Fate::Superseded);
        }
        while session.live.len() >= limit {
            let Some((&oldest, _)) = session.live.first_key_value() else {
                break;
            };
            session.evict(oldest);
        }
        if let Some(fate) = session.fates.get_mut(n) {
            *fate = Fate::Live;
            session.bases.insert(snapshot.window, base);
            session.live.insert(n, snapshot);
        }
        session.limit_bases();
        Ok(())
    }

    /// What the next snapshot of a window is compared with (spec §4.9): the newest one before it, live, spent or
    /// superseded. One that expired or was evicted ends the chain, and so does the time to live of one that was used up.
    ///
    /// # Errors
    /// [`SessionGone`].
    pub fn base_of(
        &mut self,
        handle: &SessionHandle,
        window: WindowKey,
        now: Instant,
    ) -> Result<Option<Arc<Base>>, SessionGone> {
        let ttl = self.limits.ttl;
        let session = self.session(handle)?;
        session.expire(now, ttl);
        Ok(session.bases.get(&window).cloned())
    }

    /// Uses a snapshot up. One that is not live any more, or whose session has ended, stays as it is.
    pub fn spend(&mut self, handle: &SessionHandle, id: &SnapshotId) {
        if let (Some(n), Ok(session)) = (self.number_of(handle, id), self.session(handle)) {
            session.retire(n, Fate::Spent);
        }
    }

    /// Keeps a screen capture's file for the session, for the time to live of a snapshot.
    ///
    /// # Errors
    /// [`SessionGone`]; the file is deleted then.
    pub fn keep_capture(
        &mut self,
        handle: &SessionHandle,
        taken: Instant,
        image: StoredImage,
    ) -> Result<(), SessionGone> {
        self.session(handle)?.captures.push((taken, image));
        Ok(())
    }

    /// Expires what is old enough, so that files really go.
    pub fn sweep(&mut self, now: Instant) {
        for session in self.sessions.values_mut() {
            session.expire(now, self.limits.ttl);
        }
    }

    fn session(&mut self, handle: &SessionHandle) -> Result<&mut Session, SessionGone> {
        self.sessions
            .get_mut(&handle.id)
            .filter(|session| session.number == handle.number)
            .ok_or(SessionGone)
    }

    fn spell(&self, handle: &SessionHandle, n: usize) -> SnapshotId {
        SnapshotId::try_new(format!("{}_{}_{n}", self.prefix, handle.number))
            .expect("the prefix is not empty")
    }

    /// The `n` of an id that this process spelled for this session.
    fn number_of(&self, handle: &SessionHandle, id: &SnapshotId) -> Option<usize> {
        let (_, digits) = id.as_str().rsplit_once('_')?;
        let n = digits.parse().ok()?;
        // `+7` and `007` parse as well, and are not what was handed out.
        (self.spell(handle, n) == *id).then_some(n)
    }
}

impl Session {
    fn retire(&mut self, n: usize, fate: Fate) {
        if let Some(snapshot) = self.live.remove(&n) {
            snapshot.drop_image();
            self.fates[n] = fate;
        }
    }

    fn evict(&mut self, n: usize) {
        if let Some(snapshot) = self.live.get(&n) {
            self.bases.remove(&snapshot.window);
        }
        self.retire(n, Fate::Evicted);
    }

    fn limit_bases(&mut self) {
        while self.bases.len() > MAX_BASES {
            let oldest = self.bases.iter().min_by_key(|(_, base)| base.taken());
            let Some(window) = oldest.map(|(window, _)| *window) else {
                return;
            };
            self.bases.remove(&window);
        }
    }

    fn expire(&mut self, now: Instant, ttl: Duration) {
        let old = |taken: Instant| now.saturating_duration_since(taken) >= ttl;
        let expired: Vec<usize> = self
            .live
            .iter()
            .filter_map(|(n, snapshot)| old(snapshot.taken).then_some(*n))
            .collect();
        for n in expired {
            self.retire(n, Fate::Expired);
        }
        self.bases.retain(|_, base| !old(base.taken()));
        self.captures.retain(|(taken, _)| !old(*taken));
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
