//! At most so many connections at once, with a share for each kind of listener.
//!
//! Each takes file descriptors and memory before its caller is known. At the bound, further callers wait in the
//! kernel's queue and those who are connected go on; without it a crowd would take the descriptors that starting
//! an executor needs.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::stream::unfold;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::server::Connected;

/// Connections over TCP; together with [`MAX_UNIX`] half of the file descriptors that a process usually has.
const MAX_TCP: usize = 448;
/// Connections over the Unix socket: a crowd on a port cannot shut out those who are on this machine.
const MAX_UNIX: usize = 64;

/// The count of one listener's connections.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Semaphore>);

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

    /// Room for so many.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self(Arc::new(Semaphore::new(connections)))
    }

    /// Accepts from `incoming` while there is room.
    pub fn accept<S, C>(self, incoming: S) -> impl Stream<Item = io::Result<Counted<C>>>
    where
        S: Stream<Item = io::Result<C>> + Unpin,
    {
        unfold((self.0, incoming), |(room, mut incoming)| async move {
            let permit = Arc::clone(&room)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            let accepted = incoming.next().await?;
            let counted = accepted.map(|connection| Counted {
                connection,
                _permit: permit,
            });
            Some((counted, (room, incoming)))
        })
    }
}

/// A connection that makes room when it goes.
#[derive(Debug)]
pub struct Counted<C> {
    connection: C,
    _permit: OwnedSemaphorePermit,
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

    #[tokio::test]
    async fn a_connection_waits_until_there_is_room() {
        let ends: Vec<_> = (0..3).map(|_| tokio::io::duplex(1)).collect();
        let near: Vec<io::Result<DuplexStream>> =
            ends.into_iter().map(|(near, _)| Ok(near)).collect();
        let mut accepted = Box::pin(Connections::new(2).accept(tokio_stream::iter(near)));
        let first = accepted.next().await.unwrap().unwrap();
        let second = accepted.next().await.unwrap().unwrap();
        assert!(
            accepted.next().now_or_never().is_none(),
            "two are the bound"
        );
        drop(first);
        let third = accepted.next().await.unwrap().unwrap();
        drop((second, third));
        assert!(accepted.next().await.is_none(), "the listener ended");
    }
}
