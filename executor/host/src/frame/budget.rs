//! How large a picture may be, and what may be done about it (spec 10.3).

use maka_cu_protocol::sets::ImageFormat;

use super::{Frame, FrameError, sniff};
use crate::displays::PixelSize;

/// A larger picture is offered to the compressor.
pub const COMPRESS_ABOVE_BYTES: u64 = 1_572_864;

/// A larger picture is no picture but a failed capture.
pub const FRAME_MAX_BYTES: u64 = 8_388_608;

/// A larger file is not read even for a compressor.
pub const SOURCE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Makes pictures smaller in bytes. It may lose detail and must keep the size in pixels: coordinates are taken from what it makes.
///
/// It runs on the thread that reads. What it makes is measured before it is used; anything of another size, of another format than
/// it says, or not smaller, is dropped and the original stands.
pub trait Compressor: Send + Sync {
    /// The same picture in fewer bytes; none when it has no better idea.
    fn compress(&self, bytes: &[u8], format: ImageFormat) -> Option<Compressed>;
}

/// What a compressor made.
#[derive(Clone, PartialEq, Eq)]
pub struct Compressed {
    /// The encoded bytes.
    pub bytes: Vec<u8>,
    /// How they are encoded.
    pub format: ImageFormat,
}

impl std::fmt::Debug for Compressed {
    /// Leaves the picture out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressed")
            .field("length", &self.bytes.len())
            .field("format", &self.format)
            .finish()
    }
}

/// Brings a verified frame into the budget.
pub(super) fn fit(
    mut frame: Frame,
    size: PixelSize,
    compressor: &dyn Compressor,
) -> Result<Frame, FrameError> {
    if length(&frame.bytes) > COMPRESS_ABOVE_BYTES
        && let Some(smaller) = compressor.compress(&frame.bytes, frame.format)
        && smaller.bytes.len() < frame.bytes.len()
        && sniff::format(&smaller.bytes) == Some(smaller.format)
        && sniff::size(&smaller.bytes, smaller.format) == Some(size)
    {
        frame.bytes = smaller.bytes;
        frame.format = smaller.format;
    }
    if length(&frame.bytes) > FRAME_MAX_BYTES {
        return Err(FrameError::TooLarge);
    }
    Ok(frame)
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use super::super::Uniformity;
    use super::*;

    const SIZE: PixelSize = PixelSize {
        width: 2,
        height: 3,
    };

    /// Something with a PNG's header and this many bytes.
    fn png((width, height): (u8, u8), length: u64) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend([0, 0, 0, width, 0, 0, 0, height]);
        bytes.resize(usize::try_from(length).unwrap(), 0);
        bytes
    }

    struct Fixed(Option<Compressed>);

    impl Compressor for Fixed {
        fn compress(&self, _bytes: &[u8], _format: ImageFormat) -> Option<Compressed> {
            self.0.clone()
        }
    }

    fn check(name: &str, length: u64, compressed: Option<Vec<u8>>, expected: Option<u64>) {
        let frame = Frame {
            bytes: png((2, 3), length),
            format: ImageFormat::Png,
            uniformity: Uniformity::Varied,
        };
        let compressor = Fixed(compressed.map(|bytes| Compressed {
            bytes,
            format: ImageFormat::Png,
        }));
        let fitted = fit(frame, SIZE, &compressor);
        let seen = fitted.map(|frame| frame.bytes.len() as u64);
        assert_eq!(seen, expected.ok_or(FrameError::TooLarge), "{name}");
    }

    #[test]
    fn frames_are_brought_into_the_budget() {
        let small = || Some(png((2, 3), 100));
        check(
            "small: left alone",
            COMPRESS_ABOVE_BYTES,
            small(),
            Some(COMPRESS_ABOVE_BYTES),
        );
        check(
            "larger: compressed",
            COMPRESS_ABOVE_BYTES + 1,
            small(),
            Some(100),
        );
        check("huge: compressed", FRAME_MAX_BYTES + 1, small(), Some(100));
        check(
            "no better idea",
            COMPRESS_ABOVE_BYTES + 1,
            None,
            Some(COMPRESS_ABOVE_BYTES + 1),
        );
        check("at the bound", FRAME_MAX_BYTES, None, Some(FRAME_MAX_BYTES));
        check("above it", FRAME_MAX_BYTES + 1, None, None);
        let bad = [
            ("another size", png((3, 2), 100)),
            ("not what it says", b"GIF89a".to_vec()),
            ("no smaller", png((2, 3), FRAME_MAX_BYTES + 1)),
        ];
        for (name, bytes) in bad {
            check(name, FRAME_MAX_BYTES + 1, Some(bytes.clone()), None);
            check(name, FRAME_MAX_BYTES, Some(bytes), Some(FRAME_MAX_BYTES));
        }
    }
}
