//! `maka-cu-host` over a real child: whatever the executor does, callers get one truthful answer.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot help fails its test"
)]

mod processes;
mod requests;
mod starting;
mod wire;

use integration_tests::fake::{Fake, PATIENCE, until};
use maka_cu_host::event::Release;
use maka_cu_host::{
    Answer, CallError, CallOptions, Event, EventStream, MakaCuLifecycleError, MakaCuService,
    Options,
};
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::Envelope;
use maka_cu_protocol::sets::ServiceState;
use serde_json::{Value, json};
use tokio::time::timeout;

/// A service over a fake with this script.
fn service(script: &Value) -> (Fake, MakaCuService) {
    service_with(script, |_| {})
}

/// A service over a fake with this script and changed options.
fn service_with(script: &Value, change: impl FnOnce(&mut Options)) -> (Fake, MakaCuService) {
    let fake = Fake::new(script);
    let mut options = fake.options();
    change(&mut options);
    let service = MakaCuService::try_new(options).unwrap();
    (fake, service)
}

/// A script with one rule.
fn rule(method: &str, steps: Value) -> Value {
    json!({ "rules": [{ "method": method, "steps": steps }] })
}

/// Calls a method that needs no session.
async fn list_apps(service: &MakaCuService) -> Result<Answer<Envelope>, CallError> {
    call(service, Method::AppsList, json!({})).await
}

async fn call(
    service: &MakaCuService,
    method: Method,
    params: Value,
) -> Result<Answer<Envelope>, CallError> {
    call_with(service, method, params, CallOptions::default()).await
}

/// No call may outlive its deadline by more than the grace; here, by more than a test's patience.
async fn call_with(
    service: &MakaCuService,
    method: Method,
    params: Value,
    options: CallOptions,
) -> Result<Answer<Envelope>, CallError> {
    timeout(PATIENCE, service.call(method, params, options))
        .await
        .expect("every call ends")
}

fn session(name: &str) -> SessionId {
    SessionId::try_new(name).unwrap()
}

fn of_session(name: &str) -> CallOptions {
    CallOptions {
        session: Some(session(name)),
        ..CallOptions::default()
    }
}

async fn begin(service: &MakaCuService, name: &str) {
    let params = json!({ "session": name, "captureScope": "window" });
    let Ok(Answer {
        value: Envelope::Ok(_),
        ..
    }) = call_with(service, Method::SessionBegin, params, of_session(name)).await
    else {
        panic!("the session begins")
    };
}

/// The lifecycle error a call must end in.
fn lifecycle<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> MakaCuLifecycleError {
    match outcome {
        Err(CallError::Lifecycle(error)) => error,
        other => panic!("expected a lifecycle error, not {other:?}"),
    }
}

async fn reach(service: &MakaCuService, state: ServiceState) {
    let mut status = service.watch_status();
    let reached = timeout(PATIENCE, status.wait_for(|status| status.state == state)).await;
    assert!(
        reached.is_ok(),
        "waited in vain for {state}, it is {:?}",
        service.status()
    );
}

async fn ready_again(service: &MakaCuService, generation: u64) {
    let mut status = service.watch_status();
    let ready = |status: &maka_cu_host::Status| {
        status.state == ServiceState::Ready && status.generation == generation
    };
    assert!(
        timeout(PATIENCE, status.wait_for(ready)).await.is_ok(),
        "no generation {generation}: {:?}",
        service.status()
    );
}

/// The next release event.
async fn release(events: &mut EventStream) -> Release {
    let next = async {
        loop {
            match events.next().await.expect("the service lives") {
                Event::Released(release) => return release,
                Event::Status(_) => {}
                Event::Lost { count } => panic!("{count} events are lost"),
            }
        }
    };
    timeout(PATIENCE, next).await.expect("a release comes")
}
