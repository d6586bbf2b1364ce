//! Showing a person what an agent is about to do: the overlay hook (spec 10.2).
//!
//! Owns the decision what is shown when ([`decision`]) and the runtime that keeps showing apart from acting ([`stage`]). It draws
//! nothing: whoever draws implements [`OverlaySink`].
//!
//! INVARIANTS:
//! - Presentation never chooses, changes or authorises an action. It sees an action after everything about it is decided, and
//!   nothing of it flows back but time.
//! - That time is bounded, whatever a sink does: at most [`SLOT_PATIENCE`] for an earlier presentation and the longer of
//!   [`READY_FLOOR`] and what the fence asks for (never more than [`READY_CEILING`]) for its own. Then the action goes on unseen.
//! - A sink that fails, panics or hangs is a presentation less, and nothing else.
//! - Whatever was begun is ended exactly once, and one presentation is over before the next one begins.
//!
//! # Example
//! ```
//! use maka_cu_host::overlay::{Ended, Fence, Overlay, OverlaySink, Pointer, Presented, PresentedAction, SinkError};
//! use maka_cu_protocol::geometry::ScreenPoint;
//! use maka_cu_protocol::ids::{SessionId, ToolCallId};
//! use maka_cu_protocol::sets::PointActionKind;
//! use tokio_util::sync::CancellationToken;
//!
//! struct Crosshair;
//!
//! impl OverlaySink for Crosshair {
//!     fn ensure(&mut self, _session: &SessionId) -> Result<(), SinkError> {
//!         Ok(())
//!     }
//!     fn move_to(&mut self, pointer: &Pointer) -> Result<Option<Fence>, SinkError> {
//!         println!("{} at {:?}", pointer.action_id, pointer.point);
//!         Ok(None)
//!     }
//!     fn complete(&mut self, _pointer: &Pointer, _pulse: bool) -> Result<(), SinkError> {
//!         Ok(())
//!     }
//!     fn cancel(&mut self, _action_id: &ToolCallId, _session: &SessionId) -> Result<(), SinkError> {
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let overlay = Overlay::try_new(Crosshair)?;
//! let click = Presented {
//!     action_id: ToolCallId::try_new("call_1")?,
//!     session: SessionId::try_new("s")?,
//!     action: PresentedAction::Point(PointActionKind::LeftClick),
//!     point: Some(ScreenPoint::try_new(120.0, 80.0)?),
//!     start: None,
//!     target_window_id: Some(318),
//! };
//! let dispatch = async { "what the executor answered" };
//! let answer = overlay.present(click, &CancellationToken::new(), dispatch, |_| Ended::Ok { resolved: None }).await;
//! assert_eq!(answer, Ok("what the executor answered"));
//! overlay.close().await;
//! # Ok(())
//! # }
//! ```

pub mod decision;
pub mod stage;

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::{SessionId, ToolCallId};

pub use decision::{Ended, Presented, PresentedAction, element_point};
pub use stage::{Aborted, Overlay, OverlayError, Presentation};

/// The least time a fence has to become ready before the action goes on without it (spec 10.2).
pub const READY_FLOOR: Duration = Duration::from_millis(1000);

/// The most time a fence may ask for. The protocol names none; an action that waited longer would look hung.
pub const READY_CEILING: Duration = Duration::from_secs(10);

/// How long a presentation may go on after its action (spec 10.2). The answer does not wait for it, the next presentation does.
pub const FINISHED_PATIENCE: Duration = Duration::from_millis(1500);

/// How long an action waits for an earlier presentation before it goes on unseen: one that is only finishing is over by then.
pub const SLOT_PATIENCE: Duration = FINISHED_PATIENCE;

/// Something that happens later. That it happened is all it says; a failure counts as having happened.
pub type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a sink could not show something. It is noted without its text and has no further effect.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// What draws.
///
/// All four methods are called from one thread of their own, one at a time and in order. A method that blocks delays later
/// presentations, which are then left out, and never an action. Errors and panics are noted and ignored.
#[doc(alias = "ComputerUseOverlaySink")]
pub trait OverlaySink: Send + 'static {
    /// Something will happen in this session, at no place that is known.
    ///
    /// # Errors
    /// When it cannot be shown.
    fn ensure(&mut self, session: &SessionId) -> Result<(), SinkError>;

    /// The pointer goes somewhere. The fence says when the action may follow; without one it may at once.
    ///
    /// # Errors
    /// When it cannot be shown.
    #[doc(alias = "move")]
    fn move_to(&mut self, pointer: &Pointer) -> Result<Option<Fence>, SinkError>;

    /// The action is done, at this place. `pulse` asks for emphasis.
    ///
    /// # Errors
    /// When it cannot be shown.
    fn complete(&mut self, pointer: &Pointer, pulse: bool) -> Result<(), SinkError>;

    /// The action came to nothing, or to nothing that can be shown.
    ///
    /// # Errors
    /// When it cannot be shown.
    fn cancel(&mut self, action_id: &ToolCallId, session: &SessionId) -> Result<(), SinkError>;
}

/// Where the pointer is shown, and for what.
#[derive(Debug, Clone, PartialEq)]
pub struct Pointer {
    /// The dispatch it belongs to: its tool call id.
    pub action_id: ToolCallId,
    /// The session.
    pub session: SessionId,
    /// Where, in screen logical points.
    #[doc(alias = "screenX")]
    #[doc(alias = "screenY")]
    pub point: ScreenPoint,
    /// What kind of gesture.
    pub kind: PointerKind,
    /// Whether a button is held from now on, when the action says something about that.
    pub pressed: Option<bool>,
    /// Whether it appears there at once rather than travelling.
    pub instant: bool,
    /// Whether it stays above everything, because no window is known that it belongs to.
    #[doc(alias = "keepElevated")]
    pub keep_elevated: bool,
    /// The window it belongs to.
    #[doc(alias = "targetWindowId")]
    pub target_window_id: Option<u32>,
}

/// How a gesture is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerKind {
    /// A press, of any button, any number of times.
    Click,
    /// A drag.
    Drag,
    /// A turn of the wheel.
    Scroll,
    /// Anything else.
    Move,
}

/// When an action may follow its presentation, and when the presentation is over.
pub struct Fence {
    /// The pointer has arrived: the action may follow.
    #[doc(alias = "readyForInteraction")]
    pub ready_for_interaction: Signal,
    /// Nothing moves any more: the next presentation may begin.
    pub finished: Signal,
    /// How long readiness may take; [`READY_FLOOR`] when absent or shorter, [`READY_CEILING`] when longer.
    #[doc(alias = "readyTimeoutMs")]
    pub ready_timeout: Option<Duration>,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("ready_timeout", &self.ready_timeout)
            .finish_non_exhaustive()
    }
}
