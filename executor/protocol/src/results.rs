//! The `result` of every method (§3), and the host's strict reading of it (§7).
//!
//! A result is one of two arms on the boolean `ok`. [`Answer`] is that union for all methods but the dispatches, whose
//! arms both carry declared fields: see [`dispatch`]. `host.hello` answers [`crate::handshake::Handshake`].

pub mod dispatch;
pub mod lists;

use std::{fmt, path::Path};

use serde_json::{Map, Value};

use crate::{
    handshake::Handshake,
    ids::{AppId, DisplayId, Millis, StreamId, WindowKey},
    image::ImageRef,
    json::{Fields, Json, ObjectWriter, Reason, Violation, record},
    refusal::Refusal,
    sets::{ScreenRecordingProbe, WaitedReason},
    snapshot::Snapshot,
    text::AppText,
};

/// The two arms of every result that is not a dispatch's.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// `ok:true` with the method's fields.
    Done(T),
    /// `ok:false`.
    Refused(Refusal),
}

impl<T> Answer<T> {
    /// The success, or the refusal as an error.
    ///
    /// # Errors
    /// The [`Refusal`].
    pub fn into_result(self) -> Result<T, Refusal> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl<T> From<Refusal> for Answer<T> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<T: Json> Json for Answer<T> {
    fn read(value: &Value) -> Result<Self, Violation> {
        match read_refusal(value)? {
            Some(refusal) => Ok(Self::Refused(refusal)),
            None => T::read(value).map(Self::Done),
        }
    }

    fn write(&self) -> Value {
        match self {
            Self::Done(done) => ObjectWriter::new().with("ok", &true).merge(done.write()),
            Self::Refused(refusal) => ObjectWriter::new()
                .with("ok", &false)
                .with("error", refusal),
        }
        .finish()
    }
}

/// The refusal of an `ok:false` result; `None` on the other arm.
pub(crate) fn read_refusal(value: &Value) -> Result<Option<Refusal>, Violation> {
    let fields = Fields::of(value)?;
    if fields.get("ok")? {
        Ok(None)
    } else {
        fields.get("error").map(Some)
    }
}

/// A result whose arms are known and whose method fields are not read yet.
#[derive(Clone, PartialEq)]
pub enum Envelope {
    /// `ok:true`, with every key of the result.
    Ok(Map<String, Value>),
    /// `ok:false`, with the refusal and every key of the result (a dispatch has declared fields there).
    Refused(Refusal, Map<String, Value>),
}

impl Envelope {
    /// Reads the arms of a raw result.
    ///
    /// # Errors
    /// A [`Violation`] when it is not an object, `ok` is no boolean, or the refusal is malformed or of an unknown code.
    pub fn read(result: Value) -> Result<Self, Violation> {
        let refusal = read_refusal(&result)?;
        let Value::Object(fields) = result else {
            return Err(Violation::here(Reason::NotObject));
        };
        Ok(match refusal {
            None => Self::Ok(fields),
            Some(refusal) => Self::Refused(refusal, fields),
        })
    }

    /// The raw result again, for the method's own reader.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Ok(fields) | Self::Refused(_, fields) => Value::Object(fields),
        }
    }
}

impl fmt::Debug for Envelope {
    /// Leaves the fields out: they hold application text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok(_) => formatter.write_str("Ok(..)"),
            Self::Refused(refusal, _) => formatter
                .debug_tuple("Refused")
                .field(refusal)
                .finish_non_exhaustive(),
        }
    }
}

/// A success without fields: `session.begin`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Done;

impl Json for Done {
    fn read(value: &Value) -> Result<Self, Violation> {
        Fields::of(value).map(|_| Self)
    }

    fn write(&self) -> Value {
        ObjectWriter::new().finish()
    }
}

record! {
    /// What a session let go of.
    #[derive(Copy, Default, Eq)]
    pub struct Released {
        /// Live snapshots.
        pub snapshots: u32 = "snapshots";
        /// Image files.
        pub images: u32 = "images";
        /// Streams.
        pub streams: u32 = "streams";
    }
}

record! {
    /// `session.end` (§3.1). Ending an unknown session is a success with zeros.
    #[derive(Copy, Default, Eq)]
    pub struct SessionEnded {
        /// What was let go of.
        pub released: Released = "released";
    }
}

record! {
    /// A window of a launched application.
    #[derive(Eq)]
    pub struct LaunchedWindow {
        /// Window id.
        pub window_id: u32 = "windowId";
        /// Title.
        pub title: Option<AppText> = "title";
    }
}

record! {
    /// How long a launch waited and why it stopped waiting.
    #[derive(Copy, Eq)]
    pub struct Waited {
        /// Measured time.
        pub ms: Millis = "ms";
        /// Why it ended.
        pub reason: WaitedReason = "reason";
    }
}

record! {
    /// `apps.launch` (§3.4).
    #[derive(Eq)]
    pub struct Launched {
        /// Process id.
        pub pid: u32 = "pid";
        /// Application identity.
        pub app_id: AppId = "appId";
        /// Display name.
        pub name: Option<AppText> = "name";
        /// Whether the foreground changed, from two live reads; never derived from the request.
        pub foreground_taken: bool = "foregroundTaken";
        /// Its windows so far.
        pub windows: Vec<LaunchedWindow> = "windows";
        /// The wait.
        pub waited: Waited = "waited";
    }
}

record! {
    /// `observe` (§3.5).
    pub struct Observed {
        /// The snapshot.
        pub snapshot: Box<Snapshot> = "snapshot";
    }
}

record! {
    /// `screen.capture` (§3.10).
    pub struct ScreenCaptured {
        /// The picture.
        pub image: ImageRef = "image";
        /// The display that was captured.
        pub display_id: DisplayId = "displayId";
        /// When, in milliseconds since the Unix epoch.
        pub captured_at: Millis = "capturedAt";
    }
}

/// `permissions.check` (§3.11).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Permissions {
    /// Whether the accessibility interface may be used.
    pub accessibility: bool,
    /// Whether the screen may be recorded.
    pub screen_recording: bool,
    /// How the latter is known; published executors send it, the host asks for nothing.
    pub screen_recording_probe: Option<ScreenRecordingProbe>,
}

impl Json for Permissions {
    /// A permission is granted when its field is exactly `true`, and in no other case.
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let granted = |name| fields.lenient::<bool>(name) == Some(true);
        Ok(Self {
            accessibility: granted("accessibility"),
            screen_recording: granted("screenRecording"),
            screen_recording_probe: fields.get("screenRecordingProbe")?,
        })
    }

    fn write(&self) -> Value {
        ObjectWriter::new()
            .with("accessibility", &self.accessibility)
            .with("screenRecording", &self.screen_recording)
            .with("screenRecordingProbe", &self.screen_recording_probe)
            .finish()
    }
}

record! {
    /// `capture.start` (§3.12): reserved shape.
    #[derive(Eq)]
    pub struct CaptureStarted {
        /// The stream.
        pub stream_id: StreamId = "streamId";
        /// Frames kept.
        pub ring_frames: u32 = "ringFrames";
        /// Lifetime of a frame.
        pub ttl_ms: Millis = "ttlMs";
    }
}

record! {
    /// One frame of a stream: reserved shape.
    pub struct CapturedFrame {
        /// Its number.
        pub seq: u64 = "seq";
        /// When, in milliseconds since the Unix epoch.
        pub captured_at: Millis = "capturedAt";
        /// The picture.
        pub image: ImageRef = "image";
    }
}

record! {
    /// `capture.next` (§3.12): reserved shape.
    pub struct CapturedFrames {
        /// Number of the last frame.
        pub seq: u64 = "seq";
        /// Frames that were lost.
        pub dropped: u64 = "dropped";
        /// The frames.
        pub frames: Vec<CapturedFrame> = "frames";
        /// Whether the wait ended without a frame.
        pub timed_out: Option<bool> = "timedOut";
    }
}

record! {
    /// What a stream let go of: reserved shape.
    #[derive(Copy, Eq)]
    pub struct ReleasedFrames {
        /// Frames.
        pub frames: u64 = "frames";
    }
}

record! {
    /// `capture.stop` (§3.12): reserved shape.
    #[derive(Copy, Eq)]
    pub struct CaptureStopped {
        /// What was let go of.
        pub released: ReleasedFrames = "released";
    }
}

/// What the host asked for with an `observe`, to hold the answer to.
#[derive(Clone, Copy, Debug)]
pub struct ObserveExpectation<'a> {
    /// Where images must lie.
    pub image_dir: &'a Path,
    /// Whether a picture was asked for: then it, or the reason for its absence, is mandatory.
    pub image: bool,
    /// The exact window asked for, if one was: no other stands in for it.
    pub window: Option<WindowKey>,
}

impl ObserveExpectation<'_> {
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), Violation> {
        snapshot.check_image_dir(self.image_dir)?;
        if self.image && snapshot.image.is_none() && snapshot.image_absence.is_none() {
            return Err(Violation::of("image", Reason::Missing));
        }
        match self.window {
            Some(window) if window.pid != snapshot.target.pid => {
                Err(Violation::of("target.pid", Reason::Mismatch))
            }
            Some(window) if window != snapshot.target.window() => {
                Err(Violation::of("target.windowId", Reason::Mismatch))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Reads the result of `observe`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_observe(
    result: &Value,
    expected: &ObserveExpectation<'_>,
) -> Result<Answer<Snapshot>, Violation> {
    Ok(match Answer::<Observed>::read(result)? {
        Answer::Refused(refusal) => Answer::Refused(refusal),
        Answer::Done(observed) => {
            expected
                .check(&observed.snapshot)
                .map_err(|violation| violation.at("snapshot"))?;
            Answer::Done(*observed.snapshot)
        }
    })
}

/// Reads the result of `screen.capture`; with `display_id`, the display that was asked for.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_screen_capture(
    result: &Value,
    image_dir: &Path,
    display_id: Option<&DisplayId>,
) -> Result<Answer<ScreenCaptured>, Violation> {
    let answer = Answer::<ScreenCaptured>::read(result)?;
    if let Answer::Done(captured) = &answer {
        captured
            .image
            .check_inside(image_dir)
            .map_err(|violation| violation.at("image"))?;
        if display_id.is_some_and(|asked| *asked != captured.display_id) {
            return Err(Violation::of("displayId", Reason::Mismatch));
        }
    }
    Ok(answer)
}

/// Reads the result of `host.hello`. That the versions are equal is for the caller to check: it is a mismatch, not a
/// violation.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_hello(result: &Value) -> Result<Answer<Handshake>, Violation> {
    Answer::read(result)
}

/// Reads the result of `session.begin`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_session_begin(result: &Value) -> Result<Answer<Done>, Violation> {
    Answer::read(result)
}

/// Reads the result of `session.end`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_session_end(result: &Value) -> Result<Answer<SessionEnded>, Violation> {
    Answer::read(result)
}

/// Reads the result of `apps.launch`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_launch(result: &Value) -> Result<Answer<Launched>, Violation> {
    Answer::read(result)
}

/// Reads the result of `permissions.check`.
///
/// # Errors
/// A [`Violation`]: the child broke the protocol.
pub fn read_permissions(result: &Value) -> Result<Answer<Permissions>, Violation> {
    Answer::read(result)
}
