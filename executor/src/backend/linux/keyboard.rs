//! Keys for the window of a focused node.
//!
//! What is typed is worked out before the first key goes down: it is all there on the keyboard as it is mapped now, or nothing is
//! typed. Keys for one window carry their modifiers in their state, so that no modifier goes down anywhere. Keys of the core
//! keyboard go down in order and come up in reverse, also after an error or a cancellation.

use std::time::Duration;

use x11rb::NONE;
use x11rb::protocol::xproto::{KEY_PRESS_EVENT, KEY_RELEASE_EVENT, KeyPressEvent, Window};

use super::LinuxDesktop;
use super::bracket::{Bracket, LET_GO, gone};
use super::display::{Display, Screen, unreadable};
use super::front::{bring, give_back};
use super::hand::Halt;
use super::keymap::{Keyboard, Stroke};
use super::node::LinuxNode;
use super::pointer::Left;
use super::routes::Listener;
use crate::backend::error::BackendError;
use crate::backend::input::{InputRoute, KeyCommand, Reach};
use crate::backend::perform::{PerformError, Performed};
use crate::deadline::Deadline;

/// How long a key of a chord stays down.
const HOLD: Duration = Duration::from_millis(20);
/// The same for text, where keys are many and programs read each.
const TYPING_HOLD: Duration = Duration::from_millis(2);
/// After the last key, before the focus goes: programs take keys from a queue.
const LINGER: Duration = Duration::from_millis(60);

impl LinuxNode {
    /// The window it is in.
    fn window(&self) -> Window {
        match self {
            Self::Window(context) | Self::Silent(context) => context.window,
            Self::Accessible(node) => node.context.window,
        }
    }

    fn hears_keys(&self) -> bool {
        match self {
            // A window without a tree is of no toolkit that is known, and one that does not answer is not asked.
            Self::Window(_) | Self::Silent(_) => false,
            Self::Accessible(node) => Listener::of_keys(node.context.toolkit).hears_keys(),
        }
    }
}

/// See [`crate::backend::Backend::key_reach`].
pub(super) fn reach(
    desktop: &LinuxDesktop,
    node: &LinuxNode,
    command: &KeyCommand,
    deadline: &Deadline,
) -> Result<Reach, BackendError> {
    let id = node.window();
    let (keyboard, means, on_screen) = desktop.display.ask(deadline, move |screen| {
        let window = screen.window(id).map_err(unreadable)?;
        let window = window.ok_or(BackendError::WindowGone)?;
        let keyboard = screen.keyboard().map_err(unreadable)?;
        Ok((keyboard, screen.means(), window.on_screen))
    })?;
    if keyboard.strokes(command, false).is_none() {
        return Ok(Reach::Never);
    }
    Ok(means.reach(on_screen && node.hears_keys()))
}

/// See [`crate::backend::Backend::keys`].
pub(super) fn keys(
    desktop: &LinuxDesktop,
    node: &LinuxNode,
    command: &KeyCommand,
    route: InputRoute,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let path = route.path();
    let refused = PerformError::Refused { path };
    let mut left = desktop.input.turn(deadline).ok_or(refused)?;
    let keyboard = desktop
        .display
        .ask(deadline, |screen| screen.keyboard().map_err(unreadable))
        .map_err(|_| refused)?;
    let real = match route {
        InputRoute::Window => false,
        InputRoute::Global => true,
    };
    let strokes = keyboard.strokes(command, real).ok_or(refused)?;
    let hold = match command {
        KeyCommand::Type(_) => TYPING_HOLD,
        KeyCommand::Chord { .. } => HOLD,
    };
    // Half a text is worse than none, and nobody could say how much of it was typed.
    let least = hold.saturating_mul(u32::try_from(strokes.len()).unwrap_or(u32::MAX));
    if least > deadline.remaining() {
        return Err(refused);
    }
    let typing = Typing {
        display: &desktop.display,
        window: node.window(),
        hold,
        deadline,
    };
    let typed = match route {
        InputRoute::Window => typing.send(&strokes),
        InputRoute::Global => typing.operate(&mut left, &keyboard, &strokes),
    };
    match typed {
        Ok(()) => Ok(Performed::by(path)),
        Err(Halt::Before) => Err(refused),
        Err(Halt::Midway) => Err(PerformError::Unknown { path }),
    }
}

struct Typing<'t> {
    display: &'t Display,
    window: Window,
    hold: Duration,
    deadline: &'t Deadline,
}

impl Typing<'_> {
    /// By events for this window.
    fn send(&self, strokes: &[Stroke]) -> Result<(), Halt> {
        let window = self.window;
        let _bracket =
            Bracket::open(self.display, window, self.deadline).map_err(|_| Halt::Before)?;
        each(
            self.deadline,
            self.hold,
            strokes,
            |stroke, down, deadline| {
                let (kind, code, state) = (event(down), stroke.code, stroke.state);
                self.display.ask(deadline, move |screen| {
                    screen.tell_key(window, kind, code, state)
                })
            },
        )
    }

    /// By the core keyboard.
    fn operate(
        &self,
        left: &mut Left,
        keyboard: &Keyboard,
        strokes: &[Stroke],
    ) -> Result<(), Halt> {
        // Somebody holds a key: what would be typed is something else.
        if keyboard.is_held_down() {
            return Err(Halt::Before);
        }
        let window = self.window;
        let earlier = left
            .forward
            .take()
            .filter(|before| before.still_counts_for(window));
        let mut before = bring(self.display, window, self.deadline).map_err(|_| Halt::Before)?;
        if let Some(earlier) = earlier {
            before = earlier;
        }
        let typed = each(
            self.deadline,
            self.hold,
            strokes,
            |stroke, down, deadline| {
                let kind = event(down);
                let mut codes = stroke.held.clone();
                codes.push(stroke.code);
                if !down {
                    codes.reverse();
                }
                self.display.ask(deadline, move |screen| {
                    // A window that lost the focus meanwhile: what follows would be typed somewhere else.
                    if down && !screen.has_focus(window).map_err(unreadable)? {
                        return Err(BackendError::Refused);
                    }
                    for code in codes {
                        screen.fake(kind, code, (0, 0)).map_err(unreadable)?;
                    }
                    Ok(())
                })
            },
        );
        self.deadline.pause(LINGER);
        give_back(self.display, before, None);
        typed
    }
}

/// Each key down and up again. A key that went down, or may have, comes up whatever happens.
fn each(
    deadline: &Deadline,
    hold: Duration,
    strokes: &[Stroke],
    mut key: impl FnMut(&Stroke, bool, &Deadline) -> Result<(), BackendError>,
) -> Result<(), Halt> {
    let mut halt = Halt::Before;
    for stroke in strokes {
        if deadline.is_over() {
            return Err(halt);
        }
        let down = key(stroke, true, deadline);
        if matches!(down, Err(BackendError::WindowGone | BackendError::Refused)) {
            return Err(halt);
        }
        halt = Halt::Midway;
        deadline.pause(hold);
        let up = key(stroke, false, &Deadline::within(LET_GO));
        if down.is_err() || up.is_err() {
            return Err(halt);
        }
    }
    Ok(())
}

const fn event(down: bool) -> u8 {
    if down {
        KEY_PRESS_EVENT
    } else {
        KEY_RELEASE_EVENT
    }
}

impl Screen {
    fn tell_key(&self, window: Window, kind: u8, code: u8, state: u16) -> Result<(), BackendError> {
        let event = KeyPressEvent {
            response_type: kind,
            detail: code,
            sequence: 0,
            time: self.now().map_err(unreadable)?,
            root: self.root,
            event: window,
            child: NONE,
            root_x: 0,
            root_y: 0,
            event_x: 0,
            event_y: 0,
            state: state.into(),
            same_screen: true,
        };
        self.tell(window, event).map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field reports D2 and D4: no key stays down after a cancellation or an error, and what was begun is not called refused.
    #[test]
    fn every_key_that_went_down_comes_up() {
        let strokes: Vec<Stroke> = (10..14)
            .map(|code| Stroke {
                code,
                held: Vec::new(),
                state: 0,
            })
            .collect();
        // The number of the press at which it happens, and what is told then.
        let rows = [
            (None, Ok(())),
            (Some((0, BackendError::WindowGone)), Err(Halt::Before)),
            (Some((0, BackendError::Timeout)), Err(Halt::Midway)),
            (Some((2, BackendError::Refused)), Err(Halt::Midway)),
            (Some((3, BackendError::CaptureFailed)), Err(Halt::Midway)),
        ];
        for (failure, expected) in rows {
            let (mut pressed, mut down) = (0, Vec::new());
            let deadline = Deadline::within(Duration::from_secs(60));
            let made = each(&deadline, Duration::ZERO, &strokes, |stroke, is_down, _| {
                if !is_down {
                    down.retain(|code| *code != stroke.code);
                    return Ok(());
                }
                let fails = failure.filter(|(at, _)| *at == pressed);
                pressed += 1;
                if let Some((_, error)) = fails {
                    // Given up, but carried out all the same.
                    if error == BackendError::Timeout {
                        down.push(stroke.code);
                    }
                    return Err(error);
                }
                down.push(stroke.code);
                Ok(())
            });
            assert_eq!((made, down), (expected, vec![]), "{failure:?}");
        }
    }
}
