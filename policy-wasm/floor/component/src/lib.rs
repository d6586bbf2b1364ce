//! The floor as a component: the exports of the contract around the native rules, and nothing else.
//!
//! Every decision is made in `maka_floor`. What is here turns the generated types into the plain ones and back.

mod convert;

mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "policy", pub_export_macro: true });
}

use bindings::exports::maka::policy::hooks::{self, Guest};
use maka_floor::Settings;

struct Floor;

impl Guest for Floor {
    fn prepare(settings: String) -> Result<Vec<u8>, Vec<hooks::SettingsError>> {
        match Settings::parse(&settings) {
            Ok(settings) => Ok(settings.to_prepared()),
            Err(error) => Err(vec![hooks::SettingsError {
                pointer: error.pointer.to_owned(),
                code: error.code.to_owned(),
            }]),
        }
    }

    fn admit_dispatch(prepared: Vec<u8>, facts: hooks::Dispatch) -> hooks::Verdict {
        let settings = Settings::from_prepared(&prepared);
        convert::verdict(maka_floor::admit_dispatch(
            settings,
            &convert::dispatch(facts),
        ))
    }

    fn admit_cdp(_prepared: Vec<u8>, facts: hooks::Cdp) -> hooks::Verdict {
        convert::verdict(maka_floor::admit_cdp(&convert::cdp(facts)))
    }

    fn review_result(prepared: Vec<u8>, facts: hooks::Review) -> hooks::ReviewVerdict {
        let settings = Settings::from_prepared(&prepared);
        convert::review_verdict(maka_floor::review_result(settings, &convert::review(facts)))
    }
}

bindings::export!(Floor with_types_in bindings);
