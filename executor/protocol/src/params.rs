//! The params of every method (§3): strict on the executor's side, written by the host from the same declaration.
//!
//! Unknown keys are ignored, apart from the rejections the protocol names. `host.hello` has its params in
//! [`crate::handshake`], the two generic methods in [`crate::generic`].

use std::num::NonZeroU32;

use serde_json::Value;

use crate::{
    action::{ElementAction, KeyAction, PointAction},
    geometry::ImagePoint,
    handshake::Limits,
    ids::{
        AppId, Digest, DisplayId, ElementToken, Millis, SessionId, SnapshotId, StreamId,
        ToolCallId, WindowKey,
    },
    json::{Fields, Json, ObjectWriter, Reason, Violation, closed_set, record},
    menu::MenuScope,
    method::Method,
    sets::{
        CaptureScope, FocusPolicy, ImageFormat, OcclusionPolicy, SettleMode, Space, Strictness,
    },
    text::SomeText,
};

/// Params that cannot be used: the executor answers `invalid_params` with `data.field`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the params are unusable")]
pub struct ParamError(#[source] Violation);

impl ParamError {
    /// An error about a named field.
    #[must_use]
    pub fn of(field: &str, reason: Reason) -> Self {
        Self(Violation::of(field, reason))
    }

    /// Dotted name of the offending field; `params` when they are no object at all.
    #[must_use]
    pub fn field(&self) -> &str {
        if self.0.field.is_empty() {
            "params"
        } else {
            &self.0.field
        }
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.0.reason
    }
}

impl From<Violation> for ParamError {
    fn from(violation: Violation) -> Self {
        Self(violation)
    }
}

/// Gives a params type its method, its executor-side reader and its host-side writer.
macro_rules! params_of {
    ($($type:ty => $method:expr),+ $(,)?) => {$(
        impl $type {
            /// The method these params belong to.
            pub const METHOD: $crate::method::Method = $method;

            /// Reads raw params strictly.
            ///
            /// # Errors
            /// A [`ParamError`](crate::params::ParamError) that names the field.
            pub fn from_value(params: &serde_json::Value) -> Result<Self, $crate::params::ParamError> {
                Ok(<Self as $crate::json::Json>::read(params)?)
            }

            /// Writes the params; what is absent is left out.
            #[must_use]
            pub fn to_value(&self) -> serde_json::Value {
                <Self as $crate::json::Json>::write(self)
            }
        }
    )+};
}
pub(crate) use params_of;

params_of! {
    SessionBeginParams => Method::SessionBegin,
    SessionEndParams => Method::SessionEnd,
    WindowListParams => Method::WindowList,
    AppsListParams => Method::AppsList,
    LaunchParams => Method::AppsLaunch,
    ObserveParams => Method::Observe,
    DispatchElementParams => Method::DispatchElement,
    DispatchKeyParams => Method::DispatchKey,
    DispatchPointParams => Method::DispatchPoint,
    ScreenCaptureParams => Method::ScreenCapture,
    PermissionsCheckParams => Method::PermissionsCheck,
    CaptureStartParams => Method::CaptureStart,
    CaptureNextParams => Method::CaptureNext,
    CaptureStopParams => Method::CaptureStop,
}

record! {
    /// `session.begin` (§3.1).
    #[derive(Eq)]
    pub struct SessionBeginParams {
        /// The new session.
        pub session: SessionId = "session";
        /// How its images are taken; cannot change.
        pub capture_scope: CaptureScope = "captureScope";
    }
}

record! {
    /// `session.end` (§3.1).
    #[derive(Eq)]
    pub struct SessionEndParams {
        /// The session to end.
        pub session: SessionId = "session";
    }
}

record! {
    /// `window.list` (§3.2).
    #[derive(Eq)]
    pub struct WindowListParams {
        /// A live session.
        pub session: SessionId = "session";
    }
}

/// `apps.list` (§3.3): an object without fields.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AppsListParams;

impl Json for AppsListParams {
    fn read(value: &Value) -> Result<Self, Violation> {
        Fields::of(value).map(|_| Self)
    }

    fn write(&self) -> Value {
        ObjectWriter::new().finish()
    }
}

record! {
    /// `apps.launch` (§3.4).
    #[derive(Eq)]
    pub struct LaunchParams {
        /// A live session.
        pub session: SessionId = "session";
        /// An application id or a human name; here alone a human name is allowed.
        pub app: SomeText = "app";
        /// One budget for process and first window.
        pub wait_for_window_ms: Option<Millis> = "waitForWindowMs";
    }
}

closed_set! {
    /// The two ways to name what to observe.
    pub enum TargetKind {
        /// An application's frontmost ordinary window.
        App = "app",
        /// Exactly one window.
        Window = "window",
    }
}

/// What to observe (§3.5).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObserveTarget {
    /// The frontmost ordinary window of this application.
    App(AppId),
    /// Exactly this window; no other stands in for it.
    Window(WindowKey),
}

impl Json for ObserveTarget {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        match fields.get("kind")? {
            TargetKind::App => fields.get("app").map(Self::App),
            TargetKind::Window => WindowKey::read(value).map(Self::Window),
        }
    }

    fn write(&self) -> Value {
        match self {
            Self::App(app) => ObjectWriter::new()
                .with("kind", &TargetKind::App)
                .with("app", app),
            Self::Window(window) => ObjectWriter::new()
                .with("kind", &TargetKind::Window)
                .merge(window.write()),
        }
        .finish()
    }
}

impl Json for NonZeroU32 {
    fn read(value: &Value) -> Result<Self, Violation> {
        Self::new(u32::read(value)?).ok_or(Violation::here(Reason::OutOfRange))
    }

    fn write(&self) -> Value {
        Value::from(self.get())
    }
}

record! {
    /// `observe` (§3.5).
    #[derive(Eq)]
    pub struct ObserveParams {
        /// A live session.
        pub session: SessionId = "session";
        /// What to observe.
        pub target: ObserveTarget = "target";
        /// Whether a picture is wanted; if so it is mandatory.
        pub include_image: bool = "includeImage" or true;
        /// A tighter element bound than the limit.
        pub max_elements: Option<NonZeroU32> = "maxElements";
        /// A tighter depth bound than the limit.
        pub max_depth: Option<NonZeroU32> = "maxDepth";
        /// A tighter text bound than the limit.
        pub max_text_chars: Option<NonZeroU32> = "maxTextChars";
        /// Whether and how far to walk the menu.
        pub menu: Option<MenuScope> = "menu";
    }
}

impl ObserveParams {
    /// An observation with the protocol's defaults: with picture, without menu, under the limits.
    #[must_use]
    pub const fn new(session: SessionId, target: ObserveTarget) -> Self {
        Self {
            session,
            target,
            include_image: true,
            max_elements: None,
            max_depth: None,
            max_text_chars: None,
            menu: None,
        }
    }

    /// The numeric bounds, which come after the session check (§3): above a limit is an error, not a clamp.
    ///
    /// # Errors
    /// A [`ParamError`] naming the bound.
    pub fn check_limits(&self, limits: &Limits) -> Result<(), ParamError> {
        check_bounds(
            self.max_elements,
            self.max_depth,
            self.max_text_chars,
            limits,
        )
    }
}

/// Holds the three walk bounds of an observation to the limits.
pub(crate) fn check_bounds(
    elements: Option<NonZeroU32>,
    depth: Option<NonZeroU32>,
    text_chars: Option<NonZeroU32>,
    limits: &Limits,
) -> Result<(), ParamError> {
    let rows = [
        ("maxElements", elements, limits.max_elements),
        ("maxDepth", depth, limits.max_depth),
        ("maxTextChars", text_chars, limits.max_text_chars),
    ];
    let above = rows
        .into_iter()
        .find(|(_, bound, limit)| bound.is_some_and(|bound| u64::from(bound.get()) > *limit));
    above.map_or(Ok(()), |(field, ..)| {
        Err(ParamError::of(field, Reason::OutOfRange))
    })
}

record! {
    /// The frame a dispatch should take afterwards (§3.6). Absent: no settling, no frame.
    #[derive(Eq)]
    pub struct ObserveAfter {
        /// Whether a picture is wanted.
        pub include_image: bool = "includeImage";
        /// Whether to wait for rest.
        pub settle: SettleMode = "settle";
        /// Whether and how far to walk the menu.
        pub menu: Option<MenuScope> = "menu";
    }
}

record! {
    /// `dispatch.element` (§3.6).
    pub struct DispatchElementParams {
        /// A live session.
        pub session: SessionId = "session";
        /// The quoted snapshot.
        pub snapshot_id: SnapshotId = "snapshotId";
        /// Echoed in the answer.
        pub tool_call_id: ToolCallId = "toolCallId";
        /// The element, by its token in that snapshot.
        pub element_token: ElementToken = "elementToken";
        /// The digest recorded with it.
        pub expect_element_digest: Digest = "expectElementDigest";
        /// How much must be unchanged.
        pub strictness: Strictness = "strictness" or Strictness::Element;
        /// Which covering windows refuse.
        pub occlusion_policy: OcclusionPolicy = "occlusionPolicy" or OcclusionPolicy::SameApp;
        /// What to do.
        pub action: ElementAction = "action";
        /// The frame wanted afterwards.
        pub observe_after: Option<ObserveAfter> = "observeAfter";
    }
}

record! {
    /// `dispatch.key` (§3.7).
    #[derive(Eq)]
    pub struct DispatchKeyParams {
        /// A live session.
        pub session: SessionId = "session";
        /// The quoted snapshot.
        pub snapshot_id: SnapshotId = "snapshotId";
        /// Echoed in the answer.
        pub tool_call_id: ToolCallId = "toolCallId";
        /// The element that has, or is to get, the focus.
        pub focus_token: ElementToken = "focusToken";
        /// The digest recorded with it.
        pub expect_element_digest: Digest = "expectElementDigest";
        /// Whether focus may be written.
        pub focus_policy: FocusPolicy = "focusPolicy" or FocusPolicy::Require;
        /// What to do.
        pub action: KeyAction = "action";
        /// The frame wanted afterwards.
        pub observe_after: Option<ObserveAfter> = "observeAfter";
    }
}

record! {
    /// `dispatch.point` (§3.8).
    pub struct DispatchPointParams {
        /// A live session.
        pub session: SessionId = "session";
        /// The quoted snapshot.
        pub snapshot_id: SnapshotId = "snapshotId";
        /// Echoed in the answer.
        pub tool_call_id: ToolCallId = "toolCallId";
        /// The digest of the window as observed: always the anchor.
        pub expect_window_digest: Digest = "expectWindowDigest";
        /// Where to act.
        pub point: ImagePoint = "point";
        /// Where a drag starts. A drag without it is `invalid_point`, which the executor answers.
        pub start_point: Option<ImagePoint> = "startPoint";
        /// The space of the points.
        pub space: Space = "space";
        /// Which covering windows refuse.
        pub occlusion_policy: OcclusionPolicy = "occlusionPolicy" or OcclusionPolicy::Any;
        /// What to do.
        pub action: PointAction = "action";
        /// The frame wanted afterwards.
        pub observe_after: Option<ObserveAfter> = "observeAfter";
    }
    => |params| match (&params.action, params.start_point) {
        // A start point that were ignored would hide a caller's mistake about where the button goes down.
        (action, Some(_)) if *action != PointAction::Drag => Err(Violation::of("startPoint", Reason::NotAllowed)),
        _ => Ok(()),
    }
}

record! {
    /// `screen.capture` (§3.10).
    #[derive(Eq)]
    pub struct ScreenCaptureParams {
        /// A live session.
        pub session: SessionId = "session";
        /// Which display; absent means the main one.
        pub display_id: Option<DisplayId> = "displayId";
    }
}

record! {
    /// `permissions.check` (§3.11).
    #[derive(Eq)]
    pub struct PermissionsCheckParams {
        /// Whether a dialog may be shown; absent means no.
        pub prompt: bool = "prompt" or false;
    }
}

record! {
    /// `capture.start` (§3.12): reserved, always answered `not_implemented`.
    pub struct CaptureStartParams {
        /// A live session.
        pub session: SessionId = "session";
        /// What to stream.
        pub target: ObserveTarget = "target";
        /// Frames per second.
        pub max_fps: f64 = "maxFps";
        /// File format.
        pub format: ImageFormat = "format";
    }
}

record! {
    /// `capture.next` (§3.12): reserved, always answered `not_implemented`.
    #[derive(Eq)]
    pub struct CaptureNextParams {
        /// Which stream.
        pub stream_id: StreamId = "streamId";
        /// Only frames after this one.
        pub since_seq: u64 = "sinceSeq";
        /// How long to wait for one.
        pub timeout_ms: Millis = "timeoutMs";
    }
}

record! {
    /// `capture.stop` (§3.12): reserved, always answered `not_implemented`.
    #[derive(Eq)]
    pub struct CaptureStopParams {
        /// Which stream.
        pub stream_id: StreamId = "streamId";
    }
}
