//! `maka-gateway policy capture`: asks a running gateway for a capture, and keeps it in a file that only its owner reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use maka_proto::v1::{self, operator_client::OperatorClient};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Request, Status};

use super::MAX_DURATION;
use crate::config::Config;
use crate::probe::{self, Attempt};

/// A token file is one short line.
const TOKEN_BYTES: u64 = 4096;

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureCommandError {
    /// The token cannot be read.
    #[error("the token in `{0}` cannot be read; the file has one line, the token")]
    Token(PathBuf),
    /// No gateway.
    #[error("no gateway answers; start it with `maka-gateway serve` and the same configuration")]
    Unreachable(#[source] Attempt),
    /// It says no.
    #[error("the gateway refuses: {}", .0.message())]
    Refused(Box<Status>),
    /// The file.
    #[error("`{path}` cannot be written; a file that is there already is left alone")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The gateway went away.
    #[error("the capture broke off, and what was kept of it cannot be replayed")]
    Broken(#[source] Option<Box<Status>>),
}

/// Reads `600`, `90s`, `10m` or `1h`.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let says = || "write 1s to 1h, for example 10m".to_owned();
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(says()),
    };
    let number: u64 = digits.parse().map_err(|_| says())?;
    let duration = Duration::from_secs(number.saturating_mul(unit));
    if duration.is_zero() || duration > MAX_DURATION {
        return Err(says());
    }
    Ok(duration)
}

/// Captures for `duration` into a new file, and says what came of it.
///
/// # Errors
/// [`CaptureCommandError`]. A file of a capture that broke off stays; it says by itself that it is not whole.
pub async fn capture(
    config: &Config,
    duration: Duration,
    out: &Path,
    token_file: Option<&Path>,
) -> Result<String, CaptureCommandError> {
    let mut request = Request::new(v1::CaptureDecisionsRequest {
        seconds: u32::try_from(duration.as_secs()).unwrap_or(u32::MAX),
    });
    if let Some(path) = token_file {
        let token = bearer(path).ok_or_else(|| CaptureCommandError::Token(path.to_owned()))?;
        request.metadata_mut().insert("authorization", token);
    }
    let channel = probe::connect(config)
        .await
        .map_err(CaptureCommandError::Unreachable)?;
    let refused = |status| CaptureCommandError::Refused(Box::new(status));
    let mut pieces = OperatorClient::new(channel)
        .capture_decisions(request)
        .await
        .map_err(refused)?
        .into_inner();
    let failed = |source| CaptureCommandError::Write {
        path: out.to_owned(),
        source,
    };
    // Made when the capture has begun, so that a refusal leaves no file behind.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(out)
        .map_err(failed)?;
    loop {
        let piece = pieces.message().await;
        let broken = |status| CaptureCommandError::Broken(Some(Box::new(status)));
        let piece = piece.map_err(broken)?;
        let v1::CaptureDecisionsResponse { piece, summary } =
            piece.ok_or(CaptureCommandError::Broken(None))?;
        file.write_all(&piece).map_err(failed)?;
        if let Some(summary) = summary {
            file.sync_all().map_err(failed)?;
            return Ok(told(&summary, out));
        }
    }
}

fn told(summary: &v1::CaptureSummary, out: &Path) -> String {
    let ended = match summary.end() {
        v1::CaptureEnd::Time => "its time was over",
        v1::CaptureEnd::Full => "it had come to its largest size",
        v1::CaptureEnd::Shutdown => "the gateway ended",
        v1::CaptureEnd::Unspecified => "it is not said why",
    };
    format!(
        "captured {} decisions to {}, {} dropped; ended because {ended}",
        summary.decisions,
        out.display(),
        summary.dropped
    )
}

fn bearer(path: &Path) -> Option<MetadataValue<Ascii>> {
    let file = File::open(path).ok()?;
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(file, TOKEN_BYTES), &mut text).ok()?;
    let mut value: MetadataValue<Ascii> = format!("Bearer {}", text.trim()).parse().ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_and_a_bound() {
        for (text, seconds) in [("600", 600), ("90s", 90), ("10m", 600), ("1h", 3600)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in [
            "", "0", "0m", "m", "10 m", "10d", "-1", "2h", "3601", "1.5m",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
