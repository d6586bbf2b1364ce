//! An X11 desktop with AT-SPI.
//!
//! Two channels to the desktop: the X connection (windows, pixels, input), owned by a thread, and the accessibility bus
//! (trees, actions), which [`Services`] keeps. This file joins them behind [`Backend`]; every call into either channel has
//! a deadline.
//!
//! On X11 a program needs no permission to read or operate others; what can be missing is the service itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maka_cu_protocol::ids::{DisplayId, WindowKey};
use maka_cu_protocol::sets::{Path, ScreenRecordingProbe};
use maka_cu_protocol::snapshot::DisplayInfo;
use maka_cu_protocol::text::AppText;
use tokio_util::sync::CancellationToken;

use super::bus::CallError;
use super::display::{Area, Display, Monitor, unreadable};
use super::doctor;
use super::frame::Toolkit;
use super::listing::main_area;
use super::locate::{self, Located};
use super::master::SecondPointer;
use super::node::{AccessibleNode, LinuxNode, WindowContext};
use super::services::{self, Services, no_bus};
use super::window::XWindow;
use super::{activity, focus, input, keyboard, pointer, process, reading};
use crate::backend::bitmap::Bitmap;
use crate::backend::desktop::{
    PermissionPrompt, Permissions, ProcessStart, RunningApp, WindowInfo,
};
use crate::backend::doctor::StartRefusal;
use crate::backend::error::BackendError;
use crate::backend::input::{InputRoute, KeyCommand, PointCommand, Reach};
use crate::backend::launch::{LaunchProgress, LaunchTicket};
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use crate::backend::{Backend, BackendCapabilities, BackendKind};
use crate::deadline::Deadline;

/// A program registers with the accessibility bus while it starts; until it is this old (in hundredths of a second), a
/// window whose program is not there yet is asked for again rather than called one without a tree.
const REGISTERS_WITHIN: u64 = 200;

/// A program that has answered nothing for so long is busy with something else, as one whose handler waits for a dialog. Its
/// window is shown as one that has more in it than can be told, so that points of it can be used.
const SILENT_FOR: Duration = Duration::from_secs(2);

/// The desktop that `DISPLAY` and the session bus name.
#[derive(Debug)]
pub struct LinuxDesktop {
    pub(super) display: Display,
    pub(super) services: Services,
    pub(super) input: pointer::Input,
    /// Only where it was asked for.
    pub(super) second: Option<SecondPointer>,
}

impl LinuxDesktop {
    /// Takes the X display of this environment.
    ///
    /// # Errors
    /// When there is no X display or no accessibility bus.
    pub fn open() -> Result<Self, StartRefusal> {
        let screen = doctor::connect()?;
        let services = Services::start(doctor::addresses(Some(&screen)))?;
        let display = Display::start(screen).map_err(|_| doctor::no_thread())?;
        Ok(Self {
            display,
            services,
            input: pointer::Input::default(),
            second: None,
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

    /// The windows, bottom first, and the monitors, main one first, of one moment.
    pub(super) fn screen(
        &self,
        deadline: &Deadline,
    ) -> Result<(Vec<XWindow>, Vec<Monitor>), BackendError> {
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
        self.list(deadline, &self.services.apps.identities())
    }

    fn applications(&self, deadline: &Deadline) -> Result<Vec<RunningApp>, BackendError> {
        let (windows, _) = self.screen(deadline)?;
        let owners: HashSet<u32> = windows.iter().filter_map(|window| window.pid).collect();
        Ok(self.services.apps.running(&owners))
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
        self.services.screen_locked(deadline)
    }

    fn accessibility_permitted(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        self.services.answers(deadline)
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
        services::process_start(pid)
    }

    fn launch(&self, name: &str, deadline: &Deadline) -> Result<LaunchTicket, BackendError> {
        self.services.launch(name, &self.windows(deadline)?)
    }

    fn launch_progress(
        &self,
        ticket: &LaunchTicket,
        deadline: &Deadline,
    ) -> Result<LaunchProgress, BackendError> {
        self.services
            .launch_progress(ticket, &self.windows(deadline)?)
    }

    fn window_root(
        &self,
        key: WindowKey,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        let id = key.window_id;
        let windows = self.display.ask(deadline, move |screen| {
            let windows = screen.windows().map_err(unreadable)?;
            // From now on its pixels are kept, so that a picture asked for later is complete.
            if windows.iter().any(|window| window.id == id) {
                screen.redirect(id).map_err(unreadable)?;
            }
            Ok(windows)
        })?;
        let of_process: Vec<XWindow> = windows
            .into_iter()
            .filter(|window| window.pid == Some(key.pid))
            .collect();
        let wanted = of_process
            .iter()
            .position(|window| window.id == id)
            .ok_or(BackendError::WindowGone)?;
        let bus = self.services.bus(deadline)?;
        let silent_at = Instant::now() + SILENT_FOR;
        let located = loop {
            let located = self.services.within(
                deadline,
                locate::locate(
                    &self.services.accessibility,
                    &bus,
                    key.pid,
                    &of_process,
                    wanted,
                    deadline,
                ),
            )?;
            match located {
                // A busy program leaves a question out now and then.
                Err(CallError::Timeout) if Instant::now() < silent_at => {}
                located => break located,
            }
        };
        if matches!(located, Err(CallError::Timeout)) {
            let context = WindowContext {
                window: id,
                toolkit: Toolkit::ScreenBased,
            };
            return Ok(Some(NodeRef::new(LinuxNode::Silent(context))));
        }
        match located.map_err(no_bus)? {
            Located::Root { object, toolkit } => {
                let context = Arc::new(WindowContext {
                    window: id,
                    toolkit,
                });
                let node = AccessibleNode {
                    object,
                    context,
                    parent: None,
                    in_menu: false,
                };
                Ok(Some(NodeRef::new(LinuxNode::Accessible(Arc::new(node)))))
            }
            Located::NoMatch => Ok(None),
            Located::NoApplication => {
                let process = process::process(key.pid).ok_or(BackendError::WindowGone)?;
                let settled =
                    process::age_ticks(&process).is_none_or(|age| age >= REGISTERS_WITHIN);
                let context = WindowContext {
                    window: id,
                    toolkit: Toolkit::ScreenBased,
                };
                Ok(settled.then(|| NodeRef::new(LinuxNode::Window(context))))
            }
        }
    }

    fn menu_bar(
        &self,
        root: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        reading::menu_bar(&self.services, root, deadline)
    }

    fn walk(
        &self,
        root: &NodeRef,
        scope: &WalkScope,
        budget: &WalkBudget,
    ) -> Result<RawTree, BackendError> {
        reading::walk(self, root, scope, budget)
    }

    fn read_nodes(
        &self,
        nodes: &[NodeRef],
        deadline: &Deadline,
    ) -> Result<Vec<Option<RawNode>>, BackendError> {
        reading::read_nodes(self, nodes, deadline)
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
        self.services.perform(node, command, deadline)
    }

    fn mechanism(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Option<Path>, BackendError> {
        self.services.mechanism(node, command, deadline)
    }

    fn selected_text(
        &self,
        node: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<AppText>, BackendError> {
        self.services.selected_text(node, deadline)
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
