//! The result of a dispatch (§3.9): both arms state what was done, by which path, and what is known of the effect.

use std::path::Path as FilePath;

use serde_json::Value;

use crate::{
    domain::DomainCode,
    ids::{Millis, ToolCallId},
    json::{Fields, Json, ObjectWriter, Reason, Violation, record},
    method::Method,
    refusal::Refusal,
    results::read_refusal,
    sets::{Effect, Outcome, Path, SettleReason, Tier, VerificationMethod},
    snapshot::Snapshot,
};

record! {
    /// The check behind the effect.
    #[derive(Copy, Eq)]
    pub struct Verification {
        /// Which check.
        pub method: VerificationMethod = "method";
        /// Whether it saw a difference.
        pub observed_change: bool = "observedChange";
    }
}

impl Verification {
    /// No check: what every refusal states.
    pub const NONE: Self = Self {
        method: VerificationMethod::None,
        observed_change: false,
    };
}

record! {
    /// How settling went.
    #[derive(Copy, Eq)]
    pub struct Settle {
        /// Measured time.
        pub waited_ms: Millis = "waitedMs";
        /// Whether two looks agreed.
        pub quiesced: bool = "quiesced";
        /// Why it ended.
        pub reason: SettleReason = "reason";
    }
}

impl Settle {
    /// No settling was asked for.
    pub const NOT_REQUESTED: Self = Self {
        waited_ms: Millis(0),
        quiesced: false,
        reason: SettleReason::NotRequested,
    };
}

/// The frame after a dispatch.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PostFrame {
    /// None was asked for, or nothing was dispatched.
    #[default]
    None,
    /// It is live and replaces the quoted one.
    Taken(Box<Snapshot>),
    /// It was asked for and could not be taken. The result of the action stands.
    Failed(DomainCode),
}

/// How a dispatch ended. Which `ok` goes with it follows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// `ok:true`: dispatched and completed.
    Done,
    /// Nothing was dispatched.
    Refused(Refusal),
    /// Attempted and rejected; nothing happened.
    Failed(Refusal),
    /// Attempted; what happened cannot be told.
    Unknown(Refusal),
}

impl Ending {
    /// The wire word.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Done => Outcome::Ok,
            Self::Refused(_) => Outcome::Refused,
            Self::Failed(_) => Outcome::Failed,
            Self::Unknown(_) => Outcome::Unknown,
        }
    }

    /// The refusal of the `ok:false` arm.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Done => None,
            Self::Refused(refusal) | Self::Failed(refusal) | Self::Unknown(refusal) => {
                Some(refusal)
            }
        }
    }
}

/// What a dispatch answers.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchAnswer {
    /// The id that was sent.
    pub tool_call_id: ToolCallId,
    /// How it ended.
    pub ending: Ending,
    /// The tier used, or that would have been used.
    pub tier: Tier,
    /// The path used; [`Path::None`] when nothing was dispatched.
    pub path: Path,
    /// What is known of the effect.
    pub effect: Effect,
    /// By which check.
    pub verification: Verification,
    /// How settling went.
    pub settle: Option<Settle>,
    /// The frame afterwards.
    pub frame: PostFrame,
    /// The specific method a `host.dispatch` was routed to (§9.1).
    pub routed_to: Option<Method>,
}

impl DispatchAnswer {
    /// A refusal: nothing was dispatched.
    #[must_use]
    pub fn refused(tool_call_id: ToolCallId, tier: Tier, refusal: impl Into<Refusal>) -> Self {
        Self {
            tool_call_id,
            ending: Ending::Refused(refusal.into()),
            tier,
            path: Path::None,
            effect: Effect::Unverifiable,
            verification: Verification::NONE,
            settle: None,
            frame: PostFrame::None,
            routed_to: None,
        }
    }

    /// What must hold whatever was asked for (§7).
    fn check(&self) -> Result<(), Violation> {
        if self.effect == Effect::Confirmed && self.ending != Ending::Done {
            return Err(Violation::of("effect", Reason::Contradiction));
        }
        if !self.tier.allows(self.path) {
            return Err(Violation::of("path", Reason::IllegalPair));
        }
        Ok(())
    }
}

impl Json for DispatchAnswer {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let refusal = read_refusal(value)?;
        // The four declared fields come before every rule that combines them, so that an error names the right one.
        let tool_call_id = fields.get("toolCallId")?;
        let outcome = fields.get("outcome")?;
        let (tier, path) = (fields.get("tier")?, fields.get("path")?);
        let (effect, verification) = (fields.get("effect")?, fields.get("verification")?);
        let ending = match (outcome, refusal) {
            (Outcome::Ok, None) => Ending::Done,
            (Outcome::Refused, Some(refusal)) => Ending::Refused(refusal),
            (Outcome::Failed, Some(refusal)) => Ending::Failed(refusal),
            (Outcome::Unknown, Some(refusal)) => Ending::Unknown(refusal),
            (Outcome::Ok, Some(_))
            | (Outcome::Refused | Outcome::Failed | Outcome::Unknown, None) => {
                return Err(Violation::of("outcome", Reason::Contradiction));
            }
        };
        let failed = fields.get::<Option<PostError>>("postObservationError")?;
        let frame = match (fields.get::<Option<Box<Snapshot>>>("snapshot")?, failed) {
            (None, None) => PostFrame::None,
            (Some(snapshot), None) => PostFrame::Taken(snapshot),
            (None, Some(PostError(code))) => PostFrame::Failed(code),
            (Some(_), Some(_)) => {
                return Err(Violation::of("postObservationError", Reason::Contradiction));
            }
        };
        let settle = fields.get("settle")?;
        let routed_to = fields.get("routedTo")?;
        let answer = Self {
            tool_call_id,
            ending,
            tier,
            path,
            effect,
            verification,
            settle,
            frame,
            routed_to,
        };
        answer.check()?;
        Ok(answer)
    }

    fn write(&self) -> Value {
        let (snapshot, failed) = match &self.frame {
            PostFrame::None => (None, None),
            PostFrame::Taken(snapshot) => (Some(snapshot.write()), None),
            PostFrame::Failed(code) => (None, Some(PostError(*code))),
        };
        ObjectWriter::new()
            .with("ok", &(self.ending == Ending::Done))
            .with("toolCallId", &self.tool_call_id)
            .with("outcome", &self.ending.outcome())
            .with("tier", &self.tier)
            .with("path", &self.path)
            .with("effect", &self.effect)
            .with("verification", &self.verification)
            .with("settle", &self.settle)
            .with("error", &self.ending.refusal().cloned())
            .with("postObservationError", &failed)
            .with("routedTo", &self.routed_to)
            .with("snapshot", &Written(snapshot))
            .finish()
    }
}

/// A value that is written already; never read.
struct Written(Option<Value>);

impl Json for Written {
    fn read(_: &Value) -> Result<Self, Violation> {
        Err(Violation::here(Reason::NotAllowed))
    }

    fn write(&self) -> Value {
        self.0.clone().unwrap_or(Value::Null)
    }
}

/// `postObservationError`: a code; its sentence goes nowhere.
struct PostError(DomainCode);

impl Json for PostError {
    fn read(value: &Value) -> Result<Self, Violation> {
        Fields::of(value)?.get("code").map(Self)
    }

    fn write(&self) -> Value {
        ObjectWriter::new()
            .with("code", &self.0)
            .word("message", self.0.sentence())
            .finish()
    }
}

/// What the host sent, to hold the answer to.
#[derive(Clone, Copy, Debug)]
pub struct DispatchExpectation<'a> {
    /// The id sent.
    pub tool_call_id: &'a ToolCallId,
    /// Whether the handshake permitted the global pointer.
    pub allow_global_pointer: bool,
    /// The process of the quoted snapshot: a frame afterwards must be of it. `None` when no snapshot was quoted.
    pub pid: Option<u32>,
    /// Where images must lie.
    pub image_dir: &'a FilePath,
    /// The tier demanded by a `host.dispatch`.
    pub tier: Option<Tier>,
    /// The path demanded by a `host.dispatch`.
    pub path: Option<Path>,
}

/// Reads the result of `dispatch.*` or `host.dispatch`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_dispatch(
    result: &Value,
    expected: &DispatchExpectation<'_>,
) -> Result<DispatchAnswer, Violation> {
    let mut answer = DispatchAnswer::read(result)?;
    // [O]: a confirmation that rests on no check at all is an unknown effect with a better name (§9.3).
    if answer.effect == Effect::Confirmed && answer.verification.method == VerificationMethod::None
    {
        return Err(Violation::of("effect", Reason::Contradiction));
    }
    // [O]: §7 leaves the pairing of code and outcome open; "its outcome is unknown" is never read as "nothing was done".
    answer.ending = match answer.ending {
        Ending::Refused(refusal) | Ending::Failed(refusal)
            if refusal.code == DomainCode::OutcomeUnknown =>
        {
            Ending::Unknown(refusal)
        }
        ending => ending,
    };
    if answer.path == Path::CgEventGlobal && !expected.allow_global_pointer {
        return Err(Violation::of("path", Reason::GlobalPointer));
    }
    if answer.tool_call_id != *expected.tool_call_id {
        return Err(Violation::of("toolCallId", Reason::Mismatch));
    }
    if expected.tier.is_some_and(|tier| tier != answer.tier) {
        return Err(Violation::of("tier", Reason::Mismatch));
    }
    let nothing_dispatched = answer.path == Path::None && answer.ending != Ending::Done;
    if !nothing_dispatched && expected.path.is_some_and(|path| path != answer.path) {
        return Err(Violation::of("path", Reason::Mismatch));
    }
    if let PostFrame::Taken(snapshot) = &answer.frame {
        if expected.pid.is_some_and(|pid| pid != snapshot.target.pid) {
            return Err(Violation::of("snapshot.target.pid", Reason::Mismatch));
        }
        snapshot
            .check_image_dir(expected.image_dir)
            .map_err(|violation| violation.at("snapshot"))?;
    }
    Ok(answer)
}
