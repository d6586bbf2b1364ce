//! Decision ids: 26 characters that sort by time, in the form known as ULID.
//!
//! 48 bits of Unix milliseconds, then 80 random bits, in Crockford's base 32. Within one process ids strictly increase:
//! in the same millisecond, and when the clock steps back, the random part of the last id is counted up instead.

use std::fmt;
use std::sync::Mutex;

use sha2::{Digest as _, Sha256};

/// The id of one decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId(String);

impl DecisionId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// No random numbers can be had from the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoEntropy;

/// Mints ids. The random part is drawn from a secret of this process, so that minting cannot fail later.
pub struct IdSource {
    secret: [u8; 32],
    last: Mutex<(u128, u64)>,
}

impl fmt::Debug for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdSource").finish_non_exhaustive()
    }
}

impl IdSource {
    /// A source with a fresh secret.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers: guessable ids would be worse than no gateway.
    pub fn try_new() -> Result<Self, NoEntropy> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|_| NoEntropy)?;
        Ok(Self {
            secret,
            last: Mutex::new((0, 0)),
        })
    }

    /// The next id.
    pub fn next(&self, unix_ms: u64) -> DecisionId {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (value, counter) = &mut *last;
        *counter += 1;
        let drawn = Sha256::new()
            .chain_update(self.secret)
            .chain_update(counter.to_le_bytes())
            .finalize();
        let mut random = [0; 16];
        random[6..].copy_from_slice(&drawn[..10]);
        let fresh = u128::from(unix_ms & 0xffff_ffff_ffff) << 80 | u128::from_be_bytes(random);
        *value = if fresh >> 80 > *value >> 80 {
            fresh
        } else {
            value.wrapping_add(1)
        };
        DecisionId(encode(*value))
    }
}

fn encode(value: u128) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    (0..26)
        .rev()
        .map(|digit| char::from(ALPHABET[(value >> (digit * 5)) as usize & 31]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_even_when_the_clock_does_not() {
        let source = IdSource::try_new().unwrap();
        let mut last = source.next(1_700_000_000_000);
        for ms in [
            1_700_000_000_000,
            1_700_000_000_000,
            1_600_000_000_000,
            1_700_000_000_001,
        ] {
            let id = source.next(ms);
            assert!(id > last);
            assert_eq!(id.as_str().len(), 26);
            last = id;
        }
    }

    #[test]
    fn the_time_is_in_front() {
        assert!(encode(0x018b_cfe5_6800_u128 << 80).starts_with("01HF7YAT00"));
    }
}
