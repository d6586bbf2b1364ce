//! Identifiers and hashes: distinct types with private content and checking constructors.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::json::{Json, Reason, Violation, record};

/// An identifier was empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an identifier must not be empty")]
pub struct EmptyId;

/// Declares an opaque, non-empty string identifier.
macro_rules! text_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(String);

        impl $name {
            /// Takes the identifier.
            ///
            /// # Errors
            /// [`EmptyId`] when it is empty.
            pub fn try_new(id: impl Into<String>) -> Result<Self, EmptyId> {
                let id = id.into();
                if id.is_empty() { Err(EmptyId) } else { Ok(Self(id)) }
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = EmptyId;

            fn from_str(id: &str) -> Result<Self, EmptyId> {
                Self::try_new(id)
            }
        }

        impl Json for $name {
            fn read(value: &Value) -> Result<Self, Violation> {
                Self::try_new(String::read(value)?).map_err(|EmptyId| Violation::here(Reason::Empty))
            }

            fn write(&self) -> Value {
                Value::String(self.0.clone())
            }
        }
    };
}

text_id! {
    /// A session, named by the host (§3.1).
    SessionId
}
text_id! {
    /// A snapshot, named by the executor (§4.1).
    SnapshotId
}
text_id! {
    /// An element inside one snapshot. Opaque: compared, never parsed (§4.3).
    ElementToken
}
text_id! {
    /// A dispatch, named by the host and echoed (§3.6).
    ToolCallId
}
text_id! {
    /// A process identity as every list spells it: a platform application id or `pid:<n>` (§3.3).
    AppId
}
text_id! {
    /// A display (§4.1).
    DisplayId
}
text_id! {
    /// A reserved frame stream (§3.12).
    StreamId
}

impl AppId {
    /// The identity of a process that has no platform application id.
    #[must_use]
    pub fn of_pid(pid: u32) -> Self {
        Self(format!("pid:{pid}"))
    }
}

record! {
    /// A window as the window server knows it. Window ids alone are not unique on every platform.
    #[derive(Copy, Eq, Hash, Ord, PartialOrd)]
    pub struct WindowKey {
        /// Process id.
        pub pid: u32 = "pid";
        /// Window id.
        pub window_id: u32 = "windowId";
    }
}

/// A number of milliseconds, or a time as milliseconds since the Unix epoch, as the field says.
///
/// Readers accept any finite number from 0 to 2⁵³−1 and drop the fraction: the protocol promises a number, not a whole one.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Millis(pub u64);

impl Json for Millis {
    fn read(value: &Value) -> Result<Self, Violation> {
        let number = f64::read(value)?;
        if !(0.0..=crate::json::MAX_WHOLE as f64).contains(&number) {
            return Err(Violation::here(Reason::OutOfRange));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked"
        )]
        Ok(Self(number as u64))
    }

    fn write(&self) -> Value {
        Value::from(self.0)
    }
}

/// A SHA-256 hash, spelled `sha256:` and 64 lower-case hexadecimal digits on the wire (§1.4).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 32]);

impl Digest {
    const PREFIX: &'static str = "sha256:";

    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A hash computed elsewhere, for example while streaming a file.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads the wire spelling. Bare hex, upper case and other algorithms are refused.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_hex256(text.strip_prefix(Self::PREFIX)?)
    }

    /// Reads 64 bare lower-case hexadecimal digits, as the pinned executor digest is configured (§8.1).
    #[must_use]
    pub fn from_hex256(hex: &str) -> Option<Self> {
        let nibble = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        let digits: &[u8; 64] = hex.as_bytes().try_into().ok()?;
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// The 64 bare lower-case hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.digits().into_iter().map(char::from).collect()
    }

    /// By table: an answer holds one digest an element, and formatting them byte by byte was most of writing it.
    fn digits(&self) -> [u8; 64] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (byte, pair) in self.0.iter().zip(digits.chunks_exact_mut(2)) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        digits
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::PREFIX)?;
        formatter.write_str(std::str::from_utf8(&self.digits()).expect("hexadecimal is ASCII"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl Json for Digest {
    fn read(value: &Value) -> Result<Self, Violation> {
        value
            .as_str()
            .and_then(Self::parse)
            .ok_or(Violation::here(Reason::NotDigest))
    }

    fn write(&self) -> Value {
        Value::String(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §12.2 row 18: only the prefixed lower-case spelling is a digest.
    #[test]
    fn digest_spelling_is_strict() {
        let good = Digest::of(b"x").to_string();
        assert_eq!(Digest::parse(&good), Some(Digest::of(b"x")));
        let hex = Digest::of(b"x").to_hex();
        let bad = [
            hex.clone(),
            good.to_uppercase(),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha512:{hex}"),
            format!("{good}0"),
            good[..good.len() - 1].to_owned(),
            format!(" {good}"),
            String::new(),
            "sha256:".to_owned(),
            format!("sha256:{}é", &hex[..62]),
        ];
        for text in bad {
            assert_eq!(Digest::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn known_hash() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_hex(), empty);
    }
}
