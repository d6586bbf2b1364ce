//! The point of no return of one request, shared by the server and the thread that works on it.
//!
//! A request is either cancelled before its commit point, and then answered `aborted`, or committed before the cancel,
//! and then answered with what really happened. One atomic decides which, so that both cannot be true:
//!
//! - a dispatch commits immediately before it touches the application;
//! - a read commits immediately before it changes the session (registers a snapshot or a picture) and answers.
//!
//! INVARIANT: after [`Ticket::cancel`] returned `true`, [`Ticket::commit`] never returns `Ok`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thiserror::Error;
use tokio_util::sync::CancellationToken;

const OPEN: u8 = 0;
const COMMITTED: u8 = 1;
const CANCELLED: u8 = 2;

/// The request was cancelled before it did anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cancelled before it began")]
pub struct Aborted;

/// See the module text.
#[derive(Debug, Clone, Default)]
pub struct Ticket {
    state: Arc<AtomicU8>,
    cancel: CancellationToken,
}

impl Ticket {
    /// Declares that from now on the true outcome is reported.
    ///
    /// # Errors
    /// [`Aborted`] when the cancel came first; nothing may be done then.
    pub fn commit(&self) -> Result<(), Aborted> {
        match self
            .state
            .compare_exchange(OPEN, COMMITTED, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) | Err(COMMITTED) => Ok(()),
            Err(_) => Err(Aborted),
        }
    }

    /// Cancels. `true` when the request had not committed: the caller then answers `aborted`. Also fires the token, so
    /// that a wait without effect (for a launched application's window) ends early even after the commit.
    #[must_use]
    pub fn cancel(&self) -> bool {
        let won = self
            .state
            .compare_exchange(OPEN, CANCELLED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        self.cancel.cancel();
        won
    }

    /// Whether the cancel came before the commit.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.state.load(Ordering::SeqCst) == CANCELLED
    }

    /// Fires when somebody asked to cancel, whether or not that was in time.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_first_decides() {
        let committed = Ticket::default();
        assert_eq!(committed.commit(), Ok(()));
        assert!(!committed.cancel() && !committed.is_aborted());
        assert!(committed.cancelled().is_cancelled());
        assert_eq!(
            committed.commit(),
            Ok(()),
            "committing again changes nothing"
        );

        let cancelled = Ticket::default();
        assert!(cancelled.cancel());
        assert_eq!(cancelled.commit(), Err(Aborted));
        assert!(!cancelled.cancel(), "only one cancel is answered");
    }

    #[test]
    fn a_race_has_exactly_one_winner() {
        for _ in 0..500 {
            let ticket = Ticket::default();
            let other = ticket.clone();
            let canceller = std::thread::spawn(move || other.cancel());
            let committed = ticket.commit().is_ok();
            assert_ne!(committed, canceller.join().unwrap());
        }
    }
}
