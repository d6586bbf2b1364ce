//! `LaunchApp`.

use maka_cu_protocol::{
    ids::{Millis, SessionId},
    text::SomeText,
};
use maka_proto::v1;
use tonic::Status;

use super::{scalar, violations::Violations};
use crate::session::call::LaunchCall;

/// Longest name of an application.
const MAX_APP_BYTES: usize = 256;
/// Longest wait for a window.
const MAX_WAIT_MS: u32 = 60_000;

/// Decodes the request.
///
/// # Errors
/// INVALID_ARGUMENT naming every bad field.
pub(crate) fn launch(request: v1::LaunchAppRequest) -> Result<(SessionId, LaunchCall), Status> {
    let v1::LaunchAppRequest {
        session_id,
        tool_call_id,
        app,
        wait_for_window_ms,
        turn,
    } = request;
    let mut violations = Violations::default();
    let session = scalar::session_id(&mut violations, &session_id);
    let tool_call_id = scalar::tool_call_id(&mut violations, &tool_call_id);
    let turn = scalar::turn(&mut violations, turn);
    let app = match SomeText::new(app).filter(|app| app.as_str().len() <= MAX_APP_BYTES) {
        Some(app) => Some(app),
        None => violations.refuse("app", "must have 1 to 256 bytes"),
    };
    let wait = match wait_for_window_ms {
        Some(wait) if wait > MAX_WAIT_MS => {
            violations.refuse("wait_for_window_ms", "must not be above 60000")
        }
        wait => Some(wait.map(|wait| Millis(wait.into()))),
    };
    let decoded = (|| {
        Some((
            session?,
            LaunchCall {
                tool_call_id: tool_call_id?,
                turn: turn?,
                app: app?,
                wait_for_window_ms: wait?,
            },
        ))
    })();
    violations.finish(decoded)
}
