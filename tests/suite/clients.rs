//! Clients that this project did not write: grpcurl (reflection v1alpha), `buf curl` (v1), and Python with
//! nothing but grpcio and reflection.

use std::process::Command;

use integration_tests::{
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
    raw, tools,
};

fn authorization(role: Role) -> [String; 2] {
    [
        "-H".into(),
        format!("authorization: Bearer {}", role.token()),
    ]
}

fn grpcurl(role: Role) -> Command {
    let mut command = tools::grpcurl();
    command.arg("-plaintext").args(authorization(role));
    command
}

fn buf(role: Role) -> Command {
    let mut command = tools::buf();
    // The star sends the headers of the call with reflection requests, too.
    command
        .args(["curl", "--protocol", "grpc", "--http2-prior-knowledge"])
        .args(["--reflect-header", "*"])
        .args(authorization(role));
    command
}

/// I4: list, describe and call over v1alpha, for every service and every method.
#[tokio::test]
async fn grpcurl_lists_describes_and_calls() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let address = gateway.address().to_owned();

    let mut list = grpcurl(Role::Agent);
    list.args([&address, "list"]);
    let services = tools::stdout(list).await;
    for service in [
        "maka.gateway.v1.ComputerUse",
        "maka.gateway.v1.Events",
        "maka.gateway.v1.Operator",
        "maka.gateway.v1.Policies",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    ] {
        assert!(
            services.lines().any(|line| line == service),
            "{service} in {services}"
        );
    }

    for method in raw::methods() {
        let symbol = method.trim_start_matches('/').replace('/', ".");
        let mut describe = grpcurl(Role::Agent);
        describe.args([&address, "describe", &symbol]);
        let text = tools::stdout(describe).await;
        assert!(text.contains("is a method"), "{symbol}: {text}");
    }

    let mut begin = grpcurl(Role::Agent);
    begin.args([&address, "maka.gateway.v1.ComputerUse/BeginSession"]);
    let begun: serde_json::Value =
        serde_json::from_str(&tools::stdout(begin).await).expect("grpcurl prints JSON");
    let session_id = begun["sessionId"]
        .as_str()
        .expect("a session id")
        .to_owned();

    let mut snapshot = grpcurl(Role::Agent);
    snapshot.arg("-d").arg(format!(
        r#"{{"session_id":"{session_id}","app_id":"org.maka.Notes"}}"#
    ));
    snapshot.args([&address, "maka.gateway.v1.ComputerUse/Snapshot"]);
    let frame: serde_json::Value =
        serde_json::from_str(&tools::stdout(snapshot).await).expect("grpcurl prints JSON");
    assert_eq!(frame["snapshot"]["target"]["appId"], "org.maka.Notes");

    let mut health = grpcurl(Role::Viewer);
    health.args([&address, "grpc.health.v1.Health/Check"]);
    assert!(tools::stdout(health).await.contains("SERVING"));

    // A refusal prints its reason: the messages of the error details are described by reflection, too.
    let mut missing = grpcurl(Role::Agent);
    missing.arg("-d").arg(format!(
        r#"{{"session_id":"{session_id}","tool_call_id":"1","tier":"TIER_AX","element":{{"token":"x","expect_digest":"sha256:{}"}},"click":{{}}}}"#,
        "0".repeat(64)
    ));
    missing.args([&address, "maka.gateway.v1.ComputerUse/Dispatch"]);
    let refused = tools::run(missing).await;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && text.contains("anchor_missing"),
        "{text}"
    );
    gateway.stop().await;
}

/// I4: the same over v1, and over the Unix socket.
#[tokio::test]
async fn buf_curl_lists_and_calls_over_tcp_and_the_socket() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let url = format!("http://{}", gateway.address());

    let mut list = buf(Role::Agent);
    list.args(["--list-methods", &url]);
    let listed = tools::stdout(list).await;
    for method in raw::methods() {
        let name = method.trim_start_matches('/');
        assert!(
            listed.lines().any(|line| line == name),
            "{name} in {listed}"
        );
    }

    let mut status = buf(Role::Viewer);
    status.args([
        "-d",
        "{}",
        &format!("{url}/maka.gateway.v1.ComputerUse/GetStatus"),
    ]);
    let status: serde_json::Value =
        serde_json::from_str(&tools::stdout(status).await).expect("buf prints JSON");
    assert_eq!(status["executorState"], "EXECUTOR_STATE_READY");

    let socket = gateway.folder().join("state/maka-gateway.sock");
    let mut over_socket = buf(Role::Author);
    over_socket.arg("--unix-socket").arg(socket);
    over_socket.args([
        "-d",
        "{}",
        "http://localhost/maka.gateway.v1.Policies/GetGeneration",
    ]);
    let generation: serde_json::Value =
        serde_json::from_str(&tools::stdout(over_socket).await).expect("buf prints JSON");
    assert_eq!(generation["modules"][0]["name"], "maka-floor");
    gateway.stop().await;
}

/// One script for the embedded dialog and the real one; `linux_desktop` runs it against zenity.
#[tokio::test]
async fn python_drives_the_embedded_dialog() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let printed = drive(&gateway, "org.maka.TestEntry", "Ada Lovelace").await;
    assert!(
        printed.contains("the pixels changed") && printed.contains("session ended"),
        "{printed}"
    );
    gateway.stop().await;
}

/// Runs `tests/python/drive.py` against a gateway; returns what it printed.
pub(crate) async fn drive(gateway: &GatewayProcess, app: &str, text: &str) -> String {
    let token = gateway.folder().join("agent.token");
    std::fs::write(&token, Role::Agent.token()).expect("the token file");
    let mut command = tools::python();
    command
        .arg(integration_tests::binaries::workspace_root().join("tests/python/drive.py"))
        .args([
            "--address",
            gateway.address(),
            "--app",
            app,
            "--text",
            text,
            "--token-file",
        ])
        .arg(token)
        .arg("--save")
        .arg(gateway.folder().join("pictures"));
    tools::stdout(command).await
}
