//! Bitmap to PNG. `Fast` compression: a picture is written at every look and read once, so time counts more than bytes.

use png::{BitDepth, ColorType, Compression, Encoder};
use thiserror::Error;

use crate::backend::bitmap::{Bitmap, PixelLayout};

/// The encoder failed; only running out of memory can cause that.
#[derive(Debug, Error)]
#[error("the picture could not be encoded")]
pub struct EncodeError(#[from] png::EncodingError);

/// The picture as a PNG file.
///
/// # Errors
/// [`EncodeError`] when the encoder fails.
pub fn png(bitmap: &Bitmap) -> Result<Vec<u8>, EncodeError> {
    // A quarter of the raw size is more than a typical window needs; the vector grows when it is not.
    let mut file = Vec::with_capacity(bitmap.pixels().len() / 4 + 1024);
    let mut encoder = Encoder::new(&mut file, bitmap.width(), bitmap.height());
    encoder.set_color(match bitmap.layout() {
        PixelLayout::Rgb8 => ColorType::Rgb,
        PixelLayout::Rgba8 => ColorType::Rgba,
    });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(bitmap.pixels())?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_comes_back() {
        let pixels: Vec<u8> = (0..7 * 5 * 3)
            .map(|byte| u8::try_from(byte * 2 % 256).unwrap())
            .collect();
        let bitmap = Bitmap::try_new(7, 5, PixelLayout::Rgb8, pixels.clone()).unwrap();
        let file = png(&bitmap).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut decoded).unwrap();
        assert_eq!((info.width, info.height), (7, 5));
        assert_eq!(decoded, pixels);
    }
}
