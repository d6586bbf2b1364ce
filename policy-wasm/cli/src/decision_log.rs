//! `log verify`: whether a decision log is whole, from its first record to its last.

use std::str::FromStr;

use maka_policy_host::digest::Digest;
use maka_policy_host::log::{self, LogPosition, Verified, VerifyError};
use serde_json::json;

use crate::command_line::VerifyLogArguments;
use crate::error::InputError;
use crate::report::{Exit, Report, chain};

/// A position of a log that was kept elsewhere, written `COUNT:DIGEST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor(pub LogPosition);

/// Text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a position is the number of a record, a colon and the digest of its line, as `log verify` prints it"
)]
pub struct AnchorError;

impl FromStr for Anchor {
    type Err = AnchorError;

    fn from_str(text: &str) -> Result<Self, AnchorError> {
        let (count, head) = text.split_once(':').ok_or(AnchorError)?;
        let is_number = !count.starts_with('0') && count.bytes().all(|b| b.is_ascii_digit());
        if !is_number {
            return Err(AnchorError);
        }
        Ok(Self(LogPosition {
            count: count.parse().map_err(|_| AnchorError)?,
            head: Some(head.parse::<Digest>().map_err(|_| AnchorError)?),
        }))
    }
}

/// Carries out the command.
///
/// # Errors
///
/// When the file cannot be read. A log that is not whole is a result.
pub fn verify(arguments: &VerifyLogArguments) -> Result<Report, InputError> {
    let file = &arguments.file;
    // To the library a log that is not there is an empty one; whoever names a file means one that is.
    std::fs::metadata(file).map_err(|source| InputError::Read {
        path: file.clone(),
        source,
    })?;
    let anchor = arguments.anchor.map(|Anchor(position)| position);
    match log::verify_all(file, anchor) {
        Ok(verified) => Ok(Report::new(whole(verified, arguments.json), Exit::Passed)),
        Err(VerifyError::Read(source)) => Err(InputError::Log {
            path: file.clone(),
            source,
        }),
        Err(error @ (VerifyError::Broken(record) | VerifyError::Anchor(record))) => {
            let mut report = Report::new(String::new(), Exit::Failed);
            let reason = chain(&error);
            if arguments.json {
                let value = json!({
                    "schema": "maka.policy.log/1", "whole": false, "record": record, "reason": reason.trim_end(),
                });
                report.out = format!("{value}\n");
            } else {
                report.err = format!("not whole: {reason}");
            }
            Ok(report)
        }
    }
}

/// What is said of a whole log.
fn whole(verified: Verified, json: bool) -> String {
    let Verified {
        first,
        files,
        position,
    } = verified;
    let end = position
        .head
        .map(|head| format!("{}:{head}", position.count));
    let records = match first {
        0 => 0,
        first => position.count + 1 - first,
    };
    if json {
        let value = json!({
            "schema": "maka.policy.log/1", "whole": true, "files": files, "first": first, "records": records, "position": end,
        });
        return format!("{value}\n");
    }
    let Some(end) = end else {
        return "whole: no records\n".to_owned();
    };
    let spread = match files {
        1 => String::new(),
        files => format!(" in {files} files"),
    };
    let begin = match first {
        0 | 1 => String::new(),
        first => format!(", from record {first} on (older files are not here)"),
    };
    format!("whole: {records} records{spread}{begin}, position {end}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_printed() {
        let digest = Digest::of(b"line");
        let anchor: Anchor = format!("12:{digest}").parse().unwrap();
        assert_eq!((anchor.0.count, anchor.0.head), (12, Some(digest)));
        for bad in [
            "",
            "12",
            "0:x",
            "+1:x",
            &format!("x:{digest}"),
            &format!("00:{digest}"),
            "1:sha256:00",
        ] {
            assert_eq!(bad.parse::<Anchor>(), Err(AnchorError), "{bad}");
        }
    }
}
