//! References to image files (§4.8). No picture bytes cross the wire.

use std::path::{Component, Path};

use serde_json::Value;

use crate::{
    ids::Digest,
    json::{Json, Reason, Violation, record},
    sets::ImageFormat,
};

/// An absolute path without `..` steps, as UTF-8. What it names is not looked at here.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct AbsolutePath(String);

/// The path is relative, has parent steps, a NUL, or is not UTF-8.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the path must be absolute UTF-8 without parent steps")]
pub struct NotAbsolute;

impl AbsolutePath {
    /// Takes the path as it is; it is not normalised.
    ///
    /// # Errors
    /// [`NotAbsolute`].
    pub fn try_new(path: impl Into<String>) -> Result<Self, NotAbsolute> {
        let path = path.into();
        let steps_up = Path::new(&path)
            .components()
            .any(|component| component == Component::ParentDir);
        // Unix spelling on every platform: the wire has one form of a path.
        if path.starts_with('/') && !steps_up && !path.contains('\0') {
            Ok(Self(path))
        } else {
            Err(NotAbsolute)
        }
    }

    /// The same from a file system path.
    ///
    /// # Errors
    /// [`NotAbsolute`].
    pub fn of_path(path: &Path) -> Result<Self, NotAbsolute> {
        Self::try_new(path.to_str().ok_or(NotAbsolute)?)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl AsRef<Path> for AbsolutePath {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

impl Json for AbsolutePath {
    fn read(value: &Value) -> Result<Self, Violation> {
        Self::try_new(String::read(value)?)
            .map_err(|NotAbsolute| Violation::here(Reason::NotAbsolutePath))
    }

    fn write(&self) -> Value {
        Value::String(self.0.clone())
    }
}

record! {
    /// An image file written by the executor. All seven fields are required.
    pub struct ImageRef {
        /// Inside the handshake's `imageDir`; the name means nothing.
        pub path: AbsolutePath = "path";
        /// File format.
        pub format: ImageFormat = "format";
        /// Width in pixels.
        pub width_px: u32 = "widthPx";
        /// Height in pixels.
        pub height_px: u32 = "heightPx";
        /// Length of the file in bytes.
        pub byte_length: u64 = "byteLength";
        /// Hash of the file's bytes.
        pub sha256: Digest = "sha256";
        /// Measured pixels per logical point: `widthPx / target.bounds.width`. May be useless (≤ 0), then no pixel of this
        /// image can be acted on.
        pub scale: f64 = "scale";
    }
}

impl ImageRef {
    /// Checks that the path lies below the image directory, by its spelling. Links are for the reader of the file to
    /// refuse.
    ///
    /// # Errors
    /// [`Reason::OutsideImageDir`] on `path`.
    pub fn check_inside(&self, image_dir: &Path) -> Result<(), Violation> {
        match self.path.as_path().strip_prefix(image_dir) {
            Ok(rest) if rest.components().next().is_some() => Ok(()),
            Ok(_) | Err(_) => Err(Violation::of("path", Reason::OutsideImageDir)),
        }
    }
}
