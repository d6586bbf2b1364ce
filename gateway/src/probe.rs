//! `maka-gateway probe`: asks a running gateway whether it serves, as a readiness probe or a start script does.
//!
//! Needs no credentials, since health has none, and changes nothing. It finds the gateway by the configuration that
//! the gateway itself was started with.

use std::{fs, io, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{config::Config, listen::ADDRESS_FILE};

/// How long one attempt to connect may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// Between two attempts to reach a gateway that is not up yet.
const RETRY_DELAY: Duration = Duration::from_millis(20);
/// Without `--wait`: how long the one answer may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// Why a gateway counts as not serving.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It answers, and says that it does not serve.
    #[error(
        "the gateway answers and is not serving: its executor is not ready or no policy is active; GetStatus says which"
    )]
    NotServing,
    /// Nothing was reached.
    #[error("no gateway answers; start it with `maka-gateway serve` and the same configuration")]
    Unreachable(#[source] Attempt),
}

/// What went wrong at the last attempt.
#[derive(Debug, thiserror::Error)]
pub enum Attempt {
    /// It wrote no address: it is not up.
    #[error("it wrote no address file")]
    NoAddress(#[source] io::Error),
    /// The connection failed.
    #[error("it cannot be connected to")]
    Connect(#[source] tonic::transport::Error),
    /// The call failed.
    #[error("its health service does not answer")]
    Call(#[source] Box<Status>),
    /// Time was up first.
    #[error("it did not answer in time")]
    Silent,
}

/// Returns as soon as the gateway is SERVING; gives up after `wait`, or after one answer when that is zero.
///
/// # Errors
/// [`ProbeError`]: not serving, or not there.
pub async fn probe(config: &Config, wait: Duration) -> Result<(), ProbeError> {
    let deadline = Instant::now() + wait.max(ANSWER_PATIENCE);
    let mut last = ProbeError::Unreachable(Attempt::Silent);
    loop {
        match timeout_at(deadline, watch(config, wait.is_zero())).await {
            Ok(Ok(true)) => return Ok(()),
            Ok(Ok(false)) => last = ProbeError::NotServing,
            Ok(Err(attempt)) => last = ProbeError::Unreachable(attempt),
            // The watch was cut off while it heard nothing but NOT_SERVING, or nothing at all.
            Err(_) => {
                return Err(match last {
                    ProbeError::Unreachable(Attempt::Silent) => ProbeError::NotServing,
                    ProbeError::NotServing | ProbeError::Unreachable(_) => last,
                });
            }
        }
        if wait.is_zero() || Instant::now() + RETRY_DELAY >= deadline {
            return Err(last);
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Whether the gateway serves: its first word when `once`, else `true` as soon as it does and `false` when it ends.
async fn watch(config: &Config, once: bool) -> Result<bool, Attempt> {
    let channel = connect(config).await?;
    let refused = |status| Attempt::Call(Box::new(status));
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let mut states = HealthClient::new(channel)
        .watch(request)
        .await
        .map_err(refused)?
        .into_inner();
    while let Some(state) = states.message().await.map_err(refused)? {
        let serving = state.status() == ServingStatus::Serving;
        if serving || once {
            return Ok(serving);
        }
    }
    Ok(false)
}

pub(crate) async fn connect(config: &Config) -> Result<Channel, Attempt> {
    let uri = match config.socket_path() {
        Some(socket) => format!("unix://{}", socket.display()),
        None => {
            let file = config.state_dir.as_path().join(ADDRESS_FILE);
            let address = fs::read_to_string(file).map_err(Attempt::NoAddress)?;
            format!("http://{}", address.trim())
        }
    };
    let endpoint = Endpoint::from_shared(uri).map_err(Attempt::Connect)?;
    endpoint
        .connect_timeout(CONNECT_PATIENCE)
        .connect()
        .await
        .map_err(Attempt::Connect)
}
