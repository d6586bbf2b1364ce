//! What watchers are told of an action: that it is about to be sent, where it would be shown, and how it ended.
//!
//! Presentation only. Nothing here is read again by the session: the point that is told comes from the quoted snapshot
//! and neither chooses nor changes what the executor is asked to do.

use maka_cu_protocol::action::{ElementAction, PointAction};
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::sets::Outcome;

use super::Core;
use crate::error::CallError;
use crate::events::what::{Action, ActionKind};
use crate::session::answer::{DispatchOutcome, LaunchOutcome};
use crate::session::call::{DispatchAction, DispatchCall, LaunchCall};

impl Core {
    /// A dispatch is about to be sent.
    pub(super) fn show_dispatch(&self, call: &DispatchCall) -> Action {
        let snapshot = call.snapshot_id.as_ref();
        self.show(Action {
            id: call.tool_call_id.clone(),
            session: self.id.clone(),
            kind: kind(&call.action),
            point: self.first_point(call),
            window: snapshot.and_then(|id| self.mirror.window(id)),
        })
    }

    /// A dispatch ended. One that was not sent after all had no effect, which a watcher sees as refused.
    pub(super) fn dispatch_shown(
        &self,
        action: Action,
        settled: &Result<DispatchOutcome, CallError>,
    ) {
        let (outcome, point) = match settled {
            // What the policy keeps from the caller is kept from watchers.
            Ok(outcome) if outcome.withheld => (outcome.outcome, None),
            Ok(outcome) => (
                outcome.outcome,
                outcome.resolved_screen_point.or(action.point),
            ),
            Err(_) => (Outcome::Refused, None),
        };
        self.parts.events.action_ended(action, outcome, point);
    }

    /// A launch is about to be sent.
    pub(super) fn show_launch(&self, call: &LaunchCall) -> Action {
        self.show(Action {
            id: call.tool_call_id.clone(),
            session: self.id.clone(),
            kind: ActionKind::Other,
            point: None,
            window: None,
        })
    }

    /// A launch ended.
    pub(super) fn launch_shown(&self, action: Action, settled: &Result<LaunchOutcome, CallError>) {
        let outcome = match settled {
            Ok(outcome) => outcome.outcome,
            Err(_) => Outcome::Refused,
        };
        self.parts.events.action_ended(action, outcome, None);
    }

    fn show(&self, action: Action) -> Action {
        self.parts.events.action_began(action.clone());
        action
    }

    /// Where the action begins on the screen, as far as the quoted snapshot tells.
    fn first_point(&self, call: &DispatchCall) -> Option<ScreenPoint> {
        let id = call.snapshot_id.as_ref()?;
        match &call.action {
            DispatchAction::Element { anchor, .. } => {
                self.mirror.center_of(id, anchor.token.as_ref()?.as_str())
            }
            DispatchAction::Point { anchor, .. } => {
                self.mirror.screen_point(id, anchor.start.or(anchor.point)?)
            }
            DispatchAction::Key { .. } => None,
        }
    }
}

/// The kinds of spec maka-cu §10.2.
const fn kind(action: &DispatchAction) -> ActionKind {
    match action {
        DispatchAction::Element { action, .. } => match action {
            ElementAction::Click { .. } => ActionKind::Click,
            ElementAction::Scroll { .. } => ActionKind::Scroll,
            ElementAction::SetValue { .. }
            | ElementAction::SelectText { .. }
            | ElementAction::SecondaryAction { .. }
            | ElementAction::MoveWindow { .. }
            | ElementAction::ResizeWindow { .. }
            | ElementAction::MinimizeWindow => ActionKind::Other,
        },
        DispatchAction::Key { .. } => ActionKind::Other,
        DispatchAction::Point { action, .. } => match action {
            PointAction::LeftClick { .. }
            | PointAction::RightClick
            | PointAction::MiddleClick
            | PointAction::DoubleClick
            | PointAction::TripleClick
            | PointAction::MouseDown
            | PointAction::MouseUp => ActionKind::Click,
            PointAction::Drag => ActionKind::Drag,
            PointAction::Scroll { .. } => ActionKind::Scroll,
            PointAction::Move => ActionKind::Move,
        },
    }
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::action::{ClickCount, KeyAction, Pages};
    use maka_cu_protocol::sets::{Direction, MouseButton};
    use maka_cu_protocol::text::AppText;

    use super::*;
    use crate::session::call::{ElementAnchor, FocusAnchor, PointAnchor};

    /// The kinds of spec maka-cu §10.2: every click and every half of one, drags, scrolls, moves, and the rest.
    #[test]
    fn every_action_has_the_kind_that_it_is_shown_as() {
        let element = |action| DispatchAction::Element {
            anchor: ElementAnchor::default(),
            action,
        };
        let point = |action| DispatchAction::Point {
            anchor: PointAnchor::default(),
            action,
        };
        let key = |action| DispatchAction::Key {
            anchor: FocusAnchor::default(),
            action,
        };
        let (button, count) = (MouseButton::Left, ClickCount::ONE);
        let (direction, pages) = (Direction::Down, Pages::ONE);
        let text = || AppText::new("x");
        let rows = [
            (
                element(ElementAction::Click { button, count }),
                ActionKind::Click,
            ),
            (
                element(ElementAction::Scroll { direction, pages }),
                ActionKind::Scroll,
            ),
            (
                element(ElementAction::SetValue { value: text() }),
                ActionKind::Other,
            ),
            (element(ElementAction::MinimizeWindow), ActionKind::Other),
            (key(KeyAction::Type { text: text() }), ActionKind::Other),
            (point(PointAction::RightClick), ActionKind::Click),
            (point(PointAction::TripleClick), ActionKind::Click),
            (point(PointAction::MouseDown), ActionKind::Click),
            (point(PointAction::MouseUp), ActionKind::Click),
            (point(PointAction::Drag), ActionKind::Drag),
            (point(PointAction::Move), ActionKind::Move),
        ];
        for (action, expected) in rows {
            assert_eq!(kind(&action), expected, "{action:?}");
        }
    }
}
