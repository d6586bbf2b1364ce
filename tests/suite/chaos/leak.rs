//! Cycles of the usual loop, with pictures, in one session: what the gateway holds does not grow with them.

use std::fs;

use integration_tests::{
    client::{element, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess},
    process::{descriptors, resident_kib},
    soak::{Rounds, say},
};
use maka_proto::v1::{EndSessionRequest, Outcome};
use serde_json::json;

use super::APP;

/// The cycle that later ones are compared with (field report H24).
const REFERENCE: u64 = 200;

/// Memory may grow by this part of what it was at the reference cycle, in percent. What a session remembers on purpose for as long as
/// it lives is in it: how each key ended, and that each frame is dead.
const GROWTH_PERCENT: u64 = 10;

/// Field report H24: observe and dispatch with pictures, over and over. Descriptors and pictures are counted in every form of the
/// test; memory only in the long one, since the first cycles fill every buffer once.
#[tokio::test]
async fn cycles_leave_nothing_behind() {
    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    options.log_level = "warn";
    let gateway = GatewayProcess::serving(options).await;
    let pid = gateway.pid().as_raw();
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let mut reference = None;
    let mut rounds = Rounds::new("leak", 40, 2_000);
    let mut done = 0;
    while let Some(cycle) = rounds.next(|| format!("{} KiB", resident_kib(pid))) {
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let picture = frame.image.clone().expect("a picture");
        agent
            .read_image(&session_id, &picture)
            .await
            .expect("its bytes");
        let key = format!("{cycle}");
        let field = element(&frame, "AXTextField", "Name");
        let request = on_element(&session_id, &key, &frame, field, set_value(&key));
        let result = agent.dispatch(request).await.expect("a result");
        assert_eq!(result.outcome(), Outcome::Ok);
        let picture = result.snapshot.expect("a frame").image.expect("a picture");
        agent
            .read_image(&session_id, &picture)
            .await
            .expect("its bytes");
        if cycle == REFERENCE.min(20) || cycle == REFERENCE {
            reference = Some((descriptors(pid), resident_kib(pid)));
        }
        done = cycle + 1;
    }
    let (descriptors_then, memory_then) = reference.expect("there are more cycles than that");
    let (descriptors_now, memory_now) = (descriptors(pid), resident_kib(pid));
    say(&format!(
        "leak: {memory_then} KiB at the reference, {memory_now} KiB after {done} cycles"
    ));
    assert!(
        descriptors_now <= descriptors_then + 2,
        "{descriptors_now} descriptors, {descriptors_then} before"
    );
    if rounds.is_long() && done > REFERENCE {
        let most = memory_then * (100 + GROWTH_PERCENT) / 100;
        assert!(
            memory_now <= most,
            "{memory_now} KiB after {done} cycles, {memory_then} KiB before, at most {most} KiB expected"
        );
    }
    let request = EndSessionRequest { session_id };
    let mut client = agent.computer_use.clone();
    client.end_session(request).await.expect("ended");
    let pictures = fs::read_dir(gateway.folder().join("state/images"))
        .expect("the folder")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "png"))
        .count();
    assert_eq!(pictures, 0, "pictures end with their session");
    gateway.stop().await;
}
