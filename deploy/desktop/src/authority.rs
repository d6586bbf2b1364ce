//! The X authority cookie: who may connect to the display.
//!
//! One file serves both ends. The server takes every `MIT-MAGIC-COOKIE-1` entry of the file given with `-auth`, whatever
//! address it names; clients find theirs by family and display number. A wild entry with an empty number matches any
//! display, so the file can be complete before the server has chosen its number. Format: `Xau(3)`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `FamilyWild` of `X11/Xauth.h`: the entry is for every address.
const FAMILY_WILD: u16 = 65535;
const PROTOCOL: &[u8] = b"MIT-MAGIC-COOKIE-1";
/// The protocol's secret is 128 bits.
pub(crate) const COOKIE_BYTES: usize = 16;

/// Writes a new authority file that only its owner can read.
pub(crate) fn write_authority(path: &Path, cookie: &[u8; COOKIE_BYTES]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(&entry(cookie))
}

fn entry(cookie: &[u8; COOKIE_BYTES]) -> Vec<u8> {
    let mut bytes = FAMILY_WILD.to_be_bytes().to_vec();
    for field in [&b""[..], &b""[..], PROTOCOL, &cookie[..]] {
        let length = u16::try_from(field.len()).expect("every field here is a short constant");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_big_endian_and_counted() {
        let bytes = entry(&[7; COOKIE_BYTES]);
        assert_eq!(&bytes[..6], &[0xff, 0xff, 0, 0, 0, 0]);
        assert_eq!(&bytes[6..8], &[0, 18]);
        assert_eq!(&bytes[8..26], PROTOCOL);
        assert_eq!(&bytes[26..28], &[0, 16]);
        assert_eq!(&bytes[28..], &[7; COOKIE_BYTES]);
    }
}
