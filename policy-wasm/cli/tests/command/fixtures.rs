//! `maka-policy test` and `maka-policy run`.

use serde_json::json;

use super::support::{Folder, allowing, manifest, run, run_in};

const FLOOR: &str = "prebuilt:maka-floor";
const FLOOR_FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../floor/fixtures");

/// A case that the floor passes.
const SPENT: &str = "schema: maka.policy.fixture/1
name: spent
mirror: [{id: s1, state: spent}]
call:
  hook: admit-dispatch
  method: dispatch.element
  claim: {snapshot: s1, element: e1, element_digest: d1}
expect: {decision: deny, code: snapshot_spent, rules: [snap.state]}
";

/// The floor does what its fixtures say, each of its rules is seen from both sides, and no case passes for nothing.
#[test]
fn the_floor_passes_its_fixtures_with_every_rule_covered() {
    let ran = run(&["test", FLOOR, FLOOR_FIXTURES, "--min", "100", "--mutate"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("coverage 24 of 24 rules, 100 %\n"),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains(" 0 failed\n0 steps whose verdict depends on no fact\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("      depends on method,"), "{}", ran.out);
}

/// Same facts, same policy: same verdict, same rules, same fuel.
#[test]
fn two_runs_say_the_same_to_the_last_unit_of_fuel() {
    let sample = || {
        let mut value = run(&["test", FLOOR, FLOOR_FIXTURES, "--json"]).json();
        for step in value["steps"].as_array_mut().unwrap() {
            step.as_object_mut().unwrap().remove("us");
            assert!(step["fuel"].as_u64().unwrap() > 1_000, "{step}");
        }
        value
    };
    let first = sample();
    assert_eq!(first["schema"], "maka.policy.test/1");
    assert_eq!(first["failed"], 0);
    assert_eq!(first, sample());
}

#[test]
fn a_case_fails_on_everything_that_is_not_exact() {
    let folder = Folder::new();
    for (change, field, expected, got) in [
        (
            "decision: deny, code: snapshot_expired",
            "code",
            "snapshot_expired",
            "snapshot_spent",
        ),
        (
            "decision: require-approval, code: snapshot_spent",
            "decision",
            "require-approval",
            "deny",
        ),
    ] {
        let text = SPENT.replace("decision: deny, code: snapshot_spent", change);
        let file = folder.write("case.yaml", text);
        let ran = run(&["test", FLOOR, &file]);
        assert_eq!(ran.status, 1, "{ran:?}");
        let line = format!("      {field}: expected {expected}, got {got}\n");
        assert!(ran.out.contains(&line), "{line}{}", ran.out);
        assert!(
            ran.out.contains("1 steps, 0 passed, 1 failed"),
            "{}",
            ran.out
        );
    }
    for (change, field) in [
        ("rules: []", "rules"),
        ("rules: [snap.state, snap.known]", "rules"),
        (
            "rules: [snap.state], obligations: [drop-image]",
            "obligations",
        ),
        ("rules: [snap.state], fuel_max: 10", "fuel_max"),
    ] {
        let file = folder.write("case.yaml", SPENT.replace("rules: [snap.state]", change));
        let value = run(&["test", FLOOR, &file, "--json"]).json();
        assert_eq!(value["exit"], 1, "{change}");
        assert_eq!(
            value["steps"][0]["differences"][0]["field"], field,
            "{change}"
        );
    }
}

#[test]
fn coverage_under_the_minimum_is_a_status_of_its_own() {
    let folder = Folder::new();
    let file = folder.write("case.yaml", SPENT);
    let ran = run(&["test", FLOOR, &file, "--coverage"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(
        ran.out.contains("coverage 0 of 24 rules, 0 %\n"),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains("  snap.state: no passing case that allows names it\n"),
        "{}",
        ran.out
    );
    let ran = run(&["test", FLOOR, &file, "--min", "1"]);
    assert_eq!(ran.status, 3);
    assert!(
        ran.out.contains("coverage is under the minimum of 1 %"),
        "{}",
        ran.out
    );
    // A failed case is the worse news.
    let wrong = folder.write("wrong.yaml", SPENT.replace("[snap.state]", "[snap.known]"));
    assert_eq!(run(&["test", FLOOR, &wrong, "--min", "1"]).status, 1);
    assert_eq!(run(&["test", FLOOR, &file, "--min", "101"]).status, 2);
}

/// A test that passes for a policy which always says the same shows nothing.
#[test]
fn a_case_that_depends_on_no_fact_fails_under_mutation() {
    let folder = Folder::new();
    let text = "schema: maka.policy.fixture/1\nname: anything\ncall: {hook: admit-dispatch, method: observe}\n\
                expect: {decision: allow, rules: [allow.all]}\n";
    let file = folder.write("any.yaml", text);
    assert_eq!(run(&["test", "prebuilt:allow-all", &file]).status, 0);
    let ran = run(&["test", "prebuilt:allow-all", &file, "--mutate"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("depends on no fact"), "{}", ran.out);
    let file = folder.write("spent.yaml", SPENT);
    let value = run(&["test", FLOOR, &file, "--mutate", "--json"]).json();
    let facts = value["steps"][0]["depends_on"].as_array().unwrap();
    for fact in [
        "method",
        "claim.snapshot",
        "snapshot.state",
        "snapshot.session",
    ] {
        assert!(facts.contains(&json!(fact)), "{fact}: {facts:?}");
    }
    assert!(!facts.contains(&json!("orchestrator")), "{facts:?}");
}

/// Nothing is skipped: every mistake ends the run, with file, line and place.
#[test]
fn mistakes_point_at_file_line_and_place() {
    for (text, place) in [
        (
            SPENT.replace("method:", "methd:"),
            "case.yaml:6: at `/call/methd`: this key is not known here; known are hook,",
        ),
        (
            SPENT.replace("snap.state]", "snap.stat]"),
            "case.yaml:8: at `/expect/rules/0`: the policy has no rule",
        ),
        (
            SPENT.replace("state: spent", "state: used"),
            "case.yaml:3: at `/mirror/0/state`: this has to be one of never_seen, live",
        ),
        (
            SPENT.replace("schema: maka.policy.fixture/1\n", ""),
            "case.yaml:1: the file has no header",
        ),
        (SPENT.replace("]}\n", "\n"), "case.yaml:"),
        (
            SPENT.lines().take(7).collect::<Vec<_>>().join("\n"),
            "case.yaml:1: `expect` is missing",
        ),
        (
            SPENT.replace("name: spent", "name: spent\nsettings: {global_pointer: no}"),
            "case.yaml:1: the settings of this case are refused",
        ),
        (String::new(), "case.yaml:1: the file has no case"),
    ] {
        let folder = Folder::new();
        folder.write("case.yaml", &text);
        let ran = run_in(folder.path(), &["test", FLOOR, "case.yaml"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{text}");
        let expected = format!("maka-policy: {place}");
        assert!(ran.err.starts_with(&expected), "{expected}\n{}", ran.err);
    }
    let folder = Folder::new();
    let empty = run_in(folder.path(), &["test", FLOOR, "."]);
    assert_eq!(empty.status, 2);
    assert!(empty.err.contains("has no fixtures"), "{empty:?}");
    folder.write("spent.yaml", SPENT);
    folder.write("README.md", "Notes.");
    assert_eq!(run_in(folder.path(), &["test", FLOOR, "."]).status, 0);
    folder.write("spent.yaml~", SPENT);
    let odd = run_in(folder.path(), &["test", FLOOR, "."]);
    assert_eq!(odd.status, 2);
    assert!(odd.err.contains("spent.yaml~` is no fixture"), "{odd:?}");
}

/// The example that the help shows is one that works.
#[test]
fn the_fixture_in_the_help_passes() {
    let help = run(&["test", "--help"]).out;
    let shown: Vec<_> = help
        .lines()
        .skip_while(|line| *line != "  schema: maka.policy.fixture/1")
        .take_while(|line| !line.is_empty())
        .map(|line| &line[2..])
        .collect();
    assert!(shown.len() > 5, "{help}");
    let folder = Folder::new();
    let file = folder.write("shown.yaml", shown.join("\n"));
    let ran = run(&["test", FLOOR, &file, "--mutate"]);
    assert_eq!(ran.status, 0, "{ran:?}");
}

/// A fixture is never so large that a gateway would refuse its facts unasked.
#[test]
fn a_fixture_has_a_bound() {
    let folder = Folder::new();
    let long = SPENT.replace("name: spent", &format!("name: {}", "x".repeat(200 << 10)));
    let file = folder.write("long.yaml", long);
    let ran = run(&["test", FLOOR, &file]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err.contains("is larger than 196608 bytes"),
        "{}",
        ran.err
    );
}

/// JSON is YAML, so both are read by one reader.
#[test]
fn a_fixture_can_be_json() {
    let folder = Folder::new();
    let case = json!({
        "schema": "maka.policy.fixture/1", "name": "spent", "mirror": [{"id": "s1", "state": "spent"}],
        "call": {"hook": "admit-dispatch", "method": "dispatch.element",
                 "claim": {"snapshot": "s1", "element": "e1", "element_digest": "d1"}},
        "expect": {"decision": "deny", "code": "snapshot_spent", "rules": ["snap.state"]},
    });
    folder.write("compact.json", case.to_string());
    folder.write("pretty.json", format!("{case:#}\n"));
    let ran = run_in(folder.path(), &["test", FLOOR, "."]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("2 steps, 2 passed"), "{}", ran.out);
}

#[test]
fn a_call_is_explained_by_every_policy_of_the_set() {
    let folder = Folder::new();
    let policy = folder.write("hours.wasm", allowing(&manifest()));
    let text = "schema: maka.policy.fixture/1\nname: spent\nmirror: [{id: s1, state: spent}]\ncall: {hook: admit-dispatch, \
                method: dispatch.element, claim: {snapshot: s1, element: e1, element_digest: d1}}\n";
    let file = folder.write("call.yaml", text);
    let ran = run(&["run", &policy, &file]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for part in [
        "spent\nadmit-dispatch dispatch.element in session A\n",
        "\nmaka-floor  deny snapshot_spent  (",
        "  snap.state  The quoted snapshot is live.\n",
        "\nacme/hours  allow  (",
        "  hours.open  Input is sent in opening hours.\n",
        "\ntogether  deny snapshot_spent\n  An action has used this snapshot already.",
        "(retry: after_observe)\n",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    // One more policy that refuses, and the floor no longer does.
    let file = folder.write("live.yaml", "schema: maka.policy.fixture/1\nname: read\ncall: {hook: admit-dispatch, method: observe}\n");
    let value = run(&[
        "run",
        &policy,
        &file,
        "--with",
        "prebuilt:deny-all",
        "--json",
    ])
    .json();
    let step = &value["steps"][0];
    let said: Vec<_> = step["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| &policy["decision"])
        .collect();
    assert_eq!(said, [&json!("allow"), &json!("allow"), &json!("deny")]);
    assert_eq!(step["together"]["decision"], "deny");
    assert_eq!(step["as_expected"], json!(null));
    assert!(step["policies"][0]["fuel"].as_u64().unwrap() > 1_000);
}

#[test]
fn run_takes_one_case_and_compares_it() {
    let file = format!("{FLOOR_FIXTURES}/snapshots.yaml");
    let ran = run(&["run", FLOOR, &file]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("choose one case"), "{ran:?}");
    assert!(
        ran.err.contains("\"a spent snapshot is refused\""),
        "{ran:?}"
    );
    let ran = run(&[
        "run",
        FLOOR,
        &file,
        "--case",
        "sequence, the same click with the same snapshot is a repetition",
    ]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(
        ran.out
            .contains("together  deny duplicate_action\n  This very action has used this snapshot"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("as the fixture expects\n"), "{}", ran.out);
    let folder = Folder::new();
    let file = folder.write(
        "wrong.yaml",
        SPENT.replace("snapshot_spent", "snapshot_expired"),
    );
    let ran = run(&["run", FLOOR, &file]);
    assert_eq!(ran.status, 1);
    assert!(
        ran.out.contains(
            "not as the fixture expects\n  code: expected snapshot_expired, got snapshot_spent\n"
        ),
        "{}",
        ran.out
    );
}
