//! `grpc.health.v1`: SERVING only when the executor is ready and a policy is active (I5, F8).

use integration_tests::gateway::{Executor, GatewayOptions, GatewayProcess, Policy};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

async fn check(gateway: &GatewayProcess, service: &str) -> Result<ServingStatus, Code> {
    HealthClient::new(gateway.channel().clone())
        .check(HealthCheckRequest {
            service: service.into(),
        })
        .await
        .map(|answer| answer.into_inner().status())
        .map_err(|status| status.code())
}

/// I5: the empty name, each of our services, a name that nobody has; no credentials anywhere.
#[tokio::test]
async fn health_knows_its_services_by_name() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    for (service, expected) in [
        ("", Ok(ServingStatus::Serving)),
        ("maka.gateway.v1.ComputerUse", Ok(ServingStatus::Serving)),
        ("maka.gateway.v1.Events", Ok(ServingStatus::Serving)),
        ("maka.gateway.v1.Operator", Ok(ServingStatus::Serving)),
        ("maka.gateway.v1.Policies", Ok(ServingStatus::Serving)),
        ("nope", Err(Code::NotFound)),
    ] {
        assert_eq!(check(&gateway, service).await, expected, "{service:?}");
    }
    gateway.stop().await;
}

/// I5: a watcher sees NOT_SERVING when the executor dies, and SERVING again by itself.
#[tokio::test]
async fn a_watcher_sees_the_executor_die_and_come_back() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let mut health = HealthClient::new(gateway.channel().clone());
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let mut states = health.watch(request).await.expect("watched").into_inner();
    let next = async |states: &mut tonic::Streaming<_>| {
        let state: tonic_health::pb::HealthCheckResponse =
            tokio::time::timeout(integration_tests::gateway::PATIENCE, states.message())
                .await
                .expect("a state in time")
                .expect("no error")
                .expect("no end");
        state.status()
    };
    assert_eq!(next(&mut states).await, ServingStatus::Serving);
    let status = gateway
        .agent()
        .computer_use
        .get_status(maka_proto::v1::GetStatusRequest {})
        .await
        .expect("status")
        .into_inner();
    let pid = status.executor.expect("ready").pid;
    kill(
        Pid::from_raw(pid.try_into().expect("a pid")),
        Signal::SIGKILL,
    )
    .expect("it lives");
    assert_eq!(next(&mut states).await, ServingStatus::NotServing);
    assert_eq!(next(&mut states).await, ServingStatus::Serving);
    gateway.stop().await;
}

/// K6: no policy section means that nothing is allowed and nothing is SERVING, and the refusal says why.
#[tokio::test]
async fn without_a_policy_nothing_is_served() {
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.policy = Policy::Absent;
    let gateway = GatewayProcess::start(options).await;
    // Until then that is the reason that is given.
    gateway.executor_ready().await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let refused = agent
        .snapshot_app(&session_id, "org.maka.Notes")
        .await
        .expect_err("no policy");
    assert_eq!(
        integration_tests::client::reason(&refused),
        "policy.maka/policy_absent"
    );
    assert_eq!(check(&gateway, "").await, Ok(ServingStatus::NotServing));
    gateway.stop().await;
}
