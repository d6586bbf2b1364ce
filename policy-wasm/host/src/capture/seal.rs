//! The envelope of a capture: everything in it can be read only with the secret key, and nothing of it can be changed,
//! left out, moved or cut off without being noticed.
//!
//! A file has a magic line, a public key that was made for this file alone, and frames. Each frame is a length and a
//! crypto_box (X25519, XSalsa20-Poly1305) whose nonce is the number of the frame and whether it is the last one.

use std::fmt;
use std::str::FromStr;

use crypto_box::aead::{Aead as _, generic_array::GenericArray};
use crypto_box::{PublicKey, SalsaBox, SecretKey};

use super::CaptureError;
use crate::id::NoEntropy;
use crate::key::{hex, unhex};

const MAGIC: &[u8] = b"maka.policy.capture/1\n";
/// The largest frame: two of them, a set and a decision, are less than the largest message of a stream.
pub(super) const FRAME_BYTES: usize = (2 << 20) - 1024;
/// Marks the length of the last frame.
const LAST: u32 = 1 << 31;

/// The key that captures are encrypted to. Its text is 64 lower-case hex digits.
#[derive(Clone, PartialEq, Eq)]
pub struct CaptureKey(PublicKey);

/// The key that reads captures.
pub struct CaptureSecret(SecretKey);

/// Text that is no key for captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key for captures is 64 lower-case hex digits, as `maka-policy keygen --capture` prints them"
)]
pub struct CaptureKeyError;

impl fmt::Debug for CaptureSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl fmt::Debug for CaptureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CaptureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

impl FromStr for CaptureKey {
    type Err = CaptureKeyError;

    fn from_str(text: &str) -> Result<Self, CaptureKeyError> {
        let bytes: [u8; 32] = unhex(text).ok_or(CaptureKeyError)?;
        // The key that an empty form leaves behind; with it everybody could read.
        if bytes == [0; 32] {
            return Err(CaptureKeyError);
        }
        Ok(Self(PublicKey::from(bytes)))
    }
}

impl CaptureSecret {
    /// The key of this seed.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SecretKey::from(seed))
    }

    /// The public key of the pair.
    #[must_use]
    pub fn public(&self) -> CaptureKey {
        CaptureKey(self.0.public_key())
    }
}

fn nonce(number: u64, is_last: bool) -> [u8; 24] {
    let mut nonce = [0; 24];
    nonce[0] = u8::from(is_last);
    nonce[16..].copy_from_slice(&number.to_le_bytes());
    nonce
}

/// Encrypts frame after frame.
pub(super) struct Sealer {
    sealing: SalsaBox,
    number: u64,
}

impl Sealer {
    /// A sealer with a key of its own, and the beginning of the file.
    pub(super) fn new(to: &CaptureKey) -> Result<(Self, Vec<u8>), NoEntropy> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| NoEntropy)?;
        let own = SecretKey::from(seed);
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(own.public_key().as_bytes());
        let sealing = SalsaBox::new(&to.0, &own);
        Ok((Self { sealing, number: 0 }, head))
    }

    /// The next frame; nothing when it is too large to be one.
    pub(super) fn seal(&mut self, plain: &[u8], is_last: bool) -> Option<Vec<u8>> {
        if plain.len() > FRAME_BYTES {
            return None;
        }
        let nonce = nonce(self.number, is_last);
        let sealed = self
            .sealing
            .encrypt(GenericArray::from_slice(&nonce), plain);
        let sealed = sealed.ok()?;
        self.number += 1;
        let length = u32::try_from(sealed.len()).ok()?;
        let mut frame = (length | if is_last { LAST } else { 0 })
            .to_le_bytes()
            .to_vec();
        frame.extend(sealed);
        Some(frame)
    }
}

/// The frames of a file, decrypted.
pub(super) fn open(file: &[u8], secret: &CaptureSecret) -> Result<Vec<Vec<u8>>, CaptureError> {
    let rest = file.strip_prefix(MAGIC).ok_or(CaptureError::NotCapture)?;
    let (own, mut rest) = rest.split_first_chunk::<32>().ok_or(CaptureError::Cut)?;
    let opening = SalsaBox::new(&PublicKey::from(*own), &secret.0);
    let mut frames = Vec::new();
    loop {
        let (length, after) = rest.split_first_chunk::<4>().ok_or(CaptureError::Cut)?;
        let length = u32::from_le_bytes(*length);
        let is_last = length & LAST != 0;
        let length = (length & !LAST) as usize;
        if length > FRAME_BYTES + 64 {
            return Err(CaptureError::Changed);
        }
        let (sealed, after) = after.split_at_checked(length).ok_or(CaptureError::Cut)?;
        let nonce = nonce(frames.len() as u64, is_last);
        let plain = opening.decrypt(GenericArray::from_slice(&nonce), sealed);
        let plain = plain.map_err(|_| {
            if frames.is_empty() {
                CaptureError::WrongKey
            } else {
                CaptureError::Changed
            }
        })?;
        frames.push(plain);
        rest = after;
        if is_last {
            let is_whole = rest.is_empty();
            return is_whole.then_some(frames).ok_or(CaptureError::Changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(secret: &CaptureSecret) -> Vec<u8> {
        let (mut sealer, mut file) = Sealer::new(&secret.public()).unwrap();
        for (text, is_last) in [("one", false), ("two", false), ("end", true)] {
            file.extend(sealer.seal(text.as_bytes(), is_last).unwrap());
        }
        file
    }

    #[test]
    fn only_the_key_opens_it_and_any_change_is_found() {
        let secret = CaptureSecret::from_seed([7; 32]);
        let whole = file(&secret);
        let frames = open(&whole, &secret).unwrap();
        assert_eq!(frames, [b"one".to_vec(), b"two".to_vec(), b"end".to_vec()]);
        let other = CaptureSecret::from_seed([8; 32]);
        assert_eq!(open(&whole, &other), Err(CaptureError::WrongKey));
        for length in 0..whole.len() {
            assert!(open(&whole[..length], &secret).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(open(&changed, &secret).is_err(), "{at}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(open(&longer, &secret), Err(CaptureError::Changed));
    }

    #[test]
    fn two_files_of_one_key_have_nothing_in_common() {
        let secret = CaptureSecret::from_seed([7; 32]);
        let (one, two) = (file(&secret), file(&secret));
        assert_ne!(one[MAGIC.len()..], two[MAGIC.len()..]);
        assert_eq!(format!("{secret:?}"), "<redacted>");
        assert!("0".repeat(64).parse::<CaptureKey>().is_err());
        let key = secret.public();
        assert_eq!(key.to_string().parse(), Ok(key));
    }
}
