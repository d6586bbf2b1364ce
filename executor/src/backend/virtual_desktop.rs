//! The embedded desktop: real state and real pixels, no window server.
//!
//! It is a back end like the others, not a stand-in for one: windows have an order and cover each other, processes come
//! and go, controls vanish, applications answer slowly or decline, and every picture is painted from the state at that
//! moment. What it shows is described by a scenario in TOML (`docs/virtual-desktop.md` lists every key); a rich one is built
//! in. It is chosen by name only, so that a lost display can never silently turn into an imaginary one.
//!
//! The files follow the ones of the other back ends: `display`, `window`, `accessibility` and `input` answer the
//! [`Backend`] trait; `scenario`, `state` and `render` are what those of a real desktop find in the operating system.
//!
//! It offers every action of the protocol.

mod rect;

mod clock;

mod scenario;
mod state;

mod render;

mod accessibility;
mod display;
mod input;
mod window;

use std::fmt;
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use maka_cu_protocol::ids::{DisplayId, WindowKey};
use maka_cu_protocol::sets::{Path, ScreenRecordingProbe};
use maka_cu_protocol::snapshot::DisplayInfo;
use maka_cu_protocol::text::AppText;
use tokio_util::sync::CancellationToken;

use super::bitmap::Bitmap;
use super::desktop::{PermissionPrompt, Permissions, ProcessStart, RunningApp, WindowInfo};
use super::doctor::{Finding, StartRefusal};
use super::error::BackendError;
use super::input::{InputRoute, KeyCommand, PointCommand, Reach};
use super::launch::{LaunchProgress, LaunchTicket};
use super::perform::{ElementCommand, PerformError, Performed};
use super::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use super::{Backend, BackendCapabilities, BackendKind};
use crate::deadline::Deadline;
use clock::Clock;
use scenario::{Scenario, ScenarioError};
use state::World;

/// A virtual desktop that has started.
pub struct VirtualDesktop {
    /// Held for one look or one change at a time, never while something is painted or waited for.
    world: Mutex<World>,
    clock: Clock,
}

impl VirtualDesktop {
    /// Starts the desktop that a scenario file describes, or the built-in one.
    ///
    /// # Errors
    ///
    /// The file cannot be read or does not hold together; the refusal names line and field.
    pub fn open(scenario: Option<&FilePath>) -> Result<Self, StartRefusal> {
        let scenario = read_scenario(scenario).map_err(|error| StartRefusal {
            missing: error.to_string(),
            remedy: "correct the scenario or leave --desktop out".to_owned(),
        })?;
        Ok(Self::start(scenario))
    }

    fn start(scenario: Scenario) -> Self {
        let clock = Clock::start(scenario.time);
        Self {
            world: Mutex::new(World::new(Arc::new(scenario), clock.started())),
            clock,
        }
    }

    /// What time it is on the desktop.
    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Begins to answer a question; it is refused when its time is up.
    fn asked(&self, deadline: &Deadline) -> Result<(), BackendError> {
        self.clock.tick();
        in_time(deadline)
    }

    /// The desktop as it is now.
    fn world(&self) -> MutexGuard<'_, World> {
        // A panic under the lock is a bug of this back end; the state stays whole, because every change is a sequence of
        // assignments, so going on is better than panicking in every later call too.
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.advance(self.now());
        world
    }
}

/// Says without a window title or a value what the desktop holds.
impl fmt::Debug for VirtualDesktop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world();
        formatter
            .debug_struct("VirtualDesktop")
            .field("processes", &world.processes().len())
            .field("windows", &world.windows().len())
            .finish_non_exhaustive()
    }
}

/// What `doctor` says about a scenario file, or about the built-in one.
#[must_use]
pub fn diagnose(scenario: Option<&FilePath>) -> Vec<Finding> {
    let finding = match read_scenario(scenario) {
        Ok(scenario) => Finding {
            name: "scenario",
            ok: true,
            found: format!(
                "{} applications, {} windows",
                scenario.apps.len(),
                scenario.windows.len()
            ),
            remedy: None,
        },
        Err(error) => Finding {
            name: "scenario",
            ok: false,
            found: error.to_string(),
            remedy: Some("correct the scenario or leave --desktop out".to_owned()),
        },
    };
    vec![finding]
}

fn read_scenario(path: Option<&FilePath>) -> Result<Scenario, ScenarioError> {
    path.map_or_else(|| Ok(Scenario::built_in()), Scenario::read)
}

impl Backend for VirtualDesktop {
    fn kind(&self) -> BackendKind {
        BackendKind::VirtualDesktop
    }

    fn lost(&self) -> CancellationToken {
        // It lives in this process.
        CancellationToken::new()
    }

    fn capabilities(&self) -> BackendCapabilities {
        input::capabilities(&self.world().scenario().offers)
    }

    fn windows(&self, deadline: &Deadline) -> Result<Vec<WindowInfo>, BackendError> {
        self.asked(deadline)?;
        Ok(window::list(&self.world()))
    }

    fn applications(&self, deadline: &Deadline) -> Result<Vec<RunningApp>, BackendError> {
        self.asked(deadline)?;
        let world = self.world();
        Ok(world
            .processes()
            .iter()
            .map(|process| window::running_app(&world, process))
            .collect())
    }

    fn displays(&self, deadline: &Deadline) -> Result<Vec<DisplayInfo>, BackendError> {
        self.asked(deadline)?;
        Ok(self.world().displays().iter().map(display::info).collect())
    }

    fn frontmost_pid(&self, deadline: &Deadline) -> Result<Option<u32>, BackendError> {
        self.asked(deadline)?;
        Ok(self.world().frontmost())
    }

    fn screen_locked(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        self.asked(deadline)?;
        Ok(self.world().locked())
    }

    fn accessibility_permitted(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        self.asked(deadline)?;
        Ok(self.world().scenario().accessibility)
    }

    fn permissions(
        &self,
        prompt: PermissionPrompt,
        deadline: &Deadline,
    ) -> Result<Permissions, BackendError> {
        // There is nobody to ask: the scenario has the answer either way.
        let (PermissionPrompt::Never | PermissionPrompt::Ask) = prompt;
        self.asked(deadline)?;
        let world = self.world();
        let screen_recording = world.scenario().screen_recording;
        Ok(Permissions {
            accessibility: world.scenario().accessibility,
            screen_recording,
            screen_recording_probe: if screen_recording {
                ScreenRecordingProbe::CaptureSucceeded
            } else {
                ScreenRecordingProbe::CaptureFailed
            },
        })
    }

    fn process_start(&self, pid: u32) -> Option<ProcessStart> {
        self.world()
            .process(pid)
            .map(|process| ProcessStart(process.start))
    }

    fn launch(&self, name: &str, deadline: &Deadline) -> Result<LaunchTicket, BackendError> {
        self.asked(deadline)?;
        input::launch(self, name)
    }

    fn launch_progress(
        &self,
        ticket: &LaunchTicket,
        deadline: &Deadline,
    ) -> Result<LaunchProgress, BackendError> {
        self.asked(deadline)?;
        input::launch_progress(&self.world(), ticket)
    }

    fn window_root(
        &self,
        key: WindowKey,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        self.asked(deadline)?;
        accessibility::window_root(&self.world(), key).map(Some)
    }

    fn menu_bar(
        &self,
        root: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        self.asked(deadline)?;
        accessibility::menu_bar(&self.world(), root)
    }

    fn walk(
        &self,
        root: &NodeRef,
        scope: &WalkScope,
        budget: &WalkBudget,
    ) -> Result<RawTree, BackendError> {
        self.clock.tick();
        accessibility::walk(self, root, scope, budget)
    }

    fn read_nodes(
        &self,
        nodes: &[NodeRef],
        deadline: &Deadline,
    ) -> Result<Vec<Option<RawNode>>, BackendError> {
        self.clock.tick();
        accessibility::read_nodes(self, nodes, deadline)
    }

    fn perform(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        self.clock.tick();
        input::perform(self, node, command, deadline)
    }

    fn mechanism(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Option<Path>, BackendError> {
        in_time(deadline)?;
        Ok(input::mechanism(&self.world(), node, command))
    }

    fn selected_text(
        &self,
        node: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<AppText>, BackendError> {
        self.asked(deadline)?;
        Ok(input::selected_text(&self.world(), node))
    }

    fn point_reach(
        &self,
        key: WindowKey,
        command: &PointCommand,
        deadline: &Deadline,
    ) -> Result<Reach, BackendError> {
        self.asked(deadline)?;
        input::point_reach(&self.world(), key, command)
    }

    fn point(
        &self,
        key: WindowKey,
        command: &PointCommand,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        self.clock.tick();
        input::point(self, key, command, route, deadline)
    }

    fn key_reach(
        &self,
        node: &NodeRef,
        command: &KeyCommand,
        deadline: &Deadline,
    ) -> Result<Reach, BackendError> {
        self.asked(deadline)?;
        input::key_reach(&self.world(), node, command)
    }

    fn focus(
        &self,
        node: &NodeRef,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<bool, PerformError> {
        self.clock.tick();
        input::focus(self, node, route, deadline)
    }

    fn keys(
        &self,
        node: &NodeRef,
        command: &KeyCommand,
        route: InputRoute,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        self.clock.tick();
        input::keys(self, node, command, route, deadline)
    }

    fn user_active(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        self.asked(deadline)?;
        Ok(self.world().user_active(self.now()))
    }

    fn capture_window(&self, key: WindowKey, deadline: &Deadline) -> Result<Bitmap, BackendError> {
        self.clock.tick();
        window::capture(self, key, deadline)
    }

    fn capture_display(
        &self,
        display: &DisplayId,
        deadline: &Deadline,
    ) -> Result<Bitmap, BackendError> {
        self.clock.tick();
        display::capture(self, display, deadline)
    }
}

/// Refuses work whose time is up.
fn in_time(deadline: &Deadline) -> Result<(), BackendError> {
    if deadline.is_over() {
        Err(BackendError::Timeout)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
