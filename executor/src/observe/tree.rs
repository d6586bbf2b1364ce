//! Raw trees to wire elements and to what the snapshot keeps.

use maka_cu_protocol::digest::{element_digest, window_digest};
use maka_cu_protocol::element::Element;
use maka_cu_protocol::ids::{Digest, ElementToken};
use maka_cu_protocol::menu::Menu;
use maka_cu_protocol::roles::{self, Role};
use maka_cu_protocol::sets::TextField;
use maka_cu_protocol::snapshot::{SelectedText, Snapshot as WireSnapshot, Truncation};
use maka_cu_protocol::text::{AppText, SomeText, truncate_graphemes};

use super::difference::difference;
use super::lineage::Lineage;
use crate::backend::desktop::WindowInfo;
use crate::backend::tree::{RawNode, RawTree};
use crate::snapshot::{Home, Recorded, digest_input};

/// What was walked for one snapshot.
#[derive(Debug)]
pub struct Trees {
    /// The window's tree.
    pub window: WalkedTree,
    /// `None` = not asked for.
    menu: Option<WalkedMenu>,
    /// What is selected in the focused element.
    pub selection: Option<Selection>,
}

/// Text that is selected in an element of the window.
#[derive(Debug)]
pub struct Selection {
    /// The element's index in the tree.
    at: usize,
    text: SelectedText,
}

impl Selection {
    /// The text, cut where it is too long; `None` when it is empty.
    #[must_use]
    pub fn new(at: usize, text: &AppText, max_text_chars: usize) -> Option<Self> {
        let (text, truncated) = truncate_graphemes(text.as_str(), max_text_chars);
        let text = SelectedText {
            text: SomeText::new(text)?,
            truncated,
        };
        Some(Self { at, text })
    }
}

/// What a menu that was asked for came to.
#[derive(Debug)]
pub enum MenuLook<T> {
    /// The application has no menu bar.
    Absent,
    /// The menu's share of the clock ended before anything of it was seen.
    CutOff,
    /// Its tree.
    Seen(T),
}

type WalkedMenu = MenuLook<WalkedTree>;

/// A tree and what its bounds cut.
#[derive(Debug)]
pub struct WalkedTree {
    /// Root first; a parent stands before its children.
    pub nodes: Vec<RawNode>,
    /// What was left out.
    pub truncation: Truncation,
}

/// What the snapshot keeps, each element with its token.
#[derive(Debug)]
pub struct Parts {
    /// The window's elements.
    pub elements: Vec<(ElementToken, Recorded)>,
    /// The menu's elements.
    pub menu: Vec<(ElementToken, Recorded)>,
}

impl Trees {
    /// Takes the trees; `None` when one has no root, which no back end may answer.
    #[must_use]
    pub fn new(window: RawTree, menu: Option<MenuLook<RawTree>>) -> Option<Self> {
        let walked = |tree: RawTree| {
            let truncation = Truncation {
                elements: tree.truncated_elements,
                depth: tree.truncated_depth,
            };
            (!tree.nodes.is_empty()).then_some(WalkedTree {
                nodes: tree.nodes,
                truncation,
            })
        };
        let menu = match menu {
            None => None,
            Some(MenuLook::Absent) => Some(MenuLook::Absent),
            Some(MenuLook::CutOff) => Some(MenuLook::CutOff),
            Some(MenuLook::Seen(tree)) => Some(MenuLook::Seen(walked(tree)?)),
        };
        Some(Self {
            window: walked(window)?,
            menu,
            selection: None,
        })
    }

    /// The first element of the window that has the focus, and its index.
    #[must_use]
    pub fn focused(&self) -> Option<(usize, &RawNode)> {
        let mut nodes = self.window.nodes.iter().enumerate();
        nodes.find(|(_, node)| node.focused)
    }

    /// Nodes in both trees.
    #[must_use]
    pub fn len(&self) -> usize {
        let menu = match &self.menu {
            Some(MenuLook::Seen(tree)) => tree.nodes.len(),
            Some(MenuLook::Absent | MenuLook::CutOff) | None => 0,
        };
        self.window.nodes.len() + menu
    }

    /// Whether there are no nodes; never, since a window has a root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the first nodes of the window, as many as the first bound says, and the whole menu into the snapshot, with
    /// texts of at most the second bound. In depth-first order any beginning of a tree is a tree.
    pub fn fill(
        &self,
        wire: &mut WireSnapshot,
        target: &WindowInfo,
        lineage: &Lineage,
        (keep, max_text_chars): (usize, usize),
        tokens: &[ElementToken],
    ) -> Parts {
        let (window_tokens, menu_tokens) =
            tokens.split_at(self.window.nodes.len().min(tokens.len()));
        let kept_nodes = &self.window.nodes[..keep.min(self.window.nodes.len())];
        let (mut elements, kept) = convert(kept_nodes, window_tokens, Home::Window, max_text_chars);
        for (index, element) in elements.iter_mut().enumerate() {
            element.stable_id = lineage.stable_id(index);
        }
        wire.window_digest = digest_of(kept.iter().map(|(_, recorded)| recorded.digest), target);
        wire.focused_element_token = elements
            .iter()
            .find(|element| element.focused)
            .map(|element| element.token.clone());
        // Selected text is that of the focused element, so it is cut off together with it.
        let selection = self.selection.as_ref();
        wire.selected_text = selection
            .filter(|selection| selection.at < elements.len())
            .map(|selection| selection.text.clone());
        wire.difference = difference(lineage, &elements);
        wire.truncated = self.window.truncation;
        wire.truncated.elements |= kept_nodes.len() < self.window.nodes.len();
        wire.elements = elements;
        let mut parts = Parts {
            elements: kept,
            menu: Vec::new(),
        };
        wire.menu = self.menu.as_ref().map(|menu| match menu {
            MenuLook::Absent => Menu {
                elements: Vec::new(),
                truncated: Truncation::default(),
            },
            MenuLook::CutOff => Menu {
                elements: Vec::new(),
                truncated: Truncation {
                    elements: true,
                    depth: false,
                },
            },
            MenuLook::Seen(tree) => {
                let (elements, kept) =
                    convert(&tree.nodes, menu_tokens, Home::Menu, max_text_chars);
                parts.menu = kept;
                Menu {
                    elements,
                    truncated: tree.truncation,
                }
            }
        });
        parts
    }
}

/// The window digest over these elements, with the window's present bounds and title.
#[must_use]
pub fn digest_of(elements: impl IntoIterator<Item = Digest>, window: &WindowInfo) -> Digest {
    window_digest(
        elements,
        window.bounds,
        window.title.as_ref().map(AppText::as_str),
    )
}

pub(super) fn convert(
    nodes: &[RawNode],
    tokens: &[ElementToken],
    home: Home,
    max_text_chars: usize,
) -> (Vec<Element>, Vec<(ElementToken, Recorded)>) {
    let convert_one = |(node, token): (&RawNode, &ElementToken)| {
        let input = digest_input(node, home);
        let digest = element_digest(&input);
        let parent_token = node.parent.and_then(|parent| tokens.get(parent)).cloned();
        let element = element(
            node,
            token.clone(),
            parent_token,
            digest,
            home,
            max_text_chars,
        );
        (
            element,
            (
                token.clone(),
                Recorded {
                    node: node.node_ref.clone(),
                    input,
                    digest,
                },
            ),
        )
    };
    nodes.iter().zip(tokens).map(convert_one).unzip()
}

fn element(
    node: &RawNode,
    token: ElementToken,
    parent_token: Option<ElementToken>,
    digest: Digest,
    home: Home,
    max_text_chars: usize,
) -> Element {
    let mut truncated = Vec::new();
    let mut cut = |text: &Option<AppText>, field| {
        let (text, was_cut) = truncate_graphemes(text.as_ref()?.as_str(), max_text_chars);
        if was_cut {
            truncated.push(field);
        }
        Some(AppText::new(text))
    };
    Element {
        token,
        stable_id: None,
        parent_token,
        depth: u32::try_from(node.depth).unwrap_or(u32::MAX),
        role: Role::new(node.role.as_str()).unwrap_or(Role::known(roles::UNKNOWN)),
        subrole: node.subrole.clone(),
        ax_identifier: node.ax_identifier.clone(),
        title: cut(&node.title, TextField::Title),
        label: cut(&node.label, TextField::Label),
        // The characters of a password field stay where they are, whatever a back end read.
        value: if node.secure {
            None
        } else {
            cut(&node.value, TextField::Value)
        },
        placeholder: cut(&node.placeholder, TextField::Placeholder),
        enabled: node.enabled,
        focused: node.focused,
        selected: node.selected,
        frame: match home {
            Home::Window => node.frame,
            Home::Menu => None,
        },
        actions: node.actions.clone(),
        digest,
        truncated,
    }
}
