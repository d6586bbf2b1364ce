//! Judges an executor call before it is forwarded.

use crate::denials::Denial;
use crate::facts::{Action, Dispatch, ElementRow, Head, Path, SnapshotState};
use crate::rules::Rule;
use crate::settings::{GlobalPointer, Settings};
use crate::verdict::{Decision, Verdict};
use crate::{GRANT_GLOBAL_POINTER, GRANT_SECURE_FIELD};

/// The rules of one verdict while it is being reached.
#[derive(Default)]
pub(crate) struct Trail {
    held: Vec<u16>,
}

/// A rule that did not hold.
pub(crate) struct Broken(pub(crate) Rule, pub(crate) Denial);

impl Trail {
    /// Notes that a rule applied; refuses unless it held.
    pub(crate) fn require(&mut self, rule: Rule, held: bool, denial: Denial) -> Result<(), Broken> {
        if !held {
            return Err(Broken(rule, denial));
        }
        self.held.push(rule.index());
        Ok(())
    }

    /// The rules that held, in the order in which they applied.
    pub(crate) fn into_rules(self) -> Vec<u16> {
        self.held
    }
}

/// What the arms of [`Action`] mean for the rules.
enum Kind<'a> {
    /// Changes nothing, or starts an application: bound to no snapshot.
    Unbound,
    /// Acts on an element with this kind.
    Element(&'a str),
    /// Sends keys or text to a focused element.
    Keys,
    /// Acts on a point with this kind.
    Point(&'a str),
}

/// Judges an executor call: the first rule that does not hold refuses it.
#[must_use]
pub fn admit_dispatch(settings: Settings, facts: &Dispatch) -> Verdict {
    let mut trail = Trail::default();
    match judge(settings, facts, &mut trail) {
        Ok(()) => Verdict {
            decision: Decision::Allow(Vec::new()),
            rules: trail.into_rules(),
        },
        Err(Broken(rule, Denial::GlobalPointerApproval)) => Verdict {
            decision: Decision::RequireApproval(Denial::GlobalPointerApproval.code().to_owned()),
            rules: vec![rule.index()],
        },
        Err(Broken(rule, denial)) => Verdict {
            decision: Decision::Deny(denial.code().to_owned()),
            rules: vec![rule.index()],
        },
    }
}

fn judge(settings: Settings, facts: &Dispatch, trail: &mut Trail) -> Result<(), Broken> {
    let kind = classify(&facts.head.method, &facts.action);
    trail.require(Rule::MethodKnown, kind.is_some(), Denial::ActionUnknown)?;
    let kind = kind.unwrap_or(Kind::Unbound);

    if matches!(kind, Kind::Keys | Kind::Point(_)) {
        trail.require(
            Rule::InputSynthetic,
            facts.head.authority.compat_input,
            Denial::SyntheticInputOff,
        )?;
    }
    check_route(settings, facts, &kind, trail)?;
    match kind {
        Kind::Unbound => Ok(()),
        Kind::Element(action) => {
            check_anchor(facts, trail)?;
            check_snapshot(facts, trail)?;
            let element = check_element(facts, facts.element.as_ref(), trail)?;
            trail.require(
                Rule::ElementOffers,
                offers(element, action),
                Denial::ActionNotOffered,
            )?;
            if writes(&facts.action, action) {
                check_secure(&facts.head, element, trail)?;
            }
            Ok(())
        }
        Kind::Keys => {
            check_anchor(facts, trail)?;
            check_snapshot(facts, trail)?;
            let element = check_element(facts, facts.focus.as_ref(), trail)?;
            check_secure(&facts.head, element, trail)
        }
        Kind::Point(_) => {
            let quoted = !facts.claim.snapshot_id.is_empty() && facts.claim.window_digest.is_some();
            trail.require(Rule::AnchorPresent, quoted, Denial::AnchorMissing)?;
            check_snapshot(facts, trail)
        }
    }
}

/// What kind of call this is, if method and action go together.
fn classify<'a>(method: &str, action: &'a Action) -> Option<Kind<'a>> {
    let kind = match action {
        Action::Element(args) => Kind::Element(&args.kind),
        Action::Key(_) | Action::Text(_) => Kind::Keys,
        Action::Point(args) => Kind::Point(&args.kind),
        Action::Launch(_) | Action::Observe(_) => Kind::Unbound,
        Action::Other(_) => return None,
    };
    let fits = match method {
        "dispatch.element" => matches!(kind, Kind::Element(_)),
        "dispatch.key" => matches!(kind, Kind::Keys),
        "dispatch.point" => matches!(kind, Kind::Point(_)),
        "host.dispatch" => !matches!(kind, Kind::Unbound),
        "apps.launch" => matches!(action, Action::Launch(_)),
        "observe" | "host.snapshot" | "window.list" | "apps.list" | "screen.capture" => {
            matches!(action, Action::Observe(_))
        }
        _ => false,
    };
    fits.then_some(kind)
}

/// Tier, path and global pointer.
fn check_route(
    settings: Settings,
    facts: &Dispatch,
    kind: &Kind<'_>,
    trail: &mut Trail,
) -> Result<(), Broken> {
    let (claim, authority) = (&facts.claim, &facts.head.authority);
    let legal = match (claim.tier, claim.path) {
        (Some(tier), Some(path)) => authority.pairs(tier, path),
        (Some(tier), None) => authority.permitted.iter().any(|row| row.tier == tier),
        (None, Some(path)) => authority
            .permitted
            .iter()
            .any(|row| authority.pairs(row.tier, path)),
        (None, None) => true,
    };
    trail.require(Rule::TierPath, legal, Denial::TierPathMismatch)?;

    // A bare pointer movement has no route but the global one, and a drag takes it when it starts outside the window,
    // unless a path is demanded that cannot leave it. Where the handshake forbids that route the executor refuses it by
    // itself; where it allows it, the cursor would move for a caller who has no grant.
    let stays = matches!(claim.path, Some(Path::CgEventPid | Path::SkylightPid));
    let may_go_global = match kind {
        Kind::Point("move") => true,
        Kind::Point("drag") => !stays,
        Kind::Point(_) | Kind::Unbound | Kind::Element(_) | Kind::Keys => false,
    };
    let implied = may_go_global && authority.allow_global_pointer;
    if claim.path == Some(Path::CgEventGlobal) || implied {
        let held = authority.allow_global_pointer && may_move_pointer(&facts.head);
        let denial = match settings.global_pointer {
            GlobalPointer::Approval if authority.allow_global_pointer => {
                Denial::GlobalPointerApproval
            }
            GlobalPointer::Approval | GlobalPointer::Grant => Denial::GlobalPointerForbidden,
        };
        let approved = denial == Denial::GlobalPointerApproval && facts.head.is_approved();
        trail.require(Rule::PointerGlobal, held || approved, denial)?;
    }
    Ok(())
}

/// Whether the caller was given the global pointer.
fn may_move_pointer(head: &Head) -> bool {
    head.caller.holds(GRANT_GLOBAL_POINTER)
}

/// A snapshot, a token and a digest are quoted. An empty text quotes nothing.
fn check_anchor(facts: &Dispatch, trail: &mut Trail) -> Result<(), Broken> {
    let claim = &facts.claim;
    let quoted = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let anchored = !claim.snapshot_id.is_empty()
        && quoted(&claim.element_token)
        && quoted(&claim.element_digest);
    trail.require(Rule::AnchorPresent, anchored, Denial::AnchorMissing)
}

/// The quoted snapshot is ours, of this executor, live, and shows what the caller means.
fn check_snapshot(facts: &Dispatch, trail: &mut Trail) -> Result<(), Broken> {
    let (row, claim, head) = (&facts.snapshot, &facts.claim, &facts.head);
    let known = row.state != SnapshotState::NeverSeen && row.id == claim.snapshot_id;
    trail.require(Rule::SnapKnown, known, Denial::SnapshotUnknown)?;
    trail.require(
        Rule::SnapOwner,
        row.owner_session == head.caller.session,
        Denial::SnapshotForeignSession,
    )?;
    let current =
        row.state != SnapshotState::OtherGeneration && row.generation == head.authority.generation;
    trail.require(
        Rule::SnapGeneration,
        current,
        Denial::SnapshotOtherGeneration,
    )?;
    let dead = match row.state {
        SnapshotState::Live => None,
        SnapshotState::Spent => Some(Denial::SnapshotSpent),
        SnapshotState::Superseded => Some(Denial::SnapshotSuperseded),
        SnapshotState::Expired => Some(Denial::SnapshotExpired),
        SnapshotState::Evicted => Some(Denial::SnapshotEvicted),
        // Refused by the rules above; named so that this match stays complete by itself.
        SnapshotState::NeverSeen => Some(Denial::SnapshotUnknown),
        SnapshotState::OtherGeneration => Some(Denial::SnapshotOtherGeneration),
    };
    trail.require(
        Rule::SnapState,
        dead.is_none(),
        dead.unwrap_or(Denial::SnapshotUnknown),
    )?;
    let same = row.target.is_some() && (claim.target.is_none() || claim.target == row.target);
    trail.require(Rule::SnapTarget, same, Denial::TargetMismatch)?;
    if let Some(digest) = &claim.window_digest {
        trail.require(
            Rule::SnapWindow,
            *digest == row.window_digest,
            Denial::WindowDigestMismatch,
        )?;
    }
    Ok(())
}

/// The quoted element is that of the snapshot, and can be used.
fn check_element<'a>(
    facts: &Dispatch,
    row: Option<&'a ElementRow>,
    trail: &mut Trail,
) -> Result<&'a ElementRow, Broken> {
    let row = row.filter(|row| Some(&row.token) == facts.claim.element_token.as_ref());
    let Some(row) = row else {
        return Err(Broken(Rule::ElementKnown, Denial::ElementUnknown));
    };
    trail.require(Rule::ElementKnown, true, Denial::ElementUnknown)?;
    let same = Some(&row.digest) == facts.claim.element_digest.as_ref();
    trail.require(Rule::ElementDigest, same, Denial::ElementDigestMismatch)?;
    trail.require(Rule::ElementEnabled, row.enabled, Denial::ElementDisabled)?;
    Ok(row)
}

/// Whether the element offers what the action needs, as far as its row can tell. A left click can also be a selection,
/// and whether a value can be written is not part of a snapshot: both are left to the executor, which asks the element.
fn offers(row: &ElementRow, kind: &str) -> bool {
    let advertises = |verb: &str| row.actions.iter().any(|offered| offered == verb);
    match kind.split_once(':') {
        Some(("secondary_action", verb)) => advertises(verb),
        Some(("click", "right")) => advertises("show_menu"),
        // A middle click has no accessibility verb, and no other kind has a variant.
        Some(_) => false,
        None => true,
    }
}

/// Whether an element action writes into the element, or finds out what is in it.
fn writes(action: &Action, kind: &str) -> bool {
    let carries_text = matches!(action, Action::Element(args) if args.text.is_some());
    carries_text
        || !matches!(
            kind.split(':').next(),
            Some(
                "click"
                    | "scroll"
                    | "secondary_action"
                    | "move_window"
                    | "resize_window"
                    | "minimize_window"
            )
        )
}

/// A password field is left alone unless the caller was given it.
fn check_secure(head: &Head, row: &ElementRow, trail: &mut Trail) -> Result<(), Broken> {
    trail.require(
        Rule::FieldSecure,
        !row.secure || head.caller.holds(GRANT_SECURE_FIELD),
        Denial::SecureField,
    )
}
