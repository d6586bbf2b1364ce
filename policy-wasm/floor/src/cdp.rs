//! Judges a browser command before it is forwarded.

use crate::admit::{Broken, Trail};
use crate::denials::Denial;
use crate::facts::{Cdp, PageRow, UrlFact};
use crate::rules::Rule;
use crate::verdict::{Decision, Verdict};

/// Commands whose parameters cannot carry anything that would have to be judged.
const SMALL_INPUT: &[&str] = &["Page.captureScreenshot", "Page.printToPDF"];

/// The wrapper that the gateway takes off and submits the inner command of.
const WRAPPER: &str = "Target.sendMessageToTarget";

/// Commands that end the browser for everyone.
const WHOLE_BROWSER: &[&str] = &["Browser.close", "Browser.crash", "Browser.crashGpuProcess"];

/// Commands of browser-wide domains that address one page, so that a page which cannot be found is a foreign page.
const ADDRESSED: &[&str] = &[
    "Target.activateTarget",
    "Target.attachToTarget",
    "Target.closeTarget",
    "Target.detachFromTarget",
    "Target.disposeBrowserContext",
    "Target.getTargetInfo",
];

/// Domains whose commands need not address a page.
const BROWSER_WIDE: &[&str] = &["Browser", "Schema", "SystemInfo", "Target"];

/// Judges a browser command: the first rule that does not hold refuses it.
#[must_use]
pub fn admit_cdp(facts: &Cdp) -> Verdict {
    let mut trail = Trail::default();
    match judge(facts, &mut trail) {
        Ok(()) => Verdict {
            decision: Decision::Allow(Vec::new()),
            rules: trail.into_rules(),
        },
        Err(Broken(rule, denial)) => Verdict {
            decision: Decision::Deny(denial.code().to_owned()),
            rules: vec![rule.index()],
        },
    }
}

fn judge(facts: &Cdp, trail: &mut Trail) -> Result<(), Broken> {
    let method = facts.head.method.as_str();
    let complete = facts.params_complete || SMALL_INPUT.contains(&method);
    trail.require(Rule::CdpComplete, complete, Denial::FactsTooLarge)?;
    let open = method != WRAPPER
        && method != "Target.exposeDevToolsProtocol"
        && facts
            .nested_in
            .as_ref()
            .is_none_or(|wrapper| wrapper == WRAPPER);
    trail.require(Rule::CdpWrapper, open, Denial::CdpSmuggling)?;
    trail.require(Rule::CdpOwner, owns(facts, method), Denial::PageForeign)?;
    trail.require(
        Rule::CdpDestination,
        facts.urls.iter().all(is_web),
        Denial::DestinationForbidden,
    )
}

/// Whether the command stays with pages of the caller's own session.
fn owns(facts: &Cdp, method: &str) -> bool {
    if WHOLE_BROWSER.contains(&method) {
        return false;
    }
    match &facts.page {
        Some(page) => {
            // The default context has no name; whoever disposes of it takes everyone's pages along.
            is_own(page, &facts.head.caller.session)
                && (method != "Target.disposeBrowserContext" || !page.browser_context.is_empty())
        }
        None => {
            let domain = method.split('.').next().unwrap_or_default();
            BROWSER_WIDE.contains(&domain) && !ADDRESSED.contains(&method)
        }
    }
}

/// Whether the page belongs to this session. A session without a name owns nothing.
pub(crate) fn is_own(page: &PageRow, session: &str) -> bool {
    !session.is_empty() && page.owner_session == session
}

fn is_web(url: &UrlFact) -> bool {
    match url.scheme.as_str() {
        "http" | "https" => true,
        "about" => url.host == "blank",
        _ => false,
    }
}
