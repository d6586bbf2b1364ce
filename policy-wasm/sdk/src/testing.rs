//! Plain facts to begin a unit test with, for the author's machine only: change what the test is about, and ask the
//! policy.
//!
//! What a gateway would say is said by fixtures, which run against the built component: `maka-policy test`.

use crate::contract::{
    Action, Authority, Caller, Cdp, Claim, Dispatch, ElementArgs, ElementRow, Head, KeyArgs, Meter,
    PageRow, Path, PointArgs, SnapshotRow, SnapshotState, Target, Tier, TierPaths,
};

/// The settings that the schema of a manifest calls its defaults, written out. Read as settings they should be the
/// default of the type: the schema fills nothing in, it only says what happens.
///
/// # Panics
///
/// When the manifest is no JSON.
#[must_use]
pub fn schema_defaults(manifest: &str) -> String {
    let manifest: serde_json::Value = serde_json::from_str(manifest).expect("the manifest is JSON");
    let properties = manifest["settings_schema"]["properties"].as_object();
    let defaults: serde_json::Map<_, _> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())))
        .collect();
    serde_json::Value::Object(defaults).to_string()
}

/// The application of [`dispatch`].
pub const APP: &str = "com.example.App";

/// A call of this method that the floor would allow: a click, the key `a`, a launch, or a read.
#[must_use]
pub fn dispatch(method: &str) -> Dispatch {
    let action = match method {
        "dispatch.element" => Action::Element(ElementArgs {
            kind: "click".to_owned(),
            text: None,
        }),
        "dispatch.key" => Action::Key(KeyArgs {
            key: "a".to_owned(),
            modifiers: Vec::new(),
        }),
        "dispatch.point" => Action::Point(PointArgs {
            x: 1.0,
            y: 1.0,
            start: None,
            kind: "click".to_owned(),
        }),
        "apps.launch" => Action::Launch(APP.to_owned()),
        "observe" | "window.list" | "apps.list" | "screen.capture" => {
            Action::Observe(method.to_owned())
        }
        other => Action::Other(other.to_owned()),
    };
    let acts = matches!(
        action,
        Action::Element(_) | Action::Key(_) | Action::Point(_)
    );
    let row = |wanted: bool| (acts && wanted).then(element);
    Dispatch {
        head: head(method),
        claim: Claim {
            snapshot_id: if acts { "s1" } else { "" }.to_owned(),
            window_digest: acts.then(|| "window-1".to_owned()),
            element_token: acts.then(|| "e1".to_owned()),
            element_digest: acts.then(|| "d1".to_owned()),
            target: None,
            tier: None,
            path: None,
        },
        snapshot: SnapshotRow {
            id: if acts { "s1" } else { "" }.to_owned(),
            state: if acts {
                SnapshotState::Live
            } else {
                SnapshotState::NeverSeen
            },
            owner_session: if acts { "A" } else { "" }.to_owned(),
            generation: u64::from(acts),
            epoch: u64::from(acts),
            age_ms: 0,
            target: acts.then(|| Target {
                pid: 1,
                process_start: 0,
                window_id: 1,
                app_id: APP.to_owned(),
                page: None,
            }),
            window_digest: if acts { "window-1" } else { "" }.to_owned(),
            truncated: false,
        },
        element: row(matches!(action, Action::Element(_))),
        focus: row(matches!(action, Action::Key(_))),
        action,
    }
}

/// A browser command with these canonical parameters, on a page of the caller's own session.
#[must_use]
pub fn cdp(method: &str, params: &str) -> Cdp {
    Cdp {
        head: head(method),
        page: Some(PageRow {
            target_id: "page-1".to_owned(),
            kind: "page".to_owned(),
            owner_session: "A".to_owned(),
            browser_context: "context-1".to_owned(),
            origin: "https://example.com".to_owned(),
            opener: None,
        }),
        params: params.to_owned(),
        params_complete: true,
        urls: Vec::new(),
        script_length: None,
        nested_in: None,
    }
}

/// An element that can be clicked.
#[must_use]
pub fn element() -> ElementRow {
    ElementRow {
        token: "e1".to_owned(),
        digest: "d1".to_owned(),
        role: "AXButton".to_owned(),
        actions: vec!["press".to_owned()],
        enabled: true,
        secure: false,
        frame: None,
    }
}

/// A caller without grants, at midnight UTC on 1 January 2026, a Thursday.
#[must_use]
pub fn head(method: &str) -> Head {
    Head {
        decision_id: "00000000000000000000000000".to_owned(),
        now_unix_ms: 1_767_225_600_000,
        policy_generation: 1,
        tool_call_id: "call-1".to_owned(),
        method: method.to_owned(),
        fingerprint: "fingerprint-1".to_owned(),
        caller: Caller {
            tenant: "default".to_owned(),
            orchestrator: "agent".to_owned(),
            session: "A".to_owned(),
            turn: "1".to_owned(),
            grants: Vec::new(),
        },
        authority: Authority {
            protocol: "maka.cu/2".to_owned(),
            allow_global_pointer: false,
            compat_input: true,
            generation: 1,
            permitted: vec![
                TierPaths {
                    tier: Tier::Ax,
                    paths: vec![Path::AxAction, Path::AxAttribute, Path::AxSelect],
                },
                TierPaths {
                    tier: Tier::SemanticBackground,
                    paths: Vec::new(),
                },
                TierPaths {
                    tier: Tier::CoordinateBackground,
                    paths: vec![Path::CgEventPid, Path::SkylightPid, Path::CgEventGlobal],
                },
            ],
        },
        meter: Meter {
            actions_this_turn: 0,
            actions_last_minute: 0,
            denials_this_turn: 0,
            in_flight: 0,
        },
        approval: None,
    }
}
