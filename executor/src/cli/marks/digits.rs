//! Numbers as pixels, in the bold face that is part of the program.

use std::sync::LazyLock;

use ab_glyph::{Font as _, FontRef, PxScale, ScaleFont as _, point};

use super::{Area, pixels};

static FACE: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(dejavu::sans::bold())
        .expect("the embedded face is well-formed, which a test shows")
});

/// Free pixels around a number, for each em.
const MARGIN: f32 = 0.18;

/// The face at one size.
pub(super) struct Digits {
    scale: PxScale,
    /// Height of a digit and free space around it, in pixels.
    height: f32,
    margin: f32,
}

impl Digits {
    /// With an em of `size` pixels.
    #[expect(clippy::cast_possible_truncation, reason = "a size of letters")]
    pub(super) fn new(size: f64) -> Self {
        let size = size.clamp(1.0, 400.0) as f32;
        // ab_glyph scales by line height; type sizes are given by the em.
        let em = FACE.units_per_em().unwrap_or(2048.0);
        Self {
            scale: PxScale::from(size * FACE.height_unscaled() / em),
            // The digits of this face are 0.73 em high.
            height: (size * 0.73).ceil(),
            margin: (size * MARGIN).ceil(),
        }
    }

    /// Width and height of a number with the free space around it.
    pub(super) fn area(&self, number: &str) -> (i64, i64) {
        let face = FACE.as_scaled(self.scale);
        let width: f32 = number
            .chars()
            .map(|digit| face.h_advance(FACE.glyph_id(digit)))
            .sum();
        let with_margin = |length: f32| pixels(f64::from((length + 2.0 * self.margin).ceil()));
        (with_margin(width), with_margin(self.height))
    }

    /// Calls `pixel` with x, y and coverage for every pixel of a number in its area.
    #[expect(
        clippy::cast_precision_loss,
        reason = "places in a picture are small numbers"
    )]
    pub(super) fn draw(&self, number: &str, area: Area, pixel: &mut dyn FnMut(i64, i64, f32)) {
        let face = FACE.as_scaled(self.scale);
        let mut x = area.left as f32 + self.margin;
        let baseline = area.top as f32 + self.margin + self.height;
        for digit in number.chars() {
            let id = FACE.glyph_id(digit);
            let glyph = id.with_scale_and_position(self.scale, point(x, baseline));
            x += face.h_advance(id);
            let Some(outline) = FACE.outline_glyph(glyph) else {
                continue;
            };
            let corner = outline.px_bounds().min;
            let (left, top) = (
                pixels(corner.x.floor().into()),
                pixels(corner.y.floor().into()),
            );
            outline.draw(|column, row, coverage| {
                pixel(
                    left + i64::from(column),
                    top + i64::from(row),
                    coverage.clamp(0.0, 1.0),
                );
            });
        }
    }
}
