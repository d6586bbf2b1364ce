//! The JSON-RPC 2.0 envelope (§1.1, §1.2): what a line is, for each end.
//!
//! Owns request, notification and response framing and the closed set of RPC error codes. It does not know any method's
//! params or result: those are [`crate::params`] and [`crate::results`].

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    json::{Fields, Json, ObjectWriter, Reason, Violation, whole},
    method::{CANCEL, Method},
    params::ParamError,
};

/// The RPC error codes of §1.2.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RpcCode {
    /// The line is not JSON.
    ParseError,
    /// Not a JSON-RPC 2.0 request.
    InvalidRequest,
    /// The method name is not known.
    UnknownMethod,
    /// A field of the params is missing, mistyped, out of its set or out of bounds.
    InvalidParams,
    /// A fault of the executor itself.
    InternalError,
    /// The two ends speak different versions.
    ProtocolVersionMismatch,
    /// A request before a successful `host.hello`.
    HandshakeRequired,
    /// The session was never begun or has ended.
    SessionUnknown,
    /// Read after shutdown began.
    ShuttingDown,
}

impl RpcCode {
    /// Every code.
    pub const ALL: &'static [Self] = &[
        Self::ParseError,
        Self::InvalidRequest,
        Self::UnknownMethod,
        Self::InvalidParams,
        Self::InternalError,
        Self::ProtocolVersionMismatch,
        Self::HandshakeRequired,
        Self::SessionUnknown,
        Self::ShuttingDown,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::UnknownMethod => -32601,
            Self::InvalidParams => -32602,
            Self::InternalError => -32603,
            Self::ProtocolVersionMismatch => -32000,
            Self::HandshakeRequired => -32001,
            Self::SessionUnknown => -32002,
            Self::ShuttingDown => -32003,
        }
    }

    /// The fixed `message` token.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::ParseError => "parse_error",
            Self::InvalidRequest => "invalid_request",
            Self::UnknownMethod => "unknown_method",
            Self::InvalidParams => "invalid_params",
            Self::InternalError => "internal_error",
            Self::ProtocolVersionMismatch => "protocol_version_mismatch",
            Self::HandshakeRequired => "handshake_required",
            Self::SessionUnknown => "session_unknown",
            Self::ShuttingDown => "shutting_down",
        }
    }

    /// The code of this number, if it is one of ours.
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.number() == number)
    }
}

/// An RPC error: the request was unusable. Never a statement about the desktop.
///
/// What a peer wrote as `message` is not kept: it is not ours to show, and nothing may be decided by it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("RPC error `{number}`")]
pub struct RpcError {
    /// The number, which a peer may have chosen outside [`RpcCode`].
    number: i64,
    /// `data.field`: the offending field of an [`RpcCode::InvalidParams`].
    field: Option<String>,
    /// `data.supported`: the versions a peer speaks, with [`RpcCode::ProtocolVersionMismatch`].
    supported: Vec<String>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub const fn new(code: RpcCode) -> Self {
        Self {
            number: code.number(),
            field: None,
            supported: Vec::new(),
        }
    }

    /// `invalid_params` naming the field.
    #[must_use]
    pub fn invalid_params(field: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(RpcCode::InvalidParams)
        }
    }

    /// The version mismatch answer, listing what this build speaks.
    #[must_use]
    pub fn version_mismatch() -> Self {
        let supported = vec![crate::method::PROTOCOL.to_owned()];
        Self {
            supported,
            ..Self::new(RpcCode::ProtocolVersionMismatch)
        }
    }

    /// The code, if the number is one of ours.
    #[must_use]
    pub fn code(&self) -> Option<RpcCode> {
        RpcCode::of_number(self.number)
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(&self) -> i64 {
        self.number
    }

    /// The offending field, when the peer named one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The versions the peer listed.
    #[must_use]
    pub fn supported(&self) -> &[String] {
        &self.supported
    }
}

impl From<ParamError> for RpcError {
    fn from(error: ParamError) -> Self {
        Self::invalid_params(error.field())
    }
}

impl Json for RpcError {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let number = fields.get("code")?;
        fields.get::<String>("message")?;
        // `data` is a peer's free form: only the two members we know are taken, and only in their right type.
        let data = fields.raw("data").and_then(|data| Fields::of(data).ok());
        Ok(Self {
            number,
            field: data.and_then(|data| data.lenient("field")),
            supported: data
                .and_then(|data| data.lenient("supported"))
                .unwrap_or_default(),
        })
    }

    fn write(&self) -> Value {
        let mut data = ObjectWriter::new().with("field", &self.field);
        if !self.supported.is_empty() {
            data = data.with("supported", &self.supported);
        }
        let data = data.finish();
        let token = self.code().unwrap_or(RpcCode::InternalError).token();
        let error = ObjectWriter::new()
            .with("code", &self.number)
            .word("message", token);
        if data.as_object().is_some_and(Map::is_empty) {
            return error.finish();
        }
        error
            .merge(Value::Object(Map::from_iter([("data".to_owned(), data)])))
            .finish()
    }
}

/// A request id as an executor sees it: any whole number, echoed as it came.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(pub i64);

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Json for RequestId {
    fn read(value: &Value) -> Result<Self, Violation> {
        i64::read(value).map(Self)
    }

    fn write(&self) -> Value {
        Value::from(self.0)
    }
}

/// A request as read by the executor. The method is not resolved yet: an unknown one is still owed an answer.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// To be echoed in the one answer.
    pub id: RequestId,
    /// The method name as sent.
    pub method: String,
    /// The params; an empty object when the key was absent.
    pub params: Value,
}

impl Request {
    /// The method, or the RPC error to answer with.
    ///
    /// # Errors
    /// [`RpcCode::UnknownMethod`].
    pub fn method(&self) -> Result<Method, RpcError> {
        Method::parse(&self.method).ok_or(RpcError::new(RpcCode::UnknownMethod))
    }
}

impl fmt::Debug for Request {
    /// Leaves the params out (they may hold typed text), and the name unless it is a known method.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = Method::parse(&self.method);
        formatter
            .debug_struct("Request")
            .field("id", &self.id.0)
            .field("method", &method)
            .finish_non_exhaustive()
    }
}

/// One line as the executor reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// Must be answered exactly once.
    Request(Request),
    /// `$/cancel` for this request. Never answered.
    Cancel(RequestId),
    /// An unknown notification or an unreadable cancel: ignored in silence.
    Ignored,
    /// Unusable; to be answered once with this error and this id (`None` is written as `null`).
    Invalid(Option<RequestId>, RpcError),
}

impl Incoming {
    /// Reads one line.
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Self::Invalid(None, RpcError::new(RpcCode::ParseError));
        };
        let invalid = |id| Self::Invalid(id, RpcError::new(RpcCode::InvalidRequest));
        let Value::Object(mut message) = value else {
            return invalid(None);
        };
        let has_id = message.contains_key("id");
        let id = message.get("id").and_then(whole).map(RequestId);
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return invalid(id);
        }
        let Some(Value::String(method)) = message.remove("method") else {
            return invalid(id);
        };
        let params = message
            .remove("params")
            .unwrap_or_else(|| Value::Object(Map::new()));
        match (has_id, id) {
            (true, Some(id)) => Self::Request(Request { id, method, params }),
            (true, None) => invalid(None),
            (false, _) if method == CANCEL => {
                let id = Fields::of(&params).and_then(|fields| fields.get::<RequestId>("id"));
                id.map_or(Self::Ignored, Self::Cancel)
            }
            (false, _) => Self::Ignored,
        }
    }
}

/// Writes the answer to a request that produced a `result`.
#[must_use]
pub fn result_response(id: RequestId, result: Value) -> Value {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    message.insert("id".to_owned(), Value::from(id.0));
    message.insert("result".to_owned(), result);
    Value::Object(message)
}

/// Writes the answer to an unusable request. This is the one place of the wire where `null` is written: JSON-RPC asks
/// for `id: null` when the id could not be read.
#[must_use]
pub fn error_response(id: Option<RequestId>, error: &RpcError) -> Value {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    message.insert(
        "id".to_owned(),
        id.map_or(Value::Null, |id| Value::from(id.0)),
    );
    message.insert("error".to_owned(), error.write());
    Value::Object(message)
}

/// Writes a request, as a host does. Ids count up from 1.
#[must_use]
pub fn request(id: u64, method: Method, params: Value) -> Value {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    message.insert("id".to_owned(), Value::from(id));
    message.insert("method".to_owned(), Value::from(method.as_str()));
    message.insert("params".to_owned(), params);
    Value::Object(message)
}

/// Writes the cancel notification for a request.
#[must_use]
pub fn cancel(id: u64) -> Value {
    let params = ObjectWriter::new().with("id", &id).finish();
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    message.insert("method".to_owned(), Value::from(CANCEL));
    message.insert("params".to_owned(), params);
    Value::Object(message)
}

/// A line that is not a message at all (§8.5): counted, and fatal to the child at the third.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadLine {
    /// Not JSON, not UTF-8, nested too deeply, or a number too large to be one.
    #[error("a line from the executor is not JSON")]
    NotJson,
    /// JSON, but not an object.
    #[error("a line from the executor is not a JSON object")]
    NotObject,
}

/// What a response says.
#[derive(Clone, PartialEq)]
pub enum ResponseBody {
    /// The `result`, still to be read by the method's reader.
    Result(Value),
    /// The `error`.
    Error(RpcError),
    /// Neither, both, or an unreadable error.
    Malformed(Violation),
}

impl fmt::Debug for ResponseBody {
    /// Leaves the result out: it holds application text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(_) => formatter.write_str("Result(..)"),
            Self::Error(error) => formatter.debug_tuple("Error").field(error).finish(),
            Self::Malformed(violation) => {
                formatter.debug_tuple("Malformed").field(violation).finish()
            }
        }
    }
}

/// One line as the host reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum HostIncoming {
    /// An answer to the request of this id, which may be unknown or settled: then it is dropped.
    Response {
        /// The id.
        id: u64,
        /// What it says.
        body: ResponseBody,
    },
    /// An object without a usable id: dropped, not counted.
    Ignored,
    /// Not a message.
    Bad(BadLine),
}

impl HostIncoming {
    /// Reads one line. Total: any bytes give one of the three.
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Self::Bad(BadLine::NotJson);
        };
        let Value::Object(mut message) = value else {
            return Self::Bad(BadLine::NotObject);
        };
        let Some(id) = message
            .get("id")
            .and_then(whole)
            .and_then(|id| u64::try_from(id).ok())
        else {
            return Self::Ignored;
        };
        let error = message.remove("error").filter(|error| !error.is_null());
        let body = match (message.remove("result"), error) {
            (Some(result), None) => ResponseBody::Result(result),
            (None | Some(Value::Null), Some(error)) => match RpcError::read(&error) {
                Ok(error) => ResponseBody::Error(error),
                Err(violation) => ResponseBody::Malformed(violation.at("error")),
            },
            (Some(_), Some(_)) => {
                ResponseBody::Malformed(Violation::of("error", Reason::Contradiction))
            }
            (None, None) => ResponseBody::Malformed(Violation::of("result", Reason::Missing)),
        };
        Self::Response { id, body }
    }
}
