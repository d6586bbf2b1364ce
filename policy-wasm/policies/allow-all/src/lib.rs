//! Permits everything that no other policy of the set refuses: the smallest policy there is.

wit_bindgen::generate!({ path: "../../wit", world: "policy" });

use exports::maka::policy::hooks::{
    Cdp, Decision, Dispatch, Disposition, Guest, Review, ReviewVerdict, SettingsError, Verdict,
};

/// The only rule of the manifest.
const ALLOW_ALL: u16 = 0;

struct AllowAll;

impl Guest for AllowAll {
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
        Verdict {
            decision: Decision::Allow(Vec::new()),
            rules: vec![ALLOW_ALL],
        }
    }

    fn admit_cdp(_prepared: Vec<u8>, _facts: Cdp) -> Verdict {
        Verdict {
            decision: Decision::Allow(Vec::new()),
            rules: vec![ALLOW_ALL],
        }
    }

    fn review_result(_prepared: Vec<u8>, _facts: Review) -> ReviewVerdict {
        ReviewVerdict {
            disposition: Disposition::Release(Vec::new()),
            rules: vec![ALLOW_ALL],
        }
    }
}

export!(AllowAll);
