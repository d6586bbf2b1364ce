//! The seam between the protocol server and a desktop.
//!
//! A [`Backend`] answers questions about one desktop and performs single actions on it. It owns every call into the
//! operating system and nothing else: sessions, snapshots, tokens, digests, occlusion, settling, verdicts, image files
//! and the wire are portable and sit above this trait, so that every back end behaves alike and passes one contract
//! suite.
//!
//! Rules that every back end keeps:
//!
//! - Methods block. The server calls them on threads that may block; several calls may run at the same time.
//! - Every call takes a [`Deadline`] and returns soon after it is over: a walk returns what it has, anything else
//!   returns [`BackendError::Timeout`].
//! - Nothing activates, raises or focuses a window, moves the pointer or opens a dialog, except
//!   [`Backend::permissions`] with [`PermissionPrompt::Ask`].
//! - Text of the observed applications is carried as `AppText` and never logged.
//! - No answer is remembered from an earlier call where the world may have changed in between: process table, window
//!   list and frontmost process are read live (field report kind "cached at start").

use std::fmt;
use std::time::Duration;

use maka_cu_protocol::ids::{DisplayId, WindowKey};
use maka_cu_protocol::sets::{
    ElementActionKind, ImageFormat, KeyActionKind, Path, PointActionKind,
};
use maka_cu_protocol::snapshot::DisplayInfo;
use maka_cu_protocol::text::AppText;
use tokio_util::sync::CancellationToken;

pub mod bitmap;
pub mod desktop;
pub mod doctor;
pub mod error;
pub mod input;
pub mod launch;
pub mod open;
pub mod perform;
pub mod tree;

#[cfg(target_os = "linux")]
pub mod linux;
pub mod virtual_desktop;

use crate::deadline::Deadline;
use bitmap::Bitmap;
use desktop::{PermissionPrompt, Permissions, ProcessStart, RunningApp, WindowInfo};
use error::BackendError;
use input::{InputRoute, KeyCommand, PointCommand, Reach};
use launch::{LaunchProgress, LaunchTicket};
use perform::{ElementCommand, PerformError, Performed};
use tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};

/// Which desktop a back end drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// The macOS desktop of this login session.
    Macos,
    /// An X11 desktop with AT-SPI.
    Linux,
    /// A Wayland desktop, through AT-SPI alone.
    Wayland,
    /// The embedded desktop, described by a scenario.
    VirtualDesktop,
}

impl BackendKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Macos,
        Self::Linux,
        Self::Wayland,
        Self::VirtualDesktop,
    ];

    /// The name used on the command line and in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Macos => "macos",
            Self::Linux => "linux",
            Self::Wayland => "wayland",
            Self::VirtualDesktop => "virtual",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a back end can do. What is not listed is not advertised in the handshake and is refused before any call.
///
/// An action is listed only if some request for it can succeed (spec §2.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendCapabilities {
    /// Element actions that [`Backend::perform`] can carry out.
    pub element_actions: Vec<ElementActionKind>,
    /// Point actions; empty when no point input is offered.
    pub point_actions: Vec<PointActionKind>,
    /// Key actions; empty when no key input is offered.
    pub key_actions: Vec<KeyActionKind>,
    /// Formats in which images can be written. The portable code encodes, so this is normally PNG alone; empty where the
    /// desktop gives no pictures, and then no capture is asked for with a snapshot.
    pub image_formats: Vec<ImageFormat>,
}

/// For how long after a person's last key or movement synthetic input keeps out of the way.
pub const RECENT_INPUT: Duration = Duration::from_secs(1);

/// One desktop. See the module text for the rules that hold for every method.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Which desktop this is.
    fn kind(&self) -> BackendKind;

    /// Fires when the desktop is gone for good, as after the death of its window server. The service then ends: what would
    /// follow is refusals only, and whoever supervises it can start another or say what is missing.
    fn lost(&self) -> CancellationToken;

    /// What can be asked of it. Constant for the life of the back end.
    fn capabilities(&self) -> BackendCapabilities;

    /// Every window, front to back. `z_index` decreases strictly along the list and is never tied.
    ///
    /// # Errors
    /// [`BackendError::PermissionMissing`], [`BackendError::CaptureFailed`] when the window server does not answer,
    /// [`BackendError::Timeout`].
    fn windows(&self, deadline: &Deadline) -> Result<Vec<WindowInfo>, BackendError>;

    /// The applications that run now, each process once, including those without a window when they have an
    /// application identity.
    ///
    /// `app_id` is spelled exactly as [`Backend::windows`] spells it for the same process.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn applications(&self, deadline: &Deadline) -> Result<Vec<RunningApp>, BackendError>;

    /// The attached displays, main display first. Empty only where windows have no place on them that could be told.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn displays(&self, deadline: &Deadline) -> Result<Vec<DisplayInfo>, BackendError>;

    /// The process that owns the foreground, read live; `None` when no window is active.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn frontmost_pid(&self, deadline: &Deadline) -> Result<Option<u32>, BackendError>;

    /// Whether the screen is locked.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn screen_locked(&self, deadline: &Deadline) -> Result<bool, BackendError>;

    /// Whether other applications' controls may be read and operated. Cheap: asked before every observe and dispatch.
    ///
    /// # Errors
    /// [`BackendError::Timeout`].
    fn accessibility_permitted(&self, deadline: &Deadline) -> Result<bool, BackendError>;

    /// What the operating system allows this process, with a probe of the pixels. [`PermissionPrompt::Never`] must not
    /// show a dialog.
    ///
    /// # Errors
    /// [`BackendError::Timeout`].
    fn permissions(
        &self,
        prompt: PermissionPrompt,
        deadline: &Deadline,
    ) -> Result<Permissions, BackendError>;

    /// When the process started, or `None` when it does not exist. Two processes that use one pid one after the other
    /// have different answers; one process always has the same.
    fn process_start(&self, pid: u32) -> Option<ProcessStart>;

    /// Asks the system to start the application `name` (application id or human name) without activating it.
    ///
    /// Returns as soon as the request was made; the portable code then polls [`Backend::launch_progress`].
    ///
    /// # Errors
    /// [`BackendError::AppNotFound`] when nothing answers to that name, [`BackendError::Ambiguous`] when several
    /// applications do, [`BackendError::Unsupported`] when it may not be started by us, [`BackendError::Refused`]
    /// when the system said no.
    fn launch(&self, name: &str, deadline: &Deadline) -> Result<LaunchTicket, BackendError>;

    /// How far a launch has come, read live. The back end decides which process and which windows belong to the
    /// launch (the started process, a descendant of it, or an instance that was running already).
    ///
    /// # Errors
    /// As [`Backend::windows`].
    fn launch_progress(
        &self,
        ticket: &LaunchTicket,
        deadline: &Deadline,
    ) -> Result<LaunchProgress, BackendError>;

    /// The root accessibility node of a window; `None` when no accessible window matches the listed one at this moment
    /// (the portable code asks again for up to 250 ms).
    ///
    /// A window that has no accessibility tree at all yields a root that stands for the window itself, made from its
    /// title and bounds.
    ///
    /// # Errors
    /// [`BackendError::WindowGone`], [`BackendError::PermissionMissing`], [`BackendError::Timeout`].
    fn window_root(
        &self,
        key: WindowKey,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError>;

    /// The root of the menu bar that belongs to the window with this root, as [`Backend::window_root`] gave it; `Ok(None)`
    /// when there is none.
    ///
    /// # Errors
    /// As [`Backend::window_root`]. [`BackendError::Timeout`] only says that it was not found in time.
    fn menu_bar(
        &self,
        root: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError>;

    /// Reads the tree below `root` in depth-first order, root first, until a budget is used up.
    ///
    /// Iterative, never recursive: a tree 20,000 levels deep or one that contains itself must end as a cut tree. The
    /// root is always part of the answer, even with the clock already spent. A node that vanishes during the walk is
    /// left out with its subtree.
    ///
    /// # Errors
    /// [`BackendError::WindowGone`] when the root itself does not answer, [`BackendError::CaptureFailed`] when the
    /// accessibility connection is lost. A used-up budget is not an error.
    fn walk(
        &self,
        root: &NodeRef,
        scope: &WalkScope,
        budget: &WalkBudget,
    ) -> Result<RawTree, BackendError>;

    /// Reads the given nodes again, in the given order. `None` = that node no longer answers.
    ///
    /// Must fill [`RawNode`] by the same code as [`Backend::walk`], with ancestors and sibling index read from live
    /// parent links: the digest recomputed from it is compared with the one recorded at observe time.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`] when the accessibility connection is lost, [`BackendError::Timeout`] when not
    /// every node could be read in time.
    fn read_nodes(
        &self,
        nodes: &[NodeRef],
        deadline: &Deadline,
    ) -> Result<Vec<Option<RawNode>>, BackendError>;

    /// Performs one action on one node. Called only for what [`Backend::capabilities`] lists, only after every check
    /// of the binding, and never twice for one request by the back end itself.
    ///
    /// # Errors
    /// [`PerformError::NotActionable`], [`PerformError::TimedOut`] and [`PerformError::Refused`] promise that nothing happened; whatever cannot
    /// promise that is [`PerformError::Unknown`].
    fn perform(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError>;

    /// The mechanism that [`Backend::perform`] would use for this command on this node, as it is now; `None` where it
    /// would not be actionable. Nothing is attempted. Asked only for a caller who accepts one mechanism, before the
    /// command is given, so it must not promise what is not kept.
    ///
    /// This is the answer of a back end that has one mechanism for each kind of command.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn mechanism(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Option<Path>, BackendError> {
        let _ = (node, deadline);
        Ok(Some(command.usual_path()))
    }

    /// The text that is selected in a node; `None` when nothing is, when it has no text, or when it is a password field.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn selected_text(
        &self,
        node: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<AppText>, BackendError>;

    /// How a gesture can get to this window, as it lies now. Nothing is sent.
    ///
    /// # Errors
    /// [`BackendError::WindowGone`], [`BackendError::CaptureFailed`], [`BackendError::Timeout`].
    fn point_reach(
        &self,
        key: WindowKey,
        command: &PointCommand,
        deadline: &Deadline,
    ) -> Result<Reach, BackendError>;

    /// Performs a gesture in a window by the given route, once. Called only for what [`Backend::capabilities`] lists and
    /// only by a route that [`Backend::point_reach`] allows.
    ///
    /// # Errors
    /// As [`Backend::perform`].
    fn point(
        &self,
        key: WindowKey,
        command: &PointCommand,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError>;

    /// How keys can get to this node. Nothing is sent.
    ///
    /// # Errors
    /// As [`Backend::point_reach`].
    fn key_reach(
        &self,
        node: &NodeRef,
        command: &KeyCommand,
        deadline: &Deadline,
    ) -> Result<Reach, BackendError>;

    /// Gives the node the focus inside its window and reads it again; whether it has the focus now. By
    /// [`InputRoute::Window`] nothing else changes: where a toolkit would raise the window, nothing is written and the
    /// answer is `false`.
    ///
    /// # Errors
    /// As [`Backend::perform`].
    fn focus(
        &self,
        node: &NodeRef,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<bool, PerformError>;

    /// Types into the window of a node that has the focus there.
    ///
    /// # Errors
    /// As [`Backend::perform`].
    fn keys(
        &self,
        node: &NodeRef,
        command: &KeyCommand,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError>;

    /// Whether a person used pointer or keyboard within the last [`RECENT_INPUT`]. What this back end sends itself does
    /// not count.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`], [`BackendError::Timeout`]: it cannot be told, which counts as yes.
    fn user_active(&self, deadline: &Deadline) -> Result<bool, BackendError>;

    /// The window's own pixels at full density, edge to edge, right also while other windows cover it.
    ///
    /// # Errors
    /// [`BackendError::WindowGone`], [`BackendError::CaptureFailed`], [`BackendError::PermissionMissing`],
    /// [`BackendError::Timeout`].
    fn capture_window(&self, key: WindowKey, deadline: &Deadline) -> Result<Bitmap, BackendError>;

    /// What one display shows, at full density.
    ///
    /// # Errors
    /// [`BackendError::CaptureFailed`] (also for an id that is not attached: the portable code checks that first),
    /// [`BackendError::PermissionMissing`], [`BackendError::Timeout`].
    fn capture_display(
        &self,
        display: &DisplayId,
        deadline: &Deadline,
    ) -> Result<Bitmap, BackendError>;
}
