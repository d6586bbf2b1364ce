//! What an image's first bytes say it is: the format by its signature, the size by its header.
//!
//! Reads headers only and decodes nothing. Any bytes are judged without panic; what is no header has no size.

use maka_cu_protocol::sets::ImageFormat;

use crate::displays::PixelSize;

/// The eight bytes before everything else in a PNG (PNG specification, 5.2).
const PNG_SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Start of image, and the first byte of whatever marker follows (ITU-T T.81, B.1.1.3).
const JPEG_SIGNATURE: [u8; 3] = [0xFF, 0xD8, 0xFF];

/// The format whose signature the bytes begin with.
pub(super) fn format(bytes: &[u8]) -> Option<ImageFormat> {
    if bytes.starts_with(&PNG_SIGNATURE) {
        Some(ImageFormat::Png)
    } else if bytes.starts_with(&JPEG_SIGNATURE) {
        Some(ImageFormat::Jpeg)
    } else {
        None
    }
}

/// The size in the header of an image of this format; none when there is no such header or a side is nothing.
pub(super) fn size(bytes: &[u8], format: ImageFormat) -> Option<PixelSize> {
    let size = match format {
        ImageFormat::Png => png_size(bytes),
        ImageFormat::Jpeg => jpeg_size(bytes),
    }?;
    (size.width > 0 && size.height > 0).then_some(size)
}

/// A PNG's first chunk is IHDR, thirteen bytes long, and begins with the two sides (PNG specification, 11.2.1).
fn png_size(bytes: &[u8]) -> Option<PixelSize> {
    let header = bytes.strip_prefix(&PNG_SIGNATURE)?;
    let header = header.strip_prefix(b"\0\0\0\x0dIHDR")?;
    let (width, header) = header.split_first_chunk()?;
    let (height, _) = header.split_first_chunk()?;
    Some(PixelSize {
        width: u32::from_be_bytes(*width),
        height: u32::from_be_bytes(*height),
    })
}

/// A JPEG's size stands in its first frame header; the segments before it are skipped by their lengths (ITU-T T.81, B.2).
fn jpeg_size(bytes: &[u8]) -> Option<PixelSize> {
    let mut rest = bytes.strip_prefix(&[0xFF, 0xD8])?;
    loop {
        // Any number of fill bytes may stand before a marker.
        let marked = rest.strip_prefix(&[0xFF])?;
        let fill = marked.iter().take_while(|&&byte| byte == 0xFF).count();
        let (&marker, after) = marked[fill..].split_first()?;
        match marker {
            // Markers that stand alone: TEM and RST0 to RST7.
            0x01 | 0xD0..=0xD7 => rest = after,
            // The end, the beginning of scan data, or no marker at all: a size would have come before.
            0x00 | 0xD8 | 0xD9 | 0xDA => return None,
            // Frame headers, for each way of coding. C4, C8 and CC are tables between them.
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                // Two bytes of length, one of precision, then height and width.
                let sides = after.get(3..7)?;
                let side = |at: usize| u32::from(u16::from_be_bytes([sides[at], sides[at + 1]]));
                return Some(PixelSize {
                    width: side(2),
                    height: side(0),
                });
            }
            0x02..=0xBF | 0xC4 | 0xC8 | 0xCC | 0xDB..=0xFF => {
                let (length, _) = after.split_first_chunk()?;
                let length = usize::from(u16::from_be_bytes(*length));
                // The length counts its own two bytes; less would never get on.
                if length < 2 {
                    return None;
                }
                rest = after.get(length..)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn png(ihdr: &[u8]) -> Vec<u8> {
        [&PNG_SIGNATURE[..], b"\0\0\0\x0dIHDR", ihdr].concat()
    }

    fn jpeg(segments: &[&[u8]]) -> Vec<u8> {
        [&[&[0xFF, 0xD8][..]], segments].concat().concat()
    }

    const SOF: &[u8] = &[0xFF, 0xC0, 0, 11, 8, 0x01, 0x02, 0x03, 0x04, 1, 1, 0x11, 0];
    const PROGRESSIVE: &[u8] = &[0xFF, 0xC2, 0, 11, 8, 0x01, 0x02, 0x03, 0x04, 1, 1, 0x11, 0];
    const APP0: &[u8] = &[0xFF, 0xE0, 0, 4, 0xFF, 0xC0];
    const HUFFMAN: &[u8] = &[0xFF, 0xC4, 0, 3, 9];
    const SIZE: Option<PixelSize> = Some(PixelSize {
        width: 0x0304,
        height: 0x0102,
    });

    #[test]
    fn sizes_stand_in_the_header() {
        let sides = png(&[0, 0, 3, 4, 0, 0, 1, 2, 8, 2, 0, 0, 0]);
        let rows: [(&str, Vec<u8>, ImageFormat, Option<PixelSize>); 16] = [
            ("png", sides.clone(), ImageFormat::Png, SIZE),
            (
                "png, cut",
                png(&[0, 0, 3, 4, 0, 0, 1]),
                ImageFormat::Png,
                None,
            ),
            ("png of nothing", png(&[0; 13]), ImageFormat::Png, None),
            (
                "png without header",
                PNG_SIGNATURE.to_vec(),
                ImageFormat::Png,
                None,
            ),
            ("png as jpeg", sides, ImageFormat::Jpeg, None),
            ("baseline", jpeg(&[SOF]), ImageFormat::Jpeg, SIZE),
            (
                "progressive",
                jpeg(&[APP0, PROGRESSIVE]),
                ImageFormat::Jpeg,
                SIZE,
            ),
            (
                "a marker inside a segment",
                jpeg(&[APP0, SOF]),
                ImageFormat::Jpeg,
                SIZE,
            ),
            (
                "tables are no frames",
                jpeg(&[HUFFMAN, SOF]),
                ImageFormat::Jpeg,
                SIZE,
            ),
            (
                "fill bytes",
                jpeg(&[&[0xFF, 0xFF], SOF]),
                ImageFormat::Jpeg,
                SIZE,
            ),
            (
                "a marker alone",
                jpeg(&[&[0xFF, 0x01], SOF]),
                ImageFormat::Jpeg,
                SIZE,
            ),
            (
                "scan first",
                jpeg(&[&[0xFF, 0xDA, 0, 2], SOF]),
                ImageFormat::Jpeg,
                None,
            ),
            (
                "end first",
                jpeg(&[&[0xFF, 0xD9], SOF]),
                ImageFormat::Jpeg,
                None,
            ),
            (
                "a length of nothing",
                jpeg(&[&[0xFF, 0xE0, 0, 0], SOF]),
                ImageFormat::Jpeg,
                None,
            ),
            (
                "a segment past the end",
                jpeg(&[&[0xFF, 0xE0, 9, 9]]),
                ImageFormat::Jpeg,
                None,
            ),
            ("no marker", jpeg(&[&[0x00], SOF]), ImageFormat::Jpeg, None),
        ];
        for (name, bytes, format, expected) in rows {
            assert_eq!(size(&bytes, format), expected, "{name}");
        }
    }

    #[test]
    fn formats_have_signatures() {
        assert_eq!(format(&png(&[])), Some(ImageFormat::Png));
        assert_eq!(format(&jpeg(&[SOF])), Some(ImageFormat::Jpeg));
        for other in [
            &b""[..],
            b"\x89PNG",
            b"GIF89a",
            b"RIFF....WEBP",
            b"\xff\xd8",
            b"BM",
        ] {
            assert_eq!(format(other), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in vec(any::<u8>(), 0..200), jpeg_like in any::<bool>()) {
            let bytes = if jpeg_like { [&[0xFF, 0xD8, 0xFF][..], &bytes].concat() } else { bytes };
            for format in ImageFormat::ALL {
                size(&bytes, *format);
            }
        }
    }
}
