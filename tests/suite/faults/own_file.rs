//! An executor that puts another program in the place of its own file.

use serde_json::json;

use super::{Bench, Then, said};

/// Field report H17: what runs next is what was pinned, whatever the last one did to the copy it ran from.
#[tokio::test]
async fn a_swapped_copy_is_not_what_runs_next() {
    let bench = Bench::start(json!([{
        "method": "dispatch.element",
        "params": { "/toolCallId": "swap" },
        "steps": ["swap_own_file", { "die": 9 }],
    }]))
    .await;
    let before = bench.ready_after(0).await;
    let digest = bench.status().await.executor.expect("ready").digest;
    let frame = bench.frame().await;
    let result = bench.agent.dispatch(bench.write("swap", &frame)).await;
    assert_eq!(
        said(&result),
        "UNKNOWN UNVERIFIABLE outcome_unknown CHILD_EXIT"
    );
    bench.goes_on("swap", before, Then::New, &frame).await;
    let now = bench.status().await.executor.expect("ready");
    assert_eq!((now.digest, now.name.as_str()), (digest, "fake-executor"));
    bench.gateway.stop().await;
}
