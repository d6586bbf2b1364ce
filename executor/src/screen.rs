//! `screen.capture`: what one display shows (spec §3.10). No snapshot, no binding, no change of state.

use std::time::Instant;

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::params::ScreenCaptureParams;
use maka_cu_protocol::results::ScreenCaptured;
use maka_cu_protocol::rpc::RpcError;

use crate::deadline::Deadline;
use crate::executor::{Executor, Fault, LIST_BUDGET, now_ms};
use crate::observe::picture;
use crate::server::ticket::Ticket;

/// The method.
///
/// # Errors
/// `invalid_params` for a display that is not attached, before any file is written; else what the desktop refuses with.
pub fn capture(
    executor: &Executor,
    params: &ScreenCaptureParams,
    ticket: &Ticket,
) -> Result<ScreenCaptured, Fault> {
    let session = executor.sessions().find(&params.session)?;
    let within = || Deadline::cancellable(LIST_BUDGET, ticket.cancelled().clone());
    if executor.backend().screen_locked(&within())? {
        return Err(DomainCode::ScreenLocked.into());
    }
    let displays = executor.backend().displays(&within())?;
    let display = match &params.display_id {
        // An id that names no display is never replaced by the main one.
        Some(display_id) => displays
            .iter()
            .find(|display| display.display_id == *display_id)
            .ok_or_else(|| RpcError::invalid_params("displayId"))?,
        None => displays.first().ok_or(DomainCode::CaptureFailed)?,
    };
    let (taken, captured_at) = (Instant::now(), now_ms());
    let bitmap = executor
        .backend()
        .capture_display(&display.display_id, &within())?;
    let picture = picture::write(executor, &bitmap, display.logical_bounds.width())?;
    ticket.commit()?;
    executor
        .sessions()
        .keep_capture(&session, taken, picture.file)?;
    Ok(ScreenCaptured {
        image: picture.reference,
        display_id: display.display_id.clone(),
        captured_at,
    })
}
