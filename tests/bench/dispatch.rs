//! `Dispatch` through the gateway with an executor that answers at once, against the sum of its parts in the
//! same run: a bare tonic unary echo, a bare round trip of a line over pipes, and the policy calls that were
//! made, as the decision log timed them.

use std::time::{Duration, Instant};

use integration_tests::{
    client::{click, first, on_element},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::ObserveAfter;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};
use tonic::transport::{Endpoint, Server, server::TcpIncoming};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::distribution::{Distribution, Report};

const WARM_UP: usize = 200;
const SAMPLES: usize = 2000;

pub(crate) async fn against_its_parts(report: &mut Report) {
    let echo = echo().await;
    let pipe = pipe_round_trip().await;
    let (plain, policy) = dispatch(None).await;
    let (with_frame, policy_with_frame) = dispatch(Some(ObserveAfter::default())).await;
    report.times("bare tonic unary echo", &echo);
    report.times("bare line round trip over pipes", &pipe);
    report.times("policy calls of one dispatch (admit and review)", &policy);
    report.times("Dispatch through the gateway", &plain);
    let parts = echo.median() + pipe.median() + policy.median();
    report.value(
        "Dispatch p50 over the sum of its parts",
        plain.median().as_secs_f64() / parts.as_secs_f64(),
        "x",
        "≤ 1.5 x",
    );
    // The frame is walked, encoded and checked at both ends; no part of the sum does that.
    report.times("policy calls of one with a frame", &policy_with_frame);
    report.times("Dispatch that brings a fresh frame", &with_frame);
}

/// A unary call to a server of its own, on its own runtime, as the gateway has its own process.
async fn echo() -> Distribution {
    let (send_address, receive_address) = tokio::sync::oneshot::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into())
                .expect("a free port")
                .with_nodelay(Some(true));
            let address = incoming.local_addr().expect("bound");
            let (_, service) = tonic_health::server::health_reporter();
            send_address.send(address).expect("the bench waits");
            Server::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(incoming, async {
                    // Either way the bench is over.
                    drop(stopped.await);
                })
                .await
                .expect("the echo server ends well");
        });
    });
    let address = receive_address.await.expect("the server starts");
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .tcp_nodelay(true)
        .connect()
        .await
        .expect("the server listens");
    let mut client = HealthClient::new(channel);
    let mut samples = Distribution::default();
    for index in 0..WARM_UP + SAMPLES {
        let began = Instant::now();
        client
            .check(HealthCheckRequest {
                service: String::new(),
            })
            .await
            .expect("an answer");
        if index >= WARM_UP {
            samples.push(began.elapsed());
        }
    }
    drop(client);
    stop.send(()).expect("the server waits");
    server.join().expect("the server ends");
    samples
}

/// One line of the size of a dispatch to `cat` and back.
async fn pipe_round_trip() -> Distribution {
    let mut child = Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("cat is everywhere");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let line = format!("{}\n", "x".repeat(500));
    let mut samples = Distribution::default();
    let mut back = String::new();
    for index in 0..WARM_UP + SAMPLES {
        let began = Instant::now();
        input.write_all(line.as_bytes()).await.expect("cat reads");
        back.clear();
        output.read_line(&mut back).await.expect("cat writes");
        if index >= WARM_UP {
            samples.push(began.elapsed());
        }
    }
    samples
}

/// Clicks one after another, each on a frame of its own, which is what the click before brought or else is observed
/// between the measurements; and what the policy took of it.
async fn dispatch(observe_after: Option<ObserveAfter>) -> (Distribution, Distribution) {
    let mut options = GatewayOptions::new(Executor::Fake(serde_json::json!({})));
    options.log_level = "info";
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let windows = agent
        .computer_use
        .clone()
        .list_windows(maka_proto::v1::ListWindowsRequest {
            session_id: session_id.clone(),
        })
        .await
        .expect("windows")
        .into_inner()
        .windows;
    let window = windows[0].window.expect("a window has its ids");
    let mut frame = agent
        .snapshot_window(&session_id, window)
        .await
        .expect("a frame");
    let mut samples = Distribution::default();
    for index in 0..WARM_UP + SAMPLES {
        let button = first(&frame, "AXButton").clone();
        let mut request = on_element(
            &session_id,
            &format!("bench-{index}"),
            &frame,
            &button,
            click(),
        );
        request.observe_after.clone_from(&observe_after);
        let began = Instant::now();
        let result = agent.dispatch(request).await.expect("allowed");
        if index >= WARM_UP {
            samples.push(began.elapsed());
        }
        frame = match result.snapshot {
            Some(fresh) => fresh,
            None => agent
                .snapshot_window(&session_id, window)
                .await
                .expect("a frame"),
        };
    }
    let policy = policy_times(&gateway.decisions());
    gateway.stop().await;
    (samples, policy)
}

/// Microseconds that admit and review of each dispatch took together, from the decision log.
fn policy_times(records: &[serde_json::Value]) -> Distribution {
    let of = |hook: &str| -> Vec<Duration> {
        records
            .iter()
            .filter(|record| record["hook"] == hook && record["method"] == "dispatch.element")
            .filter_map(|record| record["us"].as_u64().map(Duration::from_micros))
            .collect()
    };
    let review = of("review-result");
    of("admit-dispatch")
        .into_iter()
        .enumerate()
        .map(|(index, admit)| admit + review.get(index).copied().unwrap_or_default())
        .collect()
}
