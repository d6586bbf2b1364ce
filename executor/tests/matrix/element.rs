//! Rows of element actions. None of them may change anything but the control.

use maka_cu::backend::Backend as _;
use maka_cu::backend::perform::ElementCommand;
use maka_cu::backend::tree::RawNode;
use maka_cu_protocol::action::Pages;
use maka_cu_protocol::geometry::{ScreenPoint, ScreenSize};
use maka_cu_protocol::sets::{Direction, ElementVerb, Path};
use maka_cu_protocol::text::SomeText;

use crate::form::{Find, Form, outcome, soon};
use crate::table::{Cell, Cover, Effect, Outcome, Row, Toolkit, clean};

const ACTION: Cell = clean(Path::AxAction);
const ATTRIBUTE: Cell = clean(Path::AxAttribute);
const SELECT: Cell = clean(Path::AxSelect);

/// Nothing is done, something is so.
const SO: Cell = clean(Path::None);

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "a button has a frame inside the window",
        run: |form| {
            so(form, Find::Named("Push"), |node| {
                node.frame.is_some_and(|frame| {
                    frame.x() >= 0.0
                        && frame.y() > 0.0
                        && frame.x() + frame.width() <= form.bounds.width()
                        && frame.y() + frame.height() <= form.bounds.height()
                })
            })
        },
        effect: Effect::Window(|_| true),
        cells: |_, _| SO,
    },
    Row {
        name: "a button that is scrolled out has no frame",
        run: |form| so(form, Find::Named("Last"), |node| node.frame.is_none()),
        effect: Effect::Window(|_| true),
        cells: |_, _| SO,
    },
    Row {
        name: "press a button",
        run: |form| press(form, Find::Named("Push")),
        effect: Effect::Event("click button"),
        cells: |_, _| ACTION,
    },
    Row {
        name: "press a check box",
        run: |form| press(form, Find::Named("Check")),
        effect: Effect::Event("check on"),
        cells: |toolkit, _| except_gtk4(toolkit, ACTION),
    },
    Row {
        name: "press a radio button",
        run: |form| press(form, Find::Named("Blue")),
        effect: Effect::Event("radio Blue"),
        cells: |toolkit, _| except_gtk4(toolkit, ACTION),
    },
    Row {
        name: "set the text of an entry",
        run: |form| write(form, "Entry", "neu 😀 text"),
        effect: Effect::Event("entry neu 😀 text"),
        cells: |toolkit, _| except_chromium(toolkit, ATTRIBUTE),
    },
    Row {
        name: "the entry's text reads back",
        run: |form| {
            so(form, Find::Named("Entry"), |node| {
                let value = node.value.as_ref().map(|value| value.as_str());
                value == Some("neu 😀 text")
            })
        },
        effect: Effect::Window(|_| true),
        cells: |toolkit, _| except_chromium(toolkit, SO),
    },
    Row {
        name: "read the selected text of a password",
        run: |form| match form.find(Find::Named("Password")) {
            Some(node) => match form.desktop.selected_text(&node.node_ref, &soon()) {
                Ok(None) => Outcome::Declined,
                Ok(Some(_)) | Err(_) => Outcome::Done(Path::AxAttribute),
            },
            None => Outcome::NoControl,
        },
        effect: Effect::Window(|_| true),
        cells: |_, _| Cell::Declined,
    },
    Row {
        name: "set a password",
        run: |form| write(form, "Password", "hidden"),
        effect: Effect::Event("password 6"),
        cells: |toolkit, _| except_chromium(toolkit, ATTRIBUTE),
    },
    Row {
        name: "set the text of a text area",
        run: |form| write(form, "Area", "other words"),
        effect: Effect::Event("area other words"),
        cells: |toolkit, _| except_chromium(toolkit, ATTRIBUTE),
    },
    Row {
        name: "select text in an entry",
        run: |form| select(form, "Entry", "t"),
        effect: Effect::Selected("Entry", "t"),
        cells: |_, _| ATTRIBUTE,
    },
    Row {
        name: "select other text in the entry",
        run: |form| select(form, "Entry", "te"),
        effect: Effect::Selected("Entry", "te"),
        cells: |toolkit, _| match toolkit {
            // The page's entry could not be written, and has no such text.
            Toolkit::Chromium => Cell::Declined,
            Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => ATTRIBUTE,
        },
    },
    Row {
        name: "select text in a text area",
        run: |form| select(form, "Area", "r"),
        effect: Effect::Selected("Area", "r"),
        cells: |_, _| ATTRIBUTE,
    },
    Row {
        name: "select text again in the text area",
        run: |form| select(form, "Area", "d"),
        effect: Effect::Selected("Area", "d"),
        cells: |_, _| ATTRIBUTE,
    },
    Row {
        name: "select text of a password",
        run: |form| select(form, "Password", "hidden"),
        effect: Effect::Selected("Password", "hidden"),
        cells: |_, _| Cell::Declined,
    },
    Row {
        name: "set a slider",
        run: |form| write(form, "Slider", "40"),
        effect: Effect::Event("value slider 40"),
        cells: |_, _| ATTRIBUTE,
    },
    Row {
        name: "increment a slider",
        run: |form| perform(form, Find::Named("Slider"), ElementVerb::Increment),
        effect: Effect::Event("value slider 41"),
        cells: |toolkit, _| except_gtk(toolkit, ACTION),
    },
    Row {
        name: "decrement a slider",
        run: |form| perform(form, Find::Named("Slider"), ElementVerb::Decrement),
        effect: Effect::Event("value slider 40"),
        cells: |toolkit, _| except_gtk(toolkit, ACTION),
    },
    Row {
        name: "press a list item",
        run: |form| press(form, Find::Named("pear")),
        effect: Effect::Event("list pear"),
        cells: |toolkit, _| match toolkit {
            Toolkit::Gtk3 | Toolkit::Gtk4 => SELECT,
            Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => ACTION,
        },
    },
    Row {
        name: "press a list item that is chosen already",
        run: |form| press(form, Find::Named("pear")),
        effect: Effect::Event("list pear"),
        cells: |toolkit, _| match toolkit {
            Toolkit::Gtk3 | Toolkit::Gtk4 => Cell::Accepted(Path::AxSelect),
            // Their action would give the choice up.
            Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => Cell::Declined,
        },
    },
    Row {
        // GTK is asked to choose the row alone; the others' only action adds it.
        name: "press a row of a table (Qt and Chromium: adds to what was chosen)",
        run: |form| press(form, Find::Named("south")),
        effect: Effect::EventOf(|toolkit| match toolkit {
            Toolkit::Gtk3 | Toolkit::Gtk4 => "table south",
            Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => "table north,south",
        }),
        cells: |toolkit, _| match toolkit {
            Toolkit::Gtk3 => SELECT,
            Toolkit::Gtk4 => Cell::NoControl,
            Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => ACTION,
        },
    },
    Row {
        name: "confirm a row of a table",
        run: |form| perform(form, Find::Named("south"), ElementVerb::Confirm),
        effect: Effect::Event("table activated"),
        cells: |toolkit, _| match toolkit {
            Toolkit::Gtk3 => ACTION,
            Toolkit::Gtk4 => Cell::NoControl,
            Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => Cell::Declined,
        },
    },
    Row {
        name: "press an option of a combo box",
        run: |form| press(form, Find::Named("two")),
        effect: Effect::Event("combo two"),
        cells: |toolkit, _| match toolkit {
            Toolkit::Gtk3 => SELECT,
            Toolkit::Gtk4 => Cell::NoControl,
            // It would look selected, and the combo box would keep what it had.
            Toolkit::Qt5 | Toolkit::Qt6 => Cell::Declined,
            Toolkit::Chromium => ACTION,
        },
    },
    Row {
        name: "show the menu of a button",
        run: |form| perform(form, Find::Named("Push"), ElementVerb::ShowMenu),
        effect: Effect::Event("context button"),
        cells: |toolkit, _| match toolkit {
            Toolkit::Chromium => ACTION,
            Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => Cell::Declined,
        },
    },
    Row {
        name: "press an item of a closed menu",
        run: |form| match form.toolkit {
            // A page's menu bar belongs to the page.
            Toolkit::Chromium => press(form, Find::Named("New")),
            Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => {
                press(form, Find::InMenu("New"))
            }
        },
        effect: Effect::Event("menu New"),
        cells: |toolkit, _| match toolkit {
            Toolkit::Gtk4 => Cell::NoControl,
            Toolkit::Gtk3 | Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => ACTION,
        },
    },
    Row {
        name: "scroll a pane down by a page",
        run: |form| scroll(form, Find::Named("Scrolled"), Direction::Down),
        effect: Effect::Event("scrolled "),
        cells: |toolkit, _| scrolled(toolkit),
    },
    Row {
        name: "scroll up at something in the pane",
        run: |form| scroll(form, Find::Named("Last"), Direction::Up),
        effect: Effect::Event("scrolled 0"),
        cells: |toolkit, _| scrolled(toolkit),
    },
    Row {
        name: "scroll a button outside of every pane",
        run: |form| scroll(form, Find::Named("Push"), Direction::Down),
        effect: Effect::Event("scrolled "),
        cells: |_, _| Cell::Declined,
    },
    Row {
        name: "scroll to make a button visible",
        run: |form| perform(form, Find::Named("Last"), ElementVerb::ScrollToVisible),
        effect: Effect::Event("scrolled "),
        cells: |toolkit, _| match toolkit {
            Toolkit::Chromium => ACTION,
            Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => Cell::Declined,
        },
    },
    Row {
        name: "move a control as if it were a window",
        run: |form| form.perform(Find::Named("Push"), &ElementCommand::MoveWindow(place())),
        effect: Effect::Window(|_| false),
        cells: |_, _| Cell::Declined,
    },
    Row {
        name: "move the window",
        run: |form| arrange(form, &ElementCommand::MoveWindow(place())),
        effect: Effect::Window(|form| {
            form.window().is_some_and(|window| {
                let bounds = window.bounds;
                (bounds.x(), bounds.y()) == (place().x(), place().y())
                    && (bounds.width(), bounds.height())
                        == (form.bounds.width(), form.bounds.height())
            })
        }),
        cells: |_, _| ATTRIBUTE,
    },
    Row {
        name: "resize the window",
        run: |form| arrange(form, &ElementCommand::ResizeWindow(size())),
        effect: Effect::Window(|form| {
            form.window().is_some_and(|window| {
                let bounds = window.bounds;
                (bounds.width(), bounds.height()) == (size().width(), size().height())
                    && (bounds.x(), bounds.y()) == (place().x(), place().y())
            })
        }),
        cells: |_, _| ATTRIBUTE,
    },
    Row {
        name: "minimise the window",
        run: |form| arrange(form, &ElementCommand::MinimizeWindow),
        effect: Effect::Window(|form| form.window().is_some_and(|window| !window.on_screen)),
        cells: |_, cover| match cover {
            Cover::Uncovered | Cover::Covered => ATTRIBUTE,
        },
    },
];

fn place() -> ScreenPoint {
    ScreenPoint::try_new(90.0, 35.0).unwrap()
}

fn size() -> ScreenSize {
    ScreenSize::try_new(520.0, 745.0).unwrap()
}

fn except_gtk4(toolkit: Toolkit, cell: Cell) -> Cell {
    match toolkit {
        Toolkit::Gtk4 => Cell::Declined,
        Toolkit::Gtk3 | Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => cell,
    }
}

fn except_gtk(toolkit: Toolkit, cell: Cell) -> Cell {
    match toolkit {
        Toolkit::Gtk3 | Toolkit::Gtk4 => Cell::Declined,
        Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Chromium => cell,
    }
}

fn except_chromium(toolkit: Toolkit, cell: Cell) -> Cell {
    match toolkit {
        Toolkit::Chromium => Cell::Declined,
        Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => cell,
    }
}

fn scrolled(toolkit: Toolkit) -> Cell {
    match toolkit {
        Toolkit::Chromium => ACTION,
        Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt5 | Toolkit::Qt6 => ATTRIBUTE,
    }
}

/// Whether something is so about a control.
fn so(form: &Form, find: Find, is_so: impl Fn(&RawNode) -> bool) -> Outcome {
    match form.find(find) {
        Some(node) if is_so(&node) => Outcome::Done(Path::None),
        Some(_) => Outcome::Declined,
        None => Outcome::NoControl,
    }
}

fn perform(form: &Form, find: Find, verb: ElementVerb) -> Outcome {
    form.perform(find, &ElementCommand::Perform(verb))
}

fn press(form: &Form, find: Find) -> Outcome {
    perform(form, find, ElementVerb::Press)
}

fn write(form: &Form, name: &'static str, text: &str) -> Outcome {
    form.perform(Find::Named(name), &ElementCommand::SetValue(text.into()))
}

fn select(form: &Form, name: &'static str, text: &str) -> Outcome {
    let text = SomeText::new(text).unwrap();
    form.perform(Find::Named(name), &ElementCommand::SelectText(text))
}

fn scroll(form: &Form, find: Find, direction: Direction) -> Outcome {
    let pages = Pages::ONE;
    form.perform(find, &ElementCommand::Scroll { direction, pages })
}

fn arrange(form: &Form, command: &ElementCommand) -> Outcome {
    let root = form.tree().nodes.remove(0).node_ref;
    outcome(form.desktop.perform(&root, command, &soon()))
}
