//! The closed sets as wholes: sizes, spellings, and the tables over them.

use std::collections::HashSet;

use maka_cu_protocol::{
    domain::{DomainCode, HostCode, SnapshotFate},
    json::Json,
    keys::NamedKey,
    method::Method,
    sets::*,
};
use serde_json::{Value, json};

/// Every word reads back as its member; every neighbour of a word is refused.
macro_rules! check_sets {
    ($($set:ident of $size:literal),+ $(,)?) => {$(
        assert_eq!($set::ALL.len(), $size, stringify!($set));
        let words: HashSet<&str> = $set::ALL.iter().map(|member| member.as_str()).collect();
        assert_eq!(words.len(), $size, stringify!($set));
        for member in $set::ALL {
            let word = member.as_str();
            assert_eq!($set::parse(word), Some(*member));
            assert_eq!($set::read(&member.write()), Ok(*member));
            let neighbours = [word.to_uppercase() + "X", format!(" {word}"), format!("{word} "), format!("{word}\0")];
            for neighbour in neighbours {
                assert_eq!($set::parse(&neighbour), None, "{neighbour}");
            }
        }
        for bad in [json!(""), json!(0), json!(null), json!(["x"]), json!({}), json!("__proto__"), json!(true)] {
            assert!($set::read(&bad).is_err(), "{} took {bad}", stringify!($set));
        }
    )+};
}

#[test]
fn every_set_is_closed() {
    check_sets! {
        Tier of 3, Path of 7, Outcome of 4, Effect of 3, VerificationMethod of 6, SettleReason of 4, WaitedReason of 3,
        ScreenRecordingProbe of 3, ImageAbsence of 1, CaptureScope of 2, Strictness of 2, OcclusionPolicy of 3, FocusPolicy of 2,
        SettleMode of 2, Space of 1, GenericSpace of 2, MenuScopeKind of 3, Presentation of 3, ChangeKind of 3,
        ImageFormat of 2, MouseButton of 3, Direction of 4, ElementVerb of 14, ElementActionKind of 8,
        PointActionKind of 10, KeyActionKind of 2, Modifier of 5, Permission of 2, LifecycleCode of 4,
        RequestStage of 4, ReleaseReason of 6, ServiceState of 6, ChangedInput of 10, TextField of 4, NamedKey of 26,
        DomainCode of 30, HostCode of 31, Method of 17,
    }
}

/// §1.3: one fixed sentence per code, all different, nothing to fill in.
#[test]
fn sentences_are_fixed_and_distinct() {
    let sentences: HashSet<&str> = DomainCode::ALL.iter().map(|code| code.sentence()).collect();
    assert_eq!(sentences.len(), DomainCode::ALL.len());
    for sentence in sentences {
        assert!(
            sentence.ends_with('.') && !sentence.contains(['{', '%', '_']),
            "{sentence}"
        );
    }
}

/// §6.8, the table as printed.
#[test]
fn codes_map_as_the_table_says() {
    use SnapshotFate::{Dead, HostDrops, Live, NotQuoted, Spent};
    let rows: &[(&str, &str, SnapshotFate)] = &[
        (
            "snapshot_unknown snapshot_expired snapshot_evicted",
            "stale_frame",
            Dead,
        ),
        ("snapshot_spent", "duplicate_action", Dead),
        ("snapshot_superseded", "stale_epoch", Dead),
        ("element_unknown", "stale_frame", Live),
        ("element_digest_mismatch", "stale_frame", HostDrops),
        (
            "element_released process_replaced window_gone",
            "target_missing",
            Live,
        ),
        ("app_not_found", "target_missing", NotQuoted),
        (
            "element_changed window_changed focus_changed",
            "target_changed",
            Live,
        ),
        ("window_occluded", "target_occluded", Live),
        (
            "element_not_actionable element_disabled unsupported_action not_implemented",
            "unsupported_action",
            Live,
        ),
        ("permission_missing", "permission_missing", Live),
        ("screen_locked", "screen_locked", Live),
        ("physical_input_active", "user_intervened", Live),
        ("invalid_point", "invalid_coordinate", Live),
        (
            "capture_failed response_too_large image_write_failed",
            "capture_failed",
            NotQuoted,
        ),
        ("outcome_unknown", "outcome_unknown", Spent),
        ("aborted", "aborted", Live),
        ("timeout", "timeout", NotQuoted),
        ("dispatch_refused", "dispatch_refused", Live),
    ];
    let mut seen = 0;
    for (codes, host, fate) in rows {
        for code in codes.split(' ') {
            let code = DomainCode::parse(code).unwrap();
            assert_eq!(
                (code.host_code().as_str(), code.snapshot_fate()),
                (*host, *fate),
                "{code}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, DomainCode::ALL.len());
}

/// §6.2: every path but `none` belongs to exactly one tier.
#[test]
fn each_path_has_one_tier() {
    for path in Path::ALL.iter().filter(|path| **path != Path::None) {
        assert_eq!(
            Tier::ALL.iter().filter(|tier| tier.allows(*path)).count(),
            1,
            "{path}"
        );
    }
    assert!(Tier::ALL.iter().all(|tier| tier.allows(Path::None)));
}

#[test]
fn a_set_is_written_as_its_word() {
    assert_eq!(
        Tier::CoordinateBackground.write(),
        Value::from("coordinate-background")
    );
}
