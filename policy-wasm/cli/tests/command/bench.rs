//! `maka-policy bench`.

use super::support::run;

const FLOOR: &str = "prebuilt:maka-floor";
const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../floor/fixtures/snapshots.yaml"
);

/// Fuel is exact: every run of a call takes the same, and a benchmark takes what a test takes.
#[test]
fn fuel_is_the_same_in_every_run_and_in_a_test() {
    let bench = run(&["bench", FLOOR, FIXTURES, "--runs", "20", "--json"]);
    assert_eq!(bench.status, 0, "{bench:?}");
    let bench = bench.json();
    let test = run(&["test", FLOOR, FIXTURES, "--json"]).json();
    let (calls, steps) = (
        bench["calls"].as_array().unwrap(),
        test["steps"].as_array().unwrap(),
    );
    assert_eq!(calls.len(), steps.len());
    for (call, step) in calls.iter().zip(steps) {
        assert_eq!(call["steady"], true, "{call}");
        assert_eq!(call["name"], step["name"]);
        assert_eq!(call["fuel"], step["fuel"], "{call}");
        assert_eq!(call["code"], step["code"], "{call}");
        let number = |key: &str| call[key].as_u64().unwrap();
        assert!(number("p50_us") <= number("p99_us"), "{call}");
        assert!(
            (1 << 16..=16 << 20).contains(&number("memory_bytes")),
            "{call}"
        );
    }
    assert_eq!(bench["policy"]["digest"], test["policy"]["digest"]);
}

#[test]
fn one_case_can_be_chosen() {
    let case = ["--case", "a spent snapshot is refused", "--runs", "1"];
    let ran = run(&[&["bench", FLOOR, FIXTURES][..], &case].concat());
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(
        ran.out.starts_with("maka-floor 0.1.0: loaded in "),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .ends_with("  a spent snapshot is refused (deny snapshot_spent)\n"),
        "{}",
        ran.out
    );
    assert_eq!(ran.out.lines().count(), 4, "{}", ran.out);
    for wrong in [
        ["--case", "nothing"],
        ["--runs", "0"],
        ["--runs", "1000001"],
    ] {
        let ran = run(&[&["bench", FLOOR, FIXTURES][..], &wrong].concat());
        assert_eq!(ran.status, 2, "{wrong:?}");
    }
}
