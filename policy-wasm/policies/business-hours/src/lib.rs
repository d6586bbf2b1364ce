//! Something is done only in business hours; looking is always possible.
//!
//! A policy has no clock and no time zones: the time is a fact of the call, and what local time is ahead of UTC is a
//! setting. It does not know of daylight saving time.

use maka_policy_sdk::prelude::*;

const MINUTES_PER_DAY: i64 = 24 * 60;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// 1 for Monday to 7 for Sunday.
    days: Vec<i64>,
    open: String,
    close: String,
    utc_offset_minutes: i64,
    apps: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            days: vec![1, 2, 3, 4, 5],
            open: "08:00".to_owned(),
            close: "18:00".to_owned(),
            utc_offset_minutes: 0,
            apps: Vec::new(),
        }
    }
}

/// A moment in local time.
#[derive(Debug, PartialEq, Eq)]
struct Local {
    /// 1 for Monday to 7 for Sunday.
    day: i64,
    /// Since midnight.
    minute: i64,
}

impl Local {
    fn at(unix_ms: u64, offset_minutes: i64) -> Self {
        // Divided first, so that the sum fits whatever the milliseconds were.
        let minutes = i64::try_from(unix_ms / 60_000).unwrap_or(i64::MAX / 2) + offset_minutes;
        // The first of January 1970 was a Thursday.
        let day = (minutes.div_euclid(MINUTES_PER_DAY) + 3).rem_euclid(7) + 1;
        Self {
            day,
            minute: minutes.rem_euclid(MINUTES_PER_DAY),
        }
    }
}

/// Minutes since midnight of `HH:MM`, up to 24:00.
fn minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str| {
        let is_plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| digits.parse::<i64>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let whole = hours * 60 + minutes;
    (minutes < 60 && whole <= MINUTES_PER_DAY).then_some(whole)
}

struct BusinessHours;

impl Policy for BusinessHours {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), Misfit> {
        let time =
            |pointer, text: &str| minutes(text).ok_or_else(|| Misfit::at(pointer, "not_a_time"));
        let open = time("/open", &settings.open)?;
        let close = time("/close", &settings.close)?;
        if open >= close {
            return Err(Misfit::at("/close", "not_after_open"));
        }
        Ok(())
    }
}

impl AdmitDispatch for BusinessHours {
    fn admit_dispatch(settings: &Settings, facts: &Dispatch) -> Verdict {
        judge(|trail| {
            if known(&facts.action)?.is_read() || !applies(settings, facts.app()) {
                return Ok(());
            }
            let now = Local::at(facts.head.now_unix_ms, settings.utc_offset_minutes);
            let is_day = settings.days.contains(&now.day);
            trail.require(rule!("hours.day"), is_day, code!("closed_today"))?;
            let is_open = match (minutes(&settings.open), minutes(&settings.close)) {
                (Some(open), Some(close)) => (open..close).contains(&now.minute),
                // `check` refuses such settings.
                (None, _) | (_, None) => false,
            };
            trail.require(rule!("hours.time"), is_open, code!("closed_now"))
        })
    }
}

/// Whether the hours apply to this application. One that has no name could be any.
fn applies(settings: &Settings, app: Option<&str>) -> bool {
    settings.apps.is_empty()
        || app.is_none_or(|app| settings.apps.iter().any(|listed| listed == app))
}

policy!(BusinessHours: admit_dispatch);

#[cfg(test)]
mod tests {
    use super::*;
    use maka_policy_sdk::{manifest, settings, testing};

    #[test]
    fn days_and_minutes_follow_the_offset() {
        // Thursday, 1 January 2026, 00:00 UTC.
        let thursday = 1_767_225_600_000;
        let local = |offset| Local::at(thursday, offset);
        assert_eq!(local(0), Local { day: 4, minute: 0 });
        assert_eq!(
            local(330),
            Local {
                day: 4,
                minute: 330
            }
        );
        assert_eq!(
            local(-1),
            Local {
                day: 3,
                minute: 1439
            }
        );
        assert_eq!(Local::at(0, 0).day, 4);
        assert_eq!(
            Local::at(0, -60),
            Local {
                day: 3,
                minute: 1380
            }
        );
        // No time that a clock could say is a panic.
        Local::at(u64::MAX, 840);
    }

    #[test]
    fn times_have_one_form() {
        for (text, expected) in [
            ("00:00", Some(0)),
            ("08:30", Some(510)),
            ("24:00", Some(1440)),
            ("24:01", None),
            ("8:30", None),
            ("08:60", None),
            ("+8:00", None),
            ("0800", None),
            ("", None),
        ] {
            assert_eq!(minutes(text), expected, "{text}");
        }
    }

    #[test]
    fn the_schema_has_the_same_defaults() {
        let written: Settings = settings::parse(&testing::schema_defaults(manifest!())).unwrap();
        assert_eq!(written, Settings::default());
    }
}
