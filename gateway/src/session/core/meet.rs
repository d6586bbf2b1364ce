//! Carrying out the conditions of an answer (see [`crate::session::conditions`]) before anything of it leaves.
//!
//! INVARIANT: a picture that parts of are kept back is painted before its length and hash are told, and is painted again
//! whenever its bytes are read; one that cannot be painted, or on which a part cannot be found, is not shown at all.

use std::sync::Arc;

use maka_cu_host::frame::{FrameError, Geometry, geometry};
use maka_cu_protocol::geometry::WindowRect;
use maka_cu_protocol::ids::Digest;
use maka_cu_protocol::image::ImageRef;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::snapshot::Snapshot;
use maka_policy_host::fingerprint::Fingerprint;

use super::Core;
use crate::error::CallError;
use crate::session::answer::{Frame, ImageAbsence, ImageInfo, Picture};
use crate::session::call::ImageDelivery;
use crate::session::conditions::{Conditions, Field, PixelRect, Redaction, Region, Which};
use crate::session::image::{self, Stored};

/// Pixels around an element that are painted with it: its edges may lie between pixels.
const MARGIN: f64 = 1.0;

impl Core {
    /// What a caller gets of a frame. Its picture can be fetched when it is added to the images, which is the caller's
    /// business.
    ///
    /// # Errors
    /// When the picture is not what the executor said; the executor is ended for it.
    pub(super) async fn meet_frame(
        &mut self,
        conditions: &Conditions,
        mut frame: Frame,
        image: Option<Stored>,
        (delivery, method): (ImageDelivery, Method),
        by: Fingerprint,
    ) -> Result<(Frame, Option<Stored>), CallError> {
        let image = match image {
            Some(image) => {
                let seen = Some(&*frame.snapshot);
                let image = self.meet_image(conditions, seen, image, method).await?;
                frame.picture = shown(image.as_ref());
                image
            }
            None => None,
        };
        if !conditions.redactions.is_empty() {
            redact(conditions, Arc::make_mut(&mut frame.snapshot));
        }
        self.inline(&mut frame.picture, image.as_ref(), delivery, method)
            .await?;
        if conditions.no_follow_up {
            self.mirror.seal(&frame.snapshot.snapshot_id, by);
        }
        Ok((frame, image))
    }

    /// What a caller gets of a picture: as it is, painted over, or nothing.
    ///
    /// # Errors
    /// As [`Core::meet_frame`].
    pub(super) async fn meet_image(
        &self,
        conditions: &Conditions,
        snapshot: Option<&Snapshot>,
        mut image: Stored,
        method: Method,
    ) -> Result<Option<Stored>, CallError> {
        let is_too_large = |image: &Stored| {
            conditions
                .max_bytes
                .is_some_and(|max| image.info.byte_length > max)
        };
        if conditions.drop_image || is_too_large(&image) {
            return Ok(None);
        }
        let regions: Vec<_> = conditions.regions().collect();
        if regions.is_empty() {
            return Ok(Some(image));
        }
        let Some(parts) = places(&regions, snapshot, &image.source.image) else {
            return Ok(None);
        };
        image.source.paint = parts.into();
        let (source, generation) = (image.source.clone(), image.source.generation);
        let read = tokio::task::spawn_blocking(move || image::read(&source)).await;
        match read {
            Ok(Ok(frame)) => {
                image.info = ImageInfo {
                    byte_length: u64::try_from(frame.bytes.len()).unwrap_or(u64::MAX),
                    sha256: Digest::of(&frame.bytes),
                    ..image.info
                };
                Ok(Some(image).filter(|image| !is_too_large(image)))
            }
            Ok(Err(FrameError::Violation(violation))) => {
                self.parts
                    .forward
                    .report_violation(generation, method, violation);
                Err(CallError::Protocol {
                    generation,
                    decision_id: None,
                })
            }
            // What cannot be painted is not shown. A reader that panicked has painted nothing.
            Ok(Err(FrameError::Unreadable | FrameError::TooLarge)) | Err(_) => Ok(None),
        }
    }
}

/// The picture of an answer whose conditions left this much of it.
pub(super) fn shown(image: Option<&Stored>) -> Picture {
    Picture {
        info: image.map(|image| image.info.clone()),
        data: None,
        absence: image.is_none().then_some(ImageAbsence::DroppedByPolicy),
    }
}

/// Where the regions are; nothing when one of them cannot be found for sure.
fn places(
    regions: &[&Region],
    snapshot: Option<&Snapshot>,
    image: &ImageRef,
) -> Option<Vec<PixelRect>> {
    let mut parts = Vec::new();
    for region in regions {
        let is_in = |element: &maka_cu_protocol::element::Element| match region {
            Region::Secure => element.is_secure(),
            Region::Role(role) => element.role.as_str() == role,
            Region::Rect(_) => false,
        };
        if let Region::Rect(rect) = region {
            parts.push(*rect);
            continue;
        }
        let snapshot = snapshot?;
        let is_whole = !snapshot.truncated.elements && !snapshot.truncated.depth;
        if !is_whole || geometry(image, snapshot.target.bounds) == Geometry::Inconsistent {
            return None;
        }
        for element in snapshot.elements.iter().filter(|element| is_in(element)) {
            parts.extend(pixels(element.frame?, image.scale));
        }
    }
    Some(parts)
}

/// The pixels of a place in a window, rounded outwards; nothing when it lies outside.
fn pixels(frame: WindowRect, scale: f64) -> Option<PixelRect> {
    let from = |at: f64| {
        (at * scale - MARGIN)
            .floor()
            .clamp(0.0, f64::from(u32::MAX))
    };
    let to = |at: f64| (at * scale + MARGIN).ceil().clamp(0.0, f64::from(u32::MAX));
    let (left, top) = (from(frame.x()), from(frame.y()));
    let (right, bottom) = (
        to(frame.x() + frame.width()),
        to(frame.y() + frame.height()),
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole numbers between 0 and the largest there is"
    )]
    let rect = PixelRect {
        x: left as u32,
        y: top as u32,
        width: (right - left) as u32,
        height: (bottom - top) as u32,
    };
    (rect.width > 0 && rect.height > 0).then_some(rect)
}

/// Takes the texts out that are kept back. Digests stay: what is acted on is bound by them.
fn redact(conditions: &Conditions, snapshot: &mut Snapshot) {
    if conditions.redacts(&Redaction::Title) {
        snapshot.target.title = None;
    }
    if conditions.redacts(&Redaction::AppName) {
        snapshot.target.app_name = None;
    }
    if conditions.redacts(&Redaction::SelectedText) {
        snapshot.selected_text = None;
    }
    let fields: Vec<_> = conditions
        .redactions
        .iter()
        .filter_map(|redaction| match redaction {
            Redaction::Elements(which, field) => Some((*which, *field)),
            Redaction::Title
            | Redaction::AppName
            | Redaction::SelectedText
            | Redaction::Image(_)
            | Redaction::AppNames
            | Redaction::WindowTitles
            | Redaction::WindowAppNames
            | Redaction::LaunchedName
            | Redaction::LaunchedTitles => None,
        })
        .collect();
    let menu = snapshot.menu.iter_mut().flat_map(|menu| &mut menu.elements);
    for element in snapshot.elements.iter_mut().chain(menu) {
        for (which, field) in &fields {
            let concerns = match which {
                Which::All => true,
                Which::Secure => element.is_secure(),
            };
            if !concerns {
                continue;
            }
            match field {
                Field::Title => element.title = None,
                Field::Label => element.label = None,
                Field::Value => element.value = None,
                Field::Placeholder => element.placeholder = None,
                Field::AxIdentifier => element.ax_identifier = None,
            }
        }
    }
}
