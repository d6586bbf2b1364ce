//! How a dispatch ended, in the room that a session can give to each of its keys.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::results::dispatch::{Settle, Verification};
use maka_cu_protocol::sets::{Effect, Outcome, Path, ReleaseReason, Tier};

use crate::session::answer::{DispatchOutcome, DomainFault, Frame};

/// A [`DispatchOutcome`] without its key, which is known to whoever asks, and without its frame, which is kept elsewhere if at all.
#[derive(Debug)]
pub(super) struct Settled {
    outcome: Outcome,
    tier: Tier,
    path: Path,
    effect: Effect,
    verification: Verification,
    settle: Option<Settle>,
    error: Option<Box<DomainFault>>,
    observed: Observed,
    decision_id: Box<str>,
    resolved_screen_point: Option<ScreenPoint>,
    withheld: bool,
    release_reason: Option<ReleaseReason>,
    dry_run: bool,
    replayed: bool,
    max_bytes: Option<u64>,
}

/// What became of the frame that was wanted afterwards.
#[derive(Debug)]
enum Observed {
    /// None was wanted.
    Nothing,
    /// It was answered.
    Frame,
    /// There was none.
    Failed(Box<DomainFault>),
}

impl Settled {
    /// Takes an outcome apart.
    pub(super) fn of(outcome: DispatchOutcome) -> (Self, Option<Frame>) {
        let DispatchOutcome {
            tool_call_id: _,
            outcome,
            tier,
            path,
            effect,
            verification,
            settle,
            error,
            frame,
            observation_error,
            decision_id,
            resolved_screen_point,
            withheld,
            release_reason,
            dry_run,
            replayed,
            max_bytes,
        } = outcome;
        let observed = match (&frame, observation_error) {
            (Some(_), _) => Observed::Frame,
            (None, Some(fault)) => Observed::Failed(Box::new(fault)),
            (None, None) => Observed::Nothing,
        };
        let settled = Self {
            outcome,
            tier,
            path,
            effect,
            verification,
            settle,
            error: error.map(Box::new),
            observed,
            decision_id: decision_id.into(),
            resolved_screen_point,
            withheld,
            release_reason,
            dry_run,
            replayed,
            max_bytes,
        };
        (settled, frame)
    }

    /// Puts it together again. A frame that is not kept any more is named as missing.
    pub(super) fn outcome(
        &self,
        tool_call_id: ToolCallId,
        frame: Option<Frame>,
    ) -> DispatchOutcome {
        let (frame, observation_error) = match (&self.observed, frame) {
            (Observed::Nothing, _) => (None, None),
            (Observed::Failed(fault), _) => (None, Some(DomainFault::clone(fault))),
            (Observed::Frame, Some(frame)) => (Some(frame), None),
            (Observed::Frame, None) => (None, Some(DomainFault::of(DomainCode::SnapshotEvicted))),
        };
        DispatchOutcome {
            tool_call_id,
            outcome: self.outcome,
            tier: self.tier,
            path: self.path,
            effect: self.effect,
            verification: self.verification,
            settle: self.settle,
            error: self.error.as_deref().cloned(),
            frame,
            observation_error,
            decision_id: self.decision_id.to_string(),
            resolved_screen_point: self.resolved_screen_point,
            withheld: self.withheld,
            release_reason: self.release_reason,
            dry_run: self.dry_run,
            replayed: self.replayed,
            max_bytes: self.max_bytes,
        }
    }
}
