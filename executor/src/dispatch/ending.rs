//! From what was done to what is answered, the same way for every kind of dispatch (spec §3.9).

use std::sync::Arc;

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::params::{ObserveAfter, ObserveTarget};
use maka_cu_protocol::results::dispatch::{
    DispatchAnswer, Ending, PostFrame, Settle, Verification,
};
use maka_cu_protocol::sets::{SettleMode, Tier};
use maka_cu_protocol::text::AppText;

use crate::backend::tree::NodeRef;
use crate::deadline::Deadline;
use crate::dispatch::binding;
use crate::dispatch::plan::Performance;
use crate::dispatch::settle;
use crate::dispatch::sight::{Sight, Wish};
use crate::dispatch::verdict::Verdict;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::observe::{self, Look};
use crate::session::SessionHandle;
use crate::snapshot::Snapshot;

/// Room for the declared fields around the frame after a dispatch.
const DISPATCH_ENVELOPE_BYTES: u64 = 1024;

/// A dispatch that passed its commit point.
#[derive(Debug)]
pub struct Deed<'a> {
    /// Where it runs.
    pub executor: &'a Executor,
    /// Whose it is.
    pub session: &'a SessionHandle,
    /// The quoted frame.
    pub snapshot: &'a Arc<Snapshot>,
    /// What it was aimed at, where that is an element.
    pub node: Option<&'a NodeRef>,
    /// Echoed.
    pub tool_call_id: &'a ToolCallId,
    /// The tier it belongs to.
    pub tier: Tier,
    /// What to look at afterwards.
    pub observe_after: Option<&'a ObserveAfter>,
}

/// Whether the request wants the window at rest before it is looked at.
#[must_use]
pub fn wants_rest(observe_after: Option<&ObserveAfter>) -> bool {
    observe_after.is_some_and(|after| after.settle == SettleMode::Quiesce)
}

impl Deed<'_> {
    /// Looks, judges and answers. The frame is used up by whatever may have happened, and by nothing else.
    ///
    /// # Errors
    /// The refusals of what was not attempted after all.
    pub fn conclude(
        &self,
        performance: Performance,
        sight: Sight,
        deadline: &Deadline,
    ) -> Result<DispatchAnswer, Fault> {
        let answer = |ending, path| DispatchAnswer {
            ending,
            path,
            ..DispatchAnswer::refused(
                self.tool_call_id.clone(),
                self.tier,
                DomainCode::DispatchRefused,
            )
        };
        let performed = match performance {
            Performance::Done(performed) => performed,
            Performance::TimedOut => return Err(DomainCode::Timeout.into()),
            Performance::Aborted => return Err(DomainCode::Aborted.into()),
            Performance::NotActionable => return Err(DomainCode::ElementNotActionable.into()),
            Performance::Failed { path } => {
                return Ok(answer(
                    Ending::Failed(DomainCode::DispatchRefused.into()),
                    path,
                ));
            }
            Performance::Unknown { path } => {
                self.spend();
                return Ok(answer(
                    Ending::Unknown(DomainCode::OutcomeUnknown.into()),
                    path,
                ));
            }
        };
        let minimised = matches!(
            sight,
            Sight::Place {
                wish: Wish::Minimized,
                ..
            }
        );
        let written = match &sight {
            Sight::Value { requested, .. } => Some(requested.clone()),
            Sight::Window(_)
            | Sight::Selection { .. }
            | Sight::Place { .. }
            | Sight::Nothing(_) => None,
        };
        let (mut verdict, settled) = sight.after(
            self.executor,
            self.snapshot,
            self.node,
            performed,
            wants_rest(self.observe_after),
            deadline,
        );
        self.spend();
        let frame = self.frame_after(minimised && verdict.is_confirmed(), deadline);
        // A control may take a value back while the frame is taken; an answer must not contradict its own frame.
        if let (Some(requested), PostFrame::Taken(_)) = (&written, &frame)
            && verdict.is_confirmed()
            && !self.still_holds(requested, deadline)
        {
            verdict = verdict.taken_back();
        }
        let Verdict {
            effect,
            method,
            observed_change,
        } = verdict;
        Ok(DispatchAnswer {
            effect,
            verification: Verification {
                method,
                observed_change,
            },
            settle: Some(settled.map_or(Settle::NOT_REQUESTED, settle::Settled::to_wire)),
            frame,
            ..answer(Ending::Done, performed.path)
        })
    }

    /// Whether what was aimed at has this value now. One that cannot be read is believed to be as it was.
    fn still_holds(&self, requested: &AppText, deadline: &Deadline) -> bool {
        let limit = deadline.at_most(LIST_BUDGET);
        let read = |node| {
            binding::read_one(self.executor, node, &limit)
                .ok()
                .flatten()
        };
        let value = self.node.and_then(read).and_then(|node| node.value);
        value.is_none_or(|value| value == *requested)
    }

    fn spend(&self) {
        self.executor
            .sessions()
            .spend(self.session, &self.snapshot.id);
    }

    /// The frame that was asked for. That it cannot be taken changes nothing about the outcome of the action. One that is
    /// cancelled is `aborted`: nobody waits for the sight any more, only for the outcome. A window that was minimised has
    /// left the screen, and the frame says so although the system still lists it (spec §3.6.3).
    fn frame_after(&self, minimised: bool, deadline: &Deadline) -> PostFrame {
        let Some(after) = self.observe_after else {
            return PostFrame::None;
        };
        if minimised {
            return PostFrame::Failed(DomainCode::WindowGone);
        }
        let target = ObserveTarget::Window(self.snapshot.window);
        let mut look = Look::at(
            self.executor,
            target,
            after.include_image,
            after.menu.clone(),
        );
        look.envelope_bytes = DISPATCH_ENVELOPE_BYTES;
        if deadline.is_cancelled() {
            return PostFrame::Failed(DomainCode::Aborted);
        }
        let taken = observe::take(self.executor, self.session, &look, deadline);
        // Whatever a cancelled look came to, it is not the whole of the window.
        if deadline.is_cancelled() {
            return PostFrame::Failed(DomainCode::Aborted);
        }
        let registered = taken.and_then(|frame| {
            self.executor
                .sessions()
                .register(self.session, frame.kept)?;
            Ok(frame.wire)
        });
        match registered {
            Ok(wire) => PostFrame::Taken(Box::new(wire)),
            Err(Fault::Refused(refusal)) => PostFrame::Failed(refusal.code),
            // The session ended meanwhile; its frames are nobody's any more.
            Err(Fault::Unusable(_)) => PostFrame::Failed(DomainCode::Aborted),
        }
    }
}
