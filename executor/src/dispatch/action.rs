//! What an element action comes down to: commands for the back end, looks before and after, and a verdict.

use std::time::Duration;

use maka_cu_protocol::action::ElementAction;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::sets::{ElementVerb, MouseButton, Path};
use maka_cu_protocol::text::AppText;

use crate::backend::error::BackendError;
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::deadline::Deadline;
use crate::dispatch::binding::{self, Bound};
use crate::dispatch::settle::{self, Look, Settled};
use crate::dispatch::verdict::Verdict;
use crate::executor::{Executor, Fault, LIST_BUDGET};

/// Time for all commands of one action.
const PERFORM_BUDGET: Duration = Duration::from_secs(5);

/// Time for one look at the whole window.
const LOOK_BUDGET: Duration = Duration::from_secs(6);

/// How long a written value may take to read back. Toolkits that answer the write before they apply it are judged by
/// what they applied, not by what was there a moment before.
const READBACK_PATIENCE: Duration = Duration::from_millis(150);
const READBACK_POLL: Duration = Duration::from_millis(15);

/// An action that the element offers.
#[derive(Debug)]
pub enum Plan {
    /// Perform a verb this many times.
    Verb {
        /// Which.
        verb: ElementVerb,
        /// How often, at least once.
        times: u8,
    },
    /// Write the value.
    Write {
        /// The new value.
        value: AppText,
    },
}

/// How the commands went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Performance {
    /// All were delivered.
    Done {
        /// By this mechanism.
        path: Path,
    },
    /// The element does not offer the action; nothing was attempted.
    NotActionable,
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

/// What is looked at before an action, to judge it afterwards.
#[derive(Debug)]
pub enum Sight {
    /// The digest of the window, compared after it settled.
    Window(Look),
    /// The value; the window settles first if `settle`.
    Value {
        /// Before the write; `None` when it cannot be read.
        before: Option<AppText>,
        /// Whether to settle.
        settle: bool,
    },
    /// Nothing: the platform's word is all there will be.
    Nothing,
}

/// Decides which commands the action needs.
///
/// # Errors
/// `element_not_actionable` when the element does not offer it, `unsupported_action` for what is not built.
pub fn plan(action: &ElementAction, bound: &Bound) -> Result<Plan, Fault> {
    let offered = |verb, times| match bound.now.actions.contains(&verb) {
        true => Ok(Plan::Verb { verb, times }),
        false => Err(DomainCode::ElementNotActionable.into()),
    };
    match action {
        ElementAction::Click { button, count } => match button {
            MouseButton::Left => offered(ElementVerb::Press, count.get()),
            MouseButton::Right => offered(ElementVerb::ShowMenu, count.get()),
            // No element offers anything for the middle button.
            MouseButton::Middle => Err(DomainCode::ElementNotActionable.into()),
        },
        ElementAction::SetValue { value } => match bound.now.value_settable {
            true => Ok(Plan::Write {
                value: value.clone(),
            }),
            false => Err(DomainCode::ElementNotActionable.into()),
        },
        ElementAction::SelectText { .. }
        | ElementAction::SecondaryAction { .. }
        | ElementAction::Scroll { .. }
        | ElementAction::MoveWindow { .. }
        | ElementAction::ResizeWindow { .. }
        | ElementAction::MinimizeWindow => Err(DomainCode::UnsupportedAction.into()),
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
    let (command, times) = match plan {
        Plan::Verb { verb, times } => (ElementCommand::Perform(*verb), *times),
        Plan::Write { value } => (ElementCommand::SetValue(value.clone()), 1),
    };
    let mut delivered = None;
    for _ in 0..times {
        let done = match deadline.is_cancelled() {
            true => Err(PerformError::NotActionable),
            false => executor.backend().perform(&bound.node, &command, &deadline),
        };
        match done {
            Ok(Performed { path, .. }) => delivered = Some(path),
            // Whether it is actionable was asked with no time left to hear the answer.
            Err(PerformError::NotActionable) if delivered.is_none() && deadline.is_cancelled() => {
                return Performance::Aborted;
            }
            Err(error) => return after_failure(error, delivered),
        }
    }
    delivered.map_or(Performance::NotActionable, |path| Performance::Done {
        path,
    })
}

fn after_failure(error: PerformError, delivered: Option<Path>) -> Performance {
    match (delivered, error) {
        (Some(path), _) => Performance::Unknown { path },
        (None, PerformError::NotActionable) => Performance::NotActionable,
        (None, PerformError::Refused { path }) => Performance::Failed { path },
        (None, PerformError::Unknown { path }) => Performance::Unknown { path },
    }
}

impl Sight {
    /// Looks at what the verdict will be about. The look before an action is taken now and not from the snapshot: what
    /// changed between the two was not done by this action.
    ///
    /// # Errors
    /// `aborted` when the request was cancelled meanwhile.
    pub fn before(
        executor: &Executor,
        plan: &Plan,
        bound: &Bound,
        settle: bool,
        deadline: &Deadline,
    ) -> Result<Self, Fault> {
        match plan {
            Plan::Verb { .. } if settle => {
                let look = look(executor, bound, &deadline.at_most(LOOK_BUDGET));
                if deadline.is_cancelled() {
                    return Err(DomainCode::Aborted.into());
                }
                Ok(Self::Window(look))
            }
            Plan::Verb { .. } => Ok(Self::Nothing),
            Plan::Write { .. } => Ok(Self::Value {
                before: bound.now.value.clone(),
                settle,
            }),
        }
    }

    /// Looks again and judges. Blocks for as long as settling takes, but not beyond the deadline: a caller that cancelled
    /// gets the verdict on what was seen by then.
    #[must_use]
    pub fn after(
        self,
        executor: &Executor,
        plan: &Plan,
        bound: &Bound,
        deadline: &Deadline,
    ) -> (Verdict, Option<Settled>) {
        match (self, plan) {
            (Self::Window(before), _) => {
                let settled = settle(executor, bound, deadline);
                (Verdict::tree_delta(before, settled.last), Some(settled))
            }
            (
                Self::Value {
                    before,
                    settle: wanted,
                },
                Plan::Write { value },
            ) => {
                let settled = wanted.then(|| settle(executor, bound, deadline));
                let after = read_back(executor, bound, before.as_ref(), deadline);
                let text =
                    |value: &Option<AppText>| value.as_ref().map(|value| value.as_str().to_owned());
                let verdict = Verdict::value_readback(
                    value.as_str(),
                    text(&before).as_deref(),
                    text(&after).as_deref(),
                );
                (verdict, settled)
            }
            (Self::Value { .. }, Plan::Verb { .. }) | (Self::Nothing, _) => {
                (Verdict::ACTION_RESULT, None)
            }
        }
    }
}

/// The value after a write: the first that differs from the one before, or the last that was read in time.
fn read_back(
    executor: &Executor,
    bound: &Bound,
    before: Option<&AppText>,
    deadline: &Deadline,
) -> Option<AppText> {
    let patience = deadline.at_most(READBACK_PATIENCE);
    loop {
        let node = binding::read_one(executor, &bound.node, &deadline.at_most(LIST_BUDGET))
            .ok()
            .flatten();
        let after = node.and_then(|node| node.value);
        if patience.is_over() || after.is_none() || after.as_ref() != before {
            return after;
        }
        patience.pause(READBACK_POLL);
    }
}

fn settle(executor: &Executor, bound: &Bound, deadline: &Deadline) -> Settled {
    let ceiling = Duration::from_millis(executor.limits().settle_ceiling_ms);
    settle::settle(ceiling, deadline, || {
        look(executor, bound, &deadline.at_most(LOOK_BUDGET))
    })
}

/// One look at the window of the quoted snapshot.
fn look(executor: &Executor, bound: &Bound, deadline: &Deadline) -> Look {
    match executor.backend().windows(deadline) {
        Ok(windows) => match windows
            .iter()
            .find(|window| window.key == bound.snapshot.window)
        {
            Some(window) => binding::look_at(executor, &bound.snapshot, window, deadline),
            None => Look::Gone,
        },
        Err(BackendError::WindowGone) => Look::Gone,
        Err(error) => {
            tracing::debug!(%error, "the window list could not be read");
            Look::Unreadable
        }
    }
}
