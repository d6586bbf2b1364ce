//! At most so many connections at once, with a share for each kind of listener.
//!
//! Each takes file descriptors and memory before its caller is known; without a bound a crowd would take the descriptors that
//! starting an executor needs. At the bound, whoever comes takes the place of the connection that has been a stranger for longest:
//! one over which no call with a credential of ours came. So a crowd that only holds on keeps nobody out. When there is no stranger
//! left, further callers wait in the kernel's queue and those who are connected go on.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::stream::unfold;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

/// Connections over TCP; together with [`MAX_UNIX`] half of the file descriptors that a process usually has.
const MAX_TCP: usize = 448;
/// Connections over the Unix socket: a crowd on a port cannot shut out those who are on this machine.
const MAX_UNIX: usize = 64;

/// The count of one listener's connections.
#[derive(Clone, Debug)]
pub struct Connections {
    room: Arc<Semaphore>,
    strangers: Arc<Strangers>,
}

impl Connections {
    /// The share of TCP.
    #[must_use]
    pub fn tcp() -> Self {
        Self::new(MAX_TCP)
    }

    /// The share of the Unix socket.
    #[must_use]
    pub fn unix() -> Self {
        Self::new(MAX_UNIX)
    }

    /// Room for so many, and for one more that waits for its place.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(connections)),
            strangers: Arc::default(),
        }
    }

    /// Accepts from `incoming` while there is room or can be made.
    pub fn accept<S, C>(self, incoming: S) -> impl Stream<Item = io::Result<Counted<C>>>
    where
        S: Stream<Item = io::Result<C>> + Unpin,
    {
        unfold((self, incoming), |(connections, mut incoming)| async move {
            let counted = match incoming.next().await? {
                Ok(connection) => Ok(Counted {
                    connection,
                    // The place first: it is free only once the other connection is really gone.
                    permit: connections.place().await,
                    standing: connections.strangers.arrive(),
                }),
                Err(error) => Err(error),
            };
            Some((counted, (connections, incoming)))
        })
    }

    async fn place(&self) -> OwnedSemaphorePermit {
        let room = Arc::clone(&self.room);
        if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
            return permit;
        }
        if self.strangers.shed_oldest() {
            tracing::debug!("a connection without a credential made room for another");
        }
        room.acquire_owned()
            .await
            .expect("the semaphore is never closed")
    }
}

/// The connections over which no call with a credential has come yet.
#[derive(Debug, Default)]
struct Strangers(Mutex<Oldest>);

#[derive(Debug, Default)]
struct Oldest {
    arrivals: u64,
    /// By arrival, so that the first is the oldest.
    waiting: BTreeMap<u64, CancellationToken>,
}

impl Strangers {
    fn arrive(self: &Arc<Self>) -> Arc<Standing> {
        let shed = CancellationToken::new();
        let mut oldest = self.lock();
        oldest.arrivals += 1;
        let arrival = oldest.arrivals;
        oldest.waiting.insert(arrival, shed.clone());
        Arc::new(Standing {
            strangers: Arc::clone(self),
            arrival,
            shed,
        })
    }

    /// Has the oldest one closed; says whether there is one.
    fn shed_oldest(&self) -> bool {
        match self.lock().waiting.pop_first() {
            Some((_, shed)) => {
                shed.cancel();
                true
            }
            None => false,
        }
    }

    fn forget(&self, standing: &Standing) {
        self.lock().waiting.remove(&standing.arrival);
    }

    fn lock(&self) -> MutexGuard<'_, Oldest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a connection is to us.
#[derive(Debug)]
pub(crate) struct Standing {
    strangers: Arc<Strangers>,
    arrival: u64,
    shed: CancellationToken,
}

impl Standing {
    /// A call with a credential of ours came over it: from here on it keeps its place.
    pub(crate) fn known(&self) {
        self.strangers.forget(self);
    }

    /// Waits until the connection has to make room.
    pub(crate) async fn shed(&self) {
        self.shed.cancelled().await;
    }
}

/// A connection that makes room when it goes.
#[derive(Debug)]
pub struct Counted<C> {
    connection: C,
    standing: Arc<Standing>,
    #[expect(dead_code, reason = "held, and given back with the connection")]
    permit: OwnedSemaphorePermit,
}

impl<C> Counted<C> {
    /// What the connection is to us.
    pub(crate) fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }
}

impl<C> Drop for Counted<C> {
    fn drop(&mut self) {
        // One that is gone has no place to give.
        self.standing.strangers.forget(&self.standing);
    }
}

impl<C: Connected> Connected for Counted<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.connection.connect_info()
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Counted<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Counted<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::DuplexStream;

    use super::*;

    /// As many near ends as asked for, as a listener would give them.
    fn arriving(count: usize) -> impl Stream<Item = io::Result<DuplexStream>> + Unpin {
        tokio_stream::iter((0..count).map(|_| Ok(tokio::io::duplex(1).0)))
    }

    #[tokio::test]
    async fn a_connection_waits_until_there_is_room() {
        let mut accepted = Box::pin(Connections::new(2).accept(arriving(3)));
        let first = accepted.next().await.unwrap().unwrap();
        let second = accepted.next().await.unwrap().unwrap();
        first.standing().known();
        second.standing().known();
        assert!(
            accepted.next().now_or_never().is_none(),
            "two are the bound"
        );
        drop(first);
        let third = accepted.next().await.unwrap().unwrap();
        drop((second, third));
        assert!(accepted.next().await.is_none(), "the listener ended");
    }

    /// At the bound the oldest stranger is told to go, and its place is free when it is gone and not before.
    #[tokio::test]
    async fn the_oldest_stranger_makes_room() {
        let mut accepted = Box::pin(Connections::new(3).accept(arriving(5)));
        let known = accepted.next().await.unwrap().unwrap();
        known.standing().known();
        let older = accepted.next().await.unwrap().unwrap();
        let newer = accepted.next().await.unwrap().unwrap();
        assert!(accepted.next().now_or_never().is_none());
        older.standing().shed().await;
        assert!(newer.standing().shed().now_or_never().is_none());
        assert!(known.standing().shed().now_or_never().is_none());
        drop(older);
        let fourth = accepted.next().await.unwrap().unwrap();
        assert!(accepted.next().now_or_never().is_none());
        newer.standing().shed().await;
        drop((known, newer, fourth));
        assert!(accepted.next().await.unwrap().is_ok());
    }
}
