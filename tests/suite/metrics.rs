//! The page of metrics as a Prometheus server reads it.

use std::fs;

use integration_tests::{
    client::{click, element, on_element},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const APP: &str = "org.example.Notes";

/// Asks for a page, as a client that knows nothing of the gateway does.
async fn ask(address: &str, request_line: &str) -> String {
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the page is served");
    let request = format!("{request_line} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("UTF-8, and the end of the connection");
    answer
}

/// The value of a series that has all of these labels.
fn value(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let of = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    page.lines().find(of)?.rsplit(' ').next()?.parse().ok()
}

/// What policies decided is counted, by closed words only; nothing of a caller or an application is on the page.
#[tokio::test]
async fn decisions_are_counted() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({})))).await;
    let address =
        fs::read_to_string(gateway.folder().join("state/metrics.address")).expect("an address");
    let address = address.trim();

    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "a-key-of-the-caller", &frame, save, click());
    agent.dispatch(request).await.expect("done");
    let again = on_element(&session_id, "another-key", &frame, save, click());
    agent.dispatch(again).await.expect_err("the frame is spent");

    let page = ask(address, "GET /metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(
        page.contains("content-type: application/openmetrics-text;"),
        "{page}"
    );
    assert!(page.ends_with("# EOF\n"), "{page}");
    let admit = "hook=\"admit-dispatch\"";
    let floor = "module=\"maka-floor\"";
    assert_eq!(
        value(
            &page,
            "policy_effective_total",
            &[admit, "effective=\"allow\""]
        ),
        Some(2.0)
    );
    let denied = [admit, "effective=\"deny\"", "code=\"duplicate_action\""];
    assert_eq!(value(&page, "policy_effective_total", &denied), Some(1.0));
    let said = [
        admit,
        floor,
        "decision=\"deny\"",
        "code=\"snapshot_spent\"",
        "mode=\"enforce\"",
    ];
    assert_eq!(value(&page, "policy_decisions_total", &said), Some(1.0));
    assert_eq!(
        value(&page, "policy_duration_seconds_count", &[admit]),
        Some(3.0)
    );
    assert_eq!(
        value(&page, "policy_fuel_count", &[admit, floor]),
        Some(3.0)
    );
    assert_eq!(value(&page, "policy_generation", &[]), Some(1.0));
    assert!(value(&page, "policy_generation_age_seconds", &[]).expect("an age") > 0.0);
    assert_eq!(
        value(&page, "policy_reload_total", &["result=\"accepted\""]),
        Some(1.0)
    );
    assert_eq!(value(&page, "decisions_unlogged_total", &[]), Some(0.0));
    assert_eq!(value(&page, "policy_engine_errors_total", &[]), None);
    assert_eq!(
        value(&page, "approvals_total", &["result=\"asked\""]),
        Some(0.0)
    );
    for secret in [APP, &session_id, "a-key-of-the-caller", "agent", "Save"] {
        assert!(!page.contains(secret), "{secret} is on the page:\n{page}");
    }

    assert!(
        ask(address, "POST /metrics")
            .await
            .starts_with("HTTP/1.1 405 ")
    );
    assert!(ask(address, "GET /").await.starts_with("HTTP/1.1 404 "));
    gateway.stop().await;
}

/// Readers that ask for nothing keep nobody out for ever, and the gateway ends without waiting for them.
#[tokio::test]
async fn silent_readers_are_bounded() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({})))).await;
    let address =
        fs::read_to_string(gateway.folder().join("state/metrics.address")).expect("an address");
    let address = address.trim();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(address).await.expect("connected"));
    }
    gateway.agent().begin().await;
    drop(silent);
    assert!(ask(address, "GET /metrics").await.ends_with("# EOF\n"));
    let _held = TcpStream::connect(address).await.expect("connected");
    gateway.stop().await;
}
