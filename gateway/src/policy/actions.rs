//! Actions as policies see them: kinds, coordinates and lengths, never what is typed.

use maka_cu_protocol::action::{ElementAction, KeyAction};
use maka_cu_protocol::sets::MouseButton;
use maka_policy_host::facts::{Action, ElementArgs, KeyArgs, PointArgs, Rect, TextArgs};
use sha2::{Digest as _, Sha256};

use crate::session::call::{DispatchAction, PointAnchor};

/// The key under which one session's texts are hashed for policies: equal texts of a session can be told, and a text
/// cannot be guessed from its hash.
pub(crate) struct TextKey([u8; 32]);

impl std::fmt::Debug for TextKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("<redacted>")
    }
}

impl TextKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    fn hash(&self, text: &str) -> TextArgs {
        let inner = Sha256::new()
            .chain_update(self.0)
            .chain_update(text)
            .finalize();
        let outer: [u8; 32] = Sha256::new()
            .chain_update(self.0)
            .chain_update(inner)
            .finalize()
            .into();
        TextArgs {
            length: u32::try_from(text.len()).unwrap_or(u32::MAX),
            keyed_hash: maka_policy_host::digest::Digest::from_bytes(outer).to_string(),
            plain: None,
        }
    }
}

/// The action of a dispatch as a fact.
pub(crate) fn action(action: &DispatchAction, key: &TextKey) -> Action {
    match action {
        DispatchAction::Element { action, .. } => Action::Element(element(action, key)),
        DispatchAction::Key {
            action: KeyAction::Type { text },
            ..
        } => Action::Text(key.hash(text.as_str())),
        DispatchAction::Key {
            action: KeyAction::Key { key, modifiers },
            ..
        } => Action::Key(KeyArgs {
            key: key.to_string(),
            modifiers: modifiers
                .iter()
                .map(|modifier| modifier.as_str().to_owned())
                .collect(),
        }),
        DispatchAction::Point { anchor, action } => {
            Action::Point(point(anchor, action.kind().as_str()))
        }
    }
}

fn element(action: &ElementAction, key: &TextKey) -> ElementArgs {
    let kind = action.kind().as_str();
    let (kind, text) = match action {
        ElementAction::Click { button, .. } => match button {
            MouseButton::Left => (kind.to_owned(), None),
            MouseButton::Right | MouseButton::Middle => (format!("{kind}:{button}"), None),
        },
        ElementAction::SecondaryAction { action } => (format!("{kind}:{action}"), None),
        ElementAction::SetValue { value } => (kind.to_owned(), Some(key.hash(value.as_str()))),
        ElementAction::SelectText { text } => (kind.to_owned(), Some(key.hash(text.as_str()))),
        ElementAction::Scroll { .. }
        | ElementAction::MoveWindow { .. }
        | ElementAction::ResizeWindow { .. }
        | ElementAction::MinimizeWindow => (kind.to_owned(), None),
    };
    ElementArgs { kind, text }
}

fn point(anchor: &PointAnchor, kind: &str) -> PointArgs {
    let (x, y) = anchor
        .point
        .map_or((0.0, 0.0), |point| (point.x(), point.y()));
    let start = anchor.start.map(|start| Rect {
        x: start.x(),
        y: start.y(),
        width: 0.0,
        height: 0.0,
    });
    PointArgs {
        x,
        y,
        start,
        kind: kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::action::ClickCount;
    use maka_cu_protocol::sets::ElementVerb;
    use maka_cu_protocol::text::AppText;

    use super::*;
    use crate::session::call::ElementAnchor;

    fn kind_of(action: ElementAction) -> String {
        let action = DispatchAction::Element {
            anchor: ElementAnchor::default(),
            action,
        };
        match super::action(&action, &TextKey::new([7; 32])) {
            Action::Element(args) => args.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn kinds_carry_their_variant() {
        let click = |button| ElementAction::Click {
            button,
            count: ClickCount::ONE,
        };
        assert_eq!(kind_of(click(MouseButton::Left)), "click");
        assert_eq!(kind_of(click(MouseButton::Right)), "click:right");
        assert_eq!(kind_of(click(MouseButton::Middle)), "click:middle");
        assert_eq!(
            kind_of(ElementAction::SecondaryAction {
                action: ElementVerb::ShowMenu
            }),
            "secondary_action:show_menu"
        );
        assert_eq!(
            kind_of(ElementAction::SetValue {
                value: AppText::new("x")
            }),
            "set_value"
        );
        assert_eq!(kind_of(ElementAction::MinimizeWindow), "minimize_window");
    }

    /// E10: a policy learns length and a keyed hash, never the text.
    #[test]
    fn texts_are_facts_without_their_content() {
        let typed = |text: &str, key: u8| {
            let action = DispatchAction::Key {
                anchor: Default::default(),
                action: KeyAction::Type {
                    text: AppText::new(text),
                },
            };
            match super::action(&action, &TextKey::new([key; 32])) {
                Action::Text(args) => args,
                other => panic!("{other:?}"),
            }
        };
        let args = typed("hunter2", 1);
        assert_eq!((args.length, args.plain.as_deref()), (7, None));
        assert!(!args.keyed_hash.contains("hunter2"));
        assert_eq!(args.keyed_hash, typed("hunter2", 1).keyed_hash);
        assert_ne!(args.keyed_hash, typed("hunter2", 2).keyed_hash);
    }
}
