//! Forces the log to the disk every 50 ms while there is something new, on a thread of its own.

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Fsync;

/// How much can be lost by a power failure.
const BATCH: Duration = Duration::from_millis(50);

/// The thread and what it shares with the writers. It ends when this is dropped, after a last sync.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    dirty: bool,
    failed: bool,
    stop: bool,
}

impl Syncer {
    /// Starts the thread, if the mode needs one.
    pub(super) fn start(fsync: Fsync) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = match fsync {
            Fsync::Batch => {
                let shared = Arc::clone(&shared);
                Some(
                    std::thread::Builder::new()
                        .name("maka-audit-sync".to_owned())
                        .spawn(move || shared.run())?,
                )
            }
            Fsync::Each | Fsync::Never => None,
        };
        Ok(Self { shared, thread })
    }

    /// Goes over to a file; earlier failures are forgotten with the earlier file.
    pub(super) fn watch(&self, file: &File) -> std::io::Result<()> {
        let file = file.try_clone()?;
        let mut state = self.shared.lock();
        state.file = Some(file);
        state.dirty = false;
        state.failed = false;
        Ok(())
    }

    /// There is something new.
    pub(super) fn mark(&self) {
        let mut state = self.shared.lock();
        if !state.dirty {
            state.dirty = true;
            self.shared.woken.notify_one();
        }
    }

    /// A sync has failed, and nothing written to this file since the one before can be trusted to be there.
    pub(super) fn failed(&self) -> bool {
        self.shared.lock().failed
    }

    #[cfg(test)]
    pub(super) fn fail(&self) {
        self.shared.lock().failed = true;
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.woken.notify_one();
        if let Some(thread) = self.thread.take() {
            // It does not panic, and a destructor has nobody to tell.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            state = self
                .woken
                .wait_while(state, |state| !state.dirty && !state.stop)
                .unwrap_or_else(PoisonError::into_inner);
            if !state.stop {
                // Gather what comes within the batch; only the end of the log cuts it short.
                (state, _) = self
                    .woken
                    .wait_timeout_while(state, BATCH, |state| !state.stop)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let stop = state.stop;
            if state.dirty {
                state.dirty = false;
                let file = state.file.as_ref().map(File::try_clone);
                drop(state);
                let result = file.map_or(Ok(()), |file| file.and_then(|file| file.sync_data()));
                state = self.lock();
                if let Err(error) = result {
                    state.failed = true;
                    tracing::error!(%error, "the decision log cannot be forced to the disk; everything is refused until it is replaced");
                }
            }
            if stop {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    /// A file that cannot be synced fails once and for good, until another file takes its place.
    #[test]
    fn a_failed_sync_is_not_repeated() {
        // A pipe cannot be synced.
        let (reader, writer) = std::io::pipe().unwrap();
        let syncer = Syncer::start(Fsync::Batch).unwrap();
        syncer.watch(&File::from(OwnedFd::from(writer))).unwrap();
        syncer.mark();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !syncer.failed() {
            assert!(
                std::time::Instant::now() < deadline,
                "the sync was never tried"
            );
            std::thread::yield_now();
        }
        syncer.watch(&tempfile::tempfile().unwrap()).unwrap();
        assert!(!syncer.failed());
        drop(reader);
    }
}
