//! The small closed sets of `maka.cu/2` (§6): words that both ends spell the same way.
//!
//! Larger sets live with their subject: methods in [`crate::method`], codes in [`crate::domain`], keys in
//! [`crate::keys`]. A word outside its set is never mapped to a neighbour; it is an error that names its field.

use crate::json::closed_set;

closed_set! {
    /// How intrusive a dispatch is (§6.2).
    pub enum Tier {
        /// The accessibility interface of the application.
        Ax = "ax",
        /// Reserved for a page-level route; no path belongs to it yet.
        SemanticBackground = "semantic-background",
        /// Synthetic input by coordinate or key, without taking the foreground.
        CoordinateBackground = "coordinate-background",
    }
}

impl Tier {
    /// The paths that may stand beside this tier in a result, apart from [`Path::None`], which may stand beside any.
    #[must_use]
    pub const fn paths(self) -> &'static [Path] {
        match self {
            Self::Ax => &[Path::AxAction, Path::AxAttribute, Path::AxSelect],
            Self::SemanticBackground => &[],
            Self::CoordinateBackground => {
                &[Path::CgEventPid, Path::SkylightPid, Path::CgEventGlobal]
            }
        }
    }

    /// Whether `path` may stand beside this tier.
    #[must_use]
    pub fn allows(self, path: Path) -> bool {
        path == Path::None || self.paths().contains(&path)
    }
}

closed_set! {
    /// The mechanism an action used or would use (§6.3).
    pub enum Path {
        /// Perform an accessibility action.
        AxAction = "ax_action",
        /// Write an accessibility attribute.
        AxAttribute = "ax_attribute",
        /// Select a child in its container.
        AxSelect = "ax_select",
        /// Synthetic event for one process; the cursor stays where it is.
        CgEventPid = "cg_event_pid",
        /// Background window event route.
        SkylightPid = "skylight_pid",
        /// System-wide event: moves the cursor, and needs permission from the handshake.
        CgEventGlobal = "cg_event_global",
        /// Nothing was dispatched.
        None = "none",
    }
}

closed_set! {
    /// What became of a dispatch (§6.1).
    pub enum Outcome {
        /// Dispatched and completed.
        Ok = "ok",
        /// Nothing was dispatched.
        Refused = "refused",
        /// Attempted and rejected; nothing happened.
        Failed = "failed",
        /// Attempted; what happened cannot be told.
        Unknown = "unknown",
    }
}

closed_set! {
    /// What is known about the effect of an action (§6.5).
    pub enum Effect {
        /// A check saw the effect.
        Confirmed = "confirmed",
        /// Nothing proves or disproves an effect.
        Unverifiable = "unverifiable",
        /// The very thing the action should alter reads as before.
        SuspectedNoop = "suspected_noop",
    }
}

closed_set! {
    /// The check behind an [`Effect`] (§6.5).
    pub enum VerificationMethod {
        /// No check was made.
        None = "none",
        /// The platform's own success code.
        ActionResult = "action_result",
        /// The written value was read back.
        ValueReadback = "value_readback",
        /// The selection was read back.
        SelectionReadback = "selection_readback",
        /// The focus was read back; declared, used by no rule.
        FocusReadback = "focus_readback",
        /// The window digest before and after was compared.
        TreeDelta = "tree_delta",
    }
}

closed_set! {
    /// Why settling ended (§6.9).
    pub enum SettleReason {
        /// Two looks agreed.
        Quiesced = "quiesced",
        /// At least two looks were compared and the window was still moving.
        Ceiling = "ceiling",
        /// Only one look could be afforded.
        WindowTooSlow = "window_too_slow",
        /// The caller asked for no settling.
        NotRequested = "not_requested",
    }
}

closed_set! {
    /// Why waiting for a launched window ended (§6.9).
    pub enum WaitedReason {
        /// A window appeared.
        WindowAppeared = "window_appeared",
        /// The budget ran out.
        Timeout = "timeout",
        /// The caller asked for no wait.
        NotRequested = "not_requested",
    }
}

closed_set! {
    /// How the screen recording permission was established (§3.11).
    pub enum ScreenRecordingProbe {
        /// A test capture worked.
        CaptureSucceeded = "capture_succeeded",
        /// A test capture failed.
        CaptureFailed = "capture_failed",
        /// No test capture was made.
        NotProbed = "not_probed",
    }
}

closed_set! {
    /// Why a snapshot that was asked for with a picture has none. Not part of the published text, whose readers ignore keys
    /// that they do not know: with it, no picture is ever left out in silence.
    pub enum ImageAbsence {
        /// The executor offers no pictures: its `imageFormats` are empty.
        NotOffered = "not_offered",
    }
}

closed_set! {
    /// How the images of a session are taken (§3.1).
    pub enum CaptureScope {
        /// The window alone.
        Window = "window",
        /// The window as it appears on the desktop.
        Desktop = "desktop",
    }
}

closed_set! {
    /// How much must be unchanged for an element dispatch (§3.6).
    pub enum Strictness {
        /// The target element.
        Element = "element",
        /// The whole window.
        Window = "window",
    }
}

closed_set! {
    /// Which covering windows refuse a dispatch (§3.6.2).
    pub enum OcclusionPolicy {
        /// Windows of the same process.
        SameApp = "same_app",
        /// Every window.
        Any = "any",
        /// No window.
        None = "none",
    }
}

closed_set! {
    /// What a key dispatch may do about focus (§3.7).
    pub enum FocusPolicy {
        /// The element must be focused already.
        Require = "require",
        /// Focus may be written, then must read back.
        Acquire = "acquire",
    }
}

closed_set! {
    /// Whether a dispatch waits for the window to come to rest (§3.6).
    pub enum SettleMode {
        /// No wait.
        None = "none",
        /// Wait until two looks agree or the budget is spent.
        Quiesce = "quiesce",
    }
}

closed_set! {
    /// The one legal space of `dispatch.point` coordinates (§3.8).
    pub enum Space {
        /// Pixels of the quoted snapshot's image.
        ImagePx = "image_px",
    }
}

closed_set! {
    /// The spaces `host.dispatch` accepts (§9.1).
    pub enum GenericSpace {
        /// Screen logical points.
        ScreenPt = "screen_pt",
        /// Pixels of the quoted snapshot's image.
        ImagePx = "image_px",
    }
}

closed_set! {
    /// How far a menu walk descends (§4.6).
    pub enum MenuScopeKind {
        /// The bar and its top items.
        Bar = "bar",
        /// One named menu opened.
        Menu = "menu",
        /// Everything.
        All = "all",
    }
}

closed_set! {
    /// How a difference should be shown (§4.9).
    pub enum Presentation {
        /// Nothing changed.
        NoChange = "no-change",
        /// The changes say it shortest.
        Difference = "difference",
        /// The whole tree says it shortest.
        Full = "full",
    }
}

closed_set! {
    /// One kind of difference entry (§4.9). Declaration order is the order within one path.
    pub enum ChangeKind {
        /// A node of the base tree is gone.
        Remove = "remove",
        /// A node is new.
        Insert = "insert",
        /// A node has other wire fields.
        Update = "update",
    }
}

closed_set! {
    /// Image file formats (§4.8).
    pub enum ImageFormat {
        /// Portable Network Graphics.
        Png = "png",
        /// JPEG.
        Jpeg = "jpeg",
    }
}

closed_set! {
    /// Mouse buttons of an element click (§3.6).
    pub enum MouseButton {
        /// The default action of the element.
        Left = "left",
        /// The element's menu.
        Right = "right",
        /// Offered by no element.
        Middle = "middle",
    }
}

closed_set! {
    /// Scroll directions (§3.6).
    pub enum Direction {
        /// Towards the start, vertically.
        Up = "up",
        /// Towards the end, vertically.
        Down = "down",
        /// Towards the start, horizontally.
        Left = "left",
        /// Towards the end, horizontally.
        Right = "right",
    }
}

closed_set! {
    /// The normalised actions an element may offer (§6.7).
    pub enum ElementVerb {
        /// Activate.
        Press = "press",
        /// Confirm.
        Confirm = "confirm",
        /// Open.
        Open = "open",
        /// Show the context menu.
        ShowMenu = "show_menu",
        /// Bring to the front within the application.
        Raise = "raise",
        /// Cancel.
        Cancel = "cancel",
        /// Choose.
        Pick = "pick",
        /// Step up.
        Increment = "increment",
        /// Step down.
        Decrement = "decrement",
        /// Scroll up by a page.
        ScrollUp = "scroll_up",
        /// Scroll down by a page.
        ScrollDown = "scroll_down",
        /// Scroll left by a page.
        ScrollLeft = "scroll_left",
        /// Scroll right by a page.
        ScrollRight = "scroll_right",
        /// Scroll until the element can be seen.
        ScrollToVisible = "scroll_to_visible",
    }
}

closed_set! {
    /// The kinds of `dispatch.element`, as capability names (§6.6).
    pub enum ElementActionKind {
        /// Press or show the menu.
        Click = "click",
        /// Write the value.
        SetValue = "set_value",
        /// Select text within the value.
        SelectText = "select_text",
        /// Perform one advertised action.
        SecondaryAction = "secondary_action",
        /// Scroll.
        Scroll = "scroll",
        /// Move the window.
        MoveWindow = "move_window",
        /// Resize the window.
        ResizeWindow = "resize_window",
        /// Minimise the window.
        MinimizeWindow = "minimize_window",
    }
}

closed_set! {
    /// The kinds of `dispatch.point`, as capability names (§6.6).
    pub enum PointActionKind {
        /// Move the pointer.
        Move = "move",
        /// Click the left button.
        LeftClick = "left_click",
        /// Click the right button.
        RightClick = "right_click",
        /// Click the middle button.
        MiddleClick = "middle_click",
        /// Two left clicks.
        DoubleClick = "double_click",
        /// Three left clicks.
        TripleClick = "triple_click",
        /// Press the left button and hold it.
        MouseDown = "mouse_down",
        /// Release the left button.
        MouseUp = "mouse_up",
        /// Press, move, release.
        Drag = "drag",
        /// Turn the wheel.
        Scroll = "scroll",
    }
}

closed_set! {
    /// The kinds of `dispatch.key`, as capability names (§6.6).
    pub enum KeyActionKind {
        /// Type text.
        Type = "type",
        /// Press one chord.
        Key = "key",
    }
}

closed_set! {
    /// Keyboard modifiers (§6.10).
    pub enum Modifier {
        /// Command, meta or super.
        Command = "command",
        /// Shift.
        Shift = "shift",
        /// Option or alt.
        Option = "option",
        /// Control.
        Control = "control",
        /// Function.
        Fn = "fn",
    }
}

closed_set! {
    /// A permission a refusal may name in `detail.permission` (§1.3).
    pub enum Permission {
        /// The accessibility interface.
        Accessibility = "accessibility",
        /// Screen recording.
        ScreenRecording = "screen_recording",
    }
}

closed_set! {
    /// Codes of the supervisor's own errors (§6.9).
    pub enum LifecycleCode {
        /// No executor is there, and nothing was delivered to one.
        ServiceUnavailable = "service_unavailable",
        /// The executor is not the one this host was built for.
        ServiceMismatch = "service_mismatch",
        /// Cancelled before delivery.
        Aborted = "aborted",
        /// Delivered, and what happened cannot be told.
        OutcomeUnknown = "outcome_unknown",
    }
}

closed_set! {
    /// How far a request has come (§8.4). The order is the order of time.
    pub enum RequestStage {
        /// Not yet written.
        Queued = "queued",
        /// Being written: the executor may already have it.
        Writing = "writing",
        /// Written completely.
        Delivered = "delivered",
        /// Answered.
        Settled = "settled",
    }
}

closed_set! {
    /// Why a generation or session was released (§8.6).
    pub enum ReleaseReason {
        /// The child ended.
        ChildExit = "child_exit",
        /// A request outlived its deadline and the cancel grace.
        RequestTimeout = "request_timeout",
        /// The child broke the protocol.
        ProtocolViolation = "protocol_violation",
        /// One session was cleared.
        SessionCleared = "session_cleared",
        /// The restart budget is spent.
        RestartExhausted = "restart_exhausted",
        /// The service was disposed.
        Disposed = "disposed",
    }
}

closed_set! {
    /// States of the supervisor (§8.3).
    pub enum ServiceState {
        /// No child, none being started.
        Idle = "idle",
        /// A child is being started.
        Starting = "starting",
        /// A child has passed the handshake.
        Ready = "ready",
        /// Waiting before the next start.
        BackingOff = "backing_off",
        /// Starts are used up, or the last failure was final.
        Unavailable = "unavailable",
        /// Ended for good.
        Disposed = "disposed",
    }
}

closed_set! {
    /// The digest inputs a refusal may name in `detail.changed` (§6.8), in digest order.
    pub enum ChangedInput {
        /// The role.
        Role = "role",
        /// The subrole.
        Subrole = "subrole",
        /// The accessibility identifier.
        AxIdentifier = "axIdentifier",
        /// The title.
        Title = "title",
        /// The label.
        Label = "label",
        /// The value.
        Value = "value",
        /// The frame in the window.
        Frame = "frame",
        /// The offered actions.
        Actions = "actions",
        /// The roles of the ancestors.
        Ancestors = "ancestors",
        /// The position among the siblings.
        SiblingIndex = "siblingIndex",
    }
}

closed_set! {
    /// The element fields that may be cut (§4.2).
    pub enum TextField {
        /// The title.
        Title = "title",
        /// The label.
        Label = "label",
        /// The value.
        Value = "value",
        /// The placeholder.
        Placeholder = "placeholder",
    }
}
