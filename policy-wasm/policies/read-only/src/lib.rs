//! Lets an agent look, and do nothing.
//!
//! What is not known to be a read is refused, so that a new method is refused until somebody has thought about it.

use maka_policy_sdk::prelude::*;

/// Methods that only read a desktop.
const READS: &[&str] = &[
    "observe",
    "host.snapshot",
    "window.list",
    "apps.list",
    "screen.capture",
];

/// Browser commands that only read.
const COMMANDS: &[&str] = &[
    "Accessibility.disable",
    "Accessibility.enable",
    "Accessibility.getAXNodeAndAncestors",
    "Accessibility.getChildAXNodes",
    "Accessibility.getFullAXTree",
    "Accessibility.getPartialAXTree",
    "Accessibility.getRootAXNode",
    "Accessibility.queryAXTree",
    "Browser.getVersion",
    "DOM.describeNode",
    "DOM.disable",
    "DOM.enable",
    "DOM.getAttributes",
    "DOM.getBoxModel",
    "DOM.getContentQuads",
    "DOM.getDocument",
    "DOM.getNodeForLocation",
    "DOM.getOuterHTML",
    "DOM.querySelector",
    "DOM.querySelectorAll",
    "DOMSnapshot.captureSnapshot",
    "DOMSnapshot.disable",
    "DOMSnapshot.enable",
    "Page.captureScreenshot",
    "Page.disable",
    "Page.enable",
    "Page.getFrameTree",
    "Page.getLayoutMetrics",
    "Page.getNavigationHistory",
    "Target.getTargetInfo",
];

struct ReadOnly;

impl Policy for ReadOnly {
    type Settings = NoSettings;
}

impl AdmitDispatch for ReadOnly {
    fn admit_dispatch(_: &NoSettings, facts: &Dispatch) -> Verdict {
        judge(|trail| {
            let is_read = match known(&facts.action)? {
                Known::Observe(method) => READS.contains(&method),
                Known::Element(_)
                | Known::Point(_)
                | Known::Key(_)
                | Known::Text(_)
                | Known::Launch(_) => false,
            };
            trail.require(rule!("action.read"), is_read, code!("read_only"))
        })
    }
}

impl AdmitCdp for ReadOnly {
    fn admit_cdp(_: &NoSettings, facts: &Cdp) -> Verdict {
        judge(|trail| {
            let is_read = COMMANDS.contains(&facts.head.method.as_str());
            trail.require(rule!("command.read"), is_read, code!("read_only"))
        })
    }
}

policy!(ReadOnly: admit_dispatch, admit_cdp);
