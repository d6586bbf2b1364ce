//! What is shown when an action begins and when it ends: the table of spec 10.2, as functions of plain values.
//!
//! The action is asked only *whether* it has a place. The place that is drawn comes from the context or from the executor.

use maka_cu_protocol::action::{ElementAction, KeyAction, PointAction};
use maka_cu_protocol::geometry::{ScreenPoint, ScreenRect, WindowRect, window_rect_to_screen};
use maka_cu_protocol::ids::{SessionId, ToolCallId};
use maka_cu_protocol::sets::{ElementActionKind, KeyActionKind, PointActionKind};

use super::{Pointer, PointerKind};

/// What kind of action is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresentedAction {
    /// An action at a point.
    Point(PointActionKind),
    /// An action on an element; its place is the element's.
    Element(ElementActionKind),
    /// Keys: they have no place.
    Key(KeyActionKind),
    /// A picture is taken.
    Screenshot,
    /// Time passes.
    Wait,
    /// An application is launched.
    Launch,
}

impl From<&PointAction> for PresentedAction {
    fn from(action: &PointAction) -> Self {
        Self::Point(action.kind())
    }
}

impl From<&ElementAction> for PresentedAction {
    fn from(action: &ElementAction) -> Self {
        Self::Element(action.kind())
    }
}

impl From<&KeyAction> for PresentedAction {
    fn from(action: &KeyAction) -> Self {
        Self::Key(action.kind())
    }
}

impl PresentedAction {
    /// Whether actions of this kind happen at a place, which need not be known.
    #[must_use]
    pub const fn has_place(self) -> bool {
        match self {
            Self::Point(_) | Self::Element(_) => true,
            Self::Key(_) | Self::Screenshot | Self::Wait | Self::Launch => false,
        }
    }

    /// How it is drawn.
    #[must_use]
    pub const fn kind(self) -> PointerKind {
        match self {
            Self::Point(
                PointActionKind::LeftClick
                | PointActionKind::RightClick
                | PointActionKind::MiddleClick
                | PointActionKind::DoubleClick
                | PointActionKind::TripleClick
                | PointActionKind::MouseDown
                | PointActionKind::MouseUp,
            )
            | Self::Element(ElementActionKind::Click) => PointerKind::Click,
            Self::Point(PointActionKind::Drag) => PointerKind::Drag,
            Self::Point(PointActionKind::Scroll) | Self::Element(ElementActionKind::Scroll) => {
                PointerKind::Scroll
            }
            Self::Point(PointActionKind::Move)
            | Self::Element(
                ElementActionKind::SetValue
                | ElementActionKind::SelectText
                | ElementActionKind::SecondaryAction
                | ElementActionKind::MoveWindow
                | ElementActionKind::ResizeWindow
                | ElementActionKind::MinimizeWindow,
            )
            | Self::Key(_)
            | Self::Screenshot
            | Self::Wait
            | Self::Launch => PointerKind::Move,
        }
    }

    /// Whether a button is held after it, when it says something about that.
    const fn pressed(self) -> Option<bool> {
        match self {
            Self::Point(PointActionKind::MouseDown) => Some(true),
            Self::Point(PointActionKind::MouseUp) => Some(false),
            Self::Point(
                PointActionKind::Move
                | PointActionKind::LeftClick
                | PointActionKind::RightClick
                | PointActionKind::MiddleClick
                | PointActionKind::DoubleClick
                | PointActionKind::TripleClick
                | PointActionKind::Drag
                | PointActionKind::Scroll,
            )
            | Self::Element(_)
            | Self::Key(_)
            | Self::Screenshot
            | Self::Wait
            | Self::Launch => None,
        }
    }
}

/// One action as the overlay knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Presented {
    /// The dispatch: its tool call id.
    pub action_id: ToolCallId,
    /// The session.
    pub session: SessionId,
    /// What kind of action.
    pub action: PresentedAction,
    /// Where it will act, as far as that is known before it does. For an element see [`element_point`].
    #[doc(alias = "presentationScreenPoint")]
    pub point: Option<ScreenPoint>,
    /// Where a drag starts; of no meaning otherwise.
    pub start: Option<ScreenPoint>,
    /// The window it acts on, when known.
    pub target_window_id: Option<u32>,
}

/// How an action ended, as far as it can be shown.
///
/// A point that came with a refusal is diagnostic and is not carried: nothing happened there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    /// It was done.
    Ok {
        /// Where, in the executor's words.
        #[doc(alias = "resolvedScreenPoint")]
        resolved: Option<ScreenPoint>,
    },
    /// It was refused, failed, or its effect is unknown.
    NotOk,
    /// There is no answer.
    NoResult,
}

/// What the sink is told at the beginning.
#[derive(Debug, Clone, PartialEq)]
pub enum BeginCall {
    /// [`ensure`](super::OverlaySink::ensure).
    Ensure(SessionId),
    /// [`move_to`](super::OverlaySink::move_to).
    Move(Pointer),
}

/// What the sink is told at the end.
#[derive(Debug, Clone, PartialEq)]
pub enum EndCall {
    /// Nothing: the action had no place.
    Nothing,
    /// [`cancel`](super::OverlaySink::cancel).
    Cancel {
        /// The dispatch.
        action_id: ToolCallId,
        /// The session.
        session: SessionId,
    },
    /// [`complete`](super::OverlaySink::complete).
    Complete {
        /// Where it happened.
        pointer: Pointer,
        /// Whether it is emphasised.
        pulse: bool,
    },
}

impl Presented {
    /// The beginning of the table.
    #[must_use]
    pub fn at_begin(&self) -> BeginCall {
        let point = match self.action.kind() {
            // A drag is seen to start where it starts.
            PointerKind::Drag => self.start.or(self.point),
            PointerKind::Click | PointerKind::Scroll | PointerKind::Move => self.point,
        };
        match point.filter(|_| self.action.has_place()) {
            Some(point) => BeginCall::Move(self.pointer(point)),
            None => BeginCall::Ensure(self.session.clone()),
        }
    }

    /// The end of the table.
    #[must_use]
    pub fn at_end(&self, ended: Ended) -> EndCall {
        if !self.action.has_place() {
            return EndCall::Nothing;
        }
        let point = match ended {
            Ended::Ok { resolved } => resolved.or(self.point),
            Ended::NotOk | Ended::NoResult => None,
        };
        match point {
            Some(point) => {
                let pulse = match self.action.kind() {
                    PointerKind::Click | PointerKind::Drag => true,
                    PointerKind::Scroll | PointerKind::Move => false,
                };
                EndCall::Complete {
                    pointer: self.pointer(point),
                    pulse,
                }
            }
            None => EndCall::Cancel {
                action_id: self.action_id.clone(),
                session: self.session.clone(),
            },
        }
    }

    fn pointer(&self, point: ScreenPoint) -> Pointer {
        Pointer {
            action_id: self.action_id.clone(),
            session: self.session.clone(),
            point,
            kind: self.action.kind(),
            pressed: self.action.pressed(),
            // Only a move is about the way; everything else is about the place.
            instant: self.action != PresentedAction::Point(PointActionKind::Move),
            keep_elevated: self.target_window_id.is_none(),
            target_window_id: self.target_window_id,
        }
    }
}

/// Where an element action is shown: the middle of the element's frame on the screen, provided it lies inside the window.
#[must_use]
pub fn element_point(frame: Option<WindowRect>, window: ScreenRect) -> Option<ScreenPoint> {
    let middle = window_rect_to_screen(frame?, window).ok()?.center()?;
    window.contains(middle).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> ScreenPoint {
        ScreenPoint::try_new(x, y).unwrap()
    }

    fn presented(action: PresentedAction) -> Presented {
        Presented {
            action_id: ToolCallId::try_new("call").unwrap(),
            session: SessionId::try_new("s").unwrap(),
            action,
            point: Some(at(10.0, 20.0)),
            start: None,
            target_window_id: Some(7),
        }
    }

    const CLICK: PresentedAction = PresentedAction::Point(PointActionKind::LeftClick);
    const MOVE: PresentedAction = PresentedAction::Point(PointActionKind::Move);
    const DRAG: PresentedAction = PresentedAction::Point(PointActionKind::Drag);
    const WITHOUT_PLACE: [PresentedAction; 5] = [
        PresentedAction::Key(KeyActionKind::Type),
        PresentedAction::Key(KeyActionKind::Key),
        PresentedAction::Screenshot,
        PresentedAction::Wait,
        PresentedAction::Launch,
    ];

    fn moved(presented: &Presented) -> Pointer {
        match presented.at_begin() {
            BeginCall::Move(pointer) => pointer,
            BeginCall::Ensure(_) => panic!("{presented:?} has a place"),
        }
    }

    fn completed(presented: &Presented, resolved: Option<ScreenPoint>) -> (Pointer, bool) {
        match presented.at_end(Ended::Ok { resolved }) {
            EndCall::Complete { pointer, pulse } => (pointer, pulse),
            other => panic!("{presented:?} is complete, not {other:?}"),
        }
    }

    /// Begin, first row: nothing to point at.
    #[test]
    fn without_a_place_the_overlay_is_only_ensured() {
        let ensured = BeginCall::Ensure(SessionId::try_new("s").unwrap());
        for action in WITHOUT_PLACE {
            assert_eq!(presented(action).at_begin(), ensured, "{action:?}");
        }
        for action in [
            CLICK,
            MOVE,
            DRAG,
            PresentedAction::Element(ElementActionKind::Click),
        ] {
            let nowhere = Presented {
                point: None,
                ..presented(action)
            };
            assert_eq!(nowhere.at_begin(), ensured, "{action:?}");
        }
    }

    /// Begin, second row: the pointer goes to the context's point, at once unless moving is the action itself, and above
    /// everything unless its window is known.
    #[test]
    fn with_a_place_the_pointer_goes_there() {
        let pointer = moved(&presented(CLICK));
        assert_eq!(pointer.point, at(10.0, 20.0));
        assert_eq!(pointer.action_id.as_str(), "call");
        assert_eq!(pointer.session.as_str(), "s");
        assert!(pointer.instant && !pointer.keep_elevated);
        assert_eq!(pointer.target_window_id, Some(7));
        assert!(!moved(&presented(MOVE)).instant);
        let windowless = Presented {
            target_window_id: None,
            ..presented(CLICK)
        };
        let pointer = moved(&windowless);
        assert!(pointer.keep_elevated);
        assert_eq!(pointer.target_window_id, None);
    }

    /// A drag is shown from its start and completed at its end.
    #[test]
    fn a_drag_begins_at_its_start() {
        let drag = Presented {
            start: Some(at(1.0, 2.0)),
            ..presented(DRAG)
        };
        assert_eq!(moved(&drag).point, at(1.0, 2.0));
        assert_eq!(completed(&drag, None).0.point, at(10.0, 20.0));
        let click = Presented {
            start: Some(at(1.0, 2.0)),
            ..presented(CLICK)
        };
        assert_eq!(moved(&click).point, at(10.0, 20.0), "others have no start");
    }

    /// End, first row: an action without a place ends unseen, however it ends.
    #[test]
    fn an_end_without_a_place_is_nothing() {
        for action in WITHOUT_PLACE {
            for ended in [
                Ended::Ok { resolved: None },
                Ended::Ok {
                    resolved: Some(at(5.0, 5.0)),
                },
                Ended::NotOk,
                Ended::NoResult,
            ] {
                assert_eq!(
                    presented(action).at_end(ended),
                    EndCall::Nothing,
                    "{action:?}"
                );
            }
        }
    }

    /// End, second row: no result, or one that is not ok.
    #[test]
    fn what_was_not_done_is_cancelled() {
        for ended in [Ended::NotOk, Ended::NoResult] {
            let EndCall::Cancel { action_id, session } = presented(CLICK).at_end(ended) else {
                panic!("{ended:?} is no completion")
            };
            assert_eq!((action_id.as_str(), session.as_str()), ("call", "s"));
        }
    }

    /// End, third row: the executor's point, else the context's; clicks and drags are emphasised.
    #[test]
    fn what_was_done_is_completed_where_it_happened() {
        let resolved = at(11.0, 21.0);
        let (pointer, pulse) = completed(&presented(CLICK), Some(resolved));
        assert_eq!((pointer.point, pulse), (resolved, true));
        assert_eq!(pointer.target_window_id, Some(7));
        assert_eq!(completed(&presented(CLICK), None).0.point, at(10.0, 20.0));
        for action in [MOVE, PresentedAction::Point(PointActionKind::Scroll)] {
            assert!(!completed(&presented(action), None).1, "{action:?}");
        }
        assert!(completed(&presented(DRAG), None).1);
        let nowhere = Presented {
            point: None,
            ..presented(CLICK)
        };
        assert_eq!(completed(&nowhere, Some(resolved)).0.point, resolved);
    }

    /// End, fourth row: done, and nobody knows where.
    #[test]
    fn a_done_action_without_any_point_is_cancelled() {
        let nowhere = Presented {
            point: None,
            start: Some(at(1.0, 1.0)),
            ..presented(CLICK)
        };
        let EndCall::Cancel { .. } = nowhere.at_end(Ended::Ok { resolved: None }) else {
            panic!("there is no point to complete at")
        };
    }

    #[test]
    fn every_kind_is_drawn_as_the_table_says() {
        let drawn = |action| presented(action).action.kind();
        for kind in PointActionKind::ALL {
            let expected = match kind.as_str() {
                "left_click" | "right_click" | "middle_click" | "double_click" | "triple_click"
                | "mouse_down" | "mouse_up" => PointerKind::Click,
                "drag" => PointerKind::Drag,
                "scroll" => PointerKind::Scroll,
                _ => PointerKind::Move,
            };
            assert_eq!(drawn(PresentedAction::Point(*kind)), expected, "{kind}");
            let pressed = match kind.as_str() {
                "mouse_down" => Some(true),
                "mouse_up" => Some(false),
                _ => None,
            };
            let pointer = moved(&presented(PresentedAction::Point(*kind)));
            assert_eq!(pointer.pressed, pressed, "{kind}");
        }
        for kind in ElementActionKind::ALL {
            let expected = match kind.as_str() {
                "click" => PointerKind::Click,
                "scroll" => PointerKind::Scroll,
                _ => PointerKind::Move,
            };
            assert_eq!(drawn(PresentedAction::Element(*kind)), expected, "{kind}");
        }
    }

    /// Spec 12.4 row 49: an element outside its window, or without a frame, is ensured and then cancelled.
    #[test]
    fn an_element_is_shown_inside_its_window_or_not_at_all() {
        let window = ScreenRect::try_new(-400.0, 300.0, 200.0, 100.0).unwrap();
        let frame = |x, y, width, height| WindowRect::try_new(x, y, width, height).ok();
        assert_eq!(
            element_point(frame(10.0, 20.0, 30.0, 40.0), window),
            Some(at(-375.0, 340.0))
        );
        let hidden = [
            None,
            frame(190.0, 0.0, 30.0, 10.0),
            frame(-50.0, 0.0, 20.0, 10.0),
            frame(0.0, 195.0, 10.0, 10.0),
            frame(f64::MAX, 0.0, f64::MAX, 1.0),
        ];
        for frame in hidden {
            let point = element_point(frame, window);
            assert_eq!(point, None, "{frame:?}");
            let press = Presented {
                point,
                ..presented(PresentedAction::Element(ElementActionKind::Click))
            };
            let (BeginCall::Ensure(_), EndCall::Cancel { .. }) =
                (press.at_begin(), press.at_end(Ended::Ok { resolved: None }))
            else {
                panic!("there is no place to show")
            };
        }
    }
}
