//! The live window list, read from the server and the window manager's properties (EWMH).
//!
//! Every question of one listing is sent before the first answer is read, so a listing costs a few round trips whatever
//! the number of windows. A window that vanishes in between is left out.

use x11rb::cookie::Cookie;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::res::{self, ClientIdMask, ClientIdSpec, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, GetGeometryReply, GetPropertyReply, GetWindowAttributesReply,
    MapState, TranslateCoordinatesReply,
};
use x11rb::rust_connection::RustConnection;

use super::display::{Area, Atoms, Screen};

/// Longest property that is read, in 4-byte units: titles of 16 KiB, 4,096 windows.
const PROPERTY_UNITS: u32 = 4096;
/// Window managers put one or two windows around a client.
const FRAME_LEVELS: usize = 8;

/// One managed window.
#[derive(Clone, Debug)]
pub(super) struct XWindow {
    pub(super) id: u32,
    /// `None` when neither server nor client names a process of this machine.
    pub(super) pid: Option<u32>,
    /// Application text; not for logs. Empty when there is none.
    pub(super) title: Title,
    /// The client area in root pixels, without the window manager's frame.
    pub(super) area: Area,
    /// Mapped, with all its parents, and not hidden by the window manager.
    pub(super) on_screen: bool,
    pub(super) layer: i64,
    /// Shadow or border that the toolkit draws inside the window: left, right, top, bottom.
    pub(super) frame_extents: Option<[u32; 4]>,
}

/// A window title. Its `Debug` hides the text.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Title(pub(super) String);

impl std::fmt::Debug for Title {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("<redacted>")
    }
}

impl Screen {
    /// Every managed window, bottom first.
    pub(super) fn windows(&self) -> Result<Vec<XWindow>, ReplyError> {
        let ids = self.stacking()?;
        let asked: Vec<_> = ids
            .into_iter()
            .map(|id| Questions::ask(self, id))
            .collect::<Result<_, _>>()?;
        asked
            .into_iter()
            .filter_map(|questions| questions.answer(&self.atoms).transpose())
            .collect()
    }

    /// One window, or `None` when it is gone.
    pub(super) fn window(&self, id: u32) -> Result<Option<XWindow>, ReplyError> {
        Questions::ask(self, id)?.answer(&self.atoms)
    }

    /// The window that the window manager calls active.
    pub(super) fn active_window(&self) -> Result<Option<u32>, ReplyError> {
        let property = self
            .connection
            .get_property(
                false,
                self.root,
                self.atoms._NET_ACTIVE_WINDOW,
                AtomEnum::WINDOW,
                0,
                1,
            )?
            .reply()?;
        Ok(property
            .value32()
            .and_then(|mut values| values.next())
            .filter(|window| *window != 0))
    }

    fn stacking(&self) -> Result<Vec<u32>, ReplyError> {
        if let Some(windows) = self.list(self.atoms._NET_CLIENT_LIST_STACKING)? {
            return Ok(windows);
        }
        let tops = self.connection.query_tree(self.root)?.reply()?.children;
        // xfwm4 tells the order from the second window on, and before that only who is there.
        if let Some(windows) = self.list(self.atoms._NET_CLIENT_LIST)? {
            return self.by_order_of(&tops, windows);
        }
        // No window manager: the root's children are what there is, menus and other unmanaged pop-ups aside.
        let asked: Vec<_> = tops
            .into_iter()
            .map(|id| Ok::<_, ConnectionError>((id, self.connection.get_window_attributes(id)?)))
            .collect::<Result<_, _>>()?;
        let mut managed = Vec::new();
        for (id, cookie) in asked {
            if let Some(attributes) = gone_is_none(cookie.reply())?
                && !attributes.override_redirect
                && attributes.map_state == MapState::VIEWABLE
            {
                managed.push(id);
            }
        }
        Ok(managed)
    }

    /// A list of windows that the window manager keeps on the root.
    fn list(&self, atom: u32) -> Result<Option<Vec<u32>>, ReplyError> {
        let property = self
            .connection
            .get_property(false, self.root, atom, AtomEnum::WINDOW, 0, PROPERTY_UNITS)?
            .reply()?;
        Ok(property.value32().map(Iterator::collect))
    }

    /// The windows in the order of the root's children that hold them. One that is gone is left out.
    fn by_order_of(&self, tops: &[u32], windows: Vec<u32>) -> Result<Vec<u32>, ReplyError> {
        let mut placed = Vec::with_capacity(windows.len());
        for window in windows {
            let mut top = window;
            for _ in 0..FRAME_LEVELS {
                let Some(tree) = gone_is_none(self.connection.query_tree(top)?.reply())? else {
                    break;
                };
                if tree.parent == self.root {
                    placed.extend(
                        tops.iter()
                            .position(|it| *it == top)
                            .map(|place| (place, window)),
                    );
                    break;
                }
                top = tree.parent;
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        Ok(placed.into_iter().map(|(_, window)| window).collect())
    }
}

/// The questions about one window, sent and not yet answered.
struct Questions<'c> {
    id: u32,
    attributes: Cookie<'c, RustConnection, GetWindowAttributesReply>,
    geometry: Cookie<'c, RustConnection, GetGeometryReply>,
    origin: Cookie<'c, RustConnection, TranslateCoordinatesReply>,
    owner: Option<Cookie<'c, RustConnection, res::QueryClientIdsReply>>,
    claimed_pid: Cookie<'c, RustConnection, GetPropertyReply>,
    name: Cookie<'c, RustConnection, GetPropertyReply>,
    old_name: Cookie<'c, RustConnection, GetPropertyReply>,
    state: Cookie<'c, RustConnection, GetPropertyReply>,
    kind: Cookie<'c, RustConnection, GetPropertyReply>,
    frame_extents: Cookie<'c, RustConnection, GetPropertyReply>,
}

impl<'c> Questions<'c> {
    fn ask(screen: &'c Screen, id: u32) -> Result<Self, ConnectionError> {
        let (connection, atoms) = (&screen.connection, &screen.atoms);
        let property = |atom: u32, kind: u32| {
            connection.get_property(false, id, atom, kind, 0, PROPERTY_UNITS)
        };
        let spec = [ClientIdSpec {
            client: id,
            mask: ClientIdMask::LOCAL_CLIENT_PID,
        }];
        Ok(Self {
            id,
            attributes: connection.get_window_attributes(id)?,
            geometry: connection.get_geometry(id)?,
            origin: connection.translate_coordinates(id, screen.root, 0, 0)?,
            owner: screen
                .extensions
                .res
                .then(|| connection.res_query_client_ids(&spec))
                .transpose()?,
            claimed_pid: property(atoms._NET_WM_PID, AtomEnum::CARDINAL.into())?,
            name: property(atoms._NET_WM_NAME, atoms.UTF8_STRING)?,
            old_name: property(AtomEnum::WM_NAME.into(), AtomEnum::ANY.into())?,
            state: property(atoms._NET_WM_STATE, AtomEnum::ATOM.into())?,
            kind: property(atoms._NET_WM_WINDOW_TYPE, AtomEnum::ATOM.into())?,
            frame_extents: property(atoms._GTK_FRAME_EXTENTS, AtomEnum::CARDINAL.into())?,
        })
    }

    fn answer(self, atoms: &Atoms) -> Result<Option<XWindow>, ReplyError> {
        let (Some(attributes), Some(geometry), Some(origin)) = (
            gone_is_none(self.attributes.reply())?,
            gone_is_none(self.geometry.reply())?,
            gone_is_none(self.origin.reply())?,
        ) else {
            return Ok(None);
        };
        // The server knows the peer of a local socket; the property is only the client's word, and is asked for when
        // the server sits between (nested or forwarded displays).
        let owner = match self.owner {
            Some(cookie) => gone_is_none(cookie.reply())?
                .and_then(|reply| reply.ids.first().and_then(|id| id.value.first().copied())),
            None => None,
        };
        let claimed = first(self.claimed_pid)?;
        let name = text(self.name)?;
        let old_name = text(self.old_name)?;
        let hidden = values(self.state)?.contains(&atoms._NET_WM_STATE_HIDDEN);
        let frame_extents = values(self.frame_extents)?;
        Ok(Some(XWindow {
            id: self.id,
            pid: owner.or(claimed).filter(|pid| *pid != 0),
            title: Title(name.or(old_name).unwrap_or_default()),
            area: Area {
                x: origin.dst_x.into(),
                y: origin.dst_y.into(),
                width: geometry.width.into(),
                height: geometry.height.into(),
            },
            on_screen: attributes.map_state == MapState::VIEWABLE && !hidden,
            layer: layer(&values(self.kind)?, atoms),
            frame_extents: frame_extents.try_into().ok(),
        }))
    }
}

/// 0 for windows that a person works in; below for the desktop, above for what floats over everything.
fn layer(kinds: &[u32], atoms: &Atoms) -> i64 {
    // The first type that is known counts (EWMH); unknown and absent types are ordinary windows.
    let known = |kind: &u32| match *kind {
        kind if kind == atoms._NET_WM_WINDOW_TYPE_DESKTOP => Some(-1),
        kind if kind == atoms._NET_WM_WINDOW_TYPE_DOCK => Some(1),
        kind if [
            atoms._NET_WM_WINDOW_TYPE_COMBO,
            atoms._NET_WM_WINDOW_TYPE_DND,
            atoms._NET_WM_WINDOW_TYPE_DROPDOWN_MENU,
            atoms._NET_WM_WINDOW_TYPE_NOTIFICATION,
            atoms._NET_WM_WINDOW_TYPE_POPUP_MENU,
            atoms._NET_WM_WINDOW_TYPE_SPLASH,
            atoms._NET_WM_WINDOW_TYPE_TOOLTIP,
        ]
        .contains(&kind) =>
        {
            Some(2)
        }
        _ => None,
    };
    kinds.iter().find_map(known).unwrap_or(0)
}

/// An X error about one window means that it is gone; a broken connection is an error.
fn gone_is_none<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ReplyError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(error @ ReplyError::ConnectionError(_)) => Err(error),
    }
}

fn values(cookie: Cookie<'_, RustConnection, GetPropertyReply>) -> Result<Vec<u32>, ReplyError> {
    let reply = gone_is_none(cookie.reply())?;
    Ok(reply
        .and_then(|reply| reply.value32().map(Iterator::collect))
        .unwrap_or_default())
}

fn first(cookie: Cookie<'_, RustConnection, GetPropertyReply>) -> Result<Option<u32>, ReplyError> {
    Ok(values(cookie)?.first().copied())
}

fn text(
    cookie: Cookie<'_, RustConnection, GetPropertyReply>,
) -> Result<Option<String>, ReplyError> {
    let reply = gone_is_none(cookie.reply())?;
    let bytes = reply.and_then(|reply| reply.value8().map(Iterator::collect::<Vec<u8>>));
    Ok(bytes
        .map(|bytes| decode(&bytes))
        .filter(|text| !text.is_empty()))
}

/// UTF-8 where it is, else Latin-1, which is what the older `STRING` type means. A cut or padded title keeps what is
/// readable.
fn decode(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_decoded() {
        assert_eq!(decode("Größe 漢".as_bytes()), "Größe 漢");
        assert_eq!(decode(b"Gr\xf6\xdfe"), "Größe");
        assert_eq!(decode(b"name\0rest"), "name");
        assert_eq!(decode(b""), "");
    }
}
