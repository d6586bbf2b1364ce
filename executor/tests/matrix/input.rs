//! Rows of pointer and keyboard input for one window. Where that does not arrive nothing is sent, and where it does nobody
//! notices anything elsewhere.
//!
//! Clicks of one button that follow each other would be one multiple click, so other buttons come between them.

use maka_cu::backend::Backend as _;
use maka_cu::backend::input::{Gesture, InputRoute, KeyCommand, PointCommand, Reach};
use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::WindowPoint;
use maka_cu_protocol::keys::{Key, Modifiers, NamedKey, Printable};
use maka_cu_protocol::sets::{Direction, Modifier, MouseButton, Path};

use crate::form::{Find, Form, outcome, soon};
use crate::table::{Cell, Cover, Effect, Outcome, Row, Toolkit, clean};

const SENT: Cell = clean(Path::CgEventPid);

/// How far from the middle of the pad a drag starts.
const DRAG: f64 = 60.0;

/// Gestures of the pointer.
pub(crate) const POINTS: &[Row] = &[
    Row {
        name: "click",
        run: |form| gesture(form, "Pad", &[click(MouseButton::Left, 1)]),
        effect: Effect::Events(|_| &["pad press 1", "pad release 1"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "click with the right button",
        run: |form| gesture(form, "Pad", &[click(MouseButton::Right, 1)]),
        effect: Effect::Events(|_| &["pad press 3", "pad release 3"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "double click",
        run: |form| gesture(form, "Pad", &[click(MouseButton::Left, 2)]),
        effect: Effect::Events(|toolkit| match toolkit {
            // GTK 3 tells of the second press and then of the double click.
            Toolkit::Gtk3 => &[
                "pad press 1",
                "pad release 1",
                "pad press 1",
                "pad double 1",
                "pad release 1",
            ],
            Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => &[
                "pad press 1",
                "pad release 1",
                "pad double 1",
                "pad release 1",
            ],
        }),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "click with the middle button",
        run: |form| gesture(form, "Pad", &[click(MouseButton::Middle, 1)]),
        effect: Effect::Events(|_| &["pad press 2", "pad release 2"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "triple click",
        run: |form| gesture(form, "Pad", &[click(MouseButton::Left, 3)]),
        effect: Effect::Events(|toolkit| match toolkit {
            Toolkit::Gtk3 => &[
                "pad press 1",
                "pad release 1",
                "pad press 1",
                "pad double 1",
                "pad release 1",
                "pad press 1",
                "pad triple 1",
                "pad release 1",
            ],
            // Qt counts to two.
            Toolkit::Qt5 | Toolkit::Qt6 => &[
                "pad press 1",
                "pad release 1",
                "pad double 1",
                "pad release 1",
                "pad press 1",
                "pad release 1",
            ],
            Toolkit::Gtk4 | Toolkit::Chromium => &[
                "pad press 1",
                "pad release 1",
                "pad double 1",
                "pad release 1",
                "pad triple 1",
                "pad release 1",
            ],
        }),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "drag",
        run: |form| {
            let Some(to) = middle(form, "Pad") else {
                return Outcome::NoControl;
            };
            let from = WindowPoint::try_new(to.x() - DRAG, to.y()).unwrap();
            gesture(form, "Pad", &[Gesture::Drag { from }])
        },
        effect: Effect::Events(|_| &["pad press 1", "pad drag", "pad release 1"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "button down, then up",
        run: |form| gesture(form, "Push", &[Gesture::Press, Gesture::Release]),
        effect: Effect::Events(|_| &["click button"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "click a check box",
        run: |form| gesture(form, "Check", &[click(MouseButton::Left, 1)]),
        effect: Effect::Events(|_| &["check on"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "click it again",
        run: |form| gesture(form, "Check", &[click(MouseButton::Left, 1)]),
        effect: Effect::Events(|_| &["check off"]),
        cells: |toolkit, _| except_gtk4(toolkit),
    },
    Row {
        name: "wheel down",
        run: |form| gesture(form, "Pad", &[wheel(Direction::Down)]),
        effect: Effect::Events(|_| &["pad wheel down"]),
        cells: hears_the_wheel,
    },
    Row {
        name: "wheel up",
        run: |form| gesture(form, "Pad", &[wheel(Direction::Up)]),
        effect: Effect::Events(|_| &["pad wheel up"]),
        cells: hears_the_wheel,
    },
    Row {
        name: "wheel left",
        run: |form| gesture(form, "Pad", &[wheel(Direction::Left)]),
        effect: Effect::Events(|_| &["pad wheel left"]),
        cells: hears_the_wheel,
    },
    Row {
        name: "wheel right",
        run: |form| gesture(form, "Pad", &[wheel(Direction::Right)]),
        effect: Effect::Events(|_| &["pad wheel right"]),
        cells: hears_the_wheel,
    },
    Row {
        name: "move the pointer",
        run: |form| gesture(form, "Pad", &[Gesture::Move]),
        effect: Effect::Window(|_| true),
        cells: |_, _| Cell::NeedsGlobal,
    },
    Row {
        name: "drag from outside of the window",
        run: |form| {
            let from = WindowPoint::try_new(-5.0, 10.0).unwrap();
            gesture(form, "Pad", &[Gesture::Drag { from }])
        },
        effect: Effect::Window(|_| true),
        cells: |_, _| Cell::NeedsGlobal,
    },
];

/// Keys.
pub(crate) const KEYS: &[Row] = &[
    Row {
        name: "press a function key",
        run: |form| keys(form, "Pad", &[named(NamedKey::F8)]),
        effect: Effect::Events(|_| &["pad key F8"]),
        cells: hears_keys,
    },
    Row {
        name: "select all by a chord, and type",
        run: |form| {
            keys(
                form,
                "Entry",
                &[select_all(), KeyCommand::Type("Qt!".into())],
            )
        },
        effect: Effect::Events(|_| &["entry Q", "entry Qt", "entry Qt!"]),
        cells: hears_keys,
    },
    Row {
        name: "press return",
        run: |form| keys(form, "Entry", &[named(NamedKey::Return)]),
        effect: Effect::Events(|_| &["entry return"]),
        cells: hears_keys,
    },
    Row {
        name: "delete a character",
        run: |form| keys(form, "Entry", &[named(NamedKey::Backspace)]),
        // What return did to the selection is up to the toolkit.
        effect: Effect::Event("entry "),
        cells: hears_keys,
    },
    Row {
        name: "type a password",
        // It is left selected: that must not make it readable.
        run: |form| {
            let text = KeyCommand::Type("Xy".into());
            keys(form, "Password", &[select_all(), text, select_all()])
        },
        effect: Effect::Events(|_| &["password 1", "password 2"]),
        cells: hears_keys,
    },
    Row {
        name: "type what no key makes",
        run: |form| keys(form, "Entry", &[KeyCommand::Type("x漢".into())]),
        effect: Effect::Window(|_| true),
        cells: |_, _| Cell::Declined,
    },
];

/// GTK 4 hears the input extension alone.
fn except_gtk4(toolkit: Toolkit) -> Cell {
    match toolkit {
        Toolkit::Gtk4 => Cell::NeedsGlobal,
        Toolkit::Gtk3 | Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => SENT,
    }
}

fn hears_the_wheel(toolkit: Toolkit, _: Cover) -> Cell {
    match toolkit {
        Toolkit::Gtk3 | Toolkit::Chromium => SENT,
        Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => Cell::NeedsGlobal,
    }
}

fn hears_keys(toolkit: Toolkit, _: Cover) -> Cell {
    match toolkit {
        Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => SENT,
        Toolkit::Gtk3 | Toolkit::Gtk4 => Cell::NeedsGlobal,
    }
}

const fn click(button: MouseButton, count: u8) -> Gesture {
    Gesture::Click { button, count }
}

/// One step of the wheel.
fn wheel(direction: Direction) -> Gesture {
    Gesture::Scroll {
        direction,
        pages: Pages::new(0.1).unwrap(),
    }
}

const fn named(key: NamedKey) -> KeyCommand {
    KeyCommand::Chord {
        key: Key::Named(key),
        modifiers: Modifiers::NONE,
    }
}

fn select_all() -> KeyCommand {
    KeyCommand::Chord {
        key: Key::Printable(Printable::new('a').unwrap()),
        modifiers: [Modifier::Control].into_iter().collect(),
    }
}

fn middle(form: &Form, name: &'static str) -> Option<WindowPoint> {
    let frame = form.find(Find::Named(name))?.frame?;
    let at = WindowPoint::try_new(
        frame.x() + frame.width() / 2.0,
        frame.y() + frame.height() / 2.0,
    );
    Some(at.unwrap())
}

fn gesture(form: &Form, on: &'static str, gestures: &[Gesture]) -> Outcome {
    let Some(at) = middle(form, on) else {
        return Outcome::NoControl;
    };
    let mut done = Outcome::Declined;
    for gesture in gestures {
        let command = PointCommand {
            gesture: *gesture,
            at,
        };
        let reach = form.desktop.point_reach(form.key, &command, &soon());
        done = match reach.unwrap() {
            Reach::Window => {
                outcome(
                    form.desktop
                        .point(form.key, &command, InputRoute::Window, &soon()),
                )
            }
            Reach::GlobalOnly => return Outcome::NeedsGlobal,
            Reach::Never => return Outcome::Declined,
        };
    }
    done
}

/// Focuses the control and types.
fn keys(form: &Form, into: &'static str, commands: &[KeyCommand]) -> Outcome {
    let Some(node) = form.find(Find::Named(into)) else {
        return Outcome::NoControl;
    };
    for command in commands {
        match form
            .desktop
            .key_reach(&node.node_ref, command, &soon())
            .unwrap()
        {
            Reach::Window => {}
            Reach::GlobalOnly => {
                // Nor is there a way to the focus that nobody would notice.
                let focused = form
                    .desktop
                    .focus(&node.node_ref, InputRoute::Window, &soon());
                assert_eq!(focused, Ok(false), "{into}");
                return Outcome::NeedsGlobal;
            }
            Reach::Never => return Outcome::Declined,
        }
    }
    let focused = form
        .desktop
        .focus(&node.node_ref, InputRoute::Window, &soon());
    assert_eq!(focused, Ok(true), "{into}");
    let mut done = Outcome::Declined;
    for command in commands {
        let route = InputRoute::Window;
        done = outcome(form.desktop.keys(&node.node_ref, command, route, &soon()));
    }
    done
}
