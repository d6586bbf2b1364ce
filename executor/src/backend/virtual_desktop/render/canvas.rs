//! A surface that is painted in points and holds pixels.

use tiny_skia::{
    FillRule, FilterQuality, GradientStop, LineCap, LinearGradient, Paint, Path, PathBuilder,
    Pattern, Pixmap, Point, PremultipliedColorU8, Shader, SpreadMode, Stroke, Transform,
};

use super::text::{Typeface, Weight};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::Color;

/// How a line of text is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    /// Size of the em in points.
    pub(super) size: f32,
    pub(super) weight: Weight,
    pub(super) color: Color,
    pub(super) align: Align,
}

/// Where a line of text stands in its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
}

/// An opaque picture under construction.
#[derive(Debug)]
pub(super) struct Canvas {
    pixmap: Pixmap,
    scale: f32,
}

impl Canvas {
    /// A canvas of a size in points, with `scale` pixels to the point; `None` when it would be too large.
    pub(super) fn new(width: i32, height: i32, scale: u8) -> Option<Self> {
        let pixels = |points: i32| u32::try_from(points).ok()?.checked_mul(u32::from(scale));
        Some(Self {
            pixmap: Pixmap::new(pixels(width)?, pixels(height)?)?,
            scale: f32::from(scale),
        })
    }

    /// The picture.
    pub(super) fn into_pixmap(self) -> Pixmap {
        self.pixmap
    }

    /// Fills a rectangle.
    pub(super) fn fill(&mut self, rect: Rect, color: Color) {
        self.fill_translucent(rect, color, 1.0);
    }

    /// Fills a rectangle with a color that lets `1 - opacity` of what is below through.
    pub(super) fn fill_translucent(&mut self, rect: Rect, color: Color, opacity: f32) {
        if let Some(rect) = self.area(rect, 0.0) {
            self.pixmap
                .fill_rect(rect, &paint(color, opacity), Transform::identity(), None);
        }
    }

    /// Fills a rectangle with round corners.
    pub(super) fn fill_round(&mut self, rect: Rect, radius: f32, color: Color) {
        if let Some(path) = self.round_path(rect, radius, 0.0) {
            self.fill_path(&path, &paint(color, 1.0));
        }
    }

    /// Draws the outline of a rectangle, one point wide, just inside its edge.
    pub(super) fn stroke(&mut self, rect: Rect, radius: f32, color: Color) {
        self.stroke_wide(rect, radius, 1.0, color, 1.0);
    }

    /// Draws an outline of `width` points just inside the edge of a rectangle.
    pub(super) fn stroke_wide(
        &mut self,
        rect: Rect,
        radius: f32,
        width: f32,
        color: Color,
        opacity: f32,
    ) {
        if let Some(path) = self.round_path(rect, radius - width / 2.0, -width / 2.0) {
            let stroke = Stroke {
                width: width * self.scale,
                ..Stroke::default()
            };
            self.pixmap.stroke_path(
                &path,
                &paint(color, opacity),
                &stroke,
                Transform::identity(),
                None,
            );
        }
    }

    /// Fills the largest circle in a square.
    pub(super) fn disc(&mut self, square: Rect, color: Color) {
        self.fill_round(square, square.width as f32 / 2.0, color);
    }

    /// Draws the two diagonals of a square.
    pub(super) fn cross(&mut self, square: Rect, color: Color) {
        let Rect { x, y, .. } = square;
        self.polyline(&[(x, y), (square.right(), square.bottom())], 1.6, color);
        self.polyline(&[(square.right(), y), (x, square.bottom())], 1.6, color);
    }

    /// Draws a line through points.
    pub(super) fn polyline(&mut self, points: &[(i32, i32)], width: f32, color: Color) {
        let mut builder = PathBuilder::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let (x, y) = (*x as f32 * self.scale, *y as f32 * self.scale);
            if index == 0 {
                builder.move_to(x, y);
            } else {
                builder.line_to(x, y);
            }
        }
        if let Some(path) = builder.finish() {
            let stroke = Stroke {
                width: width * self.scale,
                line_cap: LineCap::Round,
                ..Stroke::default()
            };
            self.pixmap.stroke_path(
                &path,
                &paint(color, 1.0),
                &stroke,
                Transform::identity(),
                None,
            );
        }
    }

    /// Fills a rectangle with a gradient from its upper left to its lower right corner.
    pub(super) fn gradient(&mut self, rect: Rect, from: Color, to: Color) {
        let Some(area) = self.area(rect, 0.0) else {
            return;
        };
        let stops = vec![
            GradientStop::new(0.0, skia(from, 1.0)),
            GradientStop::new(1.0, skia(to, 1.0)),
        ];
        let start = Point::from_xy(area.left(), area.top());
        let end = Point::from_xy(area.right(), area.bottom());
        let shader = LinearGradient::new(start, end, stops, SpreadMode::Pad, Transform::identity());
        let paint = Paint {
            shader: shader.unwrap_or(Shader::SolidColor(skia(from, 1.0))),
            ..Paint::default()
        };
        self.pixmap
            .fill_rect(area, &paint, Transform::identity(), None);
    }

    /// A soft shadow around a rectangle; `strength` 1 is that of the foremost window.
    pub(super) fn shadow(&mut self, rect: Rect, radius: f32, strength: f32) {
        // Frames laid over each other, each a little larger, come close to a blur at a fraction of its cost. Their
        // middle is left out: a window will lie there.
        let hole = rect.inset(radius.ceil() as i32);
        let Some(hole) = self.area(hole, 0.0) else {
            return;
        };
        for spread in 1..=12_i16 {
            let spread = f32::from(spread);
            let opacity = 0.022 * strength * (1.0 - spread / 14.0);
            if let Some(outer) = self.round_path(rect.moved(0, 4), radius + spread, spread) {
                let mut frame = PathBuilder::new();
                frame.push_path(&outer);
                frame.push_rect(hole);
                if let Some(frame) = frame.finish() {
                    let paint = paint(Color::rgb(0x0a, 0x10, 0x20), opacity);
                    let rule = FillRule::EvenOdd;
                    self.pixmap
                        .fill_path(&frame, &paint, rule, Transform::identity(), None);
                }
            }
        }
    }

    /// Puts a picture of the same scale at a place, with round corners.
    pub(super) fn picture(&mut self, picture: &Pixmap, place: Rect, radius: f32) {
        let Some(path) = self.round_path(place, radius, 0.0) else {
            return;
        };
        let offset =
            Transform::from_translate(place.x as f32 * self.scale, place.y as f32 * self.scale);
        let shader = Pattern::new(
            picture.as_ref(),
            SpreadMode::Pad,
            FilterQuality::Nearest,
            1.0,
            offset,
        );
        self.fill_path(
            &path,
            &Paint {
                shader,
                anti_alias: true,
                ..Paint::default()
            },
        );
    }

    /// Sets one line of text, vertically centered in its box and cut with `…` where the box ends. Answers how wide the
    /// line is, in points.
    pub(super) fn text(&mut self, line: &str, rect: Rect, style: TextStyle) -> i32 {
        let face = self.face(style);
        let room = rect.width as f32 * self.scale;
        let line = face.elide(line, room);
        let width = face.width(&line);
        let indent = match style.align {
            Align::Left => 0.0,
            Align::Center => ((room - width) / 2.0).max(0.0),
        };
        self.set_line(face, &line, rect, indent, style.color);
        (width / self.scale).ceil() as i32
    }

    /// Sets as much of the start of a line as fits into its box, vertically centered.
    pub(super) fn text_head(&mut self, line: &str, rect: Rect, style: TextStyle) {
        let face = self.face(style);
        let head = face.head(line, rect.width as f32 * self.scale);
        self.set_line(face, head, rect, 0.0, style.color);
    }

    fn face(&self, style: TextStyle) -> Typeface {
        Typeface::new(style.weight, style.size * self.scale)
    }

    fn set_line(&mut self, face: Typeface, line: &str, rect: Rect, indent: f32, color: Color) {
        let baseline = rect.y as f32 * self.scale + face.baseline(rect.height as f32 * self.scale);
        let start = (rect.x as f32 * self.scale + indent).round();
        let (width, height) = (self.pixmap.width() as i32, self.pixmap.height() as i32);
        let pixels = self.pixmap.pixels_mut();
        face.draw(line, start, baseline, &mut |x, y, coverage| {
            if (0..width).contains(&x) && (0..height).contains(&y) {
                let pixel = &mut pixels[(y * width + x) as usize];
                *pixel = blend(*pixel, color, coverage);
            }
        });
    }

    fn fill_path(&mut self, path: &Path, paint: &Paint<'_>) {
        self.pixmap
            .fill_path(path, paint, FillRule::Winding, Transform::identity(), None);
    }

    /// A rectangle in pixels, `grow` points larger on every side.
    fn area(&self, rect: Rect, grow: f32) -> Option<tiny_skia::Rect> {
        let side = |start: i32, grow: f32| (start as f32 + grow) * self.scale;
        tiny_skia::Rect::from_ltrb(
            side(rect.x, -grow),
            side(rect.y, -grow),
            side(rect.right(), grow),
            side(rect.bottom(), grow),
        )
    }

    fn round_path(&self, rect: Rect, radius: f32, grow: f32) -> Option<Path> {
        let area = self.area(rect, grow)?;
        let radius = (radius.max(0.0) * self.scale)
            .min(area.width() / 2.0)
            .min(area.height() / 2.0);
        if radius <= 0.0 {
            return Some(PathBuilder::from_rect(area));
        }
        // Distance of a control point that makes a cubic come closest to a quarter circle.
        let bend = radius * (1.0 - 0.552_284_8);
        let (left, top, right, bottom) = (area.left(), area.top(), area.right(), area.bottom());
        let mut path = PathBuilder::new();
        path.move_to(left + radius, top);
        path.line_to(right - radius, top);
        path.cubic_to(right - bend, top, right, top + bend, right, top + radius);
        path.line_to(right, bottom - radius);
        path.cubic_to(
            right,
            bottom - bend,
            right - bend,
            bottom,
            right - radius,
            bottom,
        );
        path.line_to(left + radius, bottom);
        path.cubic_to(
            left + bend,
            bottom,
            left,
            bottom - bend,
            left,
            bottom - radius,
        );
        path.line_to(left, top + radius);
        path.cubic_to(left, top + bend, left + bend, top, left + radius, top);
        path.close();
        path.finish()
    }
}

fn skia(color: Color, opacity: f32) -> tiny_skia::Color {
    let alpha = (opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    tiny_skia::Color::from_rgba8(color.red, color.green, color.blue, alpha)
}

fn paint(color: Color, opacity: f32) -> Paint<'static> {
    Paint {
        shader: Shader::SolidColor(skia(color, opacity)),
        anti_alias: true,
        ..Paint::default()
    }
}

/// Lays a color over an opaque pixel.
fn blend(below: PremultipliedColorU8, color: Color, coverage: f32) -> PremultipliedColorU8 {
    // A little more than linear coverage: thin strokes of dark text would look washed out without it.
    let share = coverage.powf(0.85);
    let mix = |below: u8, above: u8| {
        (f32::from(below) + (f32::from(above) - f32::from(below)) * share).round() as u8
    };
    let (red, green, blue) = (
        mix(below.red(), color.red),
        mix(below.green(), color.green),
        mix(below.blue(), color.blue),
    );
    PremultipliedColorU8::from_rgba(red, green, blue, u8::MAX).unwrap_or(below)
}
