//! Method names of the wire and the static facts about each.

use crate::json::closed_set;

/// The protocol version both ends must name exactly (§2.1).
pub const PROTOCOL: &str = "maka.cu/2";

/// The cancel notification (§3.12). It has no answer.
pub const CANCEL: &str = "$/cancel";

closed_set! {
    /// Every request method (§3).
    pub enum Method {
        /// First message of a child's life.
        HostHello = "host.hello",
        /// Begin a session.
        SessionBegin = "session.begin",
        /// End a session and drop what belongs to it.
        SessionEnd = "session.end",
        /// List windows, front to back.
        WindowList = "window.list",
        /// List running applications.
        AppsList = "apps.list",
        /// Launch an application without activating it.
        AppsLaunch = "apps.launch",
        /// Take a snapshot.
        Observe = "observe",
        /// Act on one element.
        DispatchElement = "dispatch.element",
        /// Press keys or type.
        DispatchKey = "dispatch.key",
        /// Act at a pixel.
        DispatchPoint = "dispatch.point",
        /// Take a picture of a display.
        ScreenCapture = "screen.capture",
        /// Report, and on request ask for, permissions.
        PermissionsCheck = "permissions.check",
        /// Reserved: start a frame stream.
        CaptureStart = "capture.start",
        /// Reserved: take the next frames.
        CaptureNext = "capture.next",
        /// Reserved: stop a frame stream.
        CaptureStop = "capture.stop",
        /// Generic dispatch, routed onto the specific ones.
        HostDispatch = "host.dispatch",
        /// Generic observation, routed onto the specific ones.
        HostSnapshot = "host.snapshot",
    }
}

/// The kind of lane a method's requests wait in (§1.6); each lane is served strictly in order.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LaneKind {
    /// Answered by the reader itself, before anything else.
    Reader,
    /// The control lane.
    Control,
    /// One lane per window; `misc` until the window is known.
    Target,
    /// The lane of what belongs to no window.
    Misc,
    /// One lane per frame stream.
    Capture,
}

impl Method {
    /// The kind of lane this method's requests wait in.
    #[must_use]
    pub const fn lane(self) -> LaneKind {
        match self {
            Self::HostHello => LaneKind::Reader,
            Self::SessionBegin
            | Self::SessionEnd
            | Self::PermissionsCheck
            | Self::AppsList
            | Self::WindowList => LaneKind::Control,
            Self::Observe
            | Self::DispatchElement
            | Self::DispatchKey
            | Self::DispatchPoint
            | Self::HostDispatch
            | Self::HostSnapshot => LaneKind::Target,
            Self::AppsLaunch | Self::ScreenCapture => LaneKind::Misc,
            Self::CaptureStart | Self::CaptureNext | Self::CaptureStop => LaneKind::Capture,
        }
    }

    /// Whether the answer carries the declared dispatch fields on both arms (§1.2).
    #[must_use]
    pub const fn is_dispatch(self) -> bool {
        match self {
            Self::DispatchElement
            | Self::DispatchKey
            | Self::DispatchPoint
            | Self::HostDispatch => true,
            Self::HostHello
            | Self::SessionBegin
            | Self::SessionEnd
            | Self::WindowList
            | Self::AppsList
            | Self::AppsLaunch
            | Self::Observe
            | Self::ScreenCapture
            | Self::PermissionsCheck
            | Self::CaptureStart
            | Self::CaptureNext
            | Self::CaptureStop
            | Self::HostSnapshot => false,
        }
    }

    /// Whether a delivered request may have changed the desktop, so that a lost answer leaves the outcome unknown.
    #[must_use]
    pub const fn may_act(self) -> bool {
        self.is_dispatch() || matches!(self, Self::AppsLaunch)
    }
}
