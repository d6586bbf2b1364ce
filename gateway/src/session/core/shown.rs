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
