//! One restart at a time, shared by everybody who asks for one while it is under way.
//!
//! A restart runs in a task of its own: a caller that leaves does not stop it, and one that comes while nobody waits any
//! more still joins it. It knows nothing of what a restart is.

use std::sync::{Arc, Mutex, PoisonError};

use maka_cu_host::MakaCuLifecycleError;
use maka_cu_host::status::Negotiated;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// What a restart came to.
pub(super) type Restarted = Result<Arc<Negotiated>, MakaCuLifecycleError>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    last: Mutex<Option<watch::Receiver<Option<Restarted>>>>,
    tasks: TaskTracker,
}

impl Restarts {
    /// Joins the restart that is under way, or begins this one. Nothing when its task was lost, which happens only while
    /// the runtime shuts down.
    pub(super) async fn join<F>(&self, restart: impl FnOnce() -> F) -> Option<Restarted>
    where
        F: Future<Output = Restarted> + Send + 'static,
    {
        let mut outcome = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            match last.as_ref().filter(|last| is_under_way(last)) {
                Some(under_way) => {
                    tracing::info!("a restart is under way already, and is shared");
                    under_way.clone()
                }
                None => {
                    let (done, outcome) = watch::channel(None);
                    let restart = restart();
                    self.tasks.spawn(async move {
                        done.send_replace(Some(restart.await));
                    });
                    last.insert(outcome).clone()
                }
            }
        };
        let outcome = outcome.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }

    /// Waits for the restart that is under way. To be called when it can only fail.
    pub(super) async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn is_under_way(restart: &watch::Receiver<Option<Restarted>>) -> bool {
    restart.borrow().is_none() && restart.has_changed().is_ok()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::FutureExt as _;
    use maka_cu_host::error::LifecycleCause;
    use maka_cu_protocol::sets::{LifecycleCode, RequestStage};
    use tokio::sync::oneshot;

    use super::*;

    fn failed() -> Restarted {
        Err(MakaCuLifecycleError {
            code: LifecycleCode::ServiceUnavailable,
            generation: 7,
            stage: RequestStage::Queued,
            method: None,
            cause: LifecycleCause::Busy,
        })
    }

    /// Callers at the same time share one restart, one that leaves does not end it, and the next one is a new one.
    #[tokio::test]
    async fn a_restart_is_shared_and_survives_its_callers() {
        let restarts = Restarts::default();
        let begun = AtomicU32::new(0);
        let (go, gone) = oneshot::channel::<()>();
        let mut gone = Some(gone);
        let mut begin = || {
            begun.fetch_add(1, Ordering::Relaxed);
            let gone = gone.take();
            async move {
                if let Some(gone) = gone {
                    gone.await.unwrap();
                }
                failed()
            }
        };
        {
            let left = pin!(restarts.join(&mut begin));
            assert!(left.now_or_never().is_none(), "it is under way");
        }
        {
            let mut shared = pin!(restarts.join(&mut begin));
            assert!((&mut shared).now_or_never().is_none());
            go.send(()).unwrap();
            let outcome = shared.await.unwrap();
            assert!(matches!(outcome, Err(error) if error.generation == 7));
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1, "both had the same one");
        restarts
            .join(&mut || {
                begun.fetch_add(1, Ordering::Relaxed);
                async { failed() }
            })
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        restarts.end().await;
    }
}
