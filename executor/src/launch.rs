//! `apps.launch`: starts an application without activating it and waits for its window (spec §3.4).

use std::time::{Duration, Instant};

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::Millis;
use maka_cu_protocol::params::LaunchParams;
use maka_cu_protocol::results::{Launched, LaunchedWindow, Waited};
use maka_cu_protocol::rpc::RpcError;
use maka_cu_protocol::sets::WaitedReason;

use crate::backend::desktop::{RunningApp, WindowInfo};
use crate::backend::launch::{LaunchProgress, LaunchTicket};
use crate::deadline::Deadline;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::server::ticket::Ticket;

/// Time for the process to register when the caller names none.
const DEFAULT_WAIT: Duration = Duration::from_millis(2_000);

/// Longest wait that is taken; beyond it is `invalid_params`.
const LONGEST_WAIT_MS: u64 = 60_000;

/// Pause between two looks: short at first, since a window that is there is there soon.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(150);

/// The method.
///
/// # Errors
/// `app_not_found`, `timeout`, `unsupported_action`, `dispatch_refused`.
pub fn launch(
    executor: &Executor,
    params: &LaunchParams,
    ticket: &Ticket,
) -> Result<Launched, Fault> {
    executor.sessions().find(&params.session)?;
    let wait_asked = params.wait_for_window_ms.map(|Millis(ms)| ms);
    if wait_asked.is_some_and(|ms| ms > LONGEST_WAIT_MS) {
        return Err(RpcError::invalid_params("waitForWindowMs").into());
    }
    let backend = executor.backend();
    let list = || Deadline::within(LIST_BUDGET);
    // Two live reads, before and after: what was requested says nothing about what happened.
    let frontmost_before = backend.frontmost_pid(&list())?;
    ticket.commit()?;
    let started = Instant::now();
    let budget = wait_asked.map_or(DEFAULT_WAIT, Duration::from_millis);
    // One budget for all that follows. A cancel cannot undo the launch any more, but it ends the wait, and the answer says
    // what is there by then.
    let patience = Deadline::cancellable(budget, ticket.cancelled().clone());
    let launch = backend.launch(params.app.as_str(), &list())?;
    let goal = if wait_asked.is_some() {
        Goal::Window
    } else {
        Goal::Process
    };
    let (app, windows) = wait(executor, &launch, goal, &patience)?;
    // It was started, so a desktop that cannot be read now is no refusal: the caller has to look for itself.
    let frontmost_after = backend
        .frontmost_pid(&list())
        .map_err(|_| DomainCode::Timeout)?;
    let reason = match goal {
        Goal::Process => WaitedReason::NotRequested,
        Goal::Window if windows.is_empty() => WaitedReason::Timeout,
        Goal::Window => WaitedReason::WindowAppeared,
    };
    Ok(Launched {
        pid: app.pid,
        app_id: app.app_id,
        name: app.name,
        foreground_taken: frontmost_before != frontmost_after,
        windows: windows
            .into_iter()
            .map(|window| LaunchedWindow {
                window_id: window.key.window_id,
                title: window.title,
            })
            .collect(),
        waited: Waited {
            ms: Millis(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
            reason,
        },
    })
}

/// What the caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// The process is in the process table.
    Process,
    /// It has a window.
    Window,
}

/// Looks until the goal is reached or the patience is over; at least once.
fn wait(
    executor: &Executor,
    launch: &LaunchTicket,
    goal: Goal,
    patience: &Deadline,
) -> Result<(RunningApp, Vec<WindowInfo>), Fault> {
    let mut pause = FIRST_PAUSE;
    let mut seen: Option<RunningApp> = None;
    loop {
        // The look itself may take as long as a list does, also when the patience ends meanwhile.
        let progress = executor
            .backend()
            .launch_progress(launch, &Deadline::within(LIST_BUDGET))
            .map_err(|_| DomainCode::Timeout)?;
        match progress {
            LaunchProgress::Running { app, windows }
                if goal == Goal::Process || !windows.is_empty() =>
            {
                return Ok((app, windows));
            }
            LaunchProgress::Running { app, windows: _ } => seen = Some(app),
            LaunchProgress::Starting => {}
            // It was started and ended, perhaps before the first look: a launch that happened is no refusal.
            LaunchProgress::Exited => return Err(DomainCode::Timeout.into()),
        }
        if patience.is_over() {
            return match seen {
                Some(app) => Ok((app, Vec::new())),
                None => Err(DomainCode::Timeout.into()),
            };
        }
        patience.pause(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
