//! From a window to its accessible, starting at the X side: not every top-level of an application is a window, and not
//! every window has an accessible.

use std::collections::VecDeque;

use super::accessibility::{APPLICATION, Accessibility};
use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};
use super::frame::{Extents, Toolkit};
use super::matching::{AccessibleSide, WindowSide, choose};
use super::reader::Reader;
use super::vocabulary::{ROLE_MENU_BAR, State};
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
        let toolkit = toolkit_of(bus, application).await?;
        tops.extend(top_levels(bus, application, toolkit, deadline).await?);
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

/// A top-level accessible. Holds application text; has no `Debug`.
struct TopLevel {
    object: ObjectRef,
    toolkit: Toolkit,
    name: String,
    extents: Option<Extents>,
}

async fn top_levels(
    bus: &Bus,
    application: &ObjectRef,
    toolkit: Toolkit,
    deadline: &Deadline,
) -> Result<Vec<TopLevel>, CallError> {
    let reader = Reader::new(bus, toolkit, deadline.clone());
    let (_, children) = match reader.role_and_children(application).await {
        Ok(found) => found,
        // It left meanwhile.
        Err(CallError::Gone | CallError::NoReply) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut tops = Vec::new();
    for object in children {
        let core = match reader.core(&object).await {
            Ok(core) => core,
            Err(
                CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed,
            ) => continue,
            Err(error @ (CallError::Timeout | CallError::Lost)) => return Err(error),
        };
        // Pop-ups that are prepared and not shown are top-levels too. Minimised windows are not showing but visible.
        if !core.states.has(State::Showing) && !core.states.has(State::Visible) {
            continue;
        }
        let kind = core.interfaces.component.then_some(SCREEN_COORDINATES);
        let extents = reader.extents(&object, kind).await.unwrap_or_default();
        tops.push(TopLevel {
            object,
            toolkit,
            name: core.name,
            extents,
        });
    }
    Ok(tops)
}

async fn toolkit_of(bus: &Bus, application: &ObjectRef) -> Result<Toolkit, CallError> {
    let text = async |name| match bus
        .property(application, APPLICATION, name, CALL_TIMEOUT)
        .await
    {
        Ok(value) => Ok(String::try_from(value).unwrap_or_default()),
        Err(error @ (CallError::Timeout | CallError::Lost)) => Err(error),
        Err(CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed) => {
            Ok(String::new())
        }
    };
    Ok(Toolkit::recognise(
        &text("ToolkitName").await?,
        &text("Version").await?,
    ))
}

/// The menu bar below a window's accessible.
pub(super) async fn menu_bar(
    reader: &Reader<'_>,
    root: &ObjectRef,
) -> Result<Option<ObjectRef>, CallError> {
    let mut queue = VecDeque::from([(root.clone(), 0)]);
    let mut read = 0;
    while let Some((object, level)) = queue.pop_front() {
        read += 1;
        if read > MENU_BAR_NODES {
            return Ok(None);
        }
        let (core, children) = match reader.role_and_children(&object).await {
            Ok(found) => found,
            Err(
                CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed,
            ) => continue,
            Err(error @ (CallError::Timeout | CallError::Lost)) => return Err(error),
        };
        if core.role == ROLE_MENU_BAR {
            return Ok(Some(object));
        }
        if level + 1 < MENU_BAR_LEVELS {
            queue.extend(children.into_iter().map(|child| (child, level + 1)));
        }
    }
    Ok(None)
}
