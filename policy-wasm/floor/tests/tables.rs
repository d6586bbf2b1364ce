//! The floor against tables that were written independently of its code.
//!
//! Every combination is enumerated, none is sampled.

mod corpus;

use corpus::*;
use maka_floor::facts::*;
use maka_floor::{
    Decision, Denial, Disposition, GRANT_GLOBAL_POINTER, GlobalPointer, ReviewVerdict, Rule,
    Settings, Verdict, admit_cdp, admit_dispatch, review_result,
};

/// Which paths belong to which tier. `+` belongs, `x` does not, `p` moves the pointer.
const PAIRING: &str = "
                       ax_action ax_attribute ax_select cg_event_pid skylight_pid cg_event_global none
 ax                        +          +           +          x            x              x          +
 semantic-background       x          x           x          x            x              x          +
 coordinate-background     x          x           x          +            +              p          +
";

/// What is wrong with a snapshot, in the order in which it is said. Each row names one property that has to hold.
const BINDING: &[(&str, &str)] = &[
    ("state!=never_seen", "snapshot_unknown"),
    ("own_session", "snapshot_foreign_session"),
    ("state!=other_generation", "snapshot_other_generation"),
    ("same_generation", "snapshot_other_generation"),
    ("state!=spent", "snapshot_spent"),
    ("state!=superseded", "snapshot_superseded"),
    ("state!=expired", "snapshot_expired"),
    ("state!=evicted", "snapshot_evicted"),
    ("same_target", "target_mismatch"),
    ("same_window_digest", "window_digest_mismatch"),
    ("same_element_digest", "element_digest_mismatch"),
];

fn cell(tier: Tier, path: Path) -> char {
    let mut lines = PAIRING
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = lines.next().expect("the first line names the paths");
    let column = header.iter().position(|name| *name == path.as_str());
    let row = lines
        .find(|row| row[0] == tier.as_str())
        .expect("every tier has a row");
    let cell = row[1 + column.expect("every path has a column")];
    cell.chars().next().expect("words are not empty")
}

fn code(verdict: &Verdict) -> Option<&str> {
    match &verdict.decision {
        Decision::Allow(obligations) => {
            assert!(obligations.is_empty());
            None
        }
        Decision::Deny(code) | Decision::RequireApproval(code) => Some(code),
    }
}

fn permitted(head: &Head) -> bool {
    head.authority.allow_global_pointer && head.caller.holds(GRANT_GLOBAL_POINTER)
}

#[test]
fn routes_are_admitted_as_the_pairing_table_says() {
    let mut rows = 0;
    for facts in routes() {
        let (tier, path) = (facts.claim.tier.unwrap(), facts.claim.path.unwrap());
        let expected = match cell(tier, path) {
            '+' => None,
            'x' => Some("tier_path_mismatch"),
            'p' if permitted(&facts.head) => None,
            'p' => Some("global_pointer_forbidden"),
            other => panic!("{other}"),
        };
        let verdict = admit_dispatch(Settings::default(), &facts);
        assert_eq!(
            code(&verdict),
            expected,
            "{tier:?} {path:?} {:?}",
            facts.head.authority
        );
        rows += 1;
    }
    assert_eq!(rows, 3 * 7 * 2 * 2);
}

#[test]
fn results_are_reviewed_as_the_pairing_table_says() {
    let mut rows = 0;
    for facts in reviews() {
        let Subject::Dispatch(result) = &facts.subject else {
            panic!("routes are dispatches")
        };
        let honest = result.effect != Effect::Confirmed || result.outcome == Outcome::Ok;
        let expected = match cell(result.tier, result.path) {
            'x' => Some("tier_path_mismatch"),
            'p' if !permitted(&facts.head) => Some("global_pointer_forbidden"),
            _ if !honest => Some("outcome_dishonest"),
            _ => None,
        };
        let verdict = review_result(Settings::default(), &facts);
        let expected = match expected {
            Some(code) => Disposition::Quarantine(code.into()),
            None => Disposition::Release(vec![]),
        };
        assert_eq!(verdict.disposition, expected, "{result:?}");
        rows += 1;
    }
    // 504 rows, with and without the grant.
    assert_eq!(rows, 3 * 7 * 2 * 4 * 3 * 2);
}

#[test]
fn bindings_are_refused_in_the_order_of_the_table() {
    let mut rows = 0;
    for (binding, facts) in bindings() {
        let holds = |property: &str| match property.strip_prefix("state!=") {
            Some(state) => binding.state.as_str() != state,
            None => match property {
                "own_session" => binding.own_session,
                "same_generation" => binding.same_generation,
                "same_target" => binding.same_target,
                "same_window_digest" => binding.same_window_digest,
                // A point has no element.
                "same_element_digest" => {
                    binding.same_element_digest || facts.claim.element_token.is_none()
                }
                other => panic!("{other}"),
            },
        };
        let expected = BINDING
            .iter()
            .find(|(property, _)| !holds(property))
            .map(|(_, code)| *code);
        let verdict = admit_dispatch(Settings::default(), &facts);
        assert_eq!(
            code(&verdict),
            expected,
            "{binding:?} {}",
            facts.head.method
        );
        rows += 1;
    }
    assert_eq!(rows, 7 * 32 * 3);
}

#[test]
fn every_case_has_the_code_of_its_row() {
    for (name, facts, expected) in cases() {
        let verdict = admit_dispatch(Settings::default(), &facts);
        assert_eq!(code(&verdict), expected, "{name}");
    }
    for (name, facts, expected) in commands() {
        assert_eq!(code(&admit_cdp(&facts)), expected, "{name}");
    }
}

/// Every rule has a case in which it holds and one in which it refuses, and every denial is given by some case.
#[test]
fn every_rule_is_seen_on_both_sides() {
    let admits = routes()
        .chain(bindings().map(|(_, facts)| facts))
        .chain(cases().into_iter().map(|(_, facts, _)| facts))
        .map(|facts| admit_dispatch(Settings::default(), &facts))
        .chain(
            commands()
                .into_iter()
                .map(|(_, facts, _)| admit_cdp(&facts)),
        );
    let mut held = vec![false; Rule::ALL.len()];
    let mut refused = held.clone();
    let mut codes = std::collections::BTreeSet::new();
    for verdict in admits {
        let side = if code(&verdict).is_none() {
            &mut held
        } else {
            &mut refused
        };
        for rule in &verdict.rules {
            side[usize::from(*rule)] = true;
        }
        codes.extend(code(&verdict).map(str::to_owned));
    }
    for ReviewVerdict { disposition, rules } in reviews()
        .chain(fresh())
        .map(|facts| review_result(Settings::default(), &facts))
    {
        let code = match disposition {
            Disposition::Release(_) => None,
            Disposition::Withhold(code) | Disposition::Quarantine(code) => Some(code),
        };
        let side = if code.is_none() {
            &mut held
        } else {
            &mut refused
        };
        for rule in &rules {
            side[usize::from(*rule)] = true;
        }
        codes.extend(code);
    }
    for rule in Rule::ALL {
        assert!(held[usize::from(rule.index())], "{} never holds", rule.id());
        assert!(
            refused[usize::from(rule.index())],
            "{} never refuses",
            rule.id()
        );
    }
    for denial in Denial::ALL {
        let by_settings = *denial == Denial::GlobalPointerApproval;
        assert!(
            by_settings || codes.contains(denial.code()),
            "{} is never given",
            denial.code()
        );
    }
}

/// Reviews with a snapshot that came along.
fn fresh() -> impl Iterator<Item = Review> {
    let rows = [
        live(),
        SnapshotRow {
            owner_session: OTHER_SESSION.into(),
            ..live()
        },
        SnapshotRow {
            generation: GENERATION + 1,
            ..live()
        },
        SnapshotRow {
            state: SnapshotState::Expired,
            ..live()
        },
    ];
    rows.into_iter().map(|row| {
        let mut reported = result(Tier::Ax, Path::AxAction, Outcome::Ok, Effect::Confirmed);
        reported.fresh = Some(row);
        review(head("dispatch.element"), Subject::Dispatch(reported))
    })
}

#[test]
fn a_foreign_snapshot_or_page_is_withheld() {
    let withheld = |facts: &Review| match review_result(Settings::default(), facts).disposition {
        Disposition::Release(_) => None,
        Disposition::Withhold(code) => Some(code),
        Disposition::Quarantine(code) => panic!("{code}"),
    };
    let codes: Vec<_> = fresh().map(|facts| withheld(&facts)).collect();
    let foreign = Some("snapshot_not_ours".to_owned());
    assert_eq!(codes, [None, foreign.clone(), foreign.clone(), foreign]);

    let answer = |page| {
        Subject::Cdp(CdpResult {
            ok: true,
            bytes: 2,
            urls: vec![],
            page,
        })
    };
    let event = |owner: &str| {
        Subject::Event(Box::new(Cdp {
            page: Some(page(owner)),
            ..navigate()
        }))
    };
    for (subject, expected) in [
        (answer(None), None),
        (answer(Some(page(SESSION))), None),
        (answer(Some(page(OTHER_SESSION))), Some("page_foreign")),
        (event(SESSION), None),
        (event(OTHER_SESSION), Some("page_foreign")),
    ] {
        assert_eq!(
            withheld(&review(head("Page.navigate"), subject)).as_deref(),
            expected
        );
    }
}

#[test]
fn the_setting_turns_a_missing_grant_into_a_question() {
    let asking = Settings {
        global_pointer: GlobalPointer::Approval,
    };
    let mut facts = click();
    facts.claim.path = Some(Path::CgEventGlobal);
    // Without the handshake there is nothing to ask for.
    assert_eq!(
        admit_dispatch(asking, &facts).decision,
        Decision::Deny("global_pointer_forbidden".into())
    );
    facts.head.authority.allow_global_pointer = true;
    assert_eq!(
        admit_dispatch(asking, &facts).decision,
        Decision::RequireApproval("global_pointer_approval".into())
    );
    let good = Grant {
        id: "g1".into(),
        granted_by: "operator".into(),
        expires_unix_ms: NOW + 1,
        fingerprint: facts.head.fingerprint.clone(),
        unused: true,
    };
    let rows = [
        (good.clone(), true),
        (
            Grant {
                unused: false,
                ..good.clone()
            },
            false,
        ),
        (
            Grant {
                expires_unix_ms: NOW,
                ..good.clone()
            },
            false,
        ),
        (
            Grant {
                fingerprint: "sha256:f2".into(),
                ..good
            },
            false,
        ),
    ];
    for (approval, expected) in rows {
        facts.head.approval = Some(approval.clone());
        let allowed = matches!(admit_dispatch(asking, &facts).decision, Decision::Allow(_));
        assert_eq!(allowed, expected, "{approval:?}");
    }
    // An approval never helps where the setting does not ask for one.
    assert!(matches!(
        admit_dispatch(Settings::default(), &facts).decision,
        Decision::Deny(_)
    ));
}

#[test]
fn settings_are_a_closed_set_of_texts() {
    for (text, expected) in [
        ("{}", Some(GlobalPointer::Grant)),
        (r#"{"global_pointer":"grant"}"#, Some(GlobalPointer::Grant)),
        (
            r#"{"global_pointer":"approval"}"#,
            Some(GlobalPointer::Approval),
        ),
        (r#"{"global_pointer":"always"}"#, None),
        (r#"{"global_pointer":"approval","x":1}"#, None),
        ("", None),
        ("null", None),
    ] {
        let parsed = Settings::parse(text)
            .ok()
            .map(|settings| settings.global_pointer);
        assert_eq!(parsed, expected, "{text}");
    }
    for settings in [GlobalPointer::Grant, GlobalPointer::Approval]
        .map(|global_pointer| Settings { global_pointer })
    {
        assert_eq!(Settings::from_prepared(&settings.to_prepared()), settings);
    }
    for bytes in [&b""[..], b"\x02", b"\x01\x01"] {
        assert_eq!(Settings::from_prepared(bytes), Settings::default());
    }
}
