//! Requests that no service could read: not protobuf, cut short, too large.
//!
//! The framework refuses these before a method sees them, with a bare status. Every status of the product carries
//! `google.rpc.ErrorInfo`, because one without it has to mean that it came from somewhere else; so these are
//! answered again here, in our own words.

use tonic::{Code, Status};

use super::status;

/// Puts our own status in the place of the framework's.
pub(super) fn explain<B: Default>(response: http::Response<B>) -> http::Response<B> {
    // Only an answer without a message has its status in the headers; ours carry details.
    let bare =
        Status::from_header_map(response.headers()).filter(|status| status.details().is_empty());
    match bare.map(|status| status.code()) {
        Some(Code::Internal) => status::unreadable().into_http(),
        Some(Code::OutOfRange) => status::too_large().into_http(),
        Some(_) | None => response,
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    fn check(answered: Status, expected: Option<(Code, &str)>) {
        let before = answered.clone();
        let response = explain(answered.into_http::<()>());
        let after = Status::from_header_map(response.headers()).unwrap();
        match expected {
            None => assert_eq!(
                (after.code(), after.message()),
                (before.code(), before.message())
            ),
            Some((code, reason)) => {
                assert_eq!(after.code(), code);
                assert_eq!(
                    after.get_error_details().error_info().unwrap().reason,
                    reason
                );
            }
        }
    }

    #[test]
    fn only_the_frameworks_own_refusals_are_answered_again() {
        check(
            Status::internal("failed to decode"),
            Some((Code::InvalidArgument, "message_unreadable")),
        );
        check(
            Status::out_of_range("too large"),
            Some((Code::ResourceExhausted, "message_too_large")),
        );
        check(Status::unimplemented("compressed"), None);
        check(status::forbidden(), None);
        assert!(explain(http::Response::new(())).headers().is_empty());
    }
}
