//! What a reader makes of answers beyond single fields: permissions, envelopes, canonical digests, speed of scale.

use maka_cu_protocol::{
    digest::{ElementDigestInput, element_digest, value_digest, window_digest},
    domain::DomainCode,
    geometry::{ScreenRect, WindowRect},
    handshake::Limits,
    ids::Digest,
    json::{Json, Reason, Violation},
    refusal::Refusal,
    results::{self, Answer, Envelope, Permissions, lists},
    sets::{ElementVerb, Path},
    snapshot::Snapshot,
};
use serde_json::{Value, json};

use crate::samples;

/// §3.11: granted is exactly `true`; nothing else is.
#[test]
fn permissions_are_granted_by_true_alone() {
    for not_true in [
        json!(false),
        json!(1),
        json!("true"),
        Value::Null,
        json!([]),
    ] {
        let answer = json!({"ok": true, "accessibility": not_true, "screenRecording": true});
        let Ok(Answer::Done(Permissions {
            accessibility,
            screen_recording,
            ..
        })) = results::read_permissions(&answer)
        else {
            panic!("{answer}");
        };
        assert!(!accessibility && screen_recording, "{answer}");
    }
    let invented = json!({"ok": true, "accessibility": true, "screenRecording": true, "screenRecordingProbe": "hoped"});
    let expected = Violation::of("screenRecordingProbe", Reason::OutOfSet);
    assert_eq!(results::read_permissions(&invented), Err(expected));
}

/// §2.2: the sample has two elements on two levels and one in its menu, and says so to the limit; one less is a broken word.
#[test]
fn executors_keep_their_own_limits() {
    let snapshot = Snapshot::read(&samples::snapshot()).unwrap();
    let exact = Limits {
        max_elements: 2,
        max_depth: 2,
        max_menu_elements: Some(1),
        ..Limits::default()
    };
    let tighter = |change: fn(&mut Limits)| {
        let mut limits = exact;
        change(&mut limits);
        limits
    };
    let rows = [
        (exact, None),
        (tighter(|it| it.max_menu_elements = None), None),
        (tighter(|it| it.max_elements = 1), Some("elements")),
        (tighter(|it| it.max_depth = 1), Some("elements[1].depth")),
        (
            tighter(|it| it.max_menu_elements = Some(0)),
            Some("menu.elements"),
        ),
    ];
    for (limits, field) in rows {
        let expected = field.map(|field| Violation::of(field, Reason::OutOfRange));
        assert_eq!(snapshot.check_limits(&limits).err(), expected, "{limits:?}");
    }
}

/// §12.2 row 21 and §3.2: one malformed entry spoils the list, an unusable ornament does not.
#[test]
fn lists_are_all_or_nothing() {
    let mut list = samples::window_list();
    let mut broken = list["windows"][0].clone();
    broken.as_object_mut().unwrap().remove("zIndex");
    list["windows"].as_array_mut().unwrap().push(broken);
    assert_eq!(
        lists::read_window_list(&list),
        Err(Violation::of("windows[1].zIndex", Reason::Missing))
    );
    list["windows"][1]["zIndex"] = json!(3);
    list["windows"][1]["bounds"] = json!("everywhere");
    let Ok(Answer::Done(read)) = lists::read_window_list(&list) else {
        panic!("{list}")
    };
    assert_eq!((read.windows.len(), read.windows[1].bounds), (2, None));
}

#[test]
fn envelopes_keep_the_raw_fields() {
    let Ok(Envelope::Refused(refusal, fields)) = Envelope::read(samples::dispatch_refused()) else {
        panic!()
    };
    assert_eq!(refusal.code, DomainCode::ElementChanged);
    assert_eq!(fields["toolCallId"], json!("call_1"));
    let envelope = Envelope::read(samples::observed()).unwrap();
    assert!(!format!("{envelope:?}").contains("Untitled"));
    assert_eq!(envelope.into_value(), samples::observed());
    assert_eq!(
        Envelope::read(json!([])),
        Err(Violation::of("", Reason::NotObject))
    );
}

/// §1.3 and §6.8: what the executor writes about a refusal is code, fixed sentence, enums and numbers.
#[test]
fn refusals_are_written_with_our_sentence() {
    let written = maka_cu_protocol::json::Json::write(&Refusal::would_require(Path::CgEventGlobal));
    let expected = json!({
        "code": "dispatch_refused", "message": DomainCode::DispatchRefused.sentence(),
        "detail": {"wouldRequirePath": "cg_event_global"}
    });
    assert_eq!(written, expected);
    let written = maka_cu_protocol::json::Json::write(&Refusal::new(DomainCode::WindowGone));
    assert_eq!(
        written,
        json!({"code": "window_gone", "message": DomainCode::WindowGone.sentence()})
    );
}

/// §4.5: the canonical form, byte for byte, against texts written by hand.
#[test]
fn canonical_forms() {
    let plain = ElementDigestInput {
        role: "AXButton".to_owned(),
        subrole: None,
        ax_identifier: Some("a\"b\\c\n\r\t\u{1}\u{8}/é".into()),
        title: Some("".into()),
        label: None,
        value_digest: Some(value_digest("v")),
        frame: Some(WindowRect::try_new(0.5, -0.5, 1.49, -0.2).unwrap()),
        actions: vec![ElementVerb::ShowMenu, ElementVerb::Press],
        ancestor_roles: (0..10).map(|index| format!("R{index}")).collect(),
        sibling_index: 3,
    };
    let text = format!(
        r#"["AXButton",null,"a\"b\\c\n\r\t\u0001\u0008/é","",null,"{}",[1,-1,1,0],["press","show_menu"],{},3]"#,
        value_digest("v"),
        r#"["R0","R1","R2","R3","R4","R5","R6","R7"]"#,
    );
    assert_eq!(element_digest(&plain), Digest::of(text.as_bytes()));

    let bare = ElementDigestInput {
        ax_identifier: None,
        title: None,
        value_digest: None,
        frame: None,
        actions: Vec::new(),
        ancestor_roles: Vec::new(),
        sibling_index: 0,
        ..plain
    };
    let text = r#"["AXButton",null,null,null,null,null,null,[],[],0]"#;
    assert_eq!(element_digest(&bare), Digest::of(text.as_bytes()));

    let (one, two) = (Digest::from_bytes([2; 32]), Digest::from_bytes([1; 32]));
    let bounds = ScreenRect::try_new(-1900.0, 60.0, 900.0, 600.0).unwrap();
    let text = format!(r#"[["{two}","{one}","{one}"],[-1900,60,900,600],null]"#);
    assert_eq!(
        window_digest([one, two, one], bounds, None),
        Digest::of(text.as_bytes())
    );
}

/// A snapshot at the element limit is read whole, and a difference over it is checked without comparing all with all.
#[test]
fn snapshots_at_the_limit_are_read() {
    let mut message = samples::observed();
    let elements: Vec<Value> = (0..1500)
        .map(|index| samples::element(&format!("el_{index}"), index, (index > 0).then_some("el_0")))
        .collect();
    message["snapshot"]["elements"] = json!(elements);
    let changes: Vec<Value> = (0..1500)
        .map(|index| json!({"kind": "update", "path": [0, index], "stableId": index, "token": format!("el_{index}")}))
        .collect();
    message["snapshot"]["difference"] = json!({
        "baseSnapshotId": "s", "presentation": "difference", "changes": changes,
        "removedStableIdRanges": [{"start": 1500, "end": 9_007_199_254_740_991_u64}]
    });
    let Ok(Answer::Done(snapshot)) =
        results::read_observe(&message, &samples::observe_expectation())
    else {
        panic!("the snapshot was refused");
    };
    assert_eq!(snapshot.elements.len(), 1500);
}
