//! Reviews an answer before it is released.
//!
//! An executor that reports something impossible broke its protocol, and a pointer that moved without permission has
//! moved already: both quarantine the session. A page that belongs to someone else is merely not shown.

use crate::GRANT_GLOBAL_POINTER;
use crate::admit::Trail;
use crate::cdp::is_own;
use crate::denials::Denial;
use crate::facts::{
    CdpResult, DispatchResult, Effect, Head, Outcome, PageRow, Path, Review, SnapshotState, Subject,
};
use crate::rules::Rule;
use crate::settings::{GlobalPointer, Settings};
use crate::verdict::{Disposition, ReviewVerdict};

/// Reviews an answer: the first rule that does not hold keeps it back.
#[must_use]
pub fn review_result(settings: Settings, facts: &Review) -> ReviewVerdict {
    match &facts.subject {
        Subject::Dispatch(result) => review_dispatch(settings, &facts.head, result),
        Subject::Cdp(CdpResult { page, .. }) => review_page(&facts.head, page.as_ref()),
        Subject::Event(event) => review_page(&facts.head, event.page.as_ref()),
    }
}

fn review_dispatch(settings: Settings, head: &Head, result: &DispatchResult) -> ReviewVerdict {
    let moved = result.path == Path::CgEventGlobal;
    let confirmed = result.effect == Effect::Confirmed;
    let ours = result.fresh.as_ref().is_none_or(|row| {
        row.state == SnapshotState::Live
            && row.owner_session == head.caller.session
            && row.generation == head.authority.generation
    });
    let mut trail = Trail::default();
    let quarantine = (|| {
        trail.require(
            Rule::ReviewPair,
            head.authority.pairs(result.tier, result.path),
            Denial::TierPathMismatch,
        )?;
        trail.require(
            Rule::ReviewPointer,
            !moved || may_have_moved(settings, head),
            Denial::GlobalPointerForbidden,
        )?;
        trail.require(
            Rule::ReviewHonest,
            !confirmed || result.outcome == Outcome::Ok,
            Denial::OutcomeDishonest,
        )
    })();
    if let Err(broken) = quarantine {
        return ReviewVerdict {
            disposition: Disposition::Quarantine(broken.1.code().to_owned()),
            rules: vec![broken.0.index()],
        };
    }
    release(trail, Rule::ReviewFresh, ours, Denial::SnapshotNotOurs)
}

/// Whether this pointer movement was permitted. The approval was used up when the action was forwarded, so on review
/// only its binding to this action counts.
fn may_have_moved(settings: Settings, head: &Head) -> bool {
    let approved = settings.global_pointer == GlobalPointer::Approval
        && head
            .approval
            .as_ref()
            .is_some_and(|grant| grant.fingerprint == head.fingerprint);
    head.authority.allow_global_pointer && (head.caller.holds(GRANT_GLOBAL_POINTER) || approved)
}

fn review_page(head: &Head, page: Option<&PageRow>) -> ReviewVerdict {
    let own = page.is_none_or(|page| is_own(page, &head.caller.session));
    release(Trail::default(), Rule::CdpOwner, own, Denial::PageForeign)
}

fn release(mut trail: Trail, rule: Rule, held: bool, denial: Denial) -> ReviewVerdict {
    match trail.require(rule, held, denial) {
        Ok(()) => ReviewVerdict {
            disposition: Disposition::Release(Vec::new()),
            rules: trail.into_rules(),
        },
        Err(broken) => ReviewVerdict {
            disposition: Disposition::Withhold(broken.1.code().to_owned()),
            rules: vec![broken.0.index()],
        },
    }
}
