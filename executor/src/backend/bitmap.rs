//! Pixels as a back end hands them over.

use std::fmt;

/// Upper bound for one bitmap's byte count: a 16k × 8k display in RGBA. Anything larger is a broken answer.
pub const MAX_BITMAP_BYTES: usize = 512 * 1024 * 1024;

/// How one pixel is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelLayout {
    /// Red, green, blue; opaque.
    Rgb8,
    /// Red, green, blue, straight alpha.
    Rgba8,
}

impl PixelLayout {
    /// Bytes per pixel.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Rgb8 => 3,
            Self::Rgba8 => 4,
        }
    }
}

/// A picture without padding: `pixels.len() == width * height * layout.bytes()`, by construction.
#[derive(Clone, PartialEq, Eq)]
pub struct Bitmap {
    width: u32,
    height: u32,
    layout: PixelLayout,
    pixels: Vec<u8>,
}

impl Bitmap {
    /// A bitmap, or `None` when a side is 0, the byte count does not match or [`MAX_BITMAP_BYTES`] is exceeded.
    #[must_use]
    pub fn try_new(width: u32, height: u32, layout: PixelLayout, pixels: Vec<u8>) -> Option<Self> {
        let bytes = usize::try_from(width)
            .ok()?
            .checked_mul(usize::try_from(height).ok()?)?
            .checked_mul(layout.bytes())?;
        (bytes > 0 && bytes <= MAX_BITMAP_BYTES && bytes == pixels.len()).then_some(Self {
            width,
            height,
            layout,
            pixels,
        })
    }

    /// Width in pixels, at least 1.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels, at least 1.
    #[must_use]
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// How a pixel is stored.
    #[must_use]
    pub const fn layout(&self) -> PixelLayout {
        self.layout
    }

    /// Rows from top to bottom, pixels from left to right.
    #[must_use]
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The part that starts at (`x`, `y`), or `None` when it is empty or reaches outside.
    #[must_use]
    pub fn crop(&self, x: u32, y: u32, width: u32, height: u32) -> Option<Self> {
        if x.checked_add(width)? > self.width || y.checked_add(height)? > self.height {
            return None;
        }
        let bytes = self.layout.bytes();
        let stride = usize::try_from(self.width).ok()? * bytes;
        let row = usize::try_from(width).ok()? * bytes;
        let left = usize::try_from(x).ok()? * bytes;
        let mut pixels = Vec::with_capacity(row * usize::try_from(height).ok()?);
        for line in y..y + height {
            let start = usize::try_from(line).ok()? * stride + left;
            pixels.extend_from_slice(&self.pixels[start..start + row]);
        }
        Self::try_new(width, height, self.layout, pixels)
    }
}

/// Pixels show what a person sees, so they are never printed.
impl fmt::Debug for Bitmap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Bitmap({}x{})", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_holds_exactly_its_pixels() {
        assert!(Bitmap::try_new(2, 2, PixelLayout::Rgb8, vec![0; 12]).is_some());
        assert!(Bitmap::try_new(2, 2, PixelLayout::Rgb8, vec![0; 13]).is_none());
        assert!(Bitmap::try_new(0, 2, PixelLayout::Rgb8, Vec::new()).is_none());
        assert!(Bitmap::try_new(u32::MAX, u32::MAX, PixelLayout::Rgba8, Vec::new()).is_none());
    }

    #[test]
    fn a_crop_takes_the_named_pixels() {
        let pixels = (0u8..36).collect();
        let bitmap = Bitmap::try_new(4, 3, PixelLayout::Rgb8, pixels).unwrap();
        let part = bitmap.crop(1, 1, 2, 2).unwrap();
        assert_eq!(
            part.pixels(),
            [15, 16, 17, 18, 19, 20, 27, 28, 29, 30, 31, 32]
        );
        assert!(bitmap.crop(3, 0, 2, 1).is_none());
    }
}
