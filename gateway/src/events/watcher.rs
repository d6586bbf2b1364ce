//! One watcher: its bounded queue in the hub, and the stream at its end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio_stream::Stream;

use super::view::View;
use super::what::{Event, Present, What};
use super::{Events, Hub};
use crate::session::unix_ms;

/// Events that wait for one watcher. When there would be more, all that wait are lost and counted.
pub const QUEUE_MAX: usize = 256;

/// Watchers that one principal may have at a time.
pub const WATCHERS_PER_PRINCIPAL: usize = 8;

/// A watcher as the hub knows it.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) view: View,
    queue: Queue,
    /// Of the last event that was queued or lost.
    sequence: u64,
    /// Whether the last event was taken.
    is_over: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Queue {
    /// Nothing is lost.
    Whole(VecDeque<Event>),
    /// So many events are lost; the next one is the present state.
    Lost(u64),
}

impl Subscriber {
    pub(super) fn new(view: View, present: Present) -> Self {
        let mut subscriber = Self {
            view,
            queue: Queue::Whole(VecDeque::new()),
            sequence: 0,
            is_over: false,
            waker: None,
        };
        subscriber.push(What::Present(Box::new(present)));
        subscriber
    }

    pub(super) fn push(&mut self, what: What) {
        match &mut self.queue {
            Queue::Whole(events) if events.len() < QUEUE_MAX => {
                self.sequence += 1;
                events.push_back(event(self.sequence, 0, what));
                self.wake();
            }
            Queue::Whole(_) | Queue::Lost(_) => self.lose(1),
        }
    }

    /// Loses what waits, and so many events more.
    pub(super) fn lose(&mut self, count: u64) {
        let already = match &self.queue {
            Queue::Whole(events) => u64::try_from(events.len()).unwrap_or(u64::MAX),
            Queue::Lost(lost) => *lost,
        };
        self.sequence = self.sequence.saturating_add(count);
        self.queue = Queue::Lost(already.saturating_add(count));
        self.wake();
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        match &self.queue {
            Queue::Whole(events) => events.len(),
            Queue::Lost(_) => 0,
        }
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

fn event(sequence: u64, lost: u64, what: What) -> Event {
    Event {
        sequence,
        at_unix_ms: unix_ms(),
        lost,
        what,
    }
}

impl Hub {
    fn poll(&mut self, id: u64, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let behind = match self.subscribers.get(&id) {
            Some(subscriber) => match &subscriber.queue {
                Queue::Lost(lost) => Some((*lost, self.present(&subscriber.view))),
                Queue::Whole(_) => None,
            },
            None => return Poll::Ready(None),
        };
        let Some(subscriber) = self.subscribers.get_mut(&id) else {
            return Poll::Ready(None);
        };
        if let Some((lost, present)) = behind {
            subscriber.queue = Queue::Whole(VecDeque::new());
            subscriber.sequence += 1;
            let what = What::Present(Box::new(present));
            return Poll::Ready(Some(event(subscriber.sequence, lost, what)));
        }
        if let Queue::Whole(events) = &mut subscriber.queue
            && let Some(event) = events.pop_front()
        {
            return Poll::Ready(Some(event));
        }
        if !self.closed {
            subscriber.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        if std::mem::replace(&mut subscriber.is_over, true) {
            return Poll::Ready(None);
        }
        subscriber.sequence += 1;
        Poll::Ready(Some(event(subscriber.sequence, 0, What::Disposed)))
    }
}

/// The events of one watcher, beginning with the present state and ending with [`What::Disposed`]. Dropping it ends the
/// watch.
#[derive(Debug)]
pub struct Watcher {
    events: Events,
    id: u64,
}

impl Watcher {
    pub(super) const fn new(events: Events, id: u64) -> Self {
        Self { events, id }
    }
}

impl Stream for Watcher {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.with(|hub| hub.poll(self.id, context))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.events.with(|hub| hub.subscribers.remove(&self.id));
    }
}
