//! Facts for tests: ordinary ones to start from, and complete enumerations.
//!
//! The native tests of the floor hold them against a table; the tests of `maka-policy-host` include this file to compare
//! the component with the native rules on the same facts.

#![allow(dead_code, reason = "each test that includes this uses its own part")]

use maka_floor::facts::*;
use maka_floor::{GRANT_GLOBAL_POINTER, GRANT_SECURE_FIELD};

pub(crate) const SESSION: &str = "session-a";
pub(crate) const OTHER_SESSION: &str = "session-b";
pub(crate) const GENERATION: u64 = 3;
pub(crate) const NOW: u64 = 1_796_040_000_000;

/// The head of an ordinary call: everything may be asked for, nothing special was granted.
pub(crate) fn head(method: &str) -> Head {
    Head {
        decision_id: "01JD0000000000000000000000".into(),
        now_unix_ms: NOW,
        policy_generation: 7,
        tool_call_id: "call-1".into(),
        method: method.into(),
        fingerprint: "sha256:f1".into(),
        caller: Caller {
            tenant: "default".into(),
            orchestrator: "agent".into(),
            session: SESSION.into(),
            turn: "4".into(),
            grants: Vec::new(),
        },
        authority: Authority {
            protocol: "maka.cu/2".into(),
            allow_global_pointer: false,
            compat_input: true,
            generation: GENERATION,
            permitted: Authority::pairing_of_maka_cu_2(),
        },
        meter: Meter::default(),
        approval: None,
    }
}

pub(crate) fn target() -> Target {
    Target {
        pid: 42,
        process_start: 9,
        window_id: 7,
        app_id: "com.example.Editor".into(),
        page: None,
    }
}

/// A live snapshot of this session and this executor.
pub(crate) fn live() -> SnapshotRow {
    SnapshotRow {
        id: "s1".into(),
        state: SnapshotState::Live,
        owner_session: SESSION.into(),
        generation: GENERATION,
        epoch: 55,
        age_ms: 120,
        target: Some(target()),
        window_digest: "sha256:w1".into(),
        truncated: false,
    }
}

pub(crate) fn element() -> ElementRow {
    ElementRow {
        token: "el_1".into(),
        digest: "sha256:e1".into(),
        role: "AXTextField".into(),
        actions: vec!["press".into(), "show_menu".into()],
        enabled: true,
        secure: false,
        frame: Some(Rect {
            x: 1.0,
            y: 2.0,
            width: 30.0,
            height: 10.0,
        }),
    }
}

pub(crate) fn element_action(kind: &str) -> Action {
    let text = (kind == "set_value" || kind == "select_text").then(|| TextArgs {
        length: 5,
        keyed_hash: "sha256:k1".into(),
        plain: None,
    });
    Action::Element(ElementArgs {
        kind: kind.into(),
        text,
    })
}

/// An ordinary element action that the floor allows.
pub(crate) fn click() -> Dispatch {
    Dispatch {
        head: head("dispatch.element"),
        action: element_action("click"),
        claim: Claim {
            snapshot_id: "s1".into(),
            window_digest: None,
            element_token: Some("el_1".into()),
            element_digest: Some("sha256:e1".into()),
            target: None,
            tier: None,
            path: None,
        },
        snapshot: live(),
        element: Some(element()),
        focus: None,
    }
}

/// An ordinary key action that the floor allows.
pub(crate) fn key() -> Dispatch {
    Dispatch {
        head: head("dispatch.key"),
        action: Action::Key(KeyArgs {
            key: "a".into(),
            modifiers: vec!["command".into()],
        }),
        element: None,
        focus: Some(element()),
        ..click()
    }
}

/// An ordinary point action that the floor allows.
pub(crate) fn point(kind: &str) -> Dispatch {
    Dispatch {
        head: head("dispatch.point"),
        action: Action::Point(PointArgs {
            x: 5.0,
            y: 6.0,
            start: None,
            kind: kind.into(),
        }),
        claim: Claim {
            snapshot_id: "s1".into(),
            window_digest: Some("sha256:w1".into()),
            ..Claim::default()
        },
        element: None,
        ..click()
    }
}

/// An ordinary read that the floor allows.
pub(crate) fn observe() -> Dispatch {
    Dispatch {
        head: head("observe"),
        action: Action::Observe("observe".into()),
        claim: Claim::default(),
        snapshot: SnapshotRow::never_seen(""),
        element: None,
        focus: None,
    }
}

pub(crate) fn grant(facts: &mut Dispatch, grant: &str) {
    facts.head.caller.grants.push(grant.into());
}

/// What the reviews are made of.
pub(crate) fn result(tier: Tier, path: Path, outcome: Outcome, effect: Effect) -> DispatchResult {
    DispatchResult {
        outcome,
        tier,
        path,
        effect,
        verification: "none".into(),
        observed_change: false,
        would_require: None,
        fresh: None,
        now_secure: false,
    }
}

pub(crate) fn review(head: Head, subject: Subject) -> Review {
    Review {
        head,
        admitted_rules: vec![0, 2],
        subject,
    }
}

pub(crate) fn page(owner: &str) -> PageRow {
    PageRow {
        target_id: "t1".into(),
        kind: "page".into(),
        owner_session: owner.into(),
        browser_context: "ctx".into(),
        origin: "https://example.org".into(),
        opener: None,
    }
}

pub(crate) fn url(scheme: &str, host: &str) -> UrlFact {
    UrlFact {
        pointer: "/url".into(),
        scheme: scheme.into(),
        host: host.into(),
        port: None,
        userinfo: false,
    }
}

/// An ordinary browser command that the floor allows.
pub(crate) fn navigate() -> Cdp {
    Cdp {
        head: head("Page.navigate"),
        page: Some(page(SESSION)),
        params: "{}".into(),
        params_complete: true,
        urls: vec![url("https", "example.org")],
        script_length: None,
        nested_in: None,
    }
}

const BOTH: [bool; 2] = [false, true];

/// Tier, path, handshake and grant: every combination, as an element action that demands the route.
pub(crate) fn routes() -> impl Iterator<Item = Dispatch> {
    Tier::ALL.iter().flat_map(|tier| {
        Path::ALL.iter().flat_map(move |path| {
            BOTH.into_iter().flat_map(move |handshake| {
                BOTH.into_iter().map(move |granted| {
                    let mut facts = click();
                    (facts.claim.tier, facts.claim.path) = (Some(*tier), Some(*path));
                    facts.head.authority.allow_global_pointer = handshake;
                    if granted {
                        grant(&mut facts, GRANT_GLOBAL_POINTER);
                    }
                    facts
                })
            })
        })
    })
}

/// Tier, path, handshake, grant, outcome and effect: every combination, as a review.
pub(crate) fn reviews() -> impl Iterator<Item = Review> {
    routes().flat_map(|facts| {
        Outcome::ALL.iter().flat_map(move |outcome| {
            let facts = facts.clone();
            Effect::ALL.iter().map(move |effect| {
                let (Some(tier), Some(path)) = (facts.claim.tier, facts.claim.path) else {
                    unreachable!("routes demand both")
                };
                review(
                    facts.head.clone(),
                    Subject::Dispatch(result(tier, path, *outcome, *effect)),
                )
            })
        })
    })
}

/// One combination of what can be wrong with a snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) state: SnapshotState,
    pub(crate) own_session: bool,
    pub(crate) same_generation: bool,
    pub(crate) same_target: bool,
    pub(crate) same_window_digest: bool,
    pub(crate) same_element_digest: bool,
}

/// Every combination of [`Binding`], as an element action, a key action and a point action.
pub(crate) fn bindings() -> impl Iterator<Item = (Binding, Dispatch)> {
    SnapshotState::ALL.iter().flat_map(|state| {
        (0_u8..32).flat_map(move |bits| {
            let bit = |at: u8| bits >> at & 1 == 1;
            let binding = Binding {
                state: *state,
                own_session: bit(0),
                same_generation: bit(1),
                same_target: bit(2),
                same_window_digest: bit(3),
                same_element_digest: bit(4),
            };
            [click(), key(), point("left_click")].map(|facts| (binding, bind(facts, binding)))
        })
    })
}

fn bind(mut facts: Dispatch, binding: Binding) -> Dispatch {
    facts.snapshot.state = binding.state;
    if !binding.own_session {
        facts.snapshot.owner_session = OTHER_SESSION.into();
    }
    if !binding.same_generation {
        facts.snapshot.generation = GENERATION - 1;
    }
    facts.claim.target = Some(Target {
        pid: if binding.same_target { 42 } else { 43 },
        ..target()
    });
    facts.claim.window_digest = Some(
        if binding.same_window_digest {
            "sha256:w1"
        } else {
            "sha256:w2"
        }
        .into(),
    );
    if !binding.same_element_digest && facts.claim.element_digest.is_some() {
        facts.claim.element_digest = Some("sha256:e2".into());
    }
    facts
}

/// Facts that differ from ordinary ones in one respect, with the code the floor has to give; no code means an allow.
pub(crate) fn cases() -> Vec<(&'static str, Dispatch, Option<&'static str>)> {
    let with = |mut facts: Dispatch, change: &dyn Fn(&mut Dispatch)| {
        change(&mut facts);
        facts
    };
    let secure = |mut facts: Dispatch| {
        for row in [&mut facts.element, &mut facts.focus].into_iter().flatten() {
            row.secure = true;
        }
        facts
    };
    let kind = |kind: &str| with(click(), &|f| f.action = element_action(kind));
    let text = || {
        with(key(), &|f| {
            f.action = Action::Text(TextArgs {
                length: 3,
                keyed_hash: "k".into(),
                plain: None,
            });
        })
    };
    let observing = |method: &str| {
        with(observe(), &|f| {
            f.head.method = method.into();
            f.action = Action::Observe(method.into());
        })
    };
    let launch = || {
        with(observe(), &|f| {
            f.head.method = "apps.launch".into();
            f.action = Action::Launch("Notes".into());
        })
    };
    vec![
        // Reads and launches are bound to nothing.
        ("observe", observing("observe"), None),
        ("window list", observing("window.list"), None),
        ("app list", observing("apps.list"), None),
        ("screen capture", observing("screen.capture"), None),
        ("generic snapshot", observing("host.snapshot"), None),
        ("launch", launch(), None),
        (
            "a read with a tier that exists",
            with(observe(), &|f| f.claim.tier = Some(Tier::Ax)),
            None,
        ),
        // Method and action.
        (
            "no such method",
            observing("window.smash"),
            Some("action_unknown"),
        ),
        (
            "a method of the control door",
            observing("session.begin"),
            Some("action_unknown"),
        ),
        ("an empty method", observing(""), Some("action_unknown")),
        (
            "a verb from the future",
            with(click(), &|f| f.action = Action::Other("hover".into())),
            Some("action_unknown"),
        ),
        (
            "a point as an element",
            with(click(), &|f| f.action = point("move").action),
            Some("action_unknown"),
        ),
        (
            "an element as a key",
            with(key(), &|f| f.action = element_action("click")),
            Some("action_unknown"),
        ),
        (
            "a read as a dispatch",
            with(click(), &|f| f.action = observe().action),
            Some("action_unknown"),
        ),
        (
            "a dispatch as a read",
            with(observe(), &|f| f.action = element_action("click")),
            Some("action_unknown"),
        ),
        (
            "a launch as a read",
            with(observe(), &|f| f.action = Action::Launch("x".into())),
            Some("action_unknown"),
        ),
        (
            "a generic read dispatch",
            with(observe(), &|f| f.head.method = "host.dispatch".into()),
            Some("action_unknown"),
        ),
        (
            "a generic click",
            with(click(), &|f| f.head.method = "host.dispatch".into()),
            None,
        ),
        // Synthetic input.
        (
            "keys switched off",
            with(key(), &|f| f.head.authority.compat_input = false),
            Some("synthetic_input_off"),
        ),
        (
            "text switched off",
            with(text(), &|f| f.head.authority.compat_input = false),
            Some("synthetic_input_off"),
        ),
        (
            "points switched off",
            with(point("move"), &|f| f.head.authority.compat_input = false),
            Some("synthetic_input_off"),
        ),
        (
            "elements need no switch",
            with(click(), &|f| f.head.authority.compat_input = false),
            None,
        ),
        // Routes that are demanded in part.
        (
            "only a tier",
            with(click(), &|f| f.claim.tier = Some(Tier::SemanticBackground)),
            None,
        ),
        (
            "only a path",
            with(click(), &|f| f.claim.path = Some(Path::AxSelect)),
            None,
        ),
        (
            "only the path none",
            with(click(), &|f| f.claim.path = Some(Path::None)),
            None,
        ),
        (
            "only the global path",
            with(click(), &|f| f.claim.path = Some(Path::CgEventGlobal)),
            Some("global_pointer_forbidden"),
        ),
        (
            "a tier without a row",
            with(click(), &|f| {
                f.claim.tier = Some(Tier::Ax);
                f.head.authority.permitted.clear();
            }),
            Some("tier_path_mismatch"),
        ),
        (
            "a path without a row",
            with(click(), &|f| {
                f.claim.path = Some(Path::AxAction);
                f.head.authority.permitted.clear();
            }),
            Some("tier_path_mismatch"),
        ),
        // A bare pointer movement has only the global route.
        (
            "a move, no handshake: the executor's to refuse",
            point("move"),
            None,
        ),
        (
            "a move, handshake without grant",
            with(point("move"), &|f| {
                f.head.authority.allow_global_pointer = true
            }),
            Some("global_pointer_forbidden"),
        ),
        (
            "a move, handshake and grant",
            with(point("move"), &|f| {
                f.head.authority.allow_global_pointer = true;
                grant(f, GRANT_GLOBAL_POINTER);
            }),
            None,
        ),
        // A drag has it as well, unless it may not take it.
        (
            "a drag, no handshake: the executor's to refuse",
            point("drag"),
            None,
        ),
        (
            "a drag, handshake without grant",
            with(point("drag"), &|f| {
                f.head.authority.allow_global_pointer = true
            }),
            Some("global_pointer_forbidden"),
        ),
        (
            "a drag with the path none, handshake without grant",
            with(point("drag"), &|f| {
                f.head.authority.allow_global_pointer = true;
                f.claim.path = Some(Path::None);
            }),
            Some("global_pointer_forbidden"),
        ),
        (
            "a drag, handshake and grant",
            with(point("drag"), &|f| {
                f.head.authority.allow_global_pointer = true;
                grant(f, GRANT_GLOBAL_POINTER);
            }),
            None,
        ),
        (
            "a drag that stays with the process, handshake without grant",
            with(point("drag"), &|f| {
                f.head.authority.allow_global_pointer = true;
                f.claim.path = Some(Path::CgEventPid);
            }),
            None,
        ),
        (
            "a drag that stays with the process by the other way",
            with(point("drag"), &|f| {
                f.head.authority.allow_global_pointer = true;
                f.claim.path = Some(Path::SkylightPid);
            }),
            None,
        ),
        (
            "a click, handshake without grant",
            with(point("left_click"), &|f| {
                f.head.authority.allow_global_pointer = true
            }),
            None,
        ),
        // Anchors.
        ("a click", click(), None),
        (
            "no snapshot id",
            with(click(), &|f| f.claim.snapshot_id.clear()),
            Some("anchor_missing"),
        ),
        (
            "no token",
            with(click(), &|f| f.claim.element_token = None),
            Some("anchor_missing"),
        ),
        (
            "an empty token",
            with(click(), &|f| f.claim.element_token = Some(String::new())),
            Some("anchor_missing"),
        ),
        (
            "no digest",
            with(click(), &|f| f.claim.element_digest = None),
            Some("anchor_missing"),
        ),
        (
            "an empty digest",
            with(click(), &|f| f.claim.element_digest = Some(String::new())),
            Some("anchor_missing"),
        ),
        (
            "a key without focus token",
            with(key(), &|f| f.claim.element_token = None),
            Some("anchor_missing"),
        ),
        (
            "a point without window digest",
            with(point("left_click"), &|f| f.claim.window_digest = None),
            Some("anchor_missing"),
        ),
        (
            "a point without snapshot",
            with(point("left_click"), &|f| f.claim.snapshot_id.clear()),
            Some("anchor_missing"),
        ),
        // The row has to be that of the quoted id, whoever built the facts.
        (
            "another row",
            with(click(), &|f| f.snapshot.id = "s2".into()),
            Some("snapshot_unknown"),
        ),
        (
            "a row without a target",
            with(click(), &|f| f.snapshot.target = None),
            Some("target_mismatch"),
        ),
        (
            "another process start",
            with(click(), &|f| {
                f.claim.target = Some(Target {
                    process_start: 10,
                    ..target()
                });
            }),
            Some("target_mismatch"),
        ),
        // Elements.
        (
            "no element row",
            with(click(), &|f| f.element = None),
            Some("element_unknown"),
        ),
        (
            "another element row",
            with(click(), &|f| {
                f.element = Some(ElementRow {
                    token: "el_2".into(),
                    ..element()
                })
            }),
            Some("element_unknown"),
        ),
        (
            "a focus row is no element row",
            with(click(), &|f| f.focus = f.element.take()),
            Some("element_unknown"),
        ),
        (
            "an element row is no focus row",
            with(key(), &|f| f.element = f.focus.take()),
            Some("element_unknown"),
        ),
        (
            "disabled",
            with(click(), &|f| {
                f.element = Some(ElementRow {
                    enabled: false,
                    ..element()
                })
            }),
            Some("element_disabled"),
        ),
        (
            "disabled focus",
            with(key(), &|f| {
                f.focus = Some(ElementRow {
                    enabled: false,
                    ..element()
                })
            }),
            Some("element_disabled"),
        ),
        // Verbs.
        ("a right click with a menu", kind("click:right"), None),
        (
            "a right click without a menu",
            with(kind("click:right"), &|f| {
                f.element = Some(ElementRow {
                    actions: vec![],
                    ..element()
                })
            }),
            Some("action_not_offered"),
        ),
        (
            "a left click is also a selection",
            with(kind("click"), &|f| {
                f.element = Some(ElementRow {
                    actions: vec![],
                    ..element()
                })
            }),
            None,
        ),
        (
            "a middle click",
            kind("click:middle"),
            Some("action_not_offered"),
        ),
        (
            "a verb that is offered",
            kind("secondary_action:press"),
            None,
        ),
        (
            "a verb that is not offered",
            kind("secondary_action:increment"),
            Some("action_not_offered"),
        ),
        (
            "a verb in another case",
            kind("secondary_action:Press"),
            Some("action_not_offered"),
        ),
        (
            "an unknown variant",
            kind("scroll:sideways"),
            Some("action_not_offered"),
        ),
        // Password fields.
        ("a click on a password field", secure(click()), None),
        (
            "a value for a password field",
            secure(kind("set_value")),
            Some("secure_field"),
        ),
        (
            "a search in a password field",
            secure(kind("select_text")),
            Some("secure_field"),
        ),
        (
            "an unknown kind on a password field",
            secure(kind("dictate")),
            Some("secure_field"),
        ),
        (
            "any kind that carries text",
            secure(with(click(), &|f| {
                f.action = Action::Element(ElementArgs {
                    kind: "click".into(),
                    text: Some(TextArgs {
                        length: 1,
                        keyed_hash: "k".into(),
                        plain: None,
                    }),
                });
            })),
            Some("secure_field"),
        ),
        (
            "keys for a password field",
            secure(key()),
            Some("secure_field"),
        ),
        (
            "text for a password field",
            secure(text()),
            Some("secure_field"),
        ),
        (
            "a password field with the grant",
            with(secure(kind("set_value")), &|f| grant(f, GRANT_SECURE_FIELD)),
            None,
        ),
        (
            "another grant does not help",
            with(secure(text()), &|f| grant(f, GRANT_GLOBAL_POINTER)),
            Some("secure_field"),
        ),
        ("text elsewhere", text(), None),
        ("a value elsewhere", kind("set_value"), None),
    ]
}

/// Browser commands with the code the floor has to give; no code means an allow.
pub(crate) fn commands() -> Vec<(&'static str, Cdp, Option<&'static str>)> {
    let with = |change: &dyn Fn(&mut Cdp)| {
        let mut facts = navigate();
        change(&mut facts);
        facts
    };
    let method = |name: &str, page: Option<PageRow>| {
        with(&|f| {
            f.head.method = name.into();
            f.page.clone_from(&page);
        })
    };
    vec![
        ("navigate", navigate(), None),
        (
            "about:blank",
            with(&|f| f.urls = vec![url("about", "blank")]),
            None,
        ),
        (
            "about:config",
            with(&|f| f.urls = vec![url("about", "config")]),
            Some("destination_forbidden"),
        ),
        (
            "file",
            with(&|f| f.urls.push(url("file", ""))),
            Some("destination_forbidden"),
        ),
        (
            "javascript",
            with(&|f| f.urls = vec![url("javascript", "alert(1)")]),
            Some("destination_forbidden"),
        ),
        (
            "a foreign page",
            with(&|f| f.page = Some(page(OTHER_SESSION))),
            Some("page_foreign"),
        ),
        (
            "nobody's page",
            with(&|f| {
                f.page = Some(page(""));
                f.head.caller.session.clear();
            }),
            Some("page_foreign"),
        ),
        (
            "no page where one is needed",
            with(&|f| f.page = None),
            Some("page_foreign"),
        ),
        ("browser version", method("Browser.getVersion", None), None),
        ("targets", method("Target.getTargets", None), None),
        (
            "attach to what cannot be found",
            method("Target.attachToTarget", None),
            Some("page_foreign"),
        ),
        (
            "attach to one's own",
            method("Target.attachToTarget", Some(page(SESSION))),
            None,
        ),
        (
            "close the browser",
            method("Browser.close", None),
            Some("page_foreign"),
        ),
        (
            "close the browser from a page",
            method("Browser.close", Some(page(SESSION))),
            Some("page_foreign"),
        ),
        (
            "dispose of one's own context",
            method("Target.disposeBrowserContext", Some(page(SESSION))),
            None,
        ),
        (
            "dispose of the shared context",
            method(
                "Target.disposeBrowserContext",
                Some(PageRow {
                    browser_context: String::new(),
                    ..page(SESSION)
                }),
            ),
            Some("page_foreign"),
        ),
        (
            "dispose of an unknown context",
            method("Target.disposeBrowserContext", None),
            Some("page_foreign"),
        ),
        (
            "a wrapper",
            method("Target.sendMessageToTarget", Some(page(SESSION))),
            Some("cdp_smuggling"),
        ),
        (
            "the protocol for a page",
            method("Target.exposeDevToolsProtocol", Some(page(SESSION))),
            Some("cdp_smuggling"),
        ),
        (
            "an unwrapped command",
            with(&|f| f.nested_in = Some("Target.sendMessageToTarget".into())),
            None,
        ),
        (
            "another wrapper",
            with(&|f| f.nested_in = Some("Runtime.evaluate".into())),
            Some("cdp_smuggling"),
        ),
        (
            "cut off parameters",
            with(&|f| f.params_complete = false),
            Some("facts_too_large"),
        ),
        (
            "a cut off screenshot",
            with(&|f| {
                f.head.method = "Page.captureScreenshot".into();
                f.params_complete = false;
                f.urls.clear();
            }),
            None,
        ),
    ]
}
