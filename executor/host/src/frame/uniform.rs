//! Whether a picture is of one color (field reports C4, C7).
//!
//! A varied picture is told after about one pixel in a hundred, so ordinary frames cost little. Rows are decoded one at a time and
//! never kept; memory is bounded by the width.

use std::io::Cursor;
use std::ops::ControlFlow;

use maka_cu_protocol::sets::ImageFormat;
use png::{Decoder, Limits, Reader, Transformations};

use super::Uniformity;
use crate::displays::PixelSize;

/// Pixels of another color per thousand that still make one color.
const OTHERS_PER_MILLE: u64 = 5;

/// Most pixels that are judged: four displays of 5K together have fewer.
const PIXELS_MAX: u64 = 1 << 26;

/// Longest side that is judged, so that a row stays small.
const SIDE_MAX: u32 = 1 << 16;

/// Memory for what stands in a PNG beside its pixels.
const DECODE_MEMORY: usize = 4 * 1024 * 1024;

/// Judges an image whose header was read already.
pub(super) fn judge(bytes: &[u8], format: ImageFormat, size: PixelSize) -> Uniformity {
    let pixels = u64::from(size.width) * u64::from(size.height);
    if pixels > PIXELS_MAX || size.width > SIDE_MAX || size.height > SIDE_MAX {
        return Uniformity::Unknown;
    }
    match format {
        ImageFormat::Png => judge_png(bytes, pixels).unwrap_or(Uniformity::Unknown),
        // No decoder for it is worth its weight here: our executors write PNG.
        ImageFormat::Jpeg => Uniformity::Unknown,
    }
}

fn judge_png(bytes: &[u8], pixels: u64) -> Option<Uniformity> {
    let tolerated = pixels * OTHERS_PER_MILLE / 1000;
    let color = likely_color(bytes, 2 * tolerated + 1)?;
    let mut others = 0_u64;
    let walked = each_pixel(bytes, |pixel| {
        others += u64::from(pixel != color);
        if others > tolerated {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Some(match walked {
        ControlFlow::Break(()) => Uniformity::Varied,
        ControlFlow::Continue(()) => Uniformity::Uniform,
    })
}

/// The only color the picture can be of, if it is of one: among the first `2 · tolerated + 1` pixels more than half have it, and a
/// majority is found by letting different pixels cancel each other out.
fn likely_color(bytes: &[u8], enough: u64) -> Option<u32> {
    let (mut candidate, mut lead, mut seen) = (0_u32, 0_u64, 0_u64);
    let walked = each_pixel(bytes, |pixel| {
        match (lead, pixel == candidate) {
            (0, _) => (candidate, lead) = (pixel, 1),
            (_, true) => lead += 1,
            (_, false) => lead -= 1,
        }
        seen += 1;
        if seen >= enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    walked.map(|_| candidate)
}

/// Shows every pixel to `visit`, once, in the order of the file (which an interlaced one has of its own); none if the file is damaged
/// before `visit` has seen enough.
fn each_pixel(
    bytes: &[u8],
    mut visit: impl FnMut(u32) -> ControlFlow<()>,
) -> Option<ControlFlow<()>> {
    let mut reader = open(bytes)?;
    let (color, _) = reader.output_color_type();
    let samples = color.samples();
    while let Some(row) = reader.next_row().ok()? {
        for samples in row.data().chunks_exact(samples) {
            let pixel = samples
                .iter()
                .fold(0, |pixel, &sample| pixel << 8 | u32::from(sample));
            if visit(pixel).is_break() {
                return Some(ControlFlow::Break(()));
            }
        }
    }
    Some(ControlFlow::Continue(()))
}

fn open(bytes: &[u8]) -> Option<Reader<Cursor<&[u8]>>> {
    let limits = Limits {
        bytes: DECODE_MEMORY,
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    // One byte per sample, no palette: a pixel is one to four bytes.
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.read_info().ok()
}

#[cfg(test)]
mod tests {
    use png::{BitDepth, ColorType};

    use super::*;

    type Rgb = [u8; 3];

    const GREY: Rgb = [128, 128, 128];
    const BLACK: Rgb = [0, 0, 0];

    fn encode(size: (u32, u32), pixel: impl Fn(u32, u32) -> Rgb) -> Vec<u8> {
        let rows = (0..size.1).flat_map(|y| (0..size.0).map(move |x| (x, y)));
        let data: Vec<u8> = rows.flat_map(|(x, y)| pixel(x, y)).collect();
        encode_as(size, ColorType::Rgb, BitDepth::Eight, &data)
    }

    fn encode_as(size: (u32, u32), color: ColorType, depth: BitDepth, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 1, 2, 3, 9, 9, 9]);
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        writer.finish().unwrap();
        bytes
    }

    fn judged(bytes: &[u8], (width, height): (u32, u32)) -> Uniformity {
        judge(bytes, ImageFormat::Png, PixelSize { width, height })
    }

    /// Field report C7: a whole screen of grey, and one with something to see.
    #[test]
    fn a_screen_of_one_color_is_flagged() {
        let size = (1920, 1080);
        assert_eq!(
            judged(&encode(size, |_, _| GREY), size),
            Uniformity::Uniform
        );
        let seen = encode(size, |x, y| [x.to_be_bytes()[3], y.to_be_bytes()[3], 0]);
        assert_eq!(judged(&seen, size), Uniformity::Varied);
    }

    /// Half a percent of 400 × 300 are 600 pixels.
    #[test]
    fn one_color_is_one_color_up_to_half_a_percent() {
        let size = (400, 300);
        let nth = |x: u32, y: u32| y * 400 + x;
        type Pixel<'a> = &'a dyn Fn(u32, u32) -> Rgb;
        let black_if = |black: bool| if black { BLACK } else { GREY };
        let rows: [(&str, Pixel<'_>, Uniformity); 6] = [
            (
                "a cursor at the top left",
                &|x, y| black_if(x < 24 && y < 24),
                Uniformity::Uniform,
            ),
            (
                "exactly half a percent, first of all",
                &|x, y| black_if(nth(x, y) < 600),
                Uniformity::Uniform,
            ),
            (
                "one pixel more, first of all",
                &|x, y| black_if(nth(x, y) <= 600),
                Uniformity::Varied,
            ),
            (
                "one pixel more, last of all",
                &|x, y| black_if(nth(x, y) >= 120_000 - 601),
                Uniformity::Varied,
            ),
            (
                "exactly half a percent, spread",
                &|x, y| black_if(nth(x, y) % 200 == 199),
                Uniformity::Uniform,
            ),
            (
                "half and half",
                &|x, _| black_if(x < 200),
                Uniformity::Varied,
            ),
        ];
        for (name, pixel, expected) in rows {
            assert_eq!(judged(&encode(size, pixel), size), expected, "{name}");
        }
    }

    /// Field report C4: a small black picture of a minimised window.
    #[test]
    fn small_pictures_are_judged_too() {
        for size in [(1, 1), (16, 16), (199, 1)] {
            assert_eq!(
                judged(&encode(size, |_, _| BLACK), size),
                Uniformity::Uniform,
                "{size:?}"
            );
        }
        let one_dot = encode((199, 1), |x, _| if x == 7 { GREY } else { BLACK });
        assert_eq!(judged(&one_dot, (199, 1)), Uniformity::Varied);
    }

    #[test]
    fn every_kind_of_pixel_is_understood() {
        let rows: [(ColorType, BitDepth, Vec<u8>, Uniformity); 7] = [
            (
                ColorType::Grayscale,
                BitDepth::Eight,
                vec![7; 4],
                Uniformity::Uniform,
            ),
            (
                ColorType::Grayscale,
                BitDepth::One,
                vec![0b1100_0000; 2],
                Uniformity::Uniform,
            ),
            (
                ColorType::Grayscale,
                BitDepth::One,
                vec![0b1000_0000; 2],
                Uniformity::Varied,
            ),
            (
                ColorType::GrayscaleAlpha,
                BitDepth::Eight,
                vec![7; 8],
                Uniformity::Uniform,
            ),
            (
                ColorType::Rgba,
                BitDepth::Sixteen,
                vec![7; 32],
                Uniformity::Uniform,
            ),
            // Two entries of the palette, one color.
            (
                ColorType::Indexed,
                BitDepth::Eight,
                vec![0, 1, 1, 0],
                Uniformity::Uniform,
            ),
            (
                ColorType::Indexed,
                BitDepth::Eight,
                vec![0, 2, 1, 0],
                Uniformity::Varied,
            ),
        ];
        for (color, depth, data, expected) in rows {
            let bytes = encode_as((2, 2), color, depth, &data);
            assert_eq!(
                judged(&bytes, (2, 2)),
                expected,
                "{color:?} {depth:?} {data:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_judged_is_unknown() {
        let good = encode((300, 300), |_, _| GREY);
        let cut = &good[..good.len() / 2];
        assert_eq!(judged(cut, (300, 300)), Uniformity::Unknown, "cut");
        assert_eq!(
            judged(b"\x89PNG\r\n\x1a\n", (300, 300)),
            Uniformity::Unknown,
            "no header"
        );
        assert_eq!(
            judged(&good, (SIDE_MAX + 1, 1)),
            Uniformity::Unknown,
            "too wide"
        );
        assert_eq!(
            judged(&good, (SIDE_MAX, 1025)),
            Uniformity::Unknown,
            "too many"
        );
        let size = PixelSize {
            width: 1,
            height: 1,
        };
        assert_eq!(
            judge(b"\xff\xd8\xff", ImageFormat::Jpeg, size),
            Uniformity::Unknown
        );
    }
}
