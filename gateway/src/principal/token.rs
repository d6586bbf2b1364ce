//! Bearer tokens: made here, shown once, stored as SHA-256 only.

use std::fmt;

use maka_cu_protocol::ids::Digest;

/// A fresh token with 256 random bits.
pub struct Token(String);

impl Token {
    /// Makes one from the system's random numbers.
    ///
    /// # Panics
    /// When the system has no random numbers; nothing sensible can be done then.
    #[must_use]
    pub fn generate() -> Self {
        let mut random = [0; 32];
        getrandom::fill(&mut random).expect("the system always has random numbers");
        Self(format!("maka_{}", Digest::from_bytes(random).to_hex()))
    }

    /// The token itself, for its holder.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the configuration holds.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(<redacted>)")
    }
}
