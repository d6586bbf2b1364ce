//! Points, sizes and rectangles, one type per coordinate space (§4.8), and the only places where spaces convert.
//!
//! Every number is finite by construction.

use serde_json::Value;

use crate::json::{Fields, Json, ObjectWriter, Reason, Violation};

/// A coordinate was infinite or not a number, or a size was negative.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a coordinate must be finite and a size must not be negative")]
pub struct BadCoordinate;

/// Declares a point type.
macro_rules! point {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            x: f64,
            y: f64,
        }

        impl $name {
            /// A point at these coordinates.
            ///
            /// # Errors
            /// [`BadCoordinate`] when one is not finite.
            pub fn try_new(x: f64, y: f64) -> Result<Self, BadCoordinate> {
                if x.is_finite() && y.is_finite() { Ok(Self { x, y }) } else { Err(BadCoordinate) }
            }

            /// Distance from the left edge of the space.
            #[must_use]
            pub const fn x(self) -> f64 {
                self.x
            }

            /// Distance from the top edge of the space.
            #[must_use]
            pub const fn y(self) -> f64 {
                self.y
            }
        }

        impl Json for $name {
            fn read(value: &Value) -> Result<Self, Violation> {
                let fields = Fields::of(value)?;
                Ok(Self { x: fields.get("x")?, y: fields.get("y")? })
            }

            fn write(&self) -> Value {
                ObjectWriter::new().with("x", &self.x).with("y", &self.y).finish()
            }
        }
    };
}

/// Declares a rectangle type over a point type.
macro_rules! rect {
    ($(#[$meta:meta])* $name:ident of $point:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            x: f64,
            y: f64,
            width: f64,
            height: f64,
        }

        impl $name {
            /// A rectangle with this top left corner and size.
            ///
            /// # Errors
            /// [`BadCoordinate`] when a number is not finite. A negative size is kept as the platform reported it
            /// (the wire allows any finite number); such a rectangle contains nothing.
            pub fn try_new(x: f64, y: f64, width: f64, height: f64) -> Result<Self, BadCoordinate> {
                let finite = x.is_finite() && y.is_finite() && width.is_finite() && height.is_finite();
                if finite { Ok(Self { x, y, width, height }) } else { Err(BadCoordinate) }
            }

            /// Left edge.
            #[must_use]
            pub const fn x(self) -> f64 {
                self.x
            }

            /// Top edge.
            #[must_use]
            pub const fn y(self) -> f64 {
                self.y
            }

            /// Width.
            #[must_use]
            pub const fn width(self) -> f64 {
                self.width
            }

            /// Height.
            #[must_use]
            pub const fn height(self) -> f64 {
                self.height
            }

            /// Top left corner.
            #[must_use]
            pub const fn origin(self) -> $point {
                $point { x: self.x, y: self.y }
            }

            /// Middle; `None` when it is too far out to be a number.
            #[must_use]
            pub fn center(self) -> Option<$point> {
                $point::try_new(self.x + self.width / 2.0, self.y + self.height / 2.0).ok()
            }

            /// Whether the point is inside: the left and top edges are, the right and bottom ones are not (§3.6.2).
            #[must_use]
            pub fn contains(self, point: $point) -> bool {
                let (right, bottom) = (self.x + self.width, self.y + self.height);
                point.x >= self.x && point.y >= self.y && point.x < right && point.y < bottom
            }

            /// The four numbers rounded to whole ones, halves away from zero, as digests use them (§4.5).
            #[must_use]
            pub fn rounded(self) -> [f64; 4] {
                // Adding zero turns a negative zero into the positive one, which prints without a sign.
                [self.x, self.y, self.width, self.height].map(|number| number.round() + 0.0)
            }
        }

        impl Json for $name {
            fn read(value: &Value) -> Result<Self, Violation> {
                let fields = Fields::of(value)?;
                Ok(Self {
                    x: fields.get("x")?,
                    y: fields.get("y")?,
                    width: fields.get("width")?,
                    height: fields.get("height")?,
                })
            }

            fn write(&self) -> Value {
                ObjectWriter::new()
                    .with("x", &self.x)
                    .with("y", &self.y)
                    .with("width", &self.width)
                    .with("height", &self.height)
                    .finish()
            }
        }
    };
}

point! {
    /// Screen logical points, y down, origin at the top left of the main display. Negative numbers are legal.
    ScreenPoint
}
point! {
    /// Window-local logical points, origin at the top left of the window.
    WindowPoint
}
point! {
    /// Pixels of one snapshot's image.
    ImagePoint
}
rect! {
    /// A rectangle in screen logical points.
    ScreenRect of ScreenPoint
}
rect! {
    /// A rectangle in window-local logical points.
    WindowRect of WindowPoint
}
rect! {
    /// A rectangle in image pixels.
    ImageRect of ImagePoint
}

/// A window size in screen logical points; never negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenSize {
    width: f64,
    height: f64,
}

impl ScreenSize {
    /// A size of these extents.
    ///
    /// # Errors
    /// [`BadCoordinate`] when one is negative or not finite.
    pub fn try_new(width: f64, height: f64) -> Result<Self, BadCoordinate> {
        let fits = |extent: f64| extent.is_finite() && extent >= 0.0;
        if fits(width) && fits(height) {
            Ok(Self { width, height })
        } else {
            Err(BadCoordinate)
        }
    }

    /// Width.
    #[must_use]
    pub const fn width(self) -> f64 {
        self.width
    }

    /// Height.
    #[must_use]
    pub const fn height(self) -> f64 {
        self.height
    }
}

impl Json for ScreenSize {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let extent = |name| match fields.get::<f64>(name)? {
            extent if extent >= 0.0 => Ok(extent),
            _ => Err(Violation::of(name, Reason::OutOfRange)),
        };
        Ok(Self {
            width: extent("width")?,
            height: extent("height")?,
        })
    }

    fn write(&self) -> Value {
        ObjectWriter::new()
            .with("width", &self.width)
            .with("height", &self.height)
            .finish()
    }
}

/// The screen position of a pixel of a window's image: window origin + pixel / scale (§3.8).
///
/// # Errors
/// [`BadCoordinate`] when the scale is not a positive number or the result is not finite.
pub fn image_to_screen(
    point: ImagePoint,
    window: ScreenRect,
    scale: f64,
) -> Result<ScreenPoint, BadCoordinate> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(BadCoordinate);
    }
    ScreenPoint::try_new(window.x + point.x / scale, window.y + point.y / scale)
}

/// The place in the window that a pixel of its image shows: pixel / scale (§3.8).
///
/// # Errors
/// [`BadCoordinate`] when the scale is not a positive number or the result is not finite.
pub fn image_to_window(point: ImagePoint, scale: f64) -> Result<WindowPoint, BadCoordinate> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(BadCoordinate);
    }
    WindowPoint::try_new(point.x / scale, point.y / scale)
}

/// The pixel of a window's image at a screen position: (point − origin) · scale (§9).
///
/// # Errors
/// [`BadCoordinate`] when the scale is not a positive number or the result is not finite.
pub fn screen_to_image(
    point: ScreenPoint,
    window: ScreenRect,
    scale: f64,
) -> Result<ImagePoint, BadCoordinate> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(BadCoordinate);
    }
    ImagePoint::try_new((point.x - window.x) * scale, (point.y - window.y) * scale)
}

/// The screen position of a point inside a window.
///
/// # Errors
/// [`BadCoordinate`] when the result is not finite.
pub fn window_to_screen(
    point: WindowPoint,
    window: ScreenRect,
) -> Result<ScreenPoint, BadCoordinate> {
    ScreenPoint::try_new(window.x + point.x, window.y + point.y)
}

/// The screen rectangle of an element's frame: frame + window origin (§4.8).
///
/// # Errors
/// [`BadCoordinate`] when the result is not finite.
pub fn window_rect_to_screen(
    rect: WindowRect,
    window: ScreenRect,
) -> Result<ScreenRect, BadCoordinate> {
    ScreenRect::try_new(
        window.x + rect.x,
        window.y + rect.y,
        rect.width,
        rect.height,
    )
}

/// The window-local rectangle of something known in screen points: the inverse of [`window_rect_to_screen`].
///
/// # Errors
/// [`BadCoordinate`] when the result is not finite.
pub fn screen_rect_to_window(
    rect: ScreenRect,
    window: ScreenRect,
) -> Result<WindowRect, BadCoordinate> {
    WindowRect::try_new(
        rect.x - window.x,
        rect.y - window.y,
        rect.width,
        rect.height,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_convert_with_the_measured_scale() {
        let window = ScreenRect::try_new(-1900.0, 60.0, 900.0, 600.0).unwrap();
        let pixel = ImagePoint::try_new(200.0, 100.0).unwrap();
        let screen = image_to_screen(pixel, window, 2.0).unwrap();
        assert_eq!((screen.x(), screen.y()), (-1800.0, 110.0));
        assert_eq!(screen_to_image(screen, window, 2.0).unwrap(), pixel);
        let local = image_to_window(pixel, 2.0).unwrap();
        assert_eq!(window_to_screen(local, window).unwrap(), screen);
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(image_to_screen(pixel, window, scale), Err(BadCoordinate));
            assert_eq!(image_to_window(pixel, scale), Err(BadCoordinate));
        }
    }

    #[test]
    fn containment_is_half_open() {
        let rect = ScreenRect::try_new(10.0, 10.0, 5.0, 5.0).unwrap();
        let at = |x, y| rect.contains(ScreenPoint::try_new(x, y).unwrap());
        assert!(at(10.0, 10.0) && at(14.9, 14.9));
        assert!(!at(15.0, 12.0) && !at(12.0, 15.0) && !at(9.9, 12.0));
    }

    #[test]
    fn frames_of_moved_windows_convert_both_ways() {
        let window = ScreenRect::try_new(1e6, -5.5, 10.0, 10.0).unwrap();
        let frame = WindowRect::try_new(1.0, 2.0, 3.0, 4.0).unwrap();
        let screen = window_rect_to_screen(frame, window).unwrap();
        assert_eq!(screen_rect_to_window(screen, window).unwrap(), frame);
    }
}
