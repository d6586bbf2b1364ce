//! Gestures at a point of a window.
//!
//! One gesture at a time, whoever asks: two that were mixed would be neither. What one leaves for the next, a button that stays
//! down, is kept here; [`release_held`] lets go of it when the back end ends.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use maka_cu_protocol::ids::WindowKey;
use x11rb::protocol::xproto::{ConnectionExt as _, KeyButMask};

use super::LinuxDesktop;
use super::display::{Area, Display, unreadable};
use super::front::{Before, RealHand, bring, give_back, look};
use super::hand::{Button, Halt, Hand as _, make};
use super::master::SecondPointer;
use super::node::{AccessibleNode, LinuxNode};
use super::reader::Reader;
use super::second::{SecondHand, is_open_for_second};
use super::sent::{Grip, SentHand};
use super::vocabulary::State;
use crate::backend::Backend as _;
use crate::backend::error::BackendError;
use crate::backend::input::{Gesture, InputRoute, PointCommand, Reach};
use crate::backend::perform::{PerformError, Performed};
use crate::backend::tree::NodeRef;
use crate::deadline::Deadline;

/// How often a waiting request looks whether its turn has come.
const TURN: Duration = Duration::from_millis(10);
/// A program that does not believe by then is blocked, as by a dialog of its own, or hangs.
pub(super) const BELIEVED_WITHIN: Duration = Duration::from_secs(2);

/// The turn to send input, and what the last one left.
#[derive(Debug, Default)]
pub(super) struct Input(Mutex<Left>);

/// What one request leaves for a later one.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The left button, still down.
    held: Option<Held>,
    /// A window that was brought forward for a focus and keeps it until the keys are typed.
    pub(super) forward: Option<Before>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    window: u32,
    by: HeldBy,
}

#[derive(Clone, Copy, Debug)]
enum HeldBy {
    Sent(Grip),
    Second,
    Real(Before),
}

impl Held {
    const fn way(&self) -> Way {
        match self.by {
            HeldBy::Sent(_) => Way::Sent,
            HeldBy::Second => Way::Second,
            HeldBy::Real(_) => Way::Real,
        }
    }
}

/// What makes a gesture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Events for one window.
    Sent,
    /// A pointer of our own.
    Second,
    /// The person's pointer.
    Real,
}

impl Way {
    const fn route(self) -> InputRoute {
        match self {
            Self::Sent | Self::Second => InputRoute::Window,
            Self::Real => InputRoute::Global,
        }
    }
}

impl Input {
    /// Waits for the turn; `None` when the time is over first.
    pub(super) fn turn(&self, deadline: &Deadline) -> Option<MutexGuard<'_, Left>> {
        loop {
            if deadline.is_over() {
                return None;
            }
            match self.0.try_lock() {
                Ok(left) => return Some(left),
                // What is left is whole: it is written in one step.
                Err(TryLockError::Poisoned(left)) => return Some(left.into_inner()),
                Err(TryLockError::WouldBlock) => deadline.pause(TURN),
            }
        }
    }
}

/// See [`crate::backend::Backend::point_reach`].
pub(super) fn reach(
    desktop: &LinuxDesktop,
    key: WindowKey,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<Reach, BackendError> {
    let held = desktop
        .input
        .turn(deadline)
        .ok_or(BackendError::Timeout)?
        .held;
    let (means, on_screen, size, really_down) = desktop.display.ask(deadline, move |screen| {
        let window = screen.window(key.window_id).map_err(unreadable)?;
        let window = window.filter(|window| window.pid == Some(key.pid));
        let window = window.ok_or(BackendError::WindowGone)?;
        let pointer = screen
            .connection
            .query_pointer(screen.root)
            .map_err(unreadable)?;
        let pointer = pointer.reply().map_err(unreadable)?;
        let down = u16::from(pointer.mask) & u16::from(KeyButMask::BUTTON1) != 0;
        Ok((
            screen.means(),
            window.on_screen,
            (window.area.width, window.area.height),
            down,
        ))
    })?;
    if command.gesture == Gesture::Release {
        match held {
            // A button is let go of in the way in which it was pressed.
            Some(held) if held.window == key.window_id => {
                return Ok(means.reach(held.way().route() == InputRoute::Window));
            }
            // Whoever pressed it, an executor before this one or a person: to let go of it is to operate the device.
            _ if really_down => return Ok(means.reach(false)),
            _ => {}
        }
    }
    let inside = |x: f64, y: f64| {
        (0.0..f64::from(size.0)).contains(&x) && (0.0..f64::from(size.1)).contains(&y)
    };
    let from_inside = match command.gesture {
        Gesture::Drag { from } => inside(from.x(), from.y()),
        Gesture::Move
        | Gesture::Click { .. }
        | Gesture::Press
        | Gesture::Release
        | Gesture::Scroll { .. } => true,
    };
    if !(means.window && on_screen && from_inside && inside(command.at.x(), command.at.y())) {
        return Ok(means.reach(false));
    }
    let listener = desktop.listener(key, deadline)?;
    if !listener.hears(&command.gesture) {
        let second = desktop.second.as_ref();
        let second = second.filter(|_| listener.hears_second(&command.gesture));
        let is_open = second
            .map(|second| is_open_for_second(&desktop.display, second, key, command, deadline))
            .transpose()?;
        return Ok(means.reach(is_open.unwrap_or(false)));
    }
    let hidden = listener.sleeps_when_hidden()
        && desktop.display.ask(deadline, move |screen| {
            let windows = screen.windows().map_err(unreadable)?;
            let place = windows.iter().position(|window| window.id == key.window_id);
            screen.is_hidden(&windows, place.ok_or(BackendError::WindowGone)?)
        })?;
    Ok(means.reach(!hidden))
}

/// What makes a gesture that takes this route. What nothing is known to make was not to be asked for, and is sent.
fn way_of(
    desktop: &LinuxDesktop,
    held: Option<&Held>,
    key: WindowKey,
    command: &PointCommand,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<Way, BackendError> {
    let held = held.filter(|held| held.window == key.window_id && held.way().route() == route);
    match (route, held) {
        (InputRoute::Global, _) => Ok(Way::Real),
        (InputRoute::Window, Some(held)) if command.gesture == Gesture::Release => Ok(held.way()),
        (InputRoute::Window, _) if desktop.second.is_none() => Ok(Way::Sent),
        (InputRoute::Window, _) => {
            let listener = desktop.listener(key, deadline)?;
            let second =
                !listener.hears(&command.gesture) && listener.hears_second(&command.gesture);
            Ok(if second { Way::Second } else { Way::Sent })
        }
    }
}

/// See [`crate::backend::Backend::point`].
pub(super) fn point(
    desktop: &LinuxDesktop,
    key: WindowKey,
    command: &PointCommand,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let path = route.path();
    let refused = PerformError::Refused { path };
    let mut left = desktop.input.turn(deadline).ok_or(refused)?;
    let is_there = desktop.display.ask(deadline, move |screen| {
        let window = screen.window(key.window_id).map_err(unreadable)?;
        Ok(window.is_some_and(|window| window.pid == Some(key.pid)))
    });
    // A button of the real pointer is down whatever became of the window that it was pressed in.
    if is_there != Ok(true) && command.gesture == Gesture::Release {
        return let_go(desktop, &mut left, key.window_id, route).unwrap_or(Err(refused));
    }
    if is_there != Ok(true) {
        return Err(refused);
    }
    let way = way_of(desktop, left.held.as_ref(), key, command, route, deadline);
    let way = way.map_err(|_| refused)?;
    if !may_go_on(left.held.as_ref(), key.window_id, &command.gesture, way) {
        return Err(refused);
    }
    let made = match (way, &desktop.second) {
        (Way::Sent, _) => send(desktop, &mut left, key, command, deadline),
        (Way::Second, None) => return Err(refused),
        (Way::Second, Some(second)) => {
            let (display, window) = (&desktop.display, key.window_id);
            point_second(display, second, &mut left, window, command, deadline)
        }
        (Way::Real, _) => operate(
            &desktop.display,
            &mut left,
            key.window_id,
            command,
            deadline,
        ),
    };
    match made {
        Ok(()) => Ok(Performed::by(path)),
        Err(Halt::Before) => Err(refused),
        Err(Halt::Midway) => Err(PerformError::Unknown { path }),
    }
}

/// Releases the button of a device that was pressed in a window which is gone; `None` when there is none such.
fn let_go(
    desktop: &LinuxDesktop,
    left: &mut Left,
    window: u32,
    route: InputRoute,
) -> Option<Result<Performed, PerformError>> {
    let held = left
        .held
        .take_if(|held| held.window == window && held.way().route() == route)?;
    let path = route.path();
    let released = match (held.by, &desktop.second) {
        (HeldBy::Sent(_), _) | (HeldBy::Second, None) => return None,
        (HeldBy::Second, Some(second)) => SecondHand::resume(second, window).release(Button::LEFT),
        (HeldBy::Real(before), _) => {
            let released = RealHand::new(&desktop.display, window, true).release(Button::LEFT);
            give_back(&desktop.display, before, None);
            released
        }
    };
    Some(match released {
        Ok(()) => Ok(Performed::by(path)),
        Err(_) => {
            left.held = Some(held);
            Err(PerformError::Unknown { path })
        }
    })
}

/// Whether a gesture makes sense with the button that is held.
fn may_go_on(held: Option<&Held>, window: u32, gesture: &Gesture, way: Way) -> bool {
    let Some(held) = held else {
        return true;
    };
    let here = held.window == window;
    let same = held.way() == way;
    match gesture {
        Gesture::Press => false,
        Gesture::Release => here && same,
        // The way to a drag in single steps: a device that holds a button is used on, and goes nowhere else, which for the
        // person's own is up to the host. What is sent is bound to no place.
        Gesture::Move | Gesture::Scroll { .. } => match way {
            Way::Real if same => true,
            Way::Second if same => here,
            Way::Real | Way::Second | Way::Sent => !here,
        },
        Gesture::Click { .. } | Gesture::Drag { .. } => !here && (!same || way == Way::Sent),
    }
}

/// By events for this window.
fn send(
    desktop: &LinuxDesktop,
    left: &mut Left,
    key: WindowKey,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<(), Halt> {
    let (display, window) = (&desktop.display, key.window_id);
    let mut hand = match (command.gesture, left.held) {
        (
            Gesture::Release,
            Some(Held {
                by: HeldBy::Sent(grip),
                ..
            }),
        ) => {
            left.held = None;
            SentHand::resume(display, window, grip)
        }
        _ => {
            let hand = SentHand::new(display, window, deadline).map_err(|_| Halt::Before)?;
            if hand.has_told() && !is_believed(desktop, key, deadline) {
                return Err(Halt::Before);
            }
            hand
        }
    };
    make(&mut hand, command, deadline)?;
    if command.gesture == Gesture::Press {
        left.held = Some(Held {
            window,
            by: HeldBy::Sent(hand.leave_down()),
        });
    }
    Ok(())
}

/// By the second pointer. `display` is the connection that knows nothing of it.
fn point_second(
    display: &Display,
    second: &SecondPointer,
    left: &mut Left,
    window: u32,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<(), Halt> {
    let holding = matches!(
        left.held,
        Some(Held {
            by: HeldBy::Second,
            ..
        })
    );
    let shields = display.ask(deadline, |screen| screen.shields().map_err(unreadable));
    let mut hand = if holding {
        SecondHand::resume(second, window)
    } else if shields == Ok(true) {
        SecondHand::new(second, window, deadline).map_err(|_| Halt::Before)?
    } else {
        return Err(Halt::Before);
    };
    let made = make(&mut hand, command, deadline);
    let stays_down = match command.gesture {
        Gesture::Press => made.is_ok(),
        // A release that was never sent leaves it down.
        Gesture::Release => holding && made == Err(Halt::Before),
        Gesture::Move | Gesture::Scroll { .. } => holding,
        Gesture::Click { .. } | Gesture::Drag { .. } => false,
    };
    if stays_down {
        let by = HeldBy::Second;
        left.held = Some(Held { window, by });
        hand.leave_down();
    } else if holding {
        left.held = None;
    }
    made
}

/// Waits until the window shows that it believes in the focus it was told of, where that matters.
fn is_believed(desktop: &LinuxDesktop, key: WindowKey, deadline: &Deadline) -> bool {
    let patience = deadline.at_most(BELIEVED_WITHIN);
    let Ok(listener) = desktop.listener(key, &patience) else {
        return false;
    };
    if !listener.believes_slowly() {
        return true;
    }
    let root = desktop.window_root(key, &patience).ok().flatten();
    match root.as_ref().and_then(NodeRef::downcast) {
        Some(LinuxNode::Accessible(root)) => shows_active(desktop, root, &patience),
        Some(LinuxNode::Window(_) | LinuxNode::Silent(_)) | None => false,
    }
}

/// Waits until the window of this root shows that it is active, as it does once it has read that it has the focus. What is
/// said to it on the accessibility bus may overtake that, and a window that is still in the background then asks to be
/// brought to the front.
pub(super) fn shows_active(
    desktop: &LinuxDesktop,
    root: &AccessibleNode,
    patience: &Deadline,
) -> bool {
    let Ok(bus) = desktop.services.bus(patience) else {
        return false;
    };
    let reader = Reader::new(&bus, root.context.toolkit, patience.clone());
    while !patience.is_over() {
        let core = desktop.services.block_on(reader.core(&root.object));
        if core.is_ok_and(|core| core.states.has(State::Active)) {
            return true;
        }
        patience.pause(TURN);
    }
    false
}

/// By the core pointer.
fn operate(
    display: &Display,
    left: &mut Left,
    window: u32,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<(), Halt> {
    let holding = match left.held {
        Some(Held {
            by: HeldBy::Real(before),
            ..
        }) => Some(before),
        Some(Held {
            by: HeldBy::Sent(_) | HeldBy::Second,
            ..
        })
        | None => None,
    };
    let released = command.gesture == Gesture::Release;
    let before = match holding {
        Some(before) => Ok(before),
        // A button that somebody else left down is released whatever lies there.
        None if released => look(display, window, deadline),
        None => bring(display, window, deadline),
    };
    let before = before.map_err(|_| Halt::Before)?;
    let anywhere =
        holding.is_some() || released || starts_outside(display, window, command, deadline);
    let mut hand = RealHand::new(display, window, anywhere);
    let made = make(&mut hand, command, deadline);
    match command.gesture {
        // The pointer stays, which is what was asked for.
        Gesture::Move if made.is_ok() => {}
        Gesture::Press if made.is_ok() => {
            left.held = Some(Held {
                window,
                by: HeldBy::Real(before),
            });
        }
        Gesture::Move | Gesture::Scroll { .. } if holding.is_some() => {}
        Gesture::Move
        | Gesture::Click { .. }
        | Gesture::Press
        | Gesture::Release
        | Gesture::Drag { .. }
        | Gesture::Scroll { .. } => {
            if holding.is_some() {
                left.held = None;
            }
            give_back(display, before, hand.rest(deadline));
        }
    }
    made
}

/// Whether a drag begins beside its window, where there is nothing of the window to be under the pointer.
fn starts_outside(
    display: &Display,
    window: u32,
    command: &PointCommand,
    deadline: &Deadline,
) -> bool {
    let Gesture::Drag { from } = command.gesture else {
        return false;
    };
    let area = display.ask(deadline, move |screen| {
        let window = screen.window(window).map_err(unreadable)?;
        Ok(window.map(|window| window.area))
    });
    let inside = |area: Area| {
        let (width, height) = (f64::from(area.width), f64::from(area.height));
        from.x() >= 0.0 && from.y() >= 0.0 && from.x() < width && from.y() < height
    };
    matches!(area, Ok(Some(area)) if !inside(area))
}

/// Lets go of a button that a request left down.
pub(super) fn release_held(desktop: &LinuxDesktop) {
    let Some(mut left) = desktop
        .input
        .turn(&Deadline::within(super::bracket::LET_GO))
    else {
        return;
    };
    let Some(Held { window, by }) = left.held.take() else {
        return;
    };
    let display = &desktop.display;
    let released = match (by, &desktop.second) {
        (HeldBy::Sent(grip), _) => SentHand::resume(display, window, grip).release(Button::LEFT),
        (HeldBy::Second, Some(second)) => SecondHand::resume(second, window).release(Button::LEFT),
        // It is held by what there is not.
        (HeldBy::Second, None) => Ok(()),
        (HeldBy::Real(_), _) => RealHand::new(display, window, true).release(Button::LEFT),
    };
    if released.is_err() {
        tracing::warn!("a held button could not be released");
    }
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::action::Pages;
    use maka_cu_protocol::geometry::WindowPoint;
    use maka_cu_protocol::sets::{Direction, MouseButton};

    use super::*;

    #[test]
    fn while_a_button_is_held() {
        let here = 7;
        let real = Held {
            window: here,
            by: HeldBy::Real(Before::of(here)),
        };
        let second = Held {
            window: here,
            by: HeldBy::Second,
        };
        let from = WindowPoint::try_new(0.0, 0.0).unwrap();
        let gestures = [
            Gesture::Press,
            Gesture::Release,
            Gesture::Move,
            Gesture::Scroll {
                direction: Direction::Up,
                pages: Pages::ONE,
            },
            Gesture::Click {
                button: MouseButton::Left,
                count: 1,
            },
            Gesture::Drag { from },
        ];
        let rows = [
            ("nothing held", None, here, Way::Sent, [true; 6]),
            (
                "same way",
                Some(&real),
                here,
                Way::Real,
                [false, true, true, true, false, false],
            ),
            (
                "same way, elsewhere",
                Some(&real),
                8,
                Way::Real,
                [false, false, true, true, false, false],
            ),
            ("sent there", Some(&real), here, Way::Sent, [false; 6]),
            (
                "sent elsewhere",
                Some(&real),
                8,
                Way::Sent,
                [false, false, true, true, true, true],
            ),
            (
                "the second pointer, used on",
                Some(&second),
                here,
                Way::Second,
                [false, true, true, true, false, false],
            ),
            (
                "the second pointer, elsewhere",
                Some(&second),
                8,
                Way::Second,
                [false; 6],
            ),
            (
                "sent beside the second pointer",
                Some(&second),
                8,
                Way::Sent,
                [false, false, true, true, true, true],
            ),
            (
                "the person's pointer beside the second",
                Some(&second),
                here,
                Way::Real,
                [false; 6],
            ),
        ];
        for (name, held, window, way, expected) in rows {
            for (gesture, expected) in gestures.iter().zip(expected) {
                assert_eq!(
                    may_go_on(held, window, gesture, way),
                    expected,
                    "{name}: {gesture:?}"
                );
            }
        }
    }
}
