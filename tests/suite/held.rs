//! Held input (design.md §5.5): a button that an action left down is let go of, by whoever can still do it, before
//! anything else reaches the desktop.

use integration_tests::{
    client::{Client, click, element, on_element, on_point},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
};
use maka_proto::v1::{
    self, DispatchRequest, EndSessionRequest, Outcome, PointerButton, PointerDrag, dispatch_request,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

const APP: &str = "org.example.Notes";

fn options(rules: &Value) -> GatewayOptions {
    GatewayOptions::new(Executor::Fake(json!({ "rules": rules })))
}

/// An action at a pixel somewhere inside the frame.
fn at_point(
    session_id: &str,
    key: &str,
    frame: &v1::Snapshot,
    action: dispatch_request::Action,
) -> DispatchRequest {
    on_point(session_id, key, frame, (20.0, 10.0), action)
}

fn down() -> dispatch_request::Action {
    dispatch_request::Action::PointerButton(PointerButton { down: true })
}

fn up() -> dispatch_request::Action {
    dispatch_request::Action::PointerButton(PointerButton { down: false })
}

/// What reached the executor, in order: the method, and for points the action.
fn wire(gateway: &GatewayProcess) -> Vec<String> {
    let requests = gateway.wire().into_iter().filter_map(|line| {
        let method = line["method"].as_str()?.to_owned();
        Some(match line["params"]["action"]["kind"].as_str() {
            Some(kind) => kind.to_owned(),
            None => method,
        })
    });
    requests.collect()
}

async fn pressed(gateway: &GatewayProcess, agent: &Client) -> String {
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let request = at_point(&session_id, "down", &frame, down());
    let result = agent.dispatch(request).await.expect("allowed");
    assert_eq!(result.outcome(), Outcome::Ok, "{}", gateway.log());
    session_id
}

async fn end(agent: &Client, session_id: String) {
    let ended = agent
        .computer_use
        .clone()
        .end_session(EndSessionRequest { session_id })
        .await;
    ended.expect("ended");
}

/// D4: a session that ends lets go first: one observation, one `mouse_up`, then `session.end`. It is done through the
/// gateway's own door and recorded there.
#[tokio::test]
async fn a_session_that_ends_lets_go_first() {
    let gateway = GatewayProcess::serving(options(&json!([]))).await;
    let agent = gateway.agent();
    let session_id = pressed(&gateway, &agent).await;
    end(&agent, session_id).await;
    let wire = wire(&gateway);
    let last: Vec<_> = wire.iter().rev().take(4).rev().collect();
    assert_eq!(last, ["mouse_down", "observe", "mouse_up", "session.end"]);
    let released = gateway
        .decisions()
        .iter()
        .filter(|record| record["kind"] == "release_held")
        .count();
    assert_eq!(released, 2, "the observation and the release");
    gateway.stop().await;
}

/// What was let go of by the caller is not let go of twice, and a click that came to its end holds nothing.
#[tokio::test]
async fn what_is_up_is_left_alone() {
    let gateway = GatewayProcess::serving(options(&json!([]))).await;
    let agent = gateway.agent();
    let session_id = pressed(&gateway, &agent).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let request = at_point(&session_id, "up", &frame, up());
    agent.dispatch(request).await.expect("allowed");
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let drag = dispatch_request::Action::PointerDrag(PointerDrag::default());
    let request = at_point(&session_id, "drag", &frame, drag);
    let dragged = agent.dispatch(request).await.expect("allowed");
    assert_eq!(dragged.outcome(), Outcome::Ok);
    end(&agent, session_id).await;
    let ups = wire(&gateway)
        .iter()
        .filter(|line| *line == "mouse_up")
        .count();
    assert_eq!(ups, 1);
    gateway.stop().await;
}

/// D4: when the connection that pressed is gone, nobody has to end the session for the button to go up.
#[tokio::test]
async fn a_lost_connection_lets_go() {
    let gateway = GatewayProcess::serving(options(&json!([]))).await;
    {
        let channel =
            tonic::transport::Endpoint::from_shared(format!("http://{}", gateway.address()))
                .expect("an address")
                .connect()
                .await
                .expect("connected");
        let token = integration_tests::gateway::Role::Agent.token();
        let agent = Client::new(&channel, Some(&token));
        pressed(&gateway, &agent).await;
        let held = wire(&gateway);
        assert_eq!(held.last().map(String::as_str), Some("mouse_down"));
    }
    gateway
        .received_line(|line| line["params"]["action"]["kind"] == "mouse_up")
        .await;
    gateway.stop().await;
}

/// D2: the executor dies with the button down. On the next one nothing comes before the release: not even a read of
/// another session.
#[tokio::test]
async fn a_button_of_a_dead_executor_goes_up_first() {
    let gateway = GatewayProcess::serving(options(&json!([]))).await;
    let agent = gateway.agent();
    let session_id = pressed(&gateway, &agent).await;
    let other = agent.begin().await;
    kill_executor(&gateway, &agent).await;

    let frame = agent.snapshot_app(&other, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&other, "1", &frame, save, click());
    agent.dispatch(request).await.expect("allowed");
    let after = after_restart(&gateway);
    assert_eq!(
        after[..5],
        [
            "session.begin",
            "observe",
            "mouse_up",
            "session.begin",
            "observe"
        ],
        "{after:?}"
    );
    // The session that pressed is known to the new executor already.
    agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let begun = after_restart(&gateway)
        .iter()
        .filter(|line| *line == "session.begin")
        .count();
    assert_eq!(begun, 2);
    gateway.stop().await;
}

/// D2: nobody has to call for it: the session that pressed lets go as soon as there is another executor.
#[tokio::test]
async fn a_new_executor_is_told_without_a_call() {
    let gateway = GatewayProcess::serving(options(&json!([]))).await;
    let agent = gateway.agent();
    pressed(&gateway, &agent).await;
    kill_executor(&gateway, &agent).await;
    gateway
        .received_line(|line| line["params"]["action"]["kind"] == "mouse_up")
        .await;
    let after = after_restart(&gateway);
    assert_eq!(after, ["session.begin", "observe", "mouse_up"]);
    gateway.stop().await;
}

/// D2, D4: a session, or the whole gateway, that ends when its executor has just been lost waits for the next one to let go.
#[tokio::test]
async fn an_end_after_a_loss_lets_go_all_the_same() {
    for whole in [false, true] {
        let gateway = GatewayProcess::serving(options(&json!([]))).await;
        let agent = gateway.agent();
        let session_id = pressed(&gateway, &agent).await;
        let (pid, _) = ready(&agent).await;
        let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
        kill(pid, Signal::SIGKILL).expect("it lives");
        if !whole {
            end(&agent, session_id).await;
        }
        let folder = gateway.stop().await;
        let wire = std::fs::read_to_string(folder.path().join("wire.jsonl")).expect("a wire log");
        assert_eq!(wire.matches("\"mouse_up\"").count(), 1, "{whole}: {wire}");
    }
}

/// A release that the executor refuses is told, and tried once more when the session ends.
#[tokio::test]
async fn a_refused_release_is_tried_again_at_the_end() {
    let rules = json!([
        {"method": "observe", "nth": 2, "steps": [{"refuse": "screen_locked"}]},
    ]);
    let gateway = GatewayProcess::serving(options(&rules)).await;
    let agent = gateway.agent();
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", gateway.address()));
    let channel = channel.expect("an address").connect().await;
    let token = integration_tests::gateway::Role::Agent.token();
    let passing = Client::new(&channel.expect("connected"), Some(&token));
    let session_id = pressed(&gateway, &passing).await;
    let mut watching = agent.watch().await;
    drop(passing);
    watching
        .until(|event| matches!(event, v1::event::Event::MayBeHeld(_)).then_some(()))
        .await;
    end(&agent, session_id).await;
    let wire = wire(&gateway);
    let last: Vec<_> = wire.iter().rev().take(3).rev().collect();
    assert_eq!(last, ["observe", "mouse_up", "session.end"], "{wire:?}");
    gateway.stop().await;
}

/// D1: a drag whose cancel is ignored ends its executor; its caller hears UNKNOWN, and the next executor gets the
/// `mouse_up` although the session that dragged is gone. That session is ended there as well.
#[tokio::test]
async fn a_drag_of_unknown_end_goes_up_first() {
    let rules = json!([{"method": "dispatch.point", "process": 1, "steps": ["never"]}]);
    let mut options = options(&rules);
    options.executor_keys = "cancel_grace_ms = 50".into();
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let drag = dispatch_request::Action::PointerDrag(PointerDrag::default());
    let request = at_point(&session_id, "drag", &frame, drag);
    {
        let call = agent.dispatch(request.clone());
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("answered without a cancel: {result:?}"),
            () = gateway.received("dispatch.point") => {}
        }
    }
    gateway.received("$/cancel").await;
    let stored = agent.dispatch(request).await.expect("the stored outcome");
    assert_eq!(stored.outcome(), Outcome::Unknown);
    end(&agent, session_id).await;
    ready(&agent).await;
    let other = agent.begin().await;
    agent.snapshot_app(&other, APP).await.expect("a frame");
    let after = after_restart(&gateway);
    assert_eq!(
        after[..4],
        ["session.begin", "observe", "mouse_up", "session.end"],
        "{after:?}"
    );
    gateway.stop().await;
}

/// A gateway that ends lets go of what its sessions hold.
#[tokio::test]
async fn a_gateway_that_ends_lets_go_first() {
    let gateway = GatewayProcess::serving(options(&json!([]))).await;
    let agent = gateway.agent();
    pressed(&gateway, &agent).await;
    let folder = gateway.stop().await;
    let wire = std::fs::read_to_string(folder.path().join("wire.jsonl")).expect("the wire log");
    let up = wire.find("\"mouse_up\"").expect("let go of");
    assert!(up < wire.find("\"session.end\"").expect("ended"), "{wire}");
}

/// The window is gone with the executor: nothing can be let go of, the calls go on, and nobody tries again.
#[tokio::test]
async fn a_window_that_is_gone_is_given_up() {
    let rules = json!([
        {"method": "observe", "process": 2, "nth": 1, "steps": [{"refuse": "window_gone"}]},
    ]);
    let gateway = GatewayProcess::serving(options(&rules)).await;
    let agent = gateway.agent();
    pressed(&gateway, &agent).await;
    let other = agent.begin().await;
    let mut watching = agent.watch().await;
    kill_executor(&gateway, &agent).await;
    agent.snapshot_app(&other, APP).await.expect("a frame");
    agent.snapshot_app(&other, APP).await.expect("another");
    let window = watching
        .until(|event| match event {
            v1::event::Event::MayBeHeld(it) => it.target_window,
            _ => None,
        })
        .await;
    assert_eq!(window.window_id, 318, "the window that it was pressed in");
    let after = after_restart(&gateway);
    let observed = after.iter().filter(|line| *line == "observe").count();
    assert_eq!(observed, 3, "one for the release: {after:?}");
    assert!(!after.iter().any(|line| line == "mouse_up"), "{after:?}");
    assert!(gateway.log().contains("a button may be held"));
    gateway.stop().await;
}

/// Kills the executor and waits for the next one.
async fn kill_executor(gateway: &GatewayProcess, agent: &Client) {
    let (pid, generation) = ready(agent).await;
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    kill(pid, Signal::SIGKILL).expect("it lives");
    let next = async {
        while ready(agent).await.1 == generation {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, next).await.is_ok(),
        "no other executor: {}",
        gateway.log()
    );
}

/// The pid and generation of the executor that is ready, waiting for one if need be.
async fn ready(agent: &Client) -> (u32, u64) {
    let mut client = agent.computer_use.clone();
    let ready = async {
        loop {
            let status = client
                .get_status(v1::GetStatusRequest {})
                .await
                .expect("status")
                .into_inner();
            if let Some(executor) = status.executor {
                return (executor.pid, status.generation);
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready)
        .await
        .expect("an executor")
}

/// What reached the executor after its last start, without the greeting.
fn after_restart(gateway: &GatewayProcess) -> Vec<String> {
    let wire = wire(gateway);
    let hello = wire
        .iter()
        .rposition(|line| line == "host.hello")
        .expect("a greeting");
    wire[hello + 1..].to_vec()
}
