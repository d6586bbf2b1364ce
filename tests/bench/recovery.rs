//! How soon a lost executor is noticed and replaced, and how soon a cancel arrives (design §8).

use std::time::{Duration, Instant};

use integration_tests::{
    client::{Client, click, first, on_element},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{GetStatusRequest, Outcome};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::distribution::{Distribution, Report};

/// Each with a gateway of its own, so that no budget of restarts is used up.
const ROUNDS: usize = 15;

/// How often the wire log of the fake is looked at; also how exact a time is that is read from it.
const LOOK: Duration = Duration::from_micros(500);

pub(crate) async fn after_a_kill(report: &mut Report) {
    let (mut known, mut ready) = (Distribution::default(), Distribution::default());
    for _ in 0..ROUNDS {
        let gateway = start(json!([
            {"method": "dispatch.element", "process": 1, "steps": ["never"]},
        ]))
        .await;
        let agent = gateway.agent();
        let mut health = HealthClient::new(gateway.channel().clone());
        let mut states = health
            .watch(HealthCheckRequest::default())
            .await
            .expect("health can be watched")
            .into_inner();
        let call = clicked(&agent).await;
        let pid = pid(&agent).await;
        let call = agent.dispatch(call);
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("answered by an executor that never answers: {result:?}"),
            () = gateway.received("dispatch.element") => {}
        }
        let began = Instant::now();
        kill(pid, Signal::SIGKILL).expect("it lives");
        let result = call.await.expect("a result");
        known.push(began.elapsed());
        assert_eq!(result.outcome(), Outcome::Unknown);
        let mut was_away = false;
        loop {
            let state = states.message().await.expect("health").expect("goes on");
            let serving = state.status() == ServingStatus::Serving;
            if serving && was_away {
                break;
            }
            was_away |= !serving;
        }
        ready.push(began.elapsed());
        gateway.stop().await;
    }
    report.times("executor killed: its caller knows", &known);
    bar(report, &known, "≤ 100 ms");
    report.times("executor killed: ready again", &ready);
    bar(report, &ready, "≤ 500 ms");
}

pub(crate) async fn of_a_cancel(report: &mut Report) {
    let mut arrived = Distribution::default();
    for _ in 0..ROUNDS {
        let gateway = start(json!([
            {"method": "dispatch.element", "steps": ["wait_for_cancel", {"refuse": "aborted"}]},
        ]))
        .await;
        let agent = gateway.agent();
        let request = clicked(&agent).await;
        let began = {
            let call = agent.dispatch(request);
            tokio::pin!(call);
            tokio::select! {
                result = &mut call => panic!("answered without a cancel: {result:?}"),
                () = gateway.received("dispatch.element") => {}
            }
            Instant::now()
        };
        while gateway.received_count("$/cancel") == 0 {
            tokio::time::sleep(LOOK).await;
        }
        arrived.push(began.elapsed());
        gateway.stop().await;
    }
    report.times("call dropped: the executor has its cancel", &arrived);
    bar(report, &arrived, "≤ 50 ms");
}

fn bar(report: &mut Report, times: &Distribution, bar: &str) {
    report.value(
        "  slowest",
        times.percentile(100).as_secs_f64() * 1e3,
        "ms",
        bar,
    );
}

async fn start(rules: Value) -> GatewayProcess {
    let mut options = GatewayOptions::new(Executor::Fake(json!({ "rules": rules })));
    options.log_level = "info";
    GatewayProcess::serving(options).await
}

/// A click on a fresh frame, to be sent.
async fn clicked(agent: &Client) -> maka_proto::v1::DispatchRequest {
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, "org.example.Notes").await;
    let frame = frame.expect("a frame");
    on_element(&session_id, "1", &frame, first(&frame, "AXButton"), click())
}

async fn pid(agent: &Client) -> Pid {
    let mut client = agent.computer_use.clone();
    let status = client.get_status(GetStatusRequest {}).await;
    let executor = status.expect("status").into_inner().executor;
    let pid = executor.expect("ready").pid;
    Pid::from_raw(i32::try_from(pid).expect("a pid"))
}
