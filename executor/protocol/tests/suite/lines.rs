//! The line codec and the envelope, against hostile bytes.

use maka_cu_protocol::{
    codec::{CodecError, LineCodec, encode_line, line_limit},
    ids::ToolCallId,
    rpc::{self, BadLine, HostIncoming, Incoming, RequestId, ResponseBody, RpcCode, RpcError},
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// All lines of a stream that arrives in these pieces, and the error that ended it, if one did.
fn split<'a>(
    limit: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Vec<u8>>, Option<CodecError>) {
    let mut codec = LineCodec::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        codec.push(piece);
        loop {
            match codec.next_line() {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => break,
                Err(error) => return (lines, Some(error)),
            }
        }
    }
    (lines, None)
}

/// Field report H10: a response written one byte at a time reads as written; CRLF, blank lines and two objects in one
/// write are no matter.
#[test]
fn characters_survive_split_reads() {
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "é漢😀"}});
    let line = encode_line(&message);
    let (lines, error) = split(1024, line.chunks(1));
    assert_eq!((lines.len(), error), (1, None));
    let expected = HostIncoming::Response {
        id: 1,
        body: ResponseBody::Result(json!({"text": "é漢😀"})),
    };
    assert_eq!(HostIncoming::parse(&lines[0]), expected);

    let (lines, error) = split(
        64,
        [
            &b"\r\n\n{\"a\":1}\r\n  \n{\"b\":2}\n{\"c\""[..],
            b":3}",
            b"\n",
        ],
    );
    assert_eq!(error, None);
    assert_eq!(
        lines,
        [
            b"{\"a\":1}".to_vec(),
            b"{\"b\":2}".to_vec(),
            b"{\"c\":3}".to_vec()
        ]
    );
}

/// Field reports, weak points of published hosts: many small valid lines in one read must not trip the limit.
#[test]
fn complete_lines_come_out_before_the_limit_is_applied() {
    let burst = b"{\"id\":1}\n".repeat(10_000);
    let (lines, error) = split(16, [&burst[..]]);
    assert_eq!((lines.len(), error), (10_000, None));
}

#[test]
fn a_long_line_is_an_overflow_however_it_arrives() {
    let overflow = Some(CodecError::Overflow { limit: 8 });
    let stream = b"ok\n123456789\nnever\n";
    for size in 1..=stream.len() {
        assert_eq!(
            split(8, stream.chunks(size)),
            (vec![b"ok".to_vec()], overflow),
            "pieces of {size}"
        );
    }
    let unfinished = b"123456789";
    assert_eq!(split(8, unfinished.chunks(4)), (vec![], overflow));
    assert_eq!(
        split(8, b"12345678\n".chunks(3)),
        (vec![b"12345678".to_vec()], None)
    );

    let mut codec = LineCodec::new(2);
    codec.push(b"abc");
    assert!(codec.next_line().is_err());
    codec.push(b"\nx\n");
    assert!(codec.next_line().is_err(), "an overflow is final");
}

#[test]
fn a_cut_message_is_noticed_and_not_delivered() {
    let mut codec = LineCodec::new(100);
    codec.push(b"{}\n{\"id\":");
    assert_eq!(codec.next_line(), Ok(Some(b"{}".to_vec())));
    assert_eq!(codec.next_line(), Ok(None));
    assert!(codec.has_partial_line());
    assert!(!format!("{codec:?}").contains("id"));
}

#[test]
fn the_limit_follows_the_handshake() {
    assert_eq!(line_limit(1), 4 * 1024 * 1024);
    assert_eq!(line_limit(8 * 1024 * 1024), 17 * 1024 * 1024);
    assert_eq!(line_limit(u64::MAX), usize::MAX);
}

/// Field report H14: each hostile line is a bad line or ignored by rule, and nothing panics.
#[test]
fn hostile_lines_from_the_child() {
    let nested = [vec![b'['; 10_000], vec![b']'; 10_000]].concat();
    let inside = [
        b"{\"id\":1,\"result\":".to_vec(),
        nested.clone(),
        b"}".to_vec(),
    ]
    .concat();
    let rows: [(&[u8], HostIncoming); 14] = [
        (b"null", HostIncoming::Bad(BadLine::NotObject)),
        (b"[]", HostIncoming::Bad(BadLine::NotObject)),
        (b"42", HostIncoming::Bad(BadLine::NotObject)),
        (b"\"text\"", HostIncoming::Bad(BadLine::NotObject)),
        (b"{}", HostIncoming::Ignored),
        (b"{\"id\":null}", HostIncoming::Ignored),
        (b"{\"id\":\"1\",\"result\":{}}", HostIncoming::Ignored),
        (b"{\"id\":1.5,\"result\":{}}", HostIncoming::Ignored),
        (b"{\"id\":-4,\"result\":{}}", HostIncoming::Ignored),
        (b"{\"id\":1e400}", HostIncoming::Bad(BadLine::NotJson)),
        (b"{\"id\":1", HostIncoming::Bad(BadLine::NotJson)),
        (b"\xff\xfe", HostIncoming::Bad(BadLine::NotJson)),
        (&nested, HostIncoming::Bad(BadLine::NotJson)),
        (&inside, HostIncoming::Bad(BadLine::NotJson)),
    ];
    for (line, expected) in rows {
        let shown = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
        assert_eq!(HostIncoming::parse(line), expected, "{shown}");
    }
    // A byte order mark opens the stream or spoils the line.
    let (lines, _) = split(100, [&b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n"[..]]);
    assert_eq!(HostIncoming::parse(&lines[0]), HostIncoming::Ignored);
    assert_eq!(
        HostIncoming::parse(&lines[1]),
        HostIncoming::Bad(BadLine::NotJson)
    );
}

#[test]
fn responses_with_a_confused_body_are_malformed() {
    let malformed = |text: &str| {
        let HostIncoming::Response {
            id: 3,
            body: ResponseBody::Malformed(violation),
        } = HostIncoming::parse(text.as_bytes())
        else {
            panic!("{text}");
        };
        violation.field
    };
    assert_eq!(malformed(r#"{"id":3}"#), "result");
    assert_eq!(
        malformed(r#"{"id":3,"result":{},"error":{"code":-32603,"message":"x"}}"#),
        "error"
    );
    assert_eq!(
        malformed(r#"{"id":3,"error":{"code":"x","message":"x"}}"#),
        "error.code"
    );
    assert_eq!(malformed(r#"{"id":3,"error":7}"#), "error");
}

#[test]
fn requests_as_the_executor_reads_them() {
    let invalid = |id: Option<i64>, code| Incoming::Invalid(id.map(RequestId), RpcError::new(code));
    let rows = [
        ("nonsense", invalid(None, RpcCode::ParseError)),
        ("[]", invalid(None, RpcCode::InvalidRequest)),
        ("null", invalid(None, RpcCode::InvalidRequest)),
        ("{}", invalid(None, RpcCode::InvalidRequest)),
        (
            r#"{"id":4,"method":"observe"}"#,
            invalid(Some(4), RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"1.0","id":4,"method":"observe"}"#,
            invalid(Some(4), RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":4}"#,
            invalid(Some(4), RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":7}"#,
            invalid(Some(4), RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"observe"}"#,
            invalid(None, RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"observe"}"#,
            invalid(None, RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"observe"}"#,
            invalid(None, RpcCode::InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":42}}"#,
            Incoming::Cancel(RequestId(42)),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"x"}}"#,
            Incoming::Ignored,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"$/cancel"}"#,
            Incoming::Ignored,
        ),
        (r#"{"jsonrpc":"2.0","method":"news"}"#, Incoming::Ignored),
    ];
    for (line, expected) in rows {
        assert_eq!(Incoming::parse(line.as_bytes()), expected, "{line}");
    }
    let Incoming::Request(request) =
        Incoming::parse(br#"{"jsonrpc":"2.0","id":5.0,"method":"teleport"}"#)
    else {
        panic!("a request without params is a request");
    };
    assert_eq!((request.id, &request.params), (RequestId(5), &json!({})));
    assert_eq!(request.method(), Err(RpcError::new(RpcCode::UnknownMethod)));
}

/// No request, response or error shows what it carries.
#[test]
fn debug_shows_no_payload() {
    let request = rpc::request(
        1,
        maka_cu_protocol::method::Method::DispatchKey,
        json!({"text": "canary"}),
    );
    let response = rpc::result_response(RequestId(1), json!({"title": "canary"}));
    let incoming = Incoming::parse(&encode_line(&request));
    let answered = HostIncoming::parse(&encode_line(&response));
    let error = HostIncoming::parse(
        br#"{"id":1,"error":{"code":-32603,"message":"canary","data":{"x":"canary"}}}"#,
    );
    let shown = format!("{incoming:?} {answered:?} {error:?}");
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn rpc_errors_name_code_token_and_field() {
    let written = rpc::error_response(Some(RequestId(2)), &RpcError::invalid_params("action.key"));
    let expected = json!({"jsonrpc": "2.0", "id": 2, "error":
        {"code": -32602, "message": "invalid_params", "data": {"field": "action.key"}}});
    assert_eq!(written, expected);
    let written = rpc::error_response(None, &RpcError::version_mismatch());
    let expected = json!({"jsonrpc": "2.0", "id": null, "error":
        {"code": -32000, "message": "protocol_version_mismatch", "data": {"supported": ["maka.cu/2"]}}});
    assert_eq!(written, expected);
    for code in RpcCode::ALL {
        assert_eq!(RpcCode::of_number(code.number()), Some(*code));
    }
}

proptest! {
    /// How a stream is cut into reads decides nothing.
    #[test]
    fn cuts_decide_nothing(
        stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..300),
        limit in 0_usize..40,
        size in 1_usize..50,
    ) {
        let whole = split(limit, [&stream[..]]);
        prop_assert_eq!(&whole, &split(limit, stream.chunks(size)));
        for line in &whole.0 {
            prop_assert!(!line.is_empty() && line.len() <= limit && !line.contains(&b'\n'));
        }
    }

    /// Any JSON value survives encoding, cutting and parsing.
    #[test]
    fn messages_survive(text in ".*", id in 0_u64..=9_007_199_254_740_991, size in 1_usize..20) {
        let line = encode_line(&json!({"id": id, "result": {"text": text}}));
        let (lines, error) = split(line.len(), line.chunks(size));
        prop_assert_eq!((lines.len(), error), (1, None));
        let expected = HostIncoming::Response { id, body: ResponseBody::Result(json!({"text": text})) };
        prop_assert_eq!(HostIncoming::parse(&lines[0]), expected);
    }

    /// No bytes panic either end.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _: (Incoming, HostIncoming) = (Incoming::parse(&bytes), HostIncoming::parse(&bytes));
    }

    /// A request reads back as it was written.
    #[test]
    fn requests_round_trip(id in 1_u64..1_000_000, text in ".*") {
        let params = json!({"text": text});
        let method = maka_cu_protocol::method::Method::Observe;
        let Incoming::Request(request) = Incoming::parse(&encode_line(&rpc::request(id, method, params.clone()))) else {
            return Err(TestCaseError::fail("not a request"));
        };
        prop_assert_eq!(request.method(), Ok(method));
        prop_assert_eq!((request.id.0, request.params), (i64::try_from(id).unwrap(), params));
        let cancel = Incoming::parse(&encode_line(&rpc::cancel(id)));
        prop_assert_eq!(cancel, Incoming::Cancel(request.id));
    }
}

/// Identifiers with awkward content are identifiers.
#[test]
fn identifiers_are_opaque() {
    for id in ["__proto__", "a\nb", "é", "\"", " "] {
        let id = ToolCallId::try_new(id).unwrap();
        let line = encode_line(&Value::String(id.to_string()));
        assert_eq!(
            line.iter().filter(|byte| **byte == b'\n').count(),
            1,
            "{id:?}"
        );
    }
}
