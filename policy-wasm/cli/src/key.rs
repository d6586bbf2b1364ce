//! Signing keys: Ed25519, in files of one line.
//!
//! A secret key is kept in a file that only its owner can read, and a file that others can read is refused: whoever can
//! read it can sign in its name. The public key stands beside it and may be given to anyone.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::error::InputError;
use crate::reference::{read_file, read_file_with_mode};

const SCHEMA: &str = "maka.policy.key/1";
const SECRET: &str = "secret";
const PUBLIC: &str = "public";
/// A key file is one short line.
const FILE_BYTES: u64 = 256;

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file holds no key of this kind.
    #[error(
        "the file holds no {0} key; make a pair with `maka-policy keygen FILE`, which keeps the public one in FILE.pub"
    )]
    NotKey(&'static str),
    /// Others can read a secret key.
    #[error("others can read this secret key; make a new pair, or `chmod 600` it if nobody has")]
    Open,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers to make a key of")]
    NoEntropy,
}

/// A key that signs.
pub struct SecretKey(SigningKey);

/// A key that tells whether a signature is good.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

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

impl SecretKey {
    /// Makes a pair: the secret key in a new file with mode 0600, the public key beside it in `FILE.pub`.
    ///
    /// # Errors
    ///
    /// When one of the files is there already or cannot be written.
    pub fn create(path: &Path) -> Result<(PublicKey, PathBuf), InputError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| located(path, KeyError::NoEntropy))?;
        let key = Self(SigningKey::from_bytes(&seed));
        let public = key.public();
        let mut beside = path.as_os_str().to_owned();
        beside.push(".pub");
        let beside = PathBuf::from(beside);
        write_new(path, 0o600, line(SECRET, &hex(&seed)))?;
        write_new(&beside, 0o644, line(PUBLIC, &public.to_string()))?;
        Ok((public, beside))
    }

    /// Reads a secret key.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, can be read by others, or holds no secret key.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        // The file that is read is the one that is looked at, whatever its name stands for meanwhile.
        let (mode, bytes) = read_file_with_mode(path, FILE_BYTES)?;
        if mode & 0o077 != 0 {
            return Err(located(path, KeyError::Open));
        }
        let seed = parse(SECRET, &bytes).ok_or_else(|| located(path, KeyError::NotKey(SECRET)))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
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
    /// Reads a public key.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or holds no public key.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let bytes = read_file(path, FILE_BYTES)?;
        parse(PUBLIC, &bytes)
            .and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok())
            .map(Self)
            .ok_or_else(|| located(path, KeyError::NotKey(PUBLIC)))
    }

    /// Whether this key signed this message.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        // Strict: a weak key, or a second form of the same signature, is none.
        self.0
            .verify_strict(message, &Signature::from_bytes(signature))
            .is_ok()
    }
}

/// Writes a file that is not there yet.
///
/// # Errors
///
/// When it is, or cannot be written.
pub fn write_new(path: &Path, mode: u32, content: impl AsRef<[u8]>) -> Result<(), InputError> {
    let failed = |source| InputError::Write {
        path: path.to_owned(),
        source,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(failed)?;
    file.write_all(content.as_ref())
        .and_then(|()| file.sync_all())
        .map_err(failed)
}

fn located(path: &Path, source: KeyError) -> InputError {
    InputError::Key {
        path: path.to_owned(),
        source,
    }
}

fn line(kind: &str, hex: &str) -> String {
    format!("{SCHEMA} {kind} {hex}\n")
}

fn parse(kind: &str, bytes: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(bytes).ok()?;
    let hex = text
        .strip_suffix('\n')?
        .strip_prefix(SCHEMA)?
        .strip_prefix(' ')?
        .strip_prefix(kind)?
        .strip_prefix(' ')?;
    unhex(hex)
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of exactly so many lower-case hex digits.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
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
        let key = |seed| SecretKey(SigningKey::from_bytes(&[seed; 32]));
        let signature = key(1).sign(b"this");
        assert!(key(1).public().has_signed(b"this", &signature));
        assert!(!key(1).public().has_signed(b"that", &signature));
        assert!(!key(2).public().has_signed(b"this", &signature));
        assert_eq!(format!("{:?}", key(1)), "<redacted>");
    }
}
