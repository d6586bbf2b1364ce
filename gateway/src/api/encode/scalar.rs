//! Members of closed sets, geometry and faults.

use maka_cu_protocol::{
    geometry::{ImageRect, ScreenPoint, ScreenRect, WindowRect},
    ids::WindowKey,
    results::dispatch::{Settle, Verification},
    sets::{
        Effect, ImageFormat, Outcome, Path, ReleaseReason, ScreenRecordingProbe, ServiceState,
        SettleReason, Tier, VerificationMethod, WaitedReason,
    },
};
use maka_proto::v1;

use crate::session::{
    answer::{DomainFault, ImageAbsence},
    state::SessionState,
};

/// Defines an encoder from a closed set to the enum that mirrors it. A new member breaks the build here.
macro_rules! members {
    ($(#[$meta:meta])* $name:ident($type:ident -> $proto:ident) { $($from:ident => $to:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[must_use]
        pub(crate) const fn $name(member: $type) -> v1::$proto {
            match member {
                $($type::$from => v1::$proto::$to,)+
            }
        }
    };
}

members! {
    /// A tier.
    tier(Tier -> Tier) {
        Ax => Ax,
        SemanticBackground => SemanticBackground,
        CoordinateBackground => CoordinateBackground,
    }
}
members! {
    /// A path.
    path(Path -> Path) {
        AxAction => AxAction,
        AxAttribute => AxAttribute,
        AxSelect => AxSelect,
        CgEventPid => CgEventPid,
        SkylightPid => SkylightPid,
        CgEventGlobal => CgEventGlobal,
        None => None,
    }
}
members! {
    /// An outcome.
    outcome(Outcome -> Outcome) {
        Ok => Ok,
        Refused => Refused,
        Failed => Failed,
        Unknown => Unknown,
    }
}
members! {
    /// An effect, exactly as the executor stated it.
    effect(Effect -> Effect) {
        Confirmed => Confirmed,
        Unverifiable => Unverifiable,
        SuspectedNoop => SuspectedNoop,
    }
}
members! {
    /// A way to verify.
    verification_method(VerificationMethod -> VerificationMethod) {
        None => None,
        ActionResult => ActionResult,
        ValueReadback => ValueReadback,
        SelectionReadback => SelectionReadback,
        FocusReadback => FocusReadback,
        TreeDelta => TreeDelta,
    }
}
members! {
    /// Why settling ended.
    settle_reason(SettleReason -> SettleReason) {
        Quiesced => Quiesced,
        Ceiling => Ceiling,
        WindowTooSlow => WindowTooSlow,
        NotRequested => NotRequested,
    }
}
members! {
    /// Why waiting ended.
    waited_reason(WaitedReason -> WaitedReason) {
        WindowAppeared => WindowAppeared,
        Timeout => Timeout,
        NotRequested => NotRequested,
    }
}
members! {
    /// An encoding.
    image_format(ImageFormat -> ImageFormat) {
        Png => Png,
        Jpeg => Jpeg,
    }
}
members! {
    /// Why an image or its bytes are absent.
    image_absence(ImageAbsence -> ImageAbsence) {
        NotRequested => NotRequested,
        TooLargeForInline => TooLargeForInline,
        OmittedByExecutor => OmittedByExecutor,
        Unreadable => Unreadable,
        DroppedByPolicy => DroppedByPolicy,
        NotOffered => NotOffered,
    }
}
members! {
    /// Why a generation ended.
    release_reason(ReleaseReason -> ReleaseReason) {
        ChildExit => ChildExit,
        RequestTimeout => RequestTimeout,
        ProtocolViolation => ProtocolViolation,
        SessionCleared => SessionCleared,
        RestartExhausted => RestartExhausted,
        Disposed => Disposed,
    }
}
members! {
    /// What a trial capture said.
    screen_recording_probe(ScreenRecordingProbe -> ScreenRecordingProbe) {
        CaptureSucceeded => CaptureSucceeded,
        CaptureFailed => CaptureFailed,
        NotProbed => NotProbed,
    }
}
members! {
    /// The supervisor's state.
    executor_state(ServiceState -> ExecutorState) {
        Idle => Idle,
        Starting => Starting,
        Ready => Ready,
        BackingOff => BackingOff,
        Unavailable => Unavailable,
        Disposed => Disposed,
    }
}

/// A rectangle on the screen.
#[must_use]
pub(crate) const fn screen_rect(rect: ScreenRect) -> v1::Rect {
    v1::Rect {
        x: rect.x(),
        y: rect.y(),
        width: rect.width(),
        height: rect.height(),
    }
}

/// A rectangle within its window.
#[must_use]
pub(crate) const fn window_rect(rect: WindowRect) -> v1::Rect {
    v1::Rect {
        x: rect.x(),
        y: rect.y(),
        width: rect.width(),
        height: rect.height(),
    }
}

/// A rectangle within an image.
#[must_use]
pub(crate) const fn image_rect(rect: ImageRect) -> v1::Rect {
    v1::Rect {
        x: rect.x(),
        y: rect.y(),
        width: rect.width(),
        height: rect.height(),
    }
}

/// A point on the screen.
#[must_use]
pub(crate) const fn screen_point(point: ScreenPoint) -> v1::Point {
    v1::Point {
        x: point.x(),
        y: point.y(),
    }
}

/// A window.
#[must_use]
pub(crate) const fn window(window: WindowKey) -> v1::WindowRef {
    v1::WindowRef {
        pid: window.pid,
        window_id: window.window_id,
    }
}

/// A window layer. No platform uses numbers beyond 32 bits; one that did would still sort to the right side.
#[must_use]
pub(crate) fn layer(layer: i64) -> i32 {
    let fallback = if layer < 0 { i32::MIN } else { i32::MAX };
    i32::try_from(layer).unwrap_or(fallback)
}

/// A time since the Unix epoch.
#[must_use]
pub(crate) fn unix_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A check.
#[must_use]
pub(crate) fn verification(verification: Verification) -> v1::Verification {
    v1::Verification {
        method: verification_method(verification.method).into(),
        observed_change: verification.observed_change,
    }
}

/// A wait for rest.
#[must_use]
pub(crate) fn settle(settle: Settle) -> v1::Settle {
    v1::Settle {
        waited_ms: settle.waited_ms.0,
        quiesced: settle.quiesced,
        reason: settle_reason(settle.reason).into(),
    }
}

/// A fact about the world, with its fixed sentence.
#[must_use]
pub(crate) fn fault(fault: &DomainFault) -> v1::DomainError {
    v1::DomainError {
        code: fault.code.as_str().to_owned(),
        sentence: fault.code.sentence().to_owned(),
        changed: fault
            .changed
            .iter()
            .map(|changed| changed.as_str().to_owned())
            .collect(),
        would_require: fault.would_require.map(|needed| path(needed).into()),
        permission: fault
            .permission
            .map(|permission| permission.as_str().to_owned()),
    }
}

/// What a session may do.
#[must_use]
pub(crate) const fn session_state(state: SessionState) -> v1::SessionState {
    match state {
        SessionState::Unobserved => v1::SessionState::Unobserved,
        SessionState::Active => v1::SessionState::Active,
        SessionState::InterventionDebounce => v1::SessionState::InterventionDebounce,
        SessionState::ReobserveRequired => v1::SessionState::ReobserveRequired,
        SessionState::ScreenLocked => v1::SessionState::ScreenLocked,
        SessionState::BlockedUrl => v1::SessionState::BlockedUrl,
        SessionState::UserStopped => v1::SessionState::UserStopped,
    }
}
