//! Reading of single nodes, and of what their frames are counted from.

use std::sync::Arc;

use maka_cu_protocol::roles;
use maka_cu_protocol::text::AppText;

use super::bus::Bus;
use super::display::unreadable;
use super::frame::{Placement, Toolkit};
use super::node::{AccessibleNode, LinuxNode, WindowContext};
use super::reader::Reader;
use super::{LinuxDesktop, walk};
use crate::backend::error::BackendError;
use crate::backend::tree::{NodeRef, RawNode};
use crate::deadline::Deadline;

/// From this many nodes on, one answer about all of an application is cheaper than an answer per node.
const WORTH_A_CACHE: usize = 24;

impl LinuxDesktop {
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
