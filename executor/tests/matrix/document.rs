//! `docs/linux-matrix.md`, made from the table.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::second;
use crate::table::{Cover, Setup, Toolkit};

const INTRODUCTION: &str = "# What works in which toolkit on X11

This table is made from the data of `executor/tests/matrix`, whose tests measure every cell with a real program and fail
when one is wrong. To write it anew after a change of the data: `MAKA_WRITE_MATRIX=1 cargo test -p maka-cu --test matrix
the_document_is_the_table`.

A path means that the program showed the effect and that pointer, active window, stacking and keyboard focus stayed as they
were, unless the cell says otherwise. \"no\" means that the action is not offered there (`element_not_actionable`, or the
wire's word for the case), and that nothing happened; \"`cg_event_global` only\" means the same without the host's permission to
move the pointer and change the active window. \"–\" means that the toolkit has no such control in its tree. Where a
full-screen window above makes a difference, the cell tells both.

The GTK 3 form was started with `GDK_CORE_DEVICE_EVENTS` in its environment, as the executor starts programs; for point input,
one that was started without is like GTK 4.

Measured with GTK 3.24.38, GTK 4.8.3, Qt 5.15.8, Qt 6.4.2 and Chromium under openbox.

";

const SECOND_POINTER: &str = "
## With `--second-pointer`

`maka-cu host --second-pointer` (for a gateway: `args = [\"--second-pointer\"]` below `[executor]`) makes a pointer beside the
person's, and with it reaches points of programs that hear nothing that is sent to them: GTK 4, and GTK 3 where somebody else
than the executor started the program. Everything else stays as above. It is off unless asked for, because of what it costs:

- A second cursor is drawn, and stays until the X server ends: to remove the pointer would end GTK 4 programs that know it.
  Executors of one display share it; each gesture waits up to two seconds for the one of another, and is refused then.
- Programs learn of another pointer and keyboard; one that cannot do with two may behave oddly. The clock of the screen saver
  starts anew with each gesture.
- The point must not be covered, since a pointer is over what lies on top.
- It takes XInput 2.2 and XTEST, openbox or xfwm4 (under another window manager the points are refused as without it), and no
  focus that follows the mouse. Under Xwayland the executor does not start with it. `maka-cu doctor` tells.
- An executor that is killed with a button held leaves it down on the second pointer until the next one starts; the person's
  pointer is never affected, and nothing stays grabbed or frozen.

The GTK 3 form was started here as a person starts it.

";

const LIMITS: &str = "
## What else to know

- Keys by `cg_event_pid` want `focusPolicy: acquire`. Qt tells of no focused element in a window that is in the background, so
  `require` is refused there.
- A handler of a GTK 3 program that runs a modal dialog inside itself (`gtk_dialog_run`), and was called by `click`, stops the
  program's accessibility until the dialog is closed. Windows of a program that answers nothing for two seconds have one
  element, which stands for the window, and are told to be truncated: points of them, as of the dialog, can be used.
- GTK 4.8 programs built on GtkApplication join the accessibility bus about a second after their window is there, on a busy
  machine later. Until then such a window has one element, which stands for it; observe it again.
- A window is `window_gone` to an observation for up to two seconds after its program has started, until it has joined the
  accessibility bus or is known not to.
- Two clicks on one spot within 400 ms are a double click to a program, as those of a person are.
- A menu that a sent click opened may take the real pointer for itself while it is open; that is the program's doing.
- A window that is fully covered and was never observed takes no sent input in Chromium until something of it can be seen.
";

/// Compares the document with the table, or writes it when asked to.
pub(crate) fn check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/linux-matrix.md");
    let text = text();
    if env::var_os("MAKA_WRITE_MATRIX").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/linux-matrix.md is not what the table says; see its first lines"
    );
}

fn text() -> String {
    let usual = table(&Toolkit::ALL, Setup::Usual);
    let second = table(&second::TOOLKITS, Setup::SecondPointer);
    [INTRODUCTION, &usual, SECOND_POINTER, &second, LIMITS].concat()
}

fn table(toolkits: &[Toolkit], setup: Setup) -> String {
    let mut text = String::new();
    let mut line = |first: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<_> = std::iter::once(first.to_owned()).chain(cells).collect();
        writeln!(text, "| {} |", cells.join(" | ")).unwrap();
    };
    let names = toolkits.iter().map(|toolkit| toolkit.as_str().to_owned());
    line("action", &mut names.clone());
    line("---", &mut names.map(|_| "---".to_owned()));
    for row in setup.rows() {
        let cell = |toolkit: &Toolkit| {
            let [uncovered, covered] = Cover::ALL.map(|cover| (row.cells)(*toolkit, cover));
            if uncovered == covered {
                uncovered.to_string()
            } else {
                format!("{uncovered}; covered: {covered}")
            }
        };
        line(row.name, &mut toolkits.iter().map(cell));
    }
    text
}
