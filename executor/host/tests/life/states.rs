//! Spec 8.3, one test per row. What the design settles otherwise is said at the row: attempts are given back by a stable life rather
//! than by a handshake, and an eager supervisor restarts by itself (design 5.4).

use std::time::Duration;

use maka_cu_host::options::RestartPolicy;
use maka_cu_host::{CallOptions, MakaCuService};
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::sets::{LifecycleCode, ServiceState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::child::{Script, appears};
use crate::trace::{Trace, lifecycle, soon};

/// Longer than a test takes.
const LONG: Duration = Duration::from_secs(600);

fn kill_child(service: &MakaCuService) {
    let pid = service.negotiated().unwrap().pid;
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
}

fn attempts(service: &MakaCuService) -> (u64, u32) {
    let status = service.status();
    (status.generation, status.restart_attempts)
}

/// idle · start wanted before its time → backing_off → starting.
#[tokio::test]
async fn idle_before_its_time_backs_off_first() {
    let script = Script::new("greet; serve");
    // Long enough that the wish comes before the time on any machine; the wait itself is what the row is about.
    let pause = Duration::from_secs(3);
    let service = script.service(|options| options.restart_backoff = pause);
    let mut trace = Trace::of(&service);
    soon(service.ensure_started()).await.unwrap();
    trace.until(ServiceState::Ready).await;
    let lost = Instant::now();
    kill_child(&service);
    trace
        .until_all(&["release child_exit 1, generation", "idle"])
        .await;
    soon(service.ensure_started()).await.unwrap();
    assert!(lost.elapsed() >= pause, "the remainder was waited for");
    let seen = trace.until(ServiceState::Ready).await;
    assert_eq!(seen, ["backing_off", "starting", "ready"]);
}

/// idle, unavailable · start wanted, attempts left → starting; one attempt more is used.
#[tokio::test]
async fn a_wanted_start_uses_an_attempt() {
    let script = Script::new(
        "[ $process = 1 ] && { read -r line; answer \"$line\" '\"result\":{}'; }; greet; serve",
    );
    let service = script.service(|_| {});
    let mut trace = Trace::of(&service);
    assert_eq!(attempts(&service), (0, 0));
    soon(service.ensure_started()).await.unwrap_err();
    assert_eq!(attempts(&service), (1, 1), "from idle");
    soon(service.ensure_started()).await.unwrap();
    assert_eq!(attempts(&service), (2, 2), "from unavailable");
    let seen = trace.until(ServiceState::Ready).await;
    let expected = [
        "starting",
        "release child_exit 1, generation",
        "unavailable",
        "starting",
        "ready",
    ];
    assert_eq!(seen, expected);
}

/// Concurrent wishes share one start.
#[tokio::test]
async fn concurrent_wishes_share_one_start() {
    let script = Script::new("greet; serve");
    let service = script.service(|_| {});
    let wish = || service.ensure_started();
    let (a, b, c) = soon(async { tokio::join!(wish(), wish(), wish()) }).await;
    for negotiated in [a, b, c] {
        assert_eq!(negotiated.unwrap().generation, 1);
    }
    assert_eq!((script.starts(), attempts(&service)), (1, (1, 1)));
}

/// starting · good handshake → ready. Attempts and the last error go once the life is stable (design 5.4).
#[tokio::test]
async fn a_good_handshake_is_ready() {
    for (stable_after, left) in [(LONG, 2), (Duration::ZERO, 0)] {
        let script = Script::new("[ $process = 1 ] && exit 3; greet; serve");
        let service = script.service(|options| options.stable_after = stable_after);
        let mut status = service.watch_status();
        assert_eq!(soon(service.ensure_started()).await.unwrap().generation, 2);
        let settled = status.wait_for(|status| {
            status.state == ServiceState::Ready && status.restart_attempts == left
        });
        let settled = soon(settled).await.unwrap();
        assert_eq!(settled.last_failure.is_some(), left > 0, "{stable_after:?}");
    }
}

/// starting · retryable failure, attempts left → backing_off → starting, each pause twice the one before.
#[tokio::test]
async fn a_retryable_failure_is_retried() {
    let script = Script::new("[ $process -lt 3 ] && exit 3; greet; serve");
    let pause = Duration::from_millis(100);
    let service = script.service(|options| options.restart_backoff = pause);
    let mut trace = Trace::of(&service);
    let since = Instant::now();
    assert_eq!(soon(service.ensure_started()).await.unwrap().generation, 3);
    assert!(since.elapsed() >= pause * 3, "100 ms and 200 ms");
    let expected = [
        "starting",
        "release child_exit 1, generation",
        "backing_off",
        "starting",
        "release child_exit 2, generation",
        "backing_off",
        "starting",
        "ready",
    ];
    assert_eq!(trace.until(ServiceState::Ready).await, expected);
}

/// starting · retryable failure, no attempt left → unavailable, with `restart_exhausted`; then the same again for every wish.
#[tokio::test]
async fn spent_attempts_stay_spent() {
    let script = Script::new("printf 'no display\\n' >&2; exit 3");
    let service = script.service(|options| options.max_restart_attempts = 2);
    let mut trace = Trace::of(&service);
    let mut errors = Vec::new();
    for _ in 0..3 {
        let error = soon(service.ensure_started()).await.unwrap_err();
        assert_eq!(error.code, LifecycleCode::ServiceUnavailable);
        let last = service.status().last_failure.expect("it is remembered");
        assert_eq!(last.failure.reason(), "exited_early");
        assert!(format!("{:?}", error.cause).contains("Exhausted"));
        errors.push(error.to_string());
    }
    assert!(
        errors.windows(2).all(|pair| pair[0] == pair[1]),
        "{errors:?}"
    );
    let exhausted = "release restart_exhausted 2";
    let expected = [
        "starting",
        "release child_exit 1, generation",
        "backing_off",
        "starting",
        "release child_exit 2, generation",
        exhausted,
    ];
    assert_eq!(trace.until_release("restart_exhausted").await, expected);
    // Told before the state it leads to; then once more for each further wish, with no start between.
    assert_eq!(
        trace.until_release("restart_exhausted").await,
        ["unavailable", exhausted]
    );
    assert_eq!(trace.until_release("restart_exhausted").await, [exhausted]);
    assert_eq!((script.starts(), attempts(&service)), (2, (2, 2)));
}

/// ready · the child is lost → idle, with `child_exit`. However it is lost.
#[tokio::test]
async fn a_lost_child_leaves_idle() {
    let rows = [
        ("a status", "greet; read -r line; exit 3"),
        ("a signal", "greet; read -r line; kill -9 $$"),
        (
            "its input closed",
            "greet; read -r line; exec 0<&-; : > \"$home/closed\"; exec sleep 600",
        ),
    ];
    for (name, body) in rows {
        let script = Script::new(body);
        let service = script.service(|_| {});
        let mut trace = Trace::of(&service);
        soon(service.ensure_started()).await.unwrap();
        trace.until(ServiceState::Ready).await;
        let cancel = CancellationToken::new();
        let options = CallOptions {
            session: SessionId::try_new("s").ok(),
            cancel: cancel.clone(),
            ..CallOptions::default()
        };
        let closed = async {
            // A closed input is noticed by whoever writes next: here, by the cancel.
            if name == "its input closed" {
                appears(&script.path("closed")).await;
                cancel.cancel();
            }
        };
        let call = service.call(Method::AppsList, json!({}), options);
        let (answer, ()) = soon(async { tokio::join!(call, closed) }).await;
        let error = lifecycle(answer);
        assert_eq!(error.code, LifecycleCode::OutcomeUnknown, "{name}");
        let expected = "release child_exit 1, generation, outcome unknown, session s";
        trace.until_all(&[expected, "idle"]).await;
        assert_eq!(script.starts(), 1, "{name}: nobody asked for another");
    }
}

/// ready · the channel or an answer is broken → idle, with `protocol_violation`.
#[tokio::test]
async fn a_broken_protocol_leaves_idle() {
    let endless = "greet; while :; do printf '%01048576d' 0; done";
    let no_messages = "greet; printf 'null\\n4\\n\"x\"\\n'; serve";
    let rows = [
        ("overflow", endless),
        ("bad lines", no_messages),
        ("reported", "greet; serve"),
    ];
    for (name, body) in rows {
        let script = Script::new(body);
        let service = script.service(|_| {});
        let mut trace = Trace::of(&service);
        soon(service.ensure_started()).await.unwrap();
        trace.until(ServiceState::Ready).await;
        if name == "reported" {
            let violation = Violation::of("image.sha256", Reason::Mismatch);
            service.report_violation(1, Method::Observe, violation);
        }
        let expected = ["release protocol_violation 1, generation", "idle"];
        trace.until_all(&expected).await;
    }
}

/// ready · a cancel's grace is over → idle, with `request_timeout`; after a cancel and after a deadline alike.
#[tokio::test]
async fn an_ignored_cancel_leaves_idle() {
    for by_deadline in [false, true] {
        let script =
            Script::new("greet; while read -r line; do note \"$line\"; : > \"$home/read\"; done");
        let service = script.service(|options| options.cancel_grace = Duration::from_millis(50));
        let mut trace = Trace::of(&service);
        soon(service.ensure_started()).await.unwrap();
        trace.until(ServiceState::Ready).await;
        let cancel = CancellationToken::new();
        let options = CallOptions {
            deadline: by_deadline.then(|| Instant::now() + Duration::from_millis(200)),
            cancel: cancel.clone(),
            ..CallOptions::default()
        };
        let call = service.call(Method::AppsList, json!({}), options);
        let cancelled = async {
            appears(&script.path("read")).await;
            if !by_deadline {
                cancel.cancel();
            }
        };
        let (answer, ()) = soon(async { tokio::join!(call, cancelled) }).await;
        assert_eq!(lifecycle(answer).code, LifecycleCode::OutcomeUnknown);
        let expected = [
            "release request_timeout 1, generation, outcome unknown",
            "idle",
        ];
        trace.until_all(&expected).await;
        assert_eq!(
            script.received("$/cancel"),
            1,
            "the word was out before the kill"
        );
    }
}

/// ready · a session is cleared → ready; the generation is not released.
#[tokio::test]
async fn a_cleared_session_leaves_ready() {
    let script = Script::new("greet; serve");
    let service = script.service(|_| {});
    let mut trace = Trace::of(&service);
    soon(service.ensure_started()).await.unwrap();
    trace.until(ServiceState::Ready).await;
    let session = SessionId::try_new("s").unwrap();
    assert!(!soon(service.clear_session(&session)).await);
    let seen = trace.until_release("session_cleared").await;
    assert_eq!(seen, ["release session_cleared 1, session s"]);
    assert_eq!(service.status().state, ServiceState::Ready);
}

/// Design 5.4: where restart is eager, what leads to idle leads through backing_off to the next generation instead.
#[tokio::test]
async fn eager_restarts_by_itself() {
    let script = Script::new("greet; serve");
    let service = script.service(|options| options.restart = RestartPolicy::Eager);
    let mut trace = Trace::of(&service);
    soon(service.ensure_started()).await.unwrap();
    trace.until(ServiceState::Ready).await;
    for generation in 1..=2 {
        kill_child(&service);
        let released = format!("release child_exit {generation}, generation");
        let expected = [&*released, "backing_off", "starting", "ready"];
        trace.until_all(&expected).await;
    }
    // The third life was the last attempt: field report H1.
    kill_child(&service);
    let seen = trace.until(ServiceState::Unavailable).await;
    let told = seen
        .iter()
        .any(|line| line == "release restart_exhausted 3");
    assert!(told, "{seen:?}");
    assert_eq!(script.starts(), 3);
}

/// Design 5.4: a restart on request is the way out of unavailable, with all attempts.
#[tokio::test]
async fn a_restart_on_request_clears_the_attempts() {
    let script = Script::new("[ -e \"$home/repaired\" ] || exit 3; greet; serve");
    let service = script.service(|_| {});
    let mut trace = Trace::of(&service);
    soon(service.ensure_started()).await.unwrap_err();
    trace.until(ServiceState::Unavailable).await;
    std::fs::write(script.path("repaired"), "").unwrap();
    assert_eq!(soon(service.restart()).await.unwrap().generation, 4);
    assert_eq!(attempts(&service), (4, 1));
    assert_eq!(
        trace.until(ServiceState::Ready).await,
        ["starting", "ready"]
    );
}
