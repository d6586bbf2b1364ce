//! Painting parts of a picture black.
//!
//! Owns the way from a verified PNG to one without what a policy keeps back. Painting the same parts of the same picture
//! gives the same bytes, so that a picture can be announced, and read again later without having been kept.

use std::io::Cursor;

use super::conditions::PixelRect;

/// Pixels that are decoded at most; as many as are looked at to tell a picture of one colour.
const PIXELS_MAX: u64 = 1 << 26;

/// The picture without these parts; nothing when it cannot be decoded, and then none of it may be shown.
pub(super) fn paint(bytes: &[u8], parts: &[PixelRect]) -> Option<Vec<u8>> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = reader.info().size();
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return None;
    }
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut pixels).ok()?;
    let (samples, has_alpha) = match frame.color_type {
        png::ColorType::Grayscale => (1, false),
        png::ColorType::GrayscaleAlpha => (2, true),
        png::ColorType::Rgb => (3, false),
        png::ColorType::Rgba => (4, true),
        // Expanded by the decoder.
        png::ColorType::Indexed => return None,
    };
    for part in parts {
        let right = part.x.saturating_add(part.width).min(width) as usize;
        let bottom = part.y.saturating_add(part.height).min(height) as usize;
        let (left, top) = (part.x as usize, part.y as usize);
        if left >= right {
            continue;
        }
        for row in pixels
            .chunks_exact_mut(frame.line_size)
            .take(bottom)
            .skip(top)
        {
            for pixel in row[left * samples..right * samples].chunks_exact_mut(samples) {
                pixel.fill(0);
                if has_alpha {
                    pixel[samples - 1] = u8::MAX;
                }
            }
        }
    }
    let mut painted = Vec::new();
    let mut encoder = png::Encoder::new(&mut painted, width, height);
    encoder.set_color(frame.color_type);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer
        .write_image_data(&pixels[..frame.buffer_size()])
        .ok()?;
    writer.finish().ok()?;
    Some(painted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(color: png::ColorType, samples: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 4, 3);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().unwrap();
        writer
            .write_image_data(&vec![200; 4 * 3 * samples])
            .unwrap();
        writer.finish().unwrap();
        bytes
    }

    fn pixels(bytes: &[u8]) -> Vec<u8> {
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        pixels
    }

    #[test]
    fn exactly_the_parts_are_black() {
        let part = PixelRect {
            x: 1,
            y: 1,
            width: 9,
            height: 1,
        };
        for (color, samples) in [
            (png::ColorType::Grayscale, 1),
            (png::ColorType::Rgb, 3),
            (png::ColorType::Rgba, 4),
        ] {
            let bytes = picture(color, samples);
            let painted = paint(&bytes, &[part]).unwrap();
            assert_eq!(paint(&bytes, &[part]).unwrap(), painted, "the same again");
            for (at, pixel) in pixels(&painted).chunks_exact(samples).enumerate() {
                let is_in = at / 4 == 1 && at % 4 >= 1;
                let alpha = if samples == 4 { u8::MAX } else { 0 };
                let expected = match (is_in, samples) {
                    (false, _) => vec![200; samples],
                    (true, 4) => vec![0, 0, 0, alpha],
                    (true, _) => vec![0; samples],
                };
                assert_eq!(pixel, expected, "{color:?} {at}");
            }
        }
        assert_eq!(paint(b"no picture", &[part]), None);
        let beside = PixelRect { x: 4, ..part };
        let bytes = picture(png::ColorType::Rgb, 3);
        assert_eq!(pixels(&paint(&bytes, &[beside]).unwrap()), pixels(&bytes));
    }
}
