//! A picture of a window with a numbered box around each element that can be meant.
//!
//! The numbers are those of the outline. A box is cut at the edge of the picture; a number stands at its box where it
//! covers no other number, inside of the picture.

mod digits;

use maka_cu_protocol::element::Element;
use maka_cu_protocol::geometry::WindowRect;

use crate::backend::bitmap::{Bitmap, PixelLayout};
use digits::Digits;

/// Colors that can be told from each other and from most windows, with white numbers on them.
const COLORS: [[u8; 3]; 6] = [
    [0xc6, 0x1a, 0x3c],
    [0x0b, 0x5f, 0xc2],
    [0x0c, 0x7a, 0x3e],
    [0x8a, 0x2c, 0xb8],
    [0xb2, 0x4d, 0x00],
    [0x00, 0x70, 0x7a],
];
const WHITE: [u8; 3] = [0xff; 3];

/// Size of the numbers and width of the lines, in points.
const EM: f64 = 11.0;
const LINE: f64 = 1.5;

/// An element to mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Its number.
    pub number: u64,
    /// Where it is in the window.
    pub frame: WindowRect,
}

/// What is worth a box: whatever offers an action, and whatever has no children; a box around a box around a button says
/// nothing. The list is in depth-first order.
#[must_use]
pub fn marks(elements: &[Element]) -> Vec<Mark> {
    let is_leaf = |at: usize| {
        elements
            .get(at + 1)
            .is_none_or(|next| next.depth <= elements[at].depth)
    };
    let mark = |(at, element): (usize, &Element)| {
        let meant = element.depth > 0 && (is_leaf(at) || !element.actions.is_empty());
        let mark = Mark {
            number: element.stable_id?,
            frame: element.frame?,
        };
        meant.then_some(mark)
    };
    elements.iter().enumerate().filter_map(mark).collect()
}

/// The picture with its marks; `scale` is pixels per point.
#[must_use]
pub fn marked(picture: &Bitmap, scale: f64, marks: &[Mark]) -> Option<Bitmap> {
    let mut surface = Surface::of(picture);
    let digits = Digits::new(EM * scale.max(1.0));
    let line = pixels((LINE * scale).max(1.0));
    let boxes: Vec<(Area, [u8; 3], u64)> = marks
        .iter()
        .zip(COLORS.iter().cycle())
        .filter_map(|(mark, color)| {
            let area = surface.clip(Area::of(mark.frame, scale))?;
            Some((area, *color, mark.number))
        })
        .collect();
    for (area, color, _) in &boxes {
        surface.outline(*area, line, *color);
    }
    // Numbers come last, so that no line crosses them.
    let mut taken: Vec<Area> = Vec::new();
    let areas: Vec<Area> = boxes.iter().map(|(area, ..)| *area).collect();
    for (area, color, number) in boxes {
        let text = number.to_string();
        let label = digits.area(&text);
        let place = surface.place(area, label, &areas, &taken);
        surface.fill(place, color);
        digits.draw(&text, place, &mut |x, y, coverage| {
            surface.blend(x, y, WHITE, coverage);
        });
        taken.push(place);
    }
    surface.into_bitmap()
}

/// A rectangle of pixels, right and bottom not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
}

impl Area {
    fn of(frame: WindowRect, scale: f64) -> Self {
        Self {
            left: pixels(frame.x() * scale),
            top: pixels(frame.y() * scale),
            right: pixels((frame.x() + frame.width()) * scale),
            bottom: pixels((frame.y() + frame.height()) * scale),
        }
    }

    const fn sized(left: i64, top: i64, width: i64, height: i64) -> Self {
        Self {
            left,
            top,
            right: left.saturating_add(width),
            bottom: top.saturating_add(height),
        }
    }

    const fn width(&self) -> i64 {
        self.right - self.left
    }

    const fn height(&self) -> i64 {
        self.bottom - self.top
    }

    const fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Whole pixels, far from the ends of the number range.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates and the range is narrowed before"
)]
fn pixels(position: f64) -> i64 {
    position.round().clamp(-1e9, 1e9) as i64
}

/// Opaque pixels to draw on.
struct Surface {
    whole: Area,
    pixels: Vec<u8>,
}

impl Surface {
    fn of(picture: &Bitmap) -> Self {
        let pixels = match picture.layout() {
            PixelLayout::Rgb8 => picture.pixels().to_vec(),
            // What is transparent is shown over white, as a viewer would.
            PixelLayout::Rgba8 => picture
                .pixels()
                .chunks_exact(4)
                .flat_map(over_white)
                .collect(),
        };
        let (width, height) = (picture.width().into(), picture.height().into());
        Self {
            whole: Area::sized(0, 0, width, height),
            pixels,
        }
    }

    fn into_bitmap(self) -> Option<Bitmap> {
        let width = u32::try_from(self.whole.width()).ok()?;
        let height = u32::try_from(self.whole.height()).ok()?;
        Bitmap::try_new(width, height, PixelLayout::Rgb8, self.pixels)
    }

    /// The part of an area that is in the picture, if any is.
    fn clip(&self, area: Area) -> Option<Area> {
        let clipped = Area {
            left: area.left.max(0),
            top: area.top.max(0),
            right: area.right.min(self.whole.right),
            bottom: area.bottom.min(self.whole.bottom),
        };
        (clipped.width() > 0 && clipped.height() > 0).then_some(clipped)
    }

    fn outline(&mut self, area: Area, line: i64, color: [u8; 3]) {
        let line_x = line.min(area.width());
        let line_y = line.min(area.height());
        let Area {
            left,
            top,
            right,
            bottom,
        } = area;
        for side in [
            Area {
                bottom: top + line_y,
                ..area
            },
            Area {
                top: bottom - line_y,
                ..area
            },
            Area {
                right: left + line_x,
                ..area
            },
            Area {
                left: right - line_x,
                ..area
            },
        ] {
            self.fill(side, color);
        }
    }

    fn fill(&mut self, area: Area, color: [u8; 3]) {
        let Some(area) = self.clip(area) else {
            return;
        };
        for y in area.top..area.bottom {
            for x in area.left..area.right {
                self.blend(x, y, color, 1.0);
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mixture of two bytes is a byte"
    )]
    fn blend(&mut self, x: i64, y: i64, color: [u8; 3], coverage: f32) {
        if x < 0 || y < 0 || x >= self.whole.right || y >= self.whole.bottom {
            return;
        }
        let Ok(at) = usize::try_from((y * self.whole.right + x) * 3) else {
            return;
        };
        for (byte, wanted) in self.pixels[at..at + 3].iter_mut().zip(color) {
            let mixed = f32::from(*byte) * (1.0 - coverage) + f32::from(wanted) * coverage;
            *byte = mixed.round().clamp(0.0, 255.0) as u8;
        }
    }

    /// Where a number goes: at its box, outside before inside, the first place that covers neither another number nor
    /// another element; else the first that covers no other number; the last resort is the corner inside.
    fn place(
        &self,
        area: Area,
        (width, height): (i64, i64),
        boxes: &[Area],
        taken: &[Area],
    ) -> Area {
        let inside = |left: i64, top: i64| {
            let left = left.clamp(0, (self.whole.right - width).max(0));
            let top = top.clamp(0, (self.whole.bottom - height).max(0));
            Area::sized(left, top, width, height)
        };
        let places = [
            inside(area.left, area.top - height),
            inside(area.right - width, area.top - height),
            inside(area.left - width, area.top),
            inside(area.right, area.top),
            inside(area.left, area.bottom),
            inside(area.left, area.top),
            inside(area.right - width, area.bottom - height),
        ];
        let covers =
            |place: &Area, others: &[Area]| others.iter().any(|other| other.overlaps(place));
        let free = |place: &&Area| !covers(place, taken);
        let clear = |place: &&Area| free(place) && !covers(place, boxes);
        places
            .iter()
            .find(clear)
            .or_else(|| places.iter().find(free))
            .copied()
            .unwrap_or_else(|| inside(area.left, area.top))
    }
}

fn over_white(pixel: &[u8]) -> [u8; 3] {
    let alpha = u16::from(pixel[3]);
    [pixel[0], pixel[1], pixel[2]].map(|color| {
        let mixed = (u16::from(color) * alpha + 255 * (255 - alpha)) / 255;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gray(width: u32, height: u32) -> Bitmap {
        let bytes = usize::try_from(width * height * 3).unwrap();
        Bitmap::try_new(width, height, PixelLayout::Rgb8, vec![0x80; bytes]).unwrap()
    }

    fn pixel(bitmap: &Bitmap, x: u32, y: u32) -> [u8; 3] {
        let at = usize::try_from((y * bitmap.width() + x) * 3).unwrap();
        bitmap.pixels()[at..at + 3].try_into().unwrap()
    }

    fn mark(number: u64, frame: [f64; 4]) -> Mark {
        let [x, y, width, height] = frame;
        Mark {
            number,
            frame: WindowRect::try_new(x, y, width, height).unwrap(),
        }
    }

    #[test]
    fn a_box_surrounds_its_element_and_its_number_stands_outside() {
        let picture = gray(200, 100);
        let drawn = marked(&picture, 1.0, &[mark(42, [50.0, 40.0, 80.0, 30.0])]).unwrap();
        assert_eq!(pixel(&drawn, 129, 69), COLORS[0]);
        assert_eq!(pixel(&drawn, 90, 40), COLORS[0]);
        assert_eq!(
            pixel(&drawn, 90, 55),
            [0x80; 3],
            "what is inside stays visible"
        );
        assert_eq!(pixel(&drawn, 140, 40), [0x80; 3]);
        let label = (50..75).flat_map(|x| (25..40).map(move |y| (x, y)));
        let white = label
            .filter(|(x, y)| pixel(&drawn, *x, *y) == WHITE)
            .count();
        assert!(white > 10, "two digits can be read: {white}");
    }

    /// A box that leaves the window is cut there, and one outside of it is not drawn, whatever its size.
    #[test]
    fn boxes_are_cut_at_the_window() {
        let picture = gray(60, 40);
        let marks = [
            mark(1, [-20.0, -20.0, 1e300, 1e300]),
            mark(2, [70.0, 10.0, 20.0, 20.0]),
            mark(3, [10.0, 10.0, -5.0, 10.0]),
        ];
        let drawn = marked(&picture, 1.0, &marks).unwrap();
        assert_eq!(pixel(&drawn, 59, 39), COLORS[0]);
        let of_others = |color: [u8; 3]| {
            (0..60)
                .flat_map(|x| (0..40).map(move |y| (x, y)))
                .any(|(x, y)| pixel(&drawn, x, y) == color)
        };
        assert!(!of_others(COLORS[1]) && !of_others(COLORS[2]));
    }

    #[test]
    fn numbers_do_not_cover_each_other_while_there_is_room() {
        let surface = Surface::of(&gray(200, 100));
        let area = Area::sized(50, 40, 80, 30);
        let mut taken = Vec::new();
        for _ in 0..5 {
            let place = surface.place(area, (20, 12), &[area], &taken);
            assert!(taken.iter().all(|other: &Area| !other.overlaps(&place)));
            assert_eq!(surface.clip(place), Some(place), "inside of the picture");
            taken.push(place);
        }
    }

    #[test]
    fn numbers_grow_with_the_scale_and_fit_into_a_small_picture() {
        let small = Digits::new(EM).area("123");
        let large = Digits::new(EM * 2.0).area("123");
        assert!(large.0 > small.0 && large.1 > small.1);
        assert!(marked(&gray(1, 1), 3.0, &[mark(123_456, [0.0, 0.0, 1.0, 1.0])]).is_some());
    }
}
