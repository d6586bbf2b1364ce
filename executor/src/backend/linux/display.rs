//! The X connection: one thread owns it, everyone else asks that thread with a deadline.
//!
//! The X protocol has no time-out: whoever waits for a reply of a stopped server waits for ever. Confined to one thread
//! that costs that thread; callers give up at their deadline. Order on the connection also makes redirection, damage and
//! capture of one window free of races.
//!
//! A connection that ended is not made again: the windows, their ids and the programs behind them went with the server. The
//! thread ends, [`Display::lost`] fires, and the service ends with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use maka_cu_protocol::geometry::{ImageRect, ScreenRect};
use maka_cu_protocol::ids::DisplayId;
use maka_cu_protocol::snapshot::DisplayInfo;
use tokio_util::sync::CancellationToken;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::{ConnectError, ConnectionError, ReplyError};
use x11rb::protocol::composite::{self, ConnectionExt as _};
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::randr::{self, ConnectionExt as _};
use x11rb::protocol::res::{self, ConnectionExt as _};
use x11rb::protocol::sync::Counter;
use x11rb::protocol::xinput::{self, ConnectionExt as _};
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::protocol::xtest::{self, ConnectionExt as _};
use x11rb::rust_connection::RustConnection;

use super::activity;
use super::capture::Redirection;
use crate::backend::error::BackendError;
use crate::deadline::Deadline;

/// The extension by which a server says that it runs inside a Wayland compositor, and the start of its monitors' names.
const XWAYLAND: &str = "XWAYLAND";
/// Questions that wait for the thread at most; the server handles few calls at a time. A full queue makes the caller
/// wait, until its deadline.
const QUEUE: usize = 16;
/// How often an idle thread looks whether the server is still there.
const IDLE_CHECK: Duration = Duration::from_secs(1);
/// How often a waiting caller looks whether its request was cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(20);

x11rb::atom_manager! {
    /// The atoms that are read or sent.
    pub(super) Atoms: AtomsCookie {
        UTF8_STRING,
        WM_CHANGE_STATE,
        _GTK_FRAME_EXTENTS,
        _NET_ACTIVE_WINDOW,
        _NET_CLIENT_LIST,
        _NET_CLIENT_LIST_STACKING,
        _NET_FRAME_EXTENTS,
        _NET_MOVERESIZE_WINDOW,
        _NET_SUPPORTED,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_ACTION_MINIMIZE,
        _NET_WM_ACTION_MOVE,
        _NET_WM_ACTION_RESIZE,
        _NET_WM_ALLOWED_ACTIONS,
        _NET_WM_NAME,
        _NET_WM_PID,
        _NET_WM_STATE,
        _NET_WM_STATE_HIDDEN,
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_COMBO,
        _NET_WM_WINDOW_TYPE_DESKTOP,
        _NET_WM_WINDOW_TYPE_DND,
        _NET_WM_WINDOW_TYPE_DOCK,
        _NET_WM_WINDOW_TYPE_DROPDOWN_MENU,
        _NET_WM_WINDOW_TYPE_NOTIFICATION,
        _NET_WM_WINDOW_TYPE_POPUP_MENU,
        _NET_WM_WINDOW_TYPE_SPLASH,
        _NET_WM_WINDOW_TYPE_TOOLTIP,
    }
}

/// Which optional parts of the server are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extensions {
    pub(super) composite: bool,
    pub(super) damage: bool,
    pub(super) randr: bool,
    pub(super) res: bool,
    pub(super) xinput: bool,
    /// Of 2.2 or later, which is when what is asked for a second pointer got its present form.
    pub(super) xinput_2_2: bool,
    pub(super) xtest: bool,
    /// The server is a window of a Wayland compositor, which gives input to no window on our word.
    pub(super) xwayland: bool,
}

/// The connection and what belongs to it. Lives on its own thread.
pub(super) struct Screen {
    pub(super) connection: RustConnection,
    pub(super) root: u32,
    pub(super) atoms: Atoms,
    pub(super) extensions: Extensions,
    /// The counter that is the server's clock; `None` without SYNC.
    pub(super) clock: Option<Counter>,
    /// Windows whose pixels are kept off screen because of us, see [`super::capture`].
    pub(super) redirected: HashMap<u32, Redirection>,
}

impl Screen {
    /// Connects to `DISPLAY` with the cookie of `XAUTHORITY`.
    pub(super) fn connect() -> Result<Self, ConnectError> {
        let (connection, screen) = x11rb::connect(None)?;
        let root = connection.setup().roots[screen].root;
        let atoms = Atoms::new(&connection).map_err(|_| ConnectError::UnknownError)?;
        let atoms = atoms.reply().map_err(|_| ConnectError::UnknownError)?;
        let extensions = extensions(&connection);
        let clock = activity::clock(&connection);
        let mut screen = Self {
            connection,
            root,
            atoms,
            extensions,
            clock,
            redirected: HashMap::new(),
        };
        // Older servers of that kind are known by the names of their monitors only.
        let monitors = screen.monitors().unwrap_or_default();
        let named = |monitor: &Monitor| monitor.name.starts_with(XWAYLAND);
        screen.extensions.xwayland |= monitors.iter().any(named);
        Ok(screen)
    }

    /// Drops what the server sent without being asked: nothing here waits for an event between two questions, and what is not
    /// taken is kept for ever.
    pub(super) fn drop_events(&self) -> Result<(), ConnectionError> {
        while self.connection.poll_for_event()?.is_some() {}
        Ok(())
    }

    /// The monitors, main one first, in pixels of the root window. Never empty.
    pub(super) fn monitors(&self) -> Result<Vec<Monitor>, ReplyError> {
        let mut monitors = Vec::new();
        if self.extensions.randr {
            for monitor in self
                .connection
                .randr_get_monitors(self.root, true)?
                .reply()?
                .monitors
            {
                let name = self.connection.get_atom_name(monitor.name)?.reply()?.name;
                monitors.push(Monitor {
                    name: String::from_utf8_lossy(&name).into_owned(),
                    primary: monitor.primary,
                    area: Area {
                        x: monitor.x.into(),
                        y: monitor.y.into(),
                        width: monitor.width.into(),
                        height: monitor.height.into(),
                    },
                });
            }
        }
        if monitors.is_empty() {
            let root = self.connection.get_geometry(self.root)?.reply()?;
            monitors.push(Monitor {
                name: "root".to_owned(),
                primary: true,
                area: Area {
                    x: 0,
                    y: 0,
                    width: root.width.into(),
                    height: root.height.into(),
                },
            });
        }
        // Xvfb names no primary monitor: the sort is stable, so the server's first one then stays first.
        monitors.sort_by_key(|monitor| !monitor.primary);
        Ok(monitors)
    }
}

/// A rectangle in pixels of the root window, which on X are also its logical points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Area {
    /// In screen points, whose origin is the top left of the main monitor.
    pub(super) fn to_screen(self, main: Self) -> ScreenRect {
        let x = f64::from(self.x) - f64::from(main.x);
        let y = f64::from(self.y) - f64::from(main.y);
        ScreenRect::try_new(x, y, self.width.into(), self.height.into())
            .expect("whole numbers are finite")
    }

    /// How many pixels two areas share.
    pub(super) fn overlap(self, other: Self) -> u64 {
        let side = |a: i32, a_len: u32, b: i32, b_len: u32| {
            let end = (i64::from(a) + i64::from(a_len)).min(i64::from(b) + i64::from(b_len));
            u64::try_from(end - i64::from(a.max(b))).unwrap_or(0)
        };
        side(self.x, self.width, other.x, other.width)
            * side(self.y, self.height, other.y, other.height)
    }
}

/// One monitor.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    name: String,
    primary: bool,
    pub(super) area: Area,
}

impl Monitor {
    /// Its RandR name, which stays the same for as long as it is attached.
    pub(super) fn id(&self) -> DisplayId {
        DisplayId::try_new(self.name.clone())
            .or_else(|_| DisplayId::try_new("unnamed"))
            .expect("the literal is not empty")
    }

    /// As the protocol tells it. X has one scale: a pixel is a point.
    pub(super) fn info(&self, main: Area) -> DisplayInfo {
        let Area {
            x,
            y,
            width,
            height,
        } = self.area;
        DisplayInfo {
            display_id: self.id(),
            logical_bounds: self.area.to_screen(main),
            source_bounds_px: ImageRect::try_new(x.into(), y.into(), width.into(), height.into())
                .expect("whole numbers are finite"),
            scale_factor: 1.0,
        }
    }
}

fn extensions(connection: &RustConnection) -> Extensions {
    let xinput = xinput_version(connection);
    // Each extension must also be told the version before it is used; one that answers no version is not there.
    Extensions {
        composite: has(connection, composite::X11_EXTENSION_NAME)
            && connection
                .composite_query_version(0, 4)
                .is_ok_and(|cookie| cookie.reply().is_ok()),
        damage: has(connection, damage::X11_EXTENSION_NAME)
            && connection
                .damage_query_version(1, 1)
                .is_ok_and(|cookie| cookie.reply().is_ok()),
        randr: has(connection, randr::X11_EXTENSION_NAME)
            && connection.randr_query_version(1, 5).is_ok_and(|cookie| {
                cookie
                    .reply()
                    .is_ok_and(|it| (it.major_version, it.minor_version) >= (1, 5))
            }),
        res: has(connection, res::X11_EXTENSION_NAME)
            && connection.res_query_version(1, 2).is_ok_and(|cookie| {
                cookie
                    .reply()
                    .is_ok_and(|it| (it.server_major, it.server_minor) >= (1, 2))
            }),
        xinput: xinput >= Some((2, 0)),
        xinput_2_2: xinput >= Some((2, 2)),
        xtest: has(connection, xtest::X11_EXTENSION_NAME)
            && connection
                .xtest_get_version(2, 2)
                .is_ok_and(|cookie| cookie.reply().is_ok()),
        // Named by the server since its release 23.1.
        xwayland: has(connection, XWAYLAND),
    }
}

fn xinput_version(connection: &RustConnection) -> Option<(u16, u16)> {
    if !has(connection, xinput::X11_EXTENSION_NAME) {
        return None;
    }
    let version = connection.xinput_xi_query_version(2, 2).ok()?;
    let version = version.reply().ok()?;
    Some((version.major_version, version.minor_version))
}

/// Whether the server has the extension.
pub(super) fn has(connection: &RustConnection, name: &'static str) -> bool {
    connection
        .extension_information(name)
        .is_ok_and(|found| found.is_some())
}

type Job = Box<dyn FnOnce(&mut Screen) + Send>;

/// The way to the thread that owns the connection. The thread ends when this is dropped.
pub(super) struct Display {
    jobs: SyncSender<Job>,
    lost: CancellationToken,
}

impl fmt::Debug for Display {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Display")
    }
}

impl Display {
    /// Hands the connection to a thread of its own.
    pub(super) fn start(screen: Screen) -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE);
        let lost = CancellationToken::new();
        // Fires however the thread ends, also by a panic.
        let end_of_thread = lost.clone().drop_guard();
        thread::Builder::new()
            .name("x11".to_owned())
            .spawn(move || {
                let _end_of_thread = end_of_thread;
                serve(screen, &queue);
            })?;
        Ok(Self { jobs, lost })
    }

    /// Fires when the connection has ended.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Runs `question` on the connection's thread.
    ///
    /// # Errors
    /// [`BackendError::Timeout`] at the deadline (the question may still run, its answer is dropped),
    /// [`BackendError::CaptureFailed`] when the connection is lost or the answer says so.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        deadline: &Deadline,
        question: impl FnOnce(&mut Screen) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        // Room for the one answer, so that the thread never waits for a caller that gave up.
        let (sender, receiver) = sync_channel(1);
        let mut job: Job = Box::new(move |screen| {
            // The caller has given up when nobody listens.
            drop(sender.send(question(screen)));
        });
        loop {
            match self.jobs.try_send(job) {
                Ok(()) => break,
                Err(TrySendError::Disconnected(_)) => return Err(BackendError::CaptureFailed),
                Err(TrySendError::Full(back)) => {
                    if deadline.is_over() {
                        return Err(BackendError::Timeout);
                    }
                    job = back;
                    deadline.pause(CANCEL_CHECK);
                }
            }
        }
        loop {
            match receiver.recv_timeout(deadline.remaining().min(CANCEL_CHECK)) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(BackendError::CaptureFailed),
                Err(RecvTimeoutError::Timeout) if deadline.is_over() => {
                    return Err(BackendError::Timeout);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

fn serve(mut screen: Screen, queue: &Receiver<Job>) {
    loop {
        match queue.recv_timeout(IDLE_CHECK) {
            Ok(job) => job(&mut screen),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // Also asks whether the connection still stands.
        if screen.drop_events().is_err() {
            tracing::error!("the connection to the X server is lost");
            return;
        }
    }
}

/// Any failed X request, where nothing better is known about it.
pub(super) fn unreadable<E: Into<ReplyError>>(error: E) -> BackendError {
    // The kind alone: X errors carry numbers, but connection errors may carry paths.
    match error.into() {
        ReplyError::ConnectionError(_) => tracing::warn!("the connection to the X server failed"),
        ReplyError::X11Error(error) => {
            tracing::debug!(kind = ?error.error_kind, "an X request was refused")
        }
    }
    BackendError::CaptureFailed
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn area(x: i32, y: i32, width: u32, height: u32) -> Area {
        Area {
            x,
            y,
            width,
            height,
        }
    }

    #[test]
    fn overlap_counts_shared_pixels() {
        let rows = [
            (area(0, 0, 10, 10), area(5, 5, 10, 10), 25),
            (area(0, 0, 10, 10), area(10, 0, 5, 5), 0),
            (area(-5, -5, 10, 10), area(0, 0, 3, 3), 9),
            (area(i32::MIN, 0, 1, 1), area(i32::MAX, 0, u32::MAX, 1), 0),
        ];
        for (left, right, expected) in rows {
            assert_eq!(left.overlap(right), expected, "{left:?} {right:?}");
            assert_eq!(right.overlap(left), expected, "{right:?} {left:?}");
        }
    }

    #[test]
    fn screen_points_start_at_the_main_monitor() {
        let rect = area(100, 50, 20, 10).to_screen(area(1920, 0, 800, 600));
        assert_eq!(
            (rect.x(), rect.y(), rect.width(), rect.height()),
            (-1820.0, 50.0, 20.0, 10.0)
        );
    }
}
