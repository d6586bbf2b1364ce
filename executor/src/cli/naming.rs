//! From what a person typed to one window.
//!
//! Unlike a host, a person may also use the name that the application shows, in any case, where only one application has
//! it. What is found is handed on as an exact target.

use std::collections::BTreeSet;

use maka_cu_protocol::ids::{AppId, WindowKey};
use maka_cu_protocol::params::ObserveTarget;

use super::plain;
use super::trouble::Trouble;
use crate::backend::desktop::{RunningApp, WindowInfo};

/// What a person names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// An application, by id or by name.
    App(String),
    /// A window, by id.
    Window(u32),
}

/// The target that is meant.
///
/// # Errors
/// [`Trouble`] when there is none, or more than one.
pub fn target(
    wanted: &Wanted,
    apps: &[RunningApp],
    windows: &[WindowInfo],
) -> Result<ObserveTarget, Trouble> {
    match wanted {
        Wanted::Window(window_id) => window(*window_id, windows).map(ObserveTarget::Window),
        Wanted::App(name) => app(name, apps, windows).map(ObserveTarget::App),
    }
}

fn window(window_id: u32, windows: &[WindowInfo]) -> Result<WindowKey, Trouble> {
    windows
        .iter()
        .map(|window| window.key)
        .find(|key| key.window_id == window_id)
        .ok_or(Trouble::NoSuchWindow { window_id })
}

fn app(name: &str, apps: &[RunningApp], windows: &[WindowInfo]) -> Result<AppId, Trouble> {
    let named = apps
        .iter()
        .map(|app| (&app.app_id, app.name.as_ref()))
        .chain(
            windows
                .iter()
                .map(|window| (&window.app_id, window.app_name.as_ref())),
        );
    let mut called = BTreeSet::new();
    for (id, shown) in named {
        if id.as_str() == name {
            return with_window(id, windows);
        }
        if shown.is_some_and(|shown| shown.as_str().to_lowercase() == name.to_lowercase()) {
            called.insert(id.clone());
        }
    }
    let wanted = || plain::bare(name, 100);
    let mut ids = called.into_iter();
    match (ids.next(), ids.next()) {
        (None, _) => Err(Trouble::NoSuchApp { wanted: wanted() }),
        (Some(id), None) => with_window(&id, windows),
        (Some(first), Some(second)) => Err(Trouble::SeveralApps {
            wanted: wanted(),
            ids: [first, second].into_iter().chain(ids).collect(),
        }),
    }
}

fn with_window(id: &AppId, windows: &[WindowInfo]) -> Result<AppId, Trouble> {
    if windows
        .iter()
        .any(|window| window.app_id == *id && window.layer == 0)
    {
        Ok(id.clone())
    } else {
        Err(Trouble::NoWindow {
            app: plain::bare(id.as_str(), 100),
        })
    }
}
