//! A storm: eight sessions of two principals make random calls against an executor that misbehaves at random, while it is killed, stopped
//! and restarted from outside. Everything is drawn from one seed, which a failure names.
//!
//! The laws are checked against witnesses that the gateway does not control: the fake's wire log (what was read, what was answered)
//! and `/proc`; and against its decision log, whose chain is recomputed here.
//!
//! - every call ends once;
//! - no action is read twice by any executor, whatever is repeated, dropped or joined;
//! - one key has one outcome, and a status says that nothing was sent;
//! - an action is called done only when an executor said so in an answer that may be believed;
//! - generations only grow;
//! - an action that reached an executor was allowed before;
//! - what a watcher of the events is told adds up: actions begin and end in pairs, generations only grow, losses are counted;
//! - no button stays down without a release or a word about it;
//! - after the storm nothing is left: no process, no descriptor, no thread, no picture.

mod book;
mod cancel_race;
mod driver;
mod kill_storm;
mod laws;
mod leak;
mod leftovers;
mod told;
mod weather;

use std::{fs, sync::Arc};

use integration_tests::{
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
    seeded::Seeded,
    soak::{Rounds, seed},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic_health::pb::health_check_response::ServingStatus;

use book::Book;
use driver::Driver;
use leftovers::Leftovers;

const APP: &str = "org.example.Notes";

/// Sessions at once.
const SESSIONS: u64 = 8;

/// Calls of one session in one storm.
const CALLS: u64 = 45;

/// Requests in a thousand that meet a fault.
const FAULTS_PERMILLE: u64 = 120;

/// A gateway over a fake whose storm rages until the file is there.
async fn start(seed: u64, folder: TempDir) -> GatewayProcess {
    let script = json!({
        "limits": { "settleCeilingMs": 1, "treeWalkCeilingMs": 1 },
        "storm": {
            "seed": seed,
            "permille": FAULTS_PERMILLE,
            "until": folder.path().join("calm"),
        },
    });
    let mut options = GatewayOptions::new(Executor::Fake(script));
    options.log_level = "warn";
    options.executor_keys = "max_restart_attempts = 100\nstable_after_ms = 1\n\
                             handshake_timeout_ms = 3000\ncancel_grace_ms = 100"
        .into();
    let gateway = GatewayProcess::start_in(folder, options).await;
    gateway.wait_for(ServingStatus::Serving).await;
    gateway
}

/// One storm from one seed. Returns how many calls and how many executors it took.
async fn storm(seed: u64) -> (u64, u64) {
    let folder = TempDir::new().expect("a folder");
    let calm = folder.path().join("calm");
    fs::write(&calm, "").expect("the calm before it");
    let gateway = Arc::new(start(seed, folder).await);
    let book = Arc::new(Book::new(seed));
    let mut drivers: Vec<Driver> = (0..SESSIONS)
        .map(|number| {
            let role = if number % 2 == 0 {
                Role::Agent
            } else {
                Role::Operator
            };
            let client = gateway.client(role);
            Driver::new(number, client, Seeded::of(&[seed, number]), book.clone())
        })
        .collect();
    for driver in &mut drivers {
        driver.calm_round().await;
    }
    let watching = gateway.client(Role::Operator).watch().await;
    let mut watcher = JoinSet::new();
    watcher.spawn(watching.to_the_end());
    let baseline = Leftovers::at_rest(&gateway).await;

    fs::remove_file(&calm).expect("the storm begins");
    let over = CancellationToken::new();
    let mut outside = JoinSet::new();
    outside.spawn(weather::signals(
        gateway.clone(),
        Seeded::of(&[seed, 1000]),
        over.clone(),
    ));
    outside.spawn(weather::watch(gateway.clone(), book.clone(), over.clone()));
    let mut inside = JoinSet::new();
    for mut driver in drivers {
        inside.spawn(async move {
            for _ in 0..CALLS {
                driver.random_call().await;
            }
            driver
        });
    }
    let mut drivers = Vec::new();
    while let Some(driver) = inside.join_next().await {
        drivers.push(driver.unwrap_or_else(|error| panic!("{error}\n{}", book.tail())));
    }
    over.cancel();
    while let Some(ended) = outside.join_next().await {
        ended.unwrap_or_else(|error| panic!("{error}\n{}", book.tail()));
    }
    fs::write(&calm, "").expect("the storm ends");

    // What still hangs in the last executor of the storm goes with it.
    weather::kill_executor(&gateway).await;
    gateway.wait_for(ServingStatus::Serving).await;
    for driver in &mut drivers {
        driver.repeat_everything().await;
        driver.calm_round().await;
    }
    baseline.hold_again(&gateway, &book).await;
    laws::check(&gateway, &book);
    let executors = laws::starts(&gateway.wire()).len() as u64;
    let gateway = Arc::into_inner(gateway).expect("nobody else holds it");
    let children = integration_tests::process::children(gateway.pid().as_raw());
    let wire = gateway.wire();
    let folder = gateway.stop().await;
    let watched = watcher.join_next().await.expect("one watcher");
    let watched = watched.unwrap_or_else(|error| panic!("{error}\n{}", book.tail()));
    let watched = watched.unwrap_or_else(|status| panic!("{status:?}\n{}", book.tail()));
    told::check(&watched, &book.tail());
    told::nothing_stays_held(&wire, &watched, &book.tail());
    leftovers::nothing_survives(&children, folder.path(), &book).await;
    (book.calls(), executors)
}

/// Issue 3, "chaos test"; field reports A8, H1, H3, H24, M1, M2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_keeps_the_laws() {
    let mut rounds = Rounds::new("chaos", 1, u64::MAX);
    let (mut calls, mut executors) = (0, 0);
    while let Some(round) = rounds.next(|| format!("{calls} calls, {executors} executors")) {
        let (more_calls, more_executors) = storm(seed() + round).await;
        calls += more_calls;
        executors += more_executors;
    }
    assert!(calls >= SESSIONS * CALLS && executors > 1, "it did storm");
}
