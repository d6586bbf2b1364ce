//! The default world: one application, one window with a few controls, and the snapshots taken of it.
//!
//! Small but truthful: digests are computed as the protocol says, images are real PNG files whose pixels follow the state, and
//! snapshots are spent and superseded as they should be. What it does not do: other windows, menus, time-outs, digests checked at
//! dispatch. A fake that refused on its own would hide what a test wants to see arrive.

use std::collections::HashMap;
use std::fs;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use maka_cu_protocol::digest::{ElementDigestInput, element_digest, value_digest, window_digest};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::element::Element;
use maka_cu_protocol::geometry::{ScreenRect, WindowRect};
use maka_cu_protocol::ids::{
    AppId, Digest, DisplayId, ElementToken, Millis, SessionId, SnapshotId,
};
use maka_cu_protocol::image::{AbsolutePath, ImageRef};
use maka_cu_protocol::roles::{self, Role};
use maka_cu_protocol::sets::{ElementVerb, ImageFormat};
use maka_cu_protocol::snapshot::{Snapshot, SnapshotTarget, Truncation};
use maka_cu_protocol::text::AppText;

use crate::script::WorldScript;

/// Identity of the one application.
pub(crate) const APP_ID: &str = "org.example.Notes";
/// Its display name.
pub(crate) const APP_NAME: &str = "Notes";
/// Its process.
pub(crate) const PID: u32 = 5021;
/// Its window.
pub(crate) const WINDOW_ID: u32 = 318;
/// The one display.
pub(crate) const DISPLAY: &str = "1";
const WIDTH: u32 = 320;
const HEIGHT: u32 = 200;

/// Where the parts of the window stand in its tree.
const FIELD: usize = 1;
const SAVE: usize = 3;

/// The state of the desktop and of every session.
#[derive(Debug)]
pub(crate) struct World {
    title: String,
    value: String,
    status: String,
    extra_elements: u32,
    image_dir: PathBuf,
    nonce: String,
    counter: u64,
    sessions: HashMap<SessionId, Session>,
    /// The end has begun; what is asked from now on is told so.
    ending: bool,
}

#[derive(Debug, Default)]
struct Session {
    snapshots: HashMap<SnapshotId, Frame>,
    captures: Vec<PathBuf>,
}

#[derive(Debug)]
struct Frame {
    state: FrameState,
    tokens: HashMap<ElementToken, usize>,
    image: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameState {
    Live,
    Spent,
    Superseded,
}

/// What a session let go of: live snapshots, images.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Released {
    pub(crate) snapshots: u32,
    pub(crate) images: u32,
}

impl World {
    pub(crate) fn new(script: &WorldScript) -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            title: script.title.clone(),
            value: script.value.clone(),
            status: "Ready".to_owned(),
            extra_elements: script.extra_elements,
            image_dir: PathBuf::new(),
            nonce: format!(
                "{:016x}{:016x}",
                since.as_nanos() as u64,
                u64::from(std::process::id())
            ),
            counter: 0,
            sessions: HashMap::new(),
            ending: false,
        }
    }

    pub(crate) fn set_image_dir(&mut self, path: PathBuf) {
        self.image_dir = path;
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Begins a session; false when it lives already.
    pub(crate) fn begin(&mut self, session: SessionId) -> bool {
        if self.sessions.contains_key(&session) {
            return false;
        }
        self.sessions.insert(session, Session::default());
        true
    }

    pub(crate) fn is_live(&self, session: &SessionId) -> bool {
        self.sessions.contains_key(session)
    }

    pub(crate) fn end(&mut self, session: &SessionId) -> Released {
        let Some(session) = self.sessions.remove(session) else {
            return Released::default();
        };
        let mut released = Released::default();
        for frame in session.snapshots.into_values() {
            released.snapshots += u32::from(frame.state == FrameState::Live);
            released.images += u32::from(remove(frame.image));
        }
        for capture in session.captures {
            released.images += u32::from(remove(Some(capture)));
        }
        released
    }

    /// Whether [`World::forget_everything`] was called.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Deletes every file, as an orderly end does.
    pub(crate) fn forget_everything(&mut self) {
        self.ending = true;
        let sessions: Vec<_> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.end(&session);
        }
    }

    /// Takes a snapshot for a live session.
    pub(crate) fn observe(&mut self, session: &SessionId, with_image: bool) -> Snapshot {
        self.counter += 1;
        let id = SnapshotId::try_new(format!("snap_{}_{}", self.nonce, self.counter))
            .expect("the id has content");
        let image = with_image.then(|| self.picture());
        let elements = self.elements();
        let bounds = bounds();
        let snapshot = Snapshot {
            snapshot_id: id.clone(),
            captured_at: now(),
            target: SnapshotTarget {
                pid: PID,
                window_id: WINDOW_ID,
                app_id: app_id(),
                app_name: Some(AppText::new(APP_NAME)),
                title: Some(AppText::new(self.title.clone())),
                bounds,
                layer: 0,
                z_index: 7,
                display_id: Some(display_id()),
            },
            window_digest: window_digest(
                elements.iter().map(|it| it.digest),
                bounds,
                Some(&self.title),
            ),
            focused_element_token: Some(elements[FIELD].token.clone()),
            selected_text: None,
            image: image.clone(),
            image_absence: None,
            displays: Vec::new(),
            obscuring_rects: Vec::new(),
            truncated: Truncation::default(),
            difference: None,
            menu: None,
            elements,
        };
        let tokens = snapshot
            .elements
            .iter()
            .enumerate()
            .map(|(index, it)| (it.token.clone(), index))
            .collect();
        if let Some(session) = self.sessions.get_mut(session) {
            for frame in session
                .snapshots
                .values_mut()
                .filter(|frame| frame.state == FrameState::Live)
            {
                frame.state = FrameState::Superseded;
                remove(frame.image.take());
            }
            let image = image.map(|image| image.path.as_path().to_owned());
            session.snapshots.insert(
                id,
                Frame {
                    state: FrameState::Live,
                    tokens,
                    image,
                },
            );
        }
        snapshot
    }

    /// Takes a picture that belongs to the session alone.
    pub(crate) fn capture(&mut self, session: &SessionId) -> ImageRef {
        self.counter += 1;
        let image = self.picture();
        if let Some(session) = self.sessions.get_mut(session) {
            session.captures.push(image.path.as_path().to_owned());
        }
        image
    }

    /// Whether a dispatch may quote this snapshot.
    pub(crate) fn check(
        &self,
        session: &SessionId,
        snapshot: &SnapshotId,
    ) -> Result<(), DomainCode> {
        match self.frame(session, snapshot).map(|frame| frame.state) {
            Some(FrameState::Live) => Ok(()),
            Some(FrameState::Spent) => Err(DomainCode::SnapshotSpent),
            Some(FrameState::Superseded) => Err(DomainCode::SnapshotSuperseded),
            None => Err(DomainCode::SnapshotUnknown),
        }
    }

    /// Whether the token is of this snapshot.
    pub(crate) fn check_token(
        &self,
        session: &SessionId,
        snapshot: &SnapshotId,
        token: &ElementToken,
    ) -> Result<(), DomainCode> {
        let known = self
            .frame(session, snapshot)
            .is_some_and(|frame| frame.tokens.contains_key(token));
        if known {
            Ok(())
        } else {
            Err(DomainCode::ElementUnknown)
        }
    }

    /// Writes the text field. Says whether that changed anything.
    pub(crate) fn write(&mut self, text: &str) -> bool {
        let changed = self.value != text;
        text.clone_into(&mut self.value);
        changed
    }

    /// Presses a control. Says whether that changed anything.
    pub(crate) fn press(
        &mut self,
        session: &SessionId,
        snapshot: &SnapshotId,
        token: &ElementToken,
    ) -> bool {
        let pressed = self
            .frame(session, snapshot)
            .and_then(|frame| frame.tokens.get(token))
            .copied();
        pressed == Some(SAVE) && self.save()
    }

    /// What the button does.
    pub(crate) fn save(&mut self) -> bool {
        let status = format!("Saved {}", self.value);
        let changed = status != self.status;
        self.status = status;
        changed
    }

    /// Uses a snapshot up.
    pub(crate) fn spend(&mut self, session: &SessionId, snapshot: &SnapshotId) {
        let frame = self
            .sessions
            .get_mut(session)
            .and_then(|session| session.snapshots.get_mut(snapshot));
        if let Some(frame) = frame {
            frame.state = FrameState::Spent;
            remove(frame.image.take());
        }
    }

    fn frame(&self, session: &SessionId, snapshot: &SnapshotId) -> Option<&Frame> {
        self.sessions.get(session)?.snapshots.get(snapshot)
    }

    fn elements(&self) -> Vec<Element> {
        let mut tree = Tree {
            nonce: &self.nonce,
            counter: self.counter,
            elements: Vec::new(),
        };
        tree.root(&self.title);
        tree.child(
            roles::TEXT_FIELD,
            "Name",
            Some(&self.value),
            &[ElementVerb::Confirm],
        );
        tree.secret("Password", "••••");
        tree.child(roles::BUTTON, "Save", None, &[ElementVerb::Press]);
        tree.child(roles::STATIC_TEXT, "Status", Some(&self.status), &[]);
        for number in 0..self.extra_elements {
            tree.child(
                roles::STATIC_TEXT,
                &format!("Row {number}"),
                Some("text"),
                &[],
            );
        }
        tree.elements[FIELD].focused = true;
        tree.elements
    }

    /// Writes a picture whose pixels follow the state.
    fn picture(&self) -> ImageRef {
        let path = self
            .image_dir
            .join(format!("image_{}_{}.png", self.nonce, self.counter));
        let shade =
            Digest::of(format!("{}\n{}\n{}", self.title, self.value, self.status).as_bytes());
        let [red, green, blue, ..] = *shade.as_bytes();
        let rows = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        let pixels: Vec<u8> = rows
            .flat_map(|(x, y)| [red.wrapping_add(x as u8), green.wrapping_add(y as u8), blue])
            .collect();
        let file = fs::File::create(&path).expect("the image folder can be written");
        let mut encoder = png::Encoder::new(BufWriter::new(file), WIDTH, HEIGHT);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().expect("a PNG header can be written");
        writer
            .write_image_data(&pixels)
            .expect("PNG data can be written");
        writer.finish().expect("a PNG file can be completed");
        let bytes = fs::read(&path).expect("the picture was just written");
        ImageRef {
            path: AbsolutePath::of_path(&path).expect("the image folder is absolute"),
            format: ImageFormat::Png,
            width_px: WIDTH,
            height_px: HEIGHT,
            byte_length: bytes.len() as u64,
            sha256: Digest::of(&bytes),
            scale: 1.0,
        }
    }
}

/// A tree under construction: a root and its children.
struct Tree<'a> {
    nonce: &'a str,
    counter: u64,
    elements: Vec<Element>,
}

impl Tree<'_> {
    fn root(&mut self, title: &str) {
        let frame = WindowRect::try_new(0.0, 0.0, f64::from(WIDTH), f64::from(HEIGHT))
            .expect("finite numbers");
        self.push(
            roles::WINDOW,
            None,
            title,
            None,
            &[ElementVerb::Raise],
            frame,
        );
    }

    fn child(
        &mut self,
        role: &'static str,
        title: &str,
        value: Option<&str>,
        actions: &[ElementVerb],
    ) {
        self.push(role, None, title, value, actions, self.next_frame());
    }

    fn secret(&mut self, title: &str, value: &str) {
        let subrole = Some(roles::SECURE_TEXT_FIELD);
        self.push(
            roles::TEXT_FIELD,
            subrole,
            title,
            Some(value),
            &[],
            self.next_frame(),
        );
    }

    fn next_frame(&self) -> WindowRect {
        let line = self.elements.len() as f64;
        WindowRect::try_new(10.0, 10.0 + 30.0 * line, 200.0, 24.0).expect("finite numbers")
    }

    fn push(
        &mut self,
        role: &'static str,
        subrole: Option<&'static str>,
        title: &str,
        value: Option<&str>,
        actions: &[ElementVerb],
        frame: WindowRect,
    ) {
        let index = self.elements.len();
        let is_root = index == 0;
        let token = format!("el_{}_{}_{index}", self.nonce, self.counter);
        let input = ElementDigestInput {
            role: role.to_owned(),
            subrole: subrole.map(str::to_owned),
            ax_identifier: None,
            title: Some(AppText::new(title)),
            label: None,
            value_digest: value.map(value_digest),
            frame: Some(frame),
            actions: actions.to_vec(),
            ancestor_roles: if is_root {
                Vec::new()
            } else {
                vec![roles::WINDOW.to_owned()]
            },
            sibling_index: u32::try_from(index.saturating_sub(1)).expect("a small tree"),
        };
        self.elements.push(Element {
            token: ElementToken::try_new(token).expect("the token has content"),
            stable_id: Some(index as u64),
            parent_token: self.elements.first().map(|root| root.token.clone()),
            depth: u32::from(!is_root),
            role: Role::known(role),
            subrole: subrole.map(str::to_owned),
            ax_identifier: None,
            title: Some(AppText::new(title)),
            label: None,
            value: value.map(AppText::new),
            placeholder: None,
            enabled: true,
            focused: false,
            selected: None,
            frame: Some(frame),
            actions: actions.to_vec(),
            digest: element_digest(&input),
            truncated: Vec::new(),
        });
    }
}

/// Where the window is.
pub(crate) fn bounds() -> ScreenRect {
    ScreenRect::try_new(40.0, 60.0, f64::from(WIDTH), f64::from(HEIGHT)).expect("finite numbers")
}

pub(crate) fn app_id() -> AppId {
    AppId::try_new(APP_ID).expect("the id has content")
}

pub(crate) fn display_id() -> DisplayId {
    DisplayId::try_new(DISPLAY).expect("the id has content")
}

pub(crate) fn now() -> Millis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Millis(since.as_millis() as u64)
}

fn remove(path: Option<PathBuf>) -> bool {
    path.is_some_and(|path| fs::remove_file(path).is_ok())
}
