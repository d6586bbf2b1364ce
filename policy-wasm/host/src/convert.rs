//! Plain facts to generated types. Every field and every case is named, so that a change of the contract does not
//! compile until it is carried over here.

use maka_floor::facts as plain;

use crate::bindings::exports::maka::policy::hooks as wit;

/// Converts between two enums with the same cases.
macro_rules! same {
    ($name:ident: $plain:ident => $wit:ident { $($case:ident),+ }) => {
        fn $name(from: plain::$plain) -> wit::$wit {
            match from { $(plain::$plain::$case => wit::$wit::$case),+ }
        }
    };
}

same!(tier: Tier => Tier { Ax, SemanticBackground, CoordinateBackground });
same!(path: Path => Path { AxAction, AxAttribute, AxSelect, CgEventPid, SkylightPid, CgEventGlobal, None });
same!(outcome: Outcome => Outcome { Ok, Refused, Failed, Unknown });
same!(effect: Effect => Effect { Confirmed, Unverifiable, SuspectedNoop });
same!(state: SnapshotState => SnapshotState { NeverSeen, Live, Spent, Superseded, Expired, Evicted, OtherGeneration });

fn rect(from: plain::Rect) -> wit::Rect {
    let plain::Rect {
        x,
        y,
        width,
        height,
    } = from;
    wit::Rect {
        x,
        y,
        width,
        height,
    }
}

pub(crate) fn head(from: &plain::Head) -> wit::Head {
    let plain::Head {
        decision_id,
        now_unix_ms,
        policy_generation,
        tool_call_id,
        method,
        fingerprint,
        caller,
        authority,
        meter,
        approval,
    } = from.clone();
    let plain::Caller {
        tenant,
        orchestrator,
        session,
        turn,
        grants,
    } = caller;
    let plain::Authority {
        protocol,
        allow_global_pointer,
        compat_input,
        generation,
        permitted,
    } = authority;
    let plain::Meter {
        actions_this_turn,
        actions_last_minute,
        denials_this_turn,
        in_flight,
    } = meter;
    wit::Head {
        decision_id,
        now_unix_ms,
        policy_generation,
        tool_call_id,
        method,
        fingerprint,
        caller: wit::Caller {
            tenant,
            orchestrator,
            session,
            turn,
            grants,
        },
        authority: wit::Authority {
            protocol,
            allow_global_pointer,
            compat_input,
            generation,
            permitted: permitted
                .into_iter()
                .map(|row| wit::TierPaths {
                    tier: tier(row.tier),
                    paths: row.paths.into_iter().map(path).collect(),
                })
                .collect(),
        },
        meter: wit::Meter {
            actions_this_turn,
            actions_last_minute,
            denials_this_turn,
            in_flight,
        },
        approval: approval.map(|grant| {
            let plain::Grant {
                id,
                granted_by,
                expires_unix_ms,
                fingerprint,
                unused,
            } = grant;
            wit::Grant {
                id,
                granted_by,
                expires_unix_ms,
                fingerprint,
                unused,
            }
        }),
    }
}

fn target(from: plain::Target) -> wit::Target {
    let plain::Target {
        pid,
        process_start,
        window_id,
        app_id,
        page,
    } = from;
    wit::Target {
        pid,
        process_start,
        window_id,
        app_id,
        page,
    }
}

fn snapshot(from: plain::SnapshotRow) -> wit::SnapshotRow {
    let plain::SnapshotRow {
        id,
        state: remembered,
        owner_session,
        generation,
        epoch,
        age_ms,
        target: shown,
        window_digest,
        truncated,
    } = from;
    wit::SnapshotRow {
        id,
        state: state(remembered),
        owner_session,
        generation,
        epoch,
        age_ms,
        target: shown.map(target),
        window_digest,
        truncated,
    }
}

fn element(from: plain::ElementRow) -> wit::ElementRow {
    let plain::ElementRow {
        token,
        digest,
        role,
        actions,
        enabled,
        secure,
        frame,
    } = from;
    wit::ElementRow {
        token,
        digest,
        role,
        actions,
        enabled,
        secure,
        frame: frame.map(rect),
    }
}

fn claim(from: plain::Claim) -> wit::Claim {
    let plain::Claim {
        snapshot_id,
        window_digest,
        element_token,
        element_digest,
        target: meant,
        tier: demanded_tier,
        path: demanded_path,
    } = from;
    wit::Claim {
        snapshot_id,
        window_digest,
        element_token,
        element_digest,
        target: meant.map(target),
        tier: demanded_tier.map(tier),
        path: demanded_path.map(path),
    }
}

fn text(from: plain::TextArgs) -> wit::TextArgs {
    let plain::TextArgs {
        length,
        keyed_hash,
        plain,
    } = from;
    wit::TextArgs {
        length,
        keyed_hash,
        plain,
    }
}

fn action(from: plain::Action) -> wit::Action {
    match from {
        plain::Action::Element(plain::ElementArgs {
            kind,
            text: carried,
        }) => wit::Action::Element(wit::ElementArgs {
            kind,
            text: carried.map(text),
        }),
        plain::Action::Point(plain::PointArgs { x, y, start, kind }) => {
            wit::Action::Point(wit::PointArgs {
                x,
                y,
                start: start.map(rect),
                kind,
            })
        }
        plain::Action::Key(plain::KeyArgs { key, modifiers }) => {
            wit::Action::Key(wit::KeyArgs { key, modifiers })
        }
        plain::Action::Text(args) => wit::Action::Text(text(args)),
        plain::Action::Launch(app) => wit::Action::Launch(app),
        plain::Action::Observe(method) => wit::Action::Observe(method),
        plain::Action::Other(verb) => wit::Action::Other(verb),
    }
}

pub(crate) fn dispatch(from: &plain::Dispatch) -> wit::Dispatch {
    let plain::Dispatch {
        head: common,
        action: wanted,
        claim: said,
        snapshot: row,
        element: acted_on,
        focus,
    } = from;
    wit::Dispatch {
        head: head(common),
        action: action(wanted.clone()),
        claim: claim(said.clone()),
        snapshot: snapshot(row.clone()),
        element: acted_on.clone().map(element),
        focus: focus.clone().map(element),
    }
}

fn page(from: plain::PageRow) -> wit::PageRow {
    let plain::PageRow {
        target_id,
        kind,
        owner_session,
        browser_context,
        origin,
        opener,
    } = from;
    wit::PageRow {
        target_id,
        kind,
        owner_session,
        browser_context,
        origin,
        opener,
    }
}

fn url(from: plain::UrlFact) -> wit::UrlFact {
    let plain::UrlFact {
        pointer,
        scheme,
        host,
        port,
        userinfo,
    } = from;
    wit::UrlFact {
        pointer,
        scheme,
        host,
        port,
        userinfo,
    }
}

pub(crate) fn cdp(from: &plain::Cdp) -> wit::Cdp {
    let plain::Cdp {
        head: common,
        page: addressed,
        params,
        params_complete,
        urls,
        script_length,
        nested_in,
    } = from;
    wit::Cdp {
        head: head(common),
        page: addressed.clone().map(page),
        params: params.clone(),
        params_complete: *params_complete,
        urls: urls.iter().cloned().map(url).collect(),
        script_length: *script_length,
        nested_in: nested_in.clone(),
    }
}

pub(crate) fn subject(from: &plain::Subject) -> wit::Subject {
    match from {
        plain::Subject::Dispatch(result) => {
            let plain::DispatchResult {
                outcome: happened,
                tier: used_tier,
                path: used_path,
                effect: proved,
                verification,
                observed_change,
                would_require,
                fresh,
                now_secure,
            } = result.clone();
            wit::Subject::Dispatch(wit::DispatchResult {
                outcome: outcome(happened),
                tier: tier(used_tier),
                path: path(used_path),
                effect: effect(proved),
                verification,
                observed_change,
                would_require: would_require.map(path),
                fresh: fresh.map(snapshot),
                now_secure,
            })
        }
        plain::Subject::Cdp(result) => {
            let plain::CdpResult {
                ok,
                bytes,
                urls,
                page: about,
            } = result.clone();
            wit::Subject::Cdp(wit::CdpResult {
                ok,
                bytes,
                urls: urls.into_iter().map(url).collect(),
                page: about.map(page),
            })
        }
        plain::Subject::Event(event) => wit::Subject::Event(cdp(event)),
    }
}

pub(crate) fn review(from: &plain::Review) -> wit::Review {
    let plain::Review {
        head: common,
        admitted_rules,
        subject: reviewed,
    } = from;
    wit::Review {
        head: head(common),
        admitted_rules: admitted_rules.clone(),
        subject: subject(reviewed),
    }
}
