//! An image as a stream of messages of bounded size.

use maka_proto::v1;
use tonic::Status;

use super::{encode, status::status_of};
use crate::session::{answer::ImageBytes, image_reading::ImageRight};

/// Most bytes in one message.
const CHUNK_BYTES: usize = 256 * 1024;

/// The messages of one image, made as they are sent. The bytes were verified before the first. When the right to them is lost on
/// the way, the stream ends with the reason and lets go of what is left.
#[derive(Debug)]
pub(super) struct ImageChunks {
    /// Nothing once the right to it was lost.
    image: Option<ImageBytes>,
    offset: usize,
    began: bool,
}

impl ImageChunks {
    pub(super) fn new(image: ImageBytes) -> Self {
        Self {
            image: Some(image),
            offset: 0,
            began: false,
        }
    }
}

impl Iterator for ImageChunks {
    type Item = Result<v1::ReadImageResponse, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        let image = self.image.as_ref()?;
        let rest = &image.data[self.offset..];
        // The first message always goes out: it says what the image is.
        if rest.is_empty() && self.began {
            return None;
        }
        if let Some(Err(lost)) = image.right.as_ref().map(ImageRight::check) {
            self.image = None;
            return Some(Err(status_of(&lost)));
        }
        let data = rest[..rest.len().min(CHUNK_BYTES)].to_vec();
        let info = (!self.began).then(|| encode::snapshot::image(&image.info, Vec::new()));
        let chunk = v1::ReadImageResponse {
            image: info,
            offset: self.offset as u64,
            data,
        };
        self.offset += chunk.data.len();
        self.began = true;
        Some(Ok(chunk))
    }
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::{ids::Digest, sets::ImageFormat};

    use super::*;
    use crate::session::answer::{ImageId, ImageInfo};

    /// G1: whatever its size, an image travels in messages that every client accepts, in order and without a gap.
    #[test]
    fn chunks_are_bounded_and_complete() {
        for length in [
            0,
            1,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            6_242_911,
        ] {
            let data: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            let info = ImageInfo {
                image_id: ImageId::new("i"),
                format: ImageFormat::Png,
                width_px: 1,
                height_px: 1,
                byte_length: length as u64,
                sha256: Digest::of(&data),
                scale: 1.0,
                uniform: None,
                size_mismatch: false,
            };
            let chunks: Vec<_> = ImageChunks::new(ImageBytes {
                info,
                data: data.clone(),
                right: None,
                _room: None,
            })
            .map(Result::unwrap)
            .collect();
            assert_eq!(
                chunks.iter().filter(|chunk| chunk.image.is_some()).count(),
                1
            );
            assert!(chunks[0].image.is_some());
            let mut joined = Vec::new();
            for chunk in chunks {
                assert_eq!(chunk.offset, joined.len() as u64);
                assert!(chunk.data.len() <= CHUNK_BYTES);
                joined.extend(chunk.data);
            }
            assert_eq!(joined, data, "{length}");
        }
    }
}
