//! Gestures, step by step, whatever carries them: the same steps are sent to one window or made with the real pointer.
//!
//! Between two steps the deadline is asked. A gesture that is given up while a button is down releases it where the pointer is:
//! a button that stays down is worse than a drag that ends too soon.
//!
//! The times are a person's: between press and release some pass, since programs that look at the state now and then miss a
//! press of no length; and several clicks come close enough to be one multiple click.

use std::time::Duration;

use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::sets::{Direction, MouseButton};

use crate::backend::error::BackendError;
use crate::backend::input::{Gesture, PointCommand};
use crate::deadline::Deadline;

/// How long a button stays down.
const HOLD: Duration = Duration::from_millis(30);
/// Between two clicks of a multiple click; toolkits allow 400 ms.
const BETWEEN_CLICKS: Duration = Duration::from_millis(60);
/// Steps of a drag, and the time of each.
const DRAG_STEPS: u32 = 12;
const DRAG_STEP: Duration = Duration::from_millis(12);
/// Before the first and after the last step of a drag.
const DRAG_HOLD: Duration = Duration::from_millis(60);
/// Between two steps of the wheel.
const WHEEL_STEP: Duration = Duration::from_millis(4);
/// Steps of the wheel in a page (spec: a coordinate scroll of n is n/10 pages).
const STEPS_IN_A_PAGE: f64 = 10.0;

/// Buttons by the numbers of the X protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Button(u8);

impl Button {
    pub(super) const LEFT: Self = Self(1);

    pub(super) const fn of(button: MouseButton) -> Self {
        match button {
            MouseButton::Left => Self::LEFT,
            MouseButton::Middle => Self(2),
            MouseButton::Right => Self(3),
        }
    }

    /// A step of the wheel is a press of a button.
    const fn of_wheel(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self(4),
            Direction::Down => Self(5),
            Direction::Left => Self(6),
            Direction::Right => Self(7),
        }
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    /// Its bit in the state of an event; those beyond five have none.
    pub(super) const fn mask(self) -> u16 {
        if self.0 <= 5 { 1 << (7 + self.0) } else { 0 }
    }
}

/// Something that points and presses.
pub(super) trait Hand {
    /// Takes the pointer to a point of the window.
    fn place(&mut self, at: WindowPoint, deadline: &Deadline) -> Result<(), BackendError>;
    /// Presses a button where the pointer is.
    fn press(&mut self, button: Button, deadline: &Deadline) -> Result<(), BackendError>;
    /// Releases a button that was pressed. Takes its own time: a deadline does not keep it from happening.
    fn release(&mut self, button: Button) -> Result<(), BackendError>;
}

/// Why a gesture is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// Nothing of it was sent.
    Before,
    /// Some of it was, or may have been.
    Midway,
}

/// Makes a gesture, once.
pub(super) fn make<H: Hand>(
    hand: &mut H,
    command: &PointCommand,
    deadline: &Deadline,
) -> Result<(), Halt> {
    Steps {
        hand,
        deadline,
        started: false,
        down: None,
    }
    .all(command)
}

struct Steps<'h, H: Hand> {
    hand: &'h mut H,
    deadline: &'h Deadline,
    started: bool,
    down: Option<Button>,
}

impl<H: Hand> Steps<'_, H> {
    fn all(mut self, command: &PointCommand) -> Result<(), Halt> {
        let at = command.at;
        match command.gesture {
            Gesture::Move => self.place(at),
            Gesture::Click { button, count } => {
                self.place(at)?;
                for click in 0..count {
                    if click > 0 {
                        self.deadline.pause(BETWEEN_CLICKS);
                    }
                    self.press(Button::of(button))?;
                    self.deadline.pause(HOLD);
                    self.release()?;
                }
                Ok(())
            }
            Gesture::Press => {
                self.place(at)?;
                self.press(Button::LEFT)?;
                // It stays down on purpose.
                self.down = None;
                Ok(())
            }
            Gesture::Release => {
                self.place(at)?;
                self.down = Some(Button::LEFT);
                self.release()
            }
            Gesture::Drag { from } => {
                self.place(from)?;
                self.press(Button::LEFT)?;
                self.deadline.pause(DRAG_HOLD);
                for step in 1..=DRAG_STEPS {
                    self.place(on_the_way(from, at, step))?;
                    self.deadline.pause(DRAG_STEP);
                }
                self.deadline.pause(DRAG_HOLD);
                self.release()
            }
            Gesture::Scroll { direction, pages } => {
                self.place(at)?;
                for _ in 0..wheel_steps(pages) {
                    self.press(Button::of_wheel(direction))?;
                    self.release()?;
                    self.deadline.pause(WHEEL_STEP);
                }
                Ok(())
            }
        }
    }

    fn place(&mut self, at: WindowPoint) -> Result<(), Halt> {
        self.go_on()?;
        let placed = self.hand.place(at, self.deadline);
        self.judge(placed)
    }

    fn press(&mut self, button: Button) -> Result<(), Halt> {
        self.go_on()?;
        // Also when the press fails: it may be carried out after it was given up.
        self.down = Some(button);
        let pressed = self.hand.press(button, self.deadline);
        self.judge(pressed)
    }

    fn release(&mut self) -> Result<(), Halt> {
        // A caller that gave up while the button was down is told that it cannot be known what became of it.
        self.go_on()?;
        let Some(button) = self.down else {
            return Ok(());
        };
        let released = self.hand.release(button);
        if released.is_ok() {
            self.down = None;
        }
        self.judge(released)
    }

    fn go_on(&self) -> Result<(), Halt> {
        if self.deadline.is_over() {
            return Err(self.halt());
        }
        Ok(())
    }

    fn judge(&mut self, step: Result<(), BackendError>) -> Result<(), Halt> {
        let sure = matches!(step, Err(BackendError::WindowGone | BackendError::Refused));
        // These two say that this step was not made; of any other failure nobody knows.
        self.started |= !sure;
        step.map_err(|_| self.halt())
    }

    const fn halt(&self) -> Halt {
        if self.started {
            Halt::Midway
        } else {
            Halt::Before
        }
    }
}

/// A button never stays down by accident, however the gesture ends.
impl<H: Hand> Drop for Steps<'_, H> {
    fn drop(&mut self) {
        if let Some(button) = self.down.take()
            && self.hand.release(button).is_err()
        {
            tracing::warn!("a button could not be released");
        }
    }
}

fn on_the_way(from: WindowPoint, to: WindowPoint, step: u32) -> WindowPoint {
    let part = f64::from(step) / f64::from(DRAG_STEPS);
    let between = |from: f64, to: f64| from + (to - from) * part;
    WindowPoint::try_new(between(from.x(), to.x()), between(from.y(), to.y())).unwrap_or(to)
}

/// At least one, so that a scroll is never nothing.
fn wheel_steps(pages: Pages) -> u32 {
    let steps = (pages.get() * STEPS_IN_A_PAGE).round().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number above zero, and a cast of one too large gives the largest"
    )]
    let steps = steps as u32;
    steps
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Did {
        At(f64, f64),
        Down(u8),
        Up(u8),
    }

    /// Writes down what it does; cancels the request, or fails, at a step.
    #[derive(Default)]
    struct Diary {
        did: Vec<Did>,
        cancel_after: Option<(usize, CancellationToken)>,
        fail_at: Option<(usize, BackendError)>,
    }

    impl Diary {
        fn note(&mut self, what: Did) -> Result<(), BackendError> {
            if let Some((step, error)) = self.fail_at
                && self.did.len() == step
            {
                self.fail_at = None;
                return Err(error);
            }
            self.did.push(what);
            if let Some((step, cancel)) = &self.cancel_after
                && self.did.len() == *step
            {
                cancel.cancel();
            }
            Ok(())
        }
    }

    impl Hand for Diary {
        fn place(&mut self, at: WindowPoint, _: &Deadline) -> Result<(), BackendError> {
            self.note(Did::At(at.x(), at.y()))
        }

        fn press(&mut self, button: Button, _: &Deadline) -> Result<(), BackendError> {
            self.note(Did::Down(button.number()))
        }

        fn release(&mut self, button: Button) -> Result<(), BackendError> {
            self.note(Did::Up(button.number()))
        }
    }

    fn point(x: f64, y: f64) -> WindowPoint {
        WindowPoint::try_new(x, y).unwrap()
    }

    fn command(gesture: Gesture) -> PointCommand {
        PointCommand {
            gesture,
            at: point(100.0, 50.0),
        }
    }

    fn gestures() -> Vec<Gesture> {
        let click = |button, count| Gesture::Click { button, count };
        vec![
            Gesture::Move,
            click(MouseButton::Left, 1),
            click(MouseButton::Right, 1),
            click(MouseButton::Middle, 1),
            click(MouseButton::Left, 3),
            Gesture::Press,
            Gesture::Release,
            Gesture::Drag {
                from: point(10.0, 20.0),
            },
            Gesture::Scroll {
                direction: Direction::Down,
                pages: Pages::new(0.3).unwrap(),
            },
        ]
    }

    fn soon() -> Deadline {
        Deadline::within(Duration::from_secs(60))
    }

    #[test]
    fn gestures_are_made_of_these_steps() {
        use Did::{At, Down, Up};
        let at = At(100.0, 50.0);
        let rows: [(Gesture, Vec<Did>); 8] = [
            (Gesture::Move, vec![at]),
            (
                Gesture::Click {
                    button: MouseButton::Right,
                    count: 1,
                },
                vec![at, Down(3), Up(3)],
            ),
            (
                Gesture::Click {
                    button: MouseButton::Middle,
                    count: 1,
                },
                vec![at, Down(2), Up(2)],
            ),
            (
                Gesture::Click {
                    button: MouseButton::Left,
                    count: 2,
                },
                vec![at, Down(1), Up(1), Down(1), Up(1)],
            ),
            (Gesture::Press, vec![at, Down(1)]),
            (Gesture::Release, vec![at, Up(1)]),
            (
                Gesture::Scroll {
                    direction: Direction::Left,
                    pages: Pages::new(0.2).unwrap(),
                },
                vec![at, Down(6), Up(6), Down(6), Up(6)],
            ),
            (
                Gesture::Scroll {
                    direction: Direction::Up,
                    pages: Pages::new(0.001).unwrap(),
                },
                vec![at, Down(4), Up(4)],
            ),
        ];
        for (gesture, expected) in rows {
            let mut diary = Diary::default();
            make(&mut diary, &command(gesture), &soon()).unwrap();
            assert_eq!(diary.did, expected, "{gesture:?}");
        }
    }

    #[test]
    fn a_drag_moves_with_the_button_down_and_ends_exactly() {
        let mut diary = Diary::default();
        let from = point(10.0, 20.0);
        make(&mut diary, &command(Gesture::Drag { from }), &soon()).unwrap();
        assert_eq!(diary.did[..2], [Did::At(10.0, 20.0), Did::Down(1)]);
        let [.., last, up] = diary.did[..] else {
            panic!("{:?}", diary.did)
        };
        assert_eq!((last, up), (Did::At(100.0, 50.0), Did::Up(1)));
        assert_eq!(diary.did.len(), 2 + 12 + 1);
    }

    /// Field reports D1 and D4: whenever a gesture is cancelled, no button stays down, and what was begun is not called
    /// refused.
    #[test]
    fn a_cancelled_gesture_lets_go() {
        for gesture in gestures() {
            let mut whole = Diary::default();
            make(&mut whole, &command(gesture), &soon()).unwrap();
            for step in 1..whole.did.len() {
                let cancel = CancellationToken::new();
                let deadline = Deadline::cancellable(Duration::from_secs(60), cancel.clone());
                let mut diary = Diary {
                    cancel_after: Some((step, cancel)),
                    ..Diary::default()
                };
                let made = make(&mut diary, &command(gesture), &deadline);
                assert_eq!(made, Err(Halt::Midway), "{gesture:?} at {step}");
                assert_balanced(&diary.did, gesture);
            }
        }
    }

    /// Field report D4: the same after an error at any step.
    #[test]
    fn a_failed_gesture_lets_go() {
        for error in [
            BackendError::Timeout,
            BackendError::WindowGone,
            BackendError::CaptureFailed,
        ] {
            for gesture in gestures() {
                let mut whole = Diary::default();
                make(&mut whole, &command(gesture), &soon()).unwrap();
                for step in 0..whole.did.len() {
                    let mut diary = Diary {
                        fail_at: Some((step, error)),
                        ..Diary::default()
                    };
                    let made = make(&mut diary, &command(gesture), &soon());
                    let nothing = step == 0 && error == BackendError::WindowGone;
                    let expected = if nothing { Halt::Before } else { Halt::Midway };
                    assert_eq!(made, Err(expected), "{gesture:?} at {step}: {error:?}");
                    assert_balanced(&diary.did, gesture);
                }
            }
        }
    }

    /// After it, at most as many buttons are down as before. A release without its press is what a failed press leaves, and is
    /// harmless.
    fn assert_balanced(did: &[Did], gesture: Gesture) {
        let down = did.iter().filter(|did| matches!(did, Did::Down(_))).count();
        let up = did.iter().filter(|did| matches!(did, Did::Up(_))).count();
        assert!(up >= down, "{gesture:?}: {did:?}");
    }

    #[test]
    fn with_no_time_nothing_is_begun() {
        for gesture in gestures() {
            let mut diary = Diary::default();
            let over = Deadline::within(Duration::ZERO);
            assert_eq!(
                make(&mut diary, &command(gesture), &over),
                Err(Halt::Before)
            );
            assert!(diary.did.is_empty(), "{gesture:?}");
        }
    }
}
