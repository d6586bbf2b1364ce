//! What is done to the desktop: presses, value writes, launches.
//!
//! Everything goes to the control itself. There is no pointer, no keyboard and no window that comes to the front.

use std::time::Instant;

use maka_cu_protocol::sets::{ElementVerb, Path};

use super::accessibility::VirtualNode;
use super::scenario::Content;
use super::state::{ActionRefusal, LaunchRefusal, Launched, World};
use super::window;
use crate::backend::error::BackendError;
use crate::backend::launch::{LaunchProgress, LaunchTicket};
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::backend::tree::NodeRef;

/// Performs one action on one node.
pub(super) fn perform(
    world: &mut World,
    node: &NodeRef,
    command: &ElementCommand,
) -> Result<Performed, PerformError> {
    let node = *node
        .downcast::<VirtualNode>()
        .ok_or(PerformError::NotActionable)?;
    let now = Instant::now();
    let (path, outcome) = match command {
        ElementCommand::Perform(ElementVerb::Press) => {
            let path = press_path(world, node);
            (path, world.press(node.window_id, node.node, now))
        }
        ElementCommand::Perform(
            ElementVerb::Confirm
            | ElementVerb::Open
            | ElementVerb::ShowMenu
            | ElementVerb::Raise
            | ElementVerb::Cancel
            | ElementVerb::Pick
            | ElementVerb::Increment
            | ElementVerb::Decrement
            | ElementVerb::ScrollUp
            | ElementVerb::ScrollDown
            | ElementVerb::ScrollLeft
            | ElementVerb::ScrollRight
            | ElementVerb::ScrollToVisible,
        ) => return Err(PerformError::NotActionable),
        ElementCommand::SetValue(text) => (
            Path::AxAttribute,
            world.write(node.window_id, node.node, text.as_str(), now),
        ),
        ElementCommand::SelectText(_)
        | ElementCommand::Scroll { .. }
        | ElementCommand::MoveWindow(_)
        | ElementCommand::ResizeWindow(_)
        | ElementCommand::MinimizeWindow => return Err(PerformError::NotActionable),
    };
    match outcome {
        Ok(()) => Ok(Performed::by(path)),
        Err(ActionRefusal::NotActionable) => Err(PerformError::NotActionable),
        Err(ActionRefusal::Refused) => Err(PerformError::Refused { path }),
        Err(ActionRefusal::Unknown) => Err(PerformError::Unknown { path }),
    }
}

/// Asks for an application to be started.
pub(super) fn launch(world: &mut World, name: &str) -> Result<LaunchTicket, BackendError> {
    world
        .launch(name, Instant::now())
        .map(LaunchTicket::new::<Launched>)
        .map_err(|refusal| match refusal {
            LaunchRefusal::NotFound => BackendError::AppNotFound,
            LaunchRefusal::Ambiguous => BackendError::Ambiguous,
            LaunchRefusal::Denied => BackendError::Unsupported,
            LaunchRefusal::Refused => BackendError::Refused,
        })
}

/// How far a launch has come.
pub(super) fn launch_progress(
    world: &World,
    ticket: &LaunchTicket,
) -> Result<LaunchProgress, BackendError> {
    let pid = match ticket.downcast::<Launched>() {
        Some(Launched::Process(pid)) => *pid,
        Some(Launched::Nothing) => return Ok(LaunchProgress::Starting),
        None => return Err(BackendError::Unsupported),
    };
    let Some(process) = world.process(pid) else {
        return Ok(LaunchProgress::Exited);
    };
    let own = |info: &crate::backend::desktop::WindowInfo| info.key.pid == pid && info.layer == 0;
    let windows = window::list(world).into_iter().filter(own).collect();
    Ok(LaunchProgress::Running {
        app: window::running_app(world, &process),
        windows,
    })
}

/// A row is selected in its list, everything else is pressed itself.
fn press_path(world: &World, node: VirtualNode) -> Path {
    let window = world
        .windows()
        .iter()
        .find(|window| window.window_id == node.window_id);
    match window
        .and_then(|window| window.node(node.node))
        .map(|node| &node.control.content)
    {
        Some(Content::Row { .. }) => Path::AxSelect,
        Some(_) | None => Path::AxAction,
    }
}
