//! Reading of trees and of single nodes, the same for every kind of session. What differs is where a window is known from,
//! which [`Surface`] tells.

use std::sync::Arc;

use super::bus::CALL_TIMEOUT;
use super::node::{AccessibleNode, LinuxNode};
use super::reader::Reader;
use super::services::{Services, no_bus};
use super::surface::Surface;
use super::{locate, walk};
use crate::backend::error::BackendError;
use crate::backend::tree::{NodeRef, RawNode, RawTree, WalkBudget, WalkScope};
use crate::deadline::Deadline;

/// From this many nodes on, one answer about all of an application is cheaper than an answer per node.
const WORTH_A_CACHE: usize = 24;

/// See [`crate::backend::Backend::menu_bar`].
pub(super) fn menu_bar(
    services: &Services,
    root: &NodeRef,
    deadline: &Deadline,
) -> Result<Option<NodeRef>, BackendError> {
    let root = match root.downcast() {
        Some(LinuxNode::Accessible(root)) => root,
        Some(LinuxNode::Window(_)) | None => return Ok(None),
        Some(LinuxNode::Silent(_)) => return Err(BackendError::Timeout),
    };
    let bus = services.bus(deadline)?;
    let reader = Reader::new(&bus, root.context.toolkit, deadline.clone());
    let found = services
        .block_on(locate::menu_bar(&reader, &root.object))
        .map_err(no_bus)?;
    Ok(found.map(|object| {
        let context = Arc::clone(&root.context);
        let node = AccessibleNode {
            object,
            context,
            parent: None,
            in_menu: true,
        };
        NodeRef::new(LinuxNode::Accessible(Arc::new(node)))
    }))
}

/// See [`crate::backend::Backend::walk`].
pub(super) fn walk(
    surface: &impl Surface,
    root: &NodeRef,
    scope: &WalkScope,
    budget: &WalkBudget,
) -> Result<RawTree, BackendError> {
    // The root belongs to every answer, so what is needed for it may take a moment beyond a spent budget.
    let for_root = if budget.deadline.remaining() < CALL_TIMEOUT {
        Deadline::within(CALL_TIMEOUT)
    } else {
        budget.deadline.clone()
    };
    match root.downcast().ok_or(BackendError::Unsupported)? {
        node @ (LinuxNode::Window(context) | LinuxNode::Silent(context)) => Ok(RawTree {
            nodes: vec![RawNode {
                node_ref: root.clone(),
                ..surface.window_node(context, &for_root)?
            }],
            // There is more in a silent one, and nobody tells what.
            truncated_elements: matches!(node, LinuxNode::Silent(_)),
            truncated_depth: false,
        }),
        LinuxNode::Accessible(root) => {
            let services = surface.services();
            let bus = services.bus(&for_root)?;
            let placement = surface.placement(&bus, root, &for_root)?;
            let reader = Reader::new(&bus, root.context.toolkit, for_root);
            services.block_on(async {
                let reader = reader.with_cache(&root.object).await;
                walk::walk(&reader, root, placement, scope, budget).await
            })
        }
    }
}

/// See [`crate::backend::Backend::read_nodes`].
pub(super) fn read_nodes(
    surface: &impl Surface,
    nodes: &[NodeRef],
    deadline: &Deadline,
) -> Result<Vec<Option<RawNode>>, BackendError> {
    let mut answers: Vec<Option<RawNode>> = vec![None; nodes.len()];
    let mut accessibles: Vec<(usize, Arc<AccessibleNode>)> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        match node.downcast().ok_or(BackendError::Unsupported)? {
            LinuxNode::Window(context) | LinuxNode::Silent(context) => {
                answers[index] = match surface.window_node(context, deadline) {
                    Ok(read) => Some(RawNode {
                        node_ref: node.clone(),
                        ..read
                    }),
                    Err(BackendError::WindowGone) => None,
                    Err(error) => return Err(error),
                };
            }
            LinuxNode::Accessible(node) => accessibles.push((index, Arc::clone(node))),
        }
    }
    // Normally all of one window; a caller that mixes windows gets the same answers window by window.
    while let Some(window) = accessibles.first().map(|(_, node)| node.context.window) {
        let (same, others): (Vec<_>, Vec<_>) = accessibles
            .into_iter()
            .partition(|(_, node)| node.context.window == window);
        accessibles = others;
        let (indexes, same): (Vec<usize>, Vec<Arc<AccessibleNode>>) = same.into_iter().unzip();
        let read = match read_accessibles(surface, &same, deadline) {
            Ok(read) => read,
            Err(BackendError::WindowGone) => continue,
            Err(error) => return Err(error),
        };
        for (index, node) in indexes.into_iter().zip(read) {
            answers[index] = node;
        }
    }
    Ok(answers)
}

/// Reads nodes of one window again.
fn read_accessibles(
    surface: &impl Surface,
    nodes: &[Arc<AccessibleNode>],
    deadline: &Deadline,
) -> Result<Vec<Option<RawNode>>, BackendError> {
    let Some(first) = nodes.first() else {
        return Ok(Vec::new());
    };
    let root = first.ancestors().last().unwrap_or(first);
    let services = surface.services();
    let bus = services.bus(deadline)?;
    let placement = surface.placement(&bus, root, deadline)?;
    let reader = Reader::new(&bus, root.context.toolkit, deadline.clone());
    services.block_on(async {
        let reader = if nodes.len() >= WORTH_A_CACHE {
            reader.with_cache(&root.object).await
        } else {
            reader
        };
        walk::read_again(&reader, nodes, placement).await
    })
}
