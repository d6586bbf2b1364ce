//! Whether there is a policy to judge by: a policy that is still being compiled is waited for, a little.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a call waits for a policy that is being compiled. Later ones are refused with `policy_absent`.
const PATIENCE: Duration = Duration::from_millis(600);

/// Where the policy stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It is being read and compiled.
    Loading,
    /// It judges.
    Active,
    /// None is configured: everything is refused.
    Absent,
}

/// The standing as it changes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StandingWatch(watch::Receiver<Standing>);

impl StandingWatch {
    /// A watch that starts here, and what changes it.
    #[must_use]
    pub fn new(standing: Standing) -> (watch::Sender<Standing>, Self) {
        let (sender, receiver) = watch::channel(standing);
        (sender, Self(receiver))
    }

    /// Whether it is active, marking this answer as seen.
    #[must_use]
    pub fn is_active(&mut self) -> bool {
        *self.0.borrow_and_update() == Standing::Active
    }

    /// The next change. Cancel-safe.
    ///
    /// # Errors
    /// When nothing can change it any more.
    pub async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.0.changed().await
    }

    /// Waits a little while it is loading. Whatever it is afterwards, the judge knows.
    pub(crate) async fn settled(&self) {
        let mut watch = self.0.clone();
        let settled = watch.wait_for(|standing| *standing != Standing::Loading);
        // Out of patience, or nothing left that could change it: the judge refuses.
        drop(timeout(PATIENCE, settled).await);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn loading_is_waited_for_and_nothing_else() {
        for standing in [Standing::Active, Standing::Absent] {
            let (_sender, mut watch) = StandingWatch::new(standing);
            watch.settled().await;
            assert_eq!(watch.is_active(), standing == Standing::Active);
        }
        let (sender, mut watch) = StandingWatch::new(Standing::Loading);
        let waiting = watch.clone();
        let mut waits = std::pin::pin!(waiting.settled());
        let now = std::future::poll_fn(|context| Poll::Ready(waits.as_mut().poll(context)));
        assert!(now.await.is_pending() && !watch.is_active());
        sender.send_replace(Standing::Active);
        waits.await;
        assert!(watch.is_active());
    }
}
