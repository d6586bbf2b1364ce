//! What a call made active stands over the death of the gateway, or the gateway does not run.

use std::fs;

use integration_tests::{
    client::reason,
    gateway::{Executor, GatewayOptions, GatewayProcess, Policy, Role},
};
use maka_proto::v1;
use nix::sys::signal::Signal;

use super::guest::{Does, guest};
use super::plane::{APP, activate, gateway, generation, load, module, prebuilt};

fn options() -> GatewayOptions {
    GatewayOptions::new(Executor::Virtual)
}

/// The configuration says the floor alone; the gateway was told more, and is killed. It comes back with what it was told.
#[tokio::test]
async fn a_killed_gateway_comes_back_as_strict_as_it_was() {
    let gateway = gateway(Policy::Floor).await;
    let good = guest("good", "1", Does::Allow);
    load(&gateway, &good).await.expect("loaded");
    let modules = vec![module(&prebuilt("deny-all")), module(&good)];
    let set = activate(&gateway, "", modules)
        .await
        .expect("activated")
        .set;
    let set = set.expect("the set");
    let (_, folder) = gateway.signal(Signal::SIGKILL).await;

    let gateway = GatewayProcess::start_in(folder, options()).await;
    gateway
        .wait_for(tonic_health::pb::health_check_response::ServingStatus::Serving)
        .await;
    let now = generation(&gateway).await;
    assert_eq!(now.set_digest, set.digest);
    assert_eq!(now.sets[0].origin(), v1::PolicySetOrigin::Call);
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/deny_all");
    let folder = gateway.stop().await;

    // One byte of a policy that was active: it does not run at all.
    let policies = folder.path().join("state/policies");
    let stored = fs::read_dir(&policies)
        .expect("the store")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "policy"))
        .expect("the loaded policy");
    let whole = fs::read(&stored).expect("its bytes");
    let mut changed = whole.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    fs::write(&stored, changed).expect("written");
    let folder = does_not_run(folder, "pin").await;
    // Nor without it.
    fs::remove_file(&stored).expect("removed");
    let folder = does_not_run(folder, "no policy has this digest").await;
    // Nor with a file of choices that is not understood.
    fs::write(&stored, whole).expect("written");
    let active = policies.join("active.json");
    let text = fs::read(&active).expect("the choices");
    fs::write(&active, b"{}").expect("written");
    let folder = does_not_run(folder, "active_file").await;
    // As it was, it runs again.
    fs::write(&active, text).expect("written");
    let gateway = GatewayProcess::start_in(folder, options()).await;
    gateway
        .wait_for(tonic_health::pb::health_check_response::ServingStatus::Serving)
        .await;
    gateway.stop().await;
}

/// A set that was taken away stays away.
#[tokio::test]
async fn a_set_that_was_taken_away_stays_away() {
    let first = gateway(Policy::Floor).await;
    let request = v1::DeactivatePolicyRequest {
        set: String::new(),
        expected_generation: 1,
    };
    let mut operator = first.client(Role::Operator).policies;
    operator.deactivate(request).await.expect("deactivated");
    let (_, folder) = first.signal(Signal::SIGKILL).await;
    let gateway = GatewayProcess::start_in(folder, options()).await;
    gateway.executor_ready().await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let refused = agent.snapshot_app(&session_id, APP).await.unwrap_err();
    assert_eq!(reason(&refused), "policy.maka/policy_absent");
    assert_eq!(generation(&gateway).await.generation, 0);
    gateway.stop().await;
}

/// Starts a gateway that ends by itself, and says why.
async fn does_not_run(folder: tempfile::TempDir, why: &str) -> tempfile::TempDir {
    let log = folder.path().join("gateway.log");
    fs::write(&log, "").expect("an empty log");
    let gateway = GatewayProcess::start_in(folder, options()).await;
    let (status, folder) = gateway.ended().await;
    let log = fs::read_to_string(folder.path().join("gateway.log")).expect("the log");
    assert!(!status.success(), "{status}: {log}");
    assert!(log.contains(why), "{why}: {log}");
    folder
}
