//! From a window to its accessible, starting at the X side: not every top-level of an application is a window, and not
//! every window has an accessible.

use futures_util::StreamExt;
use futures_util::stream;

use super::accessibility::Accessibility;
use super::bus::{Bus, CallError, ObjectRef};
use super::frame::Toolkit;
use super::matching::{AccessibleSide, WindowSide, choose};
use super::reader::{IN_FLIGHT, Reader};
use super::toplevels::top_levels;
use super::vocabulary::ROLE_MENU_BAR;
use super::window::XWindow;
use crate::deadline::Deadline;

/// `Component.GetExtents` in screen coordinates.
const SCREEN_COORDINATES: u32 = 0;
/// A menu bar sits near the top of the tree; a search that went through a whole document would be a walk.
const MENU_BAR_LEVELS: usize = 5;
const MENU_BAR_NODES: usize = 200;

/// What was found for a window.
pub(super) enum Located {
    /// Its accessible.
    Root { object: ObjectRef, toolkit: Toolkit },
    /// Its process is on the bus, but nothing there fits this window and no other.
    NoMatch,
    /// Its process is not on the bus.
    NoApplication,
}

/// Finds the accessible of `windows[wanted]`; `windows` are all windows of the process `pid`.
pub(super) async fn locate(
    accessibility: &Accessibility,
    bus: &Bus,
    pid: u32,
    windows: &[XWindow],
    wanted: usize,
    deadline: &Deadline,
) -> Result<Located, CallError> {
    let applications = accessibility.applications_of(bus, pid).await?;
    if applications.is_empty() {
        return Ok(Located::NoApplication);
    }
    let mut tops = Vec::new();
    for application in &applications {
        let toolkit = accessibility.toolkit_of(bus, application).await?;
        let kind = SCREEN_COORDINATES;
        match top_levels(bus, application, toolkit, kind, deadline).await {
            Ok(found) => tops.extend(found),
            // It left meanwhile.
            Err(CallError::Gone | CallError::NoReply) => {}
            Err(error) => return Err(error),
        }
    }
    let sides: Vec<AccessibleSide<'_>> = tops
        .iter()
        .map(|top| AccessibleSide {
            name: &top.name,
            extents: top.extents,
        })
        .collect();
    let windows: Vec<WindowSide<'_>> = windows
        .iter()
        .map(|window| WindowSide {
            title: &window.title.0,
            area: window.area,
        })
        .collect();
    Ok(match choose(&windows, wanted, &sides) {
        Some(index) => Located::Root {
            object: tops[index].object.clone(),
            toolkit: tops[index].toolkit,
        },
        None => Located::NoMatch,
    })
}

/// The menu bar below a window's accessible. Goes level by level, each level side by side, so that one control that does not
/// answer costs its time limit and hides nothing beside it.
///
/// # Errors
/// [`CallError::Timeout`] when it was not found and some part did not answer, [`CallError::Lost`].
pub(super) async fn menu_bar(
    reader: &Reader<'_>,
    root: &ObjectRef,
) -> Result<Option<ObjectRef>, CallError> {
    let mut level = vec![root.clone()];
    let mut left = MENU_BAR_NODES;
    let mut silent = false;
    for depth in 1..=MENU_BAR_LEVELS {
        level.truncate(left);
        left -= level.len();
        let mut found = Vec::with_capacity(level.len());
        let cores = stream::iter(level)
            .map(|object| async move {
                let core = reader.core(&object).await;
                (object, core)
            })
            .buffered(IN_FLIGHT)
            .collect::<Vec<_>>();
        for (object, core) in cores.await {
            match unless_gone(core, &mut silent)? {
                Some(core) if core.role == ROLE_MENU_BAR => return Ok(Some(object)),
                Some(_) => found.push(object),
                None => {}
            }
        }
        level = Vec::new();
        if depth == MENU_BAR_LEVELS {
            break;
        }
        let children = stream::iter(found)
            .map(|object| async move { reader.children(&object).await })
            .buffered(IN_FLIGHT)
            .collect::<Vec<_>>();
        for children in children.await {
            level.extend(unless_gone(children, &mut silent)?.unwrap_or_default());
        }
        if level.is_empty() || left == 0 {
            break;
        }
    }
    if silent {
        Err(CallError::Timeout)
    } else {
        Ok(None)
    }
}

/// `None` for an object that is not there, or did not answer, which is noted.
fn unless_gone<T>(answer: Result<T, CallError>, silent: &mut bool) -> Result<Option<T>, CallError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed) => {
            Ok(None)
        }
        Err(CallError::Timeout) => {
            *silent = true;
            Ok(None)
        }
        Err(CallError::Lost) => Err(CallError::Lost),
    }
}
