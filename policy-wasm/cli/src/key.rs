//! Key files: one line each.
//!
//! A secret key is kept in a file that only its owner can read, and a file that others can read is refused: whoever can
//! read it can sign in its name. The public key stands beside it and may be given to anyone.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use maka_policy_host::capture::{CaptureKey, CaptureSecret};
use maka_policy_host::key::{PublicKey, SecretKey, hex, unhex};

use crate::error::InputError;
use crate::reference::{read_file, read_file_with_mode};

const SCHEMA: &str = "maka.policy.key/1";
const SECRET: &str = "secret";
const PUBLIC: &str = "public";
/// Other kinds, so that no key serves two ends.
const CAPTURE_SECRET: &str = "capture-secret";
const CAPTURE_PUBLIC: &str = "capture-public";
/// A key file is one short line.
const FILE_BYTES: u64 = 256;

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file holds no key of this kind.
    #[error(
        "the file holds no {0} key; make a pair with `maka-policy keygen FILE`, with --capture for captures, which keeps the public one in FILE.pub"
    )]
    NotKey(&'static str),
    /// Others can read a secret key.
    #[error("others can read this secret key; make a new pair, or `chmod 600` it if nobody has")]
    Open,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers to make a key of")]
    NoEntropy,
}

/// Makes a pair: the secret key in a new file with mode 0600, the public key beside it in `FILE.pub`.
///
/// # Errors
///
/// When one of the files is there already or cannot be written.
pub fn create(path: &Path) -> Result<(PublicKey, PathBuf), InputError> {
    let seed = seed(path)?;
    let public = SecretKey::from_seed(&seed).public();
    let beside = write_pair(path, (SECRET, &seed), (PUBLIC, &public.to_string()))?;
    Ok((public, beside))
}

/// Makes a pair for captures, in files like those of [`create`].
///
/// # Errors
///
/// As [`create`].
pub fn create_capture(path: &Path) -> Result<(CaptureKey, PathBuf), InputError> {
    let seed = seed(path)?;
    let public = CaptureSecret::from_seed(seed).public();
    let text = public.to_string();
    let beside = write_pair(path, (CAPTURE_SECRET, &seed), (CAPTURE_PUBLIC, &text))?;
    Ok((public, beside))
}

fn seed(path: &Path) -> Result<[u8; 32], InputError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|_| located(path, KeyError::NoEntropy))?;
    Ok(seed)
}

fn write_pair(
    path: &Path,
    secret: (&str, &[u8; 32]),
    public: (&str, &str),
) -> Result<PathBuf, InputError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pub");
    let beside = PathBuf::from(beside);
    write_new(path, 0o600, line(secret.0, &hex(secret.1)))?;
    write_new(&beside, 0o644, line(public.0, public.1))?;
    Ok(beside)
}

/// Reads a secret key.
///
/// # Errors
///
/// When the file cannot be read, can be read by others, or holds no secret key.
pub fn read_secret(path: &Path) -> Result<SecretKey, InputError> {
    secret_seed(path, SECRET).map(|seed| SecretKey::from_seed(&seed))
}

/// Reads the secret key that captures are read with.
///
/// # Errors
///
/// As [`read_secret`].
pub fn read_capture_secret(path: &Path) -> Result<CaptureSecret, InputError> {
    secret_seed(path, CAPTURE_SECRET).map(CaptureSecret::from_seed)
}

fn secret_seed(path: &Path, kind: &'static str) -> Result<[u8; 32], InputError> {
    // The file that is read is the one that is looked at, whatever its name stands for meanwhile.
    let (mode, bytes) = read_file_with_mode(path, FILE_BYTES)?;
    if mode & 0o077 != 0 {
        return Err(located(path, KeyError::Open));
    }
    parse(kind, &bytes)
        .and_then(unhex)
        .ok_or_else(|| located(path, KeyError::NotKey(kind)))
}

/// Reads a public key.
///
/// # Errors
///
/// When the file cannot be read, or holds no public key.
pub fn read_public(path: &Path) -> Result<PublicKey, InputError> {
    let bytes = read_file(path, FILE_BYTES)?;
    parse(PUBLIC, &bytes)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| located(path, KeyError::NotKey(PUBLIC)))
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

fn parse<'a>(kind: &str, bytes: &'a [u8]) -> Option<&'a str> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.strip_suffix('\n')?
        .strip_prefix(SCHEMA)?
        .strip_prefix(' ')?
        .strip_prefix(kind)?
        .strip_prefix(' ')
}
