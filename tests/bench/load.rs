//! Many sessions at once: the highest rate of dispatches, and how long they take at half of it when nobody waits for
//! anybody (an open loop, so that a slow answer does not hide the calls behind it).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use integration_tests::{
    client::{Client, click, first, on_element},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{ObserveAfter, Outcome, Snapshot};
use tokio::task::JoinSet;

use crate::distribution::{Distribution, Report};

const SESSIONS: usize = 64;
const ROUND: Duration = Duration::from_secs(4);

pub(crate) async fn of_many_sessions(report: &mut Report) {
    let mut options = GatewayOptions::new(Executor::Fake(serde_json::json!({})));
    options.log_level = "info";
    let gateway = GatewayProcess::serving(options).await;
    let highest = round(&gateway, None).await;
    let rate = highest.1 as f64 / ROUND.as_secs_f64();
    report.value(
        "highest rate of dispatches, 64 sessions, closed loop",
        rate,
        "/s",
        "none",
    );
    let (times, done) = round(&gateway, Some(rate / 2.0)).await;
    gateway.stop().await;
    let reached = done as f64 / ROUND.as_secs_f64();
    report.value("  half of it, open loop, reached", reached, "/s", "none");
    report.times("Dispatch at half of the highest rate", &times);
    let p99 = times.percentile(99).as_secs_f64() * 1e3;
    report.value("  p99", p99, "ms", "≤ 5 ms");
}

/// Lets every session click for one round: as fast as it can, or at its share of `rate`, each time counted from when
/// the click was due.
async fn round(gateway: &GatewayProcess, rate: Option<f64>) -> (Distribution, usize) {
    let agent = Arc::new(gateway.agent());
    let mut sessions = JoinSet::new();
    for index in 0..SESSIONS {
        let agent = Arc::clone(&agent);
        sessions.spawn(async move { session(&agent, index, rate).await });
    }
    let mut all = Vec::new();
    while let Some(times) = sessions.join_next().await {
        all.extend(times.expect("a session ends well"));
    }
    let done = all.len();
    (all.into_iter().collect(), done)
}

async fn session(agent: &Client, index: usize, rate: Option<f64>) -> Vec<Duration> {
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, "org.example.Notes").await;
    let mut frame = frame.expect("a frame");
    let pause = rate.map(|rate| Duration::from_secs_f64(SESSIONS as f64 / rate));
    // Spread evenly over one pause, so that they do not come in waves.
    let offset = pause
        .unwrap_or_default()
        .mul_f64(index as f64 / SESSIONS as f64);
    let began = Instant::now() + offset;
    let mut times = Vec::new();
    let mut count = 0_u32;
    while began.elapsed() < ROUND {
        let due = match pause {
            Some(pause) => began + pause * count,
            None => Instant::now(),
        };
        tokio::time::sleep_until(due.into()).await;
        frame = clicked(agent, &session_id, count, &frame).await;
        times.push(due.elapsed());
        count += 1;
    }
    let end = maka_proto::v1::EndSessionRequest { session_id };
    agent
        .computer_use
        .clone()
        .end_session(end)
        .await
        .expect("ended");
    times
}

async fn clicked(agent: &Client, session_id: &str, count: u32, frame: &Snapshot) -> Snapshot {
    let button = first(frame, "AXButton");
    let mut request = on_element(session_id, &count.to_string(), frame, button, click());
    request.observe_after = Some(ObserveAfter::default());
    let result = agent.dispatch(request).await.expect("allowed");
    assert_eq!(result.outcome(), Outcome::Ok);
    result.snapshot.expect("a fresh frame")
}
