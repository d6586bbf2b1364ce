//! The caller's deadline, from the `grpc-timeout` header.

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use crate::session::call::CallContext;

/// What belongs to a call and not to its message.
pub(super) fn context(metadata: &MetadataMap) -> CallContext {
    let timeout = metadata
        .get("grpc-timeout")
        .and_then(|value| timeout(value.as_bytes()));
    CallContext {
        deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
    }
}

/// One to eight digits and a unit (gRPC over HTTP/2, "Timeout"). Anything else is no timeout, as everywhere.
fn timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(number * 3600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read_as_specified() {
        let rows: [(&str, Option<Duration>); 12] = [
            ("2S", Some(Duration::from_secs(2))),
            ("1500m", Some(Duration::from_millis(1500))),
            ("7u", Some(Duration::from_micros(7))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("3M", Some(Duration::from_secs(180))),
            ("0S", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("123456789S", None),
            ("-1S", None),
            ("2s", None),
        ];
        for (header, expected) in rows {
            assert_eq!(timeout(header.as_bytes()), expected, "{header}");
        }
    }
}
