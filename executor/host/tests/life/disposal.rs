//! Spec 8.3, the last row, and 8.7: disposal, from every state there is.

use std::time::Duration;

use maka_cu_host::error::LifecycleCause;
use maka_cu_host::{CallOptions, MakaCuService, Options};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::sets::{LifecycleCode, ServiceState};
use serde_json::json;

use crate::child::{Script, appears};
use crate::trace::{Trace, lifecycle, soon};

/// Longer than a test takes.
const LONG: Duration = Duration::from_secs(600);

/// Disposes and looks at what is left: nothing.
async fn dispose(
    name: &str,
    script: &Script,
    service: &MakaCuService,
    trace: &mut Trace,
) -> Vec<String> {
    soon(async { tokio::join!(service.dispose(), service.dispose()) }).await;
    let status = service.status();
    assert_eq!(status.state, ServiceState::Disposed, "{name}");
    assert!(
        status.executor.is_none() && service.negotiated().is_none(),
        "{name}"
    );
    let last = format!("disposed {}", status.generation);
    let mut seen = trace.until_release(&last).await;
    if seen.last().is_some_and(|line| line.contains("generation")) {
        // The child's own release; the final one follows.
        seen.extend(trace.until_release(&last).await);
    }
    assert_eq!(seen.last(), Some(&format!("release {last}")), "{name}");
    let call = service.call(Method::AppsList, json!({}), CallOptions::default());
    let error = lifecycle(soon(call).await);
    assert_eq!(error.code, LifecycleCode::ServiceUnavailable, "{name}");
    assert!(matches!(error.cause, LifecycleCause::Disposed), "{name}");
    let error = soon(service.ensure_started()).await.unwrap_err();
    assert_eq!(error.code, LifecycleCode::ServiceUnavailable, "{name}");
    assert!(
        !script.path("images").exists(),
        "{name}: the images are gone"
    );
    for line in script.log() {
        if let Some(pid) = line.strip_prefix("start ") {
            let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
            let gone = nix::sys::signal::kill(pid, None).is_err();
            assert!(gone, "{name}: the child is gone and reaped");
        }
    }
    seen
}

fn prepare(body: &str, change: impl FnOnce(&mut Options)) -> (Script, MakaCuService, Trace) {
    let script = Script::new(body);
    let service = script.service(change);
    let trace = Trace::of(&service);
    (script, service, trace)
}

#[tokio::test]
async fn from_idle() {
    let (script, service, mut trace) = prepare("greet; serve", |_| {});
    let seen = dispose("never started", &script, &service, &mut trace).await;
    assert_eq!(script.starts(), 0);
    assert!(seen.contains(&"release disposed 0".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn from_backing_off() {
    let (script, service, mut trace) = prepare("exit 3", |it| it.restart_backoff = LONG);
    let (refused, ()) = soon(async {
        tokio::join!(service.ensure_started(), async {
            trace.until(ServiceState::BackingOff).await;
            dispose("backing off", &script, &service, &mut trace).await;
        })
    })
    .await;
    let LifecycleCause::Disposed = refused.unwrap_err().cause else {
        panic!("whoever waited is told why")
    };
    assert_eq!(script.starts(), 1);
}

/// Spec 12.1 row 12: a start in flight leaves no folder either.
#[tokio::test]
async fn from_starting() {
    for (name, body) in [
        ("greeting", ": > \"$home/up\"; exec sleep 600"),
        (
            "greeting, deaf to SIGTERM",
            "trap '' TERM; : > \"$home/up\"; while :; do sleep 1; done",
        ),
    ] {
        let (script, service, mut trace) = prepare(body, |options| {
            options.handshake_timeout = LONG;
            options.shutdown_grace = Duration::from_millis(50);
        });
        let (refused, ()) = soon(async {
            tokio::join!(service.ensure_started(), async {
                appears(&script.path("up")).await;
                dispose(name, &script, &service, &mut trace).await;
            })
        })
        .await;
        assert_eq!(
            refused.unwrap_err().code,
            LifecycleCode::ServiceUnavailable,
            "{name}"
        );
    }
    let (script, service, mut trace) = prepare("greet; serve", |_| {});
    let (refused, _) = soon(async {
        tokio::join!(
            service.ensure_started(),
            dispose("preparing", &script, &service, &mut trace)
        )
    })
    .await;
    assert!(refused.is_err() || script.starts() == 1);
}

#[tokio::test]
async fn from_ready() {
    let (script, service, mut trace) = prepare("greet; : > \"$home/up\"; serve", |_| {});
    soon(service.ensure_started()).await.unwrap();
    trace.until(ServiceState::Ready).await;
    let seen = dispose("ready", &script, &service, &mut trace).await;
    let released = "release disposed 1, generation".to_owned();
    assert_eq!(
        seen.iter().filter(|line| **line == released).count(),
        1,
        "{seen:?}"
    );
}

/// A request that was read when the host went has an unknown outcome, and its caller does not wait for the child's goodbye.
#[tokio::test]
async fn from_ready_with_a_request_in_flight() {
    let body = "greet; trap '' TERM; read -r line; : > \"$home/read\"; while :; do sleep 1; done";
    let (script, service, mut trace) = prepare(body, |_| {});
    soon(service.ensure_started()).await.unwrap();
    trace.until(ServiceState::Ready).await;
    let call = service.call(Method::AppsList, json!({}), CallOptions::default());
    let (answer, seen) = soon(async {
        tokio::join!(call, async {
            appears(&script.path("read")).await;
            dispose("in flight", &script, &service, &mut trace).await
        })
    })
    .await;
    assert_eq!(lifecycle(answer).code, LifecycleCode::OutcomeUnknown);
    let released = "release disposed 1, generation, outcome unknown".to_owned();
    assert!(seen.contains(&released), "{seen:?}");
}

#[tokio::test]
async fn from_unavailable() {
    let (script, service, mut trace) = prepare("exit 3", |it| it.max_restart_attempts = 1);
    soon(service.ensure_started()).await.unwrap_err();
    trace.until(ServiceState::Unavailable).await;
    dispose("unavailable", &script, &service, &mut trace).await;
}

/// A child that is being restarted is not followed by another one.
#[tokio::test]
async fn from_ending() {
    let body =
        "greet; trap ': > \"$home/asked\"' TERM; : > \"$home/up\"; while :; do sleep 0.05; done";
    let (script, service, mut trace) = prepare(body, |_| {});
    soon(service.ensure_started()).await.unwrap();
    appears(&script.path("up")).await;
    let (refused, ()) = soon(async {
        tokio::join!(service.restart(), async {
            appears(&script.path("asked")).await;
            dispose("ending", &script, &service, &mut trace).await;
        })
    })
    .await;
    drop(refused);
    assert!(
        script.starts() <= 2,
        "at most the restart that was under way"
    );
}
