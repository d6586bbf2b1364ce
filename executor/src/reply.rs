//! The reply to one request, and its encoding.

use maka_cu_protocol::codec::encode_line;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::json::Json;
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::results::Answer;
use maka_cu_protocol::results::dispatch::{DispatchAnswer, Ending};
use maka_cu_protocol::rpc::{RequestId, RpcError, error_response, result_response};
use maka_cu_protocol::sets::{Path, Tier};
use serde_json::Value;

/// Room for the JSON-RPC envelope around a result.
pub const ENVELOPE_BYTES: u64 = 128;

/// What a request led to.
#[derive(Debug)]
pub enum Reply {
    /// A `result`, of either arm.
    Result(Value),
    /// An `error`: the request was unusable.
    Error(RpcError),
}

impl Reply {
    /// `ok:true`.
    #[must_use]
    pub fn done(result: impl Json) -> Self {
        Self::Result(Answer::Done(result).write())
    }

    /// `ok:false` of a method that is no dispatch.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
        Self::Result(Answer::<Nothing>::Refused(refusal).write())
    }

    /// Either arm of a dispatch.
    #[must_use]
    pub fn dispatched(answer: &DispatchAnswer) -> Self {
        Self::Result(answer.write())
    }

    /// The same reply, or `response_too_large` when its encoding would be longer than `limit` bytes. For answers that
    /// cannot be cut and that report nothing that was done.
    #[must_use]
    pub fn within(self, limit: u64) -> Self {
        let bytes = match &self {
            Self::Result(result) => encoded_len(result).saturating_add(ENVELOPE_BYTES),
            Self::Error(_) => 0,
        };
        if bytes <= limit {
            self
        } else {
            Self::refused(Refusal::too_large(bytes, limit))
        }
    }

    /// Whether it is the `ok:true` arm.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Result(result) => result.get("ok").and_then(Value::as_bool) == Some(true),
            Self::Error(_) => false,
        }
    }

    /// The line on the wire.
    #[must_use]
    pub fn encode(self, id: RequestId) -> Vec<u8> {
        encode_line(&match self {
            Self::Result(result) => result_response(id, result),
            Self::Error(error) => error_response(Some(id), &error),
        })
    }
}

/// The type of a refusal's success, which there is none of.
type Nothing = maka_cu_protocol::results::Done;

/// What is needed to refuse a request without working on it.
#[derive(Debug, Clone)]
pub enum RefusalShape {
    /// `{"ok":false,"error":…}`.
    Plain,
    /// The full arm of a dispatch.
    Dispatch {
        /// Echoed.
        tool_call_id: ToolCallId,
        /// The tier that would have been used.
        tier: Tier,
        /// The path that the action takes when it is performed.
        attempted: Path,
    },
}

impl RefusalShape {
    /// The refusal with this code: nothing was done.
    #[must_use]
    pub fn refuse(&self, code: DomainCode) -> Reply {
        match self {
            Self::Plain => Reply::refused(code.into()),
            Self::Dispatch {
                tool_call_id, tier, ..
            } => Reply::dispatched(&DispatchAnswer::refused(tool_call_id.clone(), *tier, code)),
        }
    }

    /// What can be said about a request that was past its commit point when the process had to end.
    #[must_use]
    pub fn interrupted(&self) -> Reply {
        match self {
            Self::Plain => Reply::refused(DomainCode::Timeout.into()),
            Self::Dispatch {
                tool_call_id,
                tier,
                attempted,
            } => Reply::dispatched(&DispatchAnswer {
                ending: Ending::Unknown(DomainCode::OutcomeUnknown.into()),
                path: *attempted,
                ..DispatchAnswer::refused(tool_call_id.clone(), *tier, DomainCode::OutcomeUnknown)
            }),
        }
    }
}

/// The length of a value's encoding, without making it.
#[must_use]
pub fn encoded_len(value: &Value) -> u64 {
    struct Counter(u64);

    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("a JSON value always has a text form");
    counter.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_counted_length_is_the_encoded_one() {
        let value = json!({ "text": "ä\u{1}\"", "list": [1, 2.5, null] });
        assert_eq!(
            encoded_len(&value),
            u64::try_from(value.to_string().len()).unwrap()
        );
    }
}
