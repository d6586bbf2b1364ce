//! A snapshot of one window (§4.1): what an agent sees and every later dispatch quotes.

use std::{collections::HashSet, path::Path};

use crate::{
    difference::Difference,
    element::Element,
    geometry::{ImageRect, ScreenRect},
    handshake::Limits,
    ids::{AppId, Digest, DisplayId, ElementToken, Millis, SnapshotId, WindowKey},
    image::ImageRef,
    json::{Reason, Violation, record},
    menu::Menu,
    sets::ImageAbsence,
    text::{AppText, SomeText},
};

record! {
    /// The observed window.
    pub struct SnapshotTarget {
        /// Process id.
        pub pid: u32 = "pid";
        /// Window id.
        pub window_id: u32 = "windowId";
        /// Application identity, spelled as in every list.
        pub app_id: AppId = "appId";
        /// Display name of the application.
        pub app_name: Option<AppText> = "appName";
        /// Window title.
        pub title: Option<AppText> = "title";
        /// Where the window is.
        pub bounds: ScreenRect = "bounds";
        /// Window layer; ordinary windows are on 0.
        pub layer: i64 = "layer";
        /// Stacking position; larger is nearer to the front.
        pub z_index: i64 = "zIndex";
        /// The display it is on.
        pub display_id: Option<DisplayId> = "displayId";
    }
}

impl SnapshotTarget {
    /// The window's key.
    #[must_use]
    pub const fn window(&self) -> WindowKey {
        WindowKey {
            pid: self.pid,
            window_id: self.window_id,
        }
    }
}

record! {
    /// Selected text of the focused element; an empty selection is absent.
    #[derive(Eq)]
    pub struct SelectedText {
        /// The text.
        pub text: SomeText = "text";
        /// Whether it was cut.
        pub truncated: bool = "truncated";
    }
}

record! {
    /// One display and where it lies in a screenshot of all of them.
    pub struct DisplayInfo {
        /// Which display.
        pub display_id: DisplayId = "displayId";
        /// Where it is, in screen points.
        pub logical_bounds: ScreenRect = "logicalBounds";
        /// Where it is in the screenshot.
        pub source_bounds_px: ImageRect = "sourceBoundsPx";
        /// Pixels per logical point.
        pub scale_factor: f64 = "scaleFactor";
    }
}

record! {
    /// What a walk's bounds cut (§4.7).
    #[derive(Copy, Default, Eq)]
    pub struct Truncation {
        /// Element count, walk time or message size.
        pub elements: bool = "elements";
        /// Depth.
        pub depth: bool = "depth";
    }
}

record! {
    /// The snapshot.
    pub struct Snapshot {
        /// Its name.
        pub snapshot_id: SnapshotId = "snapshotId";
        /// When, in milliseconds since the Unix epoch.
        pub captured_at: Millis = "capturedAt";
        /// Of which window.
        pub target: SnapshotTarget = "target";
        /// Identity of the whole window (§4.5).
        pub window_digest: Digest = "windowDigest";
        /// First focused element of the window tree; never a menu token.
        pub focused_element_token: Option<ElementToken> = "focusedElementToken";
        /// Selected text.
        pub selected_text: Option<SelectedText> = "selectedText";
        /// The picture.
        pub image: Option<ImageRef> = "image";
        /// Why there is none although one was asked for.
        pub image_absence: Option<ImageAbsence> = "imageAbsence";
        /// The displays; may be empty.
        pub displays: Vec<DisplayInfo> = "displays";
        /// What lies above the window. Presentation only.
        pub obscuring_rects: Vec<ScreenRect> = "obscuringRects";
        /// The window tree, root first, depth first.
        pub elements: Vec<Element> = "elements";
        /// What the bounds cut.
        pub truncated: Truncation = "truncated";
        /// What changed since an earlier snapshot.
        pub difference: Option<Difference> = "difference";
        /// The menu; absent unless it was asked for.
        pub menu: Option<Menu> = "menu";
    }
    => Snapshot::check
}

impl Snapshot {
    /// Looks an element of the window or the menu up by token.
    #[must_use]
    pub fn element(&self, token: &ElementToken) -> Option<&Element> {
        self.all_elements().find(|element| element.token == *token)
    }

    /// The window's elements, then the menu's: one token table (§4.6).
    pub fn all_elements(&self) -> impl Iterator<Item = &Element> {
        self.elements
            .iter()
            .chain(self.menu.iter().flat_map(|menu| &menu.elements))
    }

    /// Checks that the picture, if there is one, lies inside the image directory.
    ///
    /// # Errors
    /// [`Reason::OutsideImageDir`] on `image.path`.
    pub fn check_image_dir(&self, image_dir: &Path) -> Result<(), Violation> {
        let check = |image: &ImageRef| image.check_inside(image_dir);
        self.image
            .as_ref()
            .map_or(Ok(()), check)
            .map_err(|violation| violation.at("image"))
    }

    /// Holds the trees to the limits the executor announced in its handshake (§2.2): more elements, or deeper ones, than it
    /// said it would ever send. Texts are not counted, because executors differ in what a character is; the length of the
    /// whole message is the line codec's business.
    ///
    /// # Errors
    /// [`Reason::OutOfRange`] on the list that is too long or the depth that is too great.
    pub fn check_limits(&self, limits: &Limits) -> Result<(), Violation> {
        let most_in_menu = limits.max_menu_elements.unwrap_or(u64::MAX);
        let menu = self.menu.as_ref().map(|menu| &menu.elements);
        let lists = [
            ("elements", Some(&self.elements), limits.max_elements),
            ("menu.elements", menu, most_in_menu),
        ];
        for (name, elements, most) in lists {
            if elements.is_some_and(|elements| elements.len() as u64 > most) {
                return Err(Violation::of(name, Reason::OutOfRange));
            }
        }
        // The root has depth 0, so the deepest of `maxDepth` levels has one less (§2.2).
        let too_deep = |element: &Element| u64::from(element.depth) >= limits.max_depth;
        match self.elements.iter().position(too_deep) {
            Some(index) => Err(Violation::of("depth", Reason::OutOfRange)
                .at_index(index)
                .at("elements")),
            None => Ok(()),
        }
    }

    /// The rules that span several fields and elements (§7): a picture or the reason for its absence, unique tokens, stable
    /// ids on all or none and unique, a difference that agrees with the tree.
    fn check(&self) -> Result<(), Violation> {
        if self.image.is_some() && self.image_absence.is_some() {
            return Err(Violation::of("imageAbsence", Reason::Contradiction));
        }
        self.check_tokens()?;
        self.check_stable_ids()?;
        let check = |difference: &Difference| difference.check_against(&self.elements);
        self.difference
            .as_ref()
            .map_or(Ok(()), check)
            .map_err(|violation| violation.at("difference"))
    }

    fn check_tokens(&self) -> Result<(), Violation> {
        let mut seen = HashSet::with_capacity(self.elements.len());
        let window = self
            .elements
            .iter()
            .enumerate()
            .map(|(index, element)| ("elements", index, element));
        let menu = self.menu.iter().flat_map(|menu| &menu.elements);
        let menu = menu
            .enumerate()
            .map(|(index, element)| ("menu.elements", index, element));
        for (list, index, element) in window.chain(menu) {
            // A dispatch by a token that two elements share would have no single target.
            if !seen.insert(&element.token) {
                return Err(Violation::of("token", Reason::Duplicate)
                    .at_index(index)
                    .at(list));
            }
        }
        Ok(())
    }

    fn check_stable_ids(&self) -> Result<(), Violation> {
        let numbered = self
            .elements
            .first()
            .is_some_and(|root| root.stable_id.is_some());
        let mut seen = HashSet::with_capacity(self.elements.len());
        for (index, element) in self.elements.iter().enumerate() {
            let reason = match element.stable_id {
                Some(_) if !numbered => Reason::Contradiction,
                None if numbered => Reason::Contradiction,
                Some(stable_id) if !seen.insert(stable_id) => Reason::Duplicate,
                Some(_) | None => continue,
            };
            return Err(Violation::of("stableId", reason)
                .at_index(index)
                .at("elements"));
        }
        Ok(())
    }
}
