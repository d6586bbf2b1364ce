//! What is done to the desktop: actions on controls and windows, gestures, keys, launches.
//!
//! Actions go to the control itself. Events for one window leave pointer, focus of other windows and stacking as they are;
//! system-wide ones move the pointer and bring a window to the front, and come only by [`InputRoute::Global`].

use std::time::Instant;

use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::sets::{ElementVerb, ImageFormat, Path};
use maka_cu_protocol::text::AppText;

use super::accessibility::VirtualNode;
use super::scenario::{Content, InputRule, Offers};
use super::state::{
    ActionRefusal, Handling, LaunchRefusal, Launched, LiveWindow, Pointing, Target, World,
};
use super::{VirtualDesktop, window};
use crate::backend::BackendCapabilities;
use crate::backend::error::BackendError;
use crate::backend::input::{Gesture, InputRoute, KeyCommand, PointCommand, Reach};
use crate::backend::launch::{LaunchProgress, LaunchTicket};
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::backend::tree::NodeRef;
use crate::deadline::Deadline;

/// What this back end offers: everything that the protocol knows, unless the scenario offers less.
pub(super) fn capabilities(offers: &Offers) -> BackendCapabilities {
    BackendCapabilities {
        element_actions: offers.elements.clone(),
        point_actions: offers.points.clone(),
        key_actions: offers.keys.clone(),
        image_formats: vec![ImageFormat::Png],
    }
}

/// Performs one action on one node.
pub(super) fn perform(
    desktop: &VirtualDesktop,
    node: &NodeRef,
    command: &ElementCommand,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let node = known(node)?;
    let now = desktop.now();
    let mut world = desktop.world();
    let (path, outcome) = match command {
        ElementCommand::Perform(verb) => {
            let path = verb_path(&world, node, *verb);
            (path, world.perform(node.window_id, node.node, *verb, now))
        }
        ElementCommand::SetValue(text) => (
            Path::AxAttribute,
            world.write(node.window_id, node.node, text.as_str(), now),
        ),
        ElementCommand::SelectText(text) => (
            Path::AxAttribute,
            world.select_text(node.window_id, node.node, text.as_str()),
        ),
        ElementCommand::Scroll { direction, pages } => (
            Path::AxAction,
            world.scroll(node.window_id, node.node, *direction, pages.get()),
        ),
        ElementCommand::MoveWindow(position) => {
            let handling = Handling::Move(whole(position.x()), whole(position.y()));
            (Path::AxAttribute, handle(&mut world, node, handling, now))
        }
        ElementCommand::ResizeWindow(size) => {
            let handling = Handling::Resize(whole(size.width()), whole(size.height()));
            (Path::AxAttribute, handle(&mut world, node, handling, now))
        }
        ElementCommand::MinimizeWindow => (
            Path::AxAttribute,
            handle(&mut world, node, Handling::Minimize, now),
        ),
    };
    drop(world);
    performed(path, outcome, deadline)
}

/// The mechanism that [`perform`] would use.
pub(super) fn mechanism(world: &World, node: &NodeRef, command: &ElementCommand) -> Option<Path> {
    let node = *node.downcast::<VirtualNode>()?;
    Some(match command {
        ElementCommand::Perform(verb) => verb_path(world, node, *verb),
        ElementCommand::SetValue(_)
        | ElementCommand::SelectText(_)
        | ElementCommand::Scroll { .. }
        | ElementCommand::MoveWindow(_)
        | ElementCommand::ResizeWindow(_)
        | ElementCommand::MinimizeWindow => command.usual_path(),
    })
}

/// The text that is selected in a node.
pub(super) fn selected_text(world: &World, node: &NodeRef) -> Option<AppText> {
    let node = node.downcast::<VirtualNode>()?;
    let node = world.live(node.window_id)?.node(node.node)?;
    if matches!(node.control.content, Content::SecureField { .. }) {
        return None;
    }
    let text = node.control.content.text()?;
    let selected = &text[node.selection.range(text)];
    (!selected.is_empty()).then(|| AppText::new(selected))
}

/// How a gesture can get to a window.
pub(super) fn point_reach(
    world: &World,
    key: WindowKey,
    command: &PointCommand,
) -> Result<Reach, BackendError> {
    let window = world
        .window(key.pid, key.window_id)
        .ok_or(BackendError::WindowGone)?;
    let inside = |point: WindowPoint| {
        let (width, height) = (
            f64::from(window.bounds.width),
            f64::from(window.bounds.height),
        );
        (0.0..width).contains(&point.x()) && (0.0..height).contains(&point.y())
    };
    Ok(match (reach(window), command.gesture) {
        // A window alone cannot be told where the pointer is, nor of a drag that starts beside it.
        (Reach::Window, Gesture::Move) => Reach::GlobalOnly,
        (Reach::Window, Gesture::Drag { from }) if !inside(from) => Reach::GlobalOnly,
        (reach, _) => reach,
    })
}

/// Carries a gesture out.
pub(super) fn point(
    desktop: &VirtualDesktop,
    key: WindowKey,
    command: &PointCommand,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let pointing = match command.gesture {
        Gesture::Move => Pointing::Move,
        Gesture::Click { button, count } => Pointing::Click(button, count),
        Gesture::Press => Pointing::Press,
        Gesture::Release => Pointing::Release,
        Gesture::Drag { from } => Pointing::Drag(local(from)),
        Gesture::Scroll { direction, pages } => Pointing::Wheel(direction, pages.get()),
    };
    let target = match route {
        InputRoute::Window => Target::Window(key.window_id),
        InputRoute::Global => Target::Screen(key.window_id),
    };
    let mut world = desktop.world();
    match point_reach(&world, key, command) {
        Ok(reach) if goes_by(reach, route) => {}
        Ok(_) | Err(_) => return Err(PerformError::NotActionable),
    }
    let outcome = world.point(target, pointing, local(command.at), desktop.now());
    drop(world);
    performed(route.path(), outcome, deadline)
}

/// How keys can get to a node.
pub(super) fn key_reach(
    world: &World,
    node: &NodeRef,
    command: &KeyCommand,
) -> Result<Reach, BackendError> {
    let window = known(node)
        .ok()
        .and_then(|node| world.live(node.window_id))
        .filter(|window| !window.minimized)
        .ok_or(BackendError::WindowGone)?;
    let has_key = |char: char| !char.is_control() || matches!(char, '\t' | '\n' | '\r');
    match command {
        KeyCommand::Type(text) if !text.as_str().chars().all(has_key) => Ok(Reach::Never),
        KeyCommand::Type(_) | KeyCommand::Chord { .. } => Ok(reach(window)),
    }
}

/// Gives a node the focus of its window.
pub(super) fn focus(
    desktop: &VirtualDesktop,
    node: &NodeRef,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<bool, PerformError> {
    let node = known(node)?;
    let raising = match route {
        InputRoute::Window => false,
        InputRoute::Global => true,
    };
    let outcome = desktop.world().focus(node.window_id, node.node, raising);
    match outcome {
        Ok(focused) => Ok(focused),
        Err(refusal) => performed(Path::AxAttribute, Err(refusal), deadline).map(|_| false),
    }
}

/// Sends keys to the window of a node that has the focus there.
pub(super) fn keys(
    desktop: &VirtualDesktop,
    node: &NodeRef,
    command: &KeyCommand,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let virtual_node = known(node)?;
    let VirtualNode {
        window_id,
        node: id,
    } = virtual_node;
    let now = desktop.now();
    let mut world = desktop.world();
    match key_reach(&world, node, command) {
        Ok(reach) if goes_by(reach, route) => {}
        Ok(_) | Err(_) => return Err(PerformError::NotActionable),
    }
    if route == InputRoute::Global {
        world.activate_id(window_id);
    }
    let outcome = match command {
        KeyCommand::Type(text) => world.type_text(window_id, id, text.as_str(), now),
        KeyCommand::Chord { key, modifiers } => world.chord(window_id, id, *key, modifiers, now),
    };
    drop(world);
    performed(route.path(), outcome, deadline)
}

/// A node of this back end.
fn known(node: &NodeRef) -> Result<VirtualNode, PerformError> {
    node.downcast::<VirtualNode>()
        .copied()
        .ok_or(PerformError::NotActionable)
}

/// What came of it, in the terms of the trait. Waits where the application does not answer, so the desktop must not be held.
fn performed(
    path: Path,
    outcome: Result<(), ActionRefusal>,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    match outcome {
        Ok(()) => Ok(Performed::by(path)),
        Err(ActionRefusal::NotActionable) => Err(PerformError::NotActionable),
        Err(ActionRefusal::Refused) => Err(PerformError::Refused { path }),
        Err(ActionRefusal::Unknown) => Err(PerformError::Unknown { path }),
        Err(ActionRefusal::Hangs) => {
            deadline.pause(deadline.remaining());
            Err(PerformError::Unknown { path })
        }
    }
}

/// Window actions are those of the node that stands for the window.
fn handle(
    world: &mut World,
    node: VirtualNode,
    handling: Handling,
    now: Instant,
) -> Result<(), ActionRefusal> {
    let is_root = |window: &std::sync::Arc<LiveWindow>| window.root == node.node;
    if !world.live(node.window_id).is_some_and(is_root) {
        return Err(ActionRefusal::NotActionable);
    }
    world.handle(node.window_id, handling, now)
}

fn reach(window: &LiveWindow) -> Reach {
    match window.rules.input {
        InputRule::Background => Reach::Window,
        InputRule::GlobalOnly => Reach::GlobalOnly,
        InputRule::Never => Reach::Never,
    }
}

/// Whether a route is one of those by which something can be reached.
fn goes_by(reach: Reach, route: InputRoute) -> bool {
    match (reach, route) {
        (Reach::Window, InputRoute::Window | InputRoute::Global)
        | (Reach::GlobalOnly, InputRoute::Global) => true,
        (Reach::GlobalOnly, InputRoute::Window) | (Reach::Never, _) => false,
    }
}

/// The whole point that lies nearest; what is too far out stays as far out as numbers go.
fn whole(coordinate: f64) -> i32 {
    coordinate.round() as i32
}

/// The point of the window that a place lies in.
fn local(point: WindowPoint) -> (i32, i32) {
    (point.x().floor() as i32, point.y().floor() as i32)
}

/// Asks for an application to be started.
pub(super) fn launch(desktop: &VirtualDesktop, name: &str) -> Result<LaunchTicket, BackendError> {
    desktop
        .world()
        .launch(name, desktop.now())
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

/// A row is selected in its list, everything else is acted on itself.
fn verb_path(world: &World, node: VirtualNode, verb: ElementVerb) -> Path {
    let content = world
        .live(node.window_id)
        .and_then(|window| window.node(node.node))
        .map(|node| &node.control.content);
    match (content, verb) {
        (Some(Content::Row { .. }), ElementVerb::Press) => Path::AxSelect,
        (Some(_) | None, _) => Path::AxAction,
    }
}
