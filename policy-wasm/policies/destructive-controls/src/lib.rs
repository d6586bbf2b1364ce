//! A person approves what cannot be taken back: controls by role, actions by kind, keys by name.
//!
//! What a control says is no fact: labels are text of an application, and a policy that trusted them could be talked
//! into anything by whoever writes them. So a button named "Delete" looks like every other button here. What can be
//! told apart is its role, and what is done to it.

use maka_policy_sdk::prelude::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    roles: Vec<String>,
    verbs: Vec<String>,
    keys: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            roles: owned(&["AXCloseButton", "AXMenuItem"]),
            verbs: owned(&["secondary_action:confirm", "secondary_action:cancel"]),
            keys: owned(&[
                "Backspace",
                "ForwardDelete",
                "command+q",
                "command+w",
                "option+F4",
                "control+w",
                "control+q",
            ]),
        }
    }
}

struct DestructiveControls;

impl Policy for DestructiveControls {
    type Settings = Settings;
}

impl AdmitDispatch for DestructiveControls {
    fn admit_dispatch(settings: &Settings, facts: &Dispatch) -> Verdict {
        judge(|trail| {
            let action = known(&facts.action)?;
            let approved = facts.head.is_approved();
            let harmless =
                |list: &[String], word: &str| approved || !list.iter().any(|listed| listed == word);
            if let Some(element) = facts.acted_on() {
                let holds = harmless(&settings.roles, &element.role);
                trail.require_or_ask(rule!("control.role"), holds, code!("role_approval"))?;
            }
            let verb = match action {
                Known::Element(args) => &args.kind,
                Known::Point(args) => &args.kind,
                Known::Key(key) => {
                    let holds = harmless(&settings.keys, &spelled(key));
                    return trail.require_or_ask(
                        rule!("control.key"),
                        holds,
                        code!("key_approval"),
                    );
                }
                Known::Text(_) | Known::Launch(_) | Known::Observe(_) => return Ok(()),
            };
            let holds = harmless(&settings.verbs, verb);
            trail.require_or_ask(rule!("control.verb"), holds, code!("verb_approval"))
        })
    }
}

policy!(DestructiveControls: admit_dispatch);

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
