//! Transcripts of the rules in §12.2, rows 18 to 24, and §7.

use maka_cu_protocol::{
    json::{Reason, Violation},
    results::{self, Answer, dispatch},
    sets::{ElementVerb, Outcome, Path, Tier},
};
use serde_json::{Value, json};

use crate::{matrix::replaced, samples};

fn observe(value: &Value) -> Result<(), Violation> {
    results::read_observe(value, &samples::observe_expectation()).map(|_| ())
}

fn dispatch(value: &Value) -> Result<(), Violation> {
    let call = samples::call_id();
    dispatch::read_dispatch(value, &samples::dispatch_expectation(&call)).map(|_| ())
}

/// One changed field of a valid snapshot, and the violation it must give.
fn check_snapshot(path: &str, value: Value, field: &str, reason: Reason) {
    let path = format!("snapshot.{path}");
    let expected = Violation::of(&format!("snapshot.{field}"), reason);
    let shown = format!("{path} = {value}");
    assert_eq!(
        observe(&replaced(&samples::observed(), &path, value)),
        Err(expected),
        "{shown}"
    );
}

/// Rows 18, 19 and 24, and §12.6 row 65's empty strings.
#[test]
fn snapshot_fields() {
    let hex = samples::HASH.strip_prefix("sha256:").unwrap();
    for field in ["elements[1].digest", "windowDigest", "image.sha256"] {
        check_snapshot(field, json!(hex), field, Reason::NotDigest);
        check_snapshot(
            field,
            json!(samples::HASH.to_uppercase()),
            field,
            Reason::NotDigest,
        );
    }
    check_snapshot(
        "elements[1].parentToken",
        json!(3),
        "elements[1].parentToken",
        Reason::NotString,
    );
    check_snapshot(
        "elements[1].parentToken",
        json!(""),
        "elements[1].parentToken",
        Reason::Empty,
    );
    check_snapshot(
        "focusedElementToken",
        json!(true),
        "focusedElementToken",
        Reason::NotString,
    );
    check_snapshot(
        "focusedElementToken",
        json!(""),
        "focusedElementToken",
        Reason::Empty,
    );
    check_snapshot(
        "elements[0].selected",
        json!("yes"),
        "elements[0].selected",
        Reason::NotBool,
    );
    check_snapshot(
        "elements[0].label",
        json!(4),
        "elements[0].label",
        Reason::NotString,
    );
    check_snapshot(
        "elements[0].role",
        json!(""),
        "elements[0].role",
        Reason::Empty,
    );
    check_snapshot(
        "elements[0].actions[1]",
        json!("press the button"),
        "elements[0].actions[1]",
        Reason::OutOfSet,
    );
    check_snapshot(
        "elements[0].truncated[0]",
        json!("role"),
        "elements[0].truncated[0]",
        Reason::OutOfSet,
    );
    check_snapshot(
        "elements[0].frame.width",
        json!("1"),
        "elements[0].frame.width",
        Reason::NotNumber,
    );
    check_snapshot(
        "selectedText.text",
        json!(""),
        "selectedText.text",
        Reason::Empty,
    );
    check_snapshot("target.appId", json!(""), "target.appId", Reason::Empty);
    check_snapshot("target.pid", json!(1.5), "target.pid", Reason::NotWhole);
    check_snapshot("target.pid", json!(-1), "target.pid", Reason::NotWhole);
    check_snapshot("capturedAt", json!(-1), "capturedAt", Reason::OutOfRange);
    check_snapshot(
        "image.format",
        json!("PNG"),
        "image.format",
        Reason::OutOfSet,
    );
    check_snapshot(
        "elements[1].token",
        json!("el_1"),
        "elements[1].token",
        Reason::Duplicate,
    );
    check_snapshot(
        "menu.elements[0].token",
        json!("el_1"),
        "menu.elements[0].token",
        Reason::Duplicate,
    );

    let empty = replaced(
        &samples::observed(),
        "snapshot.elements[0].title",
        json!(""),
    );
    assert_eq!(observe(&empty), Ok(()));
    // A parent that is not in the tree is a hint lost (§12.6 row 66).
    let dangling = replaced(
        &samples::observed(),
        "snapshot.elements[1].parentToken",
        json!("el_x"),
    );
    assert_eq!(observe(&dangling), Ok(()));
}

/// Row 24: every declared action is accepted, `label: null` is absent, `value: ""` is kept (row 18).
#[test]
fn declared_actions_and_empty_values_are_kept() {
    let actions: Vec<&str> = ElementVerb::ALL.iter().map(|verb| verb.as_str()).collect();
    let mut message = replaced(
        &samples::observed(),
        "snapshot.elements[0].actions",
        json!(actions),
    );
    message["snapshot"]["elements"][0]["label"] = Value::Null;
    let Ok(Answer::Done(snapshot)) =
        results::read_observe(&message, &samples::observe_expectation())
    else {
        panic!("the snapshot was refused");
    };
    let root = &snapshot.elements[0];
    assert_eq!(root.actions, ElementVerb::ALL);
    assert_eq!(root.label, None);
    assert_eq!(root.value.as_ref().map(|value| value.as_str()), Some(""));
}

/// Row 20.
#[test]
fn stable_ids_and_differences() {
    for bad in [json!(-1), json!(1.5), json!("7")] {
        check_snapshot(
            "elements[1].stableId",
            bad,
            "elements[1].stableId",
            Reason::NotWhole,
        );
    }
    check_snapshot(
        "elements[1].stableId",
        json!(0),
        "elements[1].stableId",
        Reason::Duplicate,
    );
    let rows = [
        (
            "difference.presentation",
            json!("delta"),
            "difference.presentation",
            Reason::OutOfSet,
        ),
        (
            "difference.presentation",
            json!("no-change"),
            "difference.changes",
            Reason::Contradiction,
        ),
        (
            "difference.presentation",
            json!("full"),
            "difference.changes",
            Reason::Contradiction,
        ),
        (
            "difference.changes[0].kind",
            json!("move"),
            "difference.changes[0].kind",
            Reason::OutOfSet,
        ),
        // A removal with a token, an update without one.
        (
            "difference.changes[1].kind",
            json!("remove"),
            "difference.changes[1].token",
            Reason::NotAllowed,
        ),
        (
            "difference.changes[0].kind",
            json!("insert"),
            "difference.changes[0].token",
            Reason::Missing,
        ),
        (
            "difference.changes[0].path",
            json!([]),
            "difference.changes[0].path",
            Reason::Empty,
        ),
        (
            "difference.changes[0].path",
            json!([0, -1]),
            "difference.changes[0].path[1]",
            Reason::NotWhole,
        ),
        (
            "difference.changes[1].token",
            json!("el_9"),
            "difference.changes[1].token",
            Reason::Dangling,
        ),
        (
            "difference.changes[1].token",
            json!("el_1"),
            "difference.changes[1].stableId",
            Reason::Mismatch,
        ),
        (
            "difference.removedStableIdRanges[0]",
            json!({"start": 7, "end": 5}),
            "difference.removedStableIdRanges[0].end",
            Reason::OutOfRange,
        ),
        (
            "difference.removedStableIdRanges[0]",
            json!({"start": 20, "end": 30}),
            "difference.removedStableIdRanges[0]",
            Reason::Contradiction,
        ),
    ];
    for (path, value, field, reason) in rows {
        check_snapshot(path, value, field, reason);
    }

    let mut unnumbered = samples::observed();
    for element in unnumbered["snapshot"]["elements"].as_array_mut().unwrap() {
        element.as_object_mut().unwrap().remove("stableId");
    }
    assert_eq!(
        observe(&unnumbered),
        Err(Violation::of("snapshot.difference", Reason::Contradiction))
    );
    unnumbered["snapshot"]["difference"] = Value::Null;
    assert_eq!(observe(&unnumbered), Ok(()));

    let nothing = replaced(
        &samples::observed(),
        "snapshot.difference",
        json!({"baseSnapshotId": "s", "presentation": "difference", "changes": [], "removedStableIdRanges": []}),
    );
    let expected = Violation::of("snapshot.difference.presentation", Reason::Contradiction);
    assert_eq!(observe(&nothing), Err(expected));
}

/// Row 22: paths.
#[test]
fn paths_and_tiers() {
    let path = |value: Value| replaced(&samples::dispatched(), "path", value);
    for bad in [
        json!("ax_press"),
        json!("AX_ACTION"),
        json!(""),
        json!(3),
        Value::Null,
    ] {
        assert_eq!(
            dispatch(&path(bad.clone())),
            Err(Violation::of("path", Reason::OutOfSet)),
            "{bad}"
        );
    }
    let mut absent = samples::dispatched();
    absent.as_object_mut().unwrap().remove("path");
    assert_eq!(
        dispatch(&absent),
        Err(Violation::of("path", Reason::Missing))
    );

    for tier in Tier::ALL {
        for path in Path::ALL {
            let mut message = samples::dispatched();
            (message["tier"], message["path"]) = (json!(tier.as_str()), json!(path.as_str()));
            let expected = if !tier.allows(*path) {
                Err(Violation::of("path", Reason::IllegalPair))
            } else if *path == Path::CgEventGlobal {
                Err(Violation::of("path", Reason::GlobalPointer))
            } else {
                Ok(())
            };
            assert_eq!(dispatch(&message), expected, "{tier} {path}");
        }
    }
    let bad = replaced(&samples::dispatched(), "tier", json!("AX"));
    assert_eq!(dispatch(&bad), Err(Violation::of("tier", Reason::OutOfSet)));
    let bad = replaced(&samples::dispatched(), "outcome", json!("success"));
    assert_eq!(
        dispatch(&bad),
        Err(Violation::of("outcome", Reason::OutOfSet))
    );
    // An unknown path beside a wrong tier names the path's own field (checked after membership, §7).
    let mut bad = replaced(&samples::dispatched(), "path", json!("warp"));
    bad["tier"] = json!("coordinate-background");
    assert_eq!(dispatch(&bad), Err(Violation::of("path", Reason::OutOfSet)));
}

/// A global path on the refusal arm moved the cursor too (§6.4); with permission it is legal.
#[test]
fn global_pointer_on_either_arm() {
    let mut failed = samples::dispatch_refused();
    failed["outcome"] = json!("failed");
    (failed["tier"], failed["path"]) = (json!("coordinate-background"), json!("cg_event_global"));
    assert_eq!(
        dispatch(&failed),
        Err(Violation::of("path", Reason::GlobalPointer))
    );
    let call = samples::call_id();
    let mut expected = samples::dispatch_expectation(&call);
    expected.allow_global_pointer = true;
    assert!(dispatch::read_dispatch(&failed, &expected).is_ok());
}

/// Rows 23 and 42, and the contradictions of §7.
#[test]
fn refusals_and_contradictions() {
    let rows = [
        (
            samples::dispatch_refused(),
            "error.code",
            json!("target_missing"),
            "error.code",
            Reason::OutOfSet,
        ),
        (
            samples::dispatch_refused(),
            "error.code",
            json!(""),
            "error.code",
            Reason::OutOfSet,
        ),
        (
            samples::dispatch_refused(),
            "error.message",
            json!(""),
            "error.message",
            Reason::Empty,
        ),
        (
            samples::dispatch_refused(),
            "error.detail.wouldRequirePath",
            json!("teleport"),
            "error.detail.wouldRequirePath",
            Reason::OutOfSet,
        ),
        (
            samples::dispatch_refused(),
            "error.detail.changed[0]",
            json!("colour"),
            "error.detail.changed[0]",
            Reason::OutOfSet,
        ),
        (
            samples::dispatched(),
            "outcome",
            json!("refused"),
            "outcome",
            Reason::Contradiction,
        ),
        (
            samples::dispatch_refused(),
            "outcome",
            json!("ok"),
            "outcome",
            Reason::Contradiction,
        ),
        (
            samples::dispatch_refused(),
            "effect",
            json!("confirmed"),
            "effect",
            Reason::Contradiction,
        ),
        (
            samples::dispatched(),
            "toolCallId",
            json!("call_2"),
            "toolCallId",
            Reason::Mismatch,
        ),
        (
            samples::dispatched(),
            "ok",
            json!("true"),
            "ok",
            Reason::NotBool,
        ),
        (
            samples::dispatched(),
            "settle.reason",
            json!("bored"),
            "settle.reason",
            Reason::OutOfSet,
        ),
        (
            samples::dispatched(),
            "settle.waitedMs",
            json!("1"),
            "settle.waitedMs",
            Reason::NotNumber,
        ),
        (
            samples::dispatched(),
            "snapshot.target.pid",
            json!(1),
            "snapshot.target.pid",
            Reason::Mismatch,
        ),
        (
            samples::dispatched(),
            "snapshot.image.path",
            json!("/abs/images/../x.png"),
            "snapshot.image.path",
            Reason::NotAbsolutePath,
        ),
        (
            samples::dispatched(),
            "snapshot.image.path",
            json!("/abs/images"),
            "snapshot.image.path",
            Reason::OutsideImageDir,
        ),
        (
            samples::dispatched(),
            "snapshot.image.path",
            json!("/abs/images2/x.png"),
            "snapshot.image.path",
            Reason::OutsideImageDir,
        ),
    ];
    for (sample, path, value, field, reason) in rows {
        let shown = format!("{path} = {value}");
        assert_eq!(
            dispatch(&replaced(&sample, path, value)),
            Err(Violation::of(field, reason)),
            "{shown}"
        );
    }
    let bare = json!({"ok": false, "error": {"code": "window_gone", "message": "x"}});
    assert_eq!(
        dispatch(&bare),
        Err(Violation::of("toolCallId", Reason::Missing))
    );

    let mut lost = samples::dispatched();
    lost["snapshot"] = Value::Null;
    lost["postObservationError"] = json!({"code": "window_gone", "message": "x"});
    assert_eq!(dispatch(&lost), Ok(()));
    lost["postObservationError"]["code"] = json!("window_vanished");
    assert_eq!(
        dispatch(&lost),
        Err(Violation::of("postObservationError.code", Reason::OutOfSet))
    );
}

/// §12.6 row 73: a requested image that is missing, and a window that was not asked for.
#[test]
fn observe_answers_the_question() {
    let mut without = samples::observed();
    without["snapshot"].as_object_mut().unwrap().remove("image");
    let mut expected = samples::observe_expectation();
    assert!(results::read_observe(&without, &expected).is_ok());
    expected.image = true;
    let missing = results::read_observe(&without, &expected).unwrap_err();
    assert_eq!(missing, Violation::of("snapshot.image", Reason::Missing));
    // C10: left out with the reason is not left out in silence; beside a picture the reason makes no sense.
    without["snapshot"]["imageAbsence"] = json!("not_offered");
    assert!(results::read_observe(&without, &expected).is_ok());
    let mut both = samples::observed();
    both["snapshot"]["imageAbsence"] = json!("not_offered");
    let both = results::read_observe(&both, &expected).unwrap_err();
    let contradiction = Violation::of("snapshot.imageAbsence", Reason::Contradiction);
    assert_eq!(both, contradiction);

    expected.window = Some(maka_cu_protocol::ids::WindowKey {
        pid: 5021,
        window_id: 319,
    });
    let other = results::read_observe(&samples::observed(), &expected).unwrap_err();
    assert_eq!(
        other,
        Violation::of("snapshot.target.windowId", Reason::Mismatch)
    );
}

/// §12.1 row 4 and field report H14: limits of nothing, less than nothing, half, and more than a number.
#[test]
fn handshake_limits() {
    let bad = [
        (json!(0), Reason::OutOfRange),
        (json!(-1), Reason::NotWhole),
        (json!(2.5), Reason::NotWhole),
        (json!("64"), Reason::NotWhole),
        (json!(true), Reason::NotWhole),
        (json!(1_u64 << 63), Reason::NotWhole),
        (json!(1e300), Reason::NotWhole),
    ];
    let limits = samples::hello_answer()["limits"].clone();
    for name in limits
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| *name != "notALimitWeKnow")
    {
        let field = format!("limits.{name}");
        for (value, reason) in &bad {
            let message = replaced(&samples::hello_answer(), &field, value.clone());
            assert_eq!(
                results::read_hello(&message),
                Err(Violation::of(&field, *reason)),
                "{field} = {value}"
            );
        }
    }
    let Ok(Answer::Done(handshake)) = results::read_hello(&samples::hello_answer()) else {
        panic!("the handshake was refused");
    };
    assert_eq!(
        handshake.limits,
        maka_cu_protocol::handshake::Limits::default()
    );
}

/// Our additions to §7: a confirmation needs a check, and a code that says "unknown" is believed over an outcome that
/// says "nothing was done".
#[test]
fn a_claim_of_success_or_of_nothing_needs_its_grounds() {
    let call = samples::call_id();
    let read =
        |value: &Value| dispatch::read_dispatch(value, &samples::dispatch_expectation(&call));
    let mut confirmed = samples::dispatched();
    confirmed["effect"] = json!("confirmed");
    confirmed["verification"] = json!({"method": "none", "observedChange": false});
    let expected = Violation::of("effect", Reason::Contradiction);
    assert_eq!(read(&confirmed).map(|_| ()), Err(expected));

    for outcome in ["refused", "failed"] {
        let mut refused = samples::dispatch_refused();
        refused["outcome"] = json!(outcome);
        refused["error"]["code"] = json!("outcome_unknown");
        let answer = read(&refused).unwrap();
        assert_eq!(answer.ending.outcome(), Outcome::Unknown, "{outcome}");
    }
}
