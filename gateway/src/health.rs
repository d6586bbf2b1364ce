//! `grpc.health.v1`: SERVING exactly while the executor is ready, a policy is active and the decision log takes records.
//!
//! The overall service `""` and every service of the product say the same; a name that is not served is
//! NOT_FOUND. One task follows the supervisor's and the policy's own watches, so a change shows within one
//! turn of the runtime and not at the next poll. Whether a full disk has room again has to be tried, once a
//! second.

use std::time::Duration;

use maka_cu_host::Status;
use maka_cu_protocol::sets::ServiceState;
use maka_policy_host::judge::Judge;
use maka_proto::v1::{
    computer_use_server::ComputerUseServer, events_server::EventsServer,
    operator_server::OperatorServer, policies_server::PoliciesServer,
};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::policy::standing::StandingWatch;

/// The names that are answered, beside `""`.
const SERVICES: [&str; 4] = [
    <ComputerUseServer<()> as NamedService>::NAME,
    <EventsServer<()> as NamedService>::NAME,
    <OperatorServer<()> as NamedService>::NAME,
    <PoliciesServer<()> as NamedService>::NAME,
];

/// How often the decision log is looked at. One that is well costs a look at two flags; one that refused a record is
/// written to, so that SERVING comes back although nobody dares to call.
const LOG_CHECK: Duration = Duration::from_secs(1);

/// Sets every served name. Called before the first connection is accepted, since the reporter starts as SERVING.
pub async fn report(reporter: &HealthReporter, serving: bool) {
    let status = if serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    reporter.set_service_status("", status).await;
    for service in SERVICES {
        reporter.set_service_status(service, status).await;
    }
}

/// Follows the two sources until `stop`, then reports NOT_SERVING so that watchers learn of the end.
/// `executor` is `None` when there is no back end: never SERVING.
pub async fn follow(
    reporter: HealthReporter,
    mut executor: Option<watch::Receiver<Status>>,
    mut policy: StandingWatch,
    judge: &Judge,
    stop: CancellationToken,
) {
    let mut reported = None;
    loop {
        let ready = executor
            .as_mut()
            .is_some_and(|status| status.borrow_and_update().state == ServiceState::Ready);
        let serving = policy.is_active() && ready && judge.log().check().is_ok();
        if reported != Some(serving) {
            report(&reporter, serving).await;
            reported = Some(serving);
            tracing::info!(serving, "health changed");
        }
        // Both waits are cancel-safe: a watch keeps its mark until it is read above.
        let source_gone = tokio::select! {
            () = stop.cancelled() => true,
            changed = changed(&mut executor) => changed.is_err(),
            changed = policy.changed() => changed.is_err(),
            () = sleep(LOG_CHECK) => false,
        };
        if source_gone {
            break;
        }
    }
    report(&reporter, false).await;
}

async fn changed(
    executor: &mut Option<watch::Receiver<Status>>,
) -> Result<(), watch::error::RecvError> {
    match executor {
        Some(status) => status.changed().await,
        None => std::future::pending().await,
    }
}
