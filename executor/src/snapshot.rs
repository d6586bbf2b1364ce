//! What is kept of a snapshot so that a later dispatch can be bound to it (spec §4.4).
//!
//! Kept are references and digest inputs, not the wire form: the host has that. Values are kept as hashes only.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use maka_cu_protocol::digest::{ElementDigestInput, value_digest};
use maka_cu_protocol::ids::{Digest, ElementToken, SnapshotId, WindowKey};

use crate::backend::desktop::ProcessStart;
use crate::backend::tree::{NodeRef, RawNode};
use crate::image::store::StoredImage;

/// A snapshot as the executor keeps it.
#[derive(Debug)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// The window it shows.
    pub window: WindowKey,
    /// When the window's process started (E2).
    pub process_start: ProcessStart,
    /// When it was taken.
    pub taken: Instant,
    /// The digest of the whole window.
    pub window_digest: Digest,
    /// The elements of the window, root first.
    pub elements: Vec<Recorded>,
    /// The elements of the menu bar, when it was walked.
    pub menu: Vec<Recorded>,
    /// One table for both: a token says by itself what it names.
    tokens: HashMap<ElementToken, Slot>,
    /// Pixels of its picture per point of the window; `None` when it has no picture.
    pub image_scale: Option<f64>,
    image: Mutex<Option<StoredImage>>,
}

/// One element as it was observed.
#[derive(Debug)]
pub struct Recorded {
    /// The retained reference (E1).
    pub node: NodeRef,
    /// What the digest was made from, to name what changed.
    pub input: ElementDigestInput,
    /// The digest (E3).
    pub digest: Digest,
}

/// Where an element belongs. Elements of a menu have no place in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The window's own tree.
    Window,
    /// The menu bar.
    Menu,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    home: Home,
    index: usize,
}

impl Snapshot {
    /// A snapshot that is not registered yet. `tokens` and `menu_tokens` belong to `elements` and `menu`, in order.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site, each argument a field"
    )]
    #[must_use]
    pub fn new(
        id: SnapshotId,
        window: WindowKey,
        process_start: ProcessStart,
        taken: Instant,
        window_digest: Digest,
        elements: Vec<(ElementToken, Recorded)>,
        menu: Vec<(ElementToken, Recorded)>,
        image: Option<(StoredImage, f64)>,
    ) -> Self {
        let mut tokens = HashMap::with_capacity(elements.len() + menu.len());
        let mut keep = |list: Vec<(ElementToken, Recorded)>, home| {
            let keep_one = |(index, (token, recorded)): (usize, (ElementToken, Recorded))| {
                tokens.insert(token, Slot { home, index });
                recorded
            };
            list.into_iter()
                .enumerate()
                .map(keep_one)
                .collect::<Vec<_>>()
        };
        let elements = keep(elements, Home::Window);
        let menu = keep(menu, Home::Menu);
        Self {
            id,
            window,
            process_start,
            taken,
            window_digest,
            elements,
            menu,
            tokens,
            image_scale: image.as_ref().map(|(_, scale)| *scale),
            image: Mutex::new(image.map(|(file, _)| file)),
        }
    }

    /// The element that the token names, by exact spelling.
    #[must_use]
    pub fn element(&self, token: &ElementToken) -> Option<(Home, &Recorded)> {
        let Slot { home, index } = *self.tokens.get(token)?;
        let list = match home {
            Home::Window => &self.elements,
            Home::Menu => &self.menu,
        };
        Some((home, list.get(index)?))
    }

    /// Whether the token names the root of the window's tree.
    #[must_use]
    pub fn is_root(&self, token: &ElementToken) -> bool {
        let root = |slot: &Slot| slot.home == Home::Window && slot.index == 0;
        self.tokens.get(token).is_some_and(root)
    }

    /// Deletes the picture; whether a file went.
    pub fn drop_image(&self) -> bool {
        let image = self
            .image
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        image.is_some_and(|image| image.exists())
    }
}

/// What an element's digest is made from. The only such function: observing and dispatching both use it, so an element
/// that did not change cannot look changed.
#[must_use]
pub fn digest_input(node: &RawNode, home: Home) -> ElementDigestInput {
    ElementDigestInput {
        role: node.role.clone(),
        subrole: node.subrole.clone(),
        ax_identifier: node.ax_identifier.clone(),
        title: node.title.clone(),
        label: node.label.clone(),
        value_digest: node
            .value
            .as_ref()
            .map(|value| value_digest(value.as_str())),
        frame: match home {
            Home::Window => node.frame,
            Home::Menu => None,
        },
        actions: node.actions.clone(),
        ancestor_roles: node.ancestor_roles.clone(),
        sibling_index: u32::try_from(node.sibling_index).unwrap_or(u32::MAX),
    }
}
