//! What is looked at before an action and again after it, to judge it (spec §6.5).

use std::time::Duration;

use maka_cu_protocol::action::ElementAction;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenRect, ScreenSize};
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::text::AppText;

use crate::backend::error::BackendError;
use crate::backend::perform::Performed;
use crate::backend::tree::NodeRef;
use crate::deadline::Deadline;
use crate::dispatch::binding::{self, Bound};
use crate::dispatch::settle::{self, Look, Settled};
use crate::dispatch::verdict::{Place, Verdict};
use crate::executor::{Executor, LIST_BUDGET};
use crate::snapshot::Snapshot;

/// Time for one look at the whole window.
const LOOK_BUDGET: Duration = Duration::from_secs(6);

/// How long something written may take to read back. Toolkits that answer the write before they apply it are judged by
/// what they applied, not by what was there a moment before.
const READBACK_PATIENCE: Duration = Duration::from_millis(150);
const READBACK_POLL: Duration = Duration::from_millis(15);

/// How long the window server may take to agree with a window action (spec §3.6.3).
const PLACE_PATIENCE: Duration = Duration::from_millis(1000);

/// What the verdict will be about.
#[derive(Debug)]
pub enum Sight {
    /// The digest of the window, compared after it settled.
    Window(Look),
    /// The value of a node.
    Value {
        /// Before the write; `None` when it cannot be read.
        before: Option<AppText>,
        /// What it should become.
        requested: AppText,
    },
    /// The selected text of a node.
    Selection {
        /// What should become selected.
        requested: AppText,
    },
    /// Where the window is.
    Place {
        /// Before the action.
        before: Place,
        /// What is asked for.
        wish: Wish,
    },
    /// Nothing: this is all that can be said.
    Nothing(Verdict),
}

/// What a window action asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wish {
    /// This origin.
    At(ScreenPoint),
    /// This size.
    Sized(ScreenSize),
    /// Off the screen.
    Minimized,
}

impl Wish {
    /// Where the window would be, had it been granted.
    #[must_use]
    pub fn granted(self, before: Place) -> Place {
        let Place::At([x, y, width, height]) = before else {
            return before;
        };
        match self {
            Self::At(point) => Place::At([point.x().round(), point.y().round(), width, height]),
            Self::Sized(size) => Place::At([x, y, size.width().round(), size.height().round()]),
            Self::Minimized => Place::OffScreen,
        }
    }
}

impl Sight {
    /// Looks at what the verdict on an element action will be about. The look before an action is taken now and not from
    /// the snapshot: what changed between the two was not done by this action.
    #[must_use]
    pub fn before_element(
        executor: &Executor,
        action: &ElementAction,
        bound: &Bound,
        settle: bool,
        deadline: &Deadline,
    ) -> Self {
        let place = |wish| Self::Place {
            before: Place::of(bound.bounds),
            wish,
        };
        match action {
            ElementAction::Click { .. } | ElementAction::Scroll { .. } if settle => {
                Self::Window(look(executor, &bound.snapshot, deadline))
            }
            ElementAction::Click { .. }
            | ElementAction::Scroll { .. }
            | ElementAction::SecondaryAction { .. } => Self::Nothing(Verdict::ACTION_RESULT),
            ElementAction::SetValue { value } => Self::Value {
                before: bound.now.value.clone(),
                requested: value.clone(),
            },
            ElementAction::SelectText { text } => Self::Selection {
                requested: text.as_app_text().clone(),
            },
            ElementAction::MoveWindow { position } => place(Wish::At(*position)),
            ElementAction::ResizeWindow { size } => place(Wish::Sized(*size)),
            ElementAction::MinimizeWindow => place(Wish::Minimized),
        }
    }

    /// Looks again and judges. Blocks for as long as settling takes, but not beyond the deadline: a caller that cancelled
    /// gets the verdict on what was seen by then. `node` is what the action was aimed at, where it was aimed at one.
    #[must_use]
    pub fn after(
        self,
        executor: &Executor,
        snapshot: &Snapshot,
        node: Option<&NodeRef>,
        performed: Performed,
        wants_rest: bool,
        deadline: &Deadline,
    ) -> (Verdict, Option<Settled>) {
        let rest = || wants_rest.then(|| rest(executor, snapshot, deadline));
        match self {
            // The window server first: what settles must be the window at its new place.
            Self::Place { before, wish } => {
                let wished = wish.granted(before);
                let after = place_after(executor, snapshot.window, wished, deadline);
                (Verdict::place(wished, before, after), rest())
            }
            Self::Window(before) => {
                let settled = rest();
                let last = settled.map_or(Look::Unreadable, |settled| settled.last);
                (Verdict::tree_delta(before, last), settled)
            }
            Self::Value { before, requested } => {
                let settled = rest();
                let read = |node| value_after(executor, node, before.as_ref(), deadline);
                let after = node.and_then(read);
                let verdict = Verdict::value_readback(
                    requested.as_str(),
                    before.as_ref().map(AppText::as_str),
                    after.as_ref().map(AppText::as_str),
                    performed.readable,
                );
                (verdict, settled)
            }
            Self::Selection { requested } => {
                let settled = rest();
                let read = |node| selection_after(executor, node, &requested, deadline);
                let selected = node.and_then(read);
                let selected = selected.as_ref().map(AppText::as_str);
                let verdict = Verdict::selection_readback(requested.as_str(), selected);
                (verdict, settled)
            }
            Self::Nothing(verdict) => (verdict, rest()),
        }
    }
}

/// One look at the window of a snapshot.
#[must_use]
pub fn look(executor: &Executor, snapshot: &Snapshot, deadline: &Deadline) -> Look {
    let deadline = &deadline.at_most(LOOK_BUDGET);
    match executor.backend().windows(deadline) {
        Ok(windows) => match windows.iter().find(|window| window.key == snapshot.window) {
            Some(window) => binding::look_at(executor, snapshot, window, deadline),
            None => Look::Gone,
        },
        Err(BackendError::WindowGone) => Look::Gone,
        Err(error) => {
            tracing::debug!(%error, "the window list could not be read");
            Look::Unreadable
        }
    }
}

fn rest(executor: &Executor, snapshot: &Snapshot, deadline: &Deadline) -> Settled {
    let ceiling = Duration::from_millis(executor.limits().settle_ceiling_ms);
    settle::settle(ceiling, deadline, || look(executor, snapshot, deadline))
}

/// The value after a write: the first that differs from the one before, or the last that was read in time.
fn value_after(
    executor: &Executor,
    node: &NodeRef,
    before: Option<&AppText>,
    deadline: &Deadline,
) -> Option<AppText> {
    let patience = deadline.at_most(READBACK_PATIENCE);
    loop {
        let node = binding::read_one(executor, node, &deadline.at_most(LIST_BUDGET))
            .ok()
            .flatten();
        let after = node.and_then(|node| node.value);
        if patience.is_over() || after.is_none() || after.as_ref() != before {
            return after;
        }
        patience.pause(READBACK_POLL);
    }
}

/// What is selected after a selection: the wish as soon as it is there, or the last that was read in time.
fn selection_after(
    executor: &Executor,
    node: &NodeRef,
    requested: &AppText,
    deadline: &Deadline,
) -> Option<AppText> {
    let patience = deadline.at_most(READBACK_PATIENCE);
    loop {
        let selected = executor
            .backend()
            .selected_text(node, &deadline.at_most(LIST_BUDGET))
            .ok()
            .flatten();
        if patience.is_over() || selected.as_ref() == Some(requested) {
            return selected;
        }
        patience.pause(READBACK_POLL);
    }
}

/// Where the window is, as soon as that is where it was wished to be, else when the patience is over.
fn place_after(
    executor: &Executor,
    key: WindowKey,
    wished: Place,
    deadline: &Deadline,
) -> Option<Place> {
    let patience = deadline.at_most(PLACE_PATIENCE);
    loop {
        let place = executor
            .backend()
            .windows(&deadline.at_most(LIST_BUDGET))
            .ok()
            .map(|windows| {
                let window = windows
                    .iter()
                    .find(|window| window.key == key && window.on_screen);
                window.map_or(Place::OffScreen, |window| Place::of(window.bounds))
            });
        if patience.is_over() || place == Some(wished) {
            return place;
        }
        patience.pause(READBACK_POLL);
    }
}

impl Place {
    /// A window on the screen, at whole points.
    #[must_use]
    pub fn of(bounds: ScreenRect) -> Self {
        Self::At(bounds.rounded())
    }
}
