//! Serving HTTP/2 on accepted connections.
//!
//! By hand rather than by tonic's server, which enforces `grpc-timeout` itself: it drops the call and answers CANCELLED
//! in its own words, without `google.rpc.ErrorInfo`. A call that may have moved something must end in its result, so
//! here a deadline belongs to the call (see [`crate::api`]) and nothing but the caller's own reset drops it.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::{JoinError, JoinSet},
    time::sleep,
};
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tonic::{body::Body, transport::server::Connected};
use tower::Service;

use crate::listen::counted::{Counted, Standing};

/// Calls at once on one connection.
const MAX_STREAMS: u32 = 256;
/// Bytes of all headers of one call.
const MAX_HEADER_BYTES: u32 = 16 * 1024;
/// How often a silent connection is asked whether it lives, and how long it may take to say so.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// How long accepting rests after it failed: what is missing, such as a file descriptor, has to come back first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The connection that a call came by.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Cancelled when it is gone.
    pub(crate) life: CancellationToken,
    /// Whether it may keep its place.
    pub(crate) standing: Arc<Standing>,
}

/// Serves every connection of one listener until told to stop; then takes no new one, lets the calls that run finish,
/// and returns when the last connection is closed. A connection that makes no call within `patience` is closed, and so is one that
/// has to make room.
pub(super) async fn serve<S, C>(
    services: S,
    incoming: impl Stream<Item = io::Result<Counted<C>>>,
    patience: Duration,
    stop: CancellationToken,
) where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let mut connections = JoinSet::new();
    {
        // Dropped before the connections are awaited: nobody is to wait in the queue of a listener that has stopped.
        let mut incoming = pin!(incoming);
        loop {
            // A token, a stream's next and a set's next are cancel-safe.
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = connections.join_next() => note(ended),
                accepted = incoming.next() => match accepted {
                    Some(Ok(connection)) => {
                        connections.spawn(drive(connection, services.clone(), patience, stop.clone()));
                    }
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                    None => break,
                },
            }
        }
    }
    while let Some(ended) = connections.join_next().await {
        note(ended);
    }
}

/// Serves one connection to its end. Its place is free when this returns: nothing else owns the connection.
async fn drive<S, C>(
    connection: Counted<C>,
    services: S,
    patience: Duration,
    stop: CancellationToken,
) where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let info = connection.connect_info();
    let standing = Arc::clone(connection.standing());
    let life = CancellationToken::new();
    // However this ends, even by being dropped.
    let _ends = life.clone().drop_guard();
    let came_by = Connection {
        life,
        standing: Arc::clone(&standing),
    };
    let called = Arc::new(AtomicBool::new(false));
    let calls = Arc::clone(&called);
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        calls.store(true, Ordering::Relaxed);
        // Who the peer is, where the services look for it.
        request.extensions_mut().insert(info.clone());
        request.extensions_mut().insert(came_by.clone());
        let mut services = services.clone();
        async move {
            poll_fn(|context| services.poll_ready(context)).await?;
            services.call(request.map(Body::new)).await
        }
    });
    let (interval, alive) = KEEPALIVE;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .keep_alive_interval(interval)
        .keep_alive_timeout(alive);
    let mut served = pin!(builder.serve_connection(TokioIo::new(connection), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = silence(patience, &called) => {
            tracing::debug!("a connection made no call and was closed");
            return;
        }
        () = standing.shed() => {
            tracing::debug!("a connection was closed to make room");
            return;
        }
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Ends when no call was made in time, and never once there was one.
async fn silence(patience: Duration, called: &AtomicBool) {
    sleep(patience).await;
    if called.load(Ordering::Relaxed) {
        pending().await
    }
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a connection failed");
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, time::timeout};
    use tonic::service::Routes;

    use super::*;
    use crate::listen::counted::Connections;

    /// Whoever connects and says nothing makes room for others.
    #[tokio::test]
    async fn a_silent_connection_is_closed() {
        let (mut far, near) = tokio::io::duplex(1024);
        let incoming = Connections::new(1).accept(tokio_stream::iter([Ok(near)]));
        let patience = Duration::from_millis(1);
        let served = serve(
            Routes::default(),
            incoming,
            patience,
            CancellationToken::new(),
        );
        let closed = async {
            let mut said = Vec::new();
            far.read_to_end(&mut said).await
        };
        let both = async { tokio::join!(served, closed) };
        let ((), closed) = timeout(Duration::from_secs(10), both).await.unwrap();
        closed.unwrap();
    }
}
