//! Single fields: ids, keys, digests, numbers and the members of enums.

use std::num::NonZeroU32;

use maka_cu_protocol::{
    ids::{AppId, Digest, DisplayId, ElementToken, SessionId, SnapshotId, ToolCallId, WindowKey},
    sets::{
        Direction, Effect, FocusPolicy, Modifier, MouseButton, OcclusionPolicy, Path, Strictness,
        Tier, VerificationMethod,
    },
};
use maka_proto::v1;

use super::violations::Violations;
use crate::approval::ApprovalId;
use crate::session::{
    answer::ImageId,
    call::{ImageDelivery, Turn},
};

/// Ids that the gateway or the executor made; longer ones cannot be theirs.
const MAX_ID_BYTES: usize = 256;
/// Bound of an idempotency key.
const MAX_KEY_BYTES: usize = 128;

/// A rule that several fields share.
pub(crate) const REQUIRED: &str = "required";
/// The policy engine takes no id with one; told here, the field has its name.
const NO_CONTROL: &str = "must not have control characters";
/// An enum field with a number that its enum does not have.
pub(crate) const UNKNOWN_MEMBER: &str = "not a member of its enum";

/// The session that a call names.
pub(crate) fn session_id(violations: &mut Violations, text: &str) -> Option<SessionId> {
    bounded(violations, "session_id", text, MAX_ID_BYTES)?;
    SessionId::try_new(text).ok()
}

/// The approval that an operator decides on.
pub(crate) fn approval_id(violations: &mut Violations, text: &str) -> Option<ApprovalId> {
    bounded(violations, "approval_id", text, MAX_ID_BYTES)?;
    Some(ApprovalId::new(text))
}

/// The idempotency key.
pub(crate) fn tool_call_id(violations: &mut Violations, text: &str) -> Option<ToolCallId> {
    if text.contains(char::is_control) {
        return violations.refuse("tool_call_id", NO_CONTROL);
    }
    match ToolCallId::try_new(text) {
        Ok(id) if text.len() <= MAX_KEY_BYTES => Some(id),
        Ok(_) | Err(_) => violations.refuse("tool_call_id", "must have 1 to 128 bytes"),
    }
}

/// The model's turn; the outer option is a bad field.
pub(crate) fn turn(violations: &mut Violations, text: Option<String>) -> Option<Option<Turn>> {
    if text
        .as_ref()
        .is_some_and(|text| text.contains(char::is_control))
    {
        return violations.refuse("turn", NO_CONTROL);
    }
    match text.map(Turn::try_new).transpose() {
        Ok(turn) => Some(turn),
        Err(_) => violations.refuse("turn", "must not have more than 64 bytes"),
    }
}

/// An app id of a list.
pub(crate) fn app_id(violations: &mut Violations, field: &str, text: &str) -> Option<AppId> {
    bounded(violations, field, text, MAX_ID_BYTES)?;
    AppId::try_new(text).ok()
}

/// A display id of a list, or none.
pub(crate) fn display_id(
    violations: &mut Violations,
    text: Option<&str>,
) -> Option<Option<DisplayId>> {
    let Some(text) = text else { return Some(None) };
    bounded(violations, "display_id", text, MAX_ID_BYTES)?;
    DisplayId::try_new(text).ok().map(Some)
}

/// A window of a list.
pub(crate) fn window(violations: &mut Violations, window: &v1::WindowRef) -> Option<WindowKey> {
    let positive = |violations: &mut Violations, field, number| {
        if number == 0 {
            violations.refuse(field, "must be above 0")
        } else {
            Some(())
        }
    };
    let pid = positive(violations, "window.pid", window.pid);
    let window_id = positive(violations, "window.window_id", window.window_id);
    pid.and(window_id).map(|()| WindowKey {
        pid: window.pid,
        window_id: window.window_id,
    })
}

/// The quoted snapshot. Empty is absent: whether that is refused is the policy's business.
pub(crate) fn snapshot_id(violations: &mut Violations, text: &str) -> Option<Option<SnapshotId>> {
    if text.is_empty() {
        return Some(None);
    }
    bounded(violations, "snapshot_id", text, MAX_ID_BYTES)?;
    SnapshotId::try_new(text).ok().map(Some)
}

/// An element of the quoted snapshot. Empty is absent, likewise.
pub(crate) fn element_token(
    violations: &mut Violations,
    field: &str,
    text: &str,
) -> Option<Option<ElementToken>> {
    if text.is_empty() {
        return Some(None);
    }
    bounded(violations, field, text, MAX_ID_BYTES)?;
    ElementToken::try_new(text).ok().map(Some)
}

/// A digest of the quoted snapshot. Empty is absent, likewise.
pub(crate) fn digest(
    violations: &mut Violations,
    field: &str,
    text: &str,
) -> Option<Option<Digest>> {
    if text.is_empty() {
        return Some(None);
    }
    match Digest::parse(text) {
        Some(digest) => Some(Some(digest)),
        None => violations.refuse(field, "must be `sha256:` and 64 lower-case hex digits"),
    }
}

/// An image of a snapshot or a capture. Which ones exist is the session's business.
pub(crate) fn image_id(violations: &mut Violations, text: &str) -> Option<ImageId> {
    bounded(violations, "image_id", text, MAX_ID_BYTES).map(|()| ImageId::new(text))
}

fn bounded(violations: &mut Violations, field: &str, text: &str, max_bytes: usize) -> Option<()> {
    debug_assert_eq!(max_bytes, MAX_ID_BYTES, "the rule below says so");
    if text.contains(char::is_control) {
        violations.refuse(field, NO_CONTROL)
    } else if (1..=max_bytes).contains(&text.len()) {
        Some(())
    } else if text.is_empty() {
        violations.refuse(field, REQUIRED)
    } else {
        violations.refuse(field, "must not have more than 256 bytes")
    }
}

/// A bound of a walk: absent, or at least 1.
pub(crate) fn at_least_one(
    violations: &mut Violations,
    field: &str,
    number: Option<u32>,
) -> Option<Option<NonZeroU32>> {
    match number.map(NonZeroU32::new) {
        None => Some(None),
        Some(Some(number)) => Some(Some(number)),
        Some(None) => violations.refuse(field, "must be at least 1"),
    }
}

/// Defines a decoder of an enum whose zero means that the field was left out.
macro_rules! members {
    ($(#[$meta:meta])* $name:ident: $proto:ident { $($from:ident => $to:expr),+ $(,)? } -> $type:ty) => {
        $(#[$meta])*
        pub(crate) fn $name(violations: &mut Violations, field: &str, number: i32) -> Option<Option<$type>> {
            match v1::$proto::try_from(number) {
                $(Ok(v1::$proto::$from) => Some(Some($to)),)+
                Ok(v1::$proto::Unspecified) => Some(None),
                Err(_) => violations.refuse(field, UNKNOWN_MEMBER),
            }
        }
    };
}

members! {
    /// A tier.
    tier: Tier {
        Ax => Tier::Ax,
        SemanticBackground => Tier::SemanticBackground,
        CoordinateBackground => Tier::CoordinateBackground,
    } -> Tier
}
members! {
    /// A path.
    path: Path {
        AxAction => Path::AxAction,
        AxAttribute => Path::AxAttribute,
        AxSelect => Path::AxSelect,
        CgEventPid => Path::CgEventPid,
        SkylightPid => Path::SkylightPid,
        CgEventGlobal => Path::CgEventGlobal,
        None => Path::None,
    } -> Path
}
members! {
    /// An effect.
    effect: Effect {
        Confirmed => Effect::Confirmed,
        Unverifiable => Effect::Unverifiable,
        SuspectedNoop => Effect::SuspectedNoop,
    } -> Effect
}
members! {
    /// A way to verify.
    verification: VerificationMethod {
        None => VerificationMethod::None,
        ActionResult => VerificationMethod::ActionResult,
        ValueReadback => VerificationMethod::ValueReadback,
        SelectionReadback => VerificationMethod::SelectionReadback,
        FocusReadback => VerificationMethod::FocusReadback,
        TreeDelta => VerificationMethod::TreeDelta,
    } -> VerificationMethod
}
members! {
    /// How an image is delivered; absent is none.
    image_delivery: ImageDelivery {
        None => ImageDelivery::None,
        Reference => ImageDelivery::Reference,
        Inline => ImageDelivery::Inline,
    } -> ImageDelivery
}
members! {
    /// How much must be unchanged.
    strictness: Strictness {
        Element => Strictness::Element,
        Window => Strictness::Window,
    } -> Strictness
}
members! {
    /// Which covering windows count.
    occlusion: OcclusionPolicy {
        SameApp => OcclusionPolicy::SameApp,
        Any => OcclusionPolicy::Any,
        None => OcclusionPolicy::None,
    } -> OcclusionPolicy
}
members! {
    /// Whether the focus may be moved.
    focus_policy: FocusPolicy {
        Require => FocusPolicy::Require,
        Acquire => FocusPolicy::Acquire,
    } -> FocusPolicy
}
members! {
    /// A mouse button; absent is left.
    mouse_button: MouseButton {
        Left => MouseButton::Left,
        Right => MouseButton::Right,
        Middle => MouseButton::Middle,
    } -> MouseButton
}
members! {
    /// Where to scroll.
    direction: ScrollDirection {
        Up => Direction::Up,
        Down => Direction::Down,
        Left => Direction::Left,
        Right => Direction::Right,
    } -> Direction
}
members! {
    /// A modifier.
    modifier: KeyModifier {
        Command => Modifier::Command,
        Shift => Modifier::Shift,
        Option => Modifier::Option,
        Control => Modifier::Control,
        Fn => Modifier::Fn,
    } -> Modifier
}

/// A member that the request must name.
pub(crate) fn required<T>(
    violations: &mut Violations,
    field: &str,
    member: Option<Option<T>>,
) -> Option<T> {
    match member? {
        Some(member) => Some(member),
        None => violations.refuse(field, REQUIRED),
    }
}
