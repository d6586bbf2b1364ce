//! An X11 desktop with AT-SPI.
//!
//! Two channels to the desktop: the X connection (windows, pixels), owned by a thread, and the accessibility bus (trees,
//! actions), driven by a small runtime of its own. This file joins them behind [`Backend`], with `listing` and `reading` for
//! what several calls share; every call into either channel has a deadline. What the toolkits are known to do wrong is
//! written where it is dealt with: `bus` (a call that crashes Qt), `vocabulary` (translated names, actions that undo),
//! `frame` (coordinates), `capture` (blank first pictures), `choice`, `selection`, `scroll` and `arrange` (actions). What
//! works where is measured by the tests of `matrix` and told in `docs/linux-matrix.md`.
//!
//! On X11 a program needs no permission to read or operate others; what can be missing is the service itself.

mod accessibility;
mod activity;
mod apps;
mod arrange;
#[cfg(test)]
mod babble;
mod bracket;
mod bus;
mod cache;
mod capture;
mod catalog;
mod choice;
mod display;
mod doctor;
mod entry;
mod focus;
mod frame;
mod front;
mod hand;
#[cfg(test)]
mod hostile;
mod input;
mod keyboard;
mod keymap;
mod keysym;
mod listing;
mod locate;
mod lock;
mod master;
mod matching;
mod node;
mod pointer;
mod process;
mod reader;
mod reading;
#[cfg(test)]
mod rerun;
mod routes;
mod scroll;
mod second;
mod selection;
mod sent;
mod toolkits;
mod vocabulary;
mod walk;
mod window;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use maka_cu_protocol::ids::{DisplayId, WindowKey};
use maka_cu_protocol::sets::{Path, Permission, ScreenRecordingProbe};
use maka_cu_protocol::snapshot::DisplayInfo;
use maka_cu_protocol::text::AppText;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::accessibility::Accessibility;
use self::apps::{Apps, Launch};
use self::bus::{Bus, CallError};
use self::display::{Area, Display, Monitor, unreadable};
use self::listing::main_area;
use self::lock::SessionBus;
use self::master::SecondPointer;
use self::node::{AccessibleNode, LinuxNode};
use self::reader::Reader;
use self::window::XWindow;
use super::bitmap::Bitmap;
use super::desktop::{PermissionPrompt, Permissions, ProcessStart, RunningApp, WindowInfo};
use super::doctor::{Finding, Note, StartRefusal};
use super::error::BackendError;
use super::input::{InputRoute, KeyCommand, PointCommand, Reach};
use super::launch::{LaunchProgress, LaunchTicket};
use super::perform::{ElementCommand, PerformError, Performed};
use super::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use super::{Backend, BackendCapabilities, BackendKind};
use crate::deadline::Deadline;

/// The desktop that `DISPLAY` and the session bus name.
#[derive(Debug)]
pub struct LinuxDesktop {
    display: Display,
    accessibility: Accessibility,
    apps: Apps,
    session: SessionBus,
    input: pointer::Input,
    /// Only where it was asked for.
    second: Option<SecondPointer>,
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
}

/// What a desktop of this kind needs and whether it is there.
#[must_use]
pub fn diagnose() -> Vec<Finding> {
    doctor::diagnose()
}

/// What the applications of this environment were told about accessibility, and what there is beyond the usual.
#[must_use]
pub fn notes() -> Vec<Note> {
    let mut notes = toolkits::notes();
    notes.extend(doctor::connect().ok().map(|screen| master::note(&screen)));
    notes
}

impl LinuxDesktop {
    /// Takes the desktop of this environment.
    ///
    /// # Errors
    /// When there is no X display or no accessibility bus.
    pub fn open() -> Result<Self, StartRefusal> {
        let screen = doctor::connect()?;
        let accessibility = Accessibility::new(doctor::addresses(Some(&screen)));
        let runtime = doctor::runtime()?;
        if !runtime.block_on(accessibility.answers()) {
            runtime.shutdown_background();
            return Err(doctor::no_accessibility());
        }
        let display = Display::start(screen).map_err(|_| doctor::no_thread())?;
        Ok(Self {
            display,
            accessibility,
            apps: Apps::default(),
            session: SessionBus::default(),
            input: pointer::Input::default(),
            second: None,
            runtime: Some(runtime),
        })
    }

    /// As [`Self::open`], and takes or makes a second pointer, by which points of windows are reached that hear nothing that
    /// is sent to them. It stays on the display until the X server ends, where a second cursor shows it.
    ///
    /// # Errors
    /// As [`Self::open`]; also when the server gives no second pointer.
    pub fn open_with_second_pointer() -> Result<Self, StartRefusal> {
        let mut desktop = Self::open()?;
        desktop.second = Some(SecondPointer::open()?);
        Ok(desktop)
    }

    /// Runs bus calls on the calling thread. Each has its own time limit.
    fn block_on<T>(&self, calls: impl Future<Output = T>) -> T {
        self.runtime
            .as_ref()
            .expect("it is there until the drop")
            .block_on(calls)
    }

    /// As [`Self::block_on`], with the deadline as the limit of all calls together.
    fn within<T>(
        &self,
        deadline: &Deadline,
        calls: impl Future<Output = T>,
    ) -> Result<T, BackendError> {
        let left = deadline.remaining();
        // The timer needs the runtime, so it is made inside.
        self.block_on(async {
            tokio::select! {
                biased;
                answer = timeout(left, calls) => answer.map_err(|_| BackendError::Timeout),
                () = deadline.cancelled() => Err(BackendError::Timeout),
            }
        })
    }

    fn bus(&self, deadline: &Deadline) -> Result<Arc<Bus>, BackendError> {
        self.within(deadline, self.accessibility.bus())?
            .map_err(no_bus)
    }

    /// The windows, bottom first, and the monitors, main one first, of one moment.
    fn screen(&self, deadline: &Deadline) -> Result<(Vec<XWindow>, Vec<Monitor>), BackendError> {
        self.display.ask(deadline, |screen| {
            Ok((
                screen.windows().map_err(unreadable)?,
                screen.monitors().map_err(unreadable)?,
            ))
        })
    }
}

impl Drop for LinuxDesktop {
    fn drop(&mut self) {
        pointer::release_held(self);
        // Waiting for a runtime inside another one is not allowed, and there is nothing to wait for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Backend for LinuxDesktop {
    fn kind(&self) -> BackendKind {
        BackendKind::Linux
    }

    fn lost(&self) -> CancellationToken {
        self.display.lost()
    }

    fn capabilities(&self) -> BackendCapabilities {
        input::capabilities()
    }

    fn windows(&self, deadline: &Deadline) -> Result<Vec<WindowInfo>, BackendError> {
        self.list(deadline, &self.apps.identities())
    }

    fn applications(&self, deadline: &Deadline) -> Result<Vec<RunningApp>, BackendError> {
        let (windows, _) = self.screen(deadline)?;
        let owners: HashSet<u32> = windows.iter().filter_map(|window| window.pid).collect();
        Ok(self.apps.running(&owners))
    }

    fn displays(&self, deadline: &Deadline) -> Result<Vec<DisplayInfo>, BackendError> {
        let monitors = self
            .display
            .ask(deadline, |screen| screen.monitors().map_err(unreadable))?;
        let main = main_area(&monitors);
        Ok(monitors.iter().map(|monitor| monitor.info(main)).collect())
    }

    fn frontmost_pid(&self, deadline: &Deadline) -> Result<Option<u32>, BackendError> {
        self.display.ask(deadline, |screen| {
            let Some(active) = screen.active_window().map_err(unreadable)? else {
                return Ok(None);
            };
            Ok(screen
                .window(active)
                .map_err(unreadable)?
                .and_then(|window| window.pid))
        })
    }

    fn screen_locked(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        let address = doctor::session_bus_address();
        let locked = self.session.is_locked(address.as_deref());
        self.within(deadline, locked)?.map_err(|error| {
            tracing::warn!(?error, "the session bus cannot be asked for a lock");
            match error {
                CallError::Timeout => BackendError::Timeout,
                CallError::Lost
                | CallError::Gone
                | CallError::Rejected
                | CallError::NoReply
                | CallError::Malformed => BackendError::CaptureFailed,
            }
        })
    }

    fn accessibility_permitted(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        self.within(deadline, self.accessibility.answers())
    }

    fn permissions(
        &self,
        prompt: PermissionPrompt,
        deadline: &Deadline,
    ) -> Result<Permissions, BackendError> {
        // X11 knows no dialog that could grant anything.
        match prompt {
            PermissionPrompt::Never | PermissionPrompt::Ask => {}
        }
        let probe = self.display.ask(deadline, |screen| {
            let corner = Area {
                x: 0,
                y: 0,
                width: 1,
                height: 1,
            };
            Ok(screen.extensions.composite && screen.capture_screen(corner).is_ok())
        });
        let screen_recording = match probe {
            Ok(readable) => readable,
            Err(BackendError::Timeout) => return Err(BackendError::Timeout),
            Err(_) => false,
        };
        Ok(Permissions {
            accessibility: self.accessibility_permitted(deadline)?,
            screen_recording,
            screen_recording_probe: if screen_recording {
                ScreenRecordingProbe::CaptureSucceeded
            } else {
                ScreenRecordingProbe::CaptureFailed
            },
        })
    }

    fn process_start(&self, pid: u32) -> Option<ProcessStart> {
        process::process(pid)
            .filter(|process| !process.zombie)
            .map(|process| process.start)
    }

    fn launch(&self, name: &str, deadline: &Deadline) -> Result<LaunchTicket, BackendError> {
        let windows = self.windows(deadline)?;
        Ok(LaunchTicket::new(self.apps.launch(name, &windows)?))
    }

    fn launch_progress(
        &self,
        ticket: &LaunchTicket,
        deadline: &Deadline,
    ) -> Result<LaunchProgress, BackendError> {
        let launch = ticket
            .downcast::<Launch>()
            .ok_or(BackendError::Unsupported)?;
        let windows = self.windows(deadline)?;
        Ok(self.apps.progress(launch, &windows))
    }

    fn window_root(
        &self,
        key: WindowKey,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        self.root_of(key, deadline)
    }

    fn menu_bar(
        &self,
        root: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        let root = match root.downcast() {
            Some(LinuxNode::Accessible(root)) => root,
            Some(LinuxNode::Window(_)) | None => return Ok(None),
            Some(LinuxNode::Silent(_)) => return Err(BackendError::Timeout),
        };
        let bus = self.bus(deadline)?;
        let reader = Reader::new(&bus, root.context.toolkit, deadline.clone());
        let found = self
            .block_on(locate::menu_bar(&reader, &root.object))
            .map_err(no_bus)?;
        Ok(found.map(|object| {
            let context = Arc::clone(&root.context);
            let node = AccessibleNode {
                object,
                context,
                parent: None,
                in_menu: true,
            };
            NodeRef::new(LinuxNode::Accessible(Arc::new(node)))
        }))
    }

    fn walk(
        &self,
        root: &NodeRef,
        scope: &WalkScope,
        budget: &WalkBudget,
    ) -> Result<RawTree, BackendError> {
        // The root belongs to every answer, so what is needed for it may take a moment beyond a spent budget.
        let for_root = if budget.deadline.remaining() < bus::CALL_TIMEOUT {
            Deadline::within(bus::CALL_TIMEOUT)
        } else {
            budget.deadline.clone()
        };
        match root
            .downcast::<LinuxNode>()
            .ok_or(BackendError::Unsupported)?
        {
            node @ (LinuxNode::Window(context) | LinuxNode::Silent(context)) => Ok(RawTree {
                nodes: vec![self.window_node(node, context, &for_root)?],
                // There is more in it, and nobody tells what.
                truncated_elements: matches!(node, LinuxNode::Silent(_)),
                truncated_depth: false,
            }),
            LinuxNode::Accessible(root) => {
                let bus = self.bus(&for_root)?;
                let placement = self.placement(&bus, root, &for_root)?;
                let reader = Reader::new(&bus, root.context.toolkit, for_root);
                self.block_on(async {
                    let reader = reader.with_cache(&root.object).await;
                    walk::walk(&reader, root, placement, scope, budget).await
                })
            }
        }
    }

    fn read_nodes(
        &self,
        nodes: &[NodeRef],
        deadline: &Deadline,
    ) -> Result<Vec<Option<RawNode>>, BackendError> {
        let mut answers: Vec<Option<RawNode>> = vec![None; nodes.len()];
        let mut accessibles: Vec<(usize, Arc<AccessibleNode>)> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            match node
                .downcast::<LinuxNode>()
                .ok_or(BackendError::Unsupported)?
            {
                node @ (LinuxNode::Window(context) | LinuxNode::Silent(context)) => {
                    answers[index] = match self.window_node(node, context, deadline) {
                        Ok(node) => Some(node),
                        Err(BackendError::WindowGone) => None,
                        Err(error) => return Err(error),
                    };
                }
                LinuxNode::Accessible(node) => accessibles.push((index, Arc::clone(node))),
            }
        }
        // Normally all of one window; a caller that mixes windows gets the same answers window by window.
        while let Some(window) = accessibles.first().map(|(_, node)| node.context.window) {
            let (same, others): (Vec<_>, Vec<_>) = accessibles
                .into_iter()
                .partition(|(_, node)| node.context.window == window);
            accessibles = others;
            let (indexes, same): (Vec<usize>, Vec<Arc<AccessibleNode>>) = same.into_iter().unzip();
            let read = match self.read_accessibles(&same, deadline) {
                Ok(read) => read,
                Err(BackendError::WindowGone) => continue,
                Err(error) => return Err(error),
            };
            for (index, node) in indexes.into_iter().zip(read) {
                answers[index] = node;
            }
        }
        Ok(answers)
    }

    fn perform(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        let node: &LinuxNode = node.downcast().ok_or(PerformError::NotActionable)?;
        if let Some(arranged) = self.arrange(node, command, deadline) {
            return arranged;
        }
        let LinuxNode::Accessible(node) = node else {
            return Err(PerformError::NotActionable);
        };
        let bus = self.bus(deadline).map_err(|_| PerformError::TimedOut)?;
        self.block_on(input::perform(&bus, node, command, deadline))
    }

    fn mechanism(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Option<Path>, BackendError> {
        match node
            .downcast::<LinuxNode>()
            .ok_or(BackendError::Unsupported)?
        {
            LinuxNode::Window(_) | LinuxNode::Silent(_) => Ok(Some(command.usual_path())),
            LinuxNode::Accessible(node) => {
                let bus = self.bus(deadline)?;
                Ok(self.block_on(input::mechanism(&bus, node, command, deadline)))
            }
        }
    }

    fn selected_text(
        &self,
        node: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<AppText>, BackendError> {
        match node
            .downcast::<LinuxNode>()
            .ok_or(BackendError::Unsupported)?
        {
            LinuxNode::Window(_) | LinuxNode::Silent(_) => Ok(None),
            LinuxNode::Accessible(node) => {
                let bus = self.bus(deadline)?;
                self.block_on(selection::selected(&bus, node, deadline))
            }
        }
    }

    fn point_reach(
        &self,
        key: WindowKey,
        command: &PointCommand,
        deadline: &Deadline,
    ) -> Result<Reach, BackendError> {
        pointer::reach(self, key, command, deadline)
    }

    fn point(
        &self,
        key: WindowKey,
        command: &PointCommand,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        pointer::point(self, key, command, route, deadline)
    }

    fn key_reach(
        &self,
        node: &NodeRef,
        command: &KeyCommand,
        deadline: &Deadline,
    ) -> Result<Reach, BackendError> {
        let node = node.downcast().ok_or(BackendError::Unsupported)?;
        keyboard::reach(self, node, command, deadline)
    }

    fn focus(
        &self,
        node: &NodeRef,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<bool, PerformError> {
        match node.downcast() {
            Some(LinuxNode::Accessible(node)) => focus::focus(self, node, route, deadline),
            Some(LinuxNode::Window(context) | LinuxNode::Silent(context)) => {
                focus::focus_window(self, context.window, route, deadline)
            }
            None => Ok(false),
        }
    }

    fn keys(
        &self,
        node: &NodeRef,
        command: &KeyCommand,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        let node = node.downcast().ok_or(PerformError::NotActionable)?;
        keyboard::keys(self, node, command, route, deadline)
    }

    fn user_active(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        activity::user_active(self, deadline)
    }

    fn capture_window(&self, key: WindowKey, deadline: &Deadline) -> Result<Bitmap, BackendError> {
        let id = key.window_id;
        let give_up = Instant::now() + deadline.remaining();
        self.display.ask(deadline, move |screen| {
            let windows = screen.windows().map_err(unreadable)?;
            let place = windows
                .iter()
                .position(|window| window.id == id && window.pid == Some(key.pid));
            let place = place.ok_or(BackendError::WindowGone)?;
            let area = windows[place].area;
            let covered = windows[place + 1..]
                .iter()
                .any(|above| above.on_screen && above.area.overlap(area) > 0);
            screen.capture_window(id, covered, give_up)
        })
    }

    fn capture_display(
        &self,
        display: &DisplayId,
        deadline: &Deadline,
    ) -> Result<Bitmap, BackendError> {
        let wanted = display.clone();
        self.display.ask(deadline, move |screen| {
            let monitors = screen.monitors().map_err(unreadable)?;
            let monitor = monitors
                .iter()
                .find(|monitor| monitor.id() == wanted)
                .ok_or(BackendError::CaptureFailed)?;
            screen.capture_screen(monitor.area)
        })
    }
}

/// A bus that is not there means that nobody's controls can be read.
fn no_bus(error: CallError) -> BackendError {
    match error {
        CallError::Lost => BackendError::PermissionMissing(Permission::Accessibility),
        CallError::Timeout => BackendError::Timeout,
        CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed => {
            BackendError::CaptureFailed
        }
    }
}
