//! What a refusal does to the frame that was quoted: most leave it as good as it was, since nothing happened; a few say that it is
//! no frame any more.

use serde_json::{Value, json};

use super::{Bench, said};

/// After the refusal the same frame may be quoted again.
const LIVE: &str = "OK CONFIRMED";

/// Design §5.1, written down by hand: every code of a dispatch, and how another action with the same frame ends.
const ROWS: [(&str, &str); 25] = [
    ("element_unknown", LIVE),
    ("element_released", LIVE),
    ("process_replaced", LIVE),
    ("window_gone", LIVE),
    ("element_changed", LIVE),
    ("window_changed", LIVE),
    ("focus_changed", LIVE),
    ("window_occluded", LIVE),
    ("element_not_actionable", LIVE),
    ("element_disabled", LIVE),
    ("unsupported_action", LIVE),
    ("not_implemented", LIVE),
    ("permission_missing", LIVE),
    // These two change the status of the session (spec §10.5): it has to look again first.
    ("screen_locked", "gateway.maka/screen_locked"),
    ("physical_input_active", "policy.maka/snapshot_superseded"),
    ("invalid_point", LIVE),
    ("dispatch_refused", LIVE),
    ("aborted", LIVE),
    ("timeout", LIVE),
    ("snapshot_spent", "policy.maka/snapshot_spent"),
    ("snapshot_unknown", "policy.maka/snapshot_evicted"),
    ("snapshot_evicted", "policy.maka/snapshot_evicted"),
    ("snapshot_expired", "policy.maka/snapshot_expired"),
    ("snapshot_superseded", "policy.maka/snapshot_superseded"),
    ("element_digest_mismatch", "policy.maka/snapshot_evicted"),
];

/// Spec maka-cu §12.3 rows 29 and 43; field report C5.
#[tokio::test]
async fn a_refusal_leaves_the_frame_or_ends_it() {
    let rules: Vec<Value> = ROWS
        .iter()
        .map(|(code, _)| {
            json!({
                "method": "dispatch.element",
                "params": { "/toolCallId": code },
                "steps": [{ "refuse": code }],
            })
        })
        .collect();
    let mut bench = Bench::start(rules.into()).await;
    for (code, afterwards) in ROWS {
        bench.session_id = bench.agent.begin().await;
        let frame = bench.frame().await;
        let refused = bench.agent.dispatch(bench.write(code, &frame)).await;
        assert_eq!(said(&refused), format!("REFUSED UNVERIFIABLE {code}"));
        let key = format!("after {code}");
        let result = bench.agent.dispatch(bench.write(&key, &frame)).await;
        let line = said(&result);
        assert!(line.ends_with(afterwards), "{key}: {line}");
        assert_eq!(
            bench.sent(&key),
            usize::from(afterwards == LIVE),
            "{key}: a dead frame is not sent"
        );
    }
    assert_eq!(bench.status().await.generation, 1, "nobody was replaced");
    bench.gateway.stop().await;
}

/// Spec maka-cu §12.3 row 35: a refusal for want of a path keeps the path.
#[tokio::test]
async fn a_refusal_names_the_path_it_would_take() {
    let bench = Bench::start(json!([{
        "method": "dispatch.element",
        "params": { "/toolCallId": "policy" },
        "steps": [{ "result": {
            "ok": false, "toolCallId": "policy", "outcome": "refused", "tier": "ax", "path": "none",
            "effect": "unverifiable", "verification": { "method": "none", "observedChange": false },
            "error": {
                "code": "dispatch_refused", "message": "x", "detail": { "wouldRequirePath": "cg_event_global" },
            },
        } }],
    }]))
    .await;
    let frame = bench.frame().await;
    let result = bench.agent.dispatch(bench.write("policy", &frame)).await;
    assert_eq!(said(&result), "REFUSED UNVERIFIABLE dispatch_refused");
    let error = result.expect("a result").error.expect("why");
    assert_eq!(error.would_require(), maka_proto::v1::Path::CgEventGlobal);
    assert_eq!(bench.status().await.generation, 1);
    bench.gateway.stop().await;
}
