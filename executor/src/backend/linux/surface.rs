//! Where a window is known from: what a tree needs to know of the window that it belongs to, and how the X server tells it.
//! The other implementation is in `wayland`.

use maka_cu_protocol::roles;
use maka_cu_protocol::text::AppText;

use super::LinuxDesktop;
use super::bus::Bus;
use super::display::unreadable;
use super::frame::{Placement, Toolkit};
use super::node::{AccessibleNode, LinuxNode, WindowContext};
use super::reader::Reader;
use super::services::Services;
use crate::backend::error::BackendError;
use crate::backend::tree::{NodeRef, RawNode};
use crate::deadline::Deadline;

/// A desktop, as far as the frames of its windows are concerned.
pub(super) trait Surface {
    /// The buses.
    fn services(&self) -> &Services;

    /// Where the window of this root is now, and how frames of its elements are counted.
    fn placement(
        &self,
        bus: &Bus,
        root: &AccessibleNode,
        deadline: &Deadline,
    ) -> Result<Placement, BackendError>;

    /// The one node of a window without a tree.
    fn window_node(
        &self,
        context: &WindowContext,
        deadline: &Deadline,
    ) -> Result<RawNode, BackendError>;
}

impl Surface for LinuxDesktop {
    fn services(&self) -> &Services {
        &self.services
    }

    fn placement(
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
            self.services
                .block_on(reader.extents(&root.object, Some(toolkit.coordinate_type())))
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

    fn window_node(
        &self,
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
            node_ref: NodeRef::new(LinuxNode::Window(context.clone())),
        })
    }
}
