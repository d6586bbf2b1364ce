//! Questions about facts that most policies ask.

use crate::contract::{
    Action, Caller, Dispatch, ElementArgs, ElementRow, Head, KeyArgs, PointArgs, TextArgs,
};
use crate::verdict::Refusal;

/// An action that this contract knows: [`Action`] without its open arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Known<'a> {
    /// Acts on an element.
    Element(&'a ElementArgs),
    /// Acts on a point.
    Point(&'a PointArgs),
    /// Sends a key to the focused element.
    Key(&'a KeyArgs),
    /// Types text into the focused element.
    Text(&'a TextArgs),
    /// Starts an application.
    Launch(&'a str),
    /// Only reads; the word is the method.
    Observe(&'a str),
}

/// The action, unless it is newer than this contract. A policy cannot have an opinion on what it does not know, and no
/// opinion would be an allow; so this is a refusal.
///
/// # Errors
///
/// For `other`.
pub fn known(action: &Action) -> Result<Known<'_>, Refusal> {
    Ok(match action {
        Action::Element(args) => Known::Element(args),
        Action::Point(args) => Known::Point(args),
        Action::Key(args) => Known::Key(args),
        Action::Text(args) => Known::Text(args),
        Action::Launch(app) => Known::Launch(app),
        Action::Observe(method) => Known::Observe(method),
        Action::Other(_) => return Err(Refusal::ACTION_UNKNOWN),
    })
}

impl<'a> Known<'a> {
    /// Whether it only reads.
    #[must_use]
    pub const fn is_read(self) -> bool {
        match self {
            Self::Observe(_) => true,
            Self::Element(_) | Self::Point(_) | Self::Key(_) | Self::Text(_) | Self::Launch(_) => {
                false
            }
        }
    }

    /// The text that it carries: what is typed, set or searched for. The text itself is there only where the manifest
    /// asks for the fact `typed-text` and the operator grants it.
    #[must_use]
    pub const fn text(self) -> Option<&'a TextArgs> {
        match self {
            Self::Text(text) => Some(text),
            Self::Element(args) => args.text.as_ref(),
            Self::Point(_) | Self::Key(_) | Self::Launch(_) | Self::Observe(_) => None,
        }
    }

    /// Whether it puts something into a field: text, a key, a value, or a step up or down.
    #[must_use]
    pub fn writes(self) -> bool {
        match self {
            Self::Text(_) | Self::Key(_) => true,
            Self::Element(args) => {
                args.text.is_some()
                    || matches!(
                        args.kind.as_str(),
                        "set_value" | "secondary_action:increment" | "secondary_action:decrement"
                    )
            }
            Self::Point(_) | Self::Launch(_) | Self::Observe(_) => false,
        }
    }
}

/// A key with its modifiers as one word, such as `shift+control+a`: modifiers in the order command, shift, option,
/// control, fn, then the key. A modifier that this order does not know comes after those that it does.
#[must_use]
pub fn spelled(key: &KeyArgs) -> String {
    const ORDER: [&str; 5] = ["command", "shift", "option", "control", "fn"];
    let place = |modifier: &str| ORDER.iter().position(|known| *known == modifier);
    let mut parts: Vec<_> = key.modifiers.iter().map(String::as_str).collect();
    parts.sort_by_key(|modifier| place(modifier).unwrap_or(ORDER.len()));
    parts.dedup();
    parts.push(&key.key);
    parts.join("+")
}

impl Dispatch {
    /// The application that is acted on: the one of the quoted snapshot, from the gateway's own records. For a launch it
    /// is what the caller wrote, which can be an id or a name that people use; so a list that denies may not know it,
    /// and a list that allows should hold ids. None for a read, and for a snapshot that the gateway does not know.
    #[must_use]
    pub fn app(&self) -> Option<&str> {
        match &self.action {
            Action::Launch(app) => Some(app),
            Action::Element(_)
            | Action::Point(_)
            | Action::Key(_)
            | Action::Text(_)
            | Action::Observe(_)
            | Action::Other(_) => {
                let target = self.snapshot.target.as_ref();
                target.map(|target| target.app_id.as_str())
            }
        }
    }

    /// The element that is acted on, whether it was quoted as an element or as the focus.
    #[must_use]
    pub fn acted_on(&self) -> Option<&ElementRow> {
        self.element.as_ref().or(self.focus.as_ref())
    }
}

impl Head {
    /// Whether a person has approved this very call, and the approval has neither been used nor run out.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.approval.as_ref().is_some_and(|grant| {
            grant.unused
                && grant.fingerprint == self.fingerprint
                && grant.expires_unix_ms > self.now_unix_ms
        })
    }
}

impl Caller {
    /// Whether the operator gave the caller this grant.
    #[must_use]
    pub fn holds(&self, grant: &str) -> bool {
        self.grants.iter().any(|held| held == grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Grant;
    use crate::testing;

    #[test]
    fn what_is_newer_than_the_contract_is_refused() {
        let newer = Action::Other("dispatch.gesture".to_owned());
        assert_eq!(known(&newer), Err(Refusal::ACTION_UNKNOWN));
        assert!(known(&Action::Observe("observe".to_owned())).is_ok_and(Known::is_read));
    }

    #[test]
    fn a_key_has_one_spelling() {
        let spelled = |modifiers: &[&str], key: &str| {
            spelled(&KeyArgs {
                key: key.to_owned(),
                modifiers: modifiers.iter().map(|word| (*word).to_owned()).collect(),
            })
        };
        assert_eq!(spelled(&[], "a"), "a");
        assert_eq!(spelled(&["control", "shift"], "a"), "shift+control+a");
        assert_eq!(
            spelled(&["shift", "control", "shift"], "a"),
            "shift+control+a"
        );
        assert_eq!(spelled(&["hyper", "fn"], "a"), "fn+hyper+a");
    }

    #[test]
    fn an_approval_is_for_one_call_once_and_not_for_long() {
        let mut head = testing::dispatch("observe").head;
        assert!(!head.is_approved());
        let grant = Grant {
            id: "g".to_owned(),
            granted_by: "operator".to_owned(),
            expires_unix_ms: head.now_unix_ms + 1,
            fingerprint: head.fingerprint.clone(),
            unused: true,
        };
        head.approval = Some(grant.clone());
        assert!(head.is_approved());
        for spoiled in [
            Grant {
                expires_unix_ms: head.now_unix_ms,
                ..grant.clone()
            },
            Grant {
                fingerprint: "another".to_owned(),
                ..grant.clone()
            },
            Grant {
                unused: false,
                ..grant
            },
        ] {
            head.approval = Some(spoiled);
            assert!(!head.is_approved());
        }
    }

    #[test]
    fn the_application_is_the_recorded_one() {
        let mut facts = testing::dispatch("dispatch.element");
        assert_eq!(facts.app(), Some(testing::APP));
        facts.action = Action::Launch("org.other".to_owned());
        assert_eq!(facts.app(), Some("org.other"));
        let read = testing::dispatch("observe");
        assert_eq!(read.app(), None);
    }
}
