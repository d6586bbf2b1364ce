//! From facts to a permit or a refusal, and from an answer to its release.

use maka_floor::facts::*;
use serde_json::json;

use super::corpus::{self, click, element, element_action, live, observe, result};
use super::guest::{Guest, NAME, manifest, verdict};
use super::support::{Bench, call, given, load, prebuilt, shared};
use crate::call::ExecutorCall;
use crate::codes::{Ask, Class, RefusalKind, Retry};
use crate::engine::Engine;
use crate::facts::{Approving, DispatchFacts};
use crate::judge::{ActivateError, Answer, Judge, JudgeOptions, Released, Unmet};
use crate::limits::Limits;
use crate::log::{DecisionLog, LogOptions, LoggedOutcome, OutcomeRecord, scan, verify};
use crate::obligation::{Obligation, ObligationKind};
use crate::permit::{Recheck, Stale};
use crate::set::{Floor, PolicySet};

fn deny_all() -> crate::module::Module {
    load("deny-all", prebuilt("deny-all")).unwrap()
}

/// K6: nothing active means nothing permitted, and so does a caller without a set.
#[test]
fn without_a_policy_everything_is_refused() {
    let bench = Bench::idle(JudgeOptions::default());
    let refusal = bench.admit(&observe()).unwrap_err();
    assert_eq!(
        (refusal.code.as_str(), refusal.generation),
        ("policy_absent", 0)
    );
    assert_eq!(
        (refusal.class, refusal.kind, refusal.retry),
        (Class::Engine, RefusalKind::Denied, Retry::Never)
    );
    assert_eq!(bench.last()["code"], "policy_absent");
    assert_eq!(bench.judge.active(), None);

    bench.activate(vec![]);
    assert_eq!(bench.code(&observe()), None);
    let mut stranger = observe();
    stranger.head.caller.tenant = "acme".into();
    assert_eq!(bench.code(&stranger).as_deref(), Some("policy_absent"));
}

/// Invariants 1 and 3: an allow is recorded before there is a permit, and the permit carries what was judged.
#[test]
fn an_allow_becomes_a_permit_with_the_call_that_was_judged() {
    let bench = Bench::new(vec![load("allow-all", prebuilt("allow-all")).unwrap()]);
    let facts = click();
    let permit = bench.admit(&facts).unwrap();
    let record = bench.last();
    assert_eq!(record["id"], permit.receipt().decision_id().as_str());
    assert_eq!(record["effective"], "allow");
    assert_eq!(
        record["request"],
        given(&facts).request.unwrap().to_string()
    );
    assert_eq!(record["modules"][0]["name"], "maka-floor");
    assert_eq!(record["modules"][1]["name"], "allow-all");
    assert_eq!(record["facts"]["app"], "com.example.Editor");
    let now = Recheck {
        policy_generation: 1,
        executor_generation: corpus::GENERATION,
        row_version: 5,
    };
    let (judged, receipt) = permit.redeem(now).unwrap();
    assert_eq!(
        (judged.method(), judged.params()),
        (call(&facts).method(), call(&facts).params())
    );
    assert_eq!(
        (receipt.session(), receipt.tool_call_id(), receipt.method()),
        (corpus::SESSION, "call-1", "dispatch.element")
    );
}

#[test]
fn a_permit_is_worth_nothing_in_another_world() {
    let bench = Bench::new(vec![]);
    let now = Recheck {
        policy_generation: 1,
        executor_generation: corpus::GENERATION,
        row_version: 5,
    };
    for (then, expected) in [
        (
            Recheck {
                policy_generation: 2,
                ..now
            },
            Stale::PolicyGeneration,
        ),
        (
            Recheck {
                executor_generation: 4,
                ..now
            },
            Stale::ExecutorGeneration,
        ),
        (
            Recheck {
                row_version: 6,
                ..now
            },
            Stale::RowVersion,
        ),
    ] {
        assert_eq!(
            bench.admit(&click()).unwrap().redeem(then).map(|_| ()),
            Err(expected)
        );
    }
    let refusal = bench.judge.facts_changed(&given(&click()), &call(&click()));
    assert_eq!(
        (refusal.code.as_str(), refusal.retry),
        ("facts_changed", Retry::AfterObserve)
    );
    assert_eq!(bench.last()["code"], "facts_changed");
}

/// Design §5.1: a spent snapshot is refused either way, and the very same action is told so.
#[test]
fn the_same_action_on_a_spent_snapshot_is_a_duplicate() {
    let bench = Bench::new(vec![]);
    let mut facts = click();
    let first = bench.admit(&facts).unwrap().receipt().fingerprint();
    facts.snapshot.state = SnapshotState::Spent;
    let judged =
        |facts: &Dispatch, change: &dyn Fn(&mut DispatchFacts), params: serde_json::Value| {
            let mut given = given(facts);
            change(&mut given);
            let call = ExecutorCall::new("dispatch.element", &params).unwrap();
            bench.judge.admit_dispatch(&given, call).unwrap_err().code
        };
    let same = json!({"session": "s", "toolCallId": "another", "action": {"kind": "click"}});
    let spent_by = |given: &mut DispatchFacts| given.spent_fingerprint = Some(first);
    assert_eq!(judged(&facts, &|_| {}, same.clone()), "snapshot_spent");
    assert_eq!(judged(&facts, &spent_by, same.clone()), "duplicate_action");
    // The floor said what it could; the record has both.
    let record = bench.last();
    assert_eq!(record["modules"][0]["code"], "snapshot_spent");
    assert_eq!(
        (&record["code"], &record["decision"]),
        (&json!("duplicate_action"), &json!("deny"))
    );
    assert_eq!(
        judged(
            &facts,
            &spent_by,
            json!({"action": {"kind": "click", "count": 2}})
        ),
        "snapshot_spent"
    );
    let other_element = |given: &mut DispatchFacts| {
        spent_by(given);
        given.claim.element_token = Some("el_2".into());
    };
    assert_eq!(judged(&facts, &other_element, same), "snapshot_spent");
}

#[test]
fn a_denial_of_any_module_counts_and_speaks_with_its_own_sentence() {
    let bench = Bench::new(vec![
        load("allow-all", prebuilt("allow-all")).unwrap(),
        deny_all(),
    ]);
    let refusal = bench.admit(&observe()).unwrap_err();
    assert_eq!(
        (refusal.code.as_str(), refusal.class, refusal.retry),
        ("deny_all", Class::Rule, Retry::Never)
    );
    assert!(
        refusal
            .sentence
            .starts_with("Every action is switched off here")
    );
    assert_eq!(bench.last()["modules"][2]["rules"], json!(["deny.all"]));
    // The floor comes first, so its code does too; the log has both.
    let mut stale = click();
    stale.snapshot.state = SnapshotState::Expired;
    assert_eq!(bench.code(&stale).as_deref(), Some("snapshot_expired"));
    assert_eq!(bench.last()["modules"][2]["code"], "deny_all");
    // A policy may use a code of the floor; it cannot change its sentence.
    let borrowed = Bench::new(vec![
        load(NAME, Guest::admitting(verdict(1, (2096, 14), 0)).build()).unwrap(),
    ]);
    let refusal = borrowed.admit(&click()).unwrap_err();
    assert_eq!(
        refusal.sentence,
        maka_floor::Denial::SnapshotSpent.sentence()
    );
    let own = Bench::new(vec![
        load(NAME, Guest::admitting(verdict(1, (2048, 8), 1)).build()).unwrap(),
    ]);
    let refusal = own.admit(&click()).unwrap_err();
    assert_eq!(
        (refusal.code.as_str(), refusal.sentence.as_str()),
        ("guest.no", "The guest says no.")
    );
    assert_eq!(refusal.retry, Retry::AfterDelay);
    assert_eq!(own.last()["modules"][1]["rules"], json!(["guest.rule"]));
}

#[test]
fn approval_is_asked_for_only_where_somebody_can_give_it() {
    let asking = || load(NAME, Guest::admitting(verdict(2, (2048, 8), 0)).build()).unwrap();
    let bench = Bench::new(vec![asking()]);
    let admit = |approving| {
        let facts = DispatchFacts {
            approving,
            ..given(&click())
        };
        bench
            .judge
            .admit_dispatch(&facts, call(&click()))
            .unwrap_err()
    };
    let rows = [
        (
            Approving::Unavailable,
            "approval_unavailable",
            RefusalKind::Denied,
        ),
        (
            Approving::Rejected,
            "approval_rejected",
            RefusalKind::Denied,
        ),
        (
            Approving::Full,
            "approvals_pending",
            RefusalKind::Overloaded,
        ),
        (
            Approving::Possible,
            "guest.no",
            RefusalKind::ApprovalRequired,
        ),
    ];
    for (approving, code, kind) in rows {
        let refusal = admit(approving);
        assert_eq!(
            (refusal.code.as_str(), refusal.kind, refusal.class),
            (code, kind, Class::Approval)
        );
        assert_eq!(bench.last()["decision"], "require-approval");
        assert_eq!(bench.last()["effective"], "deny");
        assert_eq!(bench.last()["code"], code);
    }
    let refusal = admit(Approving::Possible);
    assert_eq!(
        refusal.retry,
        Retry::AfterApproval,
        "whatever the policy's own row says"
    );
    let ask = Ask {
        code: "guest.no".to_owned(),
        sentence: "The guest says no.".to_owned(),
    };
    assert_eq!(refusal.asks, [ask]);
    // Approval never overrides a denial.
    let both = Bench::new(vec![asking(), deny_all()]);
    let facts = DispatchFacts {
        approving: Approving::Possible,
        ..given(&click())
    };
    let denied = both.judge.admit_dispatch(&facts, call(&click()));
    assert_eq!(denied.unwrap_err().code, "deny_all");
}

/// What no policy is shown cannot fool one that forgets to look: a grant of another action, one that is used, and one that
/// is over are not there. One that is good is, and is in the record.
#[test]
fn a_policy_sees_only_a_grant_that_binds() {
    // Allows when the discriminant of `head.approval` says that there is one; asks otherwise.
    let body = format!(
        "(if (i32.load8_u offset=144 (local.get 0)) (then (return {})))\n{}",
        super::guest::ALLOW,
        verdict(2, (2048, 8), 0)
    );
    let bench = Bench::new(vec![load(NAME, Guest::admitting(body).build()).unwrap()]);
    let facts = given(&click());
    let (fingerprint, generation) = bench.judge.identify(&facts, &call(&click()));
    assert_eq!(generation, bench.judge.generation());
    let good = Grant {
        id: "approval".to_owned(),
        granted_by: "operator".to_owned(),
        expires_unix_ms: u64::MAX,
        fingerprint: fingerprint.to_string(),
        unused: true,
    };
    let admit = |approval: Grant| {
        let facts = DispatchFacts {
            approval: Some(approval),
            approving: Approving::Possible,
            ..facts.clone()
        };
        bench.judge.admit_dispatch(&facts, call(&click()))
    };
    let permit = admit(good.clone()).unwrap();
    assert_eq!(permit.receipt().approval(), Some("approval"));
    assert_eq!(permit.receipt().fingerprint(), fingerprint);
    assert_eq!(bench.last()["approval"], "approval");
    let bad = [
        Grant {
            fingerprint: "sha256:0".to_owned(),
            ..good.clone()
        },
        Grant {
            unused: false,
            ..good.clone()
        },
        Grant {
            expires_unix_ms: 1,
            ..good
        },
    ];
    for grant in bad {
        let refusal = admit(grant).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::ApprovalRequired);
        assert_eq!(bench.last()["approval"], serde_json::Value::Null);
    }
}

/// The conditions of an allow are met before its record is written, or the record is a refusal. A condition may make a
/// narrower call of it, and that is what the permit is for.
#[test]
fn conditions_are_met_before_an_allow_counts() {
    let guest = Guest {
        manifest: manifest("\"drop-image\""),
        ..Guest::admitting(verdict(0, (3088, 1), 0))
    };
    let bench = Bench::idle(JudgeOptions {
        enforceable: vec![ObligationKind::DropImage],
    });
    bench.activate(vec![load(NAME, guest.build()).unwrap()]);
    let facts = given(&click());
    let under = |answer: Result<Option<ExecutorCall>, Unmet>| {
        let ask = move |_: &[Obligation]| answer.clone();
        bench
            .judge
            .admit_dispatch_under(&facts, call(&click()), &ask)
    };
    let refusal = under(Err(Unmet)).unwrap_err();
    assert_eq!(refusal.code, "obligation_failed");
    assert_eq!(bench.last()["decision"], "allow");
    assert_eq!(bench.last()["effective"], "deny");
    let narrow = ExecutorCall::new("host.dispatch", &json!({"path": "ax_action"})).unwrap();
    for (answer, method) in [
        (Ok(None), call(&click()).method()),
        (Ok(Some(narrow)), "host.dispatch"),
    ] {
        let permit = under(answer).unwrap();
        let now = Recheck {
            policy_generation: bench.judge.generation(),
            executor_generation: facts.authority.generation,
            row_version: facts.row_version,
        };
        let (call, _) = permit.redeem(now).unwrap();
        assert_eq!(call.method(), method);
    }
}

#[test]
fn obligations_count_only_where_they_can_be_carried_out() {
    let module = || {
        let guest = Guest {
            manifest: manifest("\"drop-image\""),
            ..Guest::admitting(verdict(0, (3088, 1), 0))
        };
        load(NAME, guest.build()).unwrap()
    };
    let able = Bench::idle(JudgeOptions {
        enforceable: vec![ObligationKind::DropImage],
    });
    able.activate(vec![module()]);
    assert_eq!(
        able.admit(&click()).unwrap().receipt().obligations(),
        [Obligation::DropImage]
    );
    assert_eq!(able.last()["obligations"], json!(["drop-image"]));
    let unable = Bench::new(vec![module()]);
    assert_eq!(unable.code(&click()).as_deref(), Some("obligation_failed"));
}

#[test]
fn facts_that_cannot_be_judged_are_refused_before_any_policy_runs() {
    let bench = Bench::new(vec![]);
    let with = |change: &dyn Fn(&mut Dispatch)| {
        let mut facts = click();
        change(&mut facts);
        bench.admit(&facts).unwrap_err()
    };
    let invalid = [
        with(&|f| {
            f.element = Some(ElementRow {
                frame: Some(Rect {
                    x: f64::NAN,
                    y: 0.0,
                    width: 1.0,
                    height: 1.0,
                }),
                ..element()
            })
        }),
        with(&|f| {
            f.action = Action::Point(PointArgs {
                x: f64::INFINITY,
                y: 0.0,
                start: None,
                kind: "move".into(),
            })
        }),
        with(&|f| f.head.tool_call_id = "x".repeat(257)),
        with(&|f| f.head.caller.turn = "a\nb".into()),
        with(&|f| f.claim.snapshot_id = "s".repeat(300)),
    ];
    for refusal in invalid {
        assert_eq!(
            (refusal.code.as_str(), refusal.kind),
            ("facts_invalid", RefusalKind::InvalidFacts)
        );
    }
    assert_eq!(bench.last()["modules"], json!([]));
    let large = with(&|f| {
        f.element = Some(ElementRow {
            role: "x".repeat(300_000),
            ..element()
        })
    });
    assert_eq!(
        (large.code.as_str(), large.kind),
        ("facts_too_large", RefusalKind::Overloaded)
    );
    assert_eq!(bench.last()["modules"], json!([]));
}

/// A full pool refuses after its wait, and never lets anything through unjudged.
#[test]
fn a_full_pool_refuses() {
    let engine = Engine::new(Limits {
        pool: 1,
        ..Limits::default()
    })
    .unwrap();
    let floor = Floor::load(&engine, &json!({})).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = DecisionLog::open(&folder.path().join("log"), LogOptions::default()).unwrap();
    let judge = Judge::try_new(engine.clone(), log.into(), JudgeOptions::default()).unwrap();
    judge
        .activate(vec![
            PolicySet::new(&engine, "default", &floor, vec![]).unwrap(),
        ])
        .unwrap();
    let permit = judge
        .admit_dispatch(&given(&click()), call(&click()))
        .unwrap();
    let place = engine.place().unwrap();
    let refusal = judge
        .admit_dispatch(&given(&click()), call(&click()))
        .unwrap_err();
    assert_eq!(
        (refusal.code.as_str(), refusal.kind, refusal.retry),
        ("policy_busy", RefusalKind::Overloaded, Retry::AfterDelay)
    );
    let review = judge.review(
        permit.receipt(),
        Answer::Read {
            ok: true,
            fresh: None,
        },
    );
    assert_eq!(
        (review.disposition, review.refusal.unwrap().code.as_str()),
        (Released::Withhold, "policy_busy")
    );
    drop(place);
    drop(
        judge
            .admit_dispatch(&given(&click()), call(&click()))
            .unwrap(),
    );
}

#[test]
fn a_generation_is_active_as_a_whole_or_not_at_all() {
    let (engine, floor) = shared();
    let bench = Bench::new(vec![]);
    let set = |name: &str, more| PolicySet::new(engine, name, floor, more).unwrap();
    assert!(matches!(
        bench.judge.activate(vec![]),
        Err(ActivateError::Empty)
    ));
    let twice = vec![set("a", vec![]), set("a", vec![])];
    assert!(matches!(
        bench.judge.activate(twice),
        Err(ActivateError::NameTwice)
    ));
    assert_eq!(bench.judge.generation(), 1);
    assert_eq!(
        bench
            .judge
            .activate(vec![set("default", vec![deny_all()]), set("acme", vec![])])
            .unwrap(),
        2
    );
    let active = bench.judge.active().unwrap();
    assert_eq!(
        (active.generation, active.floor),
        (2, crate::prebuilt::floor_digest())
    );
    let names: Vec<_> = active
        .sets
        .iter()
        .map(|set| (set.name.as_str(), set.modules.len()))
        .collect();
    assert_eq!(names, [("acme", 1), ("default", 2)]);
    assert!(
        active
            .sets
            .iter()
            .all(|set| set.modules[0].name == "maka-floor")
    );
    let refusal = bench.admit(&observe()).unwrap_err();
    assert_eq!((refusal.code.as_str(), refusal.generation), ("deny_all", 2));
}

/// A call that was admitted under one generation is reviewed under it, whatever is active by then.
#[test]
fn a_review_belongs_to_the_generation_that_admitted() {
    let bench = Bench::new(vec![]);
    let permit = bench.admit(&click()).unwrap();
    bench.activate(vec![deny_all()]);
    let review = bench.judge.review(
        permit.receipt(),
        Answer::Read {
            ok: true,
            fresh: Some(live()),
        },
    );
    assert_eq!(review.disposition, Released::Release);
    assert_eq!(bench.last()["policy"]["generation"], 1);
    assert_eq!(bench.last()["hook"], "review-result");
}

#[test]
fn what_cannot_be_true_is_quarantined() {
    let bench = Bench::new(vec![]);
    let permit = bench.admit(&click()).unwrap();
    let ok = result(Tier::Ax, Path::AxAction, Outcome::Ok, Effect::Confirmed);
    let review = |result: DispatchResult, arm_ok| {
        let review = bench
            .judge
            .review(permit.receipt(), Answer::Dispatch { result, arm_ok });
        (
            review.disposition,
            review.refusal.map(|refusal| refusal.code),
        )
    };
    let code = |text: &str| Some(text.to_owned());
    assert_eq!(review(ok.clone(), true), (Released::Release, None));
    assert_eq!(
        review(ok.clone(), false),
        (Released::Quarantine, code("executor_untrusted"))
    );
    let refused = result(Tier::Ax, Path::None, Outcome::Refused, Effect::Unverifiable);
    assert_eq!(review(refused.clone(), false), (Released::Release, None));
    assert_eq!(
        review(refused, true),
        (Released::Quarantine, code("executor_untrusted"))
    );
    let moved = result(
        Tier::CoordinateBackground,
        Path::CgEventGlobal,
        Outcome::Failed,
        Effect::Unverifiable,
    );
    assert_eq!(
        review(moved, false),
        (Released::Quarantine, code("global_pointer_forbidden"))
    );
    assert_eq!(bench.last()["effective"], "quarantine");
    let pair = result(
        Tier::Ax,
        Path::CgEventPid,
        Outcome::Ok,
        Effect::Unverifiable,
    );
    assert_eq!(
        review(pair, true),
        (Released::Quarantine, code("tier_path_mismatch"))
    );
    let foreign = SnapshotRow {
        owner_session: corpus::OTHER_SESSION.into(),
        ..live()
    };
    let leaked = DispatchResult {
        fresh: Some(foreign),
        ..ok
    };
    assert_eq!(
        review(leaked, true),
        (Released::Withhold, code("snapshot_not_ours"))
    );
}

/// A restarted gateway finds what was admitted and how it ended.
#[test]
fn admitted_calls_can_be_read_back() {
    let bench = Bench::new(vec![]);
    let admit = |id: &str| {
        let mut facts = given(&click());
        facts.tool_call_id = id.into();
        bench.judge.admit_dispatch(&facts, call(&click())).unwrap()
    };
    let (first, _lost, third) = (admit("c1"), admit("c2"), admit("c3"));
    let log = bench.judge.log();
    let done = OutcomeRecord {
        receipt: first.receipt(),
        outcome: LoggedOutcome::Ok,
        tier: Some(Tier::Ax),
        path: Some(Path::AxAction),
        effect: Some(Effect::Confirmed),
        verification: Some(("value_reread", true)),
        code: None,
        withheld: false,
    };
    log.outcome(&done).unwrap();
    let refused = OutcomeRecord {
        receipt: third.receipt(),
        outcome: LoggedOutcome::Refused,
        path: Some(Path::None),
        effect: Some(Effect::Unverifiable),
        code: Some("window_gone"),
        ..done
    };
    log.outcome(&refused).unwrap();
    let path = bench.folder.path().join("log");
    let found = scan(&path, 10).unwrap();
    let ends: Vec<_> = found
        .calls
        .iter()
        .map(|call| {
            (
                call.tool_call.as_str(),
                call.result
                    .as_ref()
                    .map(|result| (result.outcome, result.code.as_deref())),
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("c1", Some((LoggedOutcome::Ok, None))),
            ("c2", None),
            ("c3", Some((LoggedOutcome::Refused, Some("window_gone")))),
        ]
    );
    assert!(
        found
            .calls
            .iter()
            .all(|call| call.request == given(&click()).request && call.orchestrator == "agent")
    );
    let newest = scan(&path, 1).unwrap();
    assert_eq!(
        (
            newest.calls.len(),
            newest.dropped,
            newest.calls[0].tool_call.as_str()
        ),
        (1, 2, "c3")
    );
    assert_eq!(verify(&path).unwrap(), log.position());
}

/// E10: what is typed and seen is in no record, whatever is decided.
#[test]
fn the_log_holds_no_text_of_the_application() {
    const CANARY: &str = "hunter2-canary";
    let bench = Bench::new(vec![
        load(NAME, Guest::admitting("(unreachable)").build()).unwrap(),
    ]);
    let params = json!({"action": {"kind": "set_value", "value": CANARY}, "elementToken": CANARY});
    for method in ["dispatch.element", "observe"] {
        let mut facts = given(&click());
        facts.action = element_action("set_value");
        if let Action::Element(args) = &mut facts.action {
            args.text = Some(TextArgs {
                length: 14,
                keyed_hash: CANARY.into(),
                plain: Some(CANARY.into()),
            });
        }
        facts.element = Some(ElementRow {
            role: CANARY.into(),
            actions: vec![CANARY.into()],
            ..element()
        });
        facts.claim.window_digest = Some(CANARY.into());
        drop(
            bench
                .judge
                .admit_dispatch(&facts, ExecutorCall::new(method, &params).unwrap()),
        );
    }
    let text = std::fs::read_to_string(bench.folder.path().join("log")).unwrap();
    assert!(
        text.contains("dispatch.element") && !text.contains(CANARY),
        "{text}"
    );
    assert!(
        !format!(
            "{:?}",
            TextArgs {
                length: 1,
                keyed_hash: CANARY.into(),
                plain: Some(CANARY.into())
            }
        )
        .contains(CANARY)
    );
}
