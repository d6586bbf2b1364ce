//! What a retained reference of this back end holds.

use std::sync::Arc;

use super::bus::ObjectRef;
use super::frame::Toolkit;

/// The window that a tree belongs to.
#[derive(Clone, Debug)]
pub(super) struct WindowContext {
    /// The X window, which is also the window id of the protocol.
    pub(super) window: u32,
    pub(super) toolkit: Toolkit,
}

/// One node.
#[derive(Debug)]
pub(super) enum LinuxNode {
    /// A window without a tree; the reference stands for the window.
    Window(WindowContext),
    /// A window whose program has a tree and does not answer; the reference stands for the window.
    Silent(WindowContext),
    /// An accessible.
    Accessible(Arc<AccessibleNode>),
}

/// One accessible, with the way down to it: digests need the ancestors, and the way up that toolkits report is not
/// always the way down that led here.
#[derive(Debug)]
pub(super) struct AccessibleNode {
    pub(super) object: ObjectRef,
    pub(super) context: Arc<WindowContext>,
    /// `None` for the root of a walk.
    pub(super) parent: Option<Arc<AccessibleNode>>,
    /// Menus have no frames.
    pub(super) in_menu: bool,
}

impl AccessibleNode {
    /// The ancestors, nearest first, up to the root of the walk.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(self.parent.as_ref(), |node| node.parent.as_ref())
    }
}

/// By hand, because dropping a chain link by link would recurse as deep as the tree is.
impl Drop for AccessibleNode {
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(mut node) = above.and_then(Arc::into_inner) {
            above = node.parent.take();
        }
    }
}
