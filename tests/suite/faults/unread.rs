//! Requests that an executor provably never read: they had no effect, and the caller is told so.

use integration_tests::{
    client::metadata,
    fake::until,
    process::{is_stopped, runs},
};
use maka_proto::v1::DispatchRequest;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use super::{Bench, said, status_line};

impl Bench {
    /// Stops the executor and waits until every thread of it stands still.
    async fn stop_executor(&self) -> Pid {
        let pid = self.status().await.executor.expect("ready").pid;
        let pid = i32::try_from(pid).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("it lives");
        until("it stands still", || is_stopped(pid)).await;
        Pid::from_raw(pid)
    }

    /// Waits until the call was allowed, which is right before it is forwarded.
    async fn allowed(&self, request: &DispatchRequest) {
        until("it is allowed", || {
            self.gateway.decisions().iter().any(|record| {
                record["tool_call"] == request.tool_call_id.as_str()
                    && record["effective"] == "allow"
            })
        })
        .await;
    }

    /// Waits until the gateway knows that a caller gave up. A repeat that comes before joins the call and keeps it alive.
    async fn given_up(&self) {
        until("it is given up", || {
            let records = self.gateway.decisions();
            records.iter().any(|record| record["kind"] == "cancel")
        })
        .await;
    }
}

/// Field report M2, the provable half: what died unread was not done, its status can be retried, and its key is still free.
#[tokio::test]
async fn what_died_unread_was_not_done() {
    let bench = Bench::start(json!([])).await;
    let before = bench.ready_after(0).await;
    let frame = bench.frame().await;
    let pid = bench.stop_executor().await;
    let request = bench.write("unread", &frame);
    let (result, ()) = tokio::join!(bench.agent.dispatch(request.clone()), async {
        bench.allowed(&request).await;
        kill(pid, Signal::SIGKILL).expect("it lives");
    });
    let status = result.expect_err("nothing was done");
    let expected = [
        "Unavailable executor.lifecycle/service_unavailable",
        // Killed in the moment between the allow and the write: judged again, for the next executor.
        "FailedPrecondition policy.maka/snapshot_other_generation",
    ];
    assert!(expected.contains(&&*status_line(&status)), "{status:?}");
    assert_ne!(metadata(&status, "retry").as_deref(), Some("never"));
    assert_eq!(bench.sent("unread"), 0);
    bench.ready_after(before).await;
    let frame = bench.frame().await;
    let again = bench.agent.dispatch(bench.write("unread", &frame)).await;
    assert_eq!(said(&again), "OK CONFIRMED", "the key was free");
    assert_eq!(bench.sent("unread"), 1);
    bench.gateway.stop().await;
}

/// Who gave up on a call that was never read learns by its key that nothing happened, and the executor that stood still is replaced.
#[tokio::test]
async fn what_was_given_up_unread_is_aborted() {
    let bench = Bench::start(json!([])).await;
    let before = bench.ready_after(0).await;
    let frame = bench.frame().await;
    let pid = bench.stop_executor().await;
    let request = bench.write("unread", &frame);
    {
        let call = bench.agent.dispatch(request.clone());
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => panic!("answered by whom? {result:?}"),
            () = bench.allowed(&request) => {}
        }
    }
    bench.given_up().await;
    let again = bench.agent.dispatch(request).await;
    assert_eq!(said(&again), "REFUSED UNVERIFIABLE aborted");
    assert!(again.expect("a result").replayed);
    assert_eq!(bench.sent("unread"), 0);
    let now = bench.ready_after(0).await;
    if now == before {
        // The drop was quicker than the write, so there was nothing to cancel.
        kill(pid, Signal::SIGCONT).expect("it lives");
    } else {
        until("it is replaced", || !runs(pid.as_raw())).await;
    }
    let frame = bench.frame().await;
    let next = bench.agent.dispatch(bench.write("next", &frame)).await;
    assert_eq!(said(&next), "OK CONFIRMED");
    bench.gateway.stop().await;
}
