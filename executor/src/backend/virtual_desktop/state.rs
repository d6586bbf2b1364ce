//! The living desktop: processes, windows in their order, and what is still going to happen.
//!
//! A [`World`] starts as its scenario says and changes only through [`World::launch`], what is done to its controls
//! (`act`), windows (`handle`), by keys (`keyboard`) and at points (`pointer`), and the effects of a scenario (`change`).
//! It has no thread and no timer: whoever looks first calls [`World::advance`], which carries out what is due by then, so
//! that every look sees the desktop as it is at that moment.
//!
//! INVARIANT: windows stand front to back, a higher layer before a lower one. Ids of processes, windows and nodes are
//! never used twice, and a process that took over another's id has another start time.

mod edit;
mod live_window;
mod scroll;

mod act;
mod change;
mod handle;
mod keyboard;
mod menu;
mod pointer;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use handle::Handling;
pub(crate) use live_window::{LiveWindow, Node, NodeId};
pub(crate) use pointer::{Pointing, Target};
pub(crate) use scroll::shown_part;

use super::scenario::{AppSpec, Change, DisplaySpec, Effect, LaunchBehavior, Scenario};
use crate::backend::RECENT_INPUT;
use pointer::Pointer;

/// First process id; far from the low ids that a reader takes for system services.
const FIRST_PID: u32 = 4201;
/// First window id.
const FIRST_WINDOW_ID: u32 = 301;
/// Most processes; a launch beyond it is refused, as it is when a real process table is full.
const MAX_PROCESSES: usize = 256;
/// Most windows; one that would be the next does not open.
const MAX_WINDOWS: usize = 512;
/// Most delayed effects; a further one does not happen. A client that presses faster than delays pass meets this.
const MAX_PENDING: usize = 4_096;

/// The state of the desktop.
pub(crate) struct World {
    scenario: Arc<Scenario>,
    windows: Vec<Arc<LiveWindow>>,
    processes: Vec<Process>,
    frontmost: Option<u32>,
    pending: Vec<Pending>,
    locked: bool,
    pointer: Pointer,
    clipboard: String,
    user_input: Option<Instant>,
    next_pid: u32,
    next_window_id: u32,
    next_node: NodeId,
    next_start: u64,
    next_order: u64,
}

/// A process of the virtual process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its id.
    pub(crate) pid: u32,
    /// Index of its application in the scenario.
    pub(crate) app: usize,
    /// Its start time: a number that grows with every start.
    pub(crate) start: u64,
}

/// An effect that waits for its time.
struct Pending {
    due: Instant,
    order: u64,
    origin: Option<u32>,
    change: Change,
}

/// What a launch led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launched {
    /// This process belongs to the launch.
    Process(u32),
    /// The application was started and will never be seen.
    Nothing,
}

/// Why a launch was turned down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchRefusal {
    /// No installed application has that id or name.
    NotFound,
    /// Several have that name.
    Ambiguous,
    /// The application is on the deny list.
    Denied,
    /// The system declined.
    Refused,
}

/// Why an action did not simply work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionRefusal {
    /// The control is gone, or does not offer this at all.
    NotActionable,
    /// The application declined; nothing changed.
    Refused,
    /// The application does not say.
    Unknown,
    /// The application does not answer; nothing changed.
    Hangs,
}

impl World {
    /// The desktop at its start.
    pub(crate) fn new(scenario: Arc<Scenario>, now: Instant) -> Self {
        let mut world = Self {
            windows: Vec::new(),
            processes: Vec::new(),
            frontmost: None,
            pending: Vec::new(),
            locked: scenario.screen_locked,
            pointer: Pointer::default(),
            clipboard: String::new(),
            user_input: None,
            next_pid: FIRST_PID,
            next_window_id: FIRST_WINDOW_ID,
            next_node: 1,
            next_start: 1,
            next_order: 0,
            scenario: Arc::clone(&scenario),
        };
        for (app, spec) in scenario.apps.iter().enumerate() {
            if spec.running {
                let pid = world.start_process(app);
                // A window that starts later in the file starts further in front.
                for window in world.start_windows(app) {
                    world.frontmost = Some(pid);
                    world.open_window(pid, window, Stacking::Front, now);
                }
            }
        }
        world.frontmost = world.topmost_pid();
        world.schedule(None, &scenario.events, now);
        world
    }

    /// Carries out every effect that is due at `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        loop {
            let next = self
                .pending
                .iter()
                .enumerate()
                .filter(|(_, pending)| pending.due <= now);
            let Some((index, _)) = next.min_by_key(|(_, pending)| (pending.due, pending.order))
            else {
                return;
            };
            let pending = self.pending.swap_remove(index);
            self.apply(pending.origin, &pending.change, pending.due);
        }
    }

    /// The scenario that this desktop came from.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The displays, main display first.
    pub(crate) fn displays(&self) -> &[DisplaySpec] {
        &self.scenario.displays
    }

    /// All windows, front to back, those that are minimised too.
    pub(crate) fn windows(&self) -> &[Arc<LiveWindow>] {
        &self.windows
    }

    /// The windows on the screen, front to back.
    pub(crate) fn shown_windows(&self) -> impl Iterator<Item = &Arc<LiveWindow>> {
        self.windows.iter().filter(|window| !window.minimized)
    }

    /// The window with this id, if it is on the screen and process `pid` owns it.
    pub(crate) fn window(&self, pid: u32, window_id: u32) -> Option<&Arc<LiveWindow>> {
        self.shown_windows()
            .find(|window| window.pid == pid && window.window_id == window_id)
    }

    /// The window with this id, minimised or not.
    pub(crate) fn live(&self, window_id: u32) -> Option<&Arc<LiveWindow>> {
        self.windows
            .iter()
            .find(|window| window.window_id == window_id)
    }

    /// The process table.
    pub(crate) fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The process with this id.
    pub(crate) fn process(&self, pid: u32) -> Option<Process> {
        self.processes
            .iter()
            .copied()
            .find(|process| process.pid == pid)
    }

    /// The application of a process.
    pub(crate) fn app_of(&self, pid: u32) -> Option<&AppSpec> {
        self.process(pid)
            .map(|process| &self.scenario.apps[process.app])
    }

    /// The process in the foreground.
    pub(crate) fn frontmost(&self) -> Option<u32> {
        self.frontmost
    }

    /// Whether the screen is locked.
    pub(crate) fn locked(&self) -> bool {
        self.locked
    }

    /// Starts the application with this id, or else with this name, without bringing it to the foreground.
    ///
    /// # Errors
    ///
    /// See [`LaunchRefusal`]; nothing was started then.
    pub(crate) fn launch(&mut self, name: &str, now: Instant) -> Result<Launched, LaunchRefusal> {
        let app = self.find_app(name)?;
        let spec = self.scenario.apps[app].clone();
        if spec.single_instance
            && let Some(process) = self.processes.iter().find(|process| process.app == app)
        {
            return Ok(Launched::Process(process.pid));
        }
        if self.processes.len() >= MAX_PROCESSES {
            return Err(LaunchRefusal::Refused);
        }
        match spec.launch {
            LaunchBehavior::Refused => Err(LaunchRefusal::Refused),
            LaunchBehavior::Denied => Err(LaunchRefusal::Denied),
            LaunchBehavior::NeverRegisters => Ok(Launched::Nothing),
            LaunchBehavior::NoWindow => Ok(Launched::Process(self.start_process(app))),
            LaunchBehavior::Opens => {
                let pid = self.start_process(app);
                if spec.takes_foreground {
                    self.frontmost = Some(pid);
                }
                for window in self.start_windows(app) {
                    self.schedule_change(
                        Some(pid),
                        spec.window_delay,
                        Change::OpenWindow(window),
                        now,
                    );
                }
                Ok(Launched::Process(pid))
            }
        }
    }

    /// Whether a person used pointer or keyboard a moment ago.
    pub(crate) fn user_active(&self, now: Instant) -> bool {
        let recent = |at: Instant| now.saturating_duration_since(at) < RECENT_INPUT;
        self.scenario.user_active || self.user_input.is_some_and(recent)
    }

    fn find_app(&self, name: &str) -> Result<usize, LaunchRefusal> {
        let installed = || {
            self.scenario
                .apps
                .iter()
                .enumerate()
                .filter(|(_, app)| app.launchable)
        };
        if let Some((app, _)) = installed().find(|(_, app)| app.app_id == name) {
            return Ok(app);
        }
        let mut named = installed().filter(|(_, app)| app.name == name);
        match (named.next(), named.next()) {
            (None, _) => Err(LaunchRefusal::NotFound),
            (Some((app, _)), None) => Ok(app),
            (Some(_), Some(_)) => Err(LaunchRefusal::Ambiguous),
        }
    }

    fn start_process(&mut self, app: usize) -> u32 {
        let pid = self.next_pid;
        self.next_pid += 1;
        let start = self.take_start();
        self.processes.push(Process { pid, app, start });
        pid
    }

    fn take_start(&mut self) -> u64 {
        let start = self.next_start;
        self.next_start += 1;
        start
    }

    /// Scenario indexes of the windows that open together with an application.
    fn start_windows(&self, app: usize) -> Vec<usize> {
        let windows = self.scenario.windows.iter().enumerate();
        windows
            .filter(|(_, window)| window.app == app && window.open)
            .map(|(index, _)| index)
            .collect()
    }

    fn open_window(&mut self, pid: u32, spec: usize, stacking: Stacking, now: Instant) {
        if self.windows.len() >= MAX_WINDOWS {
            return;
        }
        let siblings = self
            .windows
            .iter()
            .filter(|window| window.spec == spec)
            .count();
        let window_id = self.next_window_id;
        self.next_window_id += 1;
        let window = LiveWindow::open(
            &self.scenario,
            spec,
            pid,
            window_id,
            siblings,
            &mut self.next_node,
            now,
        );
        self.stack(Arc::new(window), stacking);
    }

    /// Puts a window into the window order: in front of its layer, or behind the windows of the foreground process.
    fn stack(&mut self, window: Arc<LiveWindow>, stacking: Stacking) {
        let layer_start = self
            .windows
            .iter()
            .position(|other| other.layer <= window.layer);
        let layer_start = layer_start.unwrap_or(self.windows.len());
        let index = match stacking {
            Stacking::Front => layer_start,
            Stacking::BehindForeground => {
                let is_foreground = |other: &Arc<LiveWindow>| {
                    other.layer == window.layer && Some(other.pid) == self.frontmost
                };
                self.windows
                    .iter()
                    .rposition(is_foreground)
                    .map_or(layer_start, |last| last + 1)
            }
        };
        self.windows.insert(index, window);
    }

    fn live_mut(&mut self, window_id: u32) -> Option<&mut LiveWindow> {
        let window = self
            .windows
            .iter_mut()
            .find(|window| window.window_id == window_id)?;
        Some(Arc::make_mut(window))
    }

    fn topmost_pid(&self) -> Option<u32> {
        self.shown_windows()
            .find(|window| window.layer == 0)
            .map(|window| window.pid)
    }

    /// Carries out or enqueues effects, in order, their texts filled in now.
    fn schedule(&mut self, origin: Option<u32>, effects: &[Effect], now: Instant) {
        let filled: Vec<_> = effects
            .iter()
            .map(|effect| (effect.delay, self.fill_change(origin, &effect.change)))
            .collect();
        for (delay, change) in filled {
            self.schedule_change(origin, delay, change, now);
        }
    }

    fn schedule_change(
        &mut self,
        origin: Option<u32>,
        delay: Duration,
        change: Change,
        now: Instant,
    ) {
        if delay.is_zero() {
            self.apply(origin, &change, now);
        } else if self.pending.len() < MAX_PENDING {
            let order = self.next_order;
            self.next_order += 1;
            self.pending.push(Pending {
                due: now + delay,
                order,
                origin,
                change,
            });
        } else {
            tracing::warn!(
                limit = MAX_PENDING,
                "a delayed effect of the virtual desktop was dropped"
            );
        }
    }
}

/// Where a window enters the window order.
#[derive(Clone, Copy, Debug)]
enum Stacking {
    Front,
    BehindForeground,
}
