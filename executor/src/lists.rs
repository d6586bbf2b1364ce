//! Sessions, lists and permissions: the methods of the control lane.
//!
//! None of them has any effect on a snapshot, apart from the end of a session.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::params::{
    PermissionsCheckParams, SessionBeginParams, SessionEndParams, WindowListParams,
};
use maka_cu_protocol::results::lists::{AppEntry, AppList, WindowEntry, WindowList};
use maka_cu_protocol::results::{Done, Permissions, Released, SessionEnded};
use maka_cu_protocol::rpc::RpcError;

use crate::backend::desktop::{PermissionPrompt, RunningApp, WindowInfo};
use crate::deadline::Deadline;
use crate::executor::{Executor, Fault, LIST_BUDGET};
use crate::server::ticket::Ticket;
use crate::session::BeginError;

/// `session.begin`.
///
/// # Errors
/// `invalid_params` for a live id, `timeout` when too many sessions are live.
pub fn session_begin(
    executor: &Executor,
    params: &SessionBeginParams,
    ticket: &Ticket,
) -> Result<Done, Fault> {
    ticket.commit()?;
    match executor
        .sessions()
        .begin(params.session.clone(), params.capture_scope)
    {
        Ok(()) => Ok(Done),
        Err(BeginError::Live) => Err(RpcError::invalid_params("session").into()),
        Err(BeginError::TooMany) => Err(DomainCode::Timeout.into()),
    }
}

/// `session.end`; ending an unknown session succeeds and releases nothing.
///
/// # Errors
/// `aborted`.
pub fn session_end(
    executor: &Executor,
    params: &SessionEndParams,
    ticket: &Ticket,
) -> Result<SessionEnded, Fault> {
    ticket.commit()?;
    let session = executor.sessions().find(&params.session);
    let released = executor.sessions().end(&params.session);
    if let Ok(session) = session {
        executor
            .held_buttons()
            .release(executor.backend(), &session);
    }
    Ok(SessionEnded {
        released: Released {
            snapshots: released.snapshots,
            images: released.images,
            streams: 0,
        },
    })
}

/// `window.list`.
///
/// # Errors
/// `session_unknown`, or what the desktop refuses with.
pub fn window_list(
    executor: &Executor,
    params: &WindowListParams,
    ticket: &Ticket,
) -> Result<WindowList, Fault> {
    executor.sessions().find(&params.session)?;
    let windows = executor.backend().windows(&within(ticket))?;
    ticket.commit()?;
    Ok(WindowList {
        windows: windows.into_iter().map(window_entry).collect(),
    })
}

/// `apps.list`, read live.
///
/// # Errors
/// What the desktop refuses with.
pub fn apps_list(executor: &Executor, ticket: &Ticket) -> Result<AppList, Fault> {
    let deadline = within(ticket);
    let windows = executor.backend().windows(&deadline)?;
    let apps = executor.backend().applications(&deadline)?;
    ticket.commit()?;
    Ok(AppList {
        apps: apps
            .into_iter()
            .map(|app| app_entry(app, &windows))
            .collect(),
    })
}

/// `permissions.check`.
///
/// # Errors
/// `timeout`.
pub fn permissions_check(
    executor: &Executor,
    params: &PermissionsCheckParams,
    ticket: &Ticket,
) -> Result<Permissions, Fault> {
    let prompt = match params.prompt {
        true => {
            // Asking a person is an effect.
            ticket.commit()?;
            PermissionPrompt::Ask
        }
        false => PermissionPrompt::Never,
    };
    let permissions = executor.backend().permissions(prompt, &within(ticket))?;
    ticket.commit()?;
    Ok(Permissions {
        accessibility: permissions.accessibility,
        screen_recording: permissions.screen_recording,
        screen_recording_probe: Some(permissions.screen_recording_probe),
    })
}

fn within(ticket: &Ticket) -> Deadline {
    Deadline::cancellable(LIST_BUDGET, ticket.cancelled().clone())
}

/// A window as `window.list` has it.
#[must_use]
pub fn window_entry(window: WindowInfo) -> WindowEntry {
    WindowEntry {
        pid: window.key.pid,
        window_id: window.key.window_id,
        app_id: window.app_id,
        layer: window.layer,
        z_index: window.z_index,
        on_screen: window.on_screen,
        app_name: window.app_name,
        title: window.title,
        bounds: window.is_placed.then_some(window.bounds),
        display_id: window.display_id,
    }
}

/// An application as `apps.list` has it, with the number of its ordinary windows among these.
#[must_use]
pub fn app_entry(app: RunningApp, windows: &[WindowInfo]) -> AppEntry {
    let own = windows
        .iter()
        .filter(|window| window.key.pid == app.pid && window.layer == 0);
    AppEntry {
        window_count: u32::try_from(own.count()).unwrap_or(u32::MAX),
        app_id: app.app_id,
        pid: app.pid,
        name: app.name,
        running: Some(true),
    }
}
