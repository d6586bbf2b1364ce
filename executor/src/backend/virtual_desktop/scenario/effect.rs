//! Effects: what happens to the desktop after a cause, and when.

use std::time::Duration;

use super::Behavior;

/// A change to the desktop, carried out `delay` after its cause.
#[derive(Clone, PartialEq)]
pub(crate) struct Effect {
    /// Time between cause and change.
    pub(crate) delay: Duration,
    /// What changes.
    pub(crate) change: Change,
}

/// What an [`Effect`] changes.
///
/// A change whose target is not there any more (a closed window, a removed control) does nothing, as a signal to a
/// closed window does nothing on a real desktop.
#[derive(Clone, PartialEq)]
pub(crate) enum Change {
    /// Nothing; a press that is meant to have no effect says so.
    Noop,
    /// The value of a field, or the title of anything else, becomes a text.
    SetText(ControlId, Template),
    /// The description of a control becomes a text.
    SetLabel(ControlId, Template),
    /// A window is renamed.
    SetWindowTitle(usize, Template),
    /// A check box is inverted.
    Toggle(ControlId),
    /// A control can be used from now on, or cannot any more.
    SetEnabled(ControlId, bool),
    /// A control vanishes with everything in it.
    Remove(ControlId),
    /// A list gets one more row at its end.
    AppendRow(ControlId, Template),
    /// A window moves to a position on the screen.
    MoveWindow(usize, i32, i32),
    /// A window gets another size.
    ResizeWindow(usize, i32, i32),
    /// A window leaves the screen.
    MinimizeWindow(usize),
    /// A minimised window comes back.
    RestoreWindow(usize),
    /// A control gets the focus of its window, as when a person moves it there.
    Focus(ControlId),
    /// A control takes every action this way from now on.
    SetBehavior(ControlId, Behavior),
    /// A person touches pointer or keyboard.
    UserInput,
    /// A window comes to the front of the window order, and its application to the foreground.
    RaiseWindow(usize),
    /// A window of the same application opens, unless it is open.
    OpenWindow(usize),
    /// A window closes.
    CloseWindow(usize),
    /// The application ends; its windows close with it.
    ExitApp(usize),
    /// The application's process id now belongs to another process: same id, other start time.
    ReplaceProcess(usize),
    /// The screen is locked or unlocked.
    SetLocked(bool),
}

/// A control of a window, by place in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ControlId {
    /// Index into [`Scenario::windows`].
    pub(crate) window: usize,
    /// Index into [`WindowSpec::controls`].
    pub(crate) control: usize,
}

/// A text with holes that are filled, when the effect's cause happens, with what a control holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) Vec<TemplatePart>);

/// A piece of a [`Template`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    /// Text that stands for itself.
    Text(String),
    /// The value of a field, the state of a check box, or the title of anything else.
    Control(ControlId),
}
