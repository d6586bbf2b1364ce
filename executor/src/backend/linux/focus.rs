//! The focus inside a window.
//!
//! A node shows its focus only while its window believes that it has the focus itself, so a window that does not is told so for
//! as long as this takes. What the program answers to the request is not what is believed: the node is read again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::LinuxDesktop;
use super::accessibility::COMPONENT;
use super::bracket::Bracket;
use super::bus::{Bus, CALL_TIMEOUT};
use super::front::{bring, give_back};
use super::node::AccessibleNode;
use super::pointer::{BELIEVED_WITHIN, shows_active};
use super::reader::Reader;
use super::routes::Listener;
use super::vocabulary::State;
use crate::backend::input::InputRoute;
use crate::backend::perform::PerformError;
use crate::deadline::Deadline;

/// How long a program may take to show the focus.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(25);

/// See [`crate::backend::Backend::focus`].
pub(super) fn focus(
    desktop: &LinuxDesktop,
    node: &AccessibleNode,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<bool, PerformError> {
    let refused = PerformError::Refused { path: route.path() };
    let window = node.context.window;
    let bus = desktop.services.bus(deadline).map_err(|_| refused)?;
    let mut left = desktop.input.turn(deadline).ok_or(refused)?;
    match route {
        InputRoute::Window => {
            // A toolkit that hears no keys raises the window for a focus, or does nothing.
            if !Listener::of_keys(node.context.toolkit).hears_keys() {
                return Ok(false);
            }
            let bracket = Bracket::open(&desktop.display, window, deadline).map_err(|_| refused)?;
            let root = node.ancestors().last().map_or(node, |root| root);
            let patience = deadline.at_most(BELIEVED_WITHIN);
            if bracket.is_open() && !shows_active(desktop, root, &patience) {
                return Ok(false);
            }
            Ok(desktop.services.block_on(grab(&bus, node, deadline)))
        }
        InputRoute::Global => {
            let earlier = left
                .forward
                .take()
                .filter(|before| before.still_counts_for(window));
            let before = bring(&desktop.display, window, deadline).map_err(|_| refused)?;
            let focused = desktop.services.block_on(grab(&bus, node, deadline));
            if focused {
                // Until the keys are typed: a window that is sent back would lose it.
                left.forward = Some(earlier.unwrap_or(before));
            } else {
                give_back(&desktop.display, earlier.unwrap_or(before), None);
            }
            Ok(focused)
        }
    }
}

/// The focus of a window without a tree, as a terminal's: it has it by being the active one, which only the global route
/// makes it.
pub(super) fn focus_window(
    desktop: &LinuxDesktop,
    window: u32,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<bool, PerformError> {
    match route {
        InputRoute::Window => Ok(false),
        InputRoute::Global => {
            let refused = PerformError::Refused { path: route.path() };
            let mut left = desktop.input.turn(deadline).ok_or(refused)?;
            let earlier = left
                .forward
                .take()
                .filter(|before| before.still_counts_for(window));
            let before = bring(&desktop.display, window, deadline).map_err(|_| refused)?;
            // Until the keys are typed, as above.
            left.forward = Some(earlier.unwrap_or(before));
            Ok(true)
        }
    }
}

/// Asks for the focus and looks until it is there or the time is over.
async fn grab(bus: &Bus, node: &AccessibleNode, deadline: &Deadline) -> bool {
    let reader = Reader::new(bus, node.context.toolkit, deadline.clone());
    let is_focused = async || {
        let core = reader.core(&node.object).await;
        core.is_ok_and(|core| core.states.has(State::Focused))
    };
    if is_focused().await {
        return true;
    }
    // It may take effect although it is refused, or not answered.
    let patience = CALL_TIMEOUT.min(deadline.remaining());
    let answer = bus
        .call::<_, bool>(&node.object, COMPONENT, "GrabFocus", &(), patience)
        .await;
    tracing::debug!(?answer, "a node was asked to take the focus");
    let give_up = Instant::now() + PATIENCE.min(deadline.remaining());
    loop {
        if is_focused().await {
            return true;
        }
        if Instant::now() >= give_up || deadline.is_over() {
            return false;
        }
        sleep(LOOK).await;
    }
}
