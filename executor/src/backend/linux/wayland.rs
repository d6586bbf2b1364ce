//! A Wayland desktop, through accessibility alone.
//!
//! Wayland shows no program the windows of another: there is no list of them, no place on the screen, no picture and no way
//! to send one of them input. What is left is what the programs say about themselves on the accessibility bus. From it come
//! the windows and the trees, and by it controls are operated, as on X11 and by the same code; programs that run through
//! Xwayland are on that bus too.
//!
//! Points, keys, pictures and window actions are therefore not advertised, and refused where they are asked for all the
//! same. A window's corner is never made up: its bounds have a size and are not placed. Nothing tells which window lies
//! above another either, so none counts as covering another; the active one is listed first and then the newest.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use maka_cu_protocol::geometry::ScreenRect;
use maka_cu_protocol::ids::{DisplayId, WindowKey};
use maka_cu_protocol::sets::{ElementActionKind, Path, ScreenRecordingProbe};
use maka_cu_protocol::snapshot::DisplayInfo;
use maka_cu_protocol::text::AppText;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::accessibility::{Accessibility, COMPONENT};
use super::apps::Identities;
use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};
use super::compositor::Compositor;
use super::frame::{Extents, Placement};
use super::node::{AccessibleNode, LinuxNode, WindowContext};
use super::services::{self, Services, no_bus};
use super::surface::Surface;
use super::toplevels::{TopLevel, top_levels};
use super::vocabulary::{State, is_window};
use super::window_ids::{KnownWindow, Told, WindowIds};
use super::{doctor, reading};
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

/// Applications that are asked for their windows at the same time.
const ASKED_AT_ONCE: usize = 16;
/// Time for one application to tell its windows, all its answers together: one that takes half a second for each of many
/// must not cost the others their place in the list. Like one that is silent, it keeps what it told before.
const ONE_APPLICATION: Duration = Duration::from_millis(1500);
/// Bytes of a title that are kept, as many as of one on X11: a program may call its window anything.
const LONGEST_TITLE: usize = 16 * 1024;

/// The desktop that `WAYLAND_DISPLAY` and the session bus name.
#[derive(Debug)]
pub struct WaylandDesktop {
    compositor: Compositor,
    services: Services,
    ids: WindowIds,
}

impl WaylandDesktop {
    /// Takes the Wayland session of this environment.
    ///
    /// # Errors
    /// When there is no compositor or no accessibility bus.
    pub fn open() -> Result<Self, StartRefusal> {
        Ok(Self {
            compositor: Compositor::connect()?,
            services: Services::start(doctor::addresses(None))?,
            ids: WindowIds::default(),
        })
    }

    /// The windows of now, the active one first and then the latest.
    fn known(&self, deadline: &Deadline) -> Result<Vec<KnownWindow>, BackendError> {
        let bus = self.services.bus(deadline)?;
        let listing = self.ids.begin();
        let told = self
            .services
            .within(deadline, self.ask_all(&bus, deadline))?;
        let mut windows = self.ids.settle(listing, told.map_err(no_bus)?);
        windows.sort_by_key(|window| !window.top.states.has(State::Active));
        Ok(windows)
    }

    /// What everybody on the bus tells of its windows. One that does not answer costs its own time limit and hides nothing of
    /// the others.
    async fn ask_all(&self, bus: &Bus, deadline: &Deadline) -> Result<Vec<Told>, CallError> {
        let accessibility = &self.services.accessibility;
        let applications = accessibility.applications(bus).await?;
        let told = stream::iter(applications)
            .map(|(application, pid)| async move {
                let asked = windows_of(accessibility, bus, &application, deadline);
                let answer = timeout(ONE_APPLICATION, asked).await;
                let windows = match answer.unwrap_or(Err(CallError::Timeout)) {
                    Ok(windows) => Some(windows),
                    // It left, or answers nonsense: it has none.
                    Err(CallError::Gone | CallError::Rejected | CallError::Malformed) => {
                        Some(Vec::new())
                    }
                    Err(CallError::Timeout | CallError::NoReply) => None,
                    Err(CallError::Lost) => return Err(CallError::Lost),
                };
                Ok(Told {
                    bus_name: application.bus_name,
                    pid,
                    windows,
                })
            })
            .buffered(ASKED_AT_ONCE)
            .collect::<Vec<_>>();
        told.await.into_iter().collect()
    }
}

async fn windows_of(
    accessibility: &Accessibility,
    bus: &Bus,
    application: &ObjectRef,
    deadline: &Deadline,
) -> Result<Vec<TopLevel>, CallError> {
    let toolkit = accessibility.toolkit_of(bus, application).await?;
    let kind = toolkit.coordinate_type();
    let mut tops = top_levels(bus, application, toolkit, kind, deadline).await?;
    tops.retain(|top| is_window(toolkit, top.role));
    for top in &mut tops {
        let end = top.name.floor_char_boundary(LONGEST_TITLE);
        top.name.truncate(end);
    }
    Ok(tops)
}

/// A window as the protocol lists it.
fn describe(window: KnownWindow, z_index: i64, identities: &Identities) -> WindowInfo {
    let app = identities.app_of_pid(window.pid);
    let TopLevel {
        name,
        states,
        extents,
        toolkit,
        ..
    } = window.top;
    let size = Placement::of_root(toolkit, extents).whole();
    WindowInfo {
        key: WindowKey {
            pid: window.pid,
            window_id: window.id,
        },
        app_id: app.app_id,
        app_name: app.name,
        title: (!name.is_empty()).then(|| AppText::new(name)),
        bounds: ScreenRect::try_new(0.0, 0.0, size.width(), size.height())
            .expect("sizes of windows are finite"),
        is_placed: false,
        layer: 0,
        z_index,
        on_screen: states.has(State::Showing) && !states.has(State::Iconified),
        display_id: None,
    }
}

impl Surface for WaylandDesktop {
    fn services(&self) -> &Services {
        &self.services
    }

    fn placement(
        &self,
        bus: &Bus,
        root: &AccessibleNode,
        deadline: &Deadline,
    ) -> Result<Placement, BackendError> {
        let toolkit = root.context.toolkit;
        // The root of a menu says nothing about the window, and what is in a menu has no frame.
        if root.in_menu {
            return Ok(Placement::of_root(toolkit, None));
        }
        let patience = CALL_TIMEOUT.min(deadline.remaining());
        let kind = toolkit.coordinate_type();
        let asked = bus.call(&root.object, COMPONENT, "GetExtents", &kind, patience);
        let extents = match self.services.block_on(asked) {
            Ok((x, y, width, height)) => Some(Extents {
                x,
                y,
                width,
                height,
            }),
            Err(CallError::Rejected | CallError::Malformed) => None,
            Err(CallError::Gone | CallError::NoReply) => return Err(BackendError::WindowGone),
            Err(CallError::Timeout) => return Err(BackendError::Timeout),
            Err(CallError::Lost) => return Err(BackendError::CaptureFailed),
        };
        Ok(Placement::of_root(toolkit, extents))
    }

    fn window_node(&self, _: &WindowContext, _: &Deadline) -> Result<RawNode, BackendError> {
        // Every window here is known by its accessible; none is known without.
        Err(BackendError::WindowGone)
    }
}

impl Backend for WaylandDesktop {
    fn kind(&self) -> BackendKind {
        BackendKind::Wayland
    }

    fn lost(&self) -> CancellationToken {
        self.compositor.lost()
    }

    fn capabilities(&self) -> BackendCapabilities {
        BackendCapabilities {
            element_actions: vec![
                ElementActionKind::Click,
                ElementActionKind::SetValue,
                ElementActionKind::SelectText,
                ElementActionKind::SecondaryAction,
                ElementActionKind::Scroll,
            ],
            ..BackendCapabilities::default()
        }
    }

    fn windows(&self, deadline: &Deadline) -> Result<Vec<WindowInfo>, BackendError> {
        let windows = self.known(deadline)?;
        let identities = self.services.apps.identities();
        let listed = windows.into_iter().rev().zip(1_i64..);
        let mut listed: Vec<WindowInfo> = listed
            .map(|(window, z_index)| describe(window, z_index, &identities))
            .collect();
        listed.reverse();
        Ok(listed)
    }

    fn applications(&self, deadline: &Deadline) -> Result<Vec<RunningApp>, BackendError> {
        let windows = self.known(deadline)?;
        let owners: HashSet<u32> = windows.iter().map(|window| window.pid).collect();
        Ok(self.services.apps.running(&owners))
    }

    fn displays(&self, _: &Deadline) -> Result<Vec<DisplayInfo>, BackendError> {
        // No window has a place on them, so none of them means anything to a caller.
        Ok(Vec::new())
    }

    fn frontmost_pid(&self, deadline: &Deadline) -> Result<Option<u32>, BackendError> {
        let windows = self.known(deadline)?;
        let active = windows.first();
        let active = active.filter(|window| window.top.states.has(State::Active));
        Ok(active.map(|window| window.pid))
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
        // There is nothing to grant: no dialog gives one program the windows of all others.
        match prompt {
            PermissionPrompt::Never | PermissionPrompt::Ask => {}
        }
        Ok(Permissions {
            accessibility: self.accessibility_permitted(deadline)?,
            screen_recording: false,
            screen_recording_probe: ScreenRecordingProbe::NotProbed,
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

    fn window_root(&self, key: WindowKey, _: &Deadline) -> Result<Option<NodeRef>, BackendError> {
        let found = self.ids.find(key.window_id, key.pid);
        let TopLevel {
            object, toolkit, ..
        } = found.ok_or(BackendError::WindowGone)?.top;
        let node = AccessibleNode {
            object,
            context: Arc::new(WindowContext {
                window: key.window_id,
                toolkit,
            }),
            parent: None,
            in_menu: false,
        };
        Ok(Some(NodeRef::new(LinuxNode::Accessible(Arc::new(node)))))
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
        match node.downcast() {
            Some(LinuxNode::Accessible(node)) => self.services.perform(node, command, deadline),
            Some(LinuxNode::Window(_) | LinuxNode::Silent(_)) | None => {
                Err(PerformError::NotActionable)
            }
        }
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
        _: WindowKey,
        _: &PointCommand,
        _: &Deadline,
    ) -> Result<Reach, BackendError> {
        Ok(Reach::Never)
    }

    fn point(
        &self,
        _: WindowKey,
        _: &PointCommand,
        _: InputRoute,
        _: &Deadline,
    ) -> Result<Performed, PerformError> {
        Err(PerformError::NotActionable)
    }

    fn key_reach(&self, _: &NodeRef, _: &KeyCommand, _: &Deadline) -> Result<Reach, BackendError> {
        Ok(Reach::Never)
    }

    fn focus(&self, _: &NodeRef, _: InputRoute, _: &Deadline) -> Result<bool, PerformError> {
        // A focus is asked for only where keys could follow.
        Ok(false)
    }

    fn keys(
        &self,
        _: &NodeRef,
        _: &KeyCommand,
        _: InputRoute,
        _: &Deadline,
    ) -> Result<Performed, PerformError> {
        Err(PerformError::NotActionable)
    }

    fn user_active(&self, _: &Deadline) -> Result<bool, BackendError> {
        // Nobody tells a program of the keys and movements that go to another.
        Err(BackendError::CaptureFailed)
    }

    fn capture_window(&self, _: WindowKey, _: &Deadline) -> Result<Bitmap, BackendError> {
        Err(BackendError::CaptureFailed)
    }

    fn capture_display(&self, _: &DisplayId, _: &Deadline) -> Result<Bitmap, BackendError> {
        Err(BackendError::CaptureFailed)
    }
}
