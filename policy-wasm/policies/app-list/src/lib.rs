//! Which applications can be used: an allow list, a deny list, or both.
//!
//! The application is the recorded one, from the snapshot that the caller quotes or from the launch itself; what a
//! request says about it does not count. A launch is different: it can name an application the way people do, and a deny
//! list does not know that name. Such an application is started, and nothing can be done in it; an allow list refuses the
//! launch itself. A read names no application, so reads are not judged.

use maka_policy_sdk::prelude::*;

/// Application ids, each exact or with a final `*`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    allow: Vec<String>,
    deny: Vec<String>,
}

struct AppList;

impl Policy for AppList {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), Misfit> {
        for (list, patterns) in [("allow", &settings.allow), ("deny", &settings.deny)] {
            for (at, pattern) in patterns.iter().enumerate() {
                let stem = pattern.strip_suffix('*').unwrap_or(pattern);
                if pattern.is_empty() || stem.contains('*') {
                    return Err(Misfit::at(format!("/{list}/{at}"), "star_only_at_the_end"));
                }
            }
        }
        Ok(())
    }
}

impl AdmitDispatch for AppList {
    fn admit_dispatch(settings: &Settings, facts: &Dispatch) -> Verdict {
        judge(|trail| {
            if known(&facts.action)?.is_read() {
                return Ok(());
            }
            let app = facts.app().unwrap_or_default();
            // `pid:<n>` is what a program is called that no desktop entry names: any program could be behind it.
            let has_name = !app.is_empty() && !app.starts_with("pid:");
            let lists_any = !settings.allow.is_empty() || !settings.deny.is_empty();
            trail.require(
                rule!("app.known"),
                has_name || !lists_any,
                code!("app_unknown"),
            )?;
            let denied = matches(&settings.deny, app);
            trail.require(rule!("app.denied"), !denied, code!("app_denied"))?;
            if settings.allow.is_empty() {
                return Ok(());
            }
            let allowed = matches(&settings.allow, app);
            trail.require(rule!("app.allowed"), allowed, code!("app_not_allowed"))
        })
    }
}

fn matches(patterns: &[String], app: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(stem) => app.starts_with(stem),
            None => pattern == app,
        })
}

policy!(AppList: admit_dispatch);

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
