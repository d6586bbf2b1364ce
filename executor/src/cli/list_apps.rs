//! `list-apps`: what runs on the desktop, with its windows.

use maka_cu_protocol::json::Json as _;
use serde_json::{Value, json};

use super::plain::{bare, quoted, width};
use super::style::{Ink, Style};
use super::trouble::Trouble;
use crate::backend::desktop::{RunningApp, WindowInfo};
use crate::backend::open;
use crate::command_line::ListAppsOptions;
use crate::deadline::Deadline;
use crate::executor::LIST_BUDGET;
use crate::exit::Exit;
use crate::lists::{app_entry, window_entry};

/// Columns for an application id, a name, a title.
const COLUMNS: usize = 48;

/// The command.
#[must_use]
pub fn run(options: &ListAppsOptions) -> Exit {
    super::finish(list(options))
}

fn list(options: &ListAppsOptions) -> Result<String, Trouble> {
    let backend = open::open(&options.desktop).map_err(Trouble::NoDesktop)?;
    let windows = backend.windows(&Deadline::within(LIST_BUDGET))?;
    let apps = backend.applications(&Deadline::within(LIST_BUDGET))?;
    Ok(if options.json {
        as_json(&apps, &windows)
    } else {
        as_text(&apps, &windows, Style::of(options.color))
    })
}

/// The entries of `apps.list`, each with its entries of `window.list`.
fn as_json(apps: &[RunningApp], windows: &[WindowInfo]) -> String {
    let entries: Vec<Value> = apps
        .iter()
        .map(|app| {
            let mut entry = app_entry(app.clone(), windows).write();
            let own = windows_of(app, windows);
            entry["windows"] = own
                .map(|window| window_entry(window.clone()).write())
                .collect();
            entry
        })
        .collect();
    format!("{}\n", json!({ "apps": entries }))
}

fn as_text(apps: &[RunningApp], windows: &[WindowInfo], style: Style) -> String {
    if apps.is_empty() {
        return "no application runs on this desktop\n".to_owned();
    }
    let ids: Vec<String> = apps
        .iter()
        .map(|app| bare(app.app_id.as_str(), COLUMNS))
        .collect();
    let widest = ids.iter().map(|id| width(id)).max().unwrap_or(0);
    let mut text = String::new();
    for (app, id) in apps.iter().zip(&ids) {
        let pad = " ".repeat(widest - width(id));
        let name = app
            .name
            .as_ref()
            .map_or_else(String::new, |name| quoted(name.as_str(), COLUMNS));
        let line = format!(
            "{}{pad}  {}  {name}",
            style.paint(Ink::Bold, id),
            style.paint(Ink::Dim, &format!("pid {:<7}", app.pid)),
        );
        text.push_str(line.trim_end());
        text.push('\n');
        for window in windows_of(app, windows) {
            text.push_str(&window_line(window, style));
        }
    }
    text
}

fn window_line(window: &WindowInfo, style: Style) -> String {
    let title = window.title.as_ref().map_or_else(
        || style.paint(Ink::Dim, "without a title"),
        |title| quoted(title.as_str(), COLUMNS),
    );
    let bounds = window.bounds;
    let mut place = format!("{}×{}", bounds.width(), bounds.height());
    if window.is_placed {
        place.push_str(&format!(" at {},{}", bounds.x(), bounds.y()));
    }
    if window.layer != 0 {
        place.push_str(&format!(", layer {}", window.layer));
    }
    if !window.on_screen {
        place.push_str(", not on the screen");
    }
    format!(
        "    window {}  {title}  {}\n",
        style.paint(Ink::Number, &window.key.window_id.to_string()),
        style.paint(Ink::Dim, &place),
    )
}

fn windows_of<'a>(
    app: &RunningApp,
    windows: &'a [WindowInfo],
) -> impl Iterator<Item = &'a WindowInfo> + use<'a> {
    let pid = app.pid;
    windows.iter().filter(move |window| window.key.pid == pid)
}
