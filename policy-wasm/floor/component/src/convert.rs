//! Generated types to plain ones, and verdicts back. Every field and every case is named, so that a change of the
//! contract does not compile until it is carried over here.

use maka_floor::facts as plain;
use maka_floor::verdict as answer;

use crate::bindings::exports::maka::policy::hooks as wit;

/// Converts between two enums with the same cases.
macro_rules! same {
    ($name:ident: $wit:ident => $plain:ident { $($case:ident),+ }) => {
        fn $name(from: wit::$wit) -> plain::$plain {
            match from { $(wit::$wit::$case => plain::$plain::$case),+ }
        }
    };
}

same!(tier: Tier => Tier { Ax, SemanticBackground, CoordinateBackground });
same!(path: Path => Path { AxAction, AxAttribute, AxSelect, CgEventPid, SkylightPid, CgEventGlobal, None });
same!(outcome: Outcome => Outcome { Ok, Refused, Failed, Unknown });
same!(effect: Effect => Effect { Confirmed, Unverifiable, SuspectedNoop });
same!(state: SnapshotState => SnapshotState { NeverSeen, Live, Spent, Superseded, Expired, Evicted, OtherGeneration });

fn rect(from: wit::Rect) -> plain::Rect {
    let wit::Rect {
        x,
        y,
        width,
        height,
    } = from;
    plain::Rect {
        x,
        y,
        width,
        height,
    }
}

fn caller(from: wit::Caller) -> plain::Caller {
    let wit::Caller {
        tenant,
        orchestrator,
        session,
        turn,
        grants,
    } = from;
    plain::Caller {
        tenant,
        orchestrator,
        session,
        turn,
        grants,
    }
}

fn authority(from: wit::Authority) -> plain::Authority {
    let wit::Authority {
        protocol,
        allow_global_pointer,
        compat_input,
        generation,
        permitted,
    } = from;
    let permitted = permitted
        .into_iter()
        .map(|row| plain::TierPaths {
            tier: tier(row.tier),
            paths: row.paths.into_iter().map(path).collect(),
        })
        .collect();
    plain::Authority {
        protocol,
        allow_global_pointer,
        compat_input,
        generation,
        permitted,
    }
}

fn head(from: wit::Head) -> plain::Head {
    let wit::Head {
        decision_id,
        now_unix_ms,
        policy_generation,
        tool_call_id,
        method,
        fingerprint,
        caller: asks,
        authority: allowed,
        meter,
        approval,
    } = from;
    let wit::Meter {
        actions_this_turn,
        actions_last_minute,
        denials_this_turn,
        in_flight,
    } = meter;
    plain::Head {
        decision_id,
        now_unix_ms,
        policy_generation,
        tool_call_id,
        method,
        fingerprint,
        caller: caller(asks),
        authority: authority(allowed),
        meter: plain::Meter {
            actions_this_turn,
            actions_last_minute,
            denials_this_turn,
            in_flight,
        },
        approval: approval.map(|grant| {
            let wit::Grant {
                id,
                granted_by,
                expires_unix_ms,
                fingerprint,
                unused,
            } = grant;
            plain::Grant {
                id,
                granted_by,
                expires_unix_ms,
                fingerprint,
                unused,
            }
        }),
    }
}

fn target(from: wit::Target) -> plain::Target {
    let wit::Target {
        pid,
        process_start,
        window_id,
        app_id,
        page,
    } = from;
    plain::Target {
        pid,
        process_start,
        window_id,
        app_id,
        page,
    }
}

fn snapshot(from: wit::SnapshotRow) -> plain::SnapshotRow {
    let wit::SnapshotRow {
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
    plain::SnapshotRow {
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

fn element(from: wit::ElementRow) -> plain::ElementRow {
    let wit::ElementRow {
        token,
        digest,
        role,
        actions,
        enabled,
        secure,
        frame,
    } = from;
    plain::ElementRow {
        token,
        digest,
        role,
        actions,
        enabled,
        secure,
        frame: frame.map(rect),
    }
}

fn claim(from: wit::Claim) -> plain::Claim {
    let wit::Claim {
        snapshot_id,
        window_digest,
        element_token,
        element_digest,
        target: meant,
        tier: demanded_tier,
        path: demanded_path,
    } = from;
    plain::Claim {
        snapshot_id,
        window_digest,
        element_token,
        element_digest,
        target: meant.map(target),
        tier: demanded_tier.map(tier),
        path: demanded_path.map(path),
    }
}

fn text(from: wit::TextArgs) -> plain::TextArgs {
    let wit::TextArgs {
        length,
        keyed_hash,
        plain,
    } = from;
    plain::TextArgs {
        length,
        keyed_hash,
        plain,
    }
}

fn action(from: wit::Action) -> plain::Action {
    match from {
        wit::Action::Element(wit::ElementArgs {
            kind,
            text: carried,
        }) => plain::Action::Element(plain::ElementArgs {
            kind,
            text: carried.map(text),
        }),
        wit::Action::Point(wit::PointArgs { x, y, start, kind }) => {
            plain::Action::Point(plain::PointArgs {
                x,
                y,
                start: start.map(rect),
                kind,
            })
        }
        wit::Action::Key(wit::KeyArgs { key, modifiers }) => {
            plain::Action::Key(plain::KeyArgs { key, modifiers })
        }
        wit::Action::Text(args) => plain::Action::Text(text(args)),
        wit::Action::Launch(app) => plain::Action::Launch(app),
        wit::Action::Observe(method) => plain::Action::Observe(method),
        wit::Action::Other(verb) => plain::Action::Other(verb),
    }
}

pub fn dispatch(from: wit::Dispatch) -> plain::Dispatch {
    let wit::Dispatch {
        head: common,
        action: wanted,
        claim: said,
        snapshot: row,
        element: acted_on,
        focus,
    } = from;
    plain::Dispatch {
        head: head(common),
        action: action(wanted),
        claim: claim(said),
        snapshot: snapshot(row),
        element: acted_on.map(element),
        focus: focus.map(element),
    }
}

fn page(from: wit::PageRow) -> plain::PageRow {
    let wit::PageRow {
        target_id,
        kind,
        owner_session,
        browser_context,
        origin,
        opener,
    } = from;
    plain::PageRow {
        target_id,
        kind,
        owner_session,
        browser_context,
        origin,
        opener,
    }
}

fn url(from: wit::UrlFact) -> plain::UrlFact {
    let wit::UrlFact {
        pointer,
        scheme,
        host,
        port,
        userinfo,
    } = from;
    plain::UrlFact {
        pointer,
        scheme,
        host,
        port,
        userinfo,
    }
}

pub fn cdp(from: wit::Cdp) -> plain::Cdp {
    let wit::Cdp {
        head: common,
        page: addressed,
        params,
        params_complete,
        urls,
        script_length,
        nested_in,
    } = from;
    plain::Cdp {
        head: head(common),
        page: addressed.map(page),
        params,
        params_complete,
        urls: urls.into_iter().map(url).collect(),
        script_length,
        nested_in,
    }
}

pub fn review(from: wit::Review) -> plain::Review {
    let wit::Review {
        head: common,
        admitted_rules,
        subject,
    } = from;
    let subject = match subject {
        wit::Subject::Dispatch(result) => {
            let wit::DispatchResult {
                outcome: happened,
                tier: used_tier,
                path: used_path,
                effect: proved,
                verification,
                observed_change,
                would_require,
                fresh,
                now_secure,
            } = result;
            plain::Subject::Dispatch(plain::DispatchResult {
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
        wit::Subject::Cdp(wit::CdpResult {
            ok,
            bytes,
            urls,
            page: about,
        }) => plain::Subject::Cdp(plain::CdpResult {
            ok,
            bytes,
            urls: urls.into_iter().map(url).collect(),
            page: about.map(page),
        }),
        wit::Subject::Event(event) => plain::Subject::Event(Box::new(cdp(event))),
    };
    plain::Review {
        head: head(common),
        admitted_rules,
        subject,
    }
}

fn obligations(from: Vec<answer::Obligation>) -> Vec<wit::Obligation> {
    from.into_iter()
        .map(|answer::Obligation { kind, arg }| wit::Obligation { kind, arg })
        .collect()
}

pub fn verdict(from: answer::Verdict) -> wit::Verdict {
    let answer::Verdict { decision, rules } = from;
    let decision = match decision {
        answer::Decision::Allow(under) => wit::Decision::Allow(obligations(under)),
        answer::Decision::Deny(code) => wit::Decision::Deny(code),
        answer::Decision::RequireApproval(code) => wit::Decision::RequireApproval(code),
    };
    wit::Verdict { decision, rules }
}

pub fn review_verdict(from: answer::ReviewVerdict) -> wit::ReviewVerdict {
    let answer::ReviewVerdict { disposition, rules } = from;
    let disposition = match disposition {
        answer::Disposition::Release(under) => wit::Disposition::Release(obligations(under)),
        answer::Disposition::Withhold(code) => wit::Disposition::Withhold(code),
        answer::Disposition::Quarantine(code) => wit::Disposition::Quarantine(code),
    };
    wit::ReviewVerdict { disposition, rules }
}
