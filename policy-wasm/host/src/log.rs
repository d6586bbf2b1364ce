//! The decision log: one line of JSON per decision, written before anything is forwarded.
//!
//! A record counts as appended when one `write` took the whole line, so it survives the death of the process. A line
//! that was written in part is cut off again and its decision is refused. Every record carries the SHA-256 of the line
//! before it, so that an edited or missing line is found; what only an outside witness can find, a cut tail, is found
//! with the position that [`DecisionLog::position`] gives out.
//!
//! What survives a power failure depends on [`Fsync`]: with `Batch`, up to 50 ms of decisions can be missing afterwards.
//! A failed `fsync` is never repeated, because the kernel may have dropped the pages and a second call would succeed
//! without them: the log then refuses until [`DecisionLog::replace`] has begun a new file.
//!
//! A log can go over to a new file when one is full ([`Rotation`]). The chain goes on across the files: the first record of
//! a file follows the last one of the file before it, so that a file that is missing between two others is found as well.
//!
//! The log never holds what was typed or seen: ids, methods, codes, digests, counts and times only.

mod file;
mod follow;
mod lines;
mod names;
mod record;
mod rotate;
mod scan;
mod sync;
mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use follow::{Follower, Logged};
pub use names::Archive;
pub use record::{ControlKind, LoggedOutcome, OutcomeRecord, PersonRecord, Trigger};
pub(crate) use record::{
    Decision, DecisionRecord, FactsRow, ModuleRow, MonitorRecord, PolicyRow, ReloadRecord,
    ReloadResult, ReloadSet, now_unix_ms,
};
pub use scan::{LoggedCall, LoggedResult, Scan, scan};
pub use verify::{Verified, VerifyError, verify, verify_all};

use crate::digest::Digest;
use file::State;
use record::Chain;
use sync::Syncer;
use tokio::sync::watch;

/// The longest record, with its line feed.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// Why a log cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system says no.
    #[error("the decision log cannot be {doing}")]
    Io {
        /// What was tried: opened, read, locked, written.
        doing: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It is no regular file of this user.
    #[error("the decision log has to be a regular file of this user")]
    NotOurs,
    /// Another gateway writes to it.
    #[error("the decision log is in use by another process")]
    InUse,
    /// The file is not there, and older ones are: a new log would not follow them.
    #[error(
        "the decision log is missing although older files of it are there; put it back, or move them away as well to begin a \
         new one"
    )]
    Missing,
    /// Its last record cannot be read, so the chain cannot be continued.
    #[error(
        "the last record of the decision log cannot be read; move the file away to begin a new one"
    )]
    Corrupt,
}

impl LogError {
    fn io(doing: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

/// The record was not appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the decision log takes no record")]
pub struct AuditUnavailable;

/// When records are forced to the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Fsync {
    /// Every 50 ms while there is something new.
    #[default]
    Batch,
    /// Before each decision counts.
    Each,
    /// When the system likes to.
    Never,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// When records are forced to the disk.
    pub fsync: Fsync,
    /// When a new file is begun. Absent: never.
    pub rotation: Option<Rotation>,
}

/// When a new file is begun, and how many of the old ones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// A file that has this many bytes takes no further record.
    pub max_file_bytes: u64,
    /// Old files that stay; the oldest go. Absent: all stay.
    pub keep_files: Option<u32>,
}

/// What was found when the log was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Records that were there.
    pub records: u64,
    /// Bytes of a record that was never finished; they were cut off.
    pub torn_bytes: u64,
}

/// Where the log stands: what a witness keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// Number of the last record, counted from 1; zero for an empty log.
    pub count: u64,
    /// The digest of its line; absent for an empty log.
    pub head: Option<Digest>,
}

/// An open log. Shared by reference; appending takes a short lock.
#[derive(Debug)]
pub struct DecisionLog {
    state: Mutex<State>,
    options: LogOptions,
    syncer: Syncer,
    unlogged: AtomicU64,
    position: watch::Sender<LogPosition>,
}

impl DecisionLog {
    /// Opens a log to continue it, or begins one. The file is created with mode 0600 and stays locked.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, is no regular file of this user, is in use, or ends in something that is no record.
    pub fn open(path: &Path, options: LogOptions) -> Result<(Self, Opened), LogError> {
        let (state, opened) = State::open(path)?;
        let syncer = Syncer::start(options.fsync).map_err(LogError::io("synced"))?;
        syncer.watch(&state.file).map_err(LogError::io("opened"))?;
        let log = Self {
            position: watch::Sender::new(state.position),
            state: Mutex::new(state),
            options,
            syncer,
            unlogged: AtomicU64::new(0),
        };
        if opened.torn_bytes > 0 {
            tracing::warn!(
                bytes = opened.torn_bytes,
                "the decision log ended in an unfinished record, which was cut off"
            );
            log.control(ControlKind::TailCut, None);
        }
        Ok((log, opened))
    }

    /// Where the log stands.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.lock().position
    }

    /// Where the log stands, as it moves on.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<LogPosition> {
        self.position.subscribe()
    }

    /// A reader of its records, from number `next` on. It reads the files and holds up nobody.
    #[must_use]
    pub fn follow(&self, next: u64) -> Follower {
        Follower::new(self.lock().path.clone(), next)
    }

    /// Control records and outcomes that could not be written.
    #[must_use]
    pub fn unlogged(&self) -> u64 {
        self.unlogged.load(Ordering::Relaxed)
    }

    /// Whether the next decision can be recorded, as far as is known now.
    #[must_use]
    pub fn is_available(&self) -> bool {
        let state = self.lock();
        !state.broken && !state.refused && !state.displaced && !self.syncer.failed()
    }

    /// Finds out whether a log that refused its last record takes records again, and whether its file still is where it was.
    /// A log that is well is not written to.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn check(&self) -> Result<(), AuditUnavailable> {
        {
            let mut state = self.lock();
            let is_in_place = state.is_in_place();
            if !is_in_place && !state.displaced {
                tracing::error!(
                    path = %state.path.display(),
                    "the decision log is not where it was: its file was removed, renamed or cut; everything is refused until it is back"
                );
            }
            state.displaced = !is_in_place;
        }
        if self.is_available() {
            return Ok(());
        }
        self.append(|chain| record::control(chain, ControlKind::LogResumed, None))?;
        tracing::info!("the decision log takes records again");
        Ok(())
    }

    /// Records a message that the gateway sends without asking a policy. It is never a reason not to send it: a refusal
    /// here would keep a held button held. A record that is lost is counted.
    pub fn control(&self, kind: ControlKind, session: Option<&str>) {
        if self
            .append(|chain| record::control(chain, kind, session))
            .is_err()
        {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records what a person decided, or what became of it. Unlike [`control`](Self::control) it can be a reason not to go
    /// on: an approval that is not recorded is none.
    ///
    /// # Errors
    ///
    /// When the log takes no record.
    pub fn person(&self, record: PersonRecord<'_>) -> Result<(), AuditUnavailable> {
        self.append(|chain| record::person(chain, record))
            .inspect_err(|_| {
                self.unlogged.fetch_add(1, Ordering::Relaxed);
            })
    }

    /// Records the beginning or the end of a capture of facts.
    ///
    /// # Errors
    ///
    /// When the log takes no record. A capture that is not recorded does not begin.
    pub fn capture(
        &self,
        kind: ControlKind,
        by: &str,
        why: Option<&'static str>,
    ) -> Result<(), AuditUnavailable> {
        self.append(|chain| record::capture(chain, kind, by, why))
            .inspect_err(|_| {
                self.unlogged.fetch_add(1, Ordering::Relaxed);
            })
    }

    /// Records how an admitted call ended. The outcome stands whether or not it can be recorded; a lost record means
    /// that the same key is answered with an unknown outcome after a restart.
    ///
    /// # Errors
    ///
    /// When the log takes no record.
    pub fn outcome(&self, outcome: &OutcomeRecord<'_>) -> Result<(), AuditUnavailable> {
        self.append(|chain| record::outcome(chain, outcome))
            .inspect_err(|_| {
                self.unlogged.fetch_add(1, Ordering::Relaxed);
            })
    }

    pub(crate) fn monitor(&self, monitor: &MonitorRecord<'_>) -> Result<(), AuditUnavailable> {
        self.append(|chain| record::monitor(chain, monitor))
    }

    pub(crate) fn reload(&self, reload: &ReloadRecord<'_>) -> Result<(), AuditUnavailable> {
        self.append(|chain| record::reload(chain, reload))
    }

    pub(crate) fn decision(&self, decision: &DecisionRecord<'_>) -> Result<(), AuditUnavailable> {
        self.append(|chain| record::decision(chain, decision))
    }

    /// Goes over to a new file, which makes a log usable again whose disk failed. The old file is left as it is.
    ///
    /// # Errors
    ///
    /// When the new file cannot be opened, written and synced; the log is then as it was.
    pub fn replace(&self, path: &Path) -> Result<Opened, LogError> {
        let (mut fresh, opened) = State::open(path)?;
        let line = record::control(fresh.chain(), ControlKind::LogReplaced, None);
        fresh
            .write(&line)
            .map_err(|AuditUnavailable| LogError::Io {
                doing: "written",
                source: std::io::ErrorKind::WriteZero.into(),
            })?;
        fresh.file.sync_all().map_err(LogError::io("synced"))?;
        let mut state = self.lock();
        self.syncer
            .watch(&fresh.file)
            .map_err(LogError::io("opened"))?;
        *state = fresh;
        self.position.send_replace(state.position);
        Ok(opened)
    }

    /// Makes the log what it is after a failed `fsync`.
    #[cfg(test)]
    pub(crate) fn fail_sync(&self) {
        self.syncer.fail();
    }

    fn append(&self, line: impl FnOnce(Chain) -> Vec<u8>) -> Result<(), AuditUnavailable> {
        let mut state = self.lock();
        if state.broken || state.displaced || self.syncer.failed() {
            return Err(AuditUnavailable);
        }
        if let Some(rotation) = self.options.rotation
            && state.bytes >= state.rotate_at.max(rotation.max_file_bytes)
        {
            rotate::rotate(&mut state, &self.syncer, self.options.fsync, rotation)?;
        }
        let line = line(state.chain());
        let written = state.write(&line);
        state.refused = written.is_err();
        written?;
        self.position.send_replace(state.position);
        match self.options.fsync {
            Fsync::Batch => self.syncer.mark(),
            Fsync::Each => {
                if let Err(error) = state.file.sync_data() {
                    state.broken = true;
                    tracing::error!(%error, "the decision log cannot be forced to the disk; everything is refused until it is replaced");
                    return Err(AuditUnavailable);
                }
            }
            Fsync::Never => {}
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held can have left half a line: `bytes` was not moved on, so the next write would
        // follow the half line. Nothing between lock and unlock panics, and if it did, refusing is right.
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = PoisonError::into_inner(poisoned);
            state.broken = true;
            state
        })
    }
}
