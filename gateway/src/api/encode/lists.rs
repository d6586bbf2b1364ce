//! Lists: sessions, applications, windows; and permissions.

use maka_cu_protocol::results::{
    Permissions,
    lists::{AppEntry, WindowEntry},
};
use maka_proto::v1;

use super::{scalar, snapshot::text};
use crate::session::answer::SessionSummary;

/// A session.
#[must_use]
pub(crate) fn session(session: &SessionSummary) -> v1::Session {
    v1::Session {
        session_id: session.session_id.as_str().to_owned(),
        principal: session.principal.as_str().to_owned(),
        began_unix_ms: scalar::unix_ms(session.began_unix_ms),
        last_used_unix_ms: scalar::unix_ms(session.last_used_unix_ms),
        live_snapshots: session.live_snapshots,
        calls_in_flight: session.calls_in_flight,
        state: scalar::session_state(session.state).into(),
        quarantined: session.quarantined,
    }
}

/// An application.
#[must_use]
pub(crate) fn app(app: &AppEntry) -> v1::App {
    v1::App {
        app_id: app.app_id.as_str().to_owned(),
        pid: app.pid,
        name: text(app.name.as_ref()),
        window_count: app.window_count,
    }
}

/// A window.
#[must_use]
pub(crate) fn window(window: &WindowEntry) -> v1::Window {
    v1::Window {
        window: Some(scalar::window(window.window())),
        app_id: window.app_id.as_str().to_owned(),
        app_name: text(window.app_name.as_ref()),
        title: text(window.title.as_ref()),
        bounds_screen: window.bounds.map(scalar::screen_rect),
        layer: scalar::layer(window.layer),
        z_index: window.z_index,
        on_screen: window.on_screen,
        display_id: window
            .display_id
            .as_ref()
            .map(|display| display.as_str().to_owned()),
    }
}

/// What the executor may do.
#[must_use]
pub(crate) fn permissions(permissions: Permissions) -> v1::CheckPermissionsResponse {
    v1::CheckPermissionsResponse {
        accessibility: permissions.accessibility,
        screen_recording: permissions.screen_recording,
        screen_recording_probe: permissions
            .screen_recording_probe
            .map_or(
                v1::ScreenRecordingProbe::Unspecified,
                scalar::screen_recording_probe,
            )
            .into(),
    }
}
