//! Signing keys: Ed25519, as text.
//!
//! Whoever holds a secret key can sign in its name, so it is never printed. Where keys are kept is not this module's: a
//! gateway has public ones in its configuration, an author has both kinds in files.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

/// A key that signs.
pub struct SecretKey(SigningKey);

/// A key that tells whether a signature is good. Its text is 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// Text that is no public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a public key is 64 lower-case hex digits, as `maka-policy keygen` prints them")]
pub struct PublicKeyError;

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

impl FromStr for PublicKey {
    type Err = PublicKeyError;

    fn from_str(text: &str) -> Result<Self, PublicKeyError> {
        let bytes = unhex(text).ok_or(PublicKeyError)?;
        VerifyingKey::from_bytes(&bytes)
            .map(Self)
            .map_err(|_| PublicKeyError)
    }
}

impl SecretKey {
    /// The key of this seed.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The public key of the pair.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl PublicKey {
    /// Whether this key signed this message.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        // Strict: a weak key, or a second form of the same signature, is none.
        self.0
            .verify_strict(message, &Signature::from_bytes(signature))
            .is_ok()
    }
}

/// Lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of exactly so many lower-case hex digits.
#[must_use]
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let is_hex = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.iter().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_one_to_one() {
        assert_eq!(unhex::<3>(&hex(&[0, 0xab, 0xff])), Some([0, 0xab, 0xff]));
        for bad in ["", "00", "00aBff", "00abff0", "+1abff", "00abf\u{e9}"] {
            assert_eq!(unhex::<3>(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_signature_is_good_for_one_key_and_one_message() {
        let key = |seed| SecretKey::from_seed(&[seed; 32]);
        let signature = key(1).sign(b"this");
        assert!(key(1).public().has_signed(b"this", &signature));
        assert!(!key(1).public().has_signed(b"that", &signature));
        assert!(!key(2).public().has_signed(b"this", &signature));
        assert_eq!(format!("{:?}", key(1)), "<redacted>");
    }

    #[test]
    fn a_public_key_is_its_text() {
        let key = SecretKey::from_seed(&[7; 32]).public();
        assert_eq!(key.to_string().parse(), Ok(key));
        let text = key.to_string();
        for bad in ["", "00", &text.to_uppercase(), &text[1..]] {
            assert_eq!(bad.parse::<PublicKey>(), Err(PublicKeyError), "{bad}");
        }
    }
}
