//! Every fact of the contract as text, by its path.
//!
//! Names and enum members are those of `wit/policy.wit`. A missing option is `-`, a list joins its members with a comma,
//! and a path that does not exist is `?`, which no fixture expects.

use maka_policy_sdk::contract::{
    Action, Cdp, Claim, Dispatch, DispatchResult, Effect, ElementRow, Head, Outcome, PageRow, Path,
    Rect, Review, SnapshotRow, SnapshotState, Subject, Target, TextArgs, Tier, UrlFact,
};

const NO_FACT: &str = "?";

pub(crate) fn dispatch(facts: &Dispatch, path: &str) -> String {
    let (first, rest) = split(path);
    match first {
        "head" => head(&facts.head, rest),
        "action" => action(&facts.action, rest),
        "claim" => claim(&facts.claim, rest),
        "snapshot" => snapshot(&facts.snapshot, rest),
        "element" => option(facts.element.as_ref(), |row| element(row, rest)),
        "focus" => option(facts.focus.as_ref(), |row| element(row, rest)),
        _ => NO_FACT.to_owned(),
    }
}

pub(crate) fn cdp(facts: &Cdp, path: &str) -> String {
    let (first, rest) = split(path);
    match first {
        "head" => head(&facts.head, rest),
        "page" => option(facts.page.as_ref(), |row| page(row, rest)),
        "params" => facts.params.clone(),
        "params-complete" => facts.params_complete.to_string(),
        "urls" => urls(&facts.urls, rest),
        "script-length" => shown(facts.script_length),
        "nested-in" => shown(facts.nested_in.as_ref()),
        _ => NO_FACT.to_owned(),
    }
}

pub(crate) fn review(facts: &Review, path: &str) -> String {
    let (first, rest) = split(path);
    match (first, &facts.subject) {
        ("head", _) => head(&facts.head, rest),
        ("admitted-rules", _) => joined(facts.admitted_rules.iter()),
        ("subject", Subject::Dispatch(_)) => "dispatch".to_owned(),
        ("subject", Subject::Cdp(_)) => "cdp".to_owned(),
        ("subject", Subject::Event(_)) => "event".to_owned(),
        ("dispatch", Subject::Dispatch(facts)) => result(facts, rest),
        ("event", Subject::Event(facts)) => cdp(facts, rest),
        ("cdp", Subject::Cdp(facts)) => {
            let (first, rest) = split(rest);
            match first {
                "ok" => facts.ok.to_string(),
                "bytes" => facts.bytes.to_string(),
                "urls" => urls(&facts.urls, rest),
                "page" => option(facts.page.as_ref(), |row| page(row, rest)),
                _ => NO_FACT.to_owned(),
            }
        }
        _ => NO_FACT.to_owned(),
    }
}

fn head(facts: &Head, path: &str) -> String {
    let permitted = |tier| {
        let rows = facts
            .authority
            .permitted
            .iter()
            .filter(|row| row.tier == tier);
        joined(rows.flat_map(|row| row.paths.iter().map(|path| path_name(*path))))
    };
    match path {
        "decision-id" => facts.decision_id.clone(),
        "now-unix-ms" => facts.now_unix_ms.to_string(),
        "policy-generation" => facts.policy_generation.to_string(),
        "tool-call-id" => facts.tool_call_id.clone(),
        "method" => facts.method.clone(),
        "fingerprint" => facts.fingerprint.clone(),
        "caller.tenant" => facts.caller.tenant.clone(),
        "caller.orchestrator" => facts.caller.orchestrator.clone(),
        "caller.session" => facts.caller.session.clone(),
        "caller.turn" => facts.caller.turn.clone(),
        "caller.grants" => joined(facts.caller.grants.iter()),
        "authority.protocol" => facts.authority.protocol.clone(),
        "authority.allow-global-pointer" => facts.authority.allow_global_pointer.to_string(),
        "authority.compat-input" => facts.authority.compat_input.to_string(),
        "authority.generation" => facts.authority.generation.to_string(),
        "authority.permitted.ax" => permitted(Tier::Ax),
        "authority.permitted.semantic-background" => permitted(Tier::SemanticBackground),
        "authority.permitted.coordinate-background" => permitted(Tier::CoordinateBackground),
        "meter.actions-this-turn" => facts.meter.actions_this_turn.to_string(),
        "meter.actions-last-minute" => facts.meter.actions_last_minute.to_string(),
        "meter.denials-this-turn" => facts.meter.denials_this_turn.to_string(),
        "meter.in-flight" => facts.meter.in_flight.to_string(),
        "approval.id" => option(facts.approval.as_ref(), |grant| grant.id.clone()),
        "approval.granted-by" => option(facts.approval.as_ref(), |grant| grant.granted_by.clone()),
        "approval.expires-unix-ms" => option(facts.approval.as_ref(), |grant| {
            grant.expires_unix_ms.to_string()
        }),
        "approval.fingerprint" => {
            option(facts.approval.as_ref(), |grant| grant.fingerprint.clone())
        }
        "approval.unused" => option(facts.approval.as_ref(), |grant| grant.unused.to_string()),
        _ => NO_FACT.to_owned(),
    }
}

fn action(facts: &Action, path: &str) -> String {
    match (path, facts) {
        ("", Action::Element(_)) => "element".to_owned(),
        ("", Action::Point(_)) => "point".to_owned(),
        ("", Action::Key(_)) => "key".to_owned(),
        ("", Action::Text(_)) => "text".to_owned(),
        ("", Action::Launch(_)) => "launch".to_owned(),
        ("", Action::Observe(_)) => "observe".to_owned(),
        ("", Action::Other(_)) => "other".to_owned(),
        ("element.kind", Action::Element(args)) => args.kind.clone(),
        ("element.text.length", Action::Element(args)) => {
            option(args.text.as_ref(), |args| text(args, "length"))
        }
        ("element.text.keyed-hash", Action::Element(args)) => {
            option(args.text.as_ref(), |args| text(args, "keyed-hash"))
        }
        ("element.text.plain", Action::Element(args)) => {
            option(args.text.as_ref(), |args| text(args, "plain"))
        }
        ("point.x", Action::Point(args)) => args.x.to_string(),
        ("point.y", Action::Point(args)) => args.y.to_string(),
        ("point.start", Action::Point(args)) => option(args.start.as_ref(), rect),
        ("point.kind", Action::Point(args)) => args.kind.clone(),
        ("key.key", Action::Key(args)) => args.key.clone(),
        ("key.modifiers", Action::Key(args)) => joined(args.modifiers.iter()),
        ("text.length", Action::Text(args)) => text(args, "length"),
        ("text.keyed-hash", Action::Text(args)) => text(args, "keyed-hash"),
        ("text.plain", Action::Text(args)) => text(args, "plain"),
        ("launch", Action::Launch(name))
        | ("observe", Action::Observe(name))
        | ("other", Action::Other(name)) => name.clone(),
        _ => NO_FACT.to_owned(),
    }
}

fn text(facts: &TextArgs, path: &str) -> String {
    match path {
        "length" => facts.length.to_string(),
        "keyed-hash" => facts.keyed_hash.clone(),
        "plain" => shown(facts.plain.as_ref()),
        _ => NO_FACT.to_owned(),
    }
}

fn claim(facts: &Claim, path: &str) -> String {
    let (first, rest) = split(path);
    match first {
        "snapshot-id" => facts.snapshot_id.clone(),
        "window-digest" => shown(facts.window_digest.as_ref()),
        "element-token" => shown(facts.element_token.as_ref()),
        "element-digest" => shown(facts.element_digest.as_ref()),
        "target" => option(facts.target.as_ref(), |facts| target(facts, rest)),
        "tier" => option(facts.tier.as_ref(), |tier| tier_name(*tier).to_owned()),
        "path" => option(facts.path.as_ref(), |path| path_name(*path).to_owned()),
        _ => NO_FACT.to_owned(),
    }
}

fn target(facts: &Target, path: &str) -> String {
    match path {
        "pid" => facts.pid.to_string(),
        "process-start" => facts.process_start.to_string(),
        "window-id" => facts.window_id.to_string(),
        "app-id" => facts.app_id.clone(),
        "page" => shown(facts.page.as_ref()),
        _ => NO_FACT.to_owned(),
    }
}

fn snapshot(facts: &SnapshotRow, path: &str) -> String {
    let (first, rest) = split(path);
    match first {
        "id" => facts.id.clone(),
        "state" => state_name(facts.state).to_owned(),
        "owner-session" => facts.owner_session.clone(),
        "generation" => facts.generation.to_string(),
        "epoch" => facts.epoch.to_string(),
        "age-ms" => facts.age_ms.to_string(),
        "target" => option(facts.target.as_ref(), |facts| target(facts, rest)),
        "window-digest" => facts.window_digest.clone(),
        "truncated" => facts.truncated.to_string(),
        _ => NO_FACT.to_owned(),
    }
}

fn element(facts: &ElementRow, path: &str) -> String {
    match path {
        "token" => facts.token.clone(),
        "digest" => facts.digest.clone(),
        "role" => facts.role.clone(),
        "actions" => joined(facts.actions.iter()),
        "enabled" => facts.enabled.to_string(),
        "secure" => facts.secure.to_string(),
        "frame" => option(facts.frame.as_ref(), rect),
        _ => NO_FACT.to_owned(),
    }
}

fn page(facts: &PageRow, path: &str) -> String {
    match path {
        "target-id" => facts.target_id.clone(),
        "kind" => facts.kind.clone(),
        "owner-session" => facts.owner_session.clone(),
        "browser-context" => facts.browser_context.clone(),
        "origin" => facts.origin.clone(),
        "opener" => shown(facts.opener.as_ref()),
        _ => NO_FACT.to_owned(),
    }
}

/// One column of all rows.
fn urls(facts: &[UrlFact], path: &str) -> String {
    match path {
        "pointer" => joined(facts.iter().map(|url| &url.pointer)),
        "scheme" => joined(facts.iter().map(|url| &url.scheme)),
        "host" => joined(facts.iter().map(|url| &url.host)),
        "port" => joined(facts.iter().map(|url| shown(url.port))),
        "userinfo" => joined(facts.iter().map(|url| url.userinfo)),
        _ => NO_FACT.to_owned(),
    }
}

fn result(facts: &DispatchResult, path: &str) -> String {
    let (first, rest) = split(path);
    match first {
        "outcome" => match facts.outcome {
            Outcome::Ok => "ok",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
        }
        .to_owned(),
        "tier" => tier_name(facts.tier).to_owned(),
        "path" => path_name(facts.path).to_owned(),
        "effect" => match facts.effect {
            Effect::Confirmed => "confirmed",
            Effect::Unverifiable => "unverifiable",
            Effect::SuspectedNoop => "suspected-noop",
        }
        .to_owned(),
        "verification" => facts.verification.clone(),
        "observed-change" => facts.observed_change.to_string(),
        "would-require" => option(facts.would_require.as_ref(), |path| {
            path_name(*path).to_owned()
        }),
        "fresh" => option(facts.fresh.as_ref(), |row| snapshot(row, rest)),
        "now-secure" => facts.now_secure.to_string(),
        _ => NO_FACT.to_owned(),
    }
}

fn rect(facts: &Rect) -> String {
    joined([facts.x, facts.y, facts.width, facts.height])
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Ax => "ax",
        Tier::SemanticBackground => "semantic-background",
        Tier::CoordinateBackground => "coordinate-background",
    }
}

fn path_name(path: Path) -> &'static str {
    match path {
        Path::AxAction => "ax-action",
        Path::AxAttribute => "ax-attribute",
        Path::AxSelect => "ax-select",
        Path::CgEventPid => "cg-event-pid",
        Path::SkylightPid => "skylight-pid",
        Path::CgEventGlobal => "cg-event-global",
        Path::None => "none",
    }
}

fn state_name(state: SnapshotState) -> &'static str {
    match state {
        SnapshotState::NeverSeen => "never-seen",
        SnapshotState::Live => "live",
        SnapshotState::Spent => "spent",
        SnapshotState::Superseded => "superseded",
        SnapshotState::Expired => "expired",
        SnapshotState::Evicted => "evicted",
        SnapshotState::OtherGeneration => "other-generation",
    }
}

fn split(path: &str) -> (&str, &str) {
    path.split_once('.').unwrap_or((path, ""))
}

fn option<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn shown(value: Option<impl ToString>) -> String {
    option(value, |value| value.to_string())
}

fn joined(values: impl IntoIterator<Item = impl ToString>) -> String {
    let texts: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(",")
}
