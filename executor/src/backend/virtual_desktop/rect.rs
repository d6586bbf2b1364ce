//! Whole-point rectangles.
//!
//! The virtual desktop is laid out on whole logical points, so that layout, hit tests and pixels are exact. The
//! protocol's floating-point rectangles are made from these at the edge (`window.rs`, `accessibility.rs`).

/// A rectangle on whole logical points, y down. Which origin it is relative to is said by the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rect {
    /// Left edge.
    pub(crate) x: i32,
    /// Upper edge.
    pub(crate) y: i32,
    /// Width, at least 1 for everything a scenario may place.
    pub(crate) width: i32,
    /// Height, at least 1 for everything a scenario may place.
    pub(crate) height: i32,
}

impl Rect {
    /// A rectangle from its corner and size.
    pub(crate) const fn new(x: i32, y: i32, width: i32, height: i32) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// First column right of the rectangle.
    pub(crate) const fn right(self) -> i32 {
        self.x + self.width
    }

    /// First row below the rectangle.
    pub(crate) const fn bottom(self) -> i32 {
        self.y + self.height
    }

    /// Whether a point lies inside; the right and lower edges do not.
    pub(crate) const fn contains(self, (x, y): (i32, i32)) -> bool {
        x >= self.x && y >= self.y && x < self.right() && y < self.bottom()
    }

    /// Area shared with `other`, in square points.
    pub(crate) fn overlap(self, other: Self) -> i64 {
        let width = self.right().min(other.right()) - self.x.max(other.x);
        let height = self.bottom().min(other.bottom()) - self.y.max(other.y);
        i64::from(width.max(0)) * i64::from(height.max(0))
    }

    /// The rectangle moved by an offset.
    pub(crate) const fn moved(self, dx: i32, dy: i32) -> Self {
        Self::new(self.x + dx, self.y + dy, self.width, self.height)
    }

    /// The rectangle with `by` points taken off every side.
    pub(crate) const fn inset(self, by: i32) -> Self {
        Self::new(
            self.x + by,
            self.y + by,
            self.width - 2 * by,
            self.height - 2 * by,
        )
    }

    /// Whether `inner` lies wholly inside.
    pub(crate) const fn contains_rect(self, inner: Self) -> bool {
        inner.x >= self.x
            && inner.y >= self.y
            && inner.right() <= self.right()
            && inner.bottom() <= self.bottom()
    }
}

#[cfg(test)]
mod tests {
    use super::Rect;

    #[test]
    fn overlap_is_zero_for_rectangles_that_only_touch() {
        let left = Rect::new(0, 0, 10, 10);
        assert_eq!(left.overlap(Rect::new(10, 0, 10, 10)), 0);
        assert_eq!(left.overlap(Rect::new(9, 8, 10, 10)), 2);
        assert_eq!(left.overlap(Rect::new(50, 50, 1, 1)), 0);
    }
}
