//! What one decision of the floor costs: a fresh pooled instance, the call, the combination and the record in
//! the decision log. Bars (design §8): p50 ≤ 50 µs, p99 ≤ 150 µs.

#![expect(clippy::print_stdout, reason = "the numbers are the output")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use maka_policy_host::{
    call::ExecutorCall,
    engine::Engine,
    facts::{
        Action, Approving, Authority, Caller, Claim, DispatchFacts, ElementArgs, ElementRow, Meter,
        Path, SnapshotRow, SnapshotState, Target, Tier,
    },
    judge::{Judge, JudgeOptions},
    limits::Limits,
    log::{DecisionLog, LogOptions},
    set::{Floor, PolicySet},
};
use serde_json::json;

const WARM_UP: usize = 500;
const SAMPLES: usize = 20_000;
const DIGEST: &str = "sha256:00000000000000000000000000000000000000000000000000000000deadbeef";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    let engine = Engine::new(Limits::default())?;
    let floor = Floor::load(&engine, &json!({}))?;
    let loaded = began.elapsed();
    let (log, _) = DecisionLog::open(
        &folder.path().join("decisions.jsonl"),
        LogOptions::default(),
    )?;
    let judge = Judge::try_new(engine.clone(), Arc::new(log), JudgeOptions::default())?;
    judge.activate(vec![PolicySet::new(
        &engine,
        "default",
        &floor,
        Vec::new(),
    )?])?;

    let facts = facts();
    let params =
        json!({"session": "s", "snapshotId": "snap_1", "toolCallId": "c", "elementToken": "el_1"});
    let mut samples = Vec::with_capacity(SAMPLES);
    for index in 0..WARM_UP + SAMPLES {
        let call = ExecutorCall::new("dispatch.element", &params)?;
        let began = Instant::now();
        let permit = judge.admit_dispatch(&facts, call);
        let took = began.elapsed();
        if permit.is_err() {
            return Err("the floor refused the bench's own facts".into());
        }
        if index >= WARM_UP {
            samples.push(took);
        }
    }
    samples.sort_unstable();
    let json = std::env::args().any(|argument| argument == "--json");
    print(
        json,
        "load the floor: engine, compile, self-test",
        &[loaded],
        "",
    );
    print(
        json,
        "policy decision, floor, fresh pooled instance",
        &samples,
        "p50 ≤ 0.050 ms, p99 ≤ 0.150 ms",
    );
    Ok(())
}

fn print(json: bool, name: &str, sorted: &[Duration], bar: &str) {
    let at = |percent: usize| {
        let index = (sorted.len() * percent / 100).min(sorted.len() - 1);
        sorted[index].as_secs_f64() * 1e3
    };
    let (p50, p99) = (at(50), at(99));
    if json {
        let line = json!({"name": name, "p50_ms": p50, "p99_ms": p99, "samples": sorted.len(), "bar": bar});
        println!("{line}");
    } else {
        println!(
            "{name:<52} p50 {p50:>9.3} ms   p99 {p99:>9.3} ms   n {}   {bar}",
            sorted.len()
        );
    }
}

/// A click on a live element, as the gateway would state it.
fn facts() -> DispatchFacts {
    let target = Target {
        pid: 4201,
        process_start: 0,
        window_id: 301,
        app_id: "org.maka.Notes".into(),
        page: None,
    };
    DispatchFacts {
        tool_call_id: "call-1".into(),
        caller: Caller {
            tenant: "default".into(),
            orchestrator: "agent".into(),
            session: "s".into(),
            turn: String::new(),
            grants: Vec::new(),
        },
        authority: Authority {
            protocol: "maka.cu/2".into(),
            allow_global_pointer: false,
            compat_input: true,
            generation: 1,
            permitted: Authority::pairing_of_maka_cu_2(),
        },
        meter: Meter {
            actions_this_turn: 1,
            actions_last_minute: 1,
            denials_this_turn: 0,
            in_flight: 1,
        },
        approval: None,
        approving: Approving::Unavailable,
        action: Action::Element(ElementArgs {
            kind: "click".into(),
            text: None,
        }),
        claim: Claim {
            snapshot_id: "snap_1".into(),
            window_digest: None,
            element_token: Some("el_1".into()),
            element_digest: Some(DIGEST.into()),
            target: None,
            tier: Some(Tier::Ax),
            path: Some(Path::AxAction),
        },
        snapshot: SnapshotRow {
            id: "snap_1".into(),
            state: SnapshotState::Live,
            owner_session: "s".into(),
            generation: 1,
            epoch: 1,
            age_ms: 10,
            target: Some(target),
            window_digest: DIGEST.into(),
            truncated: false,
        },
        element: Some(ElementRow {
            token: "el_1".into(),
            digest: DIGEST.into(),
            role: "AXButton".into(),
            actions: vec!["press".into()],
            enabled: true,
            secure: false,
            frame: None,
        }),
        focus: None,
        spent_fingerprint: None,
        row_version: 1,
        request: None,
    }
}
