//! Flips one fact at a time, to see on which facts a verdict depends.
//!
//! A case whose verdict stays the same whatever single fact is flipped shows nothing about the policy: it passes for any
//! policy that always says the same. Where recorded and claimed side have the same fact, one that disagrees is flipped into
//! agreement, because a refusal depends on what would have prevented it.

use maka_policy_host::facts::{
    Action, Authority, Cdp, Dispatch, DispatchResult, Effect, ElementArgs, ElementRow, Head,
    Outcome as Happened, PageRow, Path, Review, SnapshotRow, SnapshotState, Subject, Tier, UrlFact,
};
use maka_policy_host::trial::Facts;

/// A fact that was flipped, with the facts that result.
#[derive(Debug, Clone)]
pub struct Flip {
    /// The fact.
    pub fact: &'static str,
    /// Everything else is as it was.
    pub facts: Facts,
}

/// Every flip of these facts.
#[must_use]
pub fn flips(facts: &Facts) -> Vec<Flip> {
    let mut flips = Vec::new();
    for (fact, flip) in HEAD {
        push(&mut flips, facts, fact, |facts| flip(facts.head_mut()));
    }
    match facts {
        Facts::Dispatch(_) => {
            for (fact, flip) in DISPATCH {
                push(&mut flips, facts, fact, |facts| match facts {
                    Facts::Dispatch(facts) => flip(facts),
                    Facts::Cdp(_) | Facts::Review(_) => false,
                });
            }
        }
        Facts::Cdp(_) => {
            for (fact, flip) in CDP {
                push(&mut flips, facts, fact, |facts| match facts {
                    Facts::Cdp(facts) => flip(facts),
                    Facts::Dispatch(_) | Facts::Review(_) => false,
                });
            }
        }
        Facts::Review(_) => {
            for (fact, flip) in REVIEW {
                push(&mut flips, facts, fact, |facts| match facts {
                    Facts::Review(facts) => flip(facts),
                    Facts::Dispatch(_) | Facts::Cdp(_) => false,
                });
            }
        }
    }
    flips
}

fn push(
    flips: &mut Vec<Flip>,
    facts: &Facts,
    fact: &'static str,
    flip: impl FnOnce(&mut Facts) -> bool,
) {
    let mut changed = facts.clone();
    if flip(&mut changed) && changed != *facts {
        flips.push(Flip {
            fact,
            facts: changed,
        });
    }
}

/// Changes one fact; false where there is nothing to change.
type Change<T> = (&'static str, fn(&mut T) -> bool);

/// What a flipped text becomes: nothing that any fixture would say.
const OTHER: &str = "flipped";
/// What a flipped counter becomes.
const MANY: u32 = 1_000_000;
const DAY_MS: u64 = 86_400_000;

const HEAD: &[Change<Head>] = &[
    ("method", |head| text(&mut head.method)),
    ("session", |head| text(&mut head.caller.session)),
    ("orchestrator", |head| text(&mut head.caller.orchestrator)),
    ("tenant", |head| text(&mut head.caller.tenant)),
    ("grants", |head| {
        head.caller.grants = if head.caller.grants.is_empty() {
            vec!["global-pointer".to_owned(), "secure-field".to_owned()]
        } else {
            Vec::new()
        };
        true
    }),
    ("fingerprint", |head| text(&mut head.fingerprint)),
    ("now_unix_ms", |head| {
        head.now_unix_ms = head.now_unix_ms.saturating_add(DAY_MS);
        true
    }),
    ("authority.protocol", |head| {
        text(&mut head.authority.protocol)
    }),
    ("authority.allow_global_pointer", |head| {
        not(&mut head.authority.allow_global_pointer)
    }),
    ("authority.compat_input", |head| {
        not(&mut head.authority.compat_input)
    }),
    ("authority.generation", |head| {
        next(&mut head.authority.generation)
    }),
    ("authority.permitted", |head| {
        head.authority.permitted = if head.authority.permitted.is_empty() {
            Authority::pairing_of_maka_cu_2()
        } else {
            Vec::new()
        };
        true
    }),
    ("meter.actions_this_turn", |head| {
        count(&mut head.meter.actions_this_turn)
    }),
    ("meter.actions_last_minute", |head| {
        count(&mut head.meter.actions_last_minute)
    }),
    ("meter.denials_this_turn", |head| {
        count(&mut head.meter.denials_this_turn)
    }),
    ("meter.in_flight", |head| count(&mut head.meter.in_flight)),
    ("approval", |head| head.approval.take().is_some()),
    ("approval.fingerprint", |head| {
        head.approval
            .as_mut()
            .is_some_and(|grant| text(&mut grant.fingerprint))
    }),
    ("approval.unused", |head| {
        head.approval
            .as_mut()
            .is_some_and(|grant| not(&mut grant.unused))
    }),
];

const DISPATCH: &[Change<Dispatch>] = &[
    // Whether the call acts or only reads.
    ("action", |facts| {
        facts.action = match facts.action {
            Action::Observe(_) => Action::Element(ElementArgs {
                kind: "click".to_owned(),
                text: None,
            }),
            Action::Element(_)
            | Action::Point(_)
            | Action::Key(_)
            | Action::Text(_)
            | Action::Launch(_)
            | Action::Other(_) => Action::Observe("observe".to_owned()),
        };
        true
    }),
    ("action.kind", |facts| match &mut facts.action {
        Action::Element(args) => text(&mut args.kind),
        Action::Point(args) => text(&mut args.kind),
        Action::Key(args) => text(&mut args.key),
        Action::Text(args) => count(&mut args.length),
        Action::Launch(name) | Action::Observe(name) | Action::Other(name) => text(name),
    }),
    ("action.text", |facts| match &mut facts.action {
        Action::Element(args) => args.text.take().is_some(),
        Action::Text(args) => args.plain.take().is_some(),
        Action::Point(_)
        | Action::Key(_)
        | Action::Launch(_)
        | Action::Observe(_)
        | Action::Other(_) => false,
    }),
    // The method that goes with the action, where another one was named.
    ("method", |facts| {
        let fitting = match facts.action {
            Action::Element(_) => "dispatch.element",
            Action::Point(_) => "dispatch.point",
            Action::Key(_) | Action::Text(_) => "dispatch.key",
            Action::Launch(_) => "apps.launch",
            Action::Observe(_) => "observe",
            Action::Other(_) => return false,
        };
        fitting.clone_into(&mut facts.head.method);
        true
    }),
    ("claim.snapshot", |facts| text(&mut facts.claim.snapshot_id)),
    ("claim.window_digest", |facts| {
        agree(
            &mut facts.claim.window_digest,
            Some(&facts.snapshot.window_digest),
        )
    }),
    ("claim.element", |facts| {
        let row = facts.element.as_ref().or(facts.focus.as_ref());
        agree(&mut facts.claim.element_token, row.map(|row| &row.token))
    }),
    ("claim.element_digest", |facts| {
        let row = facts.element.as_ref().or(facts.focus.as_ref());
        agree(&mut facts.claim.element_digest, row.map(|row| &row.digest))
    }),
    ("claim.target", |facts| {
        if facts.claim.target == facts.snapshot.target {
            let target = facts.claim.target.as_mut();
            return target.is_some_and(|target| count(&mut target.pid));
        }
        facts.claim.target.clone_from(&facts.snapshot.target);
        true
    }),
    ("claim.tier", |facts| facts.claim.tier.take().is_some()),
    ("claim.path", |facts| facts.claim.path.take().is_some()),
    ("snapshot.state", |facts| {
        facts.snapshot.state = match facts.snapshot.state {
            SnapshotState::Live => SnapshotState::Spent,
            SnapshotState::NeverSeen
            | SnapshotState::Spent
            | SnapshotState::Superseded
            | SnapshotState::Expired
            | SnapshotState::Evicted
            | SnapshotState::OtherGeneration => SnapshotState::Live,
        };
        true
    }),
    ("snapshot.session", |facts| {
        own(
            &mut facts.snapshot.owner_session,
            &facts.head.caller.session,
        )
    }),
    ("snapshot.generation", |facts| {
        generation(&mut facts.snapshot, facts.head.authority.generation)
    }),
    ("snapshot.age_ms", |facts| {
        facts.snapshot.age_ms = facts.snapshot.age_ms.saturating_add(DAY_MS);
        true
    }),
    ("snapshot.target", |facts| {
        facts.snapshot.target = match &facts.claim.target {
            Some(claimed) if facts.snapshot.target.as_ref() != Some(claimed) => {
                Some(claimed.clone())
            }
            Some(_) | None => None,
        };
        true
    }),
    ("snapshot.window_digest", |facts| {
        match &facts.claim.window_digest {
            Some(claimed) => own(&mut facts.snapshot.window_digest, claimed),
            None => text(&mut facts.snapshot.window_digest),
        }
    }),
    ("element.token", |facts| {
        let claimed = facts.claim.element_token.clone().unwrap_or_default();
        element(facts, |row| own(&mut row.token, &claimed))
    }),
    ("element.digest", |facts| {
        let claimed = facts.claim.element_digest.clone().unwrap_or_default();
        element(facts, |row| own(&mut row.digest, &claimed))
    }),
    ("element.role", |facts| {
        element(facts, |row| text(&mut row.role))
    }),
    ("element.actions", |facts| {
        element(facts, |row| {
            row.actions = if row.actions.iter().any(|action| action == "show_menu") {
                Vec::new()
            } else {
                vec!["press".to_owned(), "show_menu".to_owned()]
            };
            true
        })
    }),
    ("element.enabled", |facts| {
        element(facts, |row| not(&mut row.enabled))
    }),
    ("element.secure", |facts| {
        element(facts, |row| not(&mut row.secure))
    }),
];

const CDP: &[Change<Cdp>] = &[
    // A command that only looks, where another one was named.
    ("method", |facts| {
        "Page.getLayoutMetrics".clone_into(&mut facts.head.method);
        true
    }),
    ("page", |facts| facts.page.take().is_some()),
    ("page.session", |facts| {
        page(facts.page.as_mut(), &facts.head.caller.session)
    }),
    ("page.context", |facts| {
        let page = facts.page.as_mut();
        page.is_some_and(|page| {
            if page.browser_context.is_empty() {
                return text(&mut page.browser_context);
            }
            page.browser_context.clear();
            true
        })
    }),
    ("page.origin", |facts| {
        let page = facts.page.as_mut();
        page.is_some_and(|page| text(&mut page.origin))
    }),
    ("params", |facts| text(&mut facts.params)),
    ("params_complete", |facts| not(&mut facts.params_complete)),
    ("urls.scheme", |facts| scheme(&mut facts.urls)),
    ("urls.host", |facts| {
        let url = facts.urls.first_mut();
        url.is_some_and(|url| text(&mut url.host))
    }),
    ("urls.userinfo", |facts| {
        let url = facts.urls.first_mut();
        url.is_some_and(|url| not(&mut url.userinfo))
    }),
    ("script_length", |facts| {
        facts.script_length = match facts.script_length {
            Some(_) => None,
            None => Some(MANY),
        };
        true
    }),
    ("nested_in", |facts| {
        facts.nested_in = match facts.nested_in {
            Some(_) => None,
            None => Some(OTHER.to_owned()),
        };
        true
    }),
];

const REVIEW: &[Change<Review>] = &[
    ("result.outcome", |facts| {
        result(facts, |result| {
            result.outcome = match result.outcome {
                Happened::Ok => Happened::Failed,
                Happened::Refused | Happened::Failed | Happened::Unknown => Happened::Ok,
            };
            true
        })
    }),
    ("result.tier", |facts| {
        result(facts, |result| {
            result.tier = match result.tier {
                Tier::Ax => Tier::CoordinateBackground,
                Tier::SemanticBackground | Tier::CoordinateBackground => Tier::Ax,
            };
            true
        })
    }),
    ("result.path", |facts| {
        result(facts, |result| {
            result.path = match result.path {
                Path::CgEventPid => Path::AxAction,
                Path::AxAction
                | Path::AxAttribute
                | Path::AxSelect
                | Path::SkylightPid
                | Path::CgEventGlobal
                | Path::None => Path::CgEventPid,
            };
            true
        })
    }),
    ("result.effect", |facts| {
        result(facts, |result| {
            result.effect = match result.effect {
                Effect::Confirmed => Effect::Unverifiable,
                Effect::Unverifiable | Effect::SuspectedNoop => Effect::Confirmed,
            };
            true
        })
    }),
    ("result.now_secure", |facts| {
        result(facts, |result| not(&mut result.now_secure))
    }),
    ("result.fresh", |facts| {
        result(facts, |result| result.fresh.take().is_some())
    }),
    ("result.fresh.session", |facts| {
        let session = facts.head.caller.session.clone();
        result(facts, |result| {
            let fresh = result.fresh.as_mut();
            fresh.is_some_and(|row| own(&mut row.owner_session, &session))
        })
    }),
    ("page.session", |facts| {
        let session = facts.head.caller.session.clone();
        page(
            match &mut facts.subject {
                Subject::Cdp(result) => result.page.as_mut(),
                Subject::Event(event) => event.page.as_mut(),
                Subject::Dispatch(_) => None,
            },
            &session,
        )
    }),
    ("urls.scheme", |facts| match &mut facts.subject {
        Subject::Cdp(result) => scheme(&mut result.urls),
        Subject::Event(event) => scheme(&mut event.urls),
        Subject::Dispatch(_) => false,
    }),
];

fn text(fact: &mut String) -> bool {
    OTHER.clone_into(fact);
    true
}

fn not(fact: &mut bool) -> bool {
    *fact = !*fact;
    true
}

fn next(fact: &mut u64) -> bool {
    *fact = fact.wrapping_add(1);
    true
}

fn count(fact: &mut u32) -> bool {
    *fact = if *fact == MANY { 0 } else { MANY };
    true
}

/// Makes a claim that disagrees with the record agree, and one that agrees disagree.
fn agree(claim: &mut Option<String>, recorded: Option<&String>) -> bool {
    if claim.as_ref() == recorded {
        return claim.as_mut().is_some_and(text);
    }
    *claim = recorded.cloned();
    true
}

/// Makes a record that disagrees with the claim agree, and one that agrees disagree: a foreign owner becomes the caller.
fn own(record: &mut String, claim: &str) -> bool {
    if record == claim {
        return text(record);
    }
    claim.clone_into(record);
    true
}

fn generation(row: &mut SnapshotRow, current: u64) -> bool {
    row.generation = if row.generation == current {
        current.wrapping_add(1)
    } else {
        current
    };
    true
}

/// Changes the row behind the quoted token, whichever of the two it is.
fn element(facts: &mut Dispatch, change: impl FnOnce(&mut ElementRow) -> bool) -> bool {
    match (&mut facts.element, &mut facts.focus) {
        (Some(row), _) | (None, Some(row)) => change(row),
        (None, None) => false,
    }
}

fn page(page: Option<&mut PageRow>, session: &str) -> bool {
    page.is_some_and(|page| own(&mut page.owner_session, session))
}

fn scheme(urls: &mut [UrlFact]) -> bool {
    let url = urls.first_mut();
    url.is_some_and(|url| {
        let other = if url.scheme == "https" {
            "file"
        } else {
            "https"
        };
        other.clone_into(&mut url.scheme);
        true
    })
}

fn result(facts: &mut Review, change: impl FnOnce(&mut DispatchResult) -> bool) -> bool {
    match &mut facts.subject {
        Subject::Dispatch(result) => change(result),
        Subject::Cdp(_) | Subject::Event(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use maka_policy_host::facts::{Caller, Claim, Meter};

    use super::*;

    fn facts() -> Facts {
        Facts::Dispatch(Box::new(Dispatch {
            head: Head {
                decision_id: String::new(),
                now_unix_ms: 0,
                policy_generation: 1,
                tool_call_id: String::new(),
                method: "observe".to_owned(),
                fingerprint: String::new(),
                caller: Caller::default(),
                authority: Authority {
                    protocol: "maka.cu/2".to_owned(),
                    allow_global_pointer: false,
                    compat_input: false,
                    generation: 1,
                    permitted: Vec::new(),
                },
                meter: Meter::default(),
                approval: None,
            },
            action: Action::Observe("observe".to_owned()),
            claim: Claim {
                window_digest: Some("before".to_owned()),
                ..Claim::default()
            },
            snapshot: SnapshotRow {
                window_digest: "after".to_owned(),
                ..SnapshotRow::never_seen("s1")
            },
            element: None,
            focus: None,
        }))
    }

    /// Each flip differs from the facts, and in nothing but its own fact.
    #[test]
    fn a_flip_changes_something_and_only_once() {
        let facts = facts();
        let flips = flips(&facts);
        for flip in &flips {
            assert_ne!(flip.facts, facts, "{}", flip.fact);
        }
        let named = |fact: &str| flips.iter().filter(|flip| flip.fact == fact).count();
        assert_eq!(named("snapshot.state"), 1);
        // There is no element to change, and the method goes with the action already.
        assert_eq!(named("element.enabled"), 0);
        assert_eq!(named("method"), 1);
        let agreeing = flips
            .iter()
            .find(|flip| flip.fact == "claim.window_digest")
            .unwrap();
        let Facts::Dispatch(agreeing) = &agreeing.facts else {
            panic!("a dispatch")
        };
        assert_eq!(agreeing.claim.window_digest.as_deref(), Some("after"));
    }
}
