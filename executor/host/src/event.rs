//! What the supervisor tells whoever listens.
//!
//! A bounded broadcast: a slow listener loses the oldest events and is told how many, and slows nobody down.

use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::sets::ReleaseReason;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::status::Status;

/// Events kept for a slow listener; the oldest is dropped when it is full.
pub(crate) const EVENT_CAPACITY: usize = 256;

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The state, the generation or the attempts changed; this is the new status.
    Status(Status),
    /// A generation, a session or the whole service was released.
    Released(Release),
    /// This listener was too slow and lost so many events.
    Lost {
        /// How many.
        count: u64,
    },
}

/// A release: what its listeners held from a generation or session is void.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "MakaCuReleaseEvent")]
pub struct Release {
    /// The generation concerned; 0 before the first.
    pub generation: u64,
    /// Whether the generation itself is over, and with it every session and snapshot of it.
    #[doc(alias = "generationReleased")]
    pub generation_released: bool,
    /// Why.
    pub reason: ReleaseReason,
    /// The sessions of requests that may have been delivered, each once, sorted.
    #[doc(alias = "sessionIds")]
    pub sessions: Vec<SessionId>,
    /// Whether the effect of any request is unknown.
    #[doc(alias = "outcomeUnknown")]
    pub outcome_unknown: bool,
}

/// Events since the subscription.
#[derive(Debug)]
pub struct EventStream {
    receiver: broadcast::Receiver<Event>,
}

impl EventStream {
    pub(crate) fn new(receiver: broadcast::Receiver<Event>) -> Self {
        Self { receiver }
    }

    /// The next event; none once the service is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(Event::Lost { count }),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_listener_is_told_how_much_it_lost() {
        let (sender, receiver) = broadcast::channel(2);
        let mut events = EventStream::new(receiver);
        for count in 0..5 {
            sender.send(Event::Lost { count }).unwrap();
        }
        let Some(Event::Lost { count: 3 }) = events.next().await else {
            panic!("three of five are lost")
        };
        let Some(Event::Lost { count: 3 }) = events.next().await else {
            panic!("the fourth follows")
        };
        drop(sender);
        assert!(events.next().await.is_some());
        assert!(events.next().await.is_none());
    }
}
