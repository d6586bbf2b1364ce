//! The generic methods `host.dispatch` and `host.snapshot` (§9): params, routing and the one result that differs.
//!
//! In a request, tier, path, effect and verification are demands or wishes; in a result they are facts. They are
//! therefore different types here and nothing copies one into the other.

use std::{num::NonZeroU32, path::Path as FilePath};

use serde_json::Value;

use crate::{
    action::{ClickCount, ElementAction, KeyAction, PointAction},
    geometry::{ImagePoint, ScreenPoint},
    handshake::Limits,
    ids::{Digest, DisplayId, ElementToken, Millis, SessionId, SnapshotId, ToolCallId},
    image::ImageRef,
    json::{Fields, Json, ObjectWriter, Reason, Violation, record},
    menu::MenuScope,
    method::Method,
    params::{ObserveAfter, ObserveTarget, ParamError, check_bounds, params_of},
    results::{Answer, ObserveExpectation, ScreenCaptured},
    sets::{
        Effect, FocusPolicy, GenericSpace, KeyActionKind, OcclusionPolicy, Path, Strictness, Tier,
        VerificationMethod,
    },
    snapshot::{Snapshot, SnapshotTarget},
};

/// Where a generic point action is, in the space the caller chose. A start point is for drags only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GenericPoint {
    /// Screen logical points.
    Screen {
        /// Where to act.
        point: ScreenPoint,
        /// Where a drag starts.
        start: Option<ScreenPoint>,
    },
    /// Pixels of the snapshot's image.
    Image {
        /// Where to act.
        point: ImagePoint,
        /// Where a drag starts.
        start: Option<ImagePoint>,
    },
}

impl GenericPoint {
    const fn has_start(&self) -> bool {
        match self {
            Self::Screen { start, .. } => start.is_some(),
            Self::Image { start, .. } => start.is_some(),
        }
    }
}

/// The specific method a generic dispatch belongs to, with what that method needs.
#[derive(Clone, Debug, PartialEq)]
pub enum GenericRoute {
    /// `dispatch.element`.
    Element {
        /// The element.
        token: ElementToken,
        /// The digest recorded with it.
        expect_digest: Digest,
        /// How much must be unchanged.
        strictness: Strictness,
        /// Which covering windows refuse.
        occlusion: OcclusionPolicy,
        /// What to do.
        action: ElementAction,
    },
    /// `dispatch.key`.
    Key {
        /// The element with the focus.
        focus_token: ElementToken,
        /// The digest recorded with it.
        expect_digest: Digest,
        /// Whether focus may be written.
        policy: FocusPolicy,
        /// What to do.
        action: KeyAction,
    },
    /// `dispatch.point`.
    Point {
        /// Where.
        point: GenericPoint,
        /// The window digest; absent means the one recorded with the snapshot.
        expect_window_digest: Option<Digest>,
        /// Which covering windows refuse.
        occlusion: OcclusionPolicy,
        /// What to do.
        action: PointAction,
    },
}

impl GenericRoute {
    /// The specific method.
    #[must_use]
    pub const fn method(&self) -> Method {
        match self {
            Self::Element { .. } => Method::DispatchElement,
            Self::Key { .. } => Method::DispatchKey,
            Self::Point { .. } => Method::DispatchPoint,
        }
    }

    /// The tier this route serves.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        match self {
            Self::Element { .. } => Tier::Ax,
            Self::Key { .. } | Self::Point { .. } => Tier::CoordinateBackground,
        }
    }
}

/// Which snapshot a generic dispatch is bound to. It is never unbound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GenericAnchor {
    /// This one.
    Snapshot(SnapshotId),
    /// The only live one of this process in the session.
    OnlyLiveOf(u32),
}

/// The params of `host.dispatch`.
#[derive(Clone, Debug, PartialEq)]
pub struct GenericDispatchParams {
    /// Echoed in the answer.
    pub tool_call_id: ToolCallId,
    /// The session; begun implicitly when it was never seen.
    pub session: SessionId,
    /// The only tier the caller accepts.
    pub tier: Tier,
    /// The only path the caller accepts; `None` means any legal one. Never [`Path::None`].
    pub path: Option<Path>,
    /// The effect the caller hopes for. Never copied into a result.
    pub wished_effect: Option<Effect>,
    /// The check the caller would like. Never copied into a result.
    pub wished_verification: Option<VerificationMethod>,
    /// What to do, by which specific method.
    pub route: GenericRoute,
    /// The snapshot it is bound to.
    pub anchor: GenericAnchor,
    /// The frame wanted afterwards.
    pub observe_after: Option<ObserveAfter>,
}

params_of! {
    GenericDispatchParams => Method::HostDispatch,
    GenericSnapshotParams => Method::HostSnapshot,
}

impl Json for GenericDispatchParams {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let (tool_call_id, session) = (fields.get("toolCallId")?, read_session(fields)?);
        let tier: Tier = fields.get("tier")?;
        let path = fields
            .get::<Option<Path>>("path")?
            .filter(|path| *path != Path::None);
        if path.is_some_and(|path| !tier.allows(path)) {
            return Err(Violation::of("path", Reason::IllegalPair));
        }
        let route = read_route(fields)?;
        let pid: Option<u32> = fields.get("pid")?;
        let anchor = match (fields.get("snapshotId")?, pid) {
            (Some(snapshot_id), _) => GenericAnchor::Snapshot(snapshot_id),
            (None, Some(pid)) => GenericAnchor::OnlyLiveOf(pid),
            (None, None) => return Err(Violation::of("snapshotId", Reason::Missing)),
        };
        Ok(Self {
            tool_call_id,
            session,
            tier,
            path,
            wished_effect: read_wished_effect(fields)?,
            wished_verification: read_wished_verification(fields)?,
            route,
            anchor,
            observe_after: fields.get("observeAfter")?,
        })
    }

    fn write(&self) -> Value {
        let wish = self
            .wished_verification
            .map(|method| ObjectWriter::new().with("method", &method).finish());
        let object = ObjectWriter::new()
            .with("toolCallId", &self.tool_call_id)
            .with("sessionId", &self.session)
            .with("tier", &self.tier)
            .with("path", &self.path)
            .with("effect", &self.wished_effect)
            .with("observeAfter", &self.observe_after)
            .merge(write_route(&self.route));
        let object = match &self.anchor {
            GenericAnchor::Snapshot(snapshot_id) => object.with("snapshotId", snapshot_id),
            GenericAnchor::OnlyLiveOf(pid) => object.with("pid", pid),
        };
        match wish {
            Some(wish) => object.merge(Value::Object(serde_json::Map::from_iter([(
                "verification".to_owned(),
                wish,
            )]))),
            None => object,
        }
        .finish()
    }
}

/// `sessionId`, or its alias `session`; given both, they must agree.
fn read_session(fields: Fields<'_>) -> Result<SessionId, Violation> {
    match (fields.get("sessionId")?, fields.get("session")?) {
        (Some(session_id), Some(alias)) if session_id != alias => {
            Err(Violation::of("session", Reason::Contradiction))
        }
        (Some(session), _) | (None, Some(session)) => Ok(session),
        (None, None) => Err(Violation::of("sessionId", Reason::Missing)),
    }
}

/// A wish in the published words or in the older ones (§9.3).
fn read_wished_effect(fields: Fields<'_>) -> Result<Option<Effect>, Violation> {
    match fields.raw("effect").and_then(Value::as_str) {
        Some("unconfirmed") => Ok(Some(Effect::Unverifiable)),
        Some("none") => Ok(None),
        Some(_) | None => fields.get("effect"),
    }
}

fn read_wished_verification(fields: Fields<'_>) -> Result<Option<VerificationMethod>, Violation> {
    let Some(wish) = fields.raw("verification") else {
        return Ok(None);
    };
    Fields::of(wish)
        .and_then(|wish| wish.get("method"))
        .map_err(|violation| violation.at("verification"))
}

/// Finds the one route the fields describe; none or several is an error about the field that does not fit.
fn read_route(fields: Fields<'_>) -> Result<GenericRoute, Violation> {
    let element = fields.has("elementToken");
    let typed = fields
        .raw("action")
        .and_then(|action| Fields::of(action).ok()?.lenient::<KeyActionKind>("kind"));
    let key = fields.has("focusToken") || typed.is_some();
    let point = ["x", "y", "point"]
        .into_iter()
        .find(|name| fields.has(name));
    match (element, key, point) {
        (true, true, _) => Err(Violation::of("focusToken", Reason::NotAllowed)),
        (true, false, Some(name)) | (false, true, Some(name)) => {
            Err(Violation::of(name, Reason::NotAllowed))
        }
        (false, false, None) => Err(Violation::of("elementToken", Reason::Missing)),
        (true, false, None) => Ok(GenericRoute::Element {
            token: fields.get("elementToken")?,
            expect_digest: fields.get("expectElementDigest")?,
            strictness: fields.get_or("strictness", Strictness::Element)?,
            occlusion: fields.get_or("occlusionPolicy", OcclusionPolicy::SameApp)?,
            action: fields.get("action")?,
        }),
        (false, true, None) => Ok(GenericRoute::Key {
            focus_token: fields.get("focusToken")?,
            expect_digest: fields.get("expectElementDigest")?,
            policy: fields.get_or("focusPolicy", FocusPolicy::Require)?,
            action: fields.get("action")?,
        }),
        (false, false, Some(_)) => {
            let action = fields.get_or(
                "action",
                PointAction::LeftClick {
                    count: ClickCount::ONE,
                },
            )?;
            let point = match fields.get_or("space", GenericSpace::ScreenPt)? {
                GenericSpace::ScreenPt => {
                    let (point, start) = read_points(fields, ScreenPoint::try_new)?;
                    GenericPoint::Screen { point, start }
                }
                GenericSpace::ImagePx => {
                    let (point, start) = read_points(fields, ImagePoint::try_new)?;
                    GenericPoint::Image { point, start }
                }
            };
            if action != PointAction::Drag && point.has_start() {
                return Err(Violation::of("startPoint", Reason::NotAllowed));
            }
            Ok(GenericRoute::Point {
                point,
                expect_window_digest: fields.get("expectWindowDigest")?,
                occlusion: fields.get_or("occlusionPolicy", OcclusionPolicy::Any)?,
                action,
            })
        }
    }
}

/// `point` and `startPoint`, or `x`, `y`, `startX`, `startY`; not both spellings of one point.
fn read_points<P: Json, E>(
    fields: Fields<'_>,
    new: impl Fn(f64, f64) -> Result<P, E>,
) -> Result<(P, Option<P>), Violation> {
    let read = |object: &str, x: &str, y: &str| -> Result<Option<P>, Violation> {
        match (fields.has(object), fields.has(x) || fields.has(y)) {
            (true, true) => Err(Violation::of(object, Reason::NotAllowed)),
            (true, false) => fields.get(object).map(Some),
            (false, true) => {
                let point = new(fields.get(x)?, fields.get(y)?);
                point
                    .map(Some)
                    .map_err(|_| Violation::of(x, Reason::NotNumber))
            }
            (false, false) => Ok(None),
        }
    };
    let point = read("point", "x", "y")?.ok_or(Violation::of("point", Reason::Missing))?;
    Ok((point, read("startPoint", "startX", "startY")?))
}

fn write_route(route: &GenericRoute) -> Value {
    let object = ObjectWriter::new();
    match route {
        GenericRoute::Element {
            token,
            expect_digest,
            strictness,
            occlusion,
            action,
        } => object
            .with("elementToken", token)
            .with("expectElementDigest", expect_digest)
            .with("strictness", strictness)
            .with("occlusionPolicy", occlusion)
            .with("action", action),
        GenericRoute::Key {
            focus_token,
            expect_digest,
            policy,
            action,
        } => object
            .with("focusToken", focus_token)
            .with("expectElementDigest", expect_digest)
            .with("focusPolicy", policy)
            .with("action", action),
        GenericRoute::Point {
            point,
            expect_window_digest,
            occlusion,
            action,
        } => {
            let object = object
                .with("expectWindowDigest", expect_window_digest)
                .with("occlusionPolicy", occlusion)
                .with("action", action);
            match point {
                GenericPoint::Screen { point, start } => object
                    .with("space", &GenericSpace::ScreenPt)
                    .with("point", point)
                    .with("startPoint", start),
                GenericPoint::Image { point, start } => object
                    .with("space", &GenericSpace::ImagePx)
                    .with("point", point)
                    .with("startPoint", start),
            }
        }
    }
    .finish()
}

/// What a generic snapshot is of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GenericTarget {
    /// Named as in `observe`.
    Target(ObserveTarget),
    /// The frontmost ordinary window of this process.
    Pid(u32),
    /// The frontmost ordinary window on the screen, or without a tree a display.
    Unnamed,
}

/// The params of `host.snapshot`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GenericSnapshotParams {
    /// The session; begun implicitly when it was never seen.
    pub session: SessionId,
    /// What to look at.
    pub target: GenericTarget,
    /// Whether the tree is wanted. Without it no snapshot is minted.
    pub include_tree: bool,
    /// Whether a picture is wanted. One of the two must be.
    pub include_image: bool,
    /// A tighter element bound than the limit.
    pub max_elements: Option<NonZeroU32>,
    /// A tighter depth bound than the limit.
    pub max_depth: Option<NonZeroU32>,
    /// A tighter text bound than the limit.
    pub max_text_chars: Option<NonZeroU32>,
    /// Whether and how far to walk the menu.
    pub menu: Option<MenuScope>,
    /// Which display to capture when no window is meant.
    pub display_id: Option<DisplayId>,
}

impl GenericSnapshotParams {
    /// The numeric bounds, as for `observe`.
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

impl Json for GenericSnapshotParams {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let target = match (fields.get("target")?, fields.get("pid")?) {
            (Some(_), Some::<u32>(_)) => return Err(Violation::of("pid", Reason::NotAllowed)),
            (Some(target), None) => GenericTarget::Target(target),
            (None, Some(pid)) => GenericTarget::Pid(pid),
            (None, None) => GenericTarget::Unnamed,
        };
        let include_tree = fields.get_or("includeTree", true)?;
        let include_image = fields.get_or("includeImage", true)?;
        if !include_tree && !include_image {
            return Err(Violation::of("includeImage", Reason::Contradiction));
        }
        Ok(Self {
            session: read_session(fields)?,
            target,
            include_tree,
            include_image,
            max_elements: fields.get("maxElements")?,
            max_depth: fields.get("maxDepth")?,
            max_text_chars: fields.get("maxTextChars")?,
            menu: fields.get("menu")?,
            display_id: fields.get("displayId")?,
        })
    }

    fn write(&self) -> Value {
        let object = ObjectWriter::new().with("sessionId", &self.session);
        match &self.target {
            GenericTarget::Target(target) => object.with("target", target),
            GenericTarget::Pid(pid) => object.with("pid", pid),
            GenericTarget::Unnamed => object,
        }
        .with("includeTree", &self.include_tree)
        .with("includeImage", &self.include_image)
        .with("maxElements", &self.max_elements)
        .with("maxDepth", &self.max_depth)
        .with("maxTextChars", &self.max_text_chars)
        .with("menu", &self.menu)
        .with("displayId", &self.display_id)
        .finish()
    }
}

record! {
    /// A picture of a window without a snapshot.
    pub struct WindowImage {
        /// The picture.
        pub image: ImageRef = "image";
        /// The window.
        pub target: SnapshotTarget = "target";
        /// When, in milliseconds since the Unix epoch.
        pub captured_at: Millis = "capturedAt";
    }
}

/// What a `host.snapshot` answers (§9.2).
#[derive(Clone, Debug, PartialEq)]
pub enum GenericSnapshot {
    /// The same as `observe`.
    Snapshot(Box<Snapshot>),
    /// A picture of a window; no snapshot was minted.
    Window(WindowImage),
    /// The same as `screen.capture`.
    Screen(ScreenCaptured),
}

impl Json for GenericSnapshot {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        if fields.has("snapshot") {
            return fields.get("snapshot").map(Self::Snapshot);
        }
        if fields.has("target") {
            WindowImage::read(value).map(Self::Window)
        } else {
            ScreenCaptured::read(value).map(Self::Screen)
        }
    }

    fn write(&self) -> Value {
        match self {
            Self::Snapshot(snapshot) => ObjectWriter::new().with("snapshot", &**snapshot).finish(),
            Self::Window(window) => window.write(),
            Self::Screen(screen) => screen.write(),
        }
    }
}

/// Reads the result of `host.snapshot` and holds it to what was asked for.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_generic_snapshot(
    result: &Value,
    params: &GenericSnapshotParams,
    image_dir: &FilePath,
) -> Result<Answer<GenericSnapshot>, Violation> {
    let answer = Answer::<GenericSnapshot>::read(result)?;
    let window = match &params.target {
        GenericTarget::Target(ObserveTarget::Window(window)) => Some(*window),
        GenericTarget::Target(ObserveTarget::App(_))
        | GenericTarget::Pid(_)
        | GenericTarget::Unnamed => None,
    };
    let unnamed = params.target == GenericTarget::Unnamed;
    match &answer {
        Answer::Refused(_) => {}
        Answer::Done(GenericSnapshot::Snapshot(snapshot)) if params.include_tree => {
            let expected = ObserveExpectation {
                image_dir,
                image: params.include_image,
                window,
            };
            expected
                .check(snapshot)
                .map_err(|violation| violation.at("snapshot"))?;
        }
        Answer::Done(GenericSnapshot::Window(shown)) if !params.include_tree && !unnamed => {
            shown
                .image
                .check_inside(image_dir)
                .map_err(|violation| violation.at("image"))?;
            if window.is_some_and(|window| window != shown.target.window()) {
                return Err(Violation::of("target.windowId", Reason::Mismatch));
            }
        }
        Answer::Done(GenericSnapshot::Screen(screen)) if !params.include_tree && unnamed => {
            screen
                .image
                .check_inside(image_dir)
                .map_err(|violation| violation.at("image"))?;
        }
        Answer::Done(GenericSnapshot::Snapshot(_)) => {
            return Err(Violation::of("snapshot", Reason::NotAllowed));
        }
        Answer::Done(GenericSnapshot::Window(_) | GenericSnapshot::Screen(_)) => {
            return Err(Violation::of("snapshot", Reason::Missing));
        }
    }
    Ok(answer)
}
