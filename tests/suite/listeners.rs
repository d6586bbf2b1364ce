//! Where a gateway listens and what it takes to start one (K6, K10).

use std::{fs, io::Read as _, net::TcpStream, os::unix::fs::PermissionsExt as _, process::Command};

use integration_tests::{
    binaries,
    client::Client,
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Policy, Role, sha256_of},
    tools,
};
use maka_proto::v1::GetStatusRequest;
use serde_json::json;
use tempfile::TempDir;
use tonic::{Code, transport::Endpoint};

/// K10: the socket is its owner's alone, loopback is the only network, and a call needs a credential.
#[tokio::test]
async fn the_default_is_loopback_a_private_socket_and_credentials() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let socket = gateway.folder().join("state/maka-gateway.sock");
    let mode = fs::metadata(&socket)
        .expect("the socket")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
    assert!(gateway.address().starts_with("127.0.0.1:"));
    let refused = gateway
        .anonymous()
        .computer_use
        .get_status(GetStatusRequest {})
        .await
        .expect_err("no credential");
    assert_eq!(refused.code(), Code::Unauthenticated);
    gateway.stop().await;
}

/// K10: the mode of the socket does not depend on the umask.
#[tokio::test]
async fn the_socket_is_private_under_umask_0() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let folder = gateway.stop().await;
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg("umask 0; exec \"$0\" serve --config \"$1\"")
        .arg(binaries::path("maka-gateway"))
        .arg(folder.path().join("gateway.toml"));
    let mut child = tokio::process::Command::from(shell)
        .kill_on_drop(true)
        .spawn()
        .expect("a shell");
    let probe = |wait: &str| {
        let mut command = Command::new(binaries::path("maka-gateway"));
        command
            .args(["probe", "--wait", wait, "--config"])
            .arg(folder.path().join("gateway.toml"));
        command
    };
    assert!(
        tools::run(probe("60")).await.status.success(),
        "it comes up"
    );
    let socket = folder.path().join("state/maka-gateway.sock");
    let mode = fs::metadata(&socket)
        .expect("the socket")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
    child.kill().await.expect("it lives");
    assert!(
        !tools::run(probe("0")).await.status.success(),
        "nobody answers any more"
    );
}

/// More connections than the port takes, which only hold on: whoever has a credential gets in past them. Those who are there longest
/// make room, one for each newcomer, and the others stay.
#[tokio::test]
async fn a_crowd_that_says_nothing_keeps_nobody_out() {
    const CROWD: usize = 500;
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({})))).await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(gateway.address()).expect("the kernel takes it"));
    }
    let come = || {
        let endpoint = Endpoint::from_shared(format!("http://{}", gateway.address()));
        let channel = endpoint.expect("an address").connect_lazy();
        Client::new(&channel, Some(&Role::Agent.token()))
    };
    let newcomer = come();
    let answered = tokio::time::timeout(PATIENCE, newcomer.begin());
    answered.await.expect("it gets in");
    let gone = crowd.iter().filter(|one| is_closed(one)).count();
    // The port takes 448, so about 50 had to go by now. Had the newcomer waited until the silent ones were closed for their
    // silence, hundreds would be gone.
    assert!((1..150).contains(&gone), "{gone} of the crowd are gone");
    // It keeps its place while more of the crowd come.
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(gateway.address()).expect("the kernel takes it"));
    }
    let last = come();
    let answered = tokio::time::timeout(PATIENCE, last.begin());
    answered.await.expect("it gets in as well");
    newcomer.begin().await;
    gateway.stop().await;
}

/// Whether the other end has closed a connection. What it said before is taken and thrown away.
fn is_closed(mut connection: &TcpStream) -> bool {
    connection.set_nonblocking(true).expect("a socket");
    let mut said = [0; 256];
    loop {
        match connection.read(&mut said) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// K6: a module that is configured and missing, or not the one that was pinned, keeps the gateway from starting.
#[tokio::test]
async fn a_policy_that_cannot_be_loaded_refuses_the_start() {
    let folder = TempDir::new().expect("a folder");
    let deny_all = binaries::workspace_root().join("policy-wasm/prebuilt/deny-all.wasm");
    for (row, path, digest) in [
        (
            "missing",
            folder.path().join("missing.wasm"),
            "0".repeat(64),
        ),
        ("another digest", deny_all.clone(), "0".repeat(64)),
        (
            "no component",
            binaries::path("maka-cu"),
            sha256_of(&binaries::path("maka-cu")),
        ),
    ] {
        let config = folder.path().join("gateway.toml");
        let text = format!(
            "state_dir = {:?}\n[listen]\ntcp = \"127.0.0.1:0\"\n[policy]\n[[policy.modules]]\nname = \"deny-all\"\npath = {path:?}\nsha256 = \"{digest}\"\n",
            folder.path().join("state"),
        );
        fs::write(&config, text).expect("written");
        let mut command = Command::new(binaries::path("maka-gateway"));
        command.args(["serve", "--config"]).arg(&config);
        let output = tools::run(command).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{row}");
        assert!(
            said.contains("deny-all"),
            "{row}: the module is named: {said}"
        );
    }
}

/// A set with a module that allows everything still has the floor first.
#[tokio::test]
async fn the_floor_is_first_in_every_set() {
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.policy = Policy::With(vec!["allow-all"]);
    let gateway = GatewayProcess::serving(options).await;
    let generation = gateway
        .client(integration_tests::gateway::Role::Author)
        .policies
        .get_generation(maka_proto::v1::GetGenerationRequest {})
        .await
        .expect("the generation")
        .into_inner();
    let names: Vec<&str> = generation
        .modules
        .iter()
        .map(|module| module.name.as_str())
        .collect();
    assert_eq!(names, ["maka-floor", "allow-all"]);
    gateway.stop().await;
}
