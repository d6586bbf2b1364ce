//! What an element action comes down to: commands for the back end, and how they went.

use std::time::Duration;

use maka_cu_protocol::action::ElementAction;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::sets::{ElementVerb, MouseButton, Path};

use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::deadline::Deadline;
use crate::dispatch::binding::Bound;
use crate::executor::{Executor, Fault};

/// Time for all commands of one action.
pub const PERFORM_BUDGET: Duration = Duration::from_secs(5);

/// Commands that the element takes.
#[derive(Debug)]
pub struct Plan {
    /// What to do.
    pub command: ElementCommand,
    /// How often, at least once.
    pub times: u8,
}

/// How the commands went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Performance {
    /// All were delivered.
    Done(Performed),
    /// The element does not offer the action; nothing was attempted.
    NotActionable,
    /// The element could not be asked in time; nothing was attempted.
    TimedOut,
    /// The request was cancelled before the first was sent; nothing happened.
    Aborted,
    /// The first was rejected; nothing happened.
    Failed {
        /// The mechanism that was tried.
        path: Path,
    },
    /// Something may have happened.
    Unknown {
        /// The mechanism that was tried.
        path: Path,
    },
}

/// Decides which commands the action needs.
///
/// # Errors
/// `element_not_actionable` when the element does not offer it.
pub fn plan(action: &ElementAction, bound: &Bound) -> Result<Plan, Fault> {
    let once = |command| Plan { command, times: 1 };
    let only_if = |offered: bool, plan| match offered {
        true => Ok(plan),
        false => Err(DomainCode::ElementNotActionable.into()),
    };
    let verb = |verb: ElementVerb, times| {
        let command = ElementCommand::Perform(verb);
        only_if(bound.now.actions.contains(&verb), Plan { command, times })
    };
    match action {
        ElementAction::Click { button, count } => match button {
            MouseButton::Left => verb(ElementVerb::Press, count.get()),
            MouseButton::Right => verb(ElementVerb::ShowMenu, count.get()),
            // No element offers anything for the middle button.
            MouseButton::Middle => Err(DomainCode::ElementNotActionable.into()),
        },
        ElementAction::SecondaryAction { action } => verb(*action, 1),
        ElementAction::SetValue { value } => only_if(
            bound.now.value_settable,
            once(ElementCommand::SetValue(value.clone())),
        ),
        ElementAction::SelectText { text } => {
            let value = bound.now.value.as_ref();
            only_if(
                value.is_some_and(|value| value.as_str().contains(text.as_str())),
                once(ElementCommand::SelectText(text.clone())),
            )
        }
        ElementAction::Scroll { direction, pages } => Ok(once(ElementCommand::Scroll {
            direction: *direction,
            pages: *pages,
        })),
        ElementAction::MoveWindow { position } => {
            only_if(bound.is_root, once(ElementCommand::MoveWindow(*position)))
        }
        ElementAction::ResizeWindow { size } => {
            only_if(bound.is_root, once(ElementCommand::ResizeWindow(*size)))
        }
        ElementAction::MinimizeWindow => {
            only_if(bound.is_root, once(ElementCommand::MinimizeWindow))
        }
    }
}

/// Carries the plan out. A failure after at least one delivered repetition leaves the outcome unknown, and so does a cancel
/// between two of them.
#[must_use]
pub fn perform(
    executor: &Executor,
    plan: &Plan,
    bound: &Bound,
    deadline: &Deadline,
) -> Performance {
    let deadline = deadline.at_most(PERFORM_BUDGET);
    let mut delivered = None;
    for _ in 0..plan.times {
        let done = match deadline.is_cancelled() {
            true => Err(PerformError::TimedOut),
            false => executor
                .backend()
                .perform(&bound.node, &plan.command, &deadline),
        };
        match (done, delivered) {
            (Ok(performed), _) => delivered = Some(performed),
            (Err(_), Some(Performed { path, .. })) => return Performance::Unknown { path },
            (Err(error), None) => return Performance::of_first(Err(error), &deadline),
        }
    }
    delivered.map_or(Performance::NotActionable, Performance::Done)
}

impl Performance {
    /// What the first command of an action came to.
    #[must_use]
    pub fn of_first(done: Result<Performed, PerformError>, deadline: &Deadline) -> Self {
        match done {
            Ok(performed) => Self::Done(performed),
            // Whether it is actionable was asked with no time left to hear the answer.
            Err(PerformError::NotActionable | PerformError::TimedOut)
                if deadline.is_cancelled() =>
            {
                Self::Aborted
            }
            Err(PerformError::NotActionable) => Self::NotActionable,
            Err(PerformError::TimedOut) => Self::TimedOut,
            Err(PerformError::Refused { path }) => Self::Failed { path },
            Err(PerformError::Unknown { path }) => Self::Unknown { path },
        }
    }
}
