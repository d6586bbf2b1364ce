//! The floor as a component gives the verdicts of the floor as native code: on everything that its own tests hold
//! against tables, and on facts made up at random.
//!
//! With `MAKA_POLICY_REBUILT` set to a folder, the components in it are compared with the committed ones on the same
//! facts; `cargo xtask policy --check` does that when another compiler version made them.

use std::path::PathBuf;

use maka_floor::facts::*;
use maka_floor::{GlobalPointer, Settings, admit_cdp, admit_dispatch, review_result};
use proptest::prelude::*;
use serde_json::json;

use super::corpus;
use super::support::{load, prebuilt, shared};
use crate::bindings::exports::maka::policy::hooks as wit;
use crate::combiner::{Opinion, ReviewOpinion};
use crate::convert;
use crate::digest::Digest;
use crate::module::{Mode, Module, ModuleSource};
use crate::set::Floor;

/// A native verdict as an opinion.
fn opinion(verdict: maka_floor::Verdict) -> (Opinion, Vec<u16>) {
    let opinion = match verdict.decision {
        maka_floor::Decision::Allow(obligations) => {
            assert!(obligations.is_empty());
            Opinion::Allow(vec![])
        }
        maka_floor::Decision::Deny(code) => Opinion::Deny(code),
        maka_floor::Decision::RequireApproval(code) => Opinion::RequireApproval(code),
    };
    (opinion, verdict.rules)
}

fn review_opinion(verdict: maka_floor::ReviewVerdict) -> (ReviewOpinion, Vec<u16>) {
    let opinion = match verdict.disposition {
        maka_floor::Disposition::Release(obligations) => {
            assert!(obligations.is_empty());
            ReviewOpinion::Release(vec![])
        }
        maka_floor::Disposition::Withhold(code) => ReviewOpinion::Withhold(code),
        maka_floor::Disposition::Quarantine(code) => ReviewOpinion::Quarantine(code),
    };
    (opinion, verdict.rules)
}

fn admit(module: &Module, facts: &Dispatch) -> (Opinion, Vec<u16>) {
    let engine = &shared().0;
    let said = module.admit_dispatch(
        engine,
        &convert::dispatch(facts),
        engine.limits().total_budget(),
    );
    (said.opinion, said.rules)
}

fn admit_command(module: &Module, facts: &Cdp) -> (Opinion, Vec<u16>) {
    let engine = &shared().0;
    let said = module.admit_cdp(engine, &convert::cdp(facts), engine.limits().total_budget());
    (said.opinion, said.rules)
}

fn review(module: &Module, facts: &Review) -> (ReviewOpinion, Vec<u16>) {
    let engine = &shared().0;
    let facts = wit::Review {
        head: convert::head(&facts.head),
        admitted_rules: facts.admitted_rules.clone(),
        subject: convert::subject(&facts.subject),
    };
    let said = module.review(engine, &facts, engine.limits().total_budget());
    (said.opinion, said.rules)
}

fn every_dispatch() -> impl Iterator<Item = Dispatch> {
    corpus::routes()
        .chain(corpus::bindings().map(|(_, facts)| facts))
        .chain(corpus::cases().into_iter().map(|(_, facts, _)| facts))
}

fn every_review() -> impl Iterator<Item = Review> {
    let answers = [None, Some(corpus::SESSION), Some(corpus::OTHER_SESSION)]
        .into_iter()
        .flat_map(|owner| {
            let page = owner.map(corpus::page);
            let result = CdpResult {
                ok: true,
                bytes: 9,
                urls: vec![corpus::url("https", "a")],
                page: page.clone(),
            };
            let event = Cdp {
                page,
                ..corpus::navigate()
            };
            [Subject::Cdp(result), Subject::Event(Box::new(event))]
                .map(|subject| corpus::review(corpus::head("Page.navigate"), subject))
        });
    corpus::reviews().chain(answers)
}

#[test]
fn the_component_is_the_native_floor_on_every_enumerated_fact() {
    let floor = shared().1.module();
    let settings = Settings::default();
    for facts in every_dispatch() {
        assert_eq!(
            admit(floor, &facts),
            opinion(admit_dispatch(settings, &facts)),
            "{facts:?}"
        );
    }
    for (name, facts, _) in corpus::commands() {
        assert_eq!(
            admit_command(floor, &facts),
            opinion(admit_cdp(&facts)),
            "{name}"
        );
    }
    for facts in every_review() {
        assert_eq!(
            review(floor, &facts),
            review_opinion(review_result(settings, &facts)),
            "{facts:?}"
        );
    }
}

#[test]
fn the_setting_reaches_the_component() {
    let asking = Floor::load(&shared().0, &json!({"global_pointer": "approval"})).unwrap();
    let settings = Settings {
        global_pointer: GlobalPointer::Approval,
    };
    let mut questions = 0;
    for facts in corpus::routes() {
        let said = admit(asking.module(), &facts);
        questions += usize::from(matches!(said.0, Opinion::RequireApproval(_)));
        assert_eq!(said, opinion(admit_dispatch(settings, &facts)), "{facts:?}");
    }
    assert!(questions > 0);
}

/// The other shipped policies do what their names say.
#[test]
fn allow_all_allows_and_deny_all_denies() {
    let (allow, deny) = (
        load("allow-all", prebuilt("allow-all")).unwrap(),
        load("deny-all", prebuilt("deny-all")).unwrap(),
    );
    for (_, facts, _) in corpus::cases() {
        assert_eq!(admit(&allow, &facts), (Opinion::Allow(vec![]), vec![0]));
        assert_eq!(
            admit(&deny, &facts),
            (Opinion::Deny("deny_all".to_owned()), vec![0])
        );
    }
}

/// The committed manifest of the floor is the one its tables write today.
#[test]
fn the_committed_floor_carries_the_manifest_of_its_source() {
    let bytes = prebuilt("maka-floor");
    let text = maka_floor::manifest::json();
    assert!(
        bytes.ends_with(text.as_bytes()),
        "policy-wasm/prebuilt is older than policy-wasm/floor: run `cargo xtask policy`"
    );
    let manifest = shared().1.module().manifest();
    assert_eq!(manifest.rules.len(), maka_floor::Rule::ALL.len());
    for (row, denial) in manifest.denials.iter().zip(maka_floor::Denial::ALL) {
        assert_eq!(
            (row.code.as_str(), row.sentence.as_str()),
            (denial.code(), denial.sentence())
        );
    }
}

/// See the module's documentation; without the variable there is nothing to compare.
#[test]
fn rebuilt_components_give_the_same_verdicts() {
    let Some(folder) = std::env::var_os("MAKA_POLICY_REBUILT").map(PathBuf::from) else {
        return;
    };
    for name in ["maka-floor", "allow-all", "deny-all"] {
        let module = |bytes: Vec<u8>| {
            let source = ModuleSource {
                name: name.to_owned(),
                pin: Digest::of(&bytes),
                bytes: bytes.into(),
                settings: json!({}),
                mode: Mode::Enforce,
                allowance: crate::limits::Allowance::default(),
            };
            Module::load_floor(&shared().0, source).unwrap()
        };
        let committed = module(prebuilt(name));
        let rebuilt = module(std::fs::read(folder.join(format!("{name}.wasm"))).unwrap());
        for facts in every_dispatch() {
            assert_eq!(
                admit(&committed, &facts),
                admit(&rebuilt, &facts),
                "{name} {facts:?}"
            );
        }
        for (case, facts, _) in corpus::commands() {
            assert_eq!(
                admit_command(&committed, &facts),
                admit_command(&rebuilt, &facts),
                "{name} {case}"
            );
        }
        for facts in every_review() {
            assert_eq!(
                review(&committed, &facts),
                review(&rebuilt, &facts),
                "{name} {facts:?}"
            );
        }
    }
}

fn member<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

/// A few texts, so that equal and unequal both happen.
fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "s1",
        "el_1",
        "sha256:e1",
        "sha256:w1",
        "session-a",
        "session-b",
        "é\u{1F600}",
    ])
    .prop_map(str::to_owned)
}

fn row() -> impl Strategy<Value = ElementRow> {
    let actions = prop::collection::vec(
        prop::sample::select(vec!["press".to_owned(), "show_menu".to_owned()]),
        0..3,
    );
    (word(), word(), actions, any::<bool>(), any::<bool>()).prop_map(
        |(token, digest, actions, enabled, secure)| ElementRow {
            token,
            digest,
            role: "AXButton".into(),
            actions,
            enabled,
            secure,
            frame: None,
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let kinds = vec![
        "click",
        "click:right",
        "set_value",
        "secondary_action:press",
        "scroll",
        "x:y:z",
        "",
    ];
    let text = || {
        (any::<u32>(), word()).prop_map(|(length, keyed_hash)| TextArgs {
            length,
            keyed_hash,
            plain: None,
        })
    };
    prop_oneof![
        (prop::sample::select(kinds), prop::option::of(text())).prop_map(|(kind, text)| {
            Action::Element(ElementArgs {
                kind: kind.into(),
                text,
            })
        }),
        (
            any::<f64>(),
            any::<f64>(),
            prop::sample::select(vec!["move", "left_click"])
        )
            .prop_map(|(x, y, kind)| Action::Point(PointArgs {
                x,
                y,
                start: None,
                kind: kind.into()
            })),
        word().prop_map(|key| Action::Key(KeyArgs {
            key,
            modifiers: vec!["shift".into()]
        })),
        text().prop_map(Action::Text),
        word().prop_map(Action::Launch),
        word().prop_map(Action::Observe),
        word().prop_map(Action::Other),
    ]
}

prop_compose! {
    fn snapshot()(
        id in word(), state in member(SnapshotState::ALL), owner_session in word(), generation in 2_u64..4,
        has_target in any::<bool>(), window_digest in word(),
    ) -> SnapshotRow {
        let target = has_target.then(corpus::target);
        SnapshotRow { id, state, owner_session, generation, target, window_digest, ..corpus::live() }
    }
}

prop_compose! {
    fn claim()(
        snapshot_id in word(), window_digest in prop::option::of(word()), element_token in prop::option::of(word()),
        element_digest in prop::option::of(word()), meant in prop::option::of(40_u32..44),
        tier in prop::option::of(member(Tier::ALL)), path in prop::option::of(member(Path::ALL)),
    ) -> Claim {
        let target = meant.map(|pid| Target { pid, ..corpus::target() });
        Claim { snapshot_id, window_digest, element_token, element_digest, target, tier, path }
    }
}

prop_compose! {
    fn dispatch()(
        method in prop::sample::select(vec!["dispatch.element", "dispatch.key", "dispatch.point", "host.dispatch", "observe", "apps.launch", "x"]),
        action in action(), claim in claim(), snapshot in snapshot(), element in prop::option::of(row()),
        focus in prop::option::of(row()), pointer in any::<bool>(), compat in any::<bool>(),
        grants in prop::collection::vec(prop::sample::select(vec!["global-pointer".to_owned(), "secure-field".to_owned(), "x".to_owned()]), 0..3),
    ) -> Dispatch {
        let mut head = corpus::head(method);
        head.caller.grants = grants;
        head.authority.allow_global_pointer = pointer;
        head.authority.compat_input = compat;
        Dispatch { head, action, claim, snapshot, element, focus }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn the_component_is_the_native_floor_on_random_facts(facts in dispatch()) {
        let expected = opinion(admit_dispatch(Settings::default(), &facts));
        prop_assert_eq!(admit(shared().1.module(), &facts), expected);
    }
}
