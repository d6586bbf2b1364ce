//! What effects do to the desktop.

use std::sync::Arc;
use std::time::Instant;

use super::edit::Selection;
use super::{LiveWindow, Node, Stacking, World};
use crate::backend::virtual_desktop::scenario::{
    Behaviors, Change, Content, ControlId, Template, TemplatePart,
};

impl World {
    /// Carries out one change. `origin` is the process that caused it: of several instances of a window, its own is
    /// meant.
    pub(super) fn apply(&mut self, origin: Option<u32>, change: &Change, now: Instant) {
        match change {
            Change::Noop => {}
            Change::SetText(id, text) => {
                let text = self.fill(origin, text);
                self.with_control(origin, *id, |node| {
                    if node.control.content.is_text() {
                        (node.selection, node.scroll) = (Selection::AT_END, 0);
                    }
                    if !node.control.content.set_value(&text) {
                        node.control.title = Some(text);
                    }
                });
            }
            Change::SetLabel(id, text) => {
                let text = self.fill(origin, text);
                if let Some(window) = self.instance_mut(origin, id.window)
                    && let Some(node) = window.control_mut(id.control)
                {
                    node.control.label = Some(text);
                }
            }
            Change::SetWindowTitle(window, text) => {
                let text = self.fill(origin, text);
                if let Some(window) = self.instance_mut(origin, *window) {
                    window.title = text;
                }
            }
            Change::Toggle(id) => self.with_control(origin, *id, |node| {
                if let Content::CheckBox { checked } = &mut node.control.content {
                    *checked = !*checked;
                }
            }),
            Change::SetEnabled(id, enabled) => {
                if let Some(window) = self.instance_mut(origin, id.window)
                    && let Some(node) = window.control_mut(id.control)
                {
                    node.control.enabled = *enabled;
                }
            }
            Change::Remove(id) => {
                if let Some(window) = self.instance_mut(origin, id.window) {
                    window.remove_control(id.control);
                }
            }
            Change::AppendRow(id, text) => {
                let text = self.fill(origin, text);
                let mut next_node = self.next_node;
                if let Some(window) = self.instance_mut(origin, id.window) {
                    window.append_row(id.control, text, &mut next_node);
                }
                self.next_node = next_node;
            }
            Change::MoveWindow(window, x, y) => {
                if let Some(window) = self.instance_mut(origin, *window) {
                    (window.bounds.x, window.bounds.y) = (*x, *y);
                }
            }
            Change::ResizeWindow(window, width, height) => {
                if let Some(window) = self.instance_mut(origin, *window) {
                    window.resize(*width, *height);
                }
            }
            Change::RaiseWindow(window) => {
                if let Some(index) = self.instance(origin, *window) {
                    self.activate(index);
                }
            }
            Change::MinimizeWindow(window) => {
                if let Some(window) = self.instance_mut(origin, *window) {
                    window.minimized = true;
                    self.settle_foreground();
                }
            }
            Change::RestoreWindow(window) => {
                if let Some(window) = self.instance_mut(origin, *window) {
                    window.minimized = false;
                    self.settle_foreground();
                }
            }
            Change::Focus(id) => {
                if let Some(window) = self.instance_mut(origin, id.window)
                    && let Some(node) = window.node_of(id.control)
                {
                    window.set_focus(Some(node));
                }
            }
            Change::SetBehavior(id, behavior) => {
                if let Some(window) = self.instance_mut(origin, id.window)
                    && let Some(node) = window.control_mut(id.control)
                {
                    node.control.behavior = Behaviors::all(*behavior);
                }
            }
            Change::UserInput => self.user_input = Some(now),
            Change::OpenWindow(window) => self.open_on_behalf(origin, *window, now),
            Change::CloseWindow(window) => {
                if let Some(index) = self.instance(origin, *window) {
                    self.windows.remove(index);
                    self.settle_foreground();
                }
            }
            Change::ExitApp(app) => {
                if let Some(pid) = self.process_of(origin, *app) {
                    self.exit(pid);
                }
            }
            Change::ReplaceProcess(app) => {
                let start = self.take_start();
                if let Some(pid) = self.process_of(origin, *app)
                    && let Some(process) =
                        self.processes.iter_mut().find(|process| process.pid == pid)
                {
                    process.start = start;
                }
            }
            Change::SetLocked(locked) => self.locked = *locked,
        }
    }

    /// The same change with its text filled in, so that later changes to the source do not show in it.
    pub(super) fn fill_change(&self, origin: Option<u32>, change: &Change) -> Change {
        let fill = |text: &Template| Template(vec![TemplatePart::Text(self.fill(origin, text))]);
        match change {
            Change::SetText(id, text) => Change::SetText(*id, fill(text)),
            Change::SetLabel(id, text) => Change::SetLabel(*id, fill(text)),
            Change::SetWindowTitle(window, text) => Change::SetWindowTitle(*window, fill(text)),
            Change::AppendRow(id, text) => Change::AppendRow(*id, fill(text)),
            Change::Noop
            | Change::Toggle(_)
            | Change::SetEnabled(..)
            | Change::Remove(_)
            | Change::MoveWindow(..)
            | Change::ResizeWindow(..)
            | Change::MinimizeWindow(_)
            | Change::RestoreWindow(_)
            | Change::Focus(_)
            | Change::SetBehavior(..)
            | Change::UserInput
            | Change::RaiseWindow(_)
            | Change::OpenWindow(_)
            | Change::CloseWindow(_)
            | Change::ExitApp(_)
            | Change::ReplaceProcess(_)
            | Change::SetLocked(_) => change.clone(),
        }
    }

    fn fill(&self, origin: Option<u32>, template: &Template) -> String {
        let mut text = String::new();
        for part in &template.0 {
            match part {
                TemplatePart::Text(part) => text.push_str(part),
                TemplatePart::Control(id) => {
                    let node = self
                        .instance(origin, id.window)
                        .and_then(|index| self.windows[index].control(id.control));
                    if let Some(node) = node {
                        let value = node.control.content.shown_value();
                        text.push_str(
                            &value
                                .or_else(|| node.control.title.clone())
                                .unwrap_or_default(),
                        );
                    }
                }
            }
        }
        text
    }

    /// Ends a process: its windows close, and what it had still to do does not happen.
    fn exit(&mut self, pid: u32) {
        self.processes.retain(|process| process.pid != pid);
        self.windows.retain(|window| window.pid != pid);
        self.pending.retain(|pending| pending.origin != Some(pid));
        self.settle_foreground();
    }

    /// Brings a window to the front, back onto the screen if need be, and its application to the foreground.
    pub(super) fn activate(&mut self, index: usize) {
        let mut window = self.windows.remove(index);
        if window.minimized {
            Arc::make_mut(&mut window).minimized = false;
        }
        self.frontmost = Some(window.pid);
        self.stack(window, Stacking::Front);
    }

    /// Gives the foreground to the topmost window's process when its owner has no window any more.
    pub(super) fn settle_foreground(&mut self) {
        if !self
            .shown_windows()
            .any(|window| window.layer == 0 && Some(window.pid) == self.frontmost)
        {
            self.frontmost = self.topmost_pid();
        }
    }

    fn open_on_behalf(&mut self, origin: Option<u32>, window: usize, now: Instant) {
        let app = self.scenario.windows[window].app;
        let Some(pid) = self.process_of(origin, app) else {
            return;
        };
        if self
            .windows
            .iter()
            .any(|open| open.spec == window && open.pid == pid)
        {
            return;
        }
        // An application in the foreground opens its windows in front; any other one must not take the foreground.
        let stacking = if self.frontmost == Some(pid) {
            Stacking::Front
        } else {
            Stacking::BehindForeground
        };
        self.open_window(pid, window, stacking, now);
        if self.frontmost.is_none() {
            self.frontmost = self.topmost_pid();
        }
    }

    /// The process of an application: the cause itself if it is one, else the oldest.
    fn process_of(&self, origin: Option<u32>, app: usize) -> Option<u32> {
        let mut processes = self.processes.iter().filter(|process| process.app == app);
        let own = processes
            .clone()
            .find(|process| Some(process.pid) == origin);
        own.or_else(|| processes.next()).map(|process| process.pid)
    }

    /// The open instance of a window that an effect means: the cause's own, else the frontmost.
    fn instance(&self, origin: Option<u32>, spec: usize) -> Option<usize> {
        let own = self
            .windows
            .iter()
            .position(|window| window.spec == spec && Some(window.pid) == origin);
        own.or_else(|| self.windows.iter().position(|window| window.spec == spec))
    }

    fn instance_mut(&mut self, origin: Option<u32>, spec: usize) -> Option<&mut LiveWindow> {
        let index = self.instance(origin, spec)?;
        Some(Arc::make_mut(&mut self.windows[index]))
    }

    fn with_control(&mut self, origin: Option<u32>, id: ControlId, change: impl FnOnce(&mut Node)) {
        if let Some(window) = self.instance_mut(origin, id.window)
            && let Some(node) = window.control_mut(id.control)
        {
            change(node);
        }
    }
}
