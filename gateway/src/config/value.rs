//! Values of the configuration as types that only hold good ones. Each says in its error what to write instead.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use maka_cu_protocol::ids::Digest;
use serde::{Deserialize, Deserializer, de};

/// An absolute path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AbsolutePath(PathBuf);

impl AbsolutePath {
    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for AbsolutePath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        if path.is_absolute() && !text.contains('\0') {
            Ok(Self(path))
        } else {
            Err("not an absolute path; write it from the root, starting with `/`")
        }
    }
}

/// A SHA-256 digest, written as 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sha256(pub Digest);

impl FromStr for Sha256 {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Digest::from_hex256(text).map(Self).ok_or(
            "not a SHA-256 digest; write 64 lower-case hex digits as `sha256sum` prints them",
        )
    }
}

/// A loopback address with a port. Port 0: the system chooses, see `<state_dir>/address`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoopbackAddress(pub SocketAddr);

impl FromStr for LoopbackAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address: SocketAddr = text.parse().map_err(
            |_| "not an address; write an IP address and a port, for example `127.0.0.1:50051`",
        )?;
        if address.ip().is_loopback() {
            Ok(Self(address))
        } else {
            Err(
                "not a loopback address; an address that other machines reach needs TLS and client authentication, \
                 which this version does not serve: write `127.0.0.1:50051` or `[::1]:50051` and tunnel to it",
            )
        }
    }
}

/// A name of a principal or a module: 1 to 64 of `a`–`z`, `0`–`9`, `.`, `_`, `/` and `-`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Name(String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let legal =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'/' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(legal) {
            Ok(Self(text.to_owned()))
        } else {
            Err("not a name; write 1 to 64 characters of a-z, 0-9, `.`, `_`, `/` and `-`")
        }
    }
}

/// The name of an environment variable.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct VariableName(String);

impl VariableName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VariableName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let legal = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if !text.is_empty() && text.bytes().all(legal) && !text.as_bytes()[0].is_ascii_digit() {
            Ok(Self(text.to_owned()))
        } else {
            Err("not a variable name; write letters, digits and `_`, not starting with a digit")
        }
    }
}

macro_rules! deserialize_from_str {
    ($($name:ident),+) => {
        $(impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // The error of a missing field passes through here too, so it must not be replaced.
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        })+
    };
}

deserialize_from_str!(AbsolutePath, Sha256, LoopbackAddress, Name, VariableName);

/// A whole number of `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounded<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// A value that is known when the gateway is built.
    pub(super) const fn constant(value: u64) -> Self {
        assert!(
            MIN <= value && value <= MAX,
            "the default lies within its own bounds"
        );
        Self(value)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as a count.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number of milliseconds as a duration.
    #[must_use]
    pub const fn as_millis(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = || de::Error::custom(format_args!("write a whole number of {MIN} to {MAX}"));
        let value = u64::deserialize(deserializer).map_err(|_| refused())?;
        if (MIN..=MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(refused())
        }
    }
}
