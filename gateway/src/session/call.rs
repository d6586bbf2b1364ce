//! What a caller may ask of a session, already parsed and bounded by the edge.
//!
//! Everything here is built from the vocabulary of `maka-cu-protocol`; nothing is a free-form string apart from the
//! text that an action carries. A missing anchor is representable on purpose: whether an action without one is refused
//! is the policy's decision (`anchor_missing`), and the refusal then has a decision id like every other.

use std::fmt;
use std::num::NonZeroU32;

use maka_cu_protocol::action::{ElementAction, KeyAction, PointAction};
use maka_cu_protocol::geometry::ImagePoint;
use maka_cu_protocol::ids::{
    AppId, Digest, DisplayId, ElementToken, Millis, SnapshotId, ToolCallId, WindowKey,
};
use maka_cu_protocol::menu::MenuScope;
use maka_cu_protocol::sets::{
    Effect, FocusPolicy, OcclusionPolicy, Path, SettleMode, Strictness, Tier, VerificationMethod,
};
use maka_cu_protocol::text::SomeText;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What belongs to a call and not to its content.
///
/// There is no cancel handle: dropping the future of a call cancels it. The executor then gets `$/cancel` and two
/// seconds of grace, and the outcome of a dispatch or a launch is recorded under its key.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// The caller's deadline, when it set one.
    pub deadline: Option<Instant>,
    /// Ends with the caller's connection, when there is one: a button that it holds down is then let go.
    pub connection: Option<CancellationToken>,
}

/// The model's turn that a call belongs to, for the policy's counters: at most [`Turn::MAX_BYTES`] bytes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Turn(String);

/// A turn was longer than [`Turn::MAX_BYTES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a turn must not be longer than 64 bytes")]
pub struct TurnTooLong;

impl Turn {
    /// Bound of design.md §4.
    pub const MAX_BYTES: usize = 64;

    /// Takes the turn.
    ///
    /// # Errors
    /// [`TurnTooLong`].
    pub fn try_new(turn: impl Into<String>) -> Result<Self, TurnTooLong> {
        let turn = turn.into();
        if turn.len() > Self::MAX_BYTES {
            Err(TurnTooLong)
        } else {
            Ok(Self(turn))
        }
    }

    /// The turn as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How the caller wants an image.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ImageDelivery {
    /// No image.
    #[default]
    None,
    /// A reference to fetch later.
    Reference,
    /// The bytes in the answer, up to [`crate::session::image::INLINE_MAX_BYTES`].
    Inline,
}

/// What to observe.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObserveWish {
    /// The frontmost ordinary window on the screen.
    Frontmost,
    /// The frontmost ordinary window of this application.
    App(AppId),
    /// Exactly this window.
    Window(WindowKey),
}

/// `Snapshot`.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotCall {
    /// What to observe.
    pub target: ObserveWish,
    /// How to deliver the picture.
    pub image: ImageDelivery,
    /// Above the executor's limit it is [`crate::error::CallError::Malformed`].
    pub max_elements: Option<NonZeroU32>,
    /// As `max_elements`.
    pub max_depth: Option<NonZeroU32>,
    /// As `max_elements`.
    pub max_text_chars: Option<NonZeroU32>,
    /// Which part of the menu to read as well.
    pub menu: Option<MenuScope>,
}

/// `LaunchApp`.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchCall {
    /// Idempotency key within the session.
    pub tool_call_id: ToolCallId,
    /// The model's turn.
    pub turn: Option<Turn>,
    /// App id or human name, 1 to 256 bytes.
    pub app: SomeText,
    /// One budget for registration and first window; absent: 8000.
    pub wait_for_window_ms: Option<Millis>,
}

/// `CaptureScreen`.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureCall {
    /// Absent: the main display.
    pub display_id: Option<DisplayId>,
    /// How to deliver the picture; [`ImageDelivery::None`] is treated as a reference.
    pub image: ImageDelivery,
}

/// A frame that is wanted after an action.
#[derive(Clone, Debug, PartialEq)]
pub struct ObserveAfterWish {
    /// How to deliver the picture.
    pub image: ImageDelivery,
    /// Whether to wait for the window to come to rest first.
    pub settle: SettleMode,
    /// Which part of the menu to read as well.
    pub menu: Option<MenuScope>,
}

/// `Dispatch`.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchCall {
    /// Idempotency key within the session.
    pub tool_call_id: ToolCallId,
    /// The model's turn.
    pub turn: Option<Turn>,
    /// The only tier the caller accepts.
    pub tier: Tier,
    /// The only path the caller accepts.
    pub path: Option<Path>,
    /// Advisory; part of the idempotent request, never of the result.
    pub wished_effect: Option<Effect>,
    /// Advisory, likewise.
    pub wished_verification: Option<VerificationMethod>,
    /// The frame this action is based on. Never guessed: without one the policy refuses with `anchor_missing`.
    pub snapshot_id: Option<SnapshotId>,
    /// The action with its anchor.
    pub action: DispatchAction,
    /// The frame that is wanted afterwards.
    pub observe_after: Option<ObserveAfterWish>,
    /// Judge only, send nothing.
    pub dry_run: bool,
}

/// An action together with the kind of anchor it needs, so that no other pair can be built.
#[derive(Clone, Debug, PartialEq)]
pub enum DispatchAction {
    /// `dispatch.element`.
    Element {
        /// The element.
        anchor: ElementAnchor,
        /// What to do to it.
        action: ElementAction,
    },
    /// `dispatch.key`.
    Key {
        /// The element that has or is to get the focus.
        anchor: FocusAnchor,
        /// The key or text.
        action: KeyAction,
    },
    /// `dispatch.point`.
    Point {
        /// The pixel and the window that it belongs to.
        anchor: PointAnchor,
        /// What to do there.
        action: PointAction,
    },
}

/// The element an action is for. All absent when the request named no target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElementAnchor {
    /// The element's token in the quoted snapshot.
    pub token: Option<ElementToken>,
    /// The digest that the snapshot gave for it.
    pub expect_digest: Option<Digest>,
    /// Absent: the target only.
    pub strictness: Option<Strictness>,
    /// Absent: windows of the same process.
    pub occlusion: Option<OcclusionPolicy>,
}

/// The element that has or is to get the keyboard focus.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FocusAnchor {
    /// The element's token in the quoted snapshot.
    pub token: Option<ElementToken>,
    /// The digest that the snapshot gave for it.
    pub expect_digest: Option<Digest>,
    /// Absent: it must have the focus already.
    pub policy: Option<FocusPolicy>,
}

/// A point of the quoted snapshot's picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointAnchor {
    /// The point, in pixels of that picture.
    pub point: Option<ImagePoint>,
    /// Where a drag starts.
    pub start: Option<ImagePoint>,
    /// The snapshot's window digest.
    pub expect_window_digest: Option<Digest>,
    /// Absent: every window counts.
    pub occlusion: Option<OcclusionPolicy>,
}
