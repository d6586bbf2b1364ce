//! Reading of single nodes, and of what their frames are counted from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use maka_cu_protocol::ids::WindowKey;
use maka_cu_protocol::roles;
use maka_cu_protocol::text::AppText;

use super::bus::{Bus, CallError};
use super::display::unreadable;
use super::frame::{Placement, Toolkit};
use super::locate::Located;
use super::node::{AccessibleNode, LinuxNode, WindowContext};
use super::reader::Reader;
use super::window::XWindow;
use super::{LinuxDesktop, locate, no_bus, process, walk};
use crate::backend::error::BackendError;
use crate::backend::tree::{NodeRef, RawNode};
use crate::deadline::Deadline;

/// From this many nodes on, one answer about all of an application is cheaper than an answer per node.
const WORTH_A_CACHE: usize = 24;

/// A program registers with the accessibility bus while it starts; until it is this old (in hundredths of a second), a
/// window whose program is not there yet is asked for again rather than called one without a tree.
const REGISTERS_WITHIN: u64 = 200;

/// A program that has answered nothing for so long is busy with something else, as one whose handler waits for a dialog. Its
/// window is shown as one that has more in it than can be told, so that points of it can be used.
const SILENT_FOR: Duration = Duration::from_secs(2);

impl LinuxDesktop {
    /// See [`crate::backend::Backend::window_root`].
    pub(super) fn root_of(
        &self,
        key: WindowKey,
        deadline: &Deadline,
    ) -> Result<Option<NodeRef>, BackendError> {
        let id = key.window_id;
        let windows = self.display.ask(deadline, move |screen| {
            let windows = screen.windows().map_err(unreadable)?;
            // From now on its pixels are kept, so that a picture asked for later is complete.
            if windows.iter().any(|window| window.id == id) {
                screen.redirect(id).map_err(unreadable)?;
            }
            Ok(windows)
        })?;
        let of_process: Vec<XWindow> = windows
            .into_iter()
            .filter(|window| window.pid == Some(key.pid))
            .collect();
        let wanted = of_process
            .iter()
            .position(|window| window.id == id)
            .ok_or(BackendError::WindowGone)?;
        let bus = self.bus(deadline)?;
        let silent_at = Instant::now() + SILENT_FOR;
        let located = loop {
            let located = self.within(
                deadline,
                locate::locate(
                    &self.accessibility,
                    &bus,
                    key.pid,
                    &of_process,
                    wanted,
                    deadline,
                ),
            )?;
            match located {
                // A busy program leaves a question out now and then.
                Err(CallError::Timeout) if Instant::now() < silent_at => {}
                located => break located,
            }
        };
        if matches!(located, Err(CallError::Timeout)) {
            let context = WindowContext {
                window: id,
                toolkit: Toolkit::ScreenBased,
            };
            return Ok(Some(NodeRef::new(LinuxNode::Silent(context))));
        }
        match located.map_err(no_bus)? {
            Located::Root { object, toolkit } => {
                let context = Arc::new(WindowContext {
                    window: id,
                    toolkit,
                });
                let node = AccessibleNode {
                    object,
                    context,
                    parent: None,
                    in_menu: false,
                };
                Ok(Some(NodeRef::new(LinuxNode::Accessible(Arc::new(node)))))
            }
            Located::NoMatch => Ok(None),
            Located::NoApplication => {
                let process = process::process(key.pid).ok_or(BackendError::WindowGone)?;
                let settled =
                    process::age_ticks(&process).is_none_or(|age| age >= REGISTERS_WITHIN);
                let context = WindowContext {
                    window: id,
                    toolkit: Toolkit::ScreenBased,
                };
                Ok(settled.then(|| NodeRef::new(LinuxNode::Window(context))))
            }
        }
    }

    /// Where the window is now, and how frames of its elements are counted.
    pub(super) fn placement(
        &self,
        bus: &Bus,
        root: &AccessibleNode,
        deadline: &Deadline,
    ) -> Result<Placement, BackendError> {
        let id = root.context.window;
        let window = self.display.ask(deadline, move |screen| {
            screen.window(id).map_err(unreadable)
        })?;
        let window = window.ok_or(BackendError::WindowGone)?;
        let toolkit = root.context.toolkit;
        let extents = if toolkit == Toolkit::Gtk4 && window.frame_extents.is_none() {
            let reader = Reader::new(bus, toolkit, deadline.clone());
            self.block_on(reader.extents(&root.object, Some(toolkit.coordinate_type())))
                .unwrap_or_default()
        } else {
            None
        };
        Ok(Placement::new(
            toolkit,
            window.area,
            window.frame_extents,
            extents,
        ))
    }

    /// The one node of a window without a tree, which `node` stands for.
    pub(super) fn window_node(
        &self,
        node: &LinuxNode,
        context: &WindowContext,
        deadline: &Deadline,
    ) -> Result<RawNode, BackendError> {
        let id = context.window;
        let window = self.display.ask(deadline, move |screen| {
            screen.window(id).map_err(unreadable)
        })?;
        let window = window.ok_or(BackendError::WindowGone)?;
        let placement = Placement::new(context.toolkit, window.area, None, None);
        let title = window.title.0;
        Ok(RawNode {
            role: roles::WINDOW.into(),
            subrole: Some(roles::STANDARD_WINDOW.into()),
            ax_identifier: None,
            title: (!title.is_empty()).then(|| AppText::new(title)),
            label: None,
            value: None,
            placeholder: None,
            enabled: true,
            focused: false,
            selected: None,
            frame: Some(placement.whole()),
            actions: Vec::new(),
            value_settable: false,
            secure: false,
            ancestor_roles: Vec::new(),
            sibling_index: 0,
            parent: None,
            depth: 0,
            node_ref: NodeRef::new(match node {
                LinuxNode::Silent(_) => LinuxNode::Silent(context.clone()),
                LinuxNode::Window(_) | LinuxNode::Accessible(_) => {
                    LinuxNode::Window(context.clone())
                }
            }),
        })
    }

    /// Reads nodes of one window again.
    pub(super) fn read_accessibles(
        &self,
        nodes: &[Arc<AccessibleNode>],
        deadline: &Deadline,
    ) -> Result<Vec<Option<RawNode>>, BackendError> {
        let Some(first) = nodes.first() else {
            return Ok(Vec::new());
        };
        let root = first.ancestors().last().unwrap_or(first);
        let bus = self.bus(deadline)?;
        let placement = self.placement(&bus, root, deadline)?;
        let reader = Reader::new(&bus, root.context.toolkit, deadline.clone());
        self.block_on(async {
            let reader = if nodes.len() >= WORTH_A_CACHE {
                reader.with_cache(&root.object).await
            } else {
                reader
            };
            walk::read_again(&reader, nodes, placement).await
        })
    }
}
