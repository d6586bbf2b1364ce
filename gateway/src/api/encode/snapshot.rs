//! Snapshots, their elements and pictures.

use maka_cu_protocol::{
    element::Element,
    menu::Menu,
    snapshot::{DisplayInfo, SelectedText, Snapshot, SnapshotTarget, Truncation},
    text::AppText,
};
use maka_proto::v1;

use super::scalar;
use crate::session::answer::{Frame, ImageInfo, Picture, ScreenPicture};

/// A frame. The picture's path stays inside the gateway.
#[must_use]
pub(crate) fn frame(frame: Frame) -> v1::Snapshot {
    let Frame {
        snapshot,
        expires_unix_ms,
        picture,
    } = frame;
    let Snapshot {
        snapshot_id,
        captured_at,
        target,
        window_digest,
        focused_element_token,
        selected_text,
        image: _,
        image_absence: _,
        displays,
        obscuring_rects,
        elements,
        truncated,
        // Presentation for a model; a later contract may offer it.
        difference: _,
        menu,
    } = &*snapshot;
    let (image, image_absence) = self::picture(picture);
    v1::Snapshot {
        snapshot_id: snapshot_id.as_str().to_owned(),
        captured_unix_ms: scalar::unix_ms(captured_at.0),
        expires_unix_ms: scalar::unix_ms(expires_unix_ms),
        target: Some(self::target(target)),
        window_digest: window_digest.to_string(),
        focused_element_token: focused_element_token
            .as_ref()
            .map(|token| token.as_str().to_owned()),
        selected_text: selected_text.as_ref().map(self::selected_text),
        image,
        image_absence: image_absence.into(),
        displays: displays.iter().map(display).collect(),
        obscuring_rects_screen: obscuring_rects
            .iter()
            .map(|rect| scalar::screen_rect(*rect))
            .collect(),
        elements: elements.iter().map(element).collect(),
        truncated: Some(truncation(*truncated)),
        menu: menu.as_ref().map(self::menu),
    }
}

fn target(target: &SnapshotTarget) -> v1::SnapshotTarget {
    v1::SnapshotTarget {
        window: Some(scalar::window(target.window())),
        app_id: target.app_id.as_str().to_owned(),
        app_name: text(target.app_name.as_ref()),
        title: text(target.title.as_ref()),
        bounds_screen: Some(scalar::screen_rect(target.bounds)),
        layer: scalar::layer(target.layer),
        z_index: target.z_index,
        display_id: target
            .display_id
            .as_ref()
            .map(|display| display.as_str().to_owned()),
    }
}

fn selected_text(selected: &SelectedText) -> v1::SelectedText {
    v1::SelectedText {
        text: selected.text.as_str().to_owned(),
        truncated: selected.truncated,
    }
}

fn display(display: &DisplayInfo) -> v1::Display {
    v1::Display {
        display_id: display.display_id.as_str().to_owned(),
        logical_bounds_screen: Some(scalar::screen_rect(display.logical_bounds)),
        source_bounds_px: Some(scalar::image_rect(display.source_bounds_px)),
        scale_factor: display.scale_factor,
    }
}

fn truncation(truncation: Truncation) -> v1::Truncation {
    v1::Truncation {
        elements: truncation.elements,
        depth: truncation.depth,
    }
}

fn menu(menu: &Menu) -> v1::Menu {
    v1::Menu {
        elements: menu.elements.iter().map(element).collect(),
        truncated: Some(truncation(menu.truncated)),
    }
}

fn element(element: &Element) -> v1::Element {
    v1::Element {
        token: element.token.as_str().to_owned(),
        stable_id: element.stable_id,
        parent_token: element
            .parent_token
            .as_ref()
            .map(|token| token.as_str().to_owned()),
        depth: element.depth,
        role: element.role.as_str().to_owned(),
        subrole: element.subrole.clone(),
        ax_identifier: text(element.ax_identifier.as_ref()),
        title: text(element.title.as_ref()),
        label: text(element.label.as_ref()),
        value: text(element.value.as_ref()),
        placeholder: text(element.placeholder.as_ref()),
        enabled: element.enabled,
        focused: element.focused,
        selected: element.selected,
        frame_window: element.frame.map(scalar::window_rect),
        actions: element
            .actions
            .iter()
            .map(|action| action.as_str().to_owned())
            .collect(),
        digest: element.digest.to_string(),
        truncated: element
            .truncated
            .iter()
            .map(|field| field.as_str().to_owned())
            .collect(),
    }
}

/// Application text for the caller who asked to see the application.
pub(super) fn text(text: Option<&AppText>) -> Option<String> {
    text.map(|text| text.as_str().to_owned())
}

/// A picture and why it is not more than it is.
fn picture(picture: Picture) -> (Option<v1::Image>, v1::ImageAbsence) {
    let Picture {
        info,
        data,
        absence,
    } = picture;
    let image = info.map(|info| image(&info, data.unwrap_or_default()));
    (
        image,
        absence.map_or(v1::ImageAbsence::Unspecified, scalar::image_absence),
    )
}

/// A reference, with bytes when there are any.
#[must_use]
pub(crate) fn image(info: &ImageInfo, data: Vec<u8>) -> v1::Image {
    v1::Image {
        image_id: info.image_id.as_str().to_owned(),
        format: scalar::image_format(info.format).into(),
        width_px: info.width_px,
        height_px: info.height_px,
        byte_length: info.byte_length,
        sha256: info.sha256.to_string(),
        scale: info.scale,
        data,
        uniform: info.uniform,
        size_mismatch: info.size_mismatch,
    }
}

/// A picture of a display.
#[must_use]
pub(crate) fn screen(screen: ScreenPicture, decision_id: String) -> v1::CaptureScreenResponse {
    let ScreenPicture {
        picture,
        display_id,
        captured_unix_ms,
        displays,
    } = screen;
    let (image, image_absence) = self::picture(picture);
    v1::CaptureScreenResponse {
        image,
        image_absence: image_absence.into(),
        display_id: display_id.as_str().to_owned(),
        captured_unix_ms: scalar::unix_ms(captured_unix_ms),
        decision_id,
        displays: displays.iter().map(display).collect(),
    }
}
