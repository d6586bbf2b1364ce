//! What a person is shown of an action that needs approval: facts, never text of an application or typed text.
//!
//! Words that come from an executor are shown only as far as they can be words of a closed set; anything longer or odder
//! is left out rather than put before a person who decides by it.

use maka_cu_protocol::ids::{SessionId, WindowKey};
use maka_policy_host::codes::Refusal;
use maka_policy_host::facts::{Action, DispatchFacts, KeyArgs};
use maka_policy_host::fingerprint::Fingerprint;

use crate::approval::{Wanted, WantedElement};
use crate::session::caller::PrincipalName;

/// The longest word that is shown.
const WORD_MAX: usize = 64;

/// What a refused call wants, with what the policies say to it.
pub(super) fn wanted(
    session: SessionId,
    facts: &DispatchFacts,
    method: &'static str,
    refusal: &Refusal,
    fingerprint: Fingerprint,
) -> Wanted {
    let target = facts.snapshot.target.as_ref();
    let (kind, text, key, point, launch) = match &facts.action {
        Action::Element(element) => {
            let text = element.text.as_ref().map(|text| text.length);
            (word(&element.kind), text, None, None, None)
        }
        Action::Point(point) => (
            word(&point.kind),
            None,
            None,
            Some((point.x, point.y)),
            None,
        ),
        Action::Key(key) => ("press_key".to_owned(), None, chord(key), None, None),
        Action::Text(text) => ("type_text".to_owned(), Some(text.length), None, None, None),
        Action::Launch(app) => ("launch".to_owned(), None, None, None, Some(app.clone())),
        Action::Observe(what) | Action::Other(what) => (word(what), None, None, None, None),
    };
    let element = facts.element.as_ref().or(facts.focus.as_ref());
    Wanted {
        session,
        principal: PrincipalName::new(&facts.caller.orchestrator),
        tool_call_id: facts.tool_call_id.clone(),
        turn: facts.caller.turn.clone(),
        method,
        kind,
        text_length: text,
        key,
        point,
        launch,
        app_id: target.map(|it| it.app_id.clone()).unwrap_or_default(),
        window: target.map(|target| WindowKey {
            pid: target.pid,
            window_id: target.window_id,
        }),
        snapshot_id: facts.claim.snapshot_id.clone(),
        window_digest: facts.snapshot.window_digest.clone(),
        element: element.map(|element| WantedElement {
            token: element.token.clone(),
            digest: element.digest.clone(),
            role: word(&element.role),
            secure: element.secure,
            frame: element.frame,
        }),
        tier: facts.claim.tier,
        path: facts.claim.path,
        asks: refusal.asks.clone(),
        decision_id: refusal.decision_id.as_str().to_owned(),
        fingerprint,
    }
}

/// A key with a name, or one that is pressed together with more than Shift. Anything else types a character.
fn chord(key: &KeyArgs) -> Option<String> {
    let is_named = key.key.chars().count() > 1;
    let is_command = key.modifiers.iter().any(|modifier| modifier != "shift");
    let parts = key.modifiers.iter().chain(std::iter::once(&key.key));
    let parts: Vec<_> = parts.map(String::as_str).collect();
    (is_named || is_command).then(|| parts.join("+"))
}

fn word(text: &str) -> String {
    let is_word = text.len() <= WORD_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if is_word {
        text.to_owned()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_text_is_left_out() {
        let key = |key: &str, modifiers: &[&str]| {
            chord(&KeyArgs {
                key: key.to_owned(),
                modifiers: modifiers.iter().map(|it| (*it).to_owned()).collect(),
            })
        };
        assert_eq!(key("a", &[]), None, "it types an a");
        assert_eq!(key("a", &["shift"]), None);
        assert_eq!(key("a", &["control"]).as_deref(), Some("control+a"));
        assert_eq!(key("Return", &[]).as_deref(), Some("Return"));
        assert_eq!(word("AXButton"), "AXButton");
        assert_eq!(
            word("secondary_action:show_menu"),
            "secondary_action:show_menu"
        );
        assert_eq!(word("Delete all of it?"), "");
        assert_eq!(word(&"x".repeat(WORD_MAX + 1)), "");
    }
}
