//! The top-level accessibles of an application: what its windows are to the accessibility bus.

use super::accessibility::Accessibility;
use super::bus::{Bus, CallError, ObjectRef};
use super::frame::{Extents, Toolkit};
use super::reader::Reader;
use super::vocabulary::{State, States};
use crate::deadline::Deadline;

/// Top-levels of one application that are looked at. A program with more windows than that is none that a person works in.
const MOST_TOP_LEVELS: usize = 128;

/// A top-level accessible. Holds application text; has no `Debug`.
#[derive(Clone)]
pub(super) struct TopLevel {
    pub(super) object: ObjectRef,
    pub(super) toolkit: Toolkit,
    pub(super) role: u32,
    pub(super) states: States,
    pub(super) name: String,
    pub(super) extents: Option<Extents>,
}

/// The top-levels that are shown or minimised. Extents are asked for in coordinates of this type, which is an argument of
/// `Component.GetExtents`.
///
/// # Errors
/// [`CallError::Timeout`] and [`CallError::Lost`] when one of them, or the application, does not answer; any other when the
/// application itself answers with it.
pub(super) async fn top_levels(
    bus: &Bus,
    application: &ObjectRef,
    toolkit: Toolkit,
    coordinates: u32,
    deadline: &Deadline,
) -> Result<Vec<TopLevel>, CallError> {
    let reader = Reader::new(bus, toolkit, deadline.clone());
    let (_, mut children) = reader.role_and_children(application).await?;
    children.truncate(MOST_TOP_LEVELS);
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
        let kind = core.interfaces.component.then_some(coordinates);
        let extents = reader.extents(&object, kind).await.unwrap_or_default();
        tops.push(TopLevel {
            object,
            toolkit,
            role: core.role,
            states: core.states,
            name: core.name,
            extents,
        });
    }
    Ok(tops)
}

/// What the process draws its windows with; `None` when it is not on the bus, or answers in two ways.
pub(super) async fn toolkit(
    accessibility: &Accessibility,
    bus: &Bus,
    pid: u32,
) -> Result<Option<Toolkit>, CallError> {
    let mut found = None;
    for application in accessibility.applications_of(bus, pid).await? {
        let toolkit = accessibility.toolkit_of(bus, &application).await?;
        if found.is_some_and(|found| found != toolkit) {
            return Ok(None);
        }
        found = Some(toolkit);
    }
    Ok(found)
}
