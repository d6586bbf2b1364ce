//! Policies that misbehave. Whatever one does, the call is refused with the code of its row, the refusal is in the log,
//! and the next decision is judged as if nothing had been.

use std::time::Duration;

use super::corpus::{click, observe};
use super::guest::{Guest, NAME, manifest, verdict};
use super::support::{Bench, load};
use crate::combiner::Opinion;

const LOOP: &str = "(loop (br 0)) (unreachable)";
const GROW: &str = "(loop (drop (memory.grow (i32.const 16))) (br 0)) (unreachable)";
const RECURSE: &str = "(call $deeper (i32.const 0)) (drop) (i32.const 1024)";

/// Misbehaviour in `admit-dispatch`, with the code it has to lead to.
fn rows() -> Vec<(&'static str, Guest, &'static str)> {
    let admits = |body: &str| Guest::admitting(body);
    vec![
        ("trap", admits("(unreachable)"), "policy_trap"),
        (
            "division by zero",
            admits("(i32.div_s (i32.const 1) (i32.const 0))"),
            "policy_trap",
        ),
        ("loop", admits(LOOP), "policy_fuel"),
        ("alloc", admits(GROW), "policy_memory"),
        (
            "recurse",
            Guest {
                fields: "(func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))",
                ..admits(RECURSE)
            },
            "policy_trap",
        ),
        (
            "bad code",
            admits(&verdict(1, (2056, 8), 0)),
            "policy_bad_output",
        ),
        (
            "empty code",
            admits(&verdict(1, (2056, 0), 0)),
            "policy_bad_output",
        ),
        (
            "bad code for approval",
            admits(&verdict(2, (2056, 8), 0)),
            "policy_bad_output",
        ),
        (
            "a code of the host",
            admits(&verdict(1, (2064, 11), 0)),
            "policy_bad_output",
        ),
        (
            "bad rule",
            admits(&format!(
                "(i32.store16 (i32.const 8192) (i32.const 1)) {}",
                verdict(0, (0, 0), 1)
            )),
            "policy_bad_output",
        ),
        (
            "too many rules",
            admits(&verdict(0, (0, 0), 65)),
            "policy_bad_output",
        ),
        (
            "unknown obligation",
            admits(&verdict(0, (3072, 1), 0)),
            "policy_bad_output",
        ),
        (
            "undeclared obligation",
            admits(&verdict(0, (3088, 1), 0)),
            "policy_bad_output",
        ),
        (
            "no text",
            admits(&verdict(1, (2080, 3), 0)),
            "policy_bad_output",
        ),
        (
            "a fourth verdict",
            admits(&verdict(7, (0, 0), 0)),
            "policy_bad_output",
        ),
        (
            "huge",
            admits(&verdict(1, (65536, 900_000), 0)),
            "policy_bad_output",
        ),
        (
            "many obligations of one text",
            admits(&verdict(0, (3072, 60_000), 0)),
            "policy_bad_output",
        ),
        (
            "beyond memory",
            admits(&verdict(1, (2048, 0x7fff_ffff), 0)),
            "policy_bad_output",
        ),
        (
            "negative length",
            admits(&verdict(1, (2048, u32::MAX), 0)),
            "policy_bad_output",
        ),
        (
            "a verdict beyond memory",
            admits("(i32.const 0x7ffffff0)"),
            "policy_bad_output",
        ),
        (
            "a verdict out of line",
            admits("(i32.const 1025)"),
            "policy_bad_output",
        ),
        (
            "an obligation nobody can carry out",
            Guest {
                manifest: manifest("\"drop-image\""),
                ..admits(&verdict(0, (3088, 1), 0))
            },
            "obligation_failed",
        ),
    ]
}

/// K1, K3: each kind of failure is a refusal of its own, and is recorded as what it was.
#[test]
fn whatever_a_policy_does_the_call_is_refused() {
    let healthy = Bench::new(vec![]);
    for (name, guest, code) in rows() {
        let bench = Bench::new(vec![load(NAME, guest.build()).unwrap()]);
        let Err(refusal) = bench.admit(&click()) else {
            panic!("{name} was allowed")
        };
        assert_eq!(refusal.code, code, "{name}");
        let record = bench.last();
        assert_eq!(record["effective"], "deny", "{name}");
        assert_eq!(record["code"], code, "{name}");
        assert_eq!(record["id"], refusal.decision_id.as_str(), "{name}");
        assert_eq!(
            record["modules"][0]["decision"], "allow",
            "{name}: the floor is asked all the same"
        );
        // The same set is still good for what the guest behaves on, and the engine for everyone.
        assert_eq!(bench.code(&observe()), None, "{name}");
        assert_eq!(healthy.code(&click()), None, "{name}");
    }
}

/// The wall limit is a backstop for what fuel does not count: here one instruction that clears a megabyte.
#[test]
fn a_policy_that_is_slow_without_using_fuel_is_interrupted() {
    let body =
        "(loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 1000000)) (br 0)) (unreachable)";
    let bench = Bench::new(vec![load(NAME, Guest::admitting(body).build()).unwrap()]);
    let started = std::time::Instant::now();
    let code = bench.code(&click()).unwrap();
    assert!(
        ["policy_timeout", "policy_fuel"].contains(&code.as_str()),
        "{code}"
    );
    // Not a measurement: the failure this guards against is a policy that never ends.
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// K3: many endless policies at once neither hold each other up for good nor hurt the next call.
#[test]
fn a_hundred_endless_policies_leave_the_engine_usable() {
    let bench = Bench::new(vec![load(NAME, Guest::admitting(LOOP).build()).unwrap()]);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..100)
            .map(|_| scope.spawn(|| bench.code(&click())))
            .collect();
        for call in calls {
            let code = call.join().unwrap().unwrap();
            assert!(
                ["policy_fuel", "policy_timeout", "policy_busy"].contains(&code.as_str()),
                "{code}"
            );
        }
    });
    assert_eq!(bench.code(&observe()), None);
    assert!(bench.judge.faults() > 0);
}

/// A policy in monitor mode can fail as it likes.
#[test]
fn a_monitor_is_recorded_and_does_not_count() {
    for (name, guest, _) in rows() {
        let module = super::support::load_with(
            NAME,
            guest.build(),
            serde_json::json!({}),
            crate::module::Mode::Monitor,
        )
        .unwrap();
        let bench = Bench::new(vec![module]);
        assert_eq!(bench.code(&click()), None, "{name}");
        let (records, _folder) = bench.end();
        let decided = |record: &&serde_json::Value| record["schema"] == "maka.policy.decision/1";
        let decision = records.iter().find(decided).unwrap();
        assert_eq!(decision["modules"].as_array().unwrap().len(), 1, "{name}");
        let watched = records.last().unwrap();
        assert_eq!(watched["schema"], "maka.policy.monitor/1", "{name}");
        assert_eq!(watched["decision"], decision["id"], "{name}");
        assert_eq!(watched["modules"][0]["mode"], "monitor", "{name}");
    }
}

/// Failures in the review hook withhold the answer.
#[test]
fn whatever_a_policy_does_on_review_the_answer_is_withheld() {
    use crate::judge::{Answer, Released};
    for (name, guest, code) in rows() {
        let guest = Guest {
            review: guest.admit.clone(),
            admit: super::guest::ALLOW.to_owned(),
            ..guest
        };
        // The same layout means something else here: 1 withholds and 2 quarantines.
        let expected = if name.starts_with("bad code for approval") {
            "policy_bad_output"
        } else {
            code
        };
        let bench = Bench::new(vec![load(NAME, guest.build()).unwrap()]);
        let permit = bench
            .admit(&click())
            .unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        let review = bench.judge.review(
            permit.receipt(),
            Answer::Read {
                ok: true,
                fresh: None,
            },
        );
        assert_eq!(review.disposition, Released::Withhold, "{name}");
        assert_eq!(review.refusal.unwrap().code, expected, "{name}");
    }
}

/// Determinism: the same facts take the same fuel, every time.
#[test]
fn fuel_is_the_same_every_time() {
    let (engine, floor) = super::support::shared();
    let facts = crate::convert::dispatch(&click());
    let left = engine.limits().total_budget();
    let first = floor.module().admit_dispatch(engine, &facts, left);
    assert_eq!(first.opinion, Opinion::Allow(vec![]));
    for _ in 0..200 {
        let again = floor.module().admit_dispatch(engine, &facts, left);
        assert_eq!(
            (again.fuel, again.rules, again.opinion),
            (first.fuel, first.rules.clone(), first.opinion.clone())
        );
    }
}

/// No state survives a call: an instance that counts its calls never gets to two.
#[test]
fn every_call_gets_a_fresh_instance() {
    let body = format!(
        "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
         (if (i32.gt_u (global.get $calls) (i32.const 1)) (then (unreachable))) {}",
        super::guest::ALLOW
    );
    let guest = Guest {
        fields: "(global $calls (mut i32) (i32.const 0))",
        ..Guest::admitting(body)
    };
    let bench = Bench::new(vec![load(NAME, guest.build()).unwrap()]);
    for _ in 0..20 {
        assert_eq!(bench.code(&click()), None);
    }
}
