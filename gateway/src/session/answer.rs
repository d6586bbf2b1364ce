//! What a session answers: results of the world, each with the decision that allowed it.
//!
//! A refusal that kept a call from being forwarded is never here; it is a [`crate::error::CallError`].

use std::sync::Arc;

use maka_cu_host::frame::Uniformity;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::{Digest, DisplayId, SessionId, ToolCallId};
use maka_cu_protocol::results::Launched;
use maka_cu_protocol::results::dispatch::{Settle, Verification};
use maka_cu_protocol::sets::{
    ChangedInput, Effect, ImageFormat, Outcome, Path, Permission, ReleaseReason, Tier,
};
use maka_cu_protocol::snapshot::{DisplayInfo, Snapshot};

use super::caller::PrincipalName;
use super::image_reading::ImageRight;
use super::image_rooms::ImageRoom;
use super::state::SessionState;

/// An answer and the id of the decision (or control record) that let it happen.
#[derive(Clone, Debug)]
pub struct Decided<T> {
    /// Names the record in the decision log.
    pub decision_id: String,
    /// The answer.
    pub value: T,
}

/// One session as lists show it.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// The session.
    pub session_id: SessionId,
    /// Who began it.
    pub principal: PrincipalName,
    /// When, in milliseconds since the Unix epoch.
    pub began_unix_ms: u64,
    /// Of the last call that named it, likewise.
    pub last_used_unix_ms: u64,
    /// Frames that a dispatch may still quote.
    pub live_snapshots: u32,
    /// Calls queued or under way.
    pub calls_in_flight: u32,
    /// What it may do now.
    pub state: SessionState,
    /// How long it lives without a call, in milliseconds.
    pub idle_ttl_ms: u64,
}

/// What ending a session dropped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EndedSession {
    /// Live frames.
    pub released_snapshots: u32,
    /// Image files.
    pub released_images: u32,
}

/// Names an image within its session.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ImageId(pub(crate) String);

impl ImageId {
    /// Takes an id as a caller spells it; whether such an image exists is asked later.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is known about an image without its bytes.
#[derive(Clone, Debug)]
pub struct ImageInfo {
    /// Names it within its session.
    pub image_id: ImageId,
    /// Encoding.
    pub format: ImageFormat,
    /// Width in pixels.
    pub width_px: u32,
    /// Height in pixels.
    pub height_px: u32,
    /// Length of the encoded bytes.
    pub byte_length: u64,
    /// Hash of the encoded bytes.
    pub sha256: Digest,
    /// Pixels per logical point.
    pub scale: f64,
    /// Whether it is of one colour, once its bytes were read and if it can be judged.
    pub uniform: Option<bool>,
    /// The size does not fit what it shows: no pixel of it can be acted on.
    pub size_mismatch: bool,
}

impl ImageInfo {
    /// With what only its bytes tell.
    #[must_use]
    pub(crate) fn seen(self, frame: &maka_cu_host::frame::Frame) -> Self {
        let uniform = match frame.uniformity {
            Uniformity::Uniform => Some(true),
            Uniformity::Varied => Some(false),
            Uniformity::Unknown => None,
        };
        Self { uniform, ..self }
    }
}

/// Why an image is absent, or without its bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ImageAbsence {
    /// Nobody asked for one.
    NotRequested,
    /// Too large to travel in the answer; the reference is good.
    TooLargeForInline,
    /// The executor answered without it.
    OmittedByExecutor,
    /// The file was gone or unreadable.
    Unreadable,
    /// The policy released the answer without it.
    DroppedByPolicy,
    /// The desktop gives no pictures, as the executor said.
    NotOffered,
}

/// An image of an answer: what there is, and why not more.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The reference.
    pub info: Option<ImageInfo>,
    /// The encoded bytes, verified against length and hash.
    pub data: Option<Vec<u8>>,
    /// Set when something that could be there is not.
    pub absence: Option<ImageAbsence>,
}

/// The verified bytes of an image.
pub struct ImageBytes {
    /// The reference.
    pub info: ImageInfo,
    /// Exactly `info.byte_length` bytes with hash `info.sha256`.
    pub data: Vec<u8>,
    /// What the right to them hangs on; nothing outside of a session.
    pub(crate) right: Option<ImageRight>,
    /// Its share of the memory for images, given back when the bytes go.
    pub(crate) _room: Option<ImageRoom>,
}

impl std::fmt::Debug for ImageBytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ImageBytes")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// A snapshot as a caller gets it.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The executor's snapshot. Its image path is not for callers: use `picture`.
    pub snapshot: Arc<Snapshot>,
    /// When a dispatch that quotes it starts to be refused, in milliseconds since the Unix epoch.
    pub expires_unix_ms: u64,
    /// The picture.
    pub picture: Picture,
}

/// A picture of a whole display.
#[derive(Clone, Debug)]
pub struct ScreenPicture {
    /// The picture.
    pub picture: Picture,
    /// The display that was captured.
    pub display_id: DisplayId,
    /// When, in milliseconds since the Unix epoch.
    pub captured_unix_ms: u64,
    /// The displays that it can be proved to show; empty when it cannot be said.
    pub displays: Vec<DisplayInfo>,
}

/// A fact about the world that kept an action from happening or from being known.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainFault {
    /// The code; its sentence is [`DomainCode::sentence`].
    pub code: DomainCode,
    /// What about the element changed.
    pub changed: Vec<ChangedInput>,
    /// The path that would have been needed.
    pub would_require: Option<Path>,
    /// The permission that is missing.
    pub permission: Option<Permission>,
}

impl DomainFault {
    /// A fault of which only the code is known.
    #[must_use]
    pub const fn of(code: DomainCode) -> Self {
        Self {
            code,
            changed: Vec::new(),
            would_require: None,
            permission: None,
        }
    }
}

/// What happened to a launch.
#[derive(Clone, Debug)]
pub struct LaunchOutcome {
    /// What happened. [`Outcome::Ok`] exactly when `launched` is there or `withheld` is set.
    pub outcome: Outcome,
    /// Present when the outcome is not ok.
    pub error: Option<DomainFault>,
    /// Present when the outcome is ok.
    pub launched: Option<Launched>,
    /// The decision that allowed it.
    pub decision_id: String,
    /// It happened, but the policy keeps the result from the caller.
    pub withheld: bool,
    /// Why the generation ended, when the outcome is unknown for that reason.
    pub release_reason: Option<ReleaseReason>,
    /// The answer to an earlier call with this key. Nothing was launched now.
    pub replayed: bool,
}

/// What happened to a dispatch.
#[derive(Clone, Debug)]
pub struct DispatchOutcome {
    /// The key.
    pub tool_call_id: ToolCallId,
    /// What happened.
    pub outcome: Outcome,
    /// The tier that was used or would have been.
    pub tier: Tier,
    /// The path that was used.
    pub path: Path,
    /// What is known about the effect.
    pub effect: Effect,
    /// How it is known.
    pub verification: Verification,
    /// How long the executor waited for rest.
    pub settle: Option<Settle>,
    /// Present when the outcome is not ok.
    pub error: Option<DomainFault>,
    /// The frame after the action.
    pub frame: Option<Frame>,
    /// Why a frame that was asked for is absent.
    pub observation_error: Option<DomainFault>,
    /// The decision that allowed it.
    pub decision_id: String,
    /// Where on the screen the action went.
    pub resolved_screen_point: Option<ScreenPoint>,
    /// It happened, but the policy keeps the result from the caller.
    pub withheld: bool,
    /// Why the generation ended, when the outcome is unknown for that reason.
    pub release_reason: Option<ReleaseReason>,
    /// Nothing was sent because the call was a dry run that the policy allows.
    pub dry_run: bool,
    /// An earlier call with the same key stored this; nothing was sent now.
    pub replayed: bool,
}
