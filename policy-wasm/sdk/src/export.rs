//! Exports a policy as the component that the gateway loads.
//!
//! What is here stands between the generated exports and the traits: it reads settings, and sends each hook to the
//! trait that the policy implements for it.

use crate::contract::{Cdp, Dispatch, Review, ReviewVerdict, SettingsError, Verdict};
use crate::policy::{AdmitCdp, AdmitDispatch, Policy, ReviewResult};
use crate::settings;

/// Reads and checks settings, once per load. What each decision gets are the same bytes: canonical JSON costs some ten
/// units of fuel a byte to read, and has no second form that could be read differently.
///
/// # Errors
///
/// Where they do not fit, and why.
pub fn prepare<P: Policy>(json: String) -> Result<Vec<u8>, Vec<SettingsError>> {
    let checked = settings::parse::<P::Settings>(&json).and_then(|settings| P::check(&settings));
    match checked {
        Ok(()) => Ok(json.into_bytes()),
        Err(misfit) => Err(vec![misfit.into()]),
    }
}

/// What [`prepare`] returned. The host hands back the bytes it got, so they are readable; if they ever were not, the
/// panic is a trap, and a trap is a refusal.
fn prepared<P: Policy>(bytes: &[u8]) -> P::Settings {
    serde_json::from_slice(bytes).expect("these bytes were read once before")
}

/// The hook of the same name, with settings read.
pub fn admit_dispatch<P: AdmitDispatch>(settings: &[u8], facts: &Dispatch) -> Verdict {
    P::admit_dispatch(&prepared::<P>(settings), facts)
}

/// The hook of the same name, with settings read.
pub fn admit_cdp<P: AdmitCdp>(settings: &[u8], facts: &Cdp) -> Verdict {
    P::admit_cdp(&prepared::<P>(settings), facts)
}

/// The hook of the same name, with settings read.
pub fn review_result<P: ReviewResult>(settings: &[u8], facts: &Review) -> ReviewVerdict {
    P::review_result(&prepared::<P>(settings), facts)
}

/// Exports a policy: `policy!(MyPolicy: admit_dispatch, admit_cdp, review_result);`, with the hooks that its manifest
/// declares, in this order. The manifest, `manifest.json` beside `Cargo.toml`, becomes part of the component.
///
/// A hook that is not declared is never asked: the host takes it as no objection. Should it be asked nevertheless, then
/// code and manifest are not of one build, and the answer is a trap, which refuses.
#[macro_export]
macro_rules! policy {
    ($policy:ident: $($hook:ident),+ $(,)?) => {
        const _: () = {
            $(const fn $hook() -> u8 { $crate::__hook!(bit $hook) })+
            assert!(
                $crate::manifest::hooks($crate::manifest!()) == (0 $(| $hook())+),
                "the hooks in policy!(…) are not those of manifest.json"
            );
            // A hook that is declared is written, wherever this is compiled.
            let _ = $crate::export::prepare::<$policy>;
            $(let _ = $crate::export::$hook::<$policy>;)+
        };

        // On the author's own machine there is nothing to export to, but the manifest is checked just the same.
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[used]
            #[unsafe(link_section = "maka-policy-manifest")]
            static MANIFEST: [u8; $crate::manifest!().len()] = *$crate::__bytes!();

            use $crate::contract;

            impl contract::Guest for $policy {
                fn prepare(
                    settings: String,
                ) -> Result<Vec<u8>, Vec<contract::SettingsError>> {
                    $crate::export::prepare::<$policy>(settings)
                }

                fn admit_dispatch(prepared: Vec<u8>, facts: contract::Dispatch) -> contract::Verdict {
                    $crate::__hook!(call admit_dispatch, $policy, prepared, facts, $($hook)+)
                }

                fn admit_cdp(prepared: Vec<u8>, facts: contract::Cdp) -> contract::Verdict {
                    $crate::__hook!(call admit_cdp, $policy, prepared, facts, $($hook)+)
                }

                fn review_result(prepared: Vec<u8>, facts: contract::Review) -> contract::ReviewVerdict {
                    $crate::__hook!(call review_result, $policy, prepared, facts, $($hook)+)
                }
            }

            $crate::bindings::__export_policy!($policy with_types_in $crate::bindings);
        };
    };
}

/// For [`policy!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __bytes {
    () => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.json"))
    };
}

/// For [`policy!`]: the bit of a hook, and a call of a hook that goes to the policy if the hook is in the list.
#[doc(hidden)]
#[macro_export]
macro_rules! __hook {
    (bit admit_dispatch) => { 1 };
    (bit admit_cdp) => { 2 };
    (bit review_result) => { 4 };
    (bit $other:ident) => {
        compile_error!("the hooks are admit_dispatch, admit_cdp and review_result")
    };

    (call admit_dispatch, $policy:ident, $prepared:ident, $facts:ident, admit_dispatch $($rest:ident)*) => {
        $crate::export::admit_dispatch::<$policy>(&$prepared, &$facts)
    };
    (call admit_cdp, $policy:ident, $prepared:ident, $facts:ident, admit_cdp $($rest:ident)*) => {
        $crate::export::admit_cdp::<$policy>(&$prepared, &$facts)
    };
    (call review_result, $policy:ident, $prepared:ident, $facts:ident, review_result $($rest:ident)*) => {
        $crate::export::review_result::<$policy>(&$prepared, &$facts)
    };
    (call $hook:ident, $policy:ident, $prepared:ident, $facts:ident, $other:ident $($rest:ident)*) => {
        $crate::__hook!(call $hook, $policy, $prepared, $facts, $($rest)*)
    };
    (call $hook:ident, $policy:ident, $prepared:ident, $facts:ident,) => {{
        let _ = ($prepared, $facts);
        panic!(concat!("the manifest does not declare ", stringify!($hook)))
    }};
}
