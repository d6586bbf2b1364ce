//! The caller's deadline, from the `grpc-timeout` header.
//!
//! Read when the call arrives, by the layer around every service; no server below us enforces it.

use std::time::Duration;

use http::{Extensions, HeaderMap};
use tokio::time::Instant;
use tonic::Status;

use super::{decode::violations::Violations, status};
use crate::{serve::connection::Connection, session::call::CallContext};

const HEADER: &str = "grpc-timeout";

/// What belongs to a call and not to its message.
pub(super) fn context(extensions: &Extensions) -> CallContext {
    let context: CallContext = extensions.get().cloned().unwrap_or_default();
    CallContext {
        connection: extensions
            .get::<Connection>()
            .map(|connection| connection.life.clone()),
        ..context
    }
}

/// Reads the header of a call that has just arrived.
///
/// # Errors
/// INVALID_ARGUMENT naming the header: a deadline that is not understood must not be taken for none.
pub(super) fn read(headers: &HeaderMap) -> Result<CallContext, Status> {
    let mut shown = headers.get_all(HEADER).iter();
    let timeout = match (shown.next(), shown.next()) {
        (None, _) => return Ok(CallContext::default()),
        (Some(value), None) => timeout(value.as_bytes()),
        (Some(_), Some(_)) => None,
    };
    match timeout {
        // A time beyond what the clock can tell is no deadline.
        Some(timeout) => Ok(CallContext {
            deadline: Instant::now().checked_add(timeout),
            connection: None,
        }),
        None => {
            let mut violations = Violations::default();
            violations.add(
                HEADER,
                "must be one value of 1 to 8 digits and a unit of H, M, S, m, u, n",
            );
            Err(status::malformed(violations))
        }
    }
}

/// One to eight digits and a unit (gRPC over HTTP/2, "Timeout").
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
    use tonic_types::StatusExt as _;

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

    /// A deadline that cannot be read is refused by name: the caller would wait for ever for what it gave a second.
    #[test]
    fn a_bad_header_is_a_bad_request() {
        let rows: [(&[&[u8]], bool); 5] = [
            (&[], true),
            (&[b"5S"], true),
            (&[b"5"], false),
            (&[b"\xff\xffS"], false),
            (&[b"5S", b"5S"], false),
        ];
        for (values, is_good) in rows {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, http::HeaderValue::from_bytes(value).unwrap());
            }
            match read(&headers) {
                Ok(context) => assert!(is_good && context.deadline.is_some() != values.is_empty()),
                Err(status) => {
                    let details = status.get_error_details();
                    let named = &details.bad_request().unwrap().field_violations[0].field;
                    assert_eq!((is_good, named.as_str()), (false, HEADER));
                    assert_eq!(status.code(), tonic::Code::InvalidArgument);
                }
            }
        }
    }
}
