//! Limits on how much is done: by turn, by minute, at once, and after refusals.
//!
//! A policy remembers nothing. The gateway counts, and the counts are facts of the call. Reads are not counted and not
//! limited, so that whoever has to stop can still look.

use maka_policy_sdk::prelude::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    denials_per_turn: u32,
    in_flight: u32,
    actions_per_turn: u32,
    actions_per_minute: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            denials_per_turn: 10,
            in_flight: 8,
            actions_per_turn: 200,
            actions_per_minute: 60,
        }
    }
}

struct RateLimits;

impl Policy for RateLimits {
    type Settings = Settings;
}

impl AdmitDispatch for RateLimits {
    fn admit_dispatch(settings: &Settings, facts: &Dispatch) -> Verdict {
        judge(|trail| {
            if known(&facts.action)?.is_read() {
                return Ok(());
            }
            limit(settings, &facts.head, trail)
        })
    }
}

impl AdmitCdp for RateLimits {
    fn admit_cdp(settings: &Settings, facts: &Cdp) -> Verdict {
        judge(|trail| limit(settings, &facts.head, trail))
    }
}

fn limit(settings: &Settings, head: &Head, trail: &mut Trail) -> Result<(), Refusal> {
    let meter = &head.meter;
    let calm = meter.denials_this_turn < settings.denials_per_turn;
    trail.require(rule!("rate.denials"), calm, code!("too_many_denials"))?;
    // The call that is judged is one of them.
    let room = meter.in_flight <= settings.in_flight;
    trail.require(rule!("rate.in_flight"), room, code!("too_many_in_flight"))?;
    let turn = meter.actions_this_turn < settings.actions_per_turn;
    trail.require(rule!("rate.turn"), turn, code!("too_many_in_turn"))?;
    let minute = meter.actions_last_minute < settings.actions_per_minute;
    trail.require(rule!("rate.minute"), minute, code!("too_many_in_minute"))
}

policy!(RateLimits: admit_dispatch, admit_cdp);

#[cfg(test)]
mod tests {
    use super::*;
    use maka_policy_sdk::{manifest, settings, testing};

    #[test]
    fn the_schema_has_the_same_defaults() {
        let written: Settings = settings::parse(&testing::schema_defaults(manifest!())).unwrap();
        assert_eq!(written, Settings::default());
    }
}
