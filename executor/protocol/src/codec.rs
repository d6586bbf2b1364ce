//! Splitting a byte stream into lines under a bound (§1.1, §8.5).
//!
//! Owns the buffer between a pipe and the JSON parser. Bytes are split before they are decoded, so a character cut by a
//! read boundary cannot be damaged. Complete lines are taken out *before* the unfinished rest is measured: a burst of
//! small valid lines never trips the limit. The limit holds for every single line, so how the bytes were cut into reads
//! never decides what is accepted. It does no I/O.

use serde_json::Value;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Limit for one line before a handshake has said more (§8.5).
pub const LINE_LIMIT_BEFORE_HANDSHAKE: usize = 4 * 1024 * 1024;

/// Limit for one line after a handshake that promised messages of at most `max_response_bytes` (§8.5).
#[must_use]
pub fn line_limit(max_response_bytes: u64) -> usize {
    let promised = max_response_bytes
        .saturating_mul(2)
        .saturating_add(1024 * 1024);
    usize::try_from(promised)
        .unwrap_or(usize::MAX)
        .max(LINE_LIMIT_BEFORE_HANDSHAKE)
}

/// Why a stream can no longer be split.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CodecError {
    /// One line is longer than the limit. The buffer is gone and every later call repeats this error.
    #[error("a line is longer than {limit} bytes")]
    Overflow {
        /// The limit in bytes.
        limit: usize,
    },
}

/// Splits pushed bytes into lines of bounded length.
///
/// Push what one read returned, then call [`LineCodec::next_line`] until it returns `None`. So used, it holds at most
/// the limit plus one read. Blank lines, `\r` before `\n` and a byte order mark before the first line are dropped; the
/// text after the last newline is not a message and is never returned.
pub struct LineCodec {
    buffer: Vec<u8>,
    /// Start of the first line that was not taken out yet.
    start: usize,
    /// Everything before this was searched for a newline already.
    searched: usize,
    limit: usize,
    at_stream_start: bool,
    overflowed: Option<CodecError>,
}

impl LineCodec {
    /// A codec that accepts lines of up to `limit` bytes, newline not counted.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            limit,
            at_stream_start: true,
            overflowed: None,
        }
    }

    /// Changes the limit for the lines that were not taken out yet.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds what one read returned.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.overflowed.is_none() {
            self.compact();
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Takes the next complete, non-blank line, trimmed of surrounding ASCII white space; `None` when more bytes are
    /// needed.
    ///
    /// # Errors
    /// [`CodecError::Overflow`] once a line, complete or not, is longer than the limit.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, CodecError> {
        loop {
            if let Some(error) = self.overflowed {
                return Err(error);
            }
            let Some(offset) = self.buffer[self.searched..]
                .iter()
                .position(|&byte| byte == b'\n')
            else {
                self.searched = self.buffer.len();
                if self.buffer.len() - self.start > self.limit {
                    return Err(self.overflow());
                }
                self.compact();
                return Ok(None);
            };
            let end = self.searched + offset;
            if end - self.start > self.limit {
                return Err(self.overflow());
            }
            let mut line = &self.buffer[self.start..end];
            if std::mem::take(&mut self.at_stream_start) {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            let line = line.trim_ascii().to_vec();
            self.start = end + 1;
            self.searched = self.start;
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Whether bytes of an unfinished line are held: at the end of the stream, a message was cut off.
    #[must_use]
    pub fn has_partial_line(&self) -> bool {
        self.buffer[self.start..]
            .iter()
            .any(|byte| !byte.is_ascii_whitespace())
    }

    fn compact(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        // One huge message should not pin its memory for the life of the child.
        if self.buffer.is_empty() && self.buffer.capacity() > 256 * 1024 {
            self.buffer = Vec::new();
        }
    }

    fn overflow(&mut self) -> CodecError {
        let error = CodecError::Overflow { limit: self.limit };
        self.overflowed = Some(error);
        self.buffer = Vec::new();
        (self.start, self.searched) = (0, 0);
        error
    }
}

impl std::fmt::Debug for LineCodec {
    /// Prints sizes only: the buffer holds application text.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LineCodec")
            .field("buffered", &(self.buffer.len() - self.start))
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// One message as a line, newline included. JSON escapes control characters, so the text itself holds no newline.
#[must_use]
pub fn encode_line(message: &Value) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a JSON value always has a text form");
    line.push(b'\n');
    line
}
