//! The page with the metrics, for a Prometheus server on this machine.
//!
//! It tells counts and times of the gateway as a whole and asks for no credential; hence a loopback address only, and nothing of a
//! caller, a request or an application in it. What is counted is said where it is counted (`maka_policy_host::metrics`).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use maka_policy_host::judge::Judge;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::approval::Approvals;
use crate::listen::{self, ListenError, OwnedFile};

/// Where the page is.
const PATH: &str = "/metrics";
/// Readers at a time; whoever comes later waits in the kernel's queue.
const READERS_MAX: usize = 8;
/// How long one reader may take, from its request to the last byte of the page.
const READER_PATIENCE: Duration = Duration::from_secs(10);
/// How long accepting rests after it failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The text form of OpenMetrics.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page, bound and not yet served.
#[derive(Debug)]
pub(super) struct Page {
    listener: TcpListener,
    /// Removed when the gateway ends.
    _file: OwnedFile,
}

impl Page {
    /// Binds the address. Writes the address to `metrics.address` in the state folder, for programs that asked
    /// for port 0.
    ///
    /// # Errors
    /// The address cannot be bound, or the file not be written.
    pub(super) async fn bind(address: SocketAddr, state_dir: &Path) -> Result<Self, ListenError> {
        let refused = |source| ListenError::Tcp { address, source };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let file = listen::write_metrics_address(state_dir, bound)?;
        tracing::info!(address = %bound, path = PATH, "metrics");
        Ok(Self {
            listener,
            _file: file,
        })
    }

    /// Serves the page until told to stop.
    pub(super) async fn serve(
        self,
        judge: Arc<Judge>,
        approvals: Approvals,
        stop: CancellationToken,
    ) {
        let mut registry = Registry::default();
        maka_policy_host::metrics::register(&judge, &mut registry);
        registry.register_collector(Box::new(Asked(approvals)));
        let registry = Arc::new(registry);
        let room = Arc::new(Semaphore::new(READERS_MAX));
        let mut readers = JoinSet::new();
        loop {
            let accepted = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            // A token, a set's next and accepting are cancel-safe; a place that was taken goes back.
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = readers.join_next() => {}
                (place, accepted) = accepted => match accepted {
                    Ok((connection, _)) => {
                        let registry = Arc::clone(&registry);
                        readers.spawn(async move {
                            let _place = place;
                            read(connection, &registry).await;
                        });
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a reader of metrics could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

/// What became of what people were asked for.
#[derive(Debug)]
struct Asked(Approvals);

impl Collector for Asked {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (_, counts) = self.0.list();
        let mut family = encoder.encode_descriptor(
            "approvals",
            "Approvals that policies asked for, and what became of them",
            None,
            MetricType::Counter,
        )?;
        for (result, count) in [
            ("asked", counts.asked),
            ("approved", counts.approved),
            ("rejected", counts.rejected),
            ("used", counts.used),
            ("expired", counts.expired),
            ("dropped", counts.dropped),
        ] {
            let labels = [("result", result)];
            let labelled = family.encode_family(&labels)?;
            ConstCounter::new(count).encode(labelled)?;
        }
        Ok(())
    }
}

/// One request of one reader.
async fn read(connection: TcpStream, registry: &Registry) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(&request, registry))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READER_PATIENCE)
        .keep_alive(false)
        .serve_connection(TokioIo::new(connection), service);
    match timeout(READER_PATIENCE, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a reader of metrics ended badly"),
        Err(_) => tracing::debug!("a reader of metrics took too long"),
    }
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<String> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, PATH) => {
            let mut page = String::new();
            match text::encode(&mut page, registry) {
                Ok(()) => (StatusCode::OK, page),
                // Writing into memory does not fail; half a page would be read as a whole one.
                Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
            }
        }
        (_, PATH) => (StatusCode::METHOD_NOT_ALLOWED, "GET alone\n".to_owned()),
        (_, _) => (StatusCode::NOT_FOUND, format!("the page is {PATH}\n")),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let form = header::HeaderValue::from_static(TEXT);
    response.headers_mut().insert(header::CONTENT_TYPE, form);
    response
}
