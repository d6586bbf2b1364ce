//! `Snapshot`, `CaptureScreen` and the parts of an observation that a dispatch shares.

use maka_cu_protocol::{ids::SessionId, menu::MenuScope, sets::SettleMode, text::SomeText};
use maka_proto::v1;
use tonic::Status;

use super::{scalar, violations::Violations};
use crate::session::call::{
    CaptureCall, ImageDelivery, ObserveAfterWish, ObserveWish, SnapshotCall,
};

/// Longest title of a menu.
const MAX_TITLE_BYTES: usize = 1024;

/// Decodes `Snapshot`.
///
/// # Errors
/// INVALID_ARGUMENT naming every bad field.
pub(crate) fn snapshot(request: v1::SnapshotRequest) -> Result<(SessionId, SnapshotCall), Status> {
    let v1::SnapshotRequest {
        session_id,
        target,
        image,
        max_elements,
        max_depth,
        max_text_chars,
        menu,
    } = request;
    let mut violations = Violations::default();
    let session = scalar::session_id(&mut violations, &session_id);
    let target = match target {
        None => Some(ObserveWish::Frontmost),
        Some(v1::snapshot_request::Target::AppId(app_id)) => {
            scalar::app_id(&mut violations, "app_id", &app_id).map(ObserveWish::App)
        }
        Some(v1::snapshot_request::Target::Window(window)) => {
            scalar::window(&mut violations, &window).map(ObserveWish::Window)
        }
    };
    let image = delivery(&mut violations, "image", image);
    let max_elements = scalar::at_least_one(&mut violations, "max_elements", max_elements);
    let max_depth = scalar::at_least_one(&mut violations, "max_depth", max_depth);
    let max_text_chars = scalar::at_least_one(&mut violations, "max_text_chars", max_text_chars);
    let menu = menu_scope(&mut violations, "menu", menu);
    let decoded = (|| {
        let call = SnapshotCall {
            target: target?,
            image: image?,
            max_elements: max_elements?,
            max_depth: max_depth?,
            max_text_chars: max_text_chars?,
            menu: menu?,
        };
        Some((session?, call))
    })();
    violations.finish(decoded)
}

/// Decodes `CaptureScreen`.
///
/// # Errors
/// INVALID_ARGUMENT naming every bad field.
pub(crate) fn capture(
    request: &v1::CaptureScreenRequest,
) -> Result<(SessionId, CaptureCall), Status> {
    let v1::CaptureScreenRequest {
        session_id,
        display_id,
        image,
    } = request;
    let mut violations = Violations::default();
    let session = scalar::session_id(&mut violations, session_id);
    let display_id = scalar::display_id(&mut violations, display_id.as_deref());
    let image = match delivery(&mut violations, "image", *image) {
        // A picture is all that this call gives.
        Some(ImageDelivery::None) => violations.refuse("image", "must be REFERENCE or INLINE"),
        image => image,
    };
    let decoded = (|| {
        Some((
            session?,
            CaptureCall {
                display_id: display_id?,
                image: image?,
            },
        ))
    })();
    violations.finish(decoded)
}

/// Decodes the frame that is wanted after an action; the outer option is a bad field.
pub(crate) fn observe_after(
    violations: &mut Violations,
    wish: Option<v1::ObserveAfter>,
) -> Option<Option<ObserveAfterWish>> {
    let Some(v1::ObserveAfter {
        image,
        settle,
        menu,
    }) = wish
    else {
        return Some(None);
    };
    let image = delivery(violations, "observe_after.image", image);
    let menu = menu_scope(violations, "observe_after.menu", menu);
    let settle = if settle {
        SettleMode::Quiesce
    } else {
        SettleMode::None
    };
    Some(Some(ObserveAfterWish {
        image: image?,
        settle,
        menu: menu?,
    }))
}

fn delivery(violations: &mut Violations, field: &str, number: i32) -> Option<ImageDelivery> {
    scalar::image_delivery(violations, field, number).map(Option::unwrap_or_default)
}

fn menu_scope(
    violations: &mut Violations,
    field: &str,
    request: Option<v1::MenuRequest>,
) -> Option<Option<MenuScope>> {
    let Some(v1::MenuRequest { scope, title }) = request else {
        return Some(None);
    };
    let title_field = || format!("{field}.title");
    let untitled = |violations: &mut Violations, title: Option<String>, scope| match title {
        None => Some(Some(scope)),
        Some(_) => violations.refuse(title_field(), "allowed with scope MENU only"),
    };
    match v1::MenuScope::try_from(scope) {
        Ok(v1::MenuScope::Bar) => untitled(violations, title, MenuScope::Bar),
        Ok(v1::MenuScope::All) => untitled(violations, title, MenuScope::All),
        Ok(v1::MenuScope::Menu) => {
            let title = title
                .filter(|title| title.len() <= MAX_TITLE_BYTES)
                .and_then(SomeText::new);
            match title {
                Some(title) => Some(Some(MenuScope::Menu { title })),
                None => violations.refuse(title_field(), "must have 1 to 1024 bytes"),
            }
        }
        Ok(v1::MenuScope::Unspecified) => {
            violations.refuse(format!("{field}.scope"), scalar::REQUIRED)
        }
        Err(_) => violations.refuse(format!("{field}.scope"), "not a member of its enum"),
    }
}
