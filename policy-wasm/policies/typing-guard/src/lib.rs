//! What is typed, and where: a limit on its length, roles of elements that can be written to, password fields only with
//! a person's approval, and key combinations from a list.
//!
//! It sees the length of a text and never the text. The floor refuses password fields to a caller without the grant
//! `secure-field`; this policy asks a person for those that have it, too.

use maka_policy_sdk::prelude::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    max_bytes: u32,
    roles: Vec<String>,
    chords: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            max_bytes: 2_000,
            roles: owned(&[
                "AXTextField",
                "AXTextArea",
                "AXSearchField",
                "AXComboBox",
                "AXSecureTextField",
            ]),
            chords: owned(&[
                "control+a",
                "control+c",
                "control+v",
                "command+a",
                "command+c",
                "command+v",
            ]),
        }
    }
}

struct TypingGuard;

impl Policy for TypingGuard {
    type Settings = Settings;
}

impl AdmitDispatch for TypingGuard {
    fn admit_dispatch(settings: &Settings, facts: &Dispatch) -> Verdict {
        judge(|trail| {
            let action = known(&facts.action)?;
            if let Some(text) = action.text() {
                let fits = text.length <= settings.max_bytes;
                trail.require(rule!("text.length"), fits, code!("text_too_long"))?;
            }
            if let Known::Key(key) = action
                && key.modifiers.iter().any(|modifier| modifier != "shift")
            {
                let is_listed = settings.chords.contains(&spelled(key));
                trail.require(rule!("key.chord"), is_listed, code!("chord_not_listed"))?;
            }
            if !action.writes() {
                return Ok(());
            }
            // What is written to an element that nobody knows is refused, like what is written to a wrong one.
            let element = facts.acted_on();
            let is_text = element.is_some_and(|element| settings.roles.contains(&element.role));
            trail.require(rule!("text.field"), is_text, code!("not_a_text_field"))?;
            let is_secure = element.is_none_or(|element| element.secure);
            trail.require_or_ask(
                rule!("field.secure"),
                !is_secure || facts.head.is_approved(),
                code!("secure_field_approval"),
            )
        })
    }
}

policy!(TypingGuard: admit_dispatch);

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
