//! Refuses everything: what an operator activates to stop all work without stopping the gateway.

wit_bindgen::generate!({ path: "../../wit", world: "policy" });

use exports::maka::policy::hooks::{
    Cdp, Decision, Dispatch, Disposition, Guest, Review, ReviewVerdict, SettingsError, Verdict,
};

/// The only rule of the manifest.
const DENY_ALL: u16 = 0;

struct DenyAll;

fn deny() -> Verdict {
    Verdict {
        decision: Decision::Deny("deny_all".to_owned()),
        rules: vec![DENY_ALL],
    }
}

impl Guest for DenyAll {
    fn prepare(settings: String) -> Result<Vec<u8>, Vec<SettingsError>> {
        if settings == "{}" {
            return Ok(Vec::new());
        }
        Err(vec![SettingsError {
            pointer: String::new(),
            code: "not_in_schema".to_owned(),
        }])
    }

    fn admit_dispatch(_prepared: Vec<u8>, _facts: Dispatch) -> Verdict {
        deny()
    }

    fn admit_cdp(_prepared: Vec<u8>, _facts: Cdp) -> Verdict {
        deny()
    }

    // What was admitted before this policy became active has happened already; hiding its result would help nobody.
    fn review_result(_prepared: Vec<u8>, _facts: Review) -> ReviewVerdict {
        ReviewVerdict {
            disposition: Disposition::Release(Vec::new()),
            rules: Vec::new(),
        }
    }
}

export!(DenyAll);
