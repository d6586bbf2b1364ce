//! Domain codes: what an executor says about the world when it refuses (§6.8), and what each means to a host.

use crate::json::closed_set;

closed_set! {
    /// The codes of a refusal. A code outside this set means that the two ends are of different versions.
    pub enum DomainCode {
        /// The snapshot id was never minted here or belongs to another session.
        SnapshotUnknown = "snapshot_unknown",
        /// The snapshot is too old.
        SnapshotExpired = "snapshot_expired",
        /// The snapshot gave way to newer ones.
        SnapshotEvicted = "snapshot_evicted",
        /// The snapshot was acted on.
        SnapshotSpent = "snapshot_spent",
        /// A newer snapshot of the same window exists.
        SnapshotSuperseded = "snapshot_superseded",
        /// The token is not in that snapshot.
        ElementUnknown = "element_unknown",
        /// The digest sent is not the one recorded.
        ElementDigestMismatch = "element_digest_mismatch",
        /// The retained element no longer answers.
        ElementReleased = "element_released",
        /// The process is gone or is another one.
        ProcessReplaced = "process_replaced",
        /// The window is gone.
        WindowGone = "window_gone",
        /// No application answers to that name.
        AppNotFound = "app_not_found",
        /// The element is not as it was.
        ElementChanged = "element_changed",
        /// The window is not as it was.
        WindowChanged = "window_changed",
        /// The element is not focused.
        FocusChanged = "focus_changed",
        /// Another window covers the target.
        WindowOccluded = "window_occluded",
        /// The element does not offer the action.
        ElementNotActionable = "element_not_actionable",
        /// The element is disabled.
        ElementDisabled = "element_disabled",
        /// This executor does not do that.
        UnsupportedAction = "unsupported_action",
        /// Reserved by the protocol, not built.
        NotImplemented = "not_implemented",
        /// A permission is not granted.
        PermissionMissing = "permission_missing",
        /// The screen is locked.
        ScreenLocked = "screen_locked",
        /// A person is using pointer or keyboard.
        PhysicalInputActive = "physical_input_active",
        /// The point cannot be used.
        InvalidPoint = "invalid_point",
        /// The window or its picture could not be read.
        CaptureFailed = "capture_failed",
        /// The answer does not fit into a message.
        ResponseTooLarge = "response_too_large",
        /// The picture could not be stored.
        ImageWriteFailed = "image_write_failed",
        /// Attempted; what happened cannot be told.
        OutcomeUnknown = "outcome_unknown",
        /// Cancelled before any input.
        Aborted = "aborted",
        /// The time was used up.
        Timeout = "timeout",
        /// The application or the system said no, or no permitted route exists.
        DispatchRefused = "dispatch_refused",
    }
}

closed_set! {
    /// The codes a host gives to its own callers (§6.8).
    pub enum HostCode {
        /// A permission is not granted.
        PermissionMissing = "permission_missing",
        /// A permission has been asked for and not answered.
        PermissionPending = "permission_pending",
        /// A policy denied the action.
        PolicyDenied = "policy_denied",
        /// A policy forbids the action to everyone.
        PolicyForbidden = "policy_forbidden",
        /// The coordinate cannot be used.
        InvalidCoordinate = "invalid_coordinate",
        /// The window or its picture could not be delivered.
        CaptureFailed = "capture_failed",
        /// The content is too sensitive to act on.
        SensitivityBlocked = "sensitivity_blocked",
        /// The action is not offered.
        UnsupportedAction = "unsupported_action",
        /// Cancelled.
        Aborted = "aborted",
        /// The time was used up.
        Timeout = "timeout",
        /// No frame to act on.
        NoActiveFrame = "no_active_frame",
        /// No session to act in.
        NoActiveSession = "no_active_session",
        /// The frame is not usable any more.
        StaleFrame = "stale_frame",
        /// A newer frame replaced it.
        StaleEpoch = "stale_epoch",
        /// The target is not there.
        TargetMissing = "target_missing",
        /// Several targets answer.
        AmbiguousTarget = "ambiguous_target",
        /// The target is not as it was.
        TargetChanged = "target_changed",
        /// The target is another one than stated.
        TargetMismatch = "target_mismatch",
        /// A value that had been withheld came back.
        WithheldValueReplayed = "withheld_value_replayed",
        /// Another window covers the target.
        TargetOccluded = "target_occluded",
        /// The page behind the target changed.
        PageTargetChanged = "page_target_changed",
        /// The frame was acted on already.
        DuplicateAction = "duplicate_action",
        /// A person is using the desktop.
        UserIntervened = "user_intervened",
        /// The session must observe before it acts.
        ReobserveRequired = "reobserve_required",
        /// The screen is locked.
        ScreenLocked = "screen_locked",
        /// The address is blocked.
        BlockedUrl = "blocked_url",
        /// A person stopped the session.
        UserStopped = "user_stopped",
        /// No executor is there.
        ServiceUnavailable = "service_unavailable",
        /// The executor is not the one this host was built for.
        ServiceMismatch = "service_mismatch",
        /// Delivered, and what happened cannot be told.
        OutcomeUnknown = "outcome_unknown",
        /// The application or the system said no, or no permitted route exists.
        DispatchRefused = "dispatch_refused",
    }
}

/// What a code says about the snapshot that was quoted (§6.8, column "frame after").
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SnapshotFate {
    /// It cannot be used any more.
    Dead,
    /// It was used up by this very dispatch.
    Spent,
    /// It stays usable on the executor.
    Live,
    /// The executor still has it, the host forgets it: token and digest came from different frames.
    HostDrops,
    /// The code is not about a quoted snapshot.
    NotQuoted,
}

impl DomainCode {
    /// The code a host gives to its caller.
    #[must_use]
    pub const fn host_code(self) -> HostCode {
        match self {
            Self::SnapshotUnknown
            | Self::SnapshotExpired
            | Self::SnapshotEvicted
            | Self::ElementUnknown
            | Self::ElementDigestMismatch => HostCode::StaleFrame,
            Self::SnapshotSpent => HostCode::DuplicateAction,
            Self::SnapshotSuperseded => HostCode::StaleEpoch,
            Self::ElementReleased
            | Self::ProcessReplaced
            | Self::WindowGone
            | Self::AppNotFound => HostCode::TargetMissing,
            Self::ElementChanged | Self::WindowChanged | Self::FocusChanged => {
                HostCode::TargetChanged
            }
            Self::WindowOccluded => HostCode::TargetOccluded,
            Self::ElementNotActionable
            | Self::ElementDisabled
            | Self::UnsupportedAction
            | Self::NotImplemented => HostCode::UnsupportedAction,
            Self::PermissionMissing => HostCode::PermissionMissing,
            Self::ScreenLocked => HostCode::ScreenLocked,
            Self::PhysicalInputActive => HostCode::UserIntervened,
            Self::InvalidPoint => HostCode::InvalidCoordinate,
            Self::CaptureFailed | Self::ResponseTooLarge | Self::ImageWriteFailed => {
                HostCode::CaptureFailed
            }
            Self::OutcomeUnknown => HostCode::OutcomeUnknown,
            Self::Aborted => HostCode::Aborted,
            Self::Timeout => HostCode::Timeout,
            Self::DispatchRefused => HostCode::DispatchRefused,
        }
    }

    /// What this code says about the quoted snapshot.
    #[must_use]
    pub const fn snapshot_fate(self) -> SnapshotFate {
        match self {
            Self::SnapshotUnknown
            | Self::SnapshotExpired
            | Self::SnapshotEvicted
            | Self::SnapshotSpent
            | Self::SnapshotSuperseded => SnapshotFate::Dead,
            Self::OutcomeUnknown => SnapshotFate::Spent,
            Self::ElementDigestMismatch => SnapshotFate::HostDrops,
            Self::ElementUnknown
            | Self::ElementReleased
            | Self::ProcessReplaced
            | Self::WindowGone
            | Self::ElementChanged
            | Self::WindowChanged
            | Self::FocusChanged
            | Self::WindowOccluded
            | Self::ElementNotActionable
            | Self::ElementDisabled
            | Self::UnsupportedAction
            | Self::NotImplemented
            | Self::PermissionMissing
            | Self::ScreenLocked
            | Self::PhysicalInputActive
            | Self::InvalidPoint
            | Self::Aborted
            | Self::DispatchRefused => SnapshotFate::Live,
            Self::AppNotFound
            | Self::CaptureFailed
            | Self::ResponseTooLarge
            | Self::ImageWriteFailed
            | Self::Timeout => SnapshotFate::NotQuoted,
        }
    }

    /// The one sentence that goes with this code. Fixed: nothing is ever interpolated.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::SnapshotUnknown => "This session has no snapshot of that id.",
            Self::SnapshotExpired => "The snapshot is older than its time to live.",
            Self::SnapshotEvicted => "The snapshot gave way to newer ones of this session.",
            Self::SnapshotSpent => "The snapshot was already used by an action.",
            Self::SnapshotSuperseded => "A newer snapshot of the same window exists.",
            Self::ElementUnknown => "The snapshot holds no element of that token.",
            Self::ElementDigestMismatch => "The digest does not belong to the quoted snapshot.",
            Self::ElementReleased => "The element does not answer any more.",
            Self::ProcessReplaced => "The process of the target ended or was replaced.",
            Self::WindowGone => "The target window is not there any more.",
            Self::AppNotFound => "No application answers to that name.",
            Self::ElementChanged => "The element is not the one that was observed.",
            Self::WindowChanged => "The window is not as it was observed.",
            Self::FocusChanged => "The element does not have the keyboard focus.",
            Self::WindowOccluded => "Another window covers the target.",
            Self::ElementNotActionable => "The element does not offer this action.",
            Self::ElementDisabled => "The element is disabled.",
            Self::UnsupportedAction => "This executor does not support the action.",
            Self::NotImplemented => "The method is reserved and not implemented.",
            Self::PermissionMissing => "The operating system has not granted a needed permission.",
            Self::ScreenLocked => "The screen is locked.",
            Self::PhysicalInputActive => "A person is using the pointer or the keyboard.",
            Self::InvalidPoint => "The point cannot be used with this snapshot.",
            Self::CaptureFailed => "The content of the target could not be read.",
            Self::ResponseTooLarge => "The answer does not fit into one message.",
            Self::ImageWriteFailed => "The image could not be stored.",
            Self::OutcomeUnknown => "The action was started and its outcome cannot be told.",
            Self::Aborted => "Cancelled before any input was sent.",
            Self::Timeout => "The time for this request was used up.",
            Self::DispatchRefused => "The target did not accept the action; nothing changed.",
        }
    }
}
