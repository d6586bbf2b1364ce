//! `snapshot`: one window as an outline, as JSON, and as a picture with numbered boxes.

use std::fs;
use std::path::Path;

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::handshake::Limits;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::json::Json as _;
use maka_cu_protocol::menu::MenuScope;
use maka_cu_protocol::snapshot::Snapshot;

use super::marks::{marked, marks};
use super::naming::{self, Wanted};
use super::outline::outline;
use super::style::Style;
use super::trouble::Trouble;
use crate::backend::desktop::WindowInfo;
use crate::backend::open;
use crate::command_line::SnapshotOptions;
use crate::deadline::Deadline;
use crate::executor::{Executor, LIST_BUDGET};
use crate::exit::Exit;
use crate::image::encode;
use crate::limits;
use crate::observe::{self, Look};
use crate::server::ticket::Ticket;

/// The session of this process; nobody else sees it.
const SESSION: &str = "terminal";

/// The command.
#[must_use]
pub fn run(options: &SnapshotOptions) -> Exit {
    super::finish(show(options))
}

fn show(options: &SnapshotOptions) -> Result<String, Trouble> {
    let backend = open::open(&options.desktop).map_err(Trouble::NoDesktop)?;
    // There is no message that the snapshot has to fit into.
    let limits = Limits {
        max_response_bytes: u64::MAX,
        ..limits::with_overrides(&[])
    };
    let executor = Executor::new(backend, limits).map_err(|_| Trouble::System)?;
    let (snapshot, windows) = take(&executor, options)?;
    if let Some(path) = &options.image {
        write_picture(&executor, &snapshot, options.marks, path)?;
    }
    Ok(match (options.json, options.wants_tree()) {
        (true, _) => format!("{}\n", snapshot.write()),
        (false, true) => outline(&snapshot, &windows, Style::of(options.color)),
        (false, false) => String::new(),
    })
}

/// The snapshot, and the windows that were there when it was taken.
fn take(
    executor: &Executor,
    options: &SnapshotOptions,
) -> Result<(Snapshot, Vec<WindowInfo>), Trouble> {
    let backend = executor.backend();
    let windows = backend.windows(&Deadline::within(LIST_BUDGET))?;
    let apps = backend.applications(&Deadline::within(LIST_BUDGET))?;
    let wanted = match (options.window, &options.app) {
        (Some(window_id), _) => Wanted::Window(window_id),
        (None, app) => Wanted::App(app.clone().unwrap_or_default()),
    };
    let target = naming::target(&wanted, &apps, &windows)?;
    let session = SessionId::try_new(SESSION).expect("the name is not empty");
    // Nothing can be in the way of the first session of a process.
    let handle = executor
        .sessions()
        .adopt(&session)
        .map_err(|_| Trouble::System)?;
    let menu = options.menu.then_some(MenuScope::All);
    let look = Look::at(executor, target, false, menu);
    let deadline = executor.deadline_of(&Ticket::default());
    let frame = observe::take(executor, &handle, &look, &deadline)?;
    Ok((frame.wire, windows))
}

fn write_picture(
    executor: &Executor,
    snapshot: &Snapshot,
    with_marks: bool,
    path: &Path,
) -> Result<(), Trouble> {
    if executor.backend().capabilities().image_formats.is_empty() {
        return Err(Trouble::NoPictures);
    }
    let target = &snapshot.target;
    let bitmap = executor
        .backend()
        .capture_window(target.window(), &Deadline::within(LIST_BUDGET))?;
    let failed = || Trouble::Refused {
        code: DomainCode::CaptureFailed,
        permission: None,
    };
    let picture = if with_marks {
        let width = target.bounds.width();
        if width <= 0.0 {
            return Err(failed());
        }
        let scale = f64::from(bitmap.width()) / width;
        marked(&bitmap, scale, &marks(&snapshot.elements)).ok_or_else(failed)?
    } else {
        bitmap
    };
    let file = encode::png(&picture).map_err(|_| failed())?;
    fs::write(path, file).map_err(|source| Trouble::NotWritten {
        path: path.to_owned(),
        source,
    })
}
