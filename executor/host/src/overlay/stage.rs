//! The runtime around an action: begin before it, end after it, and never in its way.
//!
//! The sink lives on a thread of its own, which takes orders from a bounded queue; a sink that hangs therefore holds up that thread
//! and nobody else. One slot stands for the one pointer on the screen: a presentation holds it from its beginning until its fence
//! says that it is finished, or until that takes too long.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use maka_cu_protocol::ids::SessionId;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::decision::{BeginCall, EndCall, Ended, Presented};
use super::{
    FINISHED_PATIENCE, Fence, OverlaySink, READY_CEILING, READY_FLOOR, SLOT_PATIENCE, Signal,
    SinkError,
};

/// Orders that may wait for the sink's thread. When it is full, which takes a sink that hangs, actions go unseen.
const ORDERS: usize = 8;

/// Why there is no overlay.
#[derive(Debug, Error)]
pub enum OverlayError {
    /// The thread of the sink could not be started.
    #[error("the thread of the overlay could not be started")]
    Thread(#[source] io::Error),
}

/// The caller gave the action up before it began: it must not be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the action was cancelled before it began")]
pub struct Aborted;

/// Presents actions to one sink, one after the other.
#[derive(Debug)]
#[doc(alias = "createComputerUseOverlayHook")]
pub struct Overlay {
    orders: mpsc::Sender<Order>,
    slot: Arc<Semaphore>,
    waiters: Arc<Waiters>,
    endings: TaskTracker,
    bounds: Bounds,
}

/// The times of spec 10.2; only tests have others.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    slot: Duration,
    ready: Duration,
    finished: Duration,
}

impl Bounds {
    const SPECIFIED: Self = Self {
        slot: SLOT_PATIENCE,
        ready: READY_FLOOR,
        finished: FINISHED_PATIENCE,
    };

    /// How long this fence is waited for.
    fn ready(self, asked: Option<Duration>) -> Duration {
        asked.map_or(self.ready, |asked| {
            asked.clamp(self.ready, READY_CEILING.max(self.ready))
        })
    }
}

/// What the sink's thread is to do.
#[derive(Debug)]
enum Order {
    Begin {
        call: BeginCall,
        fence: oneshot::Sender<Option<Fence>>,
    },
    End(EndCall),
}

impl Overlay {
    /// An overlay over this sink.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn try_new(sink: impl OverlaySink) -> Result<Self, OverlayError> {
        Self::with_bounds(sink, Bounds::SPECIFIED)
    }

    fn with_bounds(sink: impl OverlaySink, bounds: Bounds) -> Result<Self, OverlayError> {
        let (orders, inbox) = mpsc::channel(ORDERS);
        // Not joined: a sink that hangs would never let go. The thread ends when the last presentation and the overlay are gone.
        thread::Builder::new()
            .name("maka-overlay".to_owned())
            .spawn(move || serve(sink, inbox))
            .map_err(OverlayError::Thread)?;
        Ok(Self {
            orders,
            slot: Arc::new(Semaphore::new(1)),
            waiters: Arc::default(),
            endings: TaskTracker::new(),
            bounds,
        })
    }

    /// Presents an action, carries it out and presents how it ended. `dispatch` is polled only after the beginning, and what it
    /// yields is returned as it is, without waiting for the presentation to finish.
    ///
    /// # Errors
    /// [`Aborted`] when `cancel` came before `dispatch` began. Afterwards cancelling is a matter of `dispatch` itself.
    pub async fn present<T>(
        &self,
        presented: Presented,
        cancel: &CancellationToken,
        dispatch: impl Future<Output = T>,
        ended: impl FnOnce(&T) -> Ended,
    ) -> Result<T, Aborted> {
        let presentation = self.begin(presented, cancel).await?;
        let result = dispatch.await;
        presentation.end(ended(&result));
        Ok(result)
    }

    /// The beginning alone: returns when the action may be dispatched, seen or not. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`Aborted`] when `cancel` came first; it wins over readiness.
    pub async fn begin(
        &self,
        presented: Presented,
        cancel: &CancellationToken,
    ) -> Result<Presentation, Aborted> {
        if cancel.is_cancelled() {
            return Err(Aborted);
        }
        let waiter = Waiters::enter(&self.waiters, &presented.session);
        let slot = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Aborted),
            () = waiter.woken.cancelled() => return Ok(Presentation::UNSEEN),
            slot = self.slot.clone().acquire_owned() => slot.expect("the slot is never closed"),
            () = sleep(self.bounds.slot) => return Ok(Presentation::UNSEEN),
        };
        // Room for the end is taken together with room for the beginning: what begins can always be ended.
        let (Ok(begin), Ok(end)) = (
            self.orders.clone().try_reserve_owned(),
            self.orders.clone().try_reserve_owned(),
        ) else {
            return Ok(Presentation::UNSEEN);
        };
        let (fence, reply) = oneshot::channel();
        drop(begin.send(Order::Begin {
            call: presented.at_begin(),
            fence,
        }));
        let mut shown = Shown {
            presented,
            end,
            slot,
            reply: Some(reply),
            finished: None,
            bounds: self.bounds,
            waiters: self.waiters.clone(),
            endings: self.endings.clone(),
            runtime: Handle::current(),
        };
        let aborted = tokio::select! {
            biased;
            () = cancel.cancelled() => true,
            () = waiter.woken.cancelled() => false,
            () = shown.ready() => false,
        };
        // Dropping a presentation cancels it.
        let presentation = Presentation { shown: Some(shown) };
        if aborted {
            Err(Aborted)
        } else {
            Ok(presentation)
        }
    }

    /// Wakes whoever waits for a presentation of this session: its actions go on unseen, and the next session's turn comes.
    #[doc(alias = "clearSession")]
    pub fn clear_session(&self, session: &SessionId) {
        self.waiters.wake(session);
    }

    /// Waits until every ended presentation is finished, which takes no longer than [`FINISHED_PATIENCE`].
    pub async fn close(self) {
        self.endings.close();
        self.endings.wait().await;
    }
}

/// A presentation that has begun and not ended. Dropping it, with the action's future for example, ends it without a result.
#[derive(Debug)]
#[must_use = "an action that is presented has an end"]
pub struct Presentation {
    shown: Option<Shown>,
}

impl Presentation {
    /// Nothing is shown, so nothing is to be ended.
    const UNSEEN: Self = Self { shown: None };

    /// The action has ended. Does not wait.
    pub fn end(mut self, ended: Ended) {
        if let Some(shown) = self.shown.take() {
            shown.end(ended);
        }
    }
}

impl Drop for Presentation {
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take() {
            shown.end(Ended::NoResult);
        }
    }
}

/// A presentation the sink was told of.
struct Shown {
    presented: Presented,
    end: mpsc::OwnedPermit<Order>,
    slot: OwnedSemaphorePermit,
    /// The sink's answer, until it came.
    reply: Option<oneshot::Receiver<Option<Fence>>>,
    finished: Option<Signal>,
    bounds: Bounds,
    waiters: Arc<Waiters>,
    endings: TaskTracker,
    runtime: Handle,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown")
            .field("presented", &self.presented)
            .finish_non_exhaustive()
    }
}

impl Shown {
    /// Returns when the action may follow. Cancel-safe: what was learnt stays in `self`.
    async fn ready(&mut self) {
        let since = Instant::now();
        let Some(reply) = &mut self.reply else { return };
        let Ok(fence) = timeout_at(since + self.bounds.ready, reply).await else {
            return;
        };
        self.reply = None;
        let Ok(Some(fence)) = fence else { return };
        self.finished = Some(fence.finished);
        let bound = self.bounds.ready(fence.ready_timeout);
        // Ready or too late: the action follows.
        drop(timeout_at(since + bound, tamed(fence.ready_for_interaction)).await);
    }

    /// Tells the sink, and keeps the slot until the presentation is finished.
    fn end(self, ended: Ended) {
        let Self {
            presented,
            end,
            slot,
            reply,
            finished,
            bounds,
            waiters,
            endings,
            runtime,
        } = self;
        match presented.at_end(ended) {
            // The room goes back unused.
            EndCall::Nothing => drop(end),
            call @ (EndCall::Cancel { .. } | EndCall::Complete { .. }) => {
                drop(end.send(Order::End(call)));
            }
        }
        let waiter = Waiters::enter(&waiters, &presented.session);
        let finishing = async move {
            let over = async {
                let finished = match (finished, reply) {
                    (Some(finished), _) => Some(finished),
                    (None, Some(reply)) => reply.await.ok().flatten().map(|it| it.finished),
                    (None, None) => None,
                };
                if let Some(finished) = finished {
                    tamed(finished).await;
                }
            };
            tokio::select! {
                biased;
                () = waiter.woken.cancelled() => {}
                _ = timeout(bounds.finished, over) => {}
            }
            drop(slot);
        };
        // Where the runtime is gone the task is dropped, and the slot with it.
        drop(endings.spawn_on(finishing, &runtime));
    }
}

/// A sink's signal that cannot take its waiter down: a panic counts as having happened.
async fn tamed(mut signal: Signal) {
    std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| signal.as_mut().poll(context)))
            .unwrap_or(std::task::Poll::Ready(()))
    })
    .await;
}

/// The sink's thread.
fn serve(mut sink: impl OverlaySink, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Begin { call, fence } => {
                let made = guarded(|| match &call {
                    BeginCall::Ensure(session) => sink.ensure(session).map(|()| None),
                    BeginCall::Move(pointer) => sink.move_to(pointer),
                });
                // Nobody may wait any more.
                drop(fence.send(made.flatten()));
            }
            Order::End(EndCall::Nothing) => {}
            Order::End(EndCall::Cancel { action_id, session }) => {
                guarded(|| sink.cancel(&action_id, &session));
            }
            Order::End(EndCall::Complete { pointer, pulse }) => {
                guarded(|| sink.complete(&pointer, pulse));
            }
        }
    }
}

/// What the sink answers, if it answers.
fn guarded<T>(call: impl FnOnce() -> Result<T, SinkError>) -> Option<T> {
    // The sink is the caller's own object: it judges for itself what a panic of its own left behind.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(answer)) => Some(answer),
        // Its text may speak of what is on the screen.
        Ok(Err(_)) => {
            tracing::debug!("the overlay could not show something");
            None
        }
        Err(_) => {
            tracing::warn!("the overlay panicked; the action goes on");
            None
        }
    }
}

/// Who waits for a presentation, by session. Holds exactly the waits that are going on.
#[derive(Debug, Default)]
struct Waiters {
    waiting: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    last: u64,
    tokens: HashMap<u64, (SessionId, CancellationToken)>,
}

/// One wait. Dropping it ends it.
struct Waiter {
    waiters: Arc<Waiters>,
    number: u64,
    woken: CancellationToken,
}

impl Waiters {
    fn enter(waiters: &Arc<Self>, session: &SessionId) -> Waiter {
        let woken = CancellationToken::new();
        let mut registry = waiters.lock();
        registry.last += 1;
        let number = registry.last;
        registry
            .tokens
            .insert(number, (session.clone(), woken.clone()));
        drop(registry);
        Waiter {
            waiters: waiters.clone(),
            number,
            woken,
        }
    }

    fn wake(&self, session: &SessionId) {
        for (waiting, token) in self.lock().tokens.values() {
            if waiting == session {
                token.cancel();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.lock().tokens.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
